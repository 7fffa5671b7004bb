package org.verbena.transport.protocol.receiving;

import io.netty.buffer.ByteBuf;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.EndpointCapabilities;
import org.verbena.transport.Framing;
import org.verbena.transport.RegisteredMemoryExhaustedException;
import org.verbena.transport.buffer.RegisteredByteBuf;
import org.verbena.transport.protocol.MessageOptions;
import org.verbena.transport.protocol.memory.HeldByUser;
import org.verbena.transport.protocol.memory.MessageBuffers;
import org.verbena.transport.protocol.state.ConnectionCounters;
import org.verbena.transport.protocol.wire.Credits;
import org.verbena.transport.protocol.wire.HeaderState;
import org.verbena.transport.spi.Endpoint;
import org.verbena.transport.spi.SharedReceiveQueue;

/**
 * The receives that the peer may use, of this connection or of the loop's shared receive queue, and how many it is
 * granted. Those that the user holds count: it may hold as many as are kept posted, its allowance; beyond that, another
 * is posted only when one is released.
 *
 * <p>Where the provider says so, a connection begins with few short receives. They become more, and long, when the peer
 * sends a frame that fills more than half of one, or wants more grants than there are, or when the user holds as many:
 *
 * <pre>{@code
 *   posted:  short | short | short | long | long | ...
 *                                    ^ LONGER has the number of this one
 * }</pre>
 */
public final class ReceiveWindow {
    /** Receives are low when fewer than this part of them are posted. */
    private static final int LOW_RECEIVES_DIVISOR = 4;
    /** Receives are posted when this part of those that are kept is missing ... */
    private static final int REPOST_DIVISOR = 8;
    /** ... or so many of them. */
    private static final int MOST_REPOSTED = 16;
    /** Short ones when a larger part of them is missing: each time costs a call of the device. */
    private static final int SHORT_REPOST_DIVISOR = 4;

    /** For a window of eight messages when two are to be posted again, and the peer does not know of one. */
    private static final int SHORT_DEPTH = 8 + Credits.CONTROL_RECEIVES + 3;

    /** A frame that fills more than this part of a short receive shows that the peer needs long ones. */
    private static final int MUCH_OF_SHORT_DIVISOR = 2;

    /**
     * By default receives are halved while many connections have theirs, so that the memory is enough for ten thousand,
     * down to this, which is more than a handshake needs.
     */
    private static final int LEAST_FITTING_BYTES = 512;

    private final MessageOptions options;
    private final Credits credits;
    private final ConnectionCounters counters;
    private final HeaderState header;
    private final MessageBuffers.Waiter waiter;
    private final SharedReceives.Member member = this::reclaim;
    private final HeldByUser heldByUser;

    @SuppressWarnings("NullAway.Init") // set by prepare
    private MessageBuffers buffers;

    private int ownBytes;
    private int firstBytes;
    /** What {@link #ownBytes} may become; the same if receives do not become longer any more. */
    private int greatestBytes;

    /** The peer has shown that it needs long receives, or more, since that was last tried. */
    private boolean longWanted;
    /** There was no room for them when it was last tried. */
    private boolean growthRefused;
    /** Receives from {@link #longerFrom} on are long, and the peer does not know it yet. */
    private boolean growthUnannounced;

    private int longerFrom;
    private @Nullable Receives ownReceives;
    /** For {@link #ownReceives}. While some may still be short, for those as well. */
    private MessageBuffers.@Nullable Reservation reservation;
    /** How many are kept posted, apart from those that are held. */
    private int kept;

    private @Nullable SharedReceives shared;
    /** This connection's part of {@link #shared}, until it ends. */
    private SharedReceives.@Nullable Seat seat;

    private int usedOfShared;
    private long arrivedBytes;
    /** The peer was asked to use its grants or to give them back, all but one, and has not done it. */
    private boolean reclaimAsked;
    /** How often it was asked. */
    private int questions;

    /** Receives may be missing, or be to become longer: one was used, or the peer wants more. */
    private boolean receivesDue = true;
    /** The peer has used grants since it was granted the last ones, or there may be more receives. */
    private boolean grantsDue = true;

