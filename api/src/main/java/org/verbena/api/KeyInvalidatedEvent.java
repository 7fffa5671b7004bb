package org.verbena.api;

/**
 * The peer sent a message that has invalidated a key of this end ({@link RawMessage#withInvalidate}), with RAW
 * framing; the message follows this event. The memory stays registered here until it is closed. Fired through the
 * pipeline with {@code userEventTriggered}, in order with messages.
 *
 * @param remoteKey the key of the token that is no longer valid
 */
public record KeyInvalidatedEvent(int remoteKey) {}
