package org.verbena.api.internal.client;

import io.netty.buffer.ByteBuf;
import io.netty.channel.Channel;
import io.netty.util.concurrent.EventExecutor;
import io.netty.util.concurrent.Promise;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.nio.channels.ClosedChannelException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.api.client.ClientInterceptor;
import org.verbena.api.client.ClientState;
import org.verbena.api.client.Target;
import org.verbena.api.internal.loop.Callbacks;
import org.verbena.api.internal.loop.LoopFuture;
import org.verbena.api.internal.loop.VirtualNotifier;
import org.verbena.api.internal.request.ClientTransport;
import org.verbena.api.internal.request.Latency;
import org.verbena.api.internal.request.NameLookup;
import org.verbena.api.internal.request.Operation;
import org.verbena.api.internal.request.Retries;
import org.verbena.api.internal.request.SendLimit;
import org.verbena.api.internal.request.ShortForm;
import org.verbena.api.internal.request.UnsentItems;
import org.verbena.transport.ClientStatistics;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.spi.LoopClock;
import org.verbena.transport.spi.RateLimitedLog;

/**
 * A client's connections. Operations go to one that is up, on the caller's thread and without a lock; those that find
 * none wait ({@link Call}). All else, whatever changes the connections, runs on one thread ({@link Control}): it does
 * little, and never waits. What may wait runs on virtual threads: attempts to connect ({@link Dial}), and what the
 * program wants to be called ({@link Callbacks}).
 *
 * <p>It has no threads, channels or clock of its own: connections come from the {@link Dialer} and are used through
 * {@link ClientTransport}, and time is the dialer's clock. So a test can walk through its histories one step at a time.
 *
 * <pre>{@code
 *                       a link is up    none is up,      none is up,      carries    an operation  no link can
 *  state                                one dials        all wait         nothing    comes         be, or close
 *  CONNECTING           READY           -                BACKING_OFF      -          waits         CLOSED
 *  READY                -               CONNECTING       BACKING_OFF      IDLE       goes          CLOSED
 *  BACKING_OFF          READY           CONNECTING       -                -          waits sooner  CLOSED
 *  IDLE                 -               -                -                -          CONNECTING    CLOSED
 *  CLOSED               -               -                -                -          fails         -
 * }</pre>
 */
public final class Links implements ClientTransport.Owner {
    private static final Logger LOG = LoggerFactory.getLogger(Links.class);

    /** How often the lack of a connection is logged, whatever else is. */
    private static final long WARN_NANOS = TimeUnit.MINUTES.toNanos(1);

    /** After a connection that has lasted so long, the others are tried at once: they wait since before it. */
    static final long STEADY_NANOS = TimeUnit.SECONDS.toNanos(1);

    /** Attempts end by themselves at the connect timeout, and have this share of it more to say why. */
    private static final int LIMIT_GRACE_SHARE = 8;

    /**
     * How the connections are made and used.
     *
     * @param perAddress how many connections to each address
     * @param redials whether lost connections are made again
     * @param failsFast whether operations that find no connection fail at once
     * @param requestNanos how long a request without a timeout, or a message that waits for a connection, may take
     * @param connectMillis the connect timeout; 0 for none
     * @param lookUpNanos how often names are looked up again
     * @param backoff how long to wait before an attempt
     * @param maxAgeNanos when a connection is replaced; 0 for never
     * @param idleNanos after which time without traffic the connections are left; 0 for never
     * @param bounds of what waits for a connection
     * @param plan of requests that have no options of their own
     * @param listeners get each state
     * @param interceptors see each request, in this order
     */
    public record Options(
            int perAddress,
            boolean redials,
            boolean failsFast,
            long requestNanos,
            int connectMillis,
            long lookUpNanos,
            Backoff backoff,
            long maxAgeNanos,
            long idleNanos,
            SendLimit.Bounds bounds,
            CallPlan plan,
            List<Consumer<ClientState>> listeners,
            List<ClientInterceptor> interceptors) {}

    private final String name;
    private final Dialer dialer;
    private final Options options;
    private final LinkFigures figures = new LinkFigures();