    private boolean open;
    private boolean controlCame;
    private boolean peerWaited;
    private boolean low;

    /** The first receives have not been posted yet: that none is posted does not mean that memory is short. */
    private boolean firstPostDue;

    private boolean starved;
    /** In the queue for memory to receive into. */
    private boolean awaitingMemory;

    public ReceiveWindow(
            MessageOptions options,
            Credits credits,
            ConnectionCounters counters,
            HeaderState header,
            MessageBuffers.Waiter waiter) {
        this.options = options;
        this.credits = credits;
        this.counters = counters;
        this.header = header;
        this.waiter = waiter;
        heldByUser = new HeldByUser(waiter::onMemoryFreed);
    }

    /**
     * Posts the receives that a peer needs before it has introduced itself.
     *
     * @param peerSpeaksFirst whether one receive is enough for now
     */
    public void prepare(
            Endpoint endpoint, EndpointCapabilities capabilities, MessageBuffers memory, boolean peerSpeaksFirst) {
        buffers = memory;
        ownBytes = options.receiveBufferBytes() == MessageOptions.DEVICE_DEFAULT
                ? capabilities.receiveBufferBytes()
                : options.receiveBufferBytes();
        SharedReceiveQueue queue = endpoint.sharedReceiveQueue();
        if (queue == null) {
            prepareOwn(endpoint, capabilities, peerSpeaksFirst);
        } else {
            prepareShared(queue);
        }
    }

    private void prepareOwn(Endpoint endpoint, EndpointCapabilities capabilities, boolean peerSpeaksFirst) {
        boolean raw = options.framing() == Framing.RAW;
        int depth = Math.min(options.receiveDepth(ownBytes), capabilities.receiveDepth());
        int least = raw ? depth : MessageOptions.MIN_RECEIVE_DEPTH;
        greatestBytes = ownBytes;
        if (isShortAtFirst(capabilities)) {
            ownBytes = capabilities.firstReceiveBytes();
        } else if (options.receiveBufferBytes() == MessageOptions.DEVICE_DEFAULT && !raw) {
            ownBytes = fitting(least, ownBytes);
            greatestBytes = ownBytes;
        }
        firstBytes = ownBytes;
        Receives receives = new Receives(endpoint::postReceive, buffers, depth, ownBytes);
        if (!raw && !isShort()) {
            endpoint.takeReceivesInAnyOrder(); // each is found by its id
        }
        ownReceives = receives;
        reservation = buffers.reservation(waiter.network());
        if (!reservation.reserve(least, ownBytes, false)) {
            throw noReceives(least);
        }
        kept = least;
        int first = peerSpeaksFirst && !raw ? 1 : least;
        if (receives.post(first) < Math.min(first, MessageOptions.MIN_RECEIVE_DEPTH)) {
            throw noReceives(first);
        }
    }

    /** The length that so many receives may have beside those of other connections. */
    private int fitting(int receives, int wantedBytes) {
        int halvings = 0;
        while (wantedBytes >> (halvings + 1) >= LEAST_FITTING_BYTES
                && !buffers.leavesRoom(receives, wantedBytes >> halvings, halvings)) {
            halvings++;
        }
        return wantedBytes >> halvings;
    }

    private boolean isShortAtFirst(EndpointCapabilities capabilities) {
        int bytes = capabilities.firstReceiveBytes();
        return options.framing() == Framing.MESSAGE
                && options.receiveDepth() == MessageOptions.DEVICE_DEFAULT
                && options.receiveBufferBytes() == MessageOptions.DEVICE_DEFAULT
                && bytes != 0
                && bytes < ownBytes;
    }

    private boolean isShort() {
        return ownBytes < greatestBytes;
    }

    private RegisteredMemoryExhaustedException noReceives(int count) {
        return buffers.exhausted(count + " receives of " + ownBytes + " bytes");
    }

