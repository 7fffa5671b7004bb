package org.verbena.transport;

/** When a message counts as sent: when the promise of its write completes. */
public enum SendCompletion {
    /**
     * When the provider has completed its send: the peer's adapter has acknowledged the message (devices), or TCP has
     * taken it (soft). A message that was on its way when the connection was lost fails.
     */
    ACKNOWLEDGED,
    /**
     * When the adapter was given all of it, where that was copied before: into the work request, or into memory of the
     * connection. The message's own memory is free then. A message that is sent out of its own memory is {@link
     * #ACKNOWLEDGED} all the same, since its memory is needed until then, and messages behind it wait for it. This
     * saves the adapter a completion for each short message, and this side handling it. What is lost afterwards ends
     * the connection and fails nothing.
     */
    POSTED
}
