/**
 * Messages that the receiver reads out of the sender's memory. Uses {@code sending} and {@code receiving}.
 */
@org.jspecify.annotations.NullMarked
package org.verbena.transport.protocol.rendezvous;
