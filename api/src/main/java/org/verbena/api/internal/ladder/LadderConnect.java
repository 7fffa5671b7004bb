package org.verbena.api.internal.ladder;

import io.netty.bootstrap.Bootstrap;
import io.netty.channel.Channel;
import io.netty.channel.ChannelFactory;
import io.netty.channel.ChannelFuture;
import io.netty.channel.ChannelHandler;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelOption;
import io.netty.channel.ConnectTimeoutException;
import io.netty.channel.EventLoop;
import io.netty.util.concurrent.Future;
import io.netty.util.concurrent.FutureListener;
import io.netty.util.concurrent.Promise;
import java.net.InetSocketAddress;
import java.nio.channels.ClosedChannelException;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.api.internal.loop.LoopGroup;
import org.verbena.api.internal.loop.RdmaEventLoop;
import org.verbena.api.internal.stat.RungCounters;
import org.verbena.api.ladder.LadderCapability;
import org.verbena.api.ladder.LadderOptions;
import org.verbena.api.ladder.LadderResult;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.EndpointCapabilities;
import org.verbena.transport.spi.LoopClock;

/**
 * One attempt to connect with the rungs of a ladder, one after another and overlapping, until one is connected. All of
 * it runs on one loop, to which the loops of the channels forward their events.
 *
 * <pre>{@code
 * WAITING --its turn--> BEGUN --connected, has what is needed--> UP --chosen, and still up--> the result
 *    |                    |                                       |
 *    |                    +--failed--+---------lost---------------+
 *    |                               v
 *    +--cannot be tried-----------> OVER      (a rung that is not chosen is closed, once, when another is the result)
 * }</pre>
 *
 * @param <C> the channels' type
 */
public final class LadderConnect<C extends Channel> {
    private static final Logger LOG = LoggerFactory.getLogger(LadderConnect.class);

    /** The name of the rung that no provider carries. */
    public static final String TCP = "tcp";

    /** How long the loop of a rung may take before it begins to connect, the cost of a device's first use included. */
    private static final long BEGIN_MILLIS = 1_000;

    /** Netty's own. */
    private static final int DEFAULT_TIMEOUT_MILLIS = 30_000;

    private final EventLoop loop;
    private final Bootstrap template;
    private final ChannelHandler handler;
    private final InetSocketAddress address;
    private final LadderOptions options;
    private final LadderMemory memory;
    private final Kind<C> kind;
    private final Promise<C> promise;
    private final List<Rung> rungs;
    private final LadderFlight flight = new LadderFlight();
    private final LoopClock clock;
    private final long beganNanos;
    private final int timeoutMillis;

    // Confined to the loop.
    private final Deque<Rung> waiting = new ArrayDeque<>();
    private final List<Rung> begun = new ArrayList<>();
    private @Nullable Rung latest;
    private @Nullable Rung handing;
    private @Nullable Future<?> hedge;
    private boolean ended;

    private enum Phase {
        WAITING,
        BEGUN,
        UP,
        OVER
    }

    /**
     * The kind of channels that are connected.
     *
     * @param <C> their type
     */
    public interface Kind<C extends Channel> {
        C cast(Channel channel);

        /** The capabilities of a connection; null for plain TCP, which is not tried if any is needed. */
        @Nullable EndpointCapabilities capabilities(Channel connected);

        /** Whether plain TCP does not have an option. */
        boolean isForProviders(ChannelOption<?> option);

        /** Marks the channel that was chosen. */
        void mark(Channel channel, LadderResult result);

        /** The failure of a connect. */
        Exception failure(String message, boolean isTimeout);
    }

    /**
     * A rung, as it can be tried.
     *
     * @param obstacle why it cannot; empty if it can
     * @param isKnown whether a server is known to be there: then a slow start is no sign that there is none
     */
    public record Step(
            String name,
            @Nullable EventLoop loop,
            ChannelFactory<? extends Channel> channels,
            String obstacle,
            boolean isKnown) {
        /** Whether it can be tried. */
        boolean isOpen() {
            return obstacle.isEmpty();
        }
    }

    /**
     * A handler of a caller that also accepts a channel that its peer has closed in order before it was handed over.
     * The handler is not added to such a channel, which has no more events.
     */
    public interface TakesEnded {}

    private final class Rung {
        final Step step;
        Phase phase = Phase.WAITING;

        @Nullable LadderGate gate;

        /** Why it is not used, as far as is known. */
        String reason = "";

        @Nullable Throwable cause;

        @Nullable ChannelFuture connecting;

        long beganNanos;

        /** When it was connected or had ended. */
        long doneNanos;

