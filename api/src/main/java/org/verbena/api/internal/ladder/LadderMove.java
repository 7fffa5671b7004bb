package org.verbena.api.internal.ladder;

import io.netty.channel.Channel;
import io.netty.channel.EventLoop;
import io.netty.util.concurrent.DefaultPromise;
import io.netty.util.concurrent.Future;
import io.netty.util.concurrent.GlobalEventExecutor;
import io.netty.util.concurrent.Promise;
import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.api.internal.request.Link;
import org.verbena.api.internal.request.Links;
import org.verbena.api.internal.request.Messenger;
import org.verbena.api.internal.stat.RungCounters;
import org.verbena.api.ladder.LadderOptions;
import org.verbena.transport.ConnectionException;

/**
 * Moves a client to better rungs of its ladder as they become available. All of it runs on one loop, to which the other
 * loops forward their events.
 *
 * <pre>{@code
 * WAITING --time--> CLIMBING --up--> EMPTYING --quiet--> FENCING --passed, or lost--> RELEASING --open--> WAITING
 *    ^                  |                                    |                            ^
 *    +---none is up-----+                                    +---not passed in time-------+  (to the old connection)
 * }</pre>
 *
 * <p>From EMPTYING to RELEASING new operations of the client are held ({@link Links}). The fence is a frame behind
 * everything that was sent before; the server answers it when it has handled all of that. So no message overtakes
 * another because of the move. The old connection ends when its last request has completed. The server closes it, since
 * an end loses what it has not sent when the other end closes. SETTLED is the end: the best rung, a lost connection, or
 * a closed client.
 */
public final class LadderMove {
    private static final Logger LOG = LoggerFactory.getLogger(LadderMove.class);

    /**
     * How long the server may take to handle what was sent before; after that the client stays on the old connection.
     */
    private static final long FENCE_NANOS = TimeUnit.SECONDS.toNanos(2);

    /** How the client connects with some of its rungs. */
    public interface Climb {
        /** Whether an attempt could succeed. Does not connect. */
        boolean canTry(List<String> rungs);

        /** Connects. */
        Future<? extends Channel> connect(List<String> rungs);
    }

    private enum Phase {
        WAITING,
        CLIMBING,
        EMPTYING,
        FENCING,
        RELEASING,
        SETTLED
    }

    private final EventLoop loop;
    private final Links links;
    private final LadderOptions options;
    private final long everyNanos;
    private final Climb climb;

    /** Done when nothing is held any more and nothing will be, with the connections that may still be open. */
    private final Promise<List<Channel>> settled = new DefaultPromise<>(GlobalEventExecutor.INSTANCE);

    // Confined to the loop.
    private Phase phase = Phase.WAITING;
    private boolean closing;
    private @Nullable Future<?> timer;
    private @Nullable Future<? extends Channel> climbing;
    private @Nullable Link next;
    private LadderMoveFlight flight = new LadderMoveFlight();
    private final List<Channel> leaving = new ArrayList<>();

    /**
     * Creates one.
     *
     * @param loop of its own state
     * @param links of a client that is connected
     * @param options of the ladder
     * @param every how often to try
     * @param climb connects
     */
    public LadderMove(EventLoop loop, Links links, LadderOptions options, Duration every, Climb climb) {
        this.loop = loop;
        this.links = links;
        this.options = options;
        this.everyNanos = TimeUnit.NANOSECONDS.convert(every);
        this.climb = climb;
    }

    /** Begins. Any thread. */
    public void begin() {
        Link first = links.link();
        onLoop(first.channel().eventLoop(), () -> {
            boolean fences = first.messenger().peerTakes0(Messenger.TAKES_FENCES);
            bring(() -> begin0(first, fences));
        });
    }

    /**
     * Ends moving. Any thread; idempotent.
     *
     * @return done when nothing is held any more, with the connections that may be open
     */
    public Future<List<Channel>> close() {
        bring(this::close0);
        return settled;
    }

    private void bring(Runnable event) {
        if (loop.inEventLoop()) {
            event.run();
        } else {
            onLoop(loop, event);
        }
    }

    /**
     * Runs an event on the loop. If the loop has ended, fails all held operations, since no thread would start them.
     */
    private void onLoop(EventLoop where, Runnable event) {
        try {
            where.execute(event);
        } catch (RejectedExecutionException ended) {
            LOG.debug(
                    "{}: moves no more, since the event loop has ended",
                    links.link().channel(),
                    ended);
            links.giveUp(links.link());
            settled.trySuccess(List.of(links.link().channel()));
        }
    }

    private void begin0(Link first, boolean fences) {
        if (!fences) {
            LOG.info(
                    "{} stays on its rung: its server is of another release, which clients cannot move from",
                    first.channel());
            settle0();
            return;
        }
        arrive0(first);
    }

    /** The client has this connection. */
    private void arrive0(Link at) {
        at.channel().closeFuture().addListener(closed -> bring(() -> lost0(at)));
        wait0();
    }

