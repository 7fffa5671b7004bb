package org.verbena.api.internal.request;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufAllocator;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.UnpooledByteBufAllocator;
import io.netty.buffer.UnpooledHeapByteBuf;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.RequestFailure;

/**
 * The frames of the short form. Each message begins with 8 bytes, its kind and the number of the request that it
 * belongs to:
 *
 * <pre>{@code
 *  0      1                  8
 * | kind | correlation      | payload ...     big endian; correlation is 0 for plain messages
 * }</pre>
 *
 * <p>Behind that, a timed request has 4 bytes that say how long its sender waits for the reply, in microseconds.
 * 0xffffffff is no limit. A refusal because of too much load has 4 bytes as well: after how many microseconds the
 * request may be sent again.
 *
 * <p>A cancel says that nobody waits for the reply to a request any more. It has no payload and no answer.
 *
 * <p>A server that is leaving says so, with 4 bytes that say after how many milliseconds it may be connected to again,
 * and a reason. A refused has one byte that says why, and words: the request was not begun.
 *
 * <p>An error is a failure that the program has chosen: 4 bytes of its code, 2 of how long the words are, the words,
 * and the program's payload.
 *
 * <p>A headed request is a timed one, whose 4 bytes may say that there is no limit, with a byte of flags and {@link
 * Headers} in front of its payload. A headed reply has headers there. Both are sent only if there are headers or flags.
 *
 * <p>The messages of a stream are items, which an end sends only as long as it has credit for one, and for a byte: an
 * item credit of the other end adds to both. An end says that its items are over. Whichever end answers the request
 * sets a bit in the number of these three. It may send {@link Headers} in front of its first item, as a frame of their
 * own, and in its end.
 *
 * <p>A leave makes the server close the connection when it has sent what it has to send. A client that has moved to
 * another connection sends it when it has its last reply.
 */
public final class Frames {
    static final int MESSAGE = 0;
    public static final int REPLY = 2;
    static final int FAILURE = 3;
    static final int TIMED_REQUEST = 4;
    static final int OVERLOADED = 5;

    static final int LEAVE = 7;
    static final int CANCEL = 8;
    static final int LEAVING = 9;
    static final int REFUSED = 10;
    static final int ERROR = 11;
    static final int HEADED_REQUEST = 12;
    static final int HEADED_REPLY = 13;
    static final int ITEM = 14;
    static final int END = 15;
    static final int ITEM_CREDIT = 16;
    static final int ITEMS_HEADERS = 17;

    /** Why a server has refused a request: it is leaving. */
    static final int REFUSED_LEAVING = 1;

    /** Or it has no such service, method or way to call it. */
    static final int REFUSED_UNKNOWN = 2;

    /** Or it does not let this client call it. */
    static final int REFUSED_NOT_AUTHORIZED = 3;

    /** Or the request is over one of its limits. */
    static final int REFUSED_LIMIT = 4;

    /** Flag of a headed request: it may be handled more than once without harm. */
    public static final int IDEMPOTENT = 1;

    /** Flag of a headed request: both it and its reply are streams of messages. */
    static final int STREAM = 2;

    /** Set in the number of a stream's frames that come from the end that answers the request. */
    static final long ANSWERING = 1L << 55;

    /** What an item credit has behind its header: how many messages, and how many bytes. */
    static final int CREDIT_BYTES = 8;

    /** What both ends announce in the handshake. */
    public static final int SHORT_FORM = 1;

    static final int HEADER_BYTES = 8;
    static final int TIME_BYTES = 4;

    /** What a headed request has behind its header: time, flags, and how long the headers are. */
    static final int HEADED_BYTES = TIME_BYTES + 1 + Headers.LENGTH_BYTES;

    /** The most that a frame has in front of its payload and the entries of its headers. */
    public static final int RESERVED_BYTES = HEADER_BYTES + HEADED_BYTES;

    /** What an error has in front of its words: the code, and how long the words are. */
    static final int ERROR_BYTES = 6;

    /** The largest value that fits, which stands for all longer times: more than an hour, and no deadline. */
    static final long UNLIMITED_MICROS = 0xffff_ffffL;

    /** For messages of other kinds. */
    static final long NO_TIME = -1;