    /** What servers can make it log by coming, going and not answering. */
    private final RateLimitedLog log = new RateLimitedLog(LOG);

    private final SendLimit waitingLimit;
    private final UnsentItems unsent;
    private final Retries retries = new Retries();
    private final Latency latency = new Latency();
    private final Control control;
    private final Callbacks callbacks;
    private final VirtualNotifier notifier;
    private final Waiting waiting;

    /** Null for a client that is never idle. */
    private final @Nullable Idleness idleness;

    private final long beganNanos;

    /** The first connection is up, or the first attempts have all failed. Without stages of a program's. */
    private final CompletableFuture<Void> first = new CompletableFuture<>();

    private final CompletableFuture<Void> ended = new CompletableFuture<>();

    // Written by the control thread, read by any.
    private volatile Ready ready = Ready.NONE;
    private volatile ClientState state = ClientState.CONNECTING;
    private volatile @Nullable Connected newest;
    private volatile @Nullable Throwable failure;

    /** Whether someone waits until messages can be sent. */
    private volatile boolean awaited;

    /** Whether the last round of attempts has failed, and no connection has been up since. */
    private volatile boolean failing;

    /** Whether a caller gets the failure of the first attempts, so that it need not be logged. */
    private volatile boolean firstAwaited;

    /** Why no operation is accepted any more; null while they are. */
    private volatile @Nullable String end;

    // Confined to the control thread.
    private final List<Link> links = new ArrayList<>();

    /** Those of addresses that are gone, which are used until there is a connection to another one. */
    private final List<Link> gone = new ArrayList<>();

    // Counted, so that an attempt of one of many links is as much work as that of an only one.
    /** The links that dial, or are about to since their server has asked them to leave. */
    private int trying;

    /** Those of the links in use that have never failed. */
    private int untried;

    /** Whether the target's addresses could not be found. */
    private boolean unresolved;

    /** What becomes {@code ready} when those that wait have begun. */
    private Ready latest = Ready.NONE;

    private final Set<ClientTransport> open = new LinkedHashSet<>();
    private final ReadyFutures readers;
    private final ReadyFutures writers;
    private final DialLimit dials;

    /** Null for one that never changes. */
    private @Nullable Addresses addresses;

    /** Whether there is no connection because none is needed. */
    private boolean idle;

    /** Written by the control thread, read by any. */
    private volatile boolean closed;

    private long lostNanos;
    private long readyNanos;

    /** Whether a connection answered when the connections changed the last time. */
    private boolean answered;

    /** When the lack of a connection was logged the last time; 0 for never. */
    private long warnedNanos;

    /** Ends the wait for the first connection, whatever keeps the attempts from ending. */
    private @Nullable Future<?> firstLimit;

    /**
     * Creates them, without a connection yet.
     *
     * @param name of the target, for messages
     * @param dialer connects, and is closed with the client
     */
    public Links(String name, Dialer dialer, Options options) {
        this.name = name;
        this.dialer = dialer;
        this.options = options;
        LoopClock clock = dialer.clock();
        control = Control.of(clock);
        control.enter();
        callbacks = new Callbacks(clock);
        notifier = VirtualNotifier.of(clock);
        waiting = new Waiting(control);
        readers = new ReadyFutures(control);
        writers = new ReadyFutures(control);
        dials = new DialLimit(control.dials());
        beganNanos = clock.nanoTime();
        waitingLimit = new SendLimit(options.bounds());
        unsent = new UnsentItems(options.bounds());
        idleness = options.idleNanos() == 0
                ? null
                : new Idleness(options.idleNanos(), control, () -> !waiting.isEmpty0(), this::rest0);
        figures.show(this::statistics);
    }

    /** Begins to connect to a target's addresses. Any thread, once. */
    public void begin(Target target, NameLookup names) {
        control.run(() -> {
            if (closed) {
                return;
            }
            begin0();
            Addresses its =
                    new Addresses(target, names, options, control, this::waitNanos0, this::connectTo0, this::notFound0);
            addresses = its;
            its.begin0();
        });
    }

