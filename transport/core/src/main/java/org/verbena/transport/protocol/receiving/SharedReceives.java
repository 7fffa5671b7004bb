package org.verbena.transport.protocol.receiving;

import io.netty.buffer.ByteBuf;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.protocol.memory.MessageBuffers;
import org.verbena.transport.protocol.wire.Credits;
import org.verbena.transport.spi.PeerAddress;
import org.verbena.transport.spi.SharedReceiveQueue;

/**
 * The receives of a completion loop's shared receive queue, and how many of them each connection was promised. What all
 * peers together may send, control included, is never more than what is posted: a SEND always finds a receive.
 *
 * <p>Every connection is owed two receives for control and one for messages. What is left is shared: a connection that
 * uses its grant gets twice what it used, up to half of what is free, less one for each connection that has none now
 * and may ask for its one at any time, and less a reserve for connections to come. Hence a connection that was never
 * busy costs three receives, and a busy one gets a window as large as the others leave. When receives get short, the
 * peers are asked to give back what they do not use. All connections of one address together have at most half of what
 * is shared.
 */
final class SharedReceives implements AutoCloseable {
    /**
     * This part of the receives is promised to no connection for speed: new connections find room while peers are asked
     * to give back what they do not use.
     */
    private static final int RESERVE_DIVISOR = 16;

    /** The connections of one address get at most this part of what connections have for speed. */
    private static final int ADDRESS_DIVISOR = 2;

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
    private int members;
    private int withoutGrant;
    private final Map<Long, Address> addresses = new HashMap<>();

    /** Those that have had more than one grant since they were last asked: each is asked once for that. */
    private final List<Seat> askable = new ArrayList<>();

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

    /**
     * Adds a connection; it has no grant yet.
     *
     * @param network of the peer, see {@link PeerAddress}
     * @return null if there is no room for one more
     */
    @Nullable Seat join(Member member, long network) {
        if (free() < withoutGrant + Credits.CONTROL_RECEIVES + 1) {
            reclaim();
            return null;
        }
        promised += Credits.CONTROL_RECEIVES;
        members++;
        withoutGrant++;
        if (room() < 0) {
            reclaim();
        }
        Address address = addresses.computeIfAbsent(network, Address::new);
        address.seats++;
        return new Seat(member, address);
    }

    private void reclaim() {
        while (!askable.isEmpty()) {
            Seat seat = askable.removeLast();
            seat.place = -1;
            seat.member.reclaim();
        }
    }

    /** What may be promised for speed; negative while the reserve is in use. */
    private int room() {
        return free() - withoutGrant - reserve();
    }

    private int reserve() {
        return receives.depth() / RESERVE_DIVISOR;
    }

    private void reclaimInTime() {
        long nowNanos = nanoClock.getAsLong();
        if (nowNanos - nextQuestionNanos >= 0) {
            nextQuestionNanos = nowNanos + NANOS_PER_QUESTION * members;
            reclaim();
        }
    }

    /** The connections with the hosts that are counted as one, and what they were granted beyond one each. */
    private final class Address {
        private final long network;
        private int seats;
        private int forSpeed;

        Address(long network) {
            this.network = network;
        }

        /** What its connections may be promised for speed. */
        int room() {
            int shared = kept - reserve() - members * (Credits.CONTROL_RECEIVES + 1);
            return network == PeerAddress.UNKNOWN ? shared : shared / ADDRESS_DIVISOR - forSpeed;
        }
    }

    /** One connection's part. */
    final class Seat {
        private final Member member;
        private final Address address;

        /** What the peer was granted and has not used. */
        private int grants;

        /** Among those to be asked; -1 if it is none of them. */
        private int place = -1;

        private Seat(Member member, Address address) {
            this.member = member;
            this.address = address;
        }

        /**
         * Promises receives that the connection wants to grant to its peer.
         *
         * @param wanted how many more
         * @return how many more it may grant
         */
        int promise(int wanted) {
            int now = 0;
            if (grants == 0 && wanted > 0 && free() > 0) {
                now = 1;
                set(1);
            }
            int more = Math.min(wanted - now, Math.min(room() / 2, address.room()));
            if (more > 0 && grants > 0) {
                now += more;
                set(grants + more);
            }
            if (grants == 0 && wanted > 0) {
                reclaim(); // its peer cannot send
            } else if (now < wanted) {
                reclaimInTime();
            }
            return now;
        }

        /** A message frame has used one receive of a grant. */
        void used() {
            set(grants - 1);
        }

        /** The peer has returned grants; it has some left, or this end will give it one when it asks. */
        void returned(int frames) {
            set(grants - frames);
        }

        /** The connection has ended. */
        void leave() {
            set(0);
            stopAsking();
            promised -= Credits.CONTROL_RECEIVES;
            members--;
            withoutGrant--;
            if (--address.seats == 0) {
                addresses.remove(address.network);
            }
        }

        private void set(int now) {
            promised += now - grants;
            withoutGrant += (now <= 0 ? 1 : 0) - (grants <= 0 ? 1 : 0);
            address.forSpeed += Math.max(0, now - 1) - Math.max(0, grants - 1);
            grants = now;
            if (now > 1 && place < 0) {
                place = askable.size();
                askable.add(this);
            }
        }

        private void stopAsking() {
            if (place >= 0) {
                Seat last = askable.removeLast();
                if (last != this) {
                    askable.set(place, last);
                    last.place = place;
                }
                place = -1;
            }
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
                + " promised to " + members + " connections";
    }
}
