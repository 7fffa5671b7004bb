/**
 * Frames: turns messages, bytes of streams and raw SENDs into frames and back, and has the control frames. Begin with
 * {@link org.verbena.transport.protocol.framing.Framer} and {@link
 * org.verbena.transport.protocol.framing.FrameReceiver}. Uses {@code handshake} and what is below it.
 */
@org.jspecify.annotations.NullMarked
package org.verbena.transport.protocol.framing;
