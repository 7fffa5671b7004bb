package org.verbena.testing;

import io.netty.channel.IoEventLoop;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.WorkCompletionException;
import org.verbena.transport.WorkStatus;
import org.verbena.transport.software.ConnectionOutcome;
import org.verbena.transport.software.Placement;
import org.verbena.transport.software.SoftwareDomain;
import org.verbena.transport.software.SoftwareEndpoint;
import org.verbena.transport.software.SoftwareIoHandler;
import org.verbena.transport.software.SoftwareReceiveQueue;
import org.verbena.transport.spi.EndpointHandler;
import org.verbena.transport.spi.EndpointOptions;
import org.verbena.transport.spi.WorkRequest;

/** One end of a connection within the process. What is not said to be for any thread is for the loop's. */
final class InProcessEndpoint extends SoftwareEndpoint implements InProcessIoHandler.Member {
    private static final Logger LOG = LoggerFactory.getLogger(InProcessEndpoint.class);

    private static final int RECEIVE_BUFFER_BYTES = 16 << 10;

    /** Beyond it a message goes by rendezvous: so short that tests see both ways. */
    private static final int RENDEZVOUS_BYTES = 32 << 10;

    private static final int BATCH_MESSAGES = 16;

    /** Taken in one turn, before other connections of the loop have theirs. */
    private static final int TURN_DELIVERIES = 64;

    private final ConnectionOutcome outcome = new ConnectionOutcome();
    private final PeerRequests peerRequests;
    private @Nullable InProcessIoHandler io;
    private @Nullable Connection connection;
    private @Nullable SendQueue out;
    private @Nullable Lane in;

    /** The last words to the peer when the connection ends; null for the usual ones. */
    private @Nullable Delivery lastWords;

    // While it comes up.
    private @Nullable InProcessBinding binding;
    private @Nullable ConnectRequest asked;
    private @Nullable ConnectRequest accepting;
    private @Nullable ScheduledFuture<?> timeout;
    private int ownPort;

    InProcessEndpoint(
            IoEventLoop loop,
            SoftwareDomain domain,
            EndpointOptions options,
            EndpointHandler handler,
            InetSocketAddress remoteAddress,
            boolean initiator) {
        super(loop, domain, options, handler, remoteAddress, initiator);
        peerRequests = new PeerRequests(this, domain, connectionMemory);
    }

    // Connecting.

    /**
     * Begins to connect.
     *
     * @param bound has the local address; null for any
     */
    void connect(@Nullable InProcessBinding bound) {
        binding = bound;
        if (!join()) {
            return;
        }
        timeout = loop.schedule(this::onTimeout, options.connectTimeoutMillis(), TimeUnit.MILLISECONDS);
        ask();
    }

    /** Asks the server, now or when the silence ends. */
    private void ask() {
        if (!isComingUp()) {
            return;
        }
        InProcessListener listener = Ports.listener(remoteAddress.getPort());
        Faults faults = Faults.find(remoteAddress.getPort());
        if (faults != null && faults.delaysUntilResumed(() -> execute(this::ask))) {
            return;
        }
        if (listener == null || !InProcessProvider.isLocal(remoteAddress) || (faults != null && faults.isRefusing())) {
            endNow(nobodyListens());
            return;
        }
        beginTurn();
        try {
            InProcessBinding bound = binding;
            InetSocketAddress local = bound == null ? takePort() : bound.localAddress();
            if (prepare(local, sharedReceives())) {
                ConnectRequest request = new ConnectRequest(this, listener, local, options);
                asked = request;
                if (!listener.offer(request)) {
                    fail(nobodyListens());
                }
            }
        } catch (RuntimeException | Error e) {
            fail(e);
        }
        leaveTurn();
    }

    /** Returns whether to go on. */
    private boolean join() {
        InProcessIoHandler found = InProcessIoHandler.of(loop);
        if (found == null) {
            endNow(new ConnectionException("setting up with " + remoteAddress + ": the event loop was shut down"));
            return false;
        }
        if (!isComingUp()) {
            turn();
            return false;
        }
        io = found;
        found.add(this);
        return true;
    }

    private @Nullable SoftwareReceiveQueue sharedReceives() {
        InProcessIoHandler with = io;
        return with != null && options.sharedReceiveQueue() ? with.sharedReceiveQueue() : null;
    }

