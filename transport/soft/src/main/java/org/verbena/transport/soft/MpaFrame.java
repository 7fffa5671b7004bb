package org.verbena.transport.soft;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/**
 * A request or reply frame of MPA's startup phase.
 *
 * <pre>{@code
 * 0                16        18            20
 * | key (16 bytes)  | flags   | PD length   | private data ...
 *                   | M C R S 0 0 0 0 | revision (8) |
 * }</pre>
 *
 * <p>With the S flag the private data begins with the 4 bytes of {@link EnhancedSetup}, which this record keeps apart.
 *
 * <p>Source: RFC 5044, 7.1.1; RFC 6581, 6
 *
 * @param reply whether it is the reply
 * @param markers whether the sender wants markers
 * @param crc whether the sender wants CRCs
 * @param rejected whether the reply rejects the request
 * @param revision 1, or 2 for enhanced setup
 * @param setup what the S flag announces; null without it
 * @param privateData for the other side's user, without the setup block
 */
@SuppressWarnings("ArrayRecordComponent")
record MpaFrame(
        boolean reply,
        boolean markers,
        boolean crc,
        boolean rejected,
        int revision,
        @org.jspecify.annotations.Nullable EnhancedSetup setup,
        byte[] privateData) {

    /** Key, flags and length. */
    static final int HEADER_BYTES = 20;

    /** The most private data, setup block included, that RFC 5044 allows. */
    static final int MAX_PRIVATE_DATA_BYTES = 512;

    /** The key, which identifies the protocol. */
    static final int KEY_BYTES = 16;

    private static final byte[] REQUEST_KEY = "MPA ID Req Frame".getBytes(StandardCharsets.US_ASCII);
    private static final byte[] REPLY_KEY = "MPA ID Rep Frame".getBytes(StandardCharsets.US_ASCII);
    private static final int MARKERS = 0x8000;
    private static final int CRC = 0x4000;
    private static final int REJECTED = 0x2000;
    private static final int ENHANCED = 0x1000;
    private static final int REVISION_MASK = 0xff;

    /**
     * Reads the length of the private data, once the header is there.
     *
     * @param header 20 bytes or more
     * @return bytes to follow
     * @throws MpaException a length over 512
     */
    static int privateDataBytes(byte[] header) throws MpaException {
        int bytes = ((header[18] & 0xff) << 8) | (header[19] & 0xff);
        if (bytes > MAX_PRIVATE_DATA_BYTES) {
            throw new MpaException("announces " + bytes + " bytes of private data, over the limit of "
                    + MAX_PRIVATE_DATA_BYTES + " (RFC 5044, 7.1.1)");
        }
        return bytes;
    }

    /**
     * Whether what has come can be the beginning of a frame.
     *
     * @param header what came so far
     * @param length how much of it
     * @param reply whether a reply is expected
     * @return false for another protocol
     */
    static boolean mayBeKey(byte[] header, int length, boolean reply) {
        int known = Math.min(length, KEY_BYTES);
        return Arrays.equals(header, 0, known, reply ? REPLY_KEY : REQUEST_KEY, 0, known);
    }

    /**
     * Checks the key, before the rest has come.
     *
     * @param header what came so far
     * @param length how much of it
     * @param reply whether a reply is expected
     * @throws MpaException another protocol
     */
    static void checkKey(byte[] header, int length, boolean reply) throws MpaException {
        if (!mayBeKey(header, length, reply)) {
            throw new MpaException("is not an MPA " + (reply ? "reply" : "request")
                    + " frame: the peer speaks another protocol, not iWARP");
        }
    }

    /**
     * Decodes a whole frame.
     *
     * @param bytes the frame
     * @param length header and private data
     * @param reply whether a reply is expected
     * @return the frame
     * @throws MpaException it is malformed
     */
    static MpaFrame decode(byte[] bytes, int length, boolean reply) throws MpaException {
        checkKey(bytes, length, reply);
        if (length < HEADER_BYTES || length != HEADER_BYTES + privateDataBytes(bytes)) {
            throw new MpaException("is " + length + " bytes long, which contradicts its length field");
        }
        int flags = ((bytes[16] & 0xff) << 8) | (bytes[17] & 0xff);
        int revision = flags & REVISION_MASK;
        if (revision > 2) {
            throw new MpaException("has MPA revision " + revision + "; 1 and 2 are supported");
        }
        EnhancedSetup setup = null;
        int from = HEADER_BYTES;
        if ((flags & ENHANCED) != 0 && revision == 2) {
            boolean no = reply && (flags & REJECTED) != 0;
            if (length - from >= EnhancedSetup.BYTES) {
                setup = EnhancedSetup.decode(ByteBuffer.wrap(bytes).getInt(from));
                from += EnhancedSetup.BYTES;
            } else if (!no) {
                throw new MpaException("has the S flag without the 4 bytes of setup data (RFC 6581, 9)");
            }
        }
        return new MpaFrame(
                reply,
                (flags & MARKERS) != 0,
                (flags & CRC) != 0,
                reply && (flags & REJECTED) != 0,
                revision,
                setup,
                Arrays.copyOfRange(bytes, from, length));
    }

    /**
     * The reply that rejects a request.
     *
     * @param request what it replies to
     * @param privateData for the peer's user
     * @return the frame
     */
    static MpaFrame rejectionOf(MpaFrame request, byte[] privateData) {
        EnhancedSetup answer = request.setup() == null ? null : new EnhancedSetup(0, 0, false, false, false, false);
        return new MpaFrame(true, false, request.crc(), true, request.revision(), answer, privateData);
    }

    /**
     * Encodes it.
     *
     * @return the frame's bytes
     */
    byte[] encode() {
        int setupBytes = setup == null ? 0 : EnhancedSetup.BYTES;
        int dataBytes = setupBytes + privateData.length;
        ByteBuffer out = ByteBuffer.allocate(HEADER_BYTES + dataBytes);
        out.put(reply ? REPLY_KEY : REQUEST_KEY);
        int flags = revision
                | (markers ? MARKERS : 0)
                | (crc ? CRC : 0)
                | (rejected ? REJECTED : 0)
                | (setup == null ? 0 : ENHANCED);
        out.putShort((short) flags).putShort((short) dataBytes);
        if (setup != null) {
            out.putInt(setup.encode());
        }
        return out.put(privateData).array();
    }
}