    private static final int KIND_SHIFT = 56;
    static final long CORRELATION_MASK = (1L << KIND_SHIFT) - 1;

    /** Up to this size, copying a message behind its header is cheaper than sending it with two SGEs. */
    private static final int COPIED_BYTES = 2048;

    private Frames() {}

    /**
     * A copy of a short message, with room in front of it: its frame is the same memory, so it is written once. It is
     * on the heap: most who copy are on no loop, and would take memory of a pool under its lock.
     */
    private static final class Copy extends UnpooledHeapByteBuf {
        private static final int ROOM_BYTES = HEADER_BYTES + TIME_BYTES;

        Copy(int bytes) {
            super(UnpooledByteBufAllocator.DEFAULT, ROOM_BYTES + bytes, ROOM_BYTES + bytes);
            setIndex(ROOM_BYTES, ROOM_BYTES);
        }
    }

    /** Copies a message, whose position stays; a long one into memory of the allocator. Null stays null. */
    public static @Nullable ByteBuf copyOf(ByteBufAllocator allocator, @Nullable ByteBuffer message) {
        if (message == null) {
            return null;
        }
        int bytes = message.remaining();
        ByteBuf copy = bytes <= COPIED_BYTES ? new Copy(bytes) : allocator.buffer(bytes);
        return copy.writeBytes(message.duplicate());
    }

    /** The message without its header again, if its frame was not sent. */
    static ByteBuf unframed(ByteBuf message) {
        return message instanceof Copy ? message.readerIndex(Copy.ROOM_BYTES) : message;
    }

    /** Makes a frame, and takes ownership of the payload unless it throws. */
    static ByteBuf of(ByteBufAllocator allocator, int kind, long correlation, long timeMicros, ByteBuf payload) {
        boolean timed = timeMicros != NO_TIME;
        int headBytes = HEADER_BYTES + (timed ? TIME_BYTES : 0);
        if (payload instanceof Copy && payload.readerIndex() == Copy.ROOM_BYTES) {
            int from = Copy.ROOM_BYTES - headBytes;
            payload.setLong(from, header(kind, correlation));
            if (timed) {
                payload.setInt(from + HEADER_BYTES, (int) timeMicros);
            }
            return payload.readerIndex(from);
        }
        ByteBuf head = allocator.directBuffer(headBytes + copiedBytes(payload));
        head.writeLong(header(kind, correlation));
        if (timed) {
            head.writeInt((int) timeMicros);
        }
        return join(allocator, head, payload);
    }

    /** As {@link #of}, of a headed request. */
    static ByteBuf ofHeadedRequest(
            ByteBufAllocator allocator,
            long correlation,
            long timeMicros,
            int flags,
            Headers headers,
            ByteBuf payload) {
        ByteBuf head = allocator.directBuffer(headedBytes(headers) + copiedBytes(payload));
        head.writeLong(header(HEADED_REQUEST, correlation))
                .writeInt((int) timeMicros)
                .writeByte(flags);
        headers.write(head);
        return join(allocator, head, payload);
    }

    /** As {@link #of}, of a headed reply. */
    static ByteBuf ofHeadedReply(ByteBufAllocator allocator, long correlation, Headers headers, ByteBuf payload) {
        ByteBuf head = allocator.directBuffer(HEADER_BYTES + headers.bytes() + copiedBytes(payload));
        head.writeLong(header(HEADED_REPLY, correlation));
        headers.write(head);
        return join(allocator, head, payload);
    }

    /** What a headed request has in front of its payload. */
    static int headedBytes(Headers headers) {
        return HEADER_BYTES + HEADED_BYTES - Headers.LENGTH_BYTES + headers.bytes();
    }

    /** Whether the payload is a message of the program's. */
    static boolean isOfProgram(int kind) {
        return kind == MESSAGE || kind == TIMED_REQUEST || kind == REPLY || kind == ITEM;
    }

    /**
     * Whether a frame answers a request: if it is lost, so is the connection, and the other end knows.
     *
     * @param frame from its kind on
     */
    public static boolean isAnswer(ByteBuf frame) {
        return frame.isReadable()
                && switch (frame.getByte(frame.readerIndex())) {
                    case REPLY, HEADED_REPLY, ERROR, FAILURE -> true;
                    default -> false;
                };
    }