    private InetSocketAddress takePort() {
        InetAddress to = remoteAddress.getAddress();
        InetSocketAddress any =
                new InetSocketAddress(to.isAnyLocalAddress() ? InetAddress.getLoopbackAddress() : to, 0);
        InetSocketAddress taken = Ports.take(any, this);
        ownPort = taken.getPort();
        return taken;
    }

    private ConnectionException nobodyListens() {
        return new ConnectionException.Rejected(
                "connecting to " + remoteAddress + ": nobody listens there: no server of this process has that port"
                        + " with the provider " + InProcessProvider.NAME,
                new byte[0]);
    }

    private void onTimeout() {
        if (isComingUp()) {
            endNow(new ConnectionException.TimedOut(
                    "connecting with " + remoteAddress + ": not established within the connect timeout"));
        }
    }

    /** The server has said no. Any thread. */
    void rejected(byte[] reason) {
        execute(() -> {
            if (isComingUp()) {
                String said = reason.length == 0 ? "" : " with " + reason.length + " bytes of private data";
                endNow(new ConnectionException.Rejected(
                        "connecting to " + remoteAddress + ": the peer rejected the connection" + said, reason));
            }
        });
    }

    /** The server has said yes, on its loop. */
    private boolean accepted(Connection made, int depth, byte[] privateData) {
        return execute(() -> {
            if (!isComingUp()) {
                made.toServer().send(Delivery.end(Delivery.Kind.LOST));
                return;
            }
            beginTurn();
            up(made, made.toServer(), made.toClient(), depth, privateData);
            leaveTurn();
        });
    }

    private void up(Connection made, Lane to, Lane from, int depth, byte[] privateData) {
        endSetup();
        connection = made;
        out = new SendQueue(sendRing, to, depth);
        in = from;
        becomeConnected(depth, privateData);
    }

    // Accepting.

    /** Takes a client over. */
    void accept(ConnectRequest request) {
        accepting = request;
        if (!join()) {
            return;
        }
        if (request.isGone()) {
            accepting = null;
            endNow(new ConnectionException(
                    "accepting from " + remoteAddress + ": the peer disconnected before it was accepted"));
            return;
        }
        beginTurn();
        try {
            if (prepare(request.localAddress(), sharedReceives())) {
                answer(request);
            }
        } catch (RuntimeException | Error e) {
            fail(e);
        }
        leaveTurn();
    }

    private void answer(ConnectRequest request) {
        InProcessEndpoint client = request.client();
        int depth = Math.min(options.readDepth(), request.readDepth());
        Faults faults = Faults.at(request.localAddress().getPort());
        Connection made = new Connection(client, this, faults);
        faults.add(made);
        accepting = null;
        connection = made;
        if (!client.accepted(made, depth, options.privateData())) {
            fail(new ConnectionException("accepting from " + remoteAddress + ": its event loop has ended"));
            return;
        }
        up(made, made.toClient(), made.toServer(), depth, request.privateData());
    }

    /** Whatever it was waiting for: that is over. */
    private void endSetup() {
        ScheduledFuture<?> waiting = timeout;
        timeout = null;
        asked = null;
        if (waiting != null) {
            waiting.cancel(false);
        }
    }

    // What is on its way.

    /** Something has arrived, or has been lost. Any thread. */
    void deliver() {
        execute(this::receive);
    }

    /** More may be sent. Any thread. */
    void roomAgain() {
        execute(this::turn);
    }

    /** The connection is lost. Any thread. */
    void dropped() {
        execute(() -> {
            if (isOpen()) {
                endNow(lost("was dropped"));
            }
        });
    }

    private ConnectionException lost(String how) {
        return new ConnectionException.Lost("the connection with " + remoteAddress + " " + how);
    }

    private boolean execute(Runnable task) {
        try {
            loop.execute(task);
            return true;
        } catch (RejectedExecutionException e) {
            // The loop has ended, and this connection with it.
            LOG.debug("{} after its loop has ended", this, e);
            return false;
        }
    }

    private void receive() {
        Lane from = in;
        if (from == null || !isOpen()) {
            return;
        }
        boolean more = true;
        beginTurn();
        try {
            for (int i = 0; i < TURN_DELIVERIES && more; i++) {
                Delivery next = isOpen() ? from.next() : null;
                more = next != null;
                if (next != null) {
                    take(next);
                }
            }
            leaveTurn();
        } catch (Throwable t) {
            onFailure(t);
        }
        if (more && isOpen()) {
            deliver(); // the lane counts on it
        }
    }

