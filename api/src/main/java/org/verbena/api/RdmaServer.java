package org.verbena.api;

import io.netty.bootstrap.ServerBootstrap;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.ChannelOption;
import io.netty.channel.group.ChannelGroup;
import io.netty.channel.group.DefaultChannelGroup;
import io.netty.util.concurrent.EventExecutor;
import io.netty.util.concurrent.GlobalEventExecutor;
import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.api.internal.loop.LoopFuture;
import org.verbena.api.internal.loop.RdmaEventLoop;
import org.verbena.api.internal.loop.Threads;
import org.verbena.api.internal.request.HandlerLimit;
import org.verbena.api.internal.request.HandlerLog;
import org.verbena.api.internal.request.Messenger;
import org.verbena.api.internal.request.NameLookup;
import org.verbena.api.internal.request.OnConnectHandler;
import org.verbena.api.internal.request.OpenRequests;
import org.verbena.api.internal.request.QueueAge;
import org.verbena.api.internal.request.RequestCounters;
import org.verbena.api.internal.request.SendLimit;
import org.verbena.api.internal.request.ServerChildren;
import org.verbena.api.internal.request.Serving;
import org.verbena.api.internal.request.ShortForm;
import org.verbena.transport.CompletionLoopOptions;
import org.verbena.transport.RequestException;
import org.verbena.transport.SendLimitException;
import org.verbena.transport.provider.ProviderChoice;
import org.verbena.transport.provider.ProviderSet;
import org.verbena.transport.spi.LoopClock;
import org.verbena.transport.spi.RdmaProvider;

/**
 * A server of messages, for programs that do not use Netty otherwise. Its peers are {@link RdmaClient}s.
 *
 * <pre>{@code
 * MessageHandler echo = MessageHandler.ofBytes((exchange, message) -> exchange.reply(message));
 * try (RdmaServer server = RdmaServer.bind("0.0.0.0", 7471, echo)) {
 *     ...
 * }
 * }</pre>
 *
 * <p>{@link MessageHandler} says on which thread a handler runs and who releases its message. While a client does not
 * accept data, the server stops reading from it. All methods may be called on any thread, platform or virtual.
 */
