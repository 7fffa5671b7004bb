package org.verbena.api;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.ChannelOption;
import io.netty.util.concurrent.Future;
import java.net.SocketAddress;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.verbena.api.client.ClientInterceptor;
import org.verbena.api.client.ClientState;
import org.verbena.api.client.RequestOptions;
import org.verbena.api.client.Target;
import org.verbena.api.internal.client.CallPlan;
import org.verbena.api.internal.client.Connected;
import org.verbena.api.internal.client.Links;
import org.verbena.api.internal.client.Operations;
import org.verbena.api.internal.loop.LoopFuture;
import org.verbena.api.internal.loop.RdmaEventLoop;
import org.verbena.api.internal.request.NameLookup;
import org.verbena.api.internal.request.Operation;
import org.verbena.api.internal.request.SendLimit;
import org.verbena.api.internal.request.ShortForm;
import org.verbena.api.ladder.LadderOptions;
import org.verbena.api.ladder.LadderResult;
import org.verbena.api.queuepair.QueuePairExchangeAddress;
import org.verbena.api.service.MessageStream;
import org.verbena.api.service.Method;
import org.verbena.api.service.Reply;
import org.verbena.api.service.ValueStream;
import org.verbena.transport.ClientStatistics;
import org.verbena.transport.CompletionLoopOptions;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.RequestException;
import org.verbena.transport.SendLimitException;
import org.verbena.transport.provider.ProviderChoice;
import org.verbena.transport.provider.ProviderSet;

/**
 * A client of messages, for programs that do not use Netty otherwise. Its peer is an {@link RdmaServer}.
 *
 * <pre>{@code
 * try (RdmaClient client = RdmaClient.connect("host", 7471)) {
 *     byte[] reply = client.request(bytes).get();
 * }
 * }</pre>
 *
 * <p><b>Types.</b> Methods that take the JDK's types return the JDK's: {@code byte[]} and {@link ByteBuffer} with
 * {@link CompletableFuture}. The message is copied before the call returns, and the reply is a copy on the heap. For a
 * {@code MemorySegment} pass {@code segment.asByteBuffer()}. Methods that take Netty's {@link ByteBuf} return Netty's
 * {@link Future}; ownership passes with the buffer, which is sent without a copy unless it is short.
 *
 * <p><b>Threads.</b> All methods may be called on any thread, platform or virtual, except that {@link #connect} and
 * {@link #close} wait, which event loops must not. Futures complete on the event loop of the connection, or on virtual
 * threads if there was no connection when the operation began. A stage that was added before that runs there and must
 * not block: use the {@code Async} methods for stages that do. Without an executor these run each stage on a virtual
 * thread. Waiting for such a future on an event loop fails at once.
 *
 * <p><b>Connections.</b> A client outlives its connections. When one is lost, the client makes another, with longer
 * waits from attempt to attempt ({@link Builder#backOff}). Meanwhile {@link #state()} is not {@link ClientState#READY},
 * and what is sent waits for a connection, a request until its timeout, unless the client {@linkplain Builder#failFast
 * fails fast}. A request that was under way on the lost connection fails with {@link ConnectionException}, whose {@link
 * ConnectionException#mayHaveBegun} tells whether the server may have begun with it. A client of several servers
 * ({@link Target}) sends each request to the less loaded of two.
 *
 * <p>Messages that the server has not accepted yet wait in memory: wait for their futures from time to time, or check
 * {@link #isWritable()}.
 */
public final class RdmaClient implements MessageClient {
    private final Links links;
    private final Operations operations;
    private final ClientDialer dialer;
    private final long requestTimeoutNanos;

    /**
     * Creates one that has no connection yet.
     *
     * @param how is not changed afterwards
     * @param name of the target, for messages
     */
    private RdmaClient(ClientSettings how, String name) {
        dialer = new ClientDialer(how);
        links = new Links(name, dialer, how.linking());
        operations = new Operations(links);
        dialer.begin(links);
        requestTimeoutNanos = how.requestTimeoutNanos;
    }

    private static RdmaClient begin(ClientSettings how, Target target) {
        RdmaClient client = new RdmaClient(how, target.toString());
        client.links.begin(target, how.names);
        return client;
    }

    /** Done when the first connection is up; fails when the first attempts have all failed. */
    CompletableFuture<Void> first() {
        return links.first();
    }

