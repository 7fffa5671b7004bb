package org.verbena.transport.protocol.wire;

import io.netty.buffer.ByteBuf;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.Framing;

/**
 * The wire format. All numbers are in network byte order. {@code docs/protocol.md} describes it.
 *
 * <pre>{@code
 * Private data of connect request and reply: magic "VRBN" u32 | least version u8 | greatest version u8 | framing u8
 *                                              | flags u8
 *                                            reply with flag 1: nonce of 32 bytes
 * Private data of a rejection:               magic "VRBN" u32 | 0xff u8 | text length u8 | UTF-8 text
 *
 * Every SEND begins with a header:
 *   0  u8  type
 *   1  u8  flags: 1, the sender had frames to send and no grant for them since its last frame
 *              2, the sender wants back what the receiver of this does not need of its grants
 *              4, the sender wants more grants, and will wait for them
 *   2  u16 control acknowledged: control frames of the receiver that the sender has processed, in all, modulo 2^16
 *   4  u32 grant:                message frames that the receiver of this may have sent, in all, modulo 2^32
 *   8  u32 rendezvous done:      messages of the receiver that the sender has read by rendezvous, in all, modulo 2^32
 *  12  u32 length:               message frames: bytes of the message from this frame on; PACKED, RETURN: how many;
 *                              LONGER: bytes; else 0
 *
 * type                class     after the header
 *  1 HELLO            handshake magic u32 | least version u8 | greatest u8 | framing u8 | 0 u8 | features u32
 *  2 HELLO_ACK        handshake   | receive buffer u32 | window u32 | greatest window u32 | greatest message u32
 *                                 | rendezvous at once u32 | greatest receive buffer u32, 0 if it is the first
 *                               (HELLO_ACK: least = greatest = the version chosen)
 *                               with a pre-shared key behind it,
 *                                   HELLO: id length u8 | id | nonce of 32 bytes | proof of 32 bytes
 *                                   HELLO_ACK: proof of 32 bytes
 *  3 MESSAGE          message   the message, or its first fragment if shorter than length
 *  4 CONTINUATION     message   the next fragment
 *  5 RENDEZVOUS       message   1 to 16 pieces of the message: address u64 | key u32 | length u32
 *  6 END              message   nothing: the sender's half of a stream is closed
 *  7 PACKED           message   the lengths of 2 to 128 messages, u32 each | the messages
 *  8 STATE            control   nothing: the header is the news
 *  9 ACK              answer    nothing
 * 10 PING             control   nonce u64
 * 11 PONG             control   nonce u64
 * 12 CLOSE            control   nothing
 * 13 RETURN           control   nothing: the sender gives grants back, which count as used
 * 14 LONGER           control   from which frame of the receiver on its frames may have length bytes u32
 * }</pre>
 */
public final class Wire {
    static final int MAGIC = 0x5652424e;
    public static final int VERSION = 1;

    public static final int HEADER_BYTES = 16;
    public static final int HELLO_BYTES = HEADER_BYTES + 36;
    public static final int NONCE_BYTES = 8;

    /** The payload of LONGER: the number of a frame. */
    public static final int FRAME_NUMBER_BYTES = 4;

    /** The smallest receive: a handshake must fit. */
    public static final int LEAST_RECEIVE_BYTES = 64;

    public static final int PIECE_BYTES = 16;
    /** More pieces than this are not worth a read each: such a message goes in fragments. */
    public static final int MAX_PIECES = 16;

    /** The most messages in one frame, so that a receive is not held by very many. */
    public static final int MAX_PACKED = 128;

    public static final int PACKED_LENGTH_BYTES = 4;

    public static final int HELLO = 1;
    public static final int HELLO_ACK = 2;
    public static final int MESSAGE = 3;
    public static final int CONTINUATION = 4;
    public static final int RENDEZVOUS = 5;
    public static final int END = 6;
    public static final int PACKED = 7;
    public static final int STATE = 8;
    public static final int ACK = 9;
    public static final int PING = 10;
    public static final int PONG = 11;
    public static final int CLOSE = 12;
    public static final int RETURN = 13;
    public static final int LONGER = 14;

    /** This side can read the peer's memory, and so takes messages by rendezvous. */
    public static final int FEATURE_READS = 1;
    /** This side's device takes writes with immediate data. */
    public static final int FEATURE_IMMEDIATE = 1 << 1;
    /** This side's device serves atomics. */
    public static final int FEATURE_ATOMICS = 1 << 2;

    /** This side asks when it wants more grants, so grants need not be sent to it unasked. */
    public static final int FEATURE_ASKS = 1 << 3;

    /** This side takes frames with several messages. */
    public static final int FEATURE_PACKS = 1 << 4;