    private void take(Delivery next) {
        switch (next.kind()) {
            case MESSAGE -> peerRequests.onMessage(next);
            case WRITE -> peerRequests.onWrite(next);
            case READ -> peerRequests.onRead(next);
            case FETCH_AND_ADD, COMPARE_AND_SWAP -> peerRequests.onAtomic(next);
            case ANSWER -> onAnswer(next);
            case DISCONNECTED -> endWithPeer(true);
            case LOST -> fail(lost("has ended: the peer has failed, and its log says why"));
            case REFUSED -> onRefused(next);
        }
    }

    private void onAnswer(Delivery answer) {
        int slot = requireOut().awaitedSlot(answer.request());
        if (sendRing.opcode(slot) == WorkRequest.Opcode.READ) {
            Placement read = new Placement();
            sendRing.aim(slot, read);
            read.place(MemorySegment.ofArray(answer.bytes()), 0, answer.lengthBytes());
            read.end();
        } else {
            sendRing.region(slot, 0)
                    .segment()
                    .set(ValueLayout.JAVA_LONG_UNALIGNED, sendRing.offset(slot, 0), answer.operand());
        }
        requireOut().answered();
        onAnswered();
    }

    private void onRefused(Delivery refusal) {
        if (requireOut().has(refusal.request())) {
            outcome.requestFailed(refusal.request(), refusal.status());
        }
        fail(new WorkCompletionException(
                "an operation that the peer " + remoteAddress + " refused", refusal.status(), 0));
    }

    /** The answer to the peer's read or atomic. */
    void answer(Delivery answer) {
        requireOut().lane().send(answer);
    }

    /** The peer did what it must not: it gets to know which of its requests that was. */
    void refuse(WorkStatus status, long request, String why) {
        if (!isOpen()) {
            return;
        }
        lastWords = Delivery.refused(request, status);
        String text = "refused " + why + "; from " + remoteAddress + ", which was notified: " + status.meaning();
        LOG.warn(text);
        fail(refusal(text));
    }

    private SendQueue requireOut() {
        SendQueue now = out;
        if (now == null) {
            throw new IllegalStateException("not connected");
        }
        return now;
    }

    // What the core asks.

    @Override
    public int rendezvousBytes(int peerReceiveBytes) {
        return RENDEZVOUS_BYTES;
    }

    @Override
    protected void pump() {
        SendQueue queue = out;
        if (queue != null) {
            queue.pump();
        }
    }

    @Override
    public boolean isHeadDone() {
        SendQueue queue = out;
        return queue != null && queue.isHeadDone();
    }

    @Override
    protected @Nullable SoftwareIoHandler io() {
        return io;
    }

    @Override
    public @Nullable Placement receiveInProgress() {
        return peerRequests.receiveInProgress();
    }

    @Override
    public ConnectionOutcome outcome() {
        return outcome;
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

    // The end.

    @Override
    protected void leavePeer() {
        ConnectRequest waited = asked;
        if (waited != null) {
            waited.leave();
        }
        endSetup();
        ConnectRequest unanswered = accepting;
        if (unanswered != null) {
            accepting = null;
            unanswered.client().rejected(rejection());
        }
        Connection ended = connection;
        if (ended != null) {
            Delivery words = lastWords;
            Delivery.Kind usual = outcome.cause() == null ? Delivery.Kind.DISCONNECTED : Delivery.Kind.LOST;
            laneFrom(ended).send(words == null ? Delivery.end(usual) : words);
        }
    }

    private Lane laneFrom(Connection of) {
        return initiator ? of.toServer() : of.toClient();
    }

    @Override
    protected void release() {
        Connection ended = connection;
        if (ended != null) {
            connection = null;
            (initiator ? ended.toClient() : ended.toServer()).cut();
            ended.faults().remove(ended);
        }
        out = null;
        in = null;
        InProcessIoHandler with = io;
        if (with != null) {
            with.remove(this);
        }
        if (binding != null) {
            binding.release();
        } else if (ownPort != 0) {
            Ports.release(ownPort, this);
        }
    }

    @Override
    protected void distrust() {
        lastWords = Delivery.end(Delivery.Kind.LOST);
    }

    @Override
    protected void closeSocketNow() {
        Connection now = connection;
        if (now != null) {
            laneFrom(now).send(Delivery.end(Delivery.Kind.LOST));
        }
    }

    @Override
    public String toString() {
        return describe(InProcessProvider.NAME);
    }
}
