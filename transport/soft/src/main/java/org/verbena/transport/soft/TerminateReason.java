package org.verbena.transport.soft;

import org.verbena.transport.WorkStatus;

/**
 * Why a stream is terminated: layer, error type and error code of the Terminate message, and what it is to the work
 * request that ran into it.
 *
 * <p>Source: RFC 5040, 4.8; RFC 5041, 7.2; RFC 5044, 8; RFC 6581, 8
 */
enum TerminateReason {
    /** This side cannot go on. */
    RDMAP_LOCAL_CATASTROPHIC(0, 0, 0x00, WorkStatus.REMOTE_OPERATION_ERROR, "local catastrophic error"),
    /** A read, an atomic or an invalidation names no region. */
    RDMAP_INVALID_STAG(0, 1, 0x00, WorkStatus.REMOTE_ACCESS_ERROR, "invalid STag"),
    /** A read or atomic leaves its region. */
    RDMAP_BOUNDS(0, 1, 0x01, WorkStatus.REMOTE_ACCESS_ERROR, "base or bounds violation"),
    /** A read or atomic of a region without that right. */
    RDMAP_ACCESS(0, 1, 0x02, WorkStatus.REMOTE_ACCESS_ERROR, "access rights violation"),
    /** A region of another domain. */
    RDMAP_STAG_NOT_ASSOCIATED(0, 1, 0x03, WorkStatus.REMOTE_ACCESS_ERROR, "STag not associated with the stream"),
    /** Offset plus length passes 2^64. */
    RDMAP_TO_WRAP(0, 1, 0x04, WorkStatus.REMOTE_ACCESS_ERROR, "tagged offset wraps"),
    /** The STag to invalidate is none that can be. */
    RDMAP_CANNOT_INVALIDATE(0, 1, 0x09, WorkStatus.REMOTE_ACCESS_ERROR, "STag cannot be invalidated"),
    /** A protection error without a better name. */
    RDMAP_PROTECTION_UNSPECIFIED(0, 1, 0xff, WorkStatus.REMOTE_ACCESS_ERROR, "unspecified protection error"),
    /** An RDMAP version other than 1. */
    RDMAP_INVALID_VERSION(0, 2, 0x05, WorkStatus.REMOTE_INVALID_REQUEST_ERROR, "invalid RDMAP version"),
    /** An opcode that is unknown, or was not asked for. */
    RDMAP_UNEXPECTED_OPCODE(0, 2, 0x06, WorkStatus.REMOTE_INVALID_REQUEST_ERROR, "unexpected opcode"),
    /** An error only of this stream; RFC 7306 wants it for a misaligned atomic. */
    RDMAP_STREAM_CATASTROPHIC(0, 2, 0x07, WorkStatus.REMOTE_OPERATION_ERROR, "catastrophic error of the stream"),
    /** The peer's adapter as a whole. */
    RDMAP_GLOBAL_CATASTROPHIC(0, 2, 0x08, WorkStatus.REMOTE_OPERATION_ERROR, "catastrophic error, global"),
    /** The same as {@link #RDMAP_CANNOT_INVALIDATE} with the other error type that the RFC lists. */
    RDMAP_OPERATION_CANNOT_INVALIDATE(0, 2, 0x09, WorkStatus.REMOTE_ACCESS_ERROR, "STag cannot be invalidated"),
    /** An error without a better name. */
    RDMAP_OPERATION_UNSPECIFIED(0, 2, 0xff, WorkStatus.REMOTE_OPERATION_ERROR, "unspecified operation error"),

    /** The DDP layer cannot go on. */
    DDP_LOCAL_CATASTROPHIC(1, 0, 0x00, WorkStatus.REMOTE_OPERATION_ERROR, "local catastrophic error"),
    /** A write, or a read response, names no region; also a missing right, for which the RFC has no code. */
    DDP_INVALID_STAG(1, 1, 0x00, WorkStatus.REMOTE_ACCESS_ERROR, "invalid STag"),
    /** A write leaves its region. */
    DDP_BOUNDS(1, 1, 0x01, WorkStatus.REMOTE_ACCESS_ERROR, "base or bounds violation"),
    /** A region of another domain. */
    DDP_STAG_NOT_ASSOCIATED(1, 1, 0x02, WorkStatus.REMOTE_ACCESS_ERROR, "STag not associated with the stream"),
    /** Offset plus length passes 2^64. */
    DDP_TO_WRAP(1, 1, 0x03, WorkStatus.REMOTE_ACCESS_ERROR, "tagged offset wraps"),
    /** A tagged segment with a DDP version other than 1. */
    DDP_TAGGED_VERSION(1, 1, 0x04, WorkStatus.REMOTE_INVALID_REQUEST_ERROR, "invalid DDP version"),
    /** A queue that does not exist, or not for this opcode. */
    DDP_INVALID_QUEUE(1, 2, 0x01, WorkStatus.REMOTE_INVALID_REQUEST_ERROR, "invalid queue number"),
    /** No receive posted, or more reads than agreed. */
    DDP_NO_BUFFER(1, 2, 0x02, WorkStatus.RECEIVER_NOT_READY_RETRY_EXCEEDED, "no buffer available"),
    /** A message sequence number out of order. */
    DDP_INVALID_MSN(1, 2, 0x03, WorkStatus.REMOTE_INVALID_REQUEST_ERROR, "message sequence number out of range"),
    /** A message offset out of order. */
    DDP_INVALID_OFFSET(1, 2, 0x04, WorkStatus.REMOTE_INVALID_REQUEST_ERROR, "invalid message offset"),
    /** Longer than the receive posted for it. */
    DDP_TOO_LONG(1, 2, 0x05, WorkStatus.REMOTE_INVALID_REQUEST_ERROR, "message too long for the receive posted"),
    /** An untagged segment with a DDP version other than 1. */
    DDP_UNTAGGED_VERSION(1, 2, 0x06, WorkStatus.REMOTE_INVALID_REQUEST_ERROR, "invalid DDP version"),

