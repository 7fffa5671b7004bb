/**
 * Sending: the user's operations, the work requests that carry them and the memory that they send from. Begin with
 * {@link org.verbena.transport.protocol.sending.Outbox} and {@link org.verbena.transport.protocol.sending.SendLedger}.
 * Uses {@code wire}, {@code state} and {@code memory}.
 */
@org.jspecify.annotations.NullMarked
package org.verbena.transport.protocol.sending;
