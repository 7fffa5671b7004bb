package org.verbena.transport.shm;

import io.netty.buffer.ByteBuf;
import io.netty.channel.IoEventLoop;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.WorkCompletionException;
import org.verbena.transport.WorkStatus;
import org.verbena.transport.shm.ffm.SharedFile;
import org.verbena.transport.software.ConnectionOutcome;
import org.verbena.transport.software.InboundReads;
import org.verbena.transport.software.Placement;
import org.verbena.transport.software.SoftwareEndpoint;
import org.verbena.transport.software.SoftwareIoHandler;
import org.verbena.transport.spi.EndpointHandler;
import org.verbena.transport.spi.EndpointOptions;

/** One connection through shared memory. */
final class ShmEndpoint extends SoftwareEndpoint
        implements ControlSocket.Owner, RingReceiver.Owner, Publisher.Announcer, LoopDoorbell.Member {
    private static final Logger LOG = LoggerFactory.getLogger(ShmEndpoint.class);

    private static final int RECEIVE_BUFFER_BYTES = 63 << 10;
    /** Beyond it a message that the receiver copies once is quicker than one through the ring. */
    private static final int RENDEZVOUS_BYTES = 32 << 10;

    /** Of 16, 32 and 1,000 this was the fastest. */
    private static final int BATCH_MESSAGES = 16;

    private final ShmContext context;
    private final PeerAccess access;
    private final ConnectionOutcome outcome = new ConnectionOutcome();
    private final ShmSetup setup;
    private @Nullable ControlSocket socket;
    private @Nullable Rings rings;

    /** The last message to the peer when the connection ends; null for the end only. */
    private @Nullable ByteBuffer lastWords;

    /** How the peer has ended; null before. */
    private Control.@Nullable Events end;

    /** Records that can have been in the ring then: a peer that keeps writing is not read for ever. */
    private int recordsLeft;

    /** Ticks that the peer has owed something without any progress. */
    private int stalledTicks;

    /** Since the last tick the peer has written or read something. */
    private boolean progress;

    /** This connection by itself, which is polled until its peer rings at the doorbell. */
    private final Polled single = new Single();

    /** Null if the peer's process is not known. */
    private @Nullable LoopDoorbell doorbell;

    private final Runnable pollTurn = this::pollInTurn;

    /** The peer sends much: {@link #pollTurn} goes on when others have had their turns. */
    private boolean isPollScheduled;

    private int slot;

    /** The peer rings at the doorbell, and does nothing else any more. */
    private boolean hasRung;

    /** The mapped file and the ends of its rings. */
    private record Rings(
            MemorySegment memory,
            @Nullable PeerProcess process,
            RingReader reader,
            RingReceiver in,
            RingSender out,
            Ringer ringer,
            Control control,
            DirectOperations direct,
            PeerFiles peerFiles,
            Publisher publisher) {
        /** Releases the peer's memory, and withdraws this side's. */
        void close() {
            in.close();
            direct.close();
            ringer.close();
            peerFiles.close();
            // An access after that would end the process: the owner of these parts has none any more.
            publisher.close(() -> PeerMappings.ALL.removeRing(memory));
            if (process != null) {
                process.leave();
            }
        }
    }

    ShmEndpoint(
            IoEventLoop loop,
            ShmContext context,
            EndpointOptions options,
            EndpointHandler handler,
            InetSocketAddress remoteAddress,
            boolean initiator) {
        super(loop, context.domain(), options, handler, remoteAddress, initiator);
        this.context = context;
        access = new PeerAccess(domain, connectionMemory);
        setup = new ShmSetup(this, loop, context, options, remoteAddress);
    }

    static void checkOptions(EndpointOptions options) {
        if (options.minRnrTimerMicros() != EndpointOptions.DEVICE_DEFAULT) {
            throw new ConnectionException("minRnrTimerMicros " + options.minRnrTimerMicros()
                    + " is for InfiniBand and RoCE: the shared-memory provider never repeats a send");
        }
        if (options.ackTimeoutMicros() != EndpointOptions.DEVICE_DEFAULT) {
            throw new ConnectionException("ackTimeoutMicros " + options.ackTimeoutMicros()
                    + " is for InfiniBand and RoCE: the shared-memory provider never repeats anything");
        }
    }

    // Setting up.

    ShmSetup setup() {
        return setup;
    }

    void setSocket(ControlSocket made) {
        socket = made;
    }

    /** The peer is reached: what is posted may be prepared. Returns whether to continue. */
    boolean prepare(InetSocketAddress local) {
        return prepare(
                local, options.sharedReceiveQueue() ? requireSocket().io().sharedReceiveQueue() : null);
    }

    @Override
    protected int receiveBufferBytes() {
        return RECEIVE_BUFFER_BYTES;
    }

    @Override
    protected int mostBatchMessages() {
        return BATCH_MESSAGES;
    }

    @Override
    protected boolean takesImmediateData() {
        return true;
    }

    @Override
    protected boolean doesAtomics() {
        return true;
    }

    /**
     * Both sides have agreed.
     *
     * @param memory the mapped file; this endpoint's from now on
     * @param peer its process, which this endpoint leaves; null if its files are not to be mapped
     * @param ringBytes of one direction
     * @param depth reads and atomics out, in each direction
     * @param privateData of the peer
     */
    void becomeConnected(
            MemorySegment memory, @Nullable PeerProcess peer, int ringBytes, int depth, byte[] privateData) {
        InboundReads inboundReads = new InboundReads(depth);
        int side = initiator ? 0 : 1;
        PeerFiles peerFiles = new PeerFiles(peer);
        DirectOperations direct =
                new DirectOperations(RegionTable.of(memory, 1 - side, ringBytes), peerFiles, sendRing);
        RingReader reader = new RingReader(memory, 1 - side, ringBytes);
        RingWriter writer = new RingWriter(memory, side, ringBytes);
        RingSender out = new RingSender(writer, sendRing, inboundReads, direct, depth);
        RingReceiver in = new RingReceiver(reader, this, access, sendRing, out, inboundReads);
        Publisher publisher = new Publisher(context.files(), RegionTable.of(memory, side, ringBytes), loop, this);
        access.publishWith(publisher);
        Ringer ringer = new Ringer(writer, peer);
        Control control = new Control(peerFiles, ringer);
        rings = new Rings(memory, peer, reader, in, out, ringer, control, direct, peerFiles, publisher);
        becomeConnected(depth, privateData);
        if (isConnected() && !joinDoorbell(peer) && initiator) {
            setup.showThatPeerIsKnown(requireSocket());
        }
        wake();
    }

    /** Returns whether the peer was sent where to ring. */
    private boolean joinDoorbell(@Nullable PeerProcess peer) {
        if (peer == null) {
            return false;
        }
        LoopDoorbell found = requireSocket().io().doorbell(peer);
        int joined = found.join(this);
        if (joined < 0) {
            return false;
        }
        doorbell = found;
        slot = joined;
        return found.announce(this, joined);
    }

    @Override
    public void announceDoorbell(SharedFile page, int number) {
        say(Control.doorbell(page.descriptor(), page.identity().inode(), number));
    }

    // What the user asks.

    @Override
    public int rendezvousBytes(int peerReceiveBytes) {
        return RENDEZVOUS_BYTES;
    }

    @Override
    public boolean trySend(long first, long second, ByteBuf rest, int index, int restBytes) {
        assert loop.inEventLoop();
        Rings now = rings;
        if (!isConnected() || now == null) {
            return false;
        }
        try {
            boolean taken = now.out.trySend(first, second, rest, index, restBytes);
            if (taken) {
                countCompletion(); // of the work that it stands for
            }
            return taken;
        } catch (RingException e) {
            broken("what this side sends", e);
            return false;
        }
    }

    @Override
    public boolean hasSentCopies() {
        Rings now = rings;
        return now == null || !now.out.isUnpublished();
    }

    @Override
    public void allowRemoteAccess(boolean allowed) {
        super.allowRemoteAccess(allowed);
        Rings now = rings;
        if (!allowed && now != null) {
            now.publisher.withdrawAll();
        }
    }

    /** The connection as the only one with its process. */
    private final class Single extends Polled {
        @Override
        int poll() {
            return ShmEndpoint.this.poll();
        }

        @Override
        boolean fallAsleep() {
            Rings now = rings;
            if (!isConnected() || now == null) {
                return true;
            }
            // Before it asks for room: a peer that clears an older request late looks then whether this side sleeps.
            now.reader.setSleeping(true);
            if (hasWork(now) || !now.out.awaitRoom()) {
                now.reader.setSleeping(false);
                return false;
            }
            return true;
        }

        @Override
        void awake() {
            Rings now = rings;
            if (now != null) {
                now.reader.setSleeping(false);
            }
        }
    }

    @Override
    public int pollRung() {
        Rings now = rings;
        if (now == null) {
            return 0;
        }
        if (!hasRung) {
            hasRung = true;
            requireSocket().io().removeAwake(single);
            // It may have been another's ring that came late: then the peer wakes this connection by itself still.
            now.reader.setSleeping(true);
        }
        int records = poll();
        pollAgainIfDue();
        return records;
    }

    @Override
    public int look() {
        return hasRung ? poll() : 0;
    }

    @Override
    public boolean awaitRing() {
        Rings now = rings;
        return !hasRung || isPollScheduled || now == null || !isConnected() || (!hasWork(now) && now.out.awaitRoom());
    }

    /**
     * What could not be done at once needs no ring of the peer. For the rest the peer has to ring: it may have cleared
     * a request for room that it had not answered, but rings after that, so each ring is followed by a new request.
     */
    private void pollAgainIfDue() {
        LoopDoorbell at = doorbell;
        if (at == null || !hasRung) {
            return;
        }
        if (at.isLooking()) {
            at.wake();
        } else if (!awaitRing()) {
            at.pollAgain(slot);
        }
    }

    private boolean hasWork(Rings now) {
        return now.reader.hasMore() || end != null || now.out.hasRoomAgain();
    }

    /** Returns how many records there were; 1 if they are left to a turn. */
    private int poll() {
        Rings now = rings;
        ControlSocket with = socket;
        if (!isConnected() || now == null || with == null || isInTurn()) {
            return 0;
        }
        with.io().countEndpointPoll();
        if (!hasWork(now)) {
            return 0;
        }
        if (!now.in.tookMuch()) {
            return handle(now);
        }
        if (!isPollScheduled) {
            isPollScheduled = true;
            with.io().runAfterPoll(pollTurn);
        }
        return 1;
    }

    private void pollInTurn() {
        isPollScheduled = false;
        Rings now = rings;
        if (isConnected() && now != null && !isInTurn()) {
            handle(now);
            pollAgainIfDue();
        }
    }

    private int handle(Rings now) {
        progress = true;
        beginTurn();
        int records = 1;
        try {
            records += receive(now);
            leaveTurn();
        } catch (Throwable t) {
            onFailure(t);
        }
        return records;
    }

    /** Reads a turn's worth of the ring, and ends the connection if the peer has, and nothing is left. */
    private int receive(Rings now) {
        int records = 0;
        try {
            if (now.reader.hasMore()) {
                progress = true;
                records = now.in.turn();
                if (now.reader.release()) {
                    ring(now);
                }
            }
        } catch (RingException | IllegalStateException e) {
            broken("what the peer wrote", e);
        }
        Control.Events how = end;
        if (how != null && isConnected()) {
            recordsLeft -= records;
            if (recordsLeft <= 0 || !now.reader.hasMore()) {
                onEnd(now, how);
            }
        }
        return records;
    }

    @Override
    protected void pump() {
        Rings now = rings;
        if (now == null || !now.out.hasWork()) {
            return;
        }
        try {
            now.out.pump();
            if (now.out.publish()) {
                ring(now);
            }
            wake(); // an answer, or room, may come soon
            if (!now.out.awaitRoom()) {
                pollAgainIfDue();
            }
            if (now.out.isPausing()) {
                scheduleTurn();
            }
        } catch (RingSender.RefusedException e) {
            access.denyClosed();
            refuse(WorkStatus.REMOTE_ACCESS_ERROR, e.request(), "a read: " + access.denial());
        } catch (RingException | IllegalStateException e) {
            broken("what this side sends", e);
        }
    }

    private void ring(Rings now) {
        long sleep = now.ringer.ring();
        if (sleep == 0) {
            return;
        }
        try {
            if (Control.wakePeer(requireSocket())) {
                now.ringer.woken(sleep);
            }
        } catch (IOException e) {
            // It is gone. Its end of the socket shows that as well, once what it left in the ring has been read.
            LOG.debug("{} cannot be woken: {}", this, e.toString());
        }
    }

    private void broken(String what, RuntimeException e) {
        fail(new ConnectionException(what + " to or from " + remoteAddress + ": " + e.getMessage(), e));
    }

    private void wake() {
        ControlSocket with = socket;
        if (hasRung) {
            wakeDoorbell();
        } else if (isConnected() && with != null) {
            with.io().wake(single);
        }
    }

    private void wakeDoorbell() {
        LoopDoorbell at = doorbell;
        if (at != null) {
            at.wake();
        }
    }

    // Events of the socket.

    @Override
    public void onUnread() {
        fail(new ConnectionException("the peer " + remoteAddress + " does not read what it is sent beside its ring"));
    }

    @Override
    public void onReadable() throws IOException {
        // The peer takes the loop for woken by anything that it has written here, whatever becomes of this connection.
        wakeDoorbell();
        if (isInTurn() || !isOpen()) {
            return;
        }
        if (isComingUp()) {
            setup.onReadable(requireSocket());
            return;
        }
        Rings now = rings;
        if (now == null || end != null) {
            return;
        }
        setup.onPeerSpeaks();
        beginTurn();
        try {
            Control.Events events = now.control.read(requireSocket());
            if (events != Control.Events.WOKEN) {
                onPeerEnded(now, events);
            }
        } catch (IOException e) {
            onPeerEnded(now, Control.Events.ENDED);
        } catch (RingException e) {
            broken("what the peer says", e);
        }
        if (isConnected()) {
            wake();
            if (hasRung) {
                now.reader.setSleeping(true);
            }
            receive(now);
        }
        leaveTurn();
        pollAgainIfDue();
    }

    @Override
    public void onLateBytes() {
        wakeDoorbell();
    }

    /** The peer has ended: what it wrote before still counts, however many turns it takes. */
    private void onPeerEnded(Rings now, Control.Events how) {
        end = how;
        recordsLeft = now.reader.mostRecords();
    }

    /** The peer has ended, and everything is read. */
    private void onEnd(Rings now, Control.Events how) {
        switch (how) {
            case DISCONNECTED -> endWithPeer(!now.in.isUnfinished());
            case TERMINATED -> {
                WorkStatus status = now.control.terminateStatus();
                long sequence = now.out.sequence(now.control.terminateRequest());
                if (sequence >= 0) {
                    outcome.requestFailed(sequence, status);
                }
                fail(new WorkCompletionException(
                        "an operation that the peer " + remoteAddress + " refused", status, 0));
            }
            default ->
                fail(new ConnectionException.Lost("the process of the peer " + remoteAddress
                        + " has ended, or closed the connection without a word"));
        }
    }

    @Override
    public void onTick() {
        Rings now = rings;
        if (!isConnected() || now == null) {
            return;
        }
        now.out.onTick();
        now.publisher.onTick();
        if (!now.out.isOwed() || progress) {
            progress = false;
            stalledTicks = 0;
            return;
        }
        int limit = context.options().stallTimeoutMillis();
        if (++stalledTicks > SoftwareIoHandler.TICKS_PER_STALL) {
            endNow(new ConnectionException.Lost("the peer " + remoteAddress + " did nothing for " + limit
                    + " ms while this side waited for " + (now.out.isBlocked() ? "room in its ring" : "an answer")
                    + " (org.verbena.shm.stallTimeoutMillis)"));
        }
    }

    @Override
    protected void distrust() {
        lastWords = null;
    }

    @Override
    protected void closeSocketNow() {
        ControlSocket now = socket;
        if (now != null) {
            now.closeNow();
        }
    }

    // Events of the receiver.

    @Override
    public void refuse(WorkStatus status, int request, String why) {
        if (!isOpen()) {
            return;
        }
        lastWords = Control.terminate(status, request);
        String text = "refused " + why + "; from " + remoteAddress + ", which was notified: " + status.meaning();
        context.strangers().warn(text);
        fail(refusal(text));
    }

    // Events of the publisher.

    @Override
    public void announce(int number, int descriptor, long lengthBytes, boolean isWritable) {
        say(Control.file(number, descriptor, lengthBytes, isWritable));
    }

    @Override
    public void freed(int number) {
        say(Control.freed(number));
    }

    @Override
    public void onStuck() {
        fail(new ConnectionException.Lost("the peer " + remoteAddress
                + " has stopped in the middle of a write into memory that was closed meanwhile"));
    }

    private void say(ByteBuffer words) {
        if (isConnected()) {
            requireSocket().send(words);
        }
    }

    // Events of the reports.

    @Override
    protected @Nullable SoftwareIoHandler io() {
        ControlSocket now = socket;
        return now == null ? null : now.ioOrNull();
    }

    @Override
    public boolean isHeadDone() {
        Rings now = rings;
        return now != null && now.out.isHeadDone();
    }

    @Override
    public @Nullable Placement receiveInProgress() {
        Rings now = rings;
        return now == null ? null : now.in.receiveInProgress();
    }

    @Override
    public ConnectionOutcome outcome() {
        return outcome;
    }

    // The end.

    @Override
    protected void release() {
        Rings ended = rings;
        if (ended != null) {
            rings = null;
            requireSocket().io().removeAwake(single);
            LoopDoorbell at = doorbell;
            if (at != null) {
                at.leave(slot);
            }
            ended.close();
        }
    }

    /** Reports the end to the peer, as far as possible, and closes the socket. */
    @Override
    protected void leavePeer() {
        setup.end();
        setup.unbind();
        ControlSocket now = socket;
        if (now == null || now.isClosed()) {
            return;
        }
        if (rings != null) {
            ByteBuffer words = lastWords;
            if (words != null) {
                now.send(words);
            } else if (outcome.cause() == null) {
                now.send(Control.disconnect());
            }
        } else if (setup.isAccepting()) {
            // Accepted, but not answered: this side cannot do it after all.
            now.send(setup.rejection(rejection()));
        }
        now.closeWhenSent();
    }

    private ControlSocket requireSocket() {
        ControlSocket now = socket;
        if (now == null) {
            throw new IllegalStateException("no socket yet");
        }
        return now;
    }

    @Override
    public String toString() {
        return describe("shm");
    }
}