    Executor elsewhere() {
        return links.elsewhere();
    }

    /** Waits for the first connection. */
    private RdmaClient awaitFirst(String purpose) {
        try {
            links.first().get();
            return this;
        } catch (InterruptedException interruption) {
            closeAsync();
            throw ShortForm.interrupted(purpose, interruption);
        } catch (ExecutionException failed) {
            closeAsync();
            Throwable cause = failed.getCause();
            throw ShortForm.unchecked(purpose, cause == null ? failed : cause);
        }
    }

    /**
     * Connects, with the defaults of {@link #builder()}.
     *
     * @param host a name or address
     * @param port 1 to 65535
     * @return the client, connected
     * @throws org.verbena.transport.ConnectionException it could not; the message names address, step and reason
     */
    public static RdmaClient connect(String host, int port) {
        return builder().connect(host, port);
    }

    /**
     * Starts a client with options.
     *
     * @return a builder with the defaults
     * @throws org.verbena.transport.ProviderUnavailableException nothing can work here: Netty is older than 4.2, or the
     *     JVM denies native access; the message says what to do
     */
    public static Builder builder() {
        ProviderChoice.checkRequirements();
        return new Builder();
    }

    @Override
    public Future<Void> send(ByteBuf message) {
        return operations.start(Operation.SEND, message, requestTimeoutNanos);
    }

    @Override
    public CompletableFuture<Void> send(byte[] message) {
        return operations.start(Operation.SEND, message, requestTimeoutNanos);
    }

    @Override
    public CompletableFuture<Void> send(ByteBuffer message) {
        return operations.start(Operation.SEND, message, requestTimeoutNanos);
    }

    @Override
    public Future<ByteBuf> request(ByteBuf message) {
        return operations.start(Operation.REQUEST, message, requestTimeoutNanos);
    }

    @Override
    public Future<ByteBuf> request(ByteBuf message, Duration timeout) {
        return operations.start(Operation.REQUEST, message, ShortForm.positive("timeout", timeout));
    }

    @Override
    public Future<ByteBuf> request(ByteBuf message, RequestOptions options) {
        return operations.start(message, options);
    }

    @Override
    public CompletableFuture<byte[]> request(byte[] message) {
        return operations.start(Operation.REQUEST_BYTES, message, requestTimeoutNanos);
    }

    @Override
    public CompletableFuture<byte[]> request(byte[] message, Duration timeout) {
        return operations.start(Operation.REQUEST_BYTES, message, ShortForm.positive("timeout", timeout));
    }

    @Override
    public CompletableFuture<byte[]> request(byte[] message, RequestOptions options) {
        return operations.start(message, options);
    }

    @Override
    public CompletableFuture<ByteBuffer> request(ByteBuffer message) {
        return operations.start(Operation.REQUEST_BUFFER, message, requestTimeoutNanos);
    }

    @Override
    public CompletableFuture<ByteBuffer> request(ByteBuffer message, Duration timeout) {
        return operations.start(Operation.REQUEST_BUFFER, message, ShortForm.positive("timeout", timeout));
    }

    @Override
    public CompletableFuture<ByteBuffer> request(ByteBuffer message, RequestOptions options) {
        return operations.start(message, options);
    }

    @Override
    public CompletableFuture<Reply<byte[]>> requestReply(byte[] message, RequestOptions options) {
        return operations.startReply(message, options);
    }

    @Override
    public <Q, R> CompletableFuture<R> call(Method<Q, R> method, Q request, RequestOptions options) {
        return operations.call(method, request, options);
    }

    @Override
    public <Q, R> CompletableFuture<Reply<R>> callReply(Method<Q, R> method, Q request, RequestOptions options) {
        return operations.callReply(method, request, options);
    }

    @Override
    public MessageStream stream(ByteBuf message, RequestOptions options) {
        return operations.stream(message, options);
    }

    @Override
    public MessageStream stream(byte[] message, RequestOptions options) {
        return stream(Unpooled.copiedBuffer(message), options);
    }

    @Override
    public <Q, R> ValueStream<Q, R> stream(Method<Q, R> method, RequestOptions options) {
        return operations.stream(method, options);
    }