        /** Whether it used up the delay. */
        boolean isSlow;

        Rung(Step step) {
            this.step = step;
        }

        /** Idempotent. */
        void close() {
            ChannelFuture begun = connecting;
            if (begun != null) {
                begun.channel().close();
            }
        }

        void over0(String why, @Nullable Throwable failure) {
            if (phase == Phase.BEGUN) {
                doneNanos = clock.nanoTime();
            }
            phase = Phase.OVER;
            reason = why;
            cause = failure;
        }

        void up0() {
            doneNanos = clock.nanoTime();
            phase = Phase.UP;
        }
    }

    /**
     * Prepares one.
     *
     * @param loop of this climb, by whose clock it goes
     * @param template options, attributes, local address; its handler goes to the channel that is chosen
     * @param address resolved
     * @param options of the ladder
     * @param steps the rungs that are allowed, the best first
     * @param memory of addresses
     * @param kind of channels
     */
    public LadderConnect(
            EventLoop loop,
            Bootstrap template,
            InetSocketAddress address,
            LadderOptions options,
            List<Step> steps,
            LadderMemory memory,
            Kind<C> kind) {
        this.loop = loop;
        clock = LoopGroup.clockOf(loop);
        beganNanos = clock.nanoTime();
        this.template = template;
        this.address = address;
        this.options = options;
        this.memory = memory;
        this.kind = kind;
        handler = Objects.requireNonNull(template.config().handler(), "the bootstrap has no handler");
        promise = ((RdmaEventLoop) loop).notifier().newPromise();
        rungs = steps.stream().map(Rung::new).toList();
        timeoutMillis = template.config().options().get(ChannelOption.CONNECT_TIMEOUT_MILLIS) instanceof Integer millis
                ? millis
                : DEFAULT_TIMEOUT_MILLIS;
    }

    /** Begins. Any thread. */
    public Future<C> connect() {
        promise.addListener(done -> {
            if (done.isCancelled()) {
                bring(this::cancel0);
            }
        });
        bring(this::start0);
        return promise;
    }

    private void bring(Runnable event) {
        if (loop.inEventLoop()) {
            event.run();
            return;
        }
        try {
            loop.execute(event);
        } catch (RejectedExecutionException gone) {
            // The loop has ended: no other thread works on this any more.
            LOG.debug("connecting to {}: the event loop has ended", address, gone);
            rungs.forEach(Rung::close);
            promise.tryFailure(new ClosedChannelException());
        }
    }

    private void start0() {
        flight.begin();
        List<Rung> last = new ArrayList<>();
        for (Rung rung : rungs) {
            if (!rung.step.isOpen()) {
                rung.over0(rung.step.obstacle(), null);
                continue;
            }
            String failure = memory.failure(address, rung.step.name());
            if (failure == null) {
                waiting.add(rung);
            } else {
                rung.reason = failure;
                last.add(rung);
            }
        }
        waiting.addAll(last);
        proceed0();
    }

    /** Takes the next step: hands over a connected rung, begins the next one if the latest has failed, or fails. */
    private void proceed0() {
        assert loop.inEventLoop();
        if (ended || handing != null) {
            return;
        }
        Rung best = bestUp0();
        Rung tried = latest;
        if (best != null) {
            handOver0(best);
        } else if (tried == null || tried.phase == Phase.OVER) {
            beginNext0();
        }
    }

    private @Nullable Rung bestUp0() {
        for (Rung rung : rungs) {
            if (rung.phase == Phase.UP) {
                return rung;
            }
        }
        return null;
    }

    private void beginNext0() {
        stopHedge0();
        Rung next = waiting.poll();
        if (next != null) {
            begin0(next);
        } else if (rungs.stream().allMatch(rung -> rung.phase == Phase.OVER)) {
            fail0();
        }
    }

    private void begin0(Rung rung) {
        latest = rung;
        rung.phase = Phase.BEGUN;
        rung.beganNanos = clock.nanoTime();
        begun.add(rung);
        LadderGate gate = new LadderGate(() -> bring(() -> hedge0(rung, 0)));
        rung.gate = gate;
        try {
            EventLoop own = Objects.requireNonNull(rung.step.loop());
            Bootstrap bootstrap = template.clone(own)
                    .channelFactory(rung.step.channels())
                    .option(ChannelOption.CONNECT_TIMEOUT_MILLIS, leftMillis())
                    .handler(gate);
            if (rung.step.name().equals(TCP)) {
                template.config().options().keySet().stream()
                        .filter(kind::isForProviders)
                        .forEach(option -> bootstrap.option(option, null));
            }
            hedge0(rung, BEGIN_MILLIS);
            ChannelFuture connecting =
                    bootstrap.connect(address, template.config().localAddress());
            rung.connecting = connecting;
            if (connecting.isDone()) {
                settle0(); // a loop that has ended calls no listeners
            } else {
                FutureListener<Object> atEnd = done -> bring(() -> loopEnded0(rung));
                own.terminationFuture().addListener(atEnd);
                connecting.addListener(done -> {
                    own.terminationFuture().removeListener(atEnd);
                    bring(this::settle0);
                });
            }
        } catch (RuntimeException failure) {
            LOG.debug("connecting to {} with {}", address, rung.step.name(), failure);
            rung.over0(message(failure), failure);
            proceed0();
        }
    }