    private void prepareShared(SharedReceiveQueue queue) {
        if (options.framing() == Framing.RAW) {
            throw new IllegalArgumentException("framing RAW has no flow control, so its peer could use up receives that"
                    + " were promised to others: use it without a shared receive queue");
        }
        SharedReceives found = SharedReceives.of(queue, buffers, ownBytes);
        found.refill();
        seat = found.join(member, waiter.network());
        if (seat == null) {
            throw new RegisteredMemoryExhaustedException("no room for one more connection in the " + found
                    + ": raise CompletionLoopOptions.sharedReceiveDepth, or use more loops");
        }
        shared = found;
    }

    /**
     * The peer is known: it gets as many receives as connections have at first. As many as were asked for are kept, as
     * far as there is room.
     *
     * @param peerFollows whether the peer makes its frames longer when receives become longer; otherwise they do not
     */
    public void open(boolean peerFollows) {
        open = true;
        receivesDue = true;
        Receives receives = ownReceives;
        if (receives != null && options.framing() != Framing.RAW) {
            firstPostDue = true;
            if (!peerFollows) {
                greatestBytes = ownBytes;
            }
            int first = Math.min(isShort() ? SHORT_DEPTH : options.firstReceiveDepth(ownBytes), receives.depth());
            boolean forSpeed = options.receiveDepth() == MessageOptions.DEVICE_DEFAULT;
            while (!keep(first, forSpeed)) {
                first /= 2;
            }
        }
    }

    private boolean keep(int count, boolean forSpeed) {
        if (count > kept && !reserve(count - kept, ownBytes, forSpeed)) {
            return false;
        }
        kept = Math.max(kept, count);
        return true;
    }

    private boolean reserve(int more, int bytes, boolean forSpeed) {
        return reservation != null && reservation.reserve(more, bytes, forSpeed);
    }

    /** The size of what is posted from now on. */
    public int bufferBytes() {
        return shared != null ? shared.bufferBytes() : ownBytes;
    }

    /** The size of those that are posted first, and so of the shortest. */
    public int firstBufferBytes() {
        return shared != null ? shared.bufferBytes() : firstBytes;
    }

    /** Whether receives never become longer, so that the peer need not know which of them a frame takes. */
    public boolean isOfOneLength() {
        return greatestBufferBytes() == 0;
    }

    /** The size of those that may be posted later; 0 if it stays the same. */
    public int greatestBufferBytes() {
        return firstBytes < greatestBytes ? greatestBytes : 0;
    }

    /**
     * Makes receives long from now on, as many as other connections have at first, or as there is room for; but no
     * fewer than the short ones, which may be promised. If there is no room, this is tried again when the peer shows
     * again that it needs them.
     */
    private void becomeLong(Receives receives) {
        longWanted = false;
        int count = Math.min(options.firstReceiveDepth(greatestBytes), receives.depth());
        while (count >= kept && !reserve(count, greatestBytes, true)) {
            count /= 2;
        }
        growthRefused = count < kept;
        if (!growthRefused) {
            kept = count;
            ownBytes = greatestBytes;
            receives.grow(ownBytes);
            longerFrom = receives.nextNumber();
            growthUnannounced = true;
            header.changed();
        }
    }

    /** Whether a LONGER is due, with {@link #longerFrom} and {@link #bufferBytes}. */
    public boolean isGrowthUnannounced() {
        return growthUnannounced;
    }

    /** The number of the first long receive, among all that were posted. */
    public int longerFrom() {
        return longerFrom;
    }

    /** The LONGER has been sent. */
    public void growthAnnounced() {
        growthUnannounced = false;
    }

    /** The most that the peer is ever granted at once. */
    public int greatest() {
        if (shared != null) {
            return Math.max(1, Math.min(options.receiveDepth(ownBytes), shared.depth()) - Credits.CONTROL_RECEIVES);
        }
        return Math.max(1, (ownReceives == null ? 0 : ownReceives.depth()) - Credits.CONTROL_RECEIVES);
    }

    /** Whether receives may have to be posted or granted; not while messages take none, and use no grants. */
    public boolean isDue() {
        return receivesDue || grantsDue || shared != null;
    }