    @Override
    public <Q, R> ValueStream<Q, R> stream(Method<Q, R> method, Q request, RequestOptions options) {
        return operations.stream(method, request, options);
    }

    @Override
    public boolean isWritable() {
        return links.isWritable();
    }

    @Override
    public CompletableFuture<Void> whenWritable() {
        return links.whenWritable();
    }

    /** {@return how many replies were dropped, since their request had timed out or had been cancelled} */
    public long lateReplies() {
        return links.lateReplies().sum();
    }

    /** {@return what the client has done, and what waits in it, all connections together: a snapshot} Any thread. */
    public ClientStatistics statistics() {
        return links.statistics();
    }

    /**
     * Returns a connection, for one-sided operations and everything else: one that is up, or, while none is, the last
     * that was. A {@code ByteBuf} that is written to it is a message to the server's handler, as {@link #send(ByteBuf)}
     * sends it. When the connection is lost, or the client {@linkplain LadderOptions#withMoveUp moves up}, the client
     * takes another. Registered memory, remote keys and whatever else belongs to a connection end with it.
     *
     * @return the channel
     * @throws ConnectionException.Unavailable the client has had no connection yet
     */
    public RdmaChannel channel() {
        return (RdmaChannel) links.channel();
    }

    /** {@return the state of the client's connections, a snapshot} */
    public ClientState state() {
        return links.state();
    }

    /**
     * Returns why the client is in its {@linkplain #state() state}, if that is not {@link ClientState#READY}: why the
     * last attempt to connect or to find an address has failed, or the last connection was lost. It stays until there
     * is another reason.
     *
     * @return null if nothing has failed yet
     */
    public @Nullable Throwable lastFailure() {
        return links.lastFailure();
    }

    /**
     * Has the client connect at once where it waits before the next attempt, and forgets how often that has failed: for
     * programs that know of a network that is back. While a request or {@link #whenReady()} waits for a connection, the
     * longest wait is a tenth of that of {@link Builder#backOff} in any case.
     */
    public void resetBackoff() {
        links.resetBackoff();
    }

    /**
     * Waits for a connection. An {@linkplain Builder#idleAfter idle} client makes one.
     *
     * @return done when one is up, which may be at once; fails with {@link ConnectionException} when the client is
     *     closed. Stages run on a virtual thread
     */
    public CompletableFuture<Void> whenReady() {
        return links.whenReady();
    }

    /**
     * Returns the name of the provider of the newest connection.
     *
     * @return {@code verbs}, {@code soft} ...; before the first connection, the name that the builder has
     */
    public String provider() {
        Connected newest = links.newest();
        Carrier carrier = newest == null ? null : Carrier.of(newest.channel());
        return carrier == null ? dialer.providerName() : carrier.name();
    }

    /**
     * Returns which rung of the ladder the newest connection uses, and why none of the better ones. It changes with
     * each connection, and when the client {@linkplain LadderOptions#withMoveUp moves up}.
     *
     * @return null if it was not connected by a {@linkplain Builder#ladder ladder}, or has had no connection yet
     */
    public @Nullable LadderResult ladder() {
        Connected newest = links.newest();
        return newest == null ? null : newest.ladder();
    }

    /**
     * Sends what is still queued, closes the connections in good order, ends the client's threads, and waits until that
     * is done. Requests without a reply fail. Idempotent. Does not interrupt handlers on virtual threads, and does not
     * wait for them.
     *
     * @throws io.netty.util.concurrent.BlockingOperationException on an event loop, as in a listener: use {@link
     *     #closeAsync()} there
     */
    @Override
    public void close() {
        RdmaEventLoop.checkMayWait("RdmaClient.close()", "use closeAsync()");
        CompletableFuture<Void> closed = closeAsync();
        dialer.clock().passUntil(closed::isDone);
        closed.join();
    }

    /**
     * Closes as {@link #close()} does, without waiting. May be called on any thread, also on the event loop.
     *
     * @return done when it is closed and its threads have ended; cancelling it stops nothing
     */
    public CompletableFuture<Void> closeAsync() {
        return links.close();
    }

    /** How to connect. */
    public static final class Builder {
        private final ClientSettings settings = new ClientSettings();

        private Builder() {}

        /** Looks names up otherwise, in tests. */
        Builder names(NameLookup lookup) {
            settings.names = lookup;
            return this;
        }