    /** This side's frames become longer when the peer's receives do. */
    public static final int FEATURE_LONGER = 1 << 5;

    /** From this bit on, features are those of the program above this protocol, which has eight of them. */
    public static final int PROGRAM_FEATURES_SHIFT = 24;

    /** A flag of the header: the sender had to wait for grants. */
    public static final int WAITED = 1;
    /** A flag of the header: the sender wants grants back. */
    public static final int RECLAIM = 2;
    /** A flag of the header: the sender wants more grants. */
    public static final int ASKS = 4;

    public static final int PREAMBLE_BYTES = 8;
    /** Where the flags of a preamble are. */
    public static final int PREAMBLE_FLAGS = 7;
    /**
     * A flag of the preamble: its sender proves a pre-shared key, and wants the other to. Behind an acceptance's
     * preamble is a nonce then.
     */
    public static final int AUTHENTICATES = 1;

    private static final int REJECTION = 0xff;
    private static final int REJECTION_TEXT_BYTES = 48;

    private Wire() {}

    /** The content of a HELLO or HELLO_ACK. */
    public record Hello(
            int leastVersion,
            int greatestVersion,
            int framing,
            int features,
            int receiveBufferBytes,
            int window,
            int greatestWindow,
            int maxMessageBytes,
            int maxRendezvous,
            int greatestReceiveBytes) {

        public void write(ByteBuf into, int index) {
            into.setInt(index, MAGIC);
            into.setByte(index + 4, leastVersion);
            into.setByte(index + 5, greatestVersion);
            into.setByte(index + 6, framing);
            into.setByte(index + 7, 0);
            into.setInt(index + 8, features);
            into.setInt(index + 12, receiveBufferBytes);
            into.setInt(index + 16, window);
            into.setInt(index + 20, greatestWindow);
            into.setInt(index + 24, maxMessageBytes);
            into.setInt(index + 28, maxRendezvous);
            into.setInt(index + 32, greatestReceiveBytes);
        }

        /** Reads one; null if what is there is not a HELLO. */
        public static @Nullable Hello read(ByteBuf from, int index) {
            if (from.getInt(index) != MAGIC) {
                return null;
            }
            return new Builder()
                    .versions(from.getUnsignedByte(index + 4), from.getUnsignedByte(index + 5))
                    .framing(from.getUnsignedByte(index + 6))
                    .features(from.getInt(index + 8))
                    .receiveBufferBytes(from.getInt(index + 12))
                    .window(from.getInt(index + 16), from.getInt(index + 20))
                    .maxMessageBytes(from.getInt(index + 24))
                    .maxRendezvous(from.getInt(index + 28))
                    .greatestReceiveBytes(from.getInt(index + 32))
                    .build();
        }

        /** What is wrong with it, or null. */
        public @Nullable String violation() {
            if (leastVersion > greatestVersion) {
                return "versions " + leastVersion + " to " + greatestVersion;
            }
            if (receiveBufferBytes < LEAST_RECEIVE_BYTES) {
                return "receive buffers of " + Integer.toUnsignedString(receiveBufferBytes) + " bytes";
            }
            if (window < 1 || greatestWindow < window || greatestWindow > 1 << 16) {
                return "a window of " + Integer.toUnsignedString(window) + " that grows to "
                        + Integer.toUnsignedString(greatestWindow);
            }
            if (maxMessageBytes < 1) {
                return "messages of " + Integer.toUnsignedString(maxMessageBytes) + " bytes at the most";
            }
            if (maxRendezvous < 0 || maxRendezvous > 1 << 16) {
                return Integer.toUnsignedString(maxRendezvous) + " rendezvous at once";
            }
            if (greatestReceiveBytes != 0 && greatestReceiveBytes < receiveBufferBytes) {
                return "receive buffers that grow from " + receiveBufferBytes + " to "
                        + Integer.toUnsignedString(greatestReceiveBytes) + " bytes";
            }
            return null;
        }

        /** The longest frame that its sender will ever accept. */
        public int longestFrameBytes() {
            return Math.max(receiveBufferBytes, greatestReceiveBytes);
        }

        public Builder toBuilder() {
            return new Builder()
                    .versions(leastVersion, greatestVersion)
                    .framing(framing)
                    .features(features)
                    .receiveBufferBytes(receiveBufferBytes)
                    .window(window, greatestWindow)
                    .maxMessageBytes(maxMessageBytes)
                    .maxRendezvous(maxRendezvous)
                    .greatestReceiveBytes(greatestReceiveBytes);
        }

        /** Begins with only this version, and zeros. */
        public static final class Builder {
            private int leastVersion = VERSION;
            private int greatestVersion = VERSION;
            private int framing;
            private int features;
            private int receiveBufferBytes;
            private int window;
            private int greatestWindow;
            private int maxMessageBytes;
            private int maxRendezvous;
            private int greatestReceiveBytes;

            public Builder versions(int least, int greatest) {
                leastVersion = least;
                greatestVersion = greatest;
                return this;
            }

            public Builder framing(int wireValue) {
                framing = wireValue;
                return this;
            }

            public Builder features(int flags) {
                features = flags;
                return this;
            }

            public Builder receiveBufferBytes(int bytes) {
                receiveBufferBytes = bytes;
                return this;
            }

            public Builder window(int first, int greatest) {
                window = first;
                greatestWindow = greatest;
                return this;
            }

            public Builder maxMessageBytes(int bytes) {
                maxMessageBytes = bytes;
                return this;
            }

            public Builder maxRendezvous(int messages) {
                maxRendezvous = messages;
                return this;
            }

            public Builder greatestReceiveBytes(int bytes) {
                greatestReceiveBytes = bytes;
                return this;
            }

            public Hello build() {
                return new Hello(
                        leastVersion,
                        greatestVersion,
                        framing,
                        features,
                        receiveBufferBytes,
                        window,
                        greatestWindow,
                        maxMessageBytes,
                        maxRendezvous,
                        greatestReceiveBytes);
            }
        }
    }