    /** Begins to connect to an address. Any thread, once. */
    public void begin(SocketAddress address) {
        control.run(() -> {
            if (!closed) {
                begin0();
                add0(address, 0, beganNanos);
            }
        });
    }

    private void begin0() {
        tell0(state);
        long limitNanos = TimeUnit.MILLISECONDS.toNanos(options.connectMillis());
        if (limitNanos > 0) {
            firstLimit = control.schedule(
                    () -> giveUpFirst0(new ConnectionException.TimedOut("connect to " + name
                            + ": the attempts have not ended within the connect timeout; the last failure: "
                            + message(failure))),
                    limitNanos + limitNanos / LIMIT_GRACE_SHARE);
        }
    }

    /** The target, for messages. */
    @Override
    public String toString() {
        return name;
    }

    /** Done, on the control thread, when the first connection is up; fails when the first attempts have all failed. */
    public CompletableFuture<Void> first() {
        firstAwaited = true;
        return first;
    }

    /** Runs what may have stages of the program's, which nothing of the client's waits for. */
    public Executor elsewhere() {
        return notifier;
    }

    public ClientState state() {
        return state;
    }

    /** What it counts, for itself. Any thread. */
    LinkFigures figures() {
        return figures;
    }

    RateLimitedLog log() {
        return log;
    }

    /** Any thread. */
    public ClientStatistics statistics() {
        long bytes = waitingLimit.bytes() + unsent.waitingBytes();
        return figures.with(name, state.name(), failure, waitingLimit.messages(), bytes);
    }

    /** Of all connections. */
    @Override
    public LongAdder lateReplies() {
        return figures.lateReplies;
    }

    /** An idle client sends the next message as soon as it can. */
    public boolean isWritable() {
        return ready.isWritable() || state == ClientState.IDLE;
    }

    /** A connection that is up; else the one that was the last; null if there was none. */
    public @Nullable Connected newest() {
        return newest;
    }

    /** The channel of a connection that is up; else the last one that was, if any. */
    public Channel channel() {
        ClientTransport transport = ready.pick();
        if (transport != null) {
            return transport.channel();
        }
        Connected last = newest;
        if (last == null) {
            throw unavailable("channel", "no connection");
        }
        return last.channel();
    }

    // ---- operations

    /** Where they are changed, and the clock. */
    Control control() {
        return control;
    }

    Options options() {
        return options;
    }

    /** What the streams that have no connection yet wait to send. */
    UnsentItems unsent() {
        return unsent;
    }

    @Nullable ClientTransport pick(CallPlan plan) {
        Ready now = ready;
        return plan.keyed() ? now.pick(plan.keyHash()) : now.pick();
    }

    @Nullable ClientTransport pickOpen(CallPlan plan) {
        return ready.pickOpen(plan);
    }

    @Nullable ClientTransport pickOtherThan(ClientTransport first, CallPlan plan) {
        return ready.pickOtherThan(first, plan);
    }

    @Nullable ClientTransport pickOpen0(CallPlan plan) {
        return latest.pickOpen(plan);
    }

    @Nullable ClientTransport pickOtherThan0(ClientTransport first, CallPlan plan) {
        return latest.pickOtherThan(first, plan);
    }

    EventExecutor notifier(@Nullable ClientTransport transport) {
        return transport == null ? notifier : transport.notifier();
    }

    @Override
    public <T> boolean goOn(
            Promise<T> outcome, Operation<T> operation, ByteBuf message, long timeoutNanos, boolean whole) {
        if (end != null || (!options.redials() && ready.pickOpen(CallPlan.ONCE) == null)) {
            return false;
        }
        new Call<>(this, operation, message, outcome, timeoutNanos, whole, CallPlan.ONCE).begin(null);
        return true;
    }

    /** The budget of requests that are sent again. */
    Retries retries() {
        return retries;
    }

    @Override
    public void leaving(ClientTransport transport, long retryNanos, String reason) {
        control.run(() -> find0(transport, link -> {
            log.info(name + ": " + transport + " asks its clients to leave: " + ShortForm.printable(reason));
            link.leave0(retryNanos);
        }));
    }