        /**
         * Chooses the provider. The default is the value of {@value ProviderChoice#PROPERTY}, or {@code auto}, which
         * picks one for the address, each time that it connects: shared memory, if that is on the class path and a
         * server of this host and user listens with it there, and if that fails the usual one. A named provider never
         * falls back to another; {@code ladder} does, and is short
         * for {@link #ladder} with {@link LadderOptions#DEFAULTS}. The later of the two calls applies.
         *
         * @param name {@code auto}, {@code verbs}, {@code soft}, {@code ladder}
         * @return this
         */
        public Builder provider(String name) {
            settings.provider = Objects.requireNonNull(name, "the provider's name is null");
            settings.ladder = name.equals(ProviderSet.LADDER) ? LadderOptions.DEFAULTS : null;
            return this;
        }

        /**
         * Connects with the best provider that client and server have in common: see {@link RdmaLadder}. With a {@link
         * #group} it must have loops of these providers.
         *
         * @param options what is tried, and when
         * @return this
         */
        public Builder ladder(LadderOptions options) {
            settings.ladder = Objects.requireNonNull(options, "the ladder's options are null");
            return this;
        }

        /**
         * Sets how the loop polls and blocks.
         *
         * @param value spin and batch sizes
         * @return this
         */
        public Builder loopOptions(CompletionLoopOptions value) {
            settings.loopOptions = Objects.requireNonNull(value, "the loop options are null");
            return this;
        }

        /**
         * Uses these event loops, and their provider or their {@linkplain RdmaEventLoopGroup#ladder() ladder}. The
         * client does not end them. By default clients share loops that are made for the first of them, one for each
         * processor but four at most, and that end with the last.
         *
         * @param group may be shared with others
         * @return this
         */
        public Builder group(RdmaEventLoopGroup group) {
            settings.sharedGroup = Objects.requireNonNull(group, "the group is null");
            return this;
        }

        /**
         * Sets an option of the connection.
         *
         * @param <T> its type
         * @param option of {@link RdmaChannelOption}, or one of Netty's that it names
         * @param value its value
         * @return this
         */
        public <T> Builder option(ChannelOption<T> option, T value) {
            settings.options.put(option, value);
            return this;
        }

        /**
         * Limits how long connecting may take, all steps together, looking up the name included. 30 s by default.
         *
         * @param timeout more than zero, counted in milliseconds
         * @return this
         */
        public Builder connectTimeout(Duration timeout) {
            long millis = TimeUnit.NANOSECONDS.toMillis(ShortForm.positive("connectTimeout", timeout));
            return option(ChannelOption.CONNECT_TIMEOUT_MILLIS, Math.clamp(millis, 1, Integer.MAX_VALUE));
        }

        /**
         * Limits how long a reply may take if {@code request} gets no timeout. 30 s by default.
         *
         * @param timeout more than zero
         * @return this
         */
        public Builder requestTimeout(Duration timeout) {
            settings.requestTimeoutNanos = ShortForm.positive("requestTimeout", timeout);
            return this;
        }

        /**
         * Connects from this address instead of the one that the route suggests.
         *
         * @param host a name or address of this host
         * @return this
         */
        public Builder localHost(String host) {
            settings.localHost = Objects.requireNonNull(host, "the local host is null");
            return this;
        }

        /**
         * Sets the handler of messages from the server that are not replies. Without a handler they are logged as
         * errors.
         *
         * @param value gets them
         * @return this
         */
        public Builder onMessage(MessageHandler value) {
            settings.handler = Objects.requireNonNull(value, "the handler is null");
            return this;
        }

        /**
         * Calls an interceptor before each request. Can be called more than once: interceptors see a request in the
         * order in which they were added, and its end in the reverse.
         *
         * @param interceptor sees each request
         * @return this
         */
        public Builder intercept(ClientInterceptor interceptor) {
            settings.interceptors.add(Objects.requireNonNull(interceptor, "the interceptor is null"));
            return this;
        }

        /**
         * Runs the handler of {@link #onMessage} on virtual threads, where it may block and wait for replies: one
         * message after another, in the order of their arrival. Messages that wait for the handler count as held by the
         * program. Closing the client neither interrupts the handler nor waits for it. Off by default: the handler then
         * runs on the event loop, and while it blocks, no reply arrives.
         *
         * @param virtual whether to use virtual threads
         * @return this
         */
        public Builder virtualThreads(boolean virtual) {
            settings.virtualThreads = virtual;
            return this;
        }