    private int leftMillis() {
        if (timeoutMillis == 0) {
            return 0; // no limit
        }
        long goneMillis = TimeUnit.NANOSECONDS.toMillis(clock.nanoTime() - beganNanos);
        return Math.clamp(timeoutMillis - goneMillis, 1, timeoutMillis);
    }

    /** The delay runs from when the rung's transport began to connect. */
    private void hedge0(Rung rung, long extraMillis) {
        if (ended || latest != rung || rung.phase != Phase.BEGUN) {
            return;
        }
        stopHedge0();
        long delayMillis = options.hedgeDelay().toMillis();
        long waitMillis = rung.step.isKnown() ? Math.max(delayMillis, leftMillis() / 2) : delayMillis;
        hedge = loop.schedule(() -> delayOver0(rung, waitMillis), waitMillis + extraMillis, TimeUnit.MILLISECONDS);
    }

    private void delayOver0(Rung rung, long waitMillis) {
        if (ended || latest != rung || rung.phase != Phase.BEGUN) {
            return;
        }
        rung.isSlow = true;
        rung.reason = "no connection within " + waitMillis + " ms";
        if (handing == null && !waiting.isEmpty()) {
            beginNext0();
        }
    }

    private void stopHedge0() {
        Future<?> scheduled = hedge;
        if (scheduled != null) {
            scheduled.cancel(false);
            hedge = null;
        }
    }

    private void settle0() {
        if (ended) {
            return; // end0 has closed it
        }
        rungs.forEach(this::settleAttempt0); // a better one may have connected, or failed, at the same time
        proceed0();
    }

    /** The loop of a rung has ended, so what the rung has not done by now it never does. */
    private void loopEnded0(Rung rung) {
        ChannelFuture connecting = rung.connecting;
        if (rung.phase == Phase.BEGUN && connecting != null && !connecting.isDone()) {
            rung.over0("its event loop has ended", new ClosedChannelException());
        }
        settle0();
    }

    /** Takes the outcome of a rung's attempt. */
    private void settleAttempt0(Rung rung) {
        ChannelFuture connecting = rung.connecting;
        if (rung.phase != Phase.BEGUN || connecting == null || !connecting.isDone()) {
            return;
        }
        if (!connecting.isSuccess()) {
            Throwable cause = Objects.requireNonNull(connecting.cause());
            rung.over0(message(cause), cause);
            return;
        }
        String missing = missing(connecting.channel());
        if (missing.isEmpty()) {
            rung.up0();
        } else {
            rung.over0("it has no " + missing, null);
            rung.close();
        }
    }

    private String missing(Channel channel) {
        if (options.needs().isEmpty()) {
            return "";
        }
        EndpointCapabilities has = kind.capabilities(channel);
        if (has == null) {
            return "";
        }
        return options.needs().stream()
                .filter(need -> !need.isAmong(has))
                .sorted()
                .map(LadderCapability::description)
                .collect(Collectors.joining(", no "));
    }

    private void handOver0(Rung rung) {
        handing = rung;
        Channel channel = Objects.requireNonNull(rung.connecting).channel();
        LadderResult result = result0(rung);
        LadderGate gate = Objects.requireNonNull(rung.gate);
        try {
            channel.eventLoop().execute(() -> {
                Throwable failure = open(channel, gate, result);
                bring(() -> handed0(rung, channel, result, failure));
            });
        } catch (RejectedExecutionException gone) {
            handed0(rung, channel, result, gone);
        }
    }

