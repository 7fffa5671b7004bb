/**
 * HELLO, its answer, and the proof of a pre-shared key. Begin with {@link
 * org.verbena.transport.protocol.handshake.Handshake}. Uses {@code sending}, {@code receiving} and {@code rendezvous}.
 */
@org.jspecify.annotations.NullMarked
package org.verbena.transport.protocol.handshake;