        /**
         * Sends requests again that an overloaded server has refused ({@link RequestException.Overloaded}), within
         * their timeout: no sooner than the server's hint says, with twice the delay each time, and up to the same
         * delay again at random; to another server, if there is one and the request has no key. The message is kept
         * until then. The client sends at most a tenth as many requests again as are answered, plus a burst of ten, so
         * that retries do not keep a server overloaded. 0 by default.
         *
         * @param max how often each request may be sent again, 0 or more
         * @return this
         */
        public Builder retries(int max) {
            if (max < 0) {
                throw new IllegalArgumentException("retries " + max + " is below 0");
            }
            settings.retries = max;
            return this;
        }

        /**
         * Limits what waits to be sent: messages and requests that the transport has not taken completely. One that
         * exceeds the limit fails at once with {@link SendLimitException}, and may be sent again when an earlier one is
         * done. A message longer than {@code bytes} is sent if no other waits. 65,536 messages and 128 MiB by default.
         * What all streams of a connection wait to send counts by itself, against the same limits, and so does what
         * those without a connection wait to send.
         *
         * @param messages 1 to 4,194,304
         * @param bytes these may have together, 1 to 512 GiB
         * @return this
         */
        public Builder maxPending(int messages, long bytes) {
            settings.pendingBounds = new SendLimit.Bounds(messages, bytes);
            return this;
        }

        /**
         * Limits how many requests may wait for their replies, on each connection. One that exceeds the limit fails
         * with {@link SendLimitException}, and may be sent again when an earlier one has its reply. 262,144 by default.
         *
         * @param max 1 or more
         * @return this
         */
        public Builder maxRequests(int max) {
            settings.maxRequests = Math.toIntExact(ShortForm.positive("maxRequests", max));
            return this;
        }

        /**
         * Says where the servers are, for {@link #connect()}, {@link #connectAsync()} and {@link #start()}.
         *
         * @param value one server or several
         * @return this
         */
        public Builder target(Target value) {
            settings.target = Objects.requireNonNull(value, "the target is null");
            return this;
        }

        /**
         * Sets how many connections there are to each address. 1 by default. Each takes the memory of a connection and
         * may be on another of the {@link #group}'s loops; requests go to the less loaded of two.
         *
         * @param perAddress 1 to 1,024
         * @return this
         */
        public Builder connections(int perAddress) {
            settings.setConnections(perAddress);
            return this;
        }

        /**
         * Fails requests and messages at once with {@link ConnectionException.Unavailable} while no connection is up
         * and the last attempts have failed: from {@link ClientState#BACKING_OFF} until {@link ClientState#READY}. They
         * wait while the client connects for the first time, wakes, or returns to a server that has asked it to leave.
         * By default they always wait: a request until its timeout, a message as long as the {@linkplain
         * #requestTimeout request timeout}. What waits is limited as {@link #maxPending} says.
         *
         * @return this
         */
        public Builder failFast() {
            settings.failsFast = true;
            return this;
        }

        /**
         * Says whether requests may be handled more than once without harm. Off by default. If they may, one whose
         * connection is lost is sent again on another connection, within its timeout: the first time in any case, and
         * further times under the budget of {@link #retries}. {@link RequestOptions#withIdempotent} says it for one
         * request.
         *
         * @param value true if they may
         * @return this
         */
        public Builder idempotent(boolean value) {
            settings.idempotent = value;
            return this;
        }

        /**
         * Sends an {@linkplain #idempotent idempotent} request that has no reply after a time on another connection as
         * well, and takes the first reply, so that one slow server does not make its clients slow. Under the budget of
         * {@link #retries}. Off by default.
         *
         * @param delay more than zero
         * @return this
         */
        public Builder hedgeAfter(Duration delay) {
            settings.hedgeNanos = ShortForm.positive("hedgeAfter", delay);
            return this;
        }