    @Override
    public void writable() {
        if (awaited) {
            control.run(this::writable0);
        }
    }

    private void writable0() {
        if (!writers.isEmpty() && isWritable()) {
            writers.endAll0(null);
            awaited = false;
        }
    }

    @Override
    public void unanswered(ClientTransport transport) {
        control.run(() -> find0(transport, Link::unanswered0));
    }

    @Override
    public boolean othersAnswerWithin(long nanos, ClientTransport except) {
        return ready.answerWithin(nanos, except);
    }

    private void find0(ClientTransport transport, Consumer<Link> step) {
        for (Link link : all0()) {
            Connected current = link.current0();
            if (current != null && current.transport().equals(transport)) {
                step.accept(link);
            }
        }
    }

    /** A request that may be sent again has been answered after this time. */
    void took(long nanos) {
        latency.took(nanos);
    }

    /** The time that nearly all of these need at most; 0 while it is not known. */
    long usualNanos() {
        return latency.estimateNanos();
    }

    /** Why an operation that waits is given up; null if it may wait. Any thread. */
    @Nullable Throwable refusal(String operation) {
        String why = end;
        if (why == null) {
            return null;
        }
        Throwable cause = failure;
        String message = operation + " to " + name + ": " + why;
        return cause == null || closed
                ? new ConnectionException.Unavailable(message)
                : new ConnectionException.Lost(message, cause);
    }

    /** Why there is no connection for an operation. Any thread. */
    ConnectionException unavailable(String operation, String what) {
        Throwable cause = failure;
        String message = operation + " to " + name + ": " + what;
        return cause == null
                ? new ConnectionException.Unavailable(message)
                : new ConnectionException.Unavailable(message + "; the last failure: " + cause.getMessage(), cause);
    }

    /** Why the last attempt has failed, or the last connection was lost; null for neither. */
    public @Nullable Throwable lastFailure() {
        return failure;
    }

    /** Whether an operation that has found no connection fails at once. Any thread. */
    boolean failsFast() {
        return options.failsFast() && failing;
    }

    SendLimit waitingLimit() {
        return waitingLimit;
    }

    long longestWaitNanos() {
        return options.requestNanos();
    }

    /** The calls that have found no connection. */
    Waiting waiting() {
        return waiting;
    }

    // ---- addresses

    private void connectTo0(List<InetSocketAddress> servers) {
        Set<SocketAddress> wanted = new LinkedHashSet<>(servers);
        List<Link> all = all0();
        links.clear();
        gone.clear();
        untried = 0;
        unresolved = false;
        Map<SocketAddress, Integer> counts = new HashMap<>();
        for (Link link : all) {
            boolean stays = wanted.contains(link.address());
            link.setGone0(!stays);
            (stays ? links : gone).add(link);
            if (stays) {
                counts.merge(link.address(), 1, Integer::sum);
                untried += link.failure0() == null ? 1 : 0;
            }
        }
        for (SocketAddress address : wanted) {
            add0(address, counts.getOrDefault(address, 0), first.isDone() ? control.nanoTime() : beganNanos);
        }
        changed0();
    }

    private List<Link> all0() {
        List<Link> all = new ArrayList<>(links);
        all.addAll(gone);
        return all;
    }

    /** Removes those of addresses that are gone whose connections are not needed any more. */
    private List<Link> removeGone0() {
        boolean replaced = links.isEmpty() || links.stream().anyMatch(Link::isGood0);
        List<Link> useless = gone.stream()
                .filter(link -> replaced || link.current0() == null)
                .toList();
        gone.removeAll(useless);
        return useless;
    }

    /** Makes those that are missing. */
    private void add0(SocketAddress address, int present, long began) {
        for (int count = present; count < options.perAddress(); count++) {
            Link link = new Link(this, address);
            links.add(link);
            untried++;
            link.dial0(began);
        }
    }

    private void notFound0(Throwable cause) {
        LOG.debug("{}", name, cause);
        if (links.isEmpty() && end == null && !idle) {
            failure = cause;
            figures.changed();
            unresolved = true;
            giveUpFirst0(cause);
            if (latest.isEmpty()) {
                down0();
                backOff0(true);
            }
        }
        forAddresses0(Addresses::lookLater0);
    }

