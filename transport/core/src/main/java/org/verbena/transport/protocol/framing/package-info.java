/**
 * Frames: messages, bytes of streams or raw SENDs become frames and frames become these again; control frames. Begin
 * with {@link org.verbena.transport.protocol.framing.Framer} and {@link
 * org.verbena.transport.protocol.framing.FrameReceiver}. Uses {@code handshake} and what is below it.
 */
@org.jspecify.annotations.NullMarked
package org.verbena.transport.protocol.framing;
