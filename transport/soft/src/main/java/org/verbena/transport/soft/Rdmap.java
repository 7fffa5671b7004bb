package org.verbena.transport.soft;

/**
 * The numbers of the FPDU, DDP and RDMAP headers. Every FPDU begins so, all numbers big-endian:
 *
 * <pre>{@code
 *          0       2         4                8                        16               20
 * tagged   | length | control | STag           | tagged offset (64 bit) |
 * untagged | length | control | invalidate STag| queue number  | MSN    | message offset |
 *
 * control  | T | L | reserved (4) | DDP version (2) | RDMAP version (2) | reserved (2) | opcode (4) |
 * }</pre>
 *
 * <p>The length counts what follows it up to the pad. The pad makes length field, headers and payload a multiple of 4;
 * the CRC32C over all that follows it, little-endian, and is there (as zero) without CRC too.
 *
 * <p>Source: RFC 5044, 4; RFC 5041, 4; RFC 5040, 4; RFC 7306, 4
 */
final class Rdmap {

    /** Control: the DDP segment names a tagged buffer. */
    static final int TAGGED = 0x8000;

    /** Control: the last DDP segment of its message. */
    static final int LAST = 0x4000;

    /** Control: the field of the DDP version. */
    static final int DDP_VERSION_MASK = 0x0300;

    /** Control: DDP version 1. */
    static final int DDP_VERSION = 0x0100;

    /** Control: the field of the RDMAP version. */
    static final int RDMAP_VERSION_MASK = 0x00c0;

    /** Control: RDMAP version 1. */
    static final int RDMAP_VERSION = 0x0040;

    /** Control: the field of the opcode. */
    static final int OPCODE_MASK = 0x000f;

    /** Both versions, what every segment has. */
    static final int VERSIONS = DDP_VERSION | RDMAP_VERSION;

    static final int WRITE = 0;
    static final int READ_REQUEST = 1;
    static final int READ_RESPONSE = 2;
    static final int SEND = 3;
    static final int SEND_INVALIDATE = 4;
    static final int SEND_SOLICITED = 5;
    static final int SEND_SOLICITED_INVALIDATE = 6;
    static final int TERMINATE = 7;
    static final int IMMEDIATE = 8;
    static final int IMMEDIATE_SOLICITED = 9;
    static final int ATOMIC_REQUEST = 10;
    static final int ATOMIC_RESPONSE = 11;

    /** The opcodes in use. */
    static final int OPCODES = 12;

    /** Queue of sends and immediate data. */
    static final int QUEUE_SEND = 0;

    /** Queue of read and atomic requests. */
    static final int QUEUE_READ_REQUEST = 1;

    /** Queue of the one Terminate message. */
    static final int QUEUE_TERMINATE = 2;

    /** Queue of atomic responses. */
    static final int QUEUE_ATOMIC_RESPONSE = 3;

    /** Length field and tagged DDP header. */
    static final int TAGGED_HEADER_BYTES = 16;

    /** Length field and untagged DDP header. */
    static final int UNTAGGED_HEADER_BYTES = 20;

    /** The RDMAP header of a read request. */
    static final int READ_REQUEST_BYTES = 28;

    /** The RDMAP header of an atomic request. */
    static final int ATOMIC_REQUEST_BYTES = 52;

    /** The RDMAP header of an atomic response. */
    static final int ATOMIC_RESPONSE_BYTES = 12;

    /** Immediate data. */
    static final int IMMEDIATE_BYTES = 8;

    /** The most that a Terminate message carries: control, segment length, untagged header, read request header. */
    static final int MAX_TERMINATE_BYTES = 4 + 2 + 18 + READ_REQUEST_BYTES;

    /** The longest header: an atomic request. */
    static final int MAX_HEADER_BYTES = UNTAGGED_HEADER_BYTES + ATOMIC_REQUEST_BYTES;

    /** The CRC field. */
    static final int CRC_BYTES = 4;

    /** The longest pad and the CRC. */
    static final int MAX_TRAILER_BYTES = 3 + CRC_BYTES;

    /** The longest segment that needs no pad and whose length fits 16 bits. */
    static final int MAX_ULPDU_BYTES = 65_534;

    /** Length field, longest segment, pad and CRC that a peer may send. */
    static final int MAX_FPDU_BYTES = 65_544;

    /** Atomic operation code: fetch and add. */
    static final int ATOMIC_FETCH_ADD = 0;

    /** Atomic operation code: compare and swap. */
    static final int ATOMIC_COMPARE_SWAP = 2;

    private Rdmap() {}

    /**
     * Pad and CRC.
     *
     * @param ulpduBytes value of the length field
     * @return 4 to 7
     */
    static int trailerBytes(int ulpduBytes) {
        return (-(2 + ulpduBytes) & 3) + CRC_BYTES;
    }

    /**
     * The name of a message.
     *
     * @param opcode 0 to 15
     * @return for error messages
     */
    static String name(int opcode) {
        return switch (opcode) {
            case WRITE -> "WRITE";
            case READ_REQUEST -> "READ request";
            case READ_RESPONSE -> "READ response";
            case SEND -> "SEND";
            case SEND_INVALIDATE -> "SEND with invalidate";
            case SEND_SOLICITED -> "SEND with solicited event";
            case SEND_SOLICITED_INVALIDATE -> "SEND with solicited event and invalidate";
            case TERMINATE -> "TERMINATE";
            case IMMEDIATE -> "immediate data";
            case IMMEDIATE_SOLICITED -> "immediate data with solicited event";
            case ATOMIC_REQUEST -> "atomic request";
            case ATOMIC_RESPONSE -> "atomic response";
            default -> "opcode " + opcode;
        };
    }
}