    private void forAddresses0(Consumer<Addresses> step) {
        Addresses its = addresses;
        if (its != null) {
            step.accept(its);
        }
    }

    /** Whether there are other addresses when all that were tried have failed. */
    private boolean triesOthers0() {
        Addresses its = addresses;
        return its != null && its.failed0();
    }

    // ---- called by links

    Dialer dialer() {
        return dialer;
    }

    DialLimit dials() {
        return dials;
    }

    Backoff backoff() {
        return options.backoff();
    }

    /** How long to wait after so many failures in a row: less if somebody waits for it. */
    long waitNanos0(int failures) {
        return patience0().delayNanos(failures, control.clock().random());
    }

    private Backoff patience0() {
        boolean asked = !waiting.isEmpty0() || !readers.isEmpty();
        return asked ? options.backoff().hurried() : options.backoff();
    }

    /** Tries what waits for its time within this one. */
    private void hurry0(long mostNanos, boolean forgets) {
        links.forEach(link -> link.hurry0(mostNanos, forgets));
        forAddresses0(its -> its.hurry0(mostNanos, forgets));
    }

    /** Connects at once, and forgets how often that has failed. Any thread. */
    public void resetBackoff() {
        control.run(() -> hurry0(0, true));
    }

    /** A link begins to try, or stops. */
    void trying0(int change) {
        trying += change;
        if (change > 0 && latest.isEmpty() && end == null && !idle) {
            state0(ClientState.CONNECTING);
        }
    }

    long maxAgeNanos() {
        return options.maxAgeNanos();
    }

    boolean redials(Link link) {
        return options.redials() && !closed && !link.isGone0();
    }

    /** Whether another link has a connection that answers. */
    boolean hasOtherThan0(Link link) {
        return all0().stream().anyMatch(other -> other != link && other.isGood0());
    }

    /** A connection is up. */
    void opened0(Connected up) {
        newest = up;
        figures.count(figures.connections);
        open.add(up.transport());
        forAddresses0(Addresses::connected0);
        Idleness watched = idleness;
        if (watched != null) {
            ClientTransport transport = up.transport();
            watched.opened0(transport, transport::carried, transport::load);
        }
    }

    /** A link uses its connection. */
    void won0(SocketAddress address) {
        forAddresses0(its -> its.won0(address));
    }

    void closed0(Connected lost) {
        open.remove(lost.transport());
        Idleness watched = idleness;
        if (watched != null) {
            watched.closed0(lost.transport());
        }
    }

    /** Why a connection has ended. */
    Throwable causeOf(Connected lost) {
        return lost.transport().closeCause();
    }

    /**
     * A link has no connection.
     *
     * @param first whether it has always had one before, or was being made
     * @param wasUp whether it had one until now
     */
    void failed0(Link link, boolean first, boolean wasUp) {
        Throwable why = link.failure0();
        failure = why == null ? failure : why;
        figures.count(figures.failures);
        untried -= first && !link.isGone0() ? 1 : 0;
        boolean ending = dialer.isEnding();
        if (newest == null && !ending && end == null && hasAllFailed0() && triesOthers0()) {
            return;
        }
        if (end != null || (!ending && (options.redials() || hasOthers0()))) {
            if (wasUp || link.isGone0()) {
                changed0();
            } else if (latest.isEmpty() && end == null && !idle) {
                down0();
                backOff0(true);
            }
        } else {
            Throwable cause = failure;
            giveUpFirst0(cause == null ? new ClosedChannelException() : cause);
            end0(ending || cause == null ? "the event loops have ended" : String.valueOf(cause.getMessage()));
        }
    }

    private boolean hasOthers0() {
        return all0().stream().anyMatch(link -> link.current0() != null || link.isDialing0());
    }

