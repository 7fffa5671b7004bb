/**
 * Receiving: the receives that are posted and granted to the peer, and the order in which messages are delivered. Begin
 * with {@link org.verbena.transport.protocol.receiving.ReceiveWindow} and {@link
 * org.verbena.transport.protocol.receiving.Inbox}. Uses {@code wire}, {@code state} and {@code memory}.
 */
@org.jspecify.annotations.NullMarked
package org.verbena.transport.protocol.receiving;