    /**
     * Posts what is missing.
     *
     * @param undelivered how many receives hold what was not delivered
     * @param reading whether the user reads
     * @return whether to try once more: memory may have come back before it was awaited
     */
    public boolean post(Endpoint endpoint, int undelivered, boolean reading) {
        SharedReceives common = shared;
        Receives receives = ownReceives;
        if (!receivesDue && common == null) {
            return false;
        }
        boolean wasStarved = starved;
        starved = false;
        if (common != null) {
            watch(common.posted(), common.depth());
            common.refill();
            starved = common.starved();
        } else if (receives != null) {
            if (firstPostDue) {
                firstPostDue = false;
            } else {
                watch(receives.posted(), kept);
            }
            if (isShort()) {
                // What the user holds stops the peer as well.
                if (reading && (longWanted || (isUserSlow() && !growthRefused))) {
                    becomeLong(receives);
                }
            } else if (peerWaited && reading && kept < receives.depth() && !isUserSlow()) {
                keep(Math.min(2 * kept, receives.depth()), true);
            }
            int wanted = open ? kept - occupied(undelivered) - receives.posted() : 0;
            int divisor = isShort() ? SHORT_REPOST_DIVISOR : REPOST_DIVISOR;
            if (wanted >= Math.clamp(kept / divisor, 1, MOST_REPOSTED) || (controlCame && wanted > 0)) {
                // The device must have the receives before a header promises them to the peer.
                if (receives.post(wanted) > 0) {
                    grantsDue = true;
                    endpoint.flush();
                }
                starved = receives.starved();
            }
        }
        controlCame = controlCame && !credits.controlReposted(missingForControl());
        receivesDue = receives == null
                || receives.posted() < kept
                || !open
                || controlCame
                || starved
                || (longWanted && isShort());
        peerWaited = false;
        if (starved && !wasStarved) {
            counters.memoryStallBegan();
        }
        if (starved && !awaitingMemory) {
            awaitingMemory = true;
            buffers.awaitReceives(waiter);
            return true;
        }
        if (!starved && awaitingMemory) {
            awaitingMemory = false;
            buffers.forgetReceives(waiter);
        }
        return false;
    }

    /** How many of the receives for control frames are not posted again yet. */
    private int missingForControl() {
        int missing = shared != null ? shared.overdrawn() : ownReceives == null ? 0 : -grantable(0);
        return Math.clamp(missing, 0, Credits.CONTROL_RECEIVES);
    }

    /**
     * Receives that are not posted again yet: of what is not delivered, and of what the user holds beyond its
     * allowance.
     */
    private int occupied(int undelivered) {
        int allowance = allowance();
        long held = heldByUser.held();
        if (held > allowance) {
            heldByUser.watch();
            held = heldByUser.held();
        }
        return undelivered + (int) Math.max(0, held - allowance);
    }

    private int allowance() {
        return shared != null ? greatest() : kept;
    }

    /** Whether the user holds all the receive buffers that it may: then messages are better copied out of them. */
    boolean isUserSlow() {
        return heldByUser.held() >= allowance();
    }

    /** Whether there was no memory for a receive when it was last tried. */
    public boolean isStarved() {
        return starved;
    }

    /** Counts each time that the receives run low, until they have recovered. */
    private void watch(int posted, int depth) {
        if (posted < depth / LOW_RECEIVES_DIVISOR) {
            if (!low) {
                low = true;
                counters.receiveQueueLow();
            }
        } else {
            low = false;
        }
    }

    /** Grants the peer as many more message frames as may be granted, with the next header. */
    public void grant(int undelivered) {
        grantsDue = false;
        int more = grantable(undelivered);
        if (more > 0) {
            credits.grant(more);
            if (credits.isMoreWanted()) {
                header.changed();
            }
        }
    }