    private void wait0() {
        if (closing || better().isEmpty() || !links.link().channel().isActive()) {
            settle0();
            return;
        }
        phase = Phase.WAITING;
        // Up to a quarter later: clients of one server that began together need not try together.
        long delayNanos = everyNanos + ThreadLocalRandom.current().nextLong(everyNanos / 4 + 1);
        timer = loop.schedule(this::try0, delayNanos, TimeUnit.NANOSECONDS);
    }

    private List<String> better() {
        List<String> rungs = options.rungs();
        return rungs.subList(0, Math.max(0, rungs.indexOf(rung(links.link()))));
    }

    private static String rung(Link link) {
        return Objects.requireNonNull(link.ladder(), "connected by a ladder").rung();
    }

    private void try0() {
        timer = null;
        List<String> better = better();
        try {
            if (!climb.canTry(better)) {
                wait0();
                return;
            }
            phase = Phase.CLIMBING;
            Future<? extends Channel> connecting = climb.connect(better);
            climbing = connecting;
            connecting.addListener(done -> bring(() -> climbed0(connecting)));
        } catch (RuntimeException failure) {
            LOG.debug("{}: cannot try {}", links.link().channel(), better, failure);
            wait0();
        }
    }

    private void climbed0(Future<? extends Channel> done) {
        climbing = null;
        if (phase != Phase.CLIMBING) { // closed, or lost, in the meantime
            if (done.isSuccess()) {
                done.getNow().close();
            }
            return;
        }
        if (!done.isSuccess()) {
            LOG.debug("{} stays on its rung", links.link().channel(), done.cause());
            wait0();
            return;
        }
        Link up;
        try {
            up = Link.of(done.getNow());
        } catch (ConnectionException lost) {
            LOG.debug("{} stays on its rung", links.link().channel(), lost);
            wait0();
            return;
        }
        next = up;
        phase = Phase.EMPTYING;
        flight = new LadderMoveFlight();
        flight.begin();
        links.hold(up.channel().eventLoop(), () -> bring(this::fence0));
    }

    private void fence0() {
        if (closing) {
            release0(false);
            return;
        }
        phase = Phase.FENCING;
        Future<byte[]> fence = links.link().messenger().fence(FENCE_NANOS);
        fence.addListener(done -> bring(() -> fenced0(done)));
        if (fence.isDone()) { // the connection's loop may have ended, and call no listener
            fenced0(fence);
        }
    }

    private void fenced0(Future<?> fence) {
        if (phase != Phase.FENCING) {
            return; // closed in the meantime, or already known
        }
        Link old = links.link();
        if (!fence.isSuccess()) {
            LOG.debug("{}: the server has not handled what was sent before", old.channel(), fence.cause());
        }
        // Nothing follows on a lost connection; its channel may notice the loss later than the fence does.
        release0(fence.isSuccess() || !old.channel().isActive() || fence.cause() instanceof ConnectionException);
    }

    private void release0(boolean wanted) {
        phase = Phase.RELEASING;
        Link old = links.link();
        Link up = Objects.requireNonNull(next);
        next = null;
        boolean moves = wanted && up.channel().isActive();
        Link to = moves ? up : old;
        Link other = moves ? old : up;
        leaving.add(other.channel());
        other.channel().closeFuture().addListener(closed -> bring(() -> leaving.remove(other.channel())));
        if (moves) {
            old.messenger().leave();
        } else {
            up.channel().close();
        }
        links.release(to, () -> bring(() -> opened0(old, up, moves)));
    }

    private void opened0(Link old, Link up, boolean moved) {
        flight.finish((InetSocketAddress) up.channel().remoteAddress(), rung(old), rung(up), moved);
        if (moved) {
            RungCounters.countMovedUp(rung(up));
            LOG.info("{} has moved up from {} to {}", up.channel(), rung(old), rung(up));
            arrive0(up);
        } else {
            LOG.debug("{} has not moved to {}", old.channel(), rung(up));
            wait0();
        }
    }

    /** The connection that the client had then has closed. */
    private void lost0(Link at) {
        if (at.equals(links.link()) && (phase == Phase.WAITING || phase == Phase.CLIMBING)) {
            settle0();
        }
    }

    private void close0() {
        closing = true;
        switch (phase) {
            case WAITING, CLIMBING -> settle0();
            case FENCING -> release0(false);
            case EMPTYING, RELEASING, SETTLED -> {
                // the attempt under way ends soon, and sees that this is closing
            }
        }
    }

    private void settle0() {
        phase = Phase.SETTLED;
        links.settle();
        Future<?> waiting = timer;
        if (waiting != null) {
            waiting.cancel(false);
            timer = null;
        }
        Future<? extends Channel> connecting = climbing;
        if (connecting != null) {
            connecting.cancel(false);
        }
        List<Channel> open = new ArrayList<>(leaving);
        open.add(links.link().channel());
        settled.trySuccess(open);
    }
}