    public static boolean isMessageClass(int type) {
        return type >= MESSAGE && type <= PACKED;
    }

    public static String name(int type) {
        return switch (type) {
            case HELLO -> "HELLO";
            case HELLO_ACK -> "HELLO_ACK";
            case MESSAGE -> "MESSAGE";
            case CONTINUATION -> "CONTINUATION";
            case RENDEZVOUS -> "RENDEZVOUS";
            case END -> "END";
            case PACKED -> "PACKED";
            case STATE -> "STATE";
            case ACK -> "ACK";
            case PING -> "PING";
            case PONG -> "PONG";
            case CLOSE -> "CLOSE";
            case RETURN -> "RETURN";
            case LONGER -> "LONGER";
            default -> "type " + type;
        };
    }

    public static byte[] preamble(Framing framing) {
        if (framing == Framing.RAW) {
            return new byte[0];
        }
        byte[] data = new byte[PREAMBLE_BYTES];
        putMagic(data);
        data[4] = VERSION;
        data[5] = VERSION;
        data[6] = (byte) framing.wireValue();
        return data;
    }

    /** Why a peer with this private data is not compatible, or null if it is. */
    public static @Nullable String violation(Framing framing, byte[] data) {
        boolean ours = data.length >= PREAMBLE_BYTES && hasMagic(data) && data[4] != (byte) REJECTION;
        if (framing == Framing.RAW) {
            return ours ? "this end uses framing RAW, the other " + framingName(data[6]) : null;
        }
        if (!ours) {
            return "not a peer with framing " + framing;
        }
        if (data[6] != framing.wireValue()) {
            return "framing " + framingName(data[6]) + " is not " + framing;
        }
        if (data[4] > VERSION || data[5] < VERSION) {
            return "protocol " + data[4] + "-" + data[5] + " is not " + VERSION;
        }
        return null;
    }

    public static String framingName(int wireValue) {
        for (Framing framing : Framing.values()) {
            if (framing.wireValue() == wireValue) {
                return framing.name();
            }
        }
        return String.valueOf(wireValue);
    }

    public static byte[] rejection(String reason) {
        byte[] text = reason.getBytes(StandardCharsets.UTF_8);
        int length = Math.min(text.length, REJECTION_TEXT_BYTES);
        byte[] data = new byte[6 + length];
        putMagic(data);
        data[4] = (byte) REJECTION;
        data[5] = (byte) length;
        System.arraycopy(text, 0, data, 6, length);
        return data;
    }

    public static @Nullable String rejectionReason(byte[] data) {
        if (data.length < 6 || !hasMagic(data) || data[4] != (byte) REJECTION || data[5] < 0) {
            return null;
        }
        int end = Math.min(6 + data[5], data.length);
        return new String(Arrays.copyOfRange(data, 6, end), StandardCharsets.UTF_8);
    }

    private static void putMagic(byte[] data) {
        for (int i = 0; i < 4; i++) {
            data[i] = (byte) (MAGIC >>> (24 - 8 * i));
        }
    }

    private static boolean hasMagic(byte[] data) {
        for (int i = 0; i < 4; i++) {
            if (data[i] != (byte) (MAGIC >>> (24 - 8 * i))) {
                return false;
            }
        }
        return true;
    }
}