    /** On the channel's loop. Returns why it cannot be used; null if it is. */
    private @Nullable Throwable open(Channel channel, LadderGate gate, LadderResult result) {
        ChannelHandlerContext context = channel.pipeline().context(gate);
        if (gate.hasEnded0(channel) && handler instanceof TakesEnded && !promise.isDone()) {
            kind.mark(channel, result);
            return null;
        }
        if (context == null || !channel.isActive() || promise.isDone()) {
            return new ConnectionException.Lost("connect to " + address + ": the connection was lost at once");
        }
        try {
            kind.mark(channel, result);
            gate.open0(context, handler, result);
            return null;
        } catch (RuntimeException failure) { // a handler that cannot be added again
            return failure;
        }
    }

    private LadderResult result0(Rung chosen) {
        List<LadderResult.Passed> passed = new ArrayList<>();
        for (Rung better : rungs.subList(0, rungs.indexOf(chosen))) {
            passed.add(new LadderResult.Passed(better.step.name(), better.reason));
        }
        return new LadderResult(address, chosen.step.name(), passed, attempts0());
    }

    private List<LadderResult.Attempt> attempts0() {
        long now = clock.nanoTime();
        return begun.stream()
                .map(rung -> new LadderResult.Attempt(
                        rung.step.name(),
                        Duration.ofNanos(rung.beganNanos - beganNanos),
                        Duration.ofNanos((rung.phase == Phase.BEGUN ? now : rung.doneNanos) - rung.beganNanos),
                        rung.phase == Phase.UP ? "" : rung.reason.isEmpty() ? "not up yet" : rung.reason))
                .toList();
    }

    private void handed0(Rung rung, Channel channel, LadderResult result, @Nullable Throwable failure) {
        handing = null;
        if (ended) {
            channel.close();
            return;
        }
        if (failure != null) {
            rung.over0(message(failure), failure);
            channel.close();
            proceed0();
            Rung tried = latest;
            if (tried != null && handing == null) {
                hedge0(tried, 0); // the delay may have passed while this one was handed over
            }
            return;
        }
        end0(rung);
        remember0(rung, result);
        if (!promise.trySuccess(kind.cast(channel))) {
            channel.close();
        }
    }

    private void remember0(Rung chosen, LadderResult result) {
        for (int i = 0; i < result.passed().size(); i++) {
            Rung better = rungs.get(i);
            // One that lacks what this client needs may suit other clients.
            if (better.cause != null || better.isSlow) {
                memory.failed(
                        address, better.step.name(), result.passed().get(i).reason(), saturatedNanos());
            }
            RungCounters.countPassed(better.step.name());
        }
        RungCounters.countUsed(chosen.step.name());
        if (memory.used(address, chosen.step.name())) {
            LOG.info("{} is reached with {}: {}", address, chosen.step.name(), result.reason());
        }
        flight.finish(address, chosen.step.name(), reasons(result.passed()));
    }

    private long saturatedNanos() {
        return TimeUnit.NANOSECONDS.convert(options.forgetAfter());
    }

    /** Ends the attempt, and closes all rungs that were not chosen. */
    private void end0(@Nullable Rung chosen) {
        ended = true;
        stopHedge0();
        waiting.clear();
        for (Rung rung : rungs) {
            if (rung != chosen) {
                rung.close();
            }
        }
    }

    private void cancel0() {
        if (!ended) {
            end0(handing); // which handed0 closes
        }
    }

    private void fail0() {
        end0(null);
        List<LadderResult.Passed> passed = new ArrayList<>();
        for (Rung rung : rungs) {
            passed.add(new LadderResult.Passed(rung.step.name(), rung.reason));
            RungCounters.countPassed(rung.step.name());
        }
        String reasons = reasons(passed);
        String minimum = options.minimumRung();
        Exception failure = kind.failure(
                "connect to " + address + ": no rung of the ladder connected"
                        + (minimum == null ? "" : ", and none below " + minimum + " is allowed") + ": " + reasons,
                isTimeout0());
        for (Rung rung : rungs) {
            Throwable cause = rung.cause;
            if (cause != null) {
                failure.addSuppressed(cause);
            }
        }
        flight.finish(address, "", reasons);
        promise.tryFailure(failure);
    }

    /** Whether each rung that was tried has timed out. */
    private boolean isTimeout0() {
        List<Throwable> causes =
                rungs.stream().flatMap(rung -> Stream.ofNullable(rung.cause)).toList();
        return !causes.isEmpty()
                && causes.stream()
                        .allMatch(cause -> cause instanceof ConnectTimeoutException
                                || cause instanceof ConnectionException.TimedOut);
    }

    private static String reasons(List<LadderResult.Passed> passed) {
        return passed.stream().map(LadderResult.Passed::toString).collect(Collectors.joining("; "));
    }

    private static String message(Throwable cause) {
        String message = cause.getMessage();
        return message == null ? cause.toString() : message;
    }
}