    /** A CRC that does not match. */
    MPA_CRC(2, 0, 0x02, WorkStatus.GENERAL_ERROR, "CRC error"),
    /** A length that no segment can have. */
    MPA_FRAMING(2, 0, 0x03, WorkStatus.GENERAL_ERROR, "FPDU start lost"),
    /** Setup failed for another reason. */
    MPA_LOCAL_CATASTROPHIC(2, 0, 0x05, WorkStatus.GENERAL_ERROR, "local catastrophic error during setup"),
    /** The peer wants more reads at a time than this side has room for. */
    MPA_INSUFFICIENT_IRD(2, 0, 0x06, WorkStatus.GENERAL_ERROR, "insufficient inbound read resources"),
    /** No ready-to-receive message that both know. */
    MPA_NO_MATCHING_RTR(2, 0, 0x07, WorkStatus.GENERAL_ERROR, "no matching ready-to-receive option");

    /** 0 RDMAP, 1 DDP, 2 MPA. */
    final int layer;

    /** What kind of error, by layer. */
    final int type;

    /** Which error. */
    final int code;

    /** What it is to the work request that ran into it. */
    final WorkStatus status;

    /** What it means. */
    final String meaning;

    TerminateReason(int layer, int type, int code, WorkStatus status, String meaning) {
        this.layer = layer;
        this.type = type;
        this.code = code;
        this.status = status;
        this.meaning = meaning;
    }

    /**
     * Layer, type and code as the Terminate message has them.
     *
     * @return 16 bits
     */
    int control() {
        return layer << 12 | type << 8 | code;
    }

    /**
     * Finds the reason of a Terminate message.
     *
     * @param control its first 16 bits
     * @return the nearest one, if the peer uses a number of its own
     */
    static TerminateReason of(int control) {
        int layer = control >>> 12 & 0xf;
        int type = control >>> 8 & 0xf;
        for (TerminateReason reason : values()) {
            if (reason.layer == layer
                    && reason.type == type
                    && ((type == 0 && layer < 2) || reason.code == (control & 0xff))) {
                return reason;
            }
        }
        return switch (layer) {
            case 0 -> type == 1 ? RDMAP_PROTECTION_UNSPECIFIED : RDMAP_OPERATION_UNSPECIFIED;
            case 1 -> type == 1 ? DDP_INVALID_STAG : DDP_LOCAL_CATASTROPHIC;
            default -> MPA_LOCAL_CATASTROPHIC;
        };
    }

    /**
     * Whether the first word of a Terminate message is as Linux's siw lays it out on little-endian machines, by C
     * bit-fields: the halves of the first byte are exchanged, and the three header flags are at the other end of their
     * byte, where the RFC has zeros. siw sets at least one of the flags unless it sends no header.
     *
     * @param word layer, type, code, flags
     * @return whether {@link #inOrderOfRfc} makes sense of it
     */
    static boolean isInOrderOfSiw(int word) {
        return (word & 0xe000) == 0 && (word & 0x0700) != 0;
    }

    /**
     * Puts siw's word in order.
     *
     * @param word for which {@link #isInOrderOfSiw} holds
     * @return as in RFC 5040, 4.8
     */
    static int inOrderOfRfc(int word) {
        int first = (word >>> 28 & 0xf) | (word >>> 20 & 0xf0);
        int flags = Integer.reverse(word >>> 8 & 0x7) >>> 16;
        return first << 24 | (word & 0xff_0000) | flags;
    }

    /**
     * For error messages.
     *
     * @param control the first 16 bits of the Terminate message
     * @return layer, type, code in words and numbers
     */
    static String describe(int control) {
        int layer = control >>> 12 & 0xf;
        String name = layer == 0 ? "RDMAP" : layer == 1 ? "DDP" : "MPA";
        return name + " " + of(control).meaning + " (layer " + layer + ", type " + (control >>> 8 & 0xf) + ", code 0x"
                + Integer.toHexString(control & 0xff) + ")";
    }
}