        /**
         * As {@link #hedgeAfter}, with the time that 95 of 100 replies to this client need at most. The client begins
         * when it knows that time, after 200 replies. Only requests that may be sent more than once, or that have a
         * key, are counted, and none that has waited for a connection.
         *
         * @return this
         */
        public Builder hedgeSlowest() {
            settings.hedgeNanos = CallPlan.USUAL_HEDGE;
            return this;
        }

        /**
         * Replaces each connection when it is so old, and up to a tenth less at random, so that connections spread over
         * servers that have been added behind one address. The old one ends when its requests have their replies: what
         * the server sends on it after that, such as messages of its own, is lost. No limit by default.
         *
         * @param age more than zero
         * @return this
         */
        public Builder maxConnectionAge(Duration age) {
            settings.maxAgeNanos = ShortForm.positive("maxConnectionAge", age);
            return this;
        }

        /**
         * Leaves the connections when they have carried no message, request or one-sided operation for this time, or up
         * to half as long again, and nothing is under way or waits. The client is then {@link ClientState#IDLE}, and
         * costs its server nothing. The next request, message or {@link #whenReady()} connects again, to the addresses
         * that there are by then, and waits for the connection; {@link #failFast} applies only if that cannot be made.
         * Off by default. A client that has a handler ({@link #onMessage}), is connected by hand, or does not {@link
         * #reconnect}, is never idle. What belongs to a connection, such as registered memory, ends with it.
         *
         * @param time more than zero
         * @return this
         */
        public Builder idleAfter(Duration time) {
            settings.idleNanos = ShortForm.positive("idleAfter", time);
            return this;
        }

        /**
         * Sets whether the client makes a lost connection again. On by default. Switch it off in programs whose
         * connection has a state of its own, such as registered memory or what the server keeps for it: the client is
         * then {@link ClientState#CLOSED} when it has lost its connections, and further requests fail.
         *
         * @param value whether to connect again
         * @return this
         */
        public Builder reconnect(boolean value) {
            settings.reconnects = value;
            return this;
        }

        /**
         * Sets how long the client waits before it connects again: after a failure any time up to {@code min}, after
         * each further failure up to 1.6 times as long as before, and never longer than {@code max}. The wait is
         * random, so that clients which have lost the same server do not come back all at once. 50 ms and 30 s by
         * default.
         *
         * @param min the first bound, more than zero
         * @param max the last bound, no less than that
         * @return this
         */
        public Builder backOff(Duration min, Duration max) {
            settings.setBackOff(min, max);
            return this;
        }

        /**
         * Sets how often a {@linkplain Target#of(String, int) name} is looked up again, to follow its servers. It is
         * also looked up when all connections are lost. 30 s by default; the JVM and the system may cache its addresses
         * for longer.
         *
         * @param every more than zero
         * @return this
         */
        public Builder lookUpEvery(Duration every) {
            settings.lookUpNanos = ShortForm.positive("lookUpEvery", every);
            return this;
        }

        /**
         * Calls this with each state of the client, {@link ClientState#CONNECTING} first, one after another on a
         * virtual thread, so that it may block. Can be called more than once, for several listeners.
         *
         * @param listener gets the states
         * @return this
         */
        public Builder onState(Consumer<ClientState> listener) {
            settings.stateListeners.add(Objects.requireNonNull(listener, "the listener is null"));
            return this;
        }

        /**
         * Calls this with each new connection before the client uses it, also with those that replace others: to say
         * who the client is, or what it subscribes to, which the server forgets with the connection. It runs on a
         * virtual thread and may wait, for a reply for example. Until it has returned, the connection is not up; if it
         * throws, the attempt to connect has failed with that. Messages from the server may come meanwhile. Can be
         * called more than once, for several listeners.
         *
         * @param listener gets the connections
         * @return this
         */
        public Builder onConnection(Consumer<ConnectedServer> listener) {
            settings.connectionListeners.add(Objects.requireNonNull(listener, "the listener is null"));
            return this;
        }

        /**
         * Connects, and waits until a first connection is up. Attempts with several addresses are made at the same
         * time, and those that have failed by then are tried again in the background. An interrupt ends all of them.
         *
         * @param host a name or address
         * @param port 1 to 65535
         * @return the client, connected
         * @throws org.verbena.transport.ConnectionException an attempt with each address has failed; the message names
         *     address, step and reason. If the thread is interrupted, the cause is an {@link InterruptedException}, and
         *     the thread stays interrupted
         * @throws org.verbena.transport.ProviderUnavailableException the provider that was named cannot work here
         * @throws io.netty.util.concurrent.BlockingOperationException on an event loop: use {@link #connectAsync}
         */
        public RdmaClient connect(String host, int port) {
            return connect(Target.of(host, port));
        }

