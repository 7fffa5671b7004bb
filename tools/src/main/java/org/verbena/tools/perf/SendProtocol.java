package org.verbena.tools.perf;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.nio.ByteBuffer;

/**
 * How the test {@code send} respects the receives of its peer, since a channel with framing RAW has no credits.
 *
 * <p>The client connects for each size, with this record as private data. The server posts {@code receives} receives of
 * {@code bytes} before it accepts. Half of them are the client's credits: the other half covers receives that the
 * server's program holds and that are about to be posted again. A message that comes back returns its credit. Of
 * messages that go one way, the server acknowledges each half of the credits, with {@link PerfProtocol#COUNT} and how
 * many it has had (a long), so that two acknowledgements at most are under way; it says the same with {@link
 * PerfProtocol#HOW_MANY} when it is asked, by a message of only that byte.
 *
 * <p>Where both ends send, the client posts as many receives, and the server sends with as many credits from {@link
 * PerfProtocol#BOTH}, a single byte, to {@link PerfProtocol#STOP}, which it answers with how many it has sent. The
 * server's messages begin with {@link PerfProtocol#BOTH}. The client acknowledges each half of the credits as well,
 * with {@link #TAKEN} and how many it has had (a long). Both post {@link #CONTROL_RECEIVES} more for all that has no
 * credit.
 *
 * @param bytes the longest message of the client, 1 to {@link #MAX_BYTES}
 * @param receives how many the server posts, {@link #MIN_RECEIVES} to {@link #MAX_RECEIVES}
 * @param isBidirectional whether the server sends as well
 */
record SendProtocol(int bytes, int receives, boolean isBidirectional) {
    /** The client's acknowledgement of the server's messages. */
    static final byte TAKEN = 't';

    /** Two credits of such messages, with the receives that cover them, take {@link #MAX_MEMORY_BYTES}. */
    static final int MAX_BYTES = 16 << 20;

    private static final int MAX_MEMORY_BYTES = 64 << 20;
    private static final int MIN_RECEIVES = 4;

    /** Devices hold some thousands of receives for a queue pair. */
    private static final int MAX_RECEIVES = 2048;

    /**
     * At most three acknowledgements are under way, since each stands for at least a third of the credits, and three
     * more receives may be about to be posted again; two are for the client's questions and the server's answers.
     */
    private static final int CONTROL_RECEIVES = 8;

    /** With a rate, as many messages may be under way as with the default window. */
    private static final int RATED_WINDOW = 64;

    private static final int ENCODED_BYTES = 2 * Integer.BYTES + 1;

    private static final int ANSWER_BYTES = 1 + Long.BYTES;

    SendProtocol {
        if (bytes < 1
                || bytes > MAX_BYTES
                || receives < MIN_RECEIVES
                || receives > MAX_RECEIVES
                || (long) bytes * receives > MAX_MEMORY_BYTES) {
            throw new IllegalArgumentException("no server posts " + receives + " receives of " + bytes + " bytes");
        }
    }

    /** For messages of that size, with this many under way if memory allows; 0 if a rate was given. */
    static SendProtocol of(int bytes, int window, boolean isBidirectional) {
        int wanted = 2 * Math.min(window == 0 ? RATED_WINDOW : window, MAX_RECEIVES / 2);
        return new SendProtocol(
                bytes, Math.max(MIN_RECEIVES, Math.min(wanted, MAX_MEMORY_BYTES / bytes / 2 * 2)), isBidirectional);
    }

    /** From private data, which may have zeros behind. */
    static SendProtocol decode(byte[] privateData) {
        if (privateData.length < ENCODED_BYTES) {
            throw new IllegalArgumentException("a client that says nothing of its sends");
        }
        ByteBuffer data = ByteBuffer.wrap(privateData);
        return new SendProtocol(data.getInt(), data.getInt(), data.get() != 0);
    }

    byte[] encode() {
        return ByteBuffer.allocate(ENCODED_BYTES)
                .putInt(bytes)
                .putInt(receives)
                .put((byte) (isBidirectional ? 1 : 0))
                .array();
    }

    /** How many messages a client may have sent that the server is not known to have received. */
    int credits() {
        return receives / 2;
    }

    /** After how many messages the server acknowledges. */
    int acknowledgedAfter() {
        return Math.max(1, credits() / 2);
    }

    /** How many receives the server posts altogether, and the client. */
    int posted() {
        return isBidirectional ? receives + CONTROL_RECEIVES : receives;
    }

    /** The longest message of the client, acknowledgements included. */
    int requestBytes() {
        return isBidirectional ? Math.max(bytes, ANSWER_BYTES) : bytes;
    }

    /** The longest message of the server. */
    int answerBytes(boolean isLatency) {
        return isLatency || isBidirectional ? Math.max(bytes, ANSWER_BYTES) : ANSWER_BYTES;
    }

    /** The message with which one end reports its count. */
    static ByteBuf answer(byte what, long count) {
        return Unpooled.buffer(ANSWER_BYTES).writeByte(what).writeLong(count);
    }
}