public final class RdmaServer implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(RdmaServer.class);

    /** Enough for any program, and far below the overflow of times. */
    private static final long MAX_SHEDDING_NANOS = TimeUnit.DAYS.toNanos(1);

    private static final long MAX_SHUTDOWN_NANOS = TimeUnit.DAYS.toNanos(365);

    private final RdmaServerChannel channel;
    private final RdmaEventLoopGroup group;
    private final boolean ownsGroup;
    private final ServerChildren children;
    private final ChannelGroup connections;
    private final ClientGroup clients;
    private final RequestCounters counters;

    /** The outcome of {@link #shutdown}; null until it is called. */
    private final AtomicReference<@Nullable CompletableFuture<Boolean>> stopping = new AtomicReference<>();

    /** What stops the server when the JVM ends; null for nothing. */
    private final AtomicReference<@Nullable Thread> hook = new AtomicReference<>();

    /** Set before the hook is removed for the last time. */
    private volatile boolean closed;

    private RdmaServer(
            RdmaServerChannel channel,
            RdmaEventLoopGroup group,
            boolean ownsGroup,
            ServerChildren children,
            ChannelGroup connections,
            ClientGroup clients,
            RequestCounters counters) {
        this.channel = channel;
        this.group = group;
        this.ownsGroup = ownsGroup;
        this.children = children;
        this.connections = connections;
        this.clients = clients;
        this.counters = counters;
    }

    /**
     * Listens, with the defaults of {@link #builder()}.
     *
     * @param host a name or address of this host; {@code 0.0.0.0} or {@code ::} for all of them
     * @param port 1 to 65535, or 0 for any that is free
     * @param handler gets the messages of all clients, each on its connection's event loop
     * @return the server, listening
     * @throws org.verbena.transport.ConnectionException it cannot listen there; the message says why
     */
    public static RdmaServer bind(String host, int port, MessageHandler handler) {
        return builder().bind(host, port, handler);
    }

    /**
     * Starts a server with options.
     *
     * @return a builder with the defaults
     * @throws org.verbena.transport.ProviderUnavailableException nothing can work here: Netty is older than 4.2, or the
     *     JVM denies native access; the message says what to do
     */
    public static Builder builder() {
        ProviderChoice.checkRequirements();
        return new Builder();
    }

    /**
     * Returns the address it listens on.
     *
     * @return the address, with the port that was taken
     */
    public InetSocketAddress localAddress() {
        return Objects.requireNonNull(channel.localAddress());
    }

    /**
     * Returns the port it listens on.
     *
     * @return 1 to 65535
     */
    public int port() {
        return localAddress().getPort();
    }

    /**
     * Returns the names of the providers that it listens with; {@link Carrier} names the one that carries a connection.
     *
     * @return {@code verbs}, {@code soft} ..., or several joined by {@code +}, such as {@code verbs+soft}
     */
    public String provider() {
        List<String> listening = channel.providers();
        return listening.isEmpty() ? group.providers().names() : String.join("+", listening);
    }

    /**
     * Returns the open connections. A {@code ByteBuf} that is written to one of their channels, or to all of them by
     * {@link ChannelGroup#writeAndFlush(Object)}, is a message to {@link RdmaClient.Builder#onMessage}. It needs a
     * flush, and counts against no limit: {@link #clients()} has one.
     *
     * @return a live view, for any thread
     */
    public ChannelGroup connections() {
        return connections;
    }

    /**
     * Returns the clients that are connected, to send messages to one or to all of them: see {@link ClientGroup}. One
     * for which more than 1,024 messages of this group wait, or more than 16 MiB, misses further ones.
     *
     * @return the group, which clients join and leave by themselves
     */
    public ClientGroup clients() {
        return clients;
    }

    /**
     * Returns how many requests were dropped before their handler, because their client no longer waited for the reply.
     *
     * @return a count
     */
    public long expiredRequests() {
        return counters.expired();
    }

    /**
     * Returns how many requests were refused before their handler because the server was overloaded: see {@link
     * Builder#shedding} and {@link Builder#maxHandlers}.
     *
     * @return a count
     */
    public long overloadedRequests() {
        return counters.overloaded();
    }

    /**
     * Returns how many requests were dropped before their handler, because their client had cancelled them or their
     * connection was gone.
     *
     * @return a count
     */
    public long abandonedRequests() {
        return counters.abandoned();
    }

    /**
     * Returns the listening channel.
     *
     * @return the channel, for programs that use Netty
     */
    public RdmaServerChannel channel() {
        return channel;
    }

    /**
     * Stops the server without failing requests, if its clients have other servers, or can wait:
     *
     * <ol>
     *   <li>It accepts no more connections, and closes those in the handshake.
     *   <li>It asks its clients to leave, a hundred a second, or all within a quarter of the time if they are more. An
     *       {@link RdmaClient} sends its further requests to other servers from then on, or waits until it can connect
     *       to this address again. It leaves when it has the replies to those that it sent here, which are handled as
     *       usual.
     *   <li>Each connection is closed when its client has left.
     *   <li>When no connection is left and no handler runs, or when the time is over, it closes as {@link
     *       #closeAsync()} does. What has not begun by then is refused, so that its client may send it to another
     *       server.
     * </ol>
     *
     * <p>Requests count until they are answered, whether or not their handler has returned. Only the first call
     * matters; further ones return its outcome. {@link #close()} ends it early. May be called on any thread, also in a
     * handler, which must not wait for the outcome: it is one of those that are waited for, until the time is over.
     *
     * @param max how long clients and handlers have, more than zero: as long as the slowest handlers need. Closing the
     *     connections takes up to 5 s more, and with a shared group as long as {@link
     *     RdmaChannelOption#CLOSE_TIMEOUT_MILLIS} says
     * @return done when the server is closed: with true if every request that had arrived was answered, and with false
     *     if one was not when the time was over, the server was closed, or its client was lost. Cancelling it stops
     *     nothing
     * @throws IllegalArgumentException the time is not positive
     */
    public CompletableFuture<Boolean> shutdown(Duration max) {
        long nanos = Math.min(ShortForm.positive("most", max), MAX_SHUTDOWN_NANOS);
        CompletableFuture<Boolean> outcome = new CompletableFuture<>();
        CompletableFuture<Boolean> earlier = stopping.compareAndExchange(null, outcome);
        if (earlier != null) {
            return LoopFuture.of(earlier);
        }
        CompletableFuture<Void> drained = children.drain("the server is shutting down", nanos, group.clock());
        CompletableFuture<Boolean> inTime =
                CompletableFuture.allOf(ShortForm.close(channel), drained).thenApply(all -> true);
        Future<?> limit = Threads.schedule(group.clock(), () -> inTime.complete(false), nanos);
        inTime.whenComplete((all, failure) -> limit.cancel(false));
        inTime.thenCompose(all -> children.end())
                .thenCompose(answered -> closeAsync().thenApply(closed -> answered))
                .whenComplete((answered, failure) -> {
                    if (failure == null) {
                        outcome.complete(answered);
                    } else {
                        outcome.completeExceptionally(failure);
                    }
                });
        return LoopFuture.of(outcome);
    }

    /**
     * Shuts the server down, as {@link #shutdown} does, when the JVM ends: by SIGTERM, by SIGINT or by {@code
     * System.exit}. The JVM waits for it, and up to 5 s more for connections that are closing. If the server is closed
     * before, nothing remains of this.
     *
     * <pre>{@code
     * RdmaServer.bind("0.0.0.0", 7471, handler).closeOnSigterm(Duration.ofSeconds(20));
     * }</pre>
     *
     * @param max how long clients and handlers have, more than zero: at least 5 s less than what the operating system
     *     or the orchestrator waits before it kills the process
     * @return this
     * @throws IllegalArgumentException the time is not positive
     * @throws IllegalStateException the JVM is ending already
     */
    public RdmaServer closeOnSigterm(Duration max) {
        long nanos = ShortForm.positive("most", max);
        Thread stop = new Thread(() -> shutdownAtExit(max, nanos), "verbena-shutdown");
        Runtime.getRuntime().addShutdownHook(stop);
        remove(hook.getAndSet(stop));
        if (closed) { // perhaps before the hook was there
            remove(hook.getAndSet(null));
        }
        return this;
    }

    private void shutdownAtExit(Duration max, long nanos) {
        long closingNanos = TimeUnit.MILLISECONDS.toNanos(ShortForm.CLOSE_MILLIS);
        try {
            boolean answered =
                    shutdown(max).get(Math.min(nanos, MAX_SHUTDOWN_NANOS) + closingNanos, TimeUnit.NANOSECONDS);
            if (!answered) {
                LOG.warn("{}: not all requests were answered within {} at the end of the JVM", channel, max);
            }
        } catch (InterruptedException | ExecutionException | TimeoutException failure) {
            LOG.warn("{}: the server could not be shut down at the end of the JVM", channel, failure);
        }
    }

    private static void remove(@Nullable Thread registered) {
        if (registered == null) {
            return;
        }
        try {
            Runtime.getRuntime().removeShutdownHook(registered);
        } catch (IllegalStateException ending) {
            LOG.trace("the JVM is ending, and its hooks are running", ending);
        }
    }

    /**
     * Stops listening, closes all connections in good order, those in the handshake included, ends its threads, and
     * waits until that is done. Idempotent. Does not interrupt handlers on virtual threads, and does not wait for them;
     * what they send afterwards fails: {@link #shutdown} waits for them.
     *
     * @throws io.netty.util.concurrent.BlockingOperationException on an event loop, as in a handler: use {@link
     *     #closeAsync()} there
     */
    @Override
    public void close() {
        RdmaEventLoop.checkMayWait("RdmaServer.close()", "use closeAsync()");
        CompletableFuture<Void> ended = closeAsync();
        group.clock().passUntil(ended::isDone);
        ended.join();
    }

    /**
     * Closes as {@link #close()} does, without waiting. May be called on any thread, also in a handler.
     *
     * @return done when it is closed and its threads have ended; cancelling it stops nothing
     */
    public CompletableFuture<Void> closeAsync() {
        closed = true;
        remove(hook.getAndSet(null));
        return ownsGroup
                ? ShortForm.done(group.shutdownGracefully(0, ShortForm.CLOSE_MILLIS, TimeUnit.MILLISECONDS))
                : RdmaFutures.allOf(ShortForm.close(channel), children.close());
    }

    /** How to listen. */
    public static final class Builder {
        private final Map<ChannelOption<?>, Object> options = new LinkedHashMap<>();
        private final Map<ChannelOption<?>, Object> childOptions = new LinkedHashMap<>();
        private String provider = ProviderChoice.configured();
        private int threadsPerProvider = ShortForm.SERVER_THREADS;
        private CompletionLoopOptions loopOptions = CompletionLoopOptions.DEFAULTS;
        private @Nullable RdmaEventLoopGroup sharedGroup;
        private Consumer<RdmaChannel> onConnect = connected -> {};
        private boolean discloseErrors;
        private boolean virtualThreads;
        private boolean orderedHandlers;
        private final List<ServerInterceptor> interceptors = new ArrayList<>();
        private boolean interruptCancelled;
        /** 0 for any number. */
        private int maxRunning;

        private int maxWaiting;
        /** 0 to shed nothing. */
        private long targetNanos;

        private long intervalNanos;

        private SendLimit.Bounds pendingBounds = SendLimit.Bounds.DEFAULTS;
        private OpenRequests.Bounds openBounds = OpenRequests.Bounds.DEFAULTS;

        private Builder() {}

        /**
         * Chooses the provider. The default is the value of {@value ProviderChoice#PROPERTY}, or {@code auto}, which
         * picks one for the address.
         *
         * @param name {@code auto}, {@code verbs}, {@code soft}; or several, with all of which the server listens on
         *     its one address and port, as {@link org.verbena.transport.provider.ProviderSet} describes:
         *     {@code verbs+soft}, {@code all}
         * @return this
         */
        public Builder provider(String name) {
            provider = Objects.requireNonNull(name, "the provider's name is null");
            return this;
        }

        /**
         * Sets the number of event loops <b>of each provider</b>, over which its connections are spread. A connection
         * stays on its loop, and its handler runs there. With one provider, {@code threadsPerProvider(1)} therefore
         * means that one thread runs all handlers. A server that listens with several, such as {@code all}, has this
         * many threads for each, and its handlers run on all of them at the same time: state that they share must be
         * thread-safe.
         *
         * @param count for each provider, 1 or more
         * @return this
         */
        public Builder threadsPerProvider(int count) {
            threadsPerProvider = Math.toIntExact(ShortForm.positive("threadsPerProvider", count));
            return this;
        }

        /**
         * Sets how the loops poll and block.
         *
         * @param value spin and batch sizes
         * @return this
         */
        public Builder loopOptions(CompletionLoopOptions value) {
            loopOptions = Objects.requireNonNull(value, "the loop options are null");
            return this;
        }

        /**
         * Uses these event loops, and their provider, instead of its own. The server does not end them.
         *
         * @param group may be shared with others
         * @return this
         */
        public Builder group(RdmaEventLoopGroup group) {
            sharedGroup = Objects.requireNonNull(group, "the group is null");
            return this;
        }

        /**
         * Sets an option of the listening channel.
         *
         * @param <T> its type
         * @param option {@code SO_BACKLOG} or {@code SO_REUSEADDR}
         * @param value its value
         * @return this
         */
        public <T> Builder serverOption(ChannelOption<T> option, T value) {
            options.put(option, value);
            return this;
        }

        /**
         * Sets an option of the connections.
         *
         * @param <T> its type
         * @param option of {@link RdmaChannelOption}, or one of Netty's that it names
         * @param value its value
         * @return this
         */
        public <T> Builder option(ChannelOption<T> option, T value) {
            childOptions.put(option, value);
            return this;
        }

        /**
         * Calls this for each new connection, on its event loop, before its first message: for instance to send it the
         * token of a {@link ServerMemory}. A {@code ByteBuf} written to the channel is a message to the client's
         * {@link RdmaClient.Builder#onMessage}; {@link ConnectedClient#of} is the client.
         *
         * @param consumer gets the active channel; must not block
         * @return this
         */
        public Builder onConnect(Consumer<RdmaChannel> consumer) {
            onConnect = Objects.requireNonNull(consumer, "onConnect is null");
            return this;
        }

        /**
         * If a handler throws, sends the exception's class and message to the client whose request failed. Off by
         * default, because an exception's text may reveal what clients should not know. The server's log always has it,
         * with the stack.
         *
         * @param describe whether to send it; for clients that are trusted
         * @return this
         */
        public Builder discloseErrors(boolean describe) {
            discloseErrors = describe;
            return this;
        }

        /**
         * Runs the handler on virtual threads, where it may block: each request on its own thread, concurrently with
         * others, and messages that are not requests one after another, in the order of their arrival. A message stays
         * valid until its handler returns. When 1,024 messages of a connection are unfinished, or 64 MiB of them, the
         * server stops reading from it until half of them are done. Closing the connection neither interrupts its
         * handlers nor waits for them. Messages that have arrived are still handled; requests are not, since nobody
         * would get their replies.
         *
         * <p>Off by default: the handler then runs on the event loop, which is faster and keeps all messages in order,
         * but a handler that blocks stops every connection of its loop.
         *
         * @param virtual whether to use virtual threads
         * @return this
         */
        public Builder virtualThreads(boolean virtual) {
            virtualThreads = virtual;
            return this;
        }

        /**
         * Handles the requests of a connection one after another as well, in the order in which they and the messages
         * that are not requests arrived. A handler that answers after it has returned may answer in another order. The
         * handlers of streams have turns of their own, and connections do not wait for each other. Needs {@link
         * #virtualThreads}, on which the handler may block; on the event loop all is in order anyway. Cannot be
         * combined with {@link #maxHandlers}. Off by default.
         *
         * @param ordered whether a request waits for those before it
         * @return this
         */
        public Builder orderedHandlers(boolean ordered) {
            orderedHandlers = ordered;
            return this;
        }

        /**
         * Interrupts a handler when nobody waits for its reply any more: the client has cancelled its request, its
         * timeout is over, or its connection is gone. An {@code InterruptedException} that the handler then throws is
         * not logged. Needs {@link #virtualThreads}. Off by default, since a handler may be interrupted at any point:
         * {@link Exchange#onCancel} and {@link Exchange#isCancelled} let it choose. The server knows the timeouts of
         * requests, but it reads that a client has cancelled one only when it reads from the connection again, which
         * {@link #virtualThreads} limits.
         *
         * @param interrupt whether to interrupt
         * @return this
         */
        public Builder interruptCancelled(boolean interrupt) {
            interruptCancelled = interrupt;
            return this;
        }

        /**
         * Limits how many requests are in handlers at once, those of all connections together. The others wait in the
         * order of their arrival. A request that finds the queue full is refused, and fails at its client with {@link
         * RequestException.Overloaded}. Needs {@link #virtualThreads}; messages that are not requests do not count. No
         * limit by default.
         *
         * @param running in handlers at once, 1 or more
         * @param waiting how many may wait, 0 or more
         * @return this
         */
        public Builder maxHandlers(int running, int waiting) {
            ShortForm.positive("running", running);
            if (waiting < 0) {
                throw new IllegalArgumentException("waiting " + waiting + " is below 0");
            }
            maxRunning = running;
            maxWaiting = waiting;
            return this;
        }

        /**
         * Refuses requests while the server is overloaded, so that it answers the others in time. It is overloaded when
         * every request of an interval has waited longer than the target before its handler began. Then a request that
         * has waited twice the target is refused, and fails at its client with {@link RequestException.Overloaded},
         * until a request has waited less than the target.
         *
         * <p>A request waits from the arrival of its first part: for the rest of it, for its turn under {@link
         * #maxHandlers}, and for a virtual thread. On the event loop it waits for the handlers of the requests that
         * arrived in the same batch. The time before the loop receives a request does not count, so run slow handlers
         * on virtual threads. Off by default.
         *
         * @param target how long a request may always wait, for instance 5 ms; more than zero
         * @param interval how long a burst may take, for instance 100 ms; the target or more
         * @return this
         */
        public Builder shedding(Duration target, Duration interval) {
            long min = ShortForm.positive("target", target);
            long nanos = ShortForm.positive("interval", interval);
            if (nanos < min) {
                throw new IllegalArgumentException("interval " + interval + " is shorter than target " + target);
            }
            targetNanos = Math.min(min, MAX_SHEDDING_NANOS);
            intervalNanos = Math.min(nanos, MAX_SHEDDING_NANOS);
            return this;
        }

        /**
         * Puts an interceptor around the handler of requests. Can be called more than once: the first interceptor is
         * the outermost, which sees a request first and its end last.
         *
         * @param interceptor sees each request
         * @return this
         */
        public Builder intercept(ServerInterceptor interceptor) {
            interceptors.add(Objects.requireNonNull(interceptor, "the interceptor is null"));
            return this;
        }

        /**
         * Limits what waits to be sent on each connection: messages whose futures are not done. One that exceeds the
         * limit fails with {@link SendLimitException}. Replies count but are never refused: instead the server stops
         * reading from a client that does not accept them. A message longer than {@code bytes} is sent if no other
         * waits. 65,536 messages and 128 MiB by default. What all streams of a connection wait to send counts by
         * itself, against the same limits.
         *
         * @param messages 1 to 4,194,304
         * @param bytes these may have together, 1 to 512 GiB
         * @return this
         */
        public Builder maxPending(int messages, long bytes) {
            pendingBounds = new SendLimit.Bounds(messages, bytes);
            return this;
        }

        /**
         * Limits how many requests of each connection may have arrived and have no answer, and their bytes, metadata
         * included: those in handlers, those that wait for one, and those that handlers answer later. A further one
         * fails at its client with {@link org.verbena.transport.RequestException.Refused} for reason {@code LIMIT}; its
         * handler does not begin. A request longer than {@code bytes} is taken if no other is there. 524,288 requests
         * and 128 MiB by default.
         *
         * @param requests 1 or more
         * @param bytes these may have together, 1 or more
         * @return this
         */
        public Builder maxOpenRequests(int requests, long bytes) {
            openBounds = new OpenRequests.Bounds(requests, bytes);
            return this;
        }

        /** Counts in the statistics of the provider that carries a connection. */
        private static RequestCounters countersOf(RdmaChannel accepted, RequestCounters counters) {
            RdmaProvider provider = accepted.acceptedFrom();
            return provider == null ? counters : counters.in(provider);
        }

        /** Finds the age of the queue in which a loop's requests wait: the loop's own, or that of virtual threads. */
        private Function<EventExecutor, @Nullable QueueAge> queueAges(LoopClock clock) {
            if (targetNanos == 0) {
                return loop -> null;
            }
            long target = targetNanos;
            long interval = intervalNanos;
            if (virtualThreads) {
                QueueAge one = new QueueAge(target, interval, clock.nanoTime());
                return loop -> one;
            }
            Map<EventExecutor, QueueAge> ages = new ConcurrentHashMap<>();
            return loop -> ages.computeIfAbsent(loop, key -> new QueueAge(target, interval, clock.nanoTime()));
        }

        /**
         * Listens.
         *
         * @param host a name or address of this host; {@code 0.0.0.0} or {@code ::} for all of them
         * @param port 1 to 65535, or 0 for any that is free
         * @param handler gets the messages of all clients
         * @return the server, listening
         * @throws org.verbena.transport.ConnectionException it cannot listen there; the message says why
         * @throws org.verbena.transport.ProviderUnavailableException the provider that was named cannot work here
         * @throws IllegalStateException handlers are limited, interrupted or put in order, and not on virtual threads;
         *     or limited and put in order
         * @throws io.netty.util.concurrent.BlockingOperationException on an event loop
         */
        public RdmaServer bind(String host, int port, MessageHandler handler) {
            Objects.requireNonNull(handler, "the handler is null");
            ShortForm.checkAddress("listen on ", host, port, 0);
            RdmaEventLoop.checkMayWait("RdmaServer.bind()", "bind before the loops are busy");
            String purpose = "listen on " + host + ":" + port;
            ShortForm.checkNotInterrupted(purpose);
            InetSocketAddress address = new InetSocketAddress(
                    NameLookup.SYSTEM.addresses(purpose, host, 0).getFirst(), port);
            boolean describe = discloseErrors;
            boolean virtual = virtualThreads;
            Serving.Handler handling = Exchange.handlerOf(handler, List.copyOf(interceptors));
            SendLimit.Bounds bounds = pendingBounds;
            OpenRequests.Bounds requests = openBounds;
            if (maxRunning > 0 && !virtual) {
                throw new IllegalStateException("maxHandlers limits handlers on virtual threads: build with"
                        + " virtualThreads(true). On the event loop one runs at a time");
            }
            if (interruptCancelled && !virtual) {
                throw new IllegalStateException("interruptCancelled interrupts handlers on virtual threads: build with"
                        + " virtualThreads(true). On the event loop a handler must not wait");
            }
            if (orderedHandlers && (!virtual || maxRunning > 0)) {
                throw new IllegalStateException("orderedHandlers orders handlers on virtual threads: build with"
                        + " virtualThreads(true), and without maxHandlers, since a connection has one at a time");
            }
            boolean inOrder = orderedHandlers;
            boolean interrupts = interruptCancelled;
            HandlerLimit limit = maxRunning > 0 ? new HandlerLimit(maxRunning, maxWaiting) : null;
            RdmaEventLoopGroup shared = sharedGroup;
            RdmaEventLoopGroup group = shared == null
                    ? new RdmaEventLoopGroup(
                            ProviderSet.choose(provider, address), threadsPerProvider, null, loopOptions)
                    : shared;
            Function<EventExecutor, @Nullable QueueAge> ages = queueAges(group.clock());
            ClientGroup clients = new ClientGroup();
            Consumer<RdmaChannel> then = onConnect;
            Consumer<RdmaChannel> onActive = active -> {
                clients.add(ConnectedClient.of(active));
                then.accept(active);
            };
            ServerChildren children = new ServerChildren();
            ChannelGroup connections = new DefaultChannelGroup("verbena", GlobalEventExecutor.INSTANCE);
            HandlerLog.Limits logLimits = new HandlerLog.Limits();
            RequestCounters counters = new RequestCounters(group.provider());
            ServerBootstrap bootstrap = new ServerBootstrap()
                    .group(group)
                    .channelFactory(RdmaServerChannel::new)
                    .childHandler(new ChannelInitializer<RdmaChannel>() {
                        @Override
                        protected void initChannel(RdmaChannel accepted) {
                            Messenger messenger = Messenger.ofServer(
                                    accepted.host(),
                                    new Serving(
                                            handling,
                                            virtual,
                                            inOrder,
                                            interrupts,
                                            describe,
                                            logLimits,
                                            countersOf(accepted, counters),
                                            ages.apply(accepted.eventLoop()),
                                            limit,
                                            bounds,
                                            requests,
                                            Integer.MAX_VALUE));
                            children.add(messenger);
                            ConnectedClient.accepted(accepted, messenger);
                            accepted.pipeline().addLast(new OnConnectHandler<>(accepted, connections, onActive));
                            accepted.pipeline().addLast(messenger);
                        }
                    });
            options.forEach((option, value) -> bootstrap.option(ShortForm.untyped(option), value));
            childOptions.forEach((option, value) -> bootstrap.childOption(ShortForm.untyped(option), value));
            bootstrap.childOption(RdmaChannelConfig.SHORT_FORM, true);
            try {
                RdmaServerChannel channel = (RdmaServerChannel) ShortForm.register(purpose, bootstrap);
                ShortForm.awaitOpen(purpose, channel.bind(address));
                return new RdmaServer(channel, group, shared == null, children, connections, clients, counters);
            } catch (Throwable failure) {
                if (shared == null) {
                    group.shutdownGracefully(0, 0, TimeUnit.MILLISECONDS);
                }
                throw failure;
            }
        }
    }
}
