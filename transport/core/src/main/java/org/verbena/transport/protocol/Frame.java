package org.verbena.transport.protocol;

import io.netty.buffer.ByteBuf;
import org.verbena.transport.protocol.wire.Wire;

/**
 * One SEND, in readable form. See {@code docs/protocol.md} for what the numbers mean.
 *
 * @param type {@code MESSAGE}, {@code STATE} ... as in the protocol; {@code RAW} with framing RAW, where only the
 *     length is known
 * @param frameBytes its length, header included
 * @param messageBytes message frames: bytes of the message from this frame on, or of all messages in a PACKED frame;
 *     else 0
 * @param grant message frames that the receiver may send in total
 * @param controlAcknowledged control frames of the receiver that the sender has processed in total, modulo 2^16
 * @param rendezvousDone messages of the receiver that the sender has read in total
 * @param detail the rest of its content in words; may be empty
 */
public record Frame(
        String type,
        int frameBytes,
        int messageBytes,
        long grant,
        int controlAcknowledged,
        long rendezvousDone,
        String detail) {

    /** Called for each frame of a connection, on its loop. An exception ends the connection. */
    public interface Listener {
        /**
         * A frame was staged; the device gets it with the next flush.
         *
         * @param frame the outbound frame
         */
        void onFrameSent(Frame frame);

        /**
         * A frame arrived. It has not been checked yet.
         *
         * @param frame the inbound frame
         */
        void onFrameReceived(Frame frame);
    }

    /**
     * A frame of RAW framing.
     *
     * @param bytes its length
     * @return the frame
     */
    public static Frame raw(int bytes) {
        return new Frame("RAW", bytes, bytes, 0, 0, 0, "");
    }

    /**
     * Reads the header and what follows it in the same memory; of a payload elsewhere only the length.
     *
     * @param memory where the frame is
     * @param index of its first byte
     * @param frameBytes its length, header included
     * @return the frame; of type INVALID if it is shorter than a header
     */
    public static Frame read(ByteBuf memory, int index, int frameBytes) {
        if (frameBytes < Wire.HEADER_BYTES) {
            return new Frame("INVALID", frameBytes, 0, 0, 0, 0, "shorter than a header");
        }
        int type = memory.getUnsignedByte(index);
        String detail = type == Wire.PACKED
                ? packedCount(memory, index) + " messages"
                : detail(type, memory, index + Wire.HEADER_BYTES, frameBytes - Wire.HEADER_BYTES);
        if ((memory.getByte(index + 1) & Wire.WAITED) != 0) {
            detail += detail.isEmpty() ? "waited for grants" : ", waited for grants";
        }
        if ((memory.getByte(index + 1) & Wire.RECLAIM) != 0) {
            detail += detail.isEmpty() ? "wants grants back" : ", wants grants back";
        }
        if ((memory.getByte(index + 1) & Wire.ASKS) != 0) {
            detail += detail.isEmpty() ? "asks for grants" : ", asks for grants";
        }
        return new Frame(
                Wire.name(type),
                frameBytes,
                type == Wire.PACKED
                        ? frameBytes - Wire.HEADER_BYTES - packedCount(memory, index) * Wire.PACKED_LENGTH_BYTES
                        : memory.getInt(index + 12),
                memory.getUnsignedInt(index + 4),
                memory.getUnsignedShort(index + 2),
                memory.getUnsignedInt(index + 8),
                detail);
    }

    private static int packedCount(ByteBuf memory, int index) {
        return memory.getInt(index + 12);
    }

    private static String detail(int type, ByteBuf memory, int index, int payloadBytes) {
        return switch (type) {
            case Wire.HELLO, Wire.HELLO_ACK -> {
                Wire.Hello hello =
                        payloadBytes < Wire.HELLO_BYTES - Wire.HEADER_BYTES ? null : Wire.Hello.read(memory, index);
                yield hello == null
                        ? "without magic"
                        : "version " + hello.leastVersion() + "-" + hello.greatestVersion() + ", framing "
                                + hello.framing() + ", features 0x" + Integer.toHexString(hello.features())
                                + ", receives of " + hello.receiveBufferBytes()
                                + (hello.greatestReceiveBytes() == 0 ? "" : " to " + hello.greatestReceiveBytes())
                                + " bytes, window " + hello.window()
                                + " to " + hello.greatestWindow() + ", messages up to " + hello.maxMessageBytes()
                                + " bytes, " + hello.maxRendezvous() + " rendezvous at once";
            }
            case Wire.PING, Wire.PONG ->
                payloadBytes < Wire.NONCE_BYTES ? "" : "nonce 0x" + Long.toHexString(memory.getLong(index));
            case Wire.LONGER ->
                payloadBytes < Wire.FRAME_NUMBER_BYTES ? "" : "from frame " + memory.getUnsignedInt(index) + " on";
            case Wire.RENDEZVOUS -> payloadBytes / Wire.PIECE_BYTES + " pieces";
            default -> "";
        };
    }

    /** As a line of a log. */
    @Override
    public String toString() {
        StringBuilder text = new StringBuilder(type);
        switch (type) {
            case "RAW" -> text.append(' ').append(frameBytes).append(" bytes");
            case "MESSAGE", "CONTINUATION" ->
                text.append(' ')
                        .append(frameBytes - Wire.HEADER_BYTES)
                        .append(" of ")
                        .append(messageBytes)
                        .append(" bytes");
            case "RENDEZVOUS", "PACKED", "LONGER" ->
                text.append(' ').append(messageBytes).append(" bytes");
            default -> {
                // The frame's name is enough.
            }
        }
        if (!detail.isEmpty()) {
            text.append(", ").append(detail);
        }
        if (!type.equals("RAW")) {
            text.append(" [grant ")
                    .append(grant)
                    .append(", control ")
                    .append(controlAcknowledged)
                    .append(", rendezvous ")
                    .append(rendezvousDone)
                    .append(']');
        }
        return text.toString();
    }
}