        /**
         * Connects to the {@link #target}, and waits, as {@link #connect(String, int)} does.
         *
         * @return the client, connected
         * @throws org.verbena.transport.ConnectionException as {@link #connect(String, int)}
         * @throws IllegalStateException there is no target
         */
        public RdmaClient connect() {
            return connect(target());
        }

        private RdmaClient connect(Target to) {
            RdmaEventLoop.checkMayWait("RdmaClient.connect()", "use connectAsync()");
            String purpose = "connect to " + to;
            ShortForm.checkNotInterrupted(purpose);
            return begin(settings.copy(), to).awaitFirst(purpose);
        }

        private Target target() {
            Target to = settings.target;
            if (to == null) {
                throw new IllegalStateException("the builder has no target: say target(Target.of(host, port))");
            }
            return to;
        }

        /**
         * Begins to connect to the {@link #target}, and does not wait for a connection, nor fail for lack of one: see
         * {@link #whenReady()}.
         *
         * @return the client
         * @throws IllegalStateException there is no target
         */
        public RdmaClient start() {
            return begin(settings.copy(), target());
        }

        /**
         * Connects to a peer by hand, without rdma_cm, and waits until that is done. The peer may be another client: it
         * handles this end's requests with {@link #onMessage}. Exactly one of the two ends must have an exchange that
         * {@linkplain org.verbena.transport.QueuePairExchange#answers() answers}. An interrupt ends the attempt. When
         * the connection is lost, the client is {@link ClientState#CLOSED}.
         *
         * @param peer the local end, and the exchange with the peer's
         * @return the client, connected
         * @throws org.verbena.transport.ConnectionException it could not; the message names device, step and reason. An
         *     interrupt is reported as by {@link #connect(String, int)}
         * @throws UnsupportedOperationException the provider has no queue pairs that can be connected by hand
         * @throws org.verbena.transport.ProviderUnavailableException the provider that was named cannot work here
         * @throws io.netty.util.concurrent.BlockingOperationException on an event loop
         */
        public RdmaClient connect(QueuePairExchangeAddress peer) {
            if (settings.localHost != null) {
                throw new IllegalArgumentException(
                        "connect to " + peer + ": its route has the local end, not localHost");
            }
            if (settings.ladder != null) {
                throw new IllegalArgumentException("a ladder connects to an IP address, not to " + peer);
            }
            RdmaEventLoop.checkMayWait("RdmaClient.connect()", "connect before the loops are busy");
            String purpose = "connect to " + peer;
            ShortForm.checkNotInterrupted(purpose);
            SocketAddress address = peer;
            ClientSettings how = settings.copy();
            how.reconnects = false; // nor more than one: the exchange is for this queue pair
            how.connections = 1;
            how.maxAgeNanos = 0;
            RdmaClient client = new RdmaClient(how, peer.toString());
            client.links.begin(address);
            return client.awaitFirst(purpose);
        }

        /**
         * Connects without waiting. The builder is read at once and may be changed afterwards.
         *
         * @param host a name or address
         * @param port 1 to 65535
         * @return the client; fails with what {@link #connect} throws. If it is cancelled, or completed by its owner in
         *     another way, {@code orTimeout} included, the attempt ends, and a client that is connected by then is
         *     closed
         */
        public CompletableFuture<RdmaClient> connectAsync(String host, int port) {
            Target to;
            try {
                to = Target.of(host, port);
            } catch (IllegalArgumentException wrong) {
                return LoopFuture.of(CompletableFuture.failedFuture(wrong));
            }
            return ConnectingClient.of(begin(settings.copy(), to));
        }

        /**
         * Connects to the {@link #target} without waiting, as {@link #connectAsync(String, int)} does.
         *
         * @return the client; fails with what {@link #connect()} throws
         * @throws IllegalStateException there is no target
         */
        public CompletableFuture<RdmaClient> connectAsync() {
            return ConnectingClient.of(begin(settings.copy(), target()));
        }
    }
}