    /** What can be used has changed. */
    void changed0() {
        if (end != null || idle) {
            return;
        }
        List<Link> useless = removeGone0();
        List<Link> used = all0();
        // Those that do not answer are left out, unless there are no others.
        boolean all = used.stream().noneMatch(Link::isGood0);
        boolean lastLost = all && answered;
        answered = !all;
        List<ClientTransport> up = new ArrayList<>(used.size());
        List<SocketAddress> servers = new ArrayList<>(used.size());
        for (Link link : used) {
            Connected current = link.current0();
            if (current != null && (all || link.isGood0())) {
                up.add(current.transport());
                servers.add(link.address());
            }
        }
        Ready next = new Ready(up, servers, control.clock());
        latest = next;
        if (!up.isEmpty()) {
            updateNewest0();
            waiting.goOn0();
        }
        waiting.publish0(() -> ready = next);
        useless.forEach(Link::retire0);
        if ((lastLost || (up.isEmpty() && state == ClientState.READY))
                && control.nanoTime() - readyNanos >= STEADY_NANOS) {
            hurry0(options.backoff().leastNanos(), true);
        }
        if (!up.isEmpty()) {
            failing = false;
            state0(ClientState.READY);
            forAddresses0(Addresses::up0);
            first.complete(null);
            stopFirstLimit0();
            writable0();
            return;
        }
        down0();
        backOff0(false);
    }

    /** None is up. */
    private void down0() {
        state0(isTrying0() ? ClientState.CONNECTING : ClientState.BACKING_OFF);
        if (hasAllFailed0() && !triesOthers0()) {
            if (!first.isDone()) {
                List<Throwable> causes = links.stream()
                        .flatMap(link -> Stream.ofNullable(link.failure0()))
                        .toList();
                giveUpFirst0(causes.size() == 1 ? causes.getFirst() : ShortForm.ofAll("connect to " + name, causes));
            }
            forAddresses0(Addresses::lookLater0);
        }
    }

    private boolean isTrying0() {
        return trying > 0 || (links.isEmpty() && !unresolved);
    }

    /**
     * If none is tried now, operations that do not wait for one fail.
     *
     * @param attempted whether an attempt has failed, and not only a connection been lost
     */
    private void backOff0(boolean attempted) {
        if (isTrying0()) {
            return;
        }
        failing = true;
        if (options.failsFast()) {
            waiting.failWaiting0();
        }
        boolean isKnown = firstAwaited && newest == null;
        long now = control.nanoTime();
        if (attempted && !isKnown && (warnedNanos == 0 || now - warnedNanos >= WARN_NANOS)) {
            warnedNanos = now;
            LOG.warn("{}: has no connection, and goes on trying: {}", name, message(failure));
        }
    }

    private boolean hasAllFailed0() {
        return !links.isEmpty() && untried == 0;
    }

    /** If the newest has been lost, another one that is up takes its place. */
    private void updateNewest0() {
        Connected last = newest;
        for (Link link : all0()) {
            Connected current = link.current0();
            if (current != null && (last == null || !last.transport().isConnected())) {
                last = current;
            }
        }
        newest = last;
    }

    private void giveUpFirst0(Throwable cause) {
        if (!first.isDone()) {
            Throwable failed = cause instanceof Error ? cause : ShortForm.unchecked("connect to " + name, cause);
            first.completeExceptionally(failed);
            stopFirstLimit0();
        }
    }

    private void stopFirstLimit0() {
        Future<?> limit = firstLimit;
        if (limit != null) {
            firstLimit = null;
            limit.cancel(false);
        }
    }

    private void state0(ClientState now) {
        ClientState before = state;
        if (before == now) {
            return;
        }
        state = now;
        figures.changed();
        Idleness watched = idleness;
        if (watched != null) {
            if (now == ClientState.READY) {
                watched.begin0();
            } else {
                watched.stop0();
            }
        }
        if (now == ClientState.IDLE) {
            LOG.debug("{}: leaves its connections, since they carry nothing", name);
        } else if (before == ClientState.READY && now != ClientState.CLOSED) {
            lostNanos = control.nanoTime();
            log.info(name + ": has lost its connection, and connects again: " + message(failure));
        } else if (now == ClientState.READY && lostNanos != 0) {
            log.info(name + ": connected again after " + TimeUnit.NANOSECONDS.toMillis(control.nanoTime() - lostNanos)
                    + " ms");
            lostNanos = 0;
        }
        tell0(now);
        if (now == ClientState.READY) {
            readyNanos = control.nanoTime();
            readers.endAll0(null);
        } else if (now == ClientState.CLOSED) {
            Throwable refusal = refusal("connect");
            readers.endAll0(refusal);
            writers.endAll0(refusal);
        }
    }

