package org.verbena.transport.protocol.receiving;

import io.netty.buffer.ByteBuf;
import java.util.LinkedHashSet;
import java.util.Set;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.protocol.memory.MessageBuffers;
import org.verbena.transport.protocol.wire.Credits;
import org.verbena.transport.spi.SharedReceiveQueue;

/**
 * The receives of a completion loop's shared receive queue, and how many of them each connection was promised. What all
 * peers together may send, control included, is never more than what is posted: a SEND always finds a receive.
 *
 * <p>Every connection is owed two receives for control and one for messages. What is left is shared: a connection that
 * uses its grant gets twice what it used, up to half of what is free, less one for each connection that has none now
 * and may ask for its one at any time, and less a reserve for connections to come. Hence a connection that was never
 * busy costs three receives, and a busy one gets a window as large as the others leave. When receives get short, the
 * peers are asked to give back what they do not use.
 */
final class SharedReceives implements AutoCloseable {
    /**
     * This part of the receives is promised to no connection for speed: new connections find room while peers are asked
     * to give back what they do not use.
     */
    private static final int RESERVE_DIVISOR = 16;

    /**
     * The time per connection between two rounds of asking all connections to give back: a question is a frame, and so
     * is its answer.
     */
    static final long NANOS_PER_QUESTION = 1_000_000;

    /** One of the connections. */
    interface Member {
        /**
         * Asks the peer to return the grants that it does not use, if it has more than it needs. Does not call back.
         */
        void reclaim();
    }

    private final SharedReceiveQueue queue;
    private final Receives receives;
    private final MessageBuffers buffers;
    /** How many are kept posted: all, if there is memory for all. */
    private int kept;

    private int promised;
    private final Set<Member> members = new LinkedHashSet<>();
    private int withoutGrant;

    /** When connections that get less than they want may have all asked again. */
    private long nextQuestionNanos;

    private final LongSupplier nanoClock;

    /** With a clock for tests. */
    SharedReceives(SharedReceiveQueue queue, MessageBuffers buffers, int bufferBytes, LongSupplier nanoClock) {
        this.nanoClock = nanoClock;
        nextQuestionNanos = nanoClock.getAsLong();
        this.queue = queue;
        this.buffers = buffers;
        receives = new Receives(queue::postReceive, buffers, queue.depth(), bufferBytes);
        kept = queue.depth();
        while (kept > 0 && !buffers.reserveReceives(kept, bufferBytes, false)) {
            kept /= 2;
        }
    }

    /** Finds what the first connection of this loop has made, or makes it. */
    static SharedReceives of(SharedReceiveQueue queue, MessageBuffers buffers, int bufferBytes) {
        Object attachment = queue.attachment();
        if (attachment == null) {
            SharedReceives made = new SharedReceives(queue, buffers, bufferBytes, System::nanoTime);
            queue.attach(made);
            return made;
        }
        if (attachment instanceof SharedReceives found) {
            return found;
        }
        throw new IllegalStateException("the shared receive queue belongs to " + attachment);
    }

    int bufferBytes() {
        return receives.bufferBytes();
    }

    int depth() {
        return receives.depth();
    }

    int posted() {
        return receives.posted();
    }

    boolean starved() {
        return receives.starved();
    }

    /** Fills the queue up. */
    void refill() {
        if (receives.posted() < kept && receives.post(kept - receives.posted()) > 0) {
            queue.flush();
        }
    }

    /** Adds a connection, if there is room for one more; it has no grant yet. */
    boolean join(Member member) {
        if (free() < withoutGrant + Credits.CONTROL_RECEIVES + 1) {
            reclaim();
            return false;
        }
        promised += Credits.CONTROL_RECEIVES;
        members.add(member);
        withoutGrant++;
        if (room() < 0) {
            reclaim();
        }
        return true;
    }

    private void reclaim() {
        // What is promised beyond two for control and one for a message.
        if (promised > members.size() * (Credits.CONTROL_RECEIVES + 1) - withoutGrant) {
            for (Member member : members) {
                member.reclaim();
            }
        }
    }

    /** What may be promised for speed; negative while the reserve is in use. */
    private int room() {
        return free() - withoutGrant - receives.depth() / RESERVE_DIVISOR;
    }

    /**
     * Promises receives that a connection wants to grant to its peer.
     *
     * @param has what is granted and unused
     * @param wanted how much more
     * @return how much more it may grant
     */
    int promise(int has, int wanted) {
        int now = 0;
        if (has == 0 && wanted > 0 && free() > 0) {
            now = 1;
            withoutGrant--;
            promised++;
        }
        int more = Math.min(wanted - now, room() / 2);
        if (more > 0 && has + now > 0) {
            promised += more;
            now += more;
        }
        if (has + now == 0 && wanted > 0) {
            reclaim(); // its peer cannot send
        } else if (now < wanted) {
            reclaimInTime();
        }
        return now;
    }

    private void reclaimInTime() {
        long nowNanos = nanoClock.getAsLong();
        if (nowNanos - nextQuestionNanos >= 0) {
            nextQuestionNanos = nowNanos + NANOS_PER_QUESTION * members.size();
            reclaim();
        }
    }

    /** A message frame has used one receive of a grant. */
    void used(int left) {
        promised--;
        if (left == 0) {
            withoutGrant++;
        }
    }

    /** A peer has returned grants; it has some left, or this end will give it one when it asks. */
    void returned(int frames, int left) {
        promised -= frames;
        if (left == 0) {
            withoutGrant++;
        }
    }

    /** A connection has ended. */
    void leave(Member member, int unusedGrant) {
        promised -= unusedGrant + Credits.CONTROL_RECEIVES;
        members.remove(member);
        if (unusedGrant <= 0) {
            withoutGrant--;
        }
    }

    /** How many receives are promised and not posted, because memory is short. */
    int overdrawn() {
        return Math.max(0, -free());
    }

    private int free() {
        return receives.posted() - promised;
    }

    @Nullable ByteBuf take(long workId) {
        return receives.take(workId);
    }

    void spare(ByteBuf buffer) {
        receives.spare(buffer);
    }

    /** The loop ends. */
    @Override
    public void close() {
        receives.release();
        buffers.unreserveReceives(kept, receives.bufferBytes());
        kept = 0;
    }

    @Override
    public String toString() {
        return "shared receive queue of " + depth() + ", " + receives.posted() + " posted, " + promised
                + " promised to " + members.size() + " connections";
    }
}
