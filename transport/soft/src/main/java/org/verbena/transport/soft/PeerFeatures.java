package org.verbena.transport.soft;

import java.nio.ByteBuffer;
import java.util.Arrays;

/**
 * How two ends of this provider recognise each other, to use what plain iWARP peers do not have: atomics and immediate
 * data (RFC 7306) and segments up to the 16-bit limit. The users of other peers see nothing of it:
 *
 * <pre>{@code
 * initiator                                        responder
 *   request: peer-to-peer, ready by any of B C D  -->   perhaps one of ours
 *   <-- reply: only ready by write; private data ends with the token, which the initiator takes off
 *   ready-to-receive WRITE of no bytes; STag and offset are the token  -->   certainly one of ours
 * }</pre>
 *
 * <p>A receiver must not check STag and offset of a write without payload (RFC 5041, 7.1), and an initiator that is not
 * ours but offers all three ready messages sees eight bytes behind the reply's private data.
 */
final class PeerFeatures {

    /** Atomics as RFC 7306 has them. */
    static final int ATOMICS = 1;

    /** Immediate data; the upper half of the 64 bits says whether the next send belongs to it. */
    static final int IMMEDIATE_DATA = 1 << 1;

    /** Segments of any size that the length field can express. */
    static final int LARGE_SEGMENTS = 1 << 2;

    /** All that this side has. */
    static final int OURS = ATOMICS | IMMEDIATE_DATA | LARGE_SEGMENTS;

    /** The first half of the token: the letters {@code Vbna}. */
    static final int MAGIC = 0x56626e61;

    /** The token's size. */
    static final int TOKEN_BYTES = 8;

    /** Immediate data by itself, or behind a write. */
    static final int IMMEDIATE_ALONE = 0;

    /** Immediate data that belongs to the send that follows. */
    static final int IMMEDIATE_OF_NEXT_SEND = 1;

    private static final int VERSION = 1 << 16;

    private PeerFeatures() {}

    /**
     * The second half of the token.
     *
     * @return version and features of this side
     */
    static int word() {
        return VERSION | OURS;
    }

    /**
     * Reads a token.
     *
     * @param magic its first half
     * @param word its second half
     * @return the features both have; 0 for a stranger
     */
    static int shared(int magic, long word) {
        return magic == MAGIC && (word & ~0xffffL) == VERSION ? (int) word & OURS : 0;
    }

    /**
     * Reads the token at the end of a reply's private data.
     *
     * @param privateData all of it
     * @return the features both have; 0 for a stranger
     */
    static int shared(byte[] privateData) {
        if (privateData.length < TOKEN_BYTES) {
            return 0;
        }
        ByteBuffer end = ByteBuffer.wrap(privateData, privateData.length - TOKEN_BYTES, TOKEN_BYTES);
        return shared(end.getInt(), end.getInt() & 0xffffffffL);
    }

    /**
     * Puts the token behind private data.
     *
     * @param privateData the user's
     * @return a longer array
     */
    static byte[] withToken(byte[] privateData) {
        return ByteBuffer.allocate(privateData.length + TOKEN_BYTES)
                .put(privateData)
                .putInt(MAGIC)
                .putInt(word())
                .array();
    }

    /**
     * Takes the token off.
     *
     * @param privateData with a token
     * @return the user's
     */
    static byte[] withoutToken(byte[] privateData) {
        return Arrays.copyOf(privateData, privateData.length - TOKEN_BYTES);
    }
}