    private void tell0(ClientState now) {
        for (Consumer<ClientState> listener : options.listeners()) {
            callbacks.execute(() -> listener.accept(now));
        }
    }

    private static String message(@Nullable Throwable cause) {
        return cause == null ? "no reason is known" : String.valueOf(cause.getMessage());
    }

    // ---- states

    /** Done when a connection is up; fails when none will be. */
    public CompletableFuture<Void> whenReady() {
        return readers.add(() -> {
            if (state == ClientState.READY) {
                readers.endAll0(null);
            } else if (state == ClientState.IDLE) {
                wake0();
            } else if (state == ClientState.CLOSED) {
                readers.endAll0(refusal("connect"));
            } else {
                hurry0(patience0().mostNanos(), false);
            }
        });
    }

    /** Done when a connection accepts messages; fails when none will. */
    public CompletableFuture<Void> whenWritable() {
        return writers.add(() -> {
            awaited = true;
            if (state == ClientState.CLOSED) {
                writers.endAll0(refusal("connect"));
            }
            writable0();
        });
    }

    // ---- idle

    /** The connections carry nothing: leaves them until something is to be sent. What comes now is not lost. */
    private void rest0() {
        List<Link> all = all0();
        idle = true;
        answered = false;
        failing = false;
        untried = 0;
        links.clear();
        gone.clear();
        latest = Ready.NONE;
        waiting.publish0(() -> ready = Ready.NONE);
        state0(ClientState.IDLE);
        writable0();
        // Retire them last: an operation that they refuse wakes the client again.
        all.forEach(Link::retire0);
        forAddresses0(Addresses::rest0);
    }

    /**
     * An operation waits for a connection. Control thread; connects a little later.
     *
     * @param isFirst whether none did before
     */
    void wake(boolean isFirst) {
        if (idle) {
            control.submit(this::wake0);
        } else if (isFirst) {
            hurry0(patience0().mostNanos(), false);
        }
    }

    private void wake0() {
        if (!idle || end != null) {
            return;
        }
        idle = false;
        forAddresses0(Addresses::wake0);
    }

    // ---- the end

    /** No connection will be made any more. */
    private void end0(String why) {
        end = why;
        latest = Ready.NONE;
        ready = Ready.NONE;
        all0().forEach(Link::end0);
        forAddresses0(Addresses::close0);
        state0(ClientState.CLOSED);
        waiting.giveUp0();
    }

    /** Closes all. Any thread; idempotent. Done when all connections, and the loops of the client, have ended. */
    public CompletableFuture<Void> close() {
        control.run(this::close0);
        ended.whenComplete((done, none) -> figures.hide());
        return LoopFuture.of(ended);
    }

    private void close0() {
        if (closed) {
            return;
        }
        closed = true;
        end0("this end has closed the connection");
        giveUpFirst0(new ConnectionException("connect to " + name + ": the client was closed"));
        CompletableFuture<Void> channels = CompletableFuture.allOf(
                open.stream().map(ClientTransport::close).toArray(CompletableFuture<?>[]::new));
        Future<?> limit =
                control.schedule(() -> channels.complete(null), TimeUnit.MILLISECONDS.toNanos(ShortForm.CLOSE_MILLIS));
        channels.whenComplete((all, none) -> limit.cancel(false));
        // Elsewhere, since it waits while the loops are being made.
        CompletableFuture<Void> loops =
                CompletableFuture.supplyAsync(dialer::close, notifier).thenCompose(ending -> ending);
        CompletableFuture.allOf(channels, loops)
                .whenCompleteAsync(
                        (all, failure) -> {
                            control.leave();
                            ended.complete(null);
                        },
                        notifier);
    }
}