    /**
     * The number of further message frames that may be granted: their receives are posted. With a shared queue, this
     * call promises them.
     */
    public int grantable(int undelivered) {
        SharedReceives.Seat mine = seat;
        if (mine != null) {
            // What was used is granted again, and twice that to a peer that wants more: others have the rest.
            int has = credits.outstandingGrant();
            int room = greatest() - has - occupied(undelivered);
            int wanted = credits.isMoreWanted() ? 2 * usedOfShared : usedOfShared;
            int more = mine.promise(Math.min(room, Math.max(wanted, has == 0 ? 1 : 0)));
            if (more > 0) {
                usedOfShared = 0;
            }
            return more;
        }
        return ownReceives == null ? 0 : ownReceives.posted() - Credits.CONTROL_RECEIVES - credits.outstandingGrant();
    }

    /** A receive has completed: its buffer, or null if no such receive is posted. */
    public @Nullable ByteBuf take(long workId) {
        if (shared != null) {
            return shared.take(workId);
        }
        receivesDue = true;
        return ownReceives == null ? null : ownReceives.take(workId);
    }

    /** The content of a receive is no longer needed: its buffer serves the next. */
    public void reuse(ByteBuf buffer) {
        if (shared != null) {
            shared.spare(buffer);
        } else if (ownReceives != null) {
            ownReceives.spare(buffer);
        } else {
            buffer.release();
        }
    }

    /** The user gets a receive buffer. */
    void delivered(ByteBuf buffer) {
        if (buffer instanceof RegisteredByteBuf receive) {
            heldByUser.charge(1);
            receive.chargeTo(heldByUser, 1);
        }
    }

    /** The peer's last header said that it had to wait for grants. */
    public void peerWaited() {
        peerWaited = true;
        longWanted = true;
        receivesDue = true;
    }

    /** The peer's last header asked for more grants. */
    public void peerAsked() {
        longWanted = true;
        receivesDue = true;
        header.changed();
    }

    /** A receive for control was used: it is posted again before anything else, and acknowledged only then. */
    public void controlCame() {
        controlCame = true;
        receivesDue = true;
    }

    /** A message frame of so many bytes used one receive; returns the violation, or null. */
    public @Nullable String messageFrameCame(int frameBytes) {
        String violation = credits.messageFrameReceived();
        grantsDue = true;
        if (isShort() && frameBytes > firstBytes / MUCH_OF_SHORT_DIVISOR) {
            longWanted = true;
            receivesDue = true;
        }
        if (seat != null) {
            seat.used();
            usedOfShared++;
            arrivedBytes += frameBytes;
            reclaimAsked &= credits.isReturnAwaited();
        }
        return violation;
    }

    /**
     * The shared queue runs short of receives: the next frame asks the peer to return grants, once until it has used or
     * returned those that it has now.
     */
    private void reclaim() {
        if (open && !reclaimAsked && credits.outstandingGrant() > 1) {
            reclaimAsked = true;
            questions++;
            credits.awaitReturn();
            header.reclaim();
            waiter.onMemoryFreed(); // called while another connection is changing its state
        }
    }

    /** Which question after grants the peer has still to answer, by messages or a RETURN; 0 if it owes no answer. */
    public int openQuestion() {
        return reclaimAsked ? questions : 0;
    }

    /** The bytes of the frames that used shared receives. */
    public long arrivedBytes() {
        return arrivedBytes;
    }

    /** The peer gives grants back; returns the violation, or null. */
    public @Nullable String grantsReturned(int frames) {
        if (shared == null) {
            return "it returned grants that it was not asked for";
        }
        String violation = credits.takeBack(frames);
        if (violation == null && seat != null) {
            seat.returned(frames);
            reclaimAsked &= credits.isReturnAwaited();
        }
        return violation;
    }

    /** The endpoint is gone: nothing is posted any more. */
    public void release() {
        if (awaitingMemory) {
            awaitingMemory = false;
            buffers.forgetReceives(waiter);
        }
        if (seat != null) {
            seat.leave();
            seat = null;
        } else if (ownReceives != null) {
            ownReceives.release();
        }
        if (reservation != null) {
            reservation.release();
        }
    }

    @Override
    public String toString() {
        return (ownReceives == null ? "" : "posted " + ownReceives.posted() + ", ") + "with the user "
                + heldByUser.held() + (starved ? ", no memory" : "");
    }
}