    private static long header(int kind, long correlation) {
        return (long) kind << KIND_SHIFT | correlation;
    }

    private static int copiedBytes(ByteBuf payload) {
        int bytes = payload.readableBytes();
        return bytes <= COPIED_BYTES ? bytes : 0;
    }

    private static ByteBuf join(ByteBufAllocator allocator, ByteBuf head, ByteBuf payload) {
        if (payload.readableBytes() <= COPIED_BYTES) {
            try {
                head.writeBytes(payload, payload.readerIndex(), payload.readableBytes()); // others may read it as well
            } catch (Throwable failure) {
                head.release();
                throw failure;
            }
            payload.release();
            return head;
        }
        return allocator.compositeDirectBuffer(2).addComponents(true, head, payload);
    }

    /**
     * Makes a message's frame that many connections of one device can send at the same time, each a duplicate of it. It
     * shares the payload's memory if that is the device's and long enough; else it has a copy. The payload stays its
     * owner's.
     */
    static ByteBuf forMany(ByteBufAllocator device, ByteBuf payload) {
        if (payload.readableBytes() > COPIED_BYTES && payload.alloc().equals(device)) {
            ByteBuf shared = payload.retainedSlice();
            try {
                return of(device, MESSAGE, 0, NO_TIME, shared);
            } catch (Throwable noMemory) {
                shared.release();
                throw noMemory;
            }
        }
        ByteBuf frame = device.directBuffer(HEADER_BYTES + payload.readableBytes());
        return frame.writeLong((long) MESSAGE << KIND_SHIFT)
                .writeBytes(payload, payload.readerIndex(), payload.readableBytes());
    }

    static int kind(long header) {
        return (int) (header >>> KIND_SHIFT);
    }

    static long correlation(long header) {
        return header & CORRELATION_MASK;
    }

    static long micros(long nanos) {
        return Math.min(TimeUnit.NANOSECONDS.toMicros(nanos), UNLIMITED_MICROS);
    }

    /** Reads the 4 bytes behind the header of a kind that has them. Releases a frame that is too short, and throws. */
    static long readTime(int kind, ByteBuf frame) {
        if (frame.readableBytes() < TIME_BYTES) {
            int bytes = HEADER_BYTES + frame.readableBytes();
            frame.release();
            throw notTheShortForm("of kind " + kind + " and " + bytes + " bytes");
        }
        return frame.readUnsignedInt();
    }

    /**
     * Reads the headers of a frame of this kind, and leaves its payload. Releases a frame without proper ones, and
     * throws.
     *
     * @return null if they are over the limits
     */
    static @Nullable Headers readHeaders(int kind, ByteBuf frame) {
        try {
            return Headers.read(frame);
        } catch (IllegalArgumentException malformed) {
            frame.release();
            throw notTheShortForm("of kind " + kind + " with " + malformed.getMessage());
        }
    }

    /** Reads an error. Releases a frame that is none, and throws. */
    static RequestFailure readError(ByteBuf frame) {
        int bytes = HEADER_BYTES + frame.readableBytes();
        if (frame.readableBytes() >= ERROR_BYTES) {
            int code = frame.readInt();
            int wordsBytes = frame.readUnsignedShort();
            if (code >= 0 && wordsBytes <= frame.readableBytes()) {
                String words = frame.toString(frame.readerIndex(), wordsBytes, StandardCharsets.UTF_8);
                frame.skipBytes(wordsBytes);
                return new RequestFailure(code, words, ByteBufUtil.getBytes(frame));
            }
        }
        frame.release();
        throw notTheShortForm("of kind " + ERROR + " and " + bytes + " bytes");
    }

    /** Says that the receiver did not permit a frame. */
    static IllegalStateException breach(int kind, long correlation, String what) {
        return new IllegalStateException(
                "the peer breaks the rules: a frame of kind " + kind + " for request " + correlation + " " + what);
    }

    static IllegalStateException notTheShortForm(String what) {
        return new IllegalStateException("a message " + what + " is not from an RdmaClient or RdmaServer: have the peer"
                + " use one, or serve it with a plain RdmaChannel");
    }
}
