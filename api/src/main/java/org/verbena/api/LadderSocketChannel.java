package org.verbena.api;

import io.netty.bootstrap.Bootstrap;
import io.netty.buffer.ByteBuf;
import io.netty.channel.AbstractChannel;
import io.netty.channel.Channel;
import io.netty.channel.ChannelFuture;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.ChannelMetadata;
import io.netty.channel.ChannelOutboundBuffer;
import io.netty.channel.ChannelPipeline;
import io.netty.channel.ChannelPromise;
import io.netty.channel.DefaultChannelPromise;
import io.netty.channel.EventLoop;
import io.netty.channel.FileRegion;
import io.netty.channel.socket.ChannelInputShutdownEvent;
import io.netty.channel.socket.ChannelInputShutdownReadComplete;
import io.netty.channel.socket.ChannelOutputShutdownException;
import io.netty.channel.socket.ServerSocketChannel;
import io.netty.channel.socket.SocketChannel;
import io.netty.channel.socket.SocketChannelConfig;
import io.netty.channel.socket.nio.NioSocketChannel;
import io.netty.util.concurrent.Future;
import java.net.ConnectException;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.nio.channels.AlreadyConnectedException;
import java.nio.channels.ClosedChannelException;
import java.nio.channels.ConnectionPendingException;
import java.nio.channels.NotYetConnectedException;
import java.util.concurrent.RejectedExecutionException;
import org.jspecify.annotations.Nullable;
import org.verbena.api.internal.channel.ConnectAttempt;
import org.verbena.api.internal.channel.HalfClose;
import org.verbena.api.internal.channel.OutboundBridge;
import org.verbena.api.internal.ladder.LadderConnect;
import org.verbena.api.internal.ladder.LadderInbound;
import org.verbena.api.internal.ladder.LadderMemory;
import org.verbena.api.internal.ladder.LadderOutbound;
import org.verbena.api.internal.ladder.LadderRelay;
import org.verbena.api.internal.loop.LoopGroup;
import org.verbena.api.internal.loop.RdmaEventLoop;
import org.verbena.api.internal.memory.ChannelBuffers;
import org.verbena.api.internal.request.ShortForm;
import org.verbena.api.ladder.LadderOptions;
import org.verbena.api.ladder.LadderResult;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.MemoryDomain;

/**
 * A client's {@link SocketChannel} that connects by a ladder, for libraries that make one channel of one class for each
 * connection, such as gRPC: verbs, else soft, else plain TCP, as {@link RdmaLadder} describes. Its pipeline is the
 * library's; the channel of the rung that is used lies below it and carries its bytes.
 *
 * <pre>{@code
 * new Bootstrap()
 *         .group(new RdmaEventLoopGroup("ladder", 2))
 *         .channel(LadderSocketChannel.class)
 *         .option(RdmaChannelOption.LADDER, LadderOptions.DEFAULTS.withMinimumRung("soft"))
 * }</pre>
 *
 * <p><b>Connecting</b> fails with {@link ConnectException}, which has the failures of all rungs as suppressed
 * exceptions; {@code CONNECT_TIMEOUT_MILLIS} limits all rungs together. Once connected, the channel has its {@link
 * LadderResult} and {@link Carrier}, and its pipeline gets the former as a user event before {@code channelActive}.
 * Each rung binds the local address when it is tried: if two rungs need the same local port, one of them fails.
 *
 * <p><b>Reading and writing</b> work as on the rung's channel: {@code alloc()} gives registered memory on a rung of
 * RDMA, as for an {@link RdmaSocketChannel}; half close, {@code SO_LINGER} and closing are those of the channel below;
 * its failures and user events pass through this channel's pipeline. This channel reads from the rung when its pipeline
 * asks, and a message counts towards its writability until the rung has sent it. Options apply to the rung as well;
 * those of {@link RdmaChannelOption} do not apply to plain TCP.
 *
 * <p><b>Loops.</b> The channel runs on any loop of an {@link RdmaEventLoopGroup}. The rung of that loop's own provider
 * and plain TCP share the loop. Another rung, such as soft where the group has loops of verbs as well, has a loop of
 * its own; then each write, each batch of messages and each request for another batch changes threads. {@link
 * #deregister()} closes a connected channel.
 *
 * <pre>{@code
 * OPEN --connect--> CONNECTING --a rung is up--> ACTIVE --close--> CLOSING --the rung is closed--> CLOSED
 *   |                   |                          |                                                 ^
 *   +-------------------+---- failure, close ------+--- the rung ends by itself ---------------------+
 * }</pre>
 */
public final class LadderSocketChannel extends AbstractChannel implements SocketChannel {
    private static final ChannelMetadata METADATA = new ChannelMetadata(false, 16);

    /** What the channel of a rung carries. */
    private final LadderSocketChannelConfig config;

    /** Null for that of its loops. */
    private final @Nullable LadderMemory memory;

    private final LadderHost host = new LadderHost();
    private final LadderInbound inbound = new LadderInbound(host);
    private final LadderOutbound outbound = new LadderOutbound(host);
    private final Runnable closeWithLoop = this::closeWithLoop0;

    // Written by the loop, read by any thread.
    private volatile State state = State.OPEN;
    private volatile boolean started;
    private volatile boolean outputShutdown;
    private volatile @Nullable InetSocketAddress bound;
    private volatile @Nullable SocketChannel rung;

    // Confined to the event loop.
    private @Nullable ConnectAttempt attempt;
    private @Nullable Future<SocketChannel> climb;
    private boolean lost;

    private enum State {
        OPEN,
        CONNECTING,
        ACTIVE,
        CLOSING,
        CLOSED
    }

    /**
     * Creates a channel that connects by the ladder of {@link RdmaChannelOption#LADDER}. If that is not set, its loops'
     * {@link RdmaEventLoopGroup#ladder()} applies, else the default.
     */
    public LadderSocketChannel() {
        this(null);
    }

    LadderSocketChannel(@Nullable LadderMemory memory) {
        super(null);
        this.memory = memory;
        config = new LadderSocketChannelConfig(this);
    }

    // ---- accessors

    /**
     * Returns the channel that carries this one, for its statistics and capabilities. The program must not change its
     * pipeline or its options. Any thread.
     *
     * @return an {@link RdmaSocketChannel} or Netty's {@code NioSocketChannel}; null before this channel is active
     */
    public @Nullable SocketChannel rung() {
        return rung;
    }

    @Override
    public SocketChannelConfig config() {
        return config;
    }

    @Override
    public ChannelMetadata metadata() {
        return METADATA;
    }

    @Override
    public boolean isOpen() {
        return state != State.CLOSED;
    }

    @Override
    public boolean isActive() {
        State now = state;
        return now == State.ACTIVE || now == State.CLOSING;
    }

    @Override
    public @Nullable ServerSocketChannel parent() {
        return null;
    }

    @Override
    public @Nullable InetSocketAddress localAddress() {
        return (InetSocketAddress) super.localAddress();
    }

    @Override
    public @Nullable InetSocketAddress remoteAddress() {
        return (InetSocketAddress) super.remoteAddress();
    }

    @Override
    protected @Nullable SocketAddress localAddress0() {
        SocketChannel used = rung;
        return used == null ? bound : used.localAddress();
    }

    @Override
    protected @Nullable SocketAddress remoteAddress0() {
        SocketChannel used = rung;
        return used == null ? null : used.remoteAddress();
    }

    // ---- for this package

    /** Whether the options have been read. Any thread. */
    boolean hasStarted() {
        return started;
    }

    /** Auto-read was switched off. Any thread. */
    void stopReading() {
        if (isRegistered()) {
            onLoop(null, inbound::stop);
        }
    }

    /** Closes this channel, and with it its rung; if its loop has ended, only the rung. Any thread. */
    private void closeFrom(Channel used) {
        close().addListener(closing -> {
            if (!closing.isSuccess()) {
                used.close();
            }
        });
    }

    private void onLoop(@Nullable ChannelPromise promise, Runnable task) {
        EventLoop loop = eventLoop();
        if (loop.inEventLoop()) {
            task.run();
            return;
        }
        try {
            loop.execute(task);
        } catch (RejectedExecutionException ended) {
            if (promise != null) {
                promise.tryFailure(AbstractRdmaChannel.closedBy(ended));
            }
        }
    }

    // ---- half close

    @Override
    public boolean isInputShutdown() {
        SocketChannel used = rung;
        return used == null || !isActive() || used.isInputShutdown();
    }

    @Override
    public boolean isOutputShutdown() {
        return outputShutdown || !isActive();
    }

    @Override
    public boolean isShutdown() {
        return isInputShutdown() && isOutputShutdown();
    }

    @Override
    public ChannelFuture shutdownInput() {
        return shutdownInput(newPromise());
    }

    @Override
    public ChannelFuture shutdownInput(ChannelPromise promise) {
        onLoop(promise, () -> shutdownInput0(promise));
        return promise;
    }

    @Override
    public ChannelFuture shutdownOutput() {
        return shutdownOutput(newPromise());
    }

    /**
     * Closes the output once the rung has sent everything flushed. Writes that were not flushed fail.
     *
     * @param promise completes when the rung has ended its output
     * @return the promise
     */
    @Override
    public ChannelFuture shutdownOutput(ChannelPromise promise) {
        onLoop(promise, () -> shutdownOutput0(promise));
        return promise;
    }

    @Override
    public ChannelFuture shutdown() {
        return shutdown(newPromise());
    }

    @Override
    public ChannelFuture shutdown(ChannelPromise promise) {
        return HalfClose.shutdown(this, promise);
    }

    private void shutdownInput0(ChannelPromise promise) {
        assert eventLoop().inEventLoop();
        SocketChannel used = rung;
        if (used == null || !isActive()) {
            promise.tryFailure(notActive0());
        } else {
            used.shutdownInput(reportingTo0(used, promise));
        }
    }

    private void shutdownOutput0(ChannelPromise promise) {
        assert eventLoop().inEventLoop();
        SocketChannel used = rung;
        if (used == null || state != State.ACTIVE) {
            promise.tryFailure(notActive0());
            return;
        }
        if (outputShutdown) {
            promise.trySuccess();
            return;
        }
        outputShutdown = true; // from now on no write is accepted
        outbound.handOverAll(used);
        outbound.afterSent(() -> {
            ChannelPromise ended = new DefaultChannelPromise(used, eventLoop());
            used.shutdownOutput(ended);
            ended.addListener(done -> {
                if (done.isSuccess() && unsafe() instanceof AbstractUnsafe netty) {
                    netty.shutdownOutput(promise); // fails what was not flushed, and fires ChannelOutputShutdownEvent
                } else {
                    promise.tryFailure(done.cause());
                }
            });
        });
    }

    private Exception notActive0() {
        return isOpen() && !isActive() ? new NotYetConnectedException() : new ClosedChannelException();
    }

    /** A promise of the rung that completes on this channel's loop and passes its outcome on. */
    private ChannelPromise reportingTo0(Channel used, ChannelPromise promise) {
        ChannelPromise passing = new DefaultChannelPromise(used, eventLoop());
        passing.addListener(done -> {
            if (done.isSuccess()) {
                promise.trySuccess();
            } else {
                promise.tryFailure(done.cause());
            }
        });
        return passing;
    }

    @Override
    protected void doShutdownOutput() {
        outputShutdown = true;
    }

    // ---- methods that Netty calls

    @Override
    protected AbstractUnsafe newUnsafe() {
        return new LadderUnsafe();
    }

    @Override
    protected boolean isCompatible(EventLoop loop) {
        return LoopGroup.providerOf(loop) != null;
    }

    @Override
    protected void doRegister(ChannelPromise promise) {
        ((RdmaEventLoop) eventLoop()).enter0(this, closeWithLoop, promise);
    }

    @Override
    protected void doDeregister() {
        ((RdmaEventLoop) eventLoop()).leave0(this, closeWithLoop);
    }

    /** The loop is ending: the rung's events no longer arrive here. */
    private void closeWithLoop0() {
        ((LadderUnsafe) unsafe()).closeNow();
    }

    /** The rungs bind it when they connect. */
    @Override
    protected void doBind(SocketAddress localAddress) {
        if (started || bound != null) {
            throw new IllegalStateException("bind to " + localAddress + ": the channel "
                    + (started ? "is connecting already; bind first" : "is bound to " + bound));
        }
        bound = ConnectAttempt.resolved(localAddress, "bind to ");
    }

    @Override
    protected void doDisconnect() {
        doClose();
    }

    @Override
    protected void doClose() {
        if (state == State.CLOSED) {
            return;
        }
        state = State.CLOSED;
        if (attempt != null) {
            attempt.fail(new ClosedChannelException());
        }
        Future<SocketChannel> climbing = climb;
        if (climbing != null) {
            climbing.cancel(true); // or it has succeeded, and up0 closes the channel
        }
        inbound.close();
        SocketChannel used = rung;
        if (used != null) {
            used.close();
        }
    }

    @Override
    protected void doBeginRead() {
        inbound.read();
    }

    @Override
    protected Object filterOutboundMessage(Object message) throws Exception {
        if (outputShutdown) {
            throw new ChannelOutputShutdownException("Channel output shutdown");
        }
        if (state == State.CLOSING) {
            throw new ClosedChannelException();
        }
        if (message instanceof FileRegion) {
            return message;
        }
        if (!(message instanceof ByteBuf buffer)) {
            throw new UnsupportedOperationException("a LadderSocketChannel writes ByteBuf and FileRegion; "
                    + message.getClass().getName() + " needs an encoder in the pipeline");
        }
        if (!buffer.isReadable()) {
            buffer.release();
            return OutboundBridge.EMPTY_MESSAGE;
        }
        return buffer;
    }

    @Override
    protected void doWrite(ChannelOutboundBuffer buffer) throws Exception {
        SocketChannel used = rung;
        if (used == null) {
            throw new ClosedChannelException();
        }
        outbound.handOverFlushed(buffer, used);
    }

    // ---- the climb, on the event loop

    private Future<SocketChannel> climb0(InetSocketAddress remote, @Nullable InetSocketAddress local) {
        Bootstrap template = new Bootstrap().group(eventLoop()).handler(new Relaying());
        if (local != null) {
            template.localAddress(local);
        }
        config.forRungs().forEach((option, value) -> template.option(ShortForm.untyped(option), value));
        LadderOptions chosen = config.ladder();
        LadderOptions ladder = chosen == null ? RdmaEventLoopGroup.ladderOf(eventLoop()) : chosen;
        return RdmaLadder.connect(
                template, remote, ladder, memory, SocketChannel.class, this::newRdmaRung, this::newPlainRung);
    }

    private final class Relaying extends ChannelInitializer<Channel> implements LadderConnect.TakesEnded {
        @Override
        protected void initChannel(Channel used) {
            used.pipeline().addLast(new LadderRelay(host));
        }
    }

    private RdmaSocketChannel newRdmaRung() {
        RdmaSocketChannel made = new RdmaSocketChannel();
        made.config().setRecvByteBufAllocator(config.getRecvByteBufAllocator());
        return made;
    }

    private NioSocketChannel newPlainRung() {
        NioSocketChannel made = new NioSocketChannel();
        made.config().setRecvByteBufAllocator(config.forReads());
        return made;
    }

    /** The climb has ended. */
    private void onClimbed0(Future<SocketChannel> climbed) {
        assert eventLoop().inEventLoop();
        climb = null;
        if (climbed.isSuccess()) {
            up0(climbed.getNow());
        } else if (attempt != null && attempt.isPending()) {
            fail0(climbed.cause());
        }
    }

    private void fail0(Throwable cause) {
        ConnectAttempt failed = attempt;
        if (failed != null) {
            failed.fail(cause);
        }
        unsafe().close(voidPromise());
    }

    private void up0(SocketChannel used) {
        LadderResult result = LadderResult.of(used);
        if (state != State.CONNECTING || attempt == null || result == null) {
            used.close(); // this channel was closed in the meantime
            return;
        }
        rung = used;
        used.attr(RdmaEventLoop.CLOSER).set(this::closeFrom);
        if (!used.isActive() && !lost) {
            activate0(attempt, result);
            endWithPeer0();
            return;
        }
        try {
            config.use(used.config());
            if (used instanceof RdmaSocketChannel rdma) {
                MemoryDomain domain = rdma.sharedMemory();
                ChannelBuffers buffers = ChannelBuffers.of(domain);
                buffers.attach(eventLoop());
                config.registeredAllocator(buffers.allocator());
            }
        } catch (RuntimeException failure) { // a socket that has been reset takes no options
            fail0(failure);
            return;
        }
        if (!used.isActive()) {
            fail0(new ConnectException("connect to " + result.address() + ": the connection was lost at once"));
            return;
        }
        activate0(attempt, result);
    }

    @SuppressWarnings("deprecation") // the base class remembers the addresses that were asked for
    private void activate0(ConnectAttempt made, LadderResult result) {
        RdmaLadder.mark(this, result);
        invalidateLocalAddress();
        invalidateRemoteAddress();
        state = State.ACTIVE;
        boolean wanted = made.succeed();
        pipeline().fireUserEventTriggered(result);
        pipeline().fireChannelActive(); // with auto-read on, this reads
        if (!wanted) {
            unsafe().close(voidPromise());
        } else if (isActive()) {
            inbound.resume();
        }
    }

    /** The peer closed the connection before it was this channel's, which is no failure to connect. */
    private void endWithPeer0() {
        if (!isActive()) {
            return; // the program has closed it
        }
        if (config.isAllowHalfClosure()) { // what a socket would report
            pipeline().fireUserEventTriggered(ChannelInputShutdownEvent.INSTANCE);
            pipeline().fireUserEventTriggered(ChannelInputShutdownReadComplete.INSTANCE);
        }
        ((LadderUnsafe) unsafe()).closeNow();
    }

    // ---- events of the rung, on this channel's loop

    private void onRungWritability0() {
        SocketChannel used = rung;
        ChannelOutboundBuffer buffer = unsafe().outboundBuffer();
        if (used == null || buffer == null) {
            return;
        }
        boolean writable = used.isWritable();
        if (used
                instanceof
                RdmaSocketChannel) { // which may have no credits; for a socket this channel's own count is enough
            buffer.setUserDefinedWritability(OutboundBridge.CREDIT_FLAG, writable);
        }
        if (writable) {
            host.flushAgain0();
        }
    }

    /** By this channel, or by a rung that cannot send any more. */
    private void onRungOutputShutdown0() {
        if (!outputShutdown && isActive() && unsafe() instanceof AbstractUnsafe netty) {
            netty.shutdownOutput(voidPromise());
        }
    }

    private void onRungEvent0(Object event) {
        inbound.onEvent(() -> {
            if (isActive()) {
                pipeline().fireUserEventTriggered(event);
            }
        });
    }

    private void onRungException0(Throwable cause) {
        lost = true;
        inbound.onEvent(() -> {
            if (isActive()) {
                pipeline().fireExceptionCaught(cause);
            }
        });
    }

    private void onRungInactive0(Channel ended) {
        if (!ended.equals(rung)) {
            return; // before it was this channel's, which up0 sees
        }
        if (lost || state == State.CLOSING) {
            inbound.deliverAll();
        }
        inbound.onEvent(() -> ((LadderUnsafe) unsafe()).closeNow());
    }

    /** What the two directions see of this channel. */
    private final class LadderHost implements LadderInbound.Host, LadderOutbound.Host, LadderRelay.Host {
        @Override
        public LadderInbound inbound0() {
            return inbound;
        }

        @Override
        public void onRungWritability0() {
            LadderSocketChannel.this.onRungWritability0();
        }

        @Override
        public void onRungOutputShutdown0() {
            LadderSocketChannel.this.onRungOutputShutdown0();
        }

        @Override
        public void onRungEvent0(Object event) {
            LadderSocketChannel.this.onRungEvent0(event);
        }

        @Override
        public void onRungException0(Throwable cause) {
            LadderSocketChannel.this.onRungException0(cause);
        }

        @Override
        public void onRungInactive0(Channel ended) {
            LadderSocketChannel.this.onRungInactive0(ended);
        }

        @Override
        public ChannelPipeline pipeline() {
            return LadderSocketChannel.this.pipeline();
        }

        @Override
        public EventLoop eventLoop() {
            return LadderSocketChannel.this.eventLoop();
        }

        @Override
        public boolean wantsInbound0() {
            return state == State.ACTIVE;
        }

        @Override
        public boolean request0() {
            SocketChannel used = rung;
            if (used == null) {
                return false;
            }
            used.read();
            return true;
        }

        @Override
        public @Nullable ChannelOutboundBuffer outboundBuffer() {
            return unsafe().outboundBuffer();
        }

        @Override
        public void flushAgain0() {
            if (isActive()) {
                ((LadderUnsafe) unsafe()).flushAgain0();
            }
        }
    }

    private final class LadderUnsafe extends AbstractUnsafe {

        @Override
        public void connect(SocketAddress remoteAddress, @Nullable SocketAddress localAddress, ChannelPromise promise) {
            assert eventLoop().inEventLoop();
            if (promise.isDone() || !ensureOpen(promise)) {
                return;
            }
            if (started) {
                promise.tryFailure(
                        state == State.CONNECTING ? new ConnectionPendingException() : new AlreadyConnectedException());
                return;
            }
            ConnectAttempt made = new ConnectAttempt(promise);
            try {
                InetSocketAddress to = ConnectAttempt.resolved(remoteAddress, "connect to ");
                if (localAddress != null) {
                    doBind(localAddress);
                }
                started = true;
                attempt = made;
                state = State.CONNECTING;
                Future<SocketChannel> begun = climb0(to, bound);
                climb = begun;
                begun.addListener(done -> onClimbed0(begun));
                promise.addListener(done -> {
                    if (done.isCancelled() && made.isPending()) {
                        made.forget();
                        close(voidPromise());
                    }
                });
            } catch (ConnectionException cause) {
                failed0(made, (ConnectException) new ConnectException(cause.getMessage()).initCause(cause));
            } catch (RuntimeException cause) {
                failed0(made, cause);
            }
        }

        private void failed0(ConnectAttempt made, Exception cause) {
            made.fail(cause);
            if (started) {
                close(voidPromise());
            }
        }

        @Override
        public void close(ChannelPromise promise) {
            SocketChannel used = rung;
            if (!isActive() || used == null) {
                super.close(promise);
                return;
            }
            if (!promise.setUncancellable()) {
                return;
            }
            if (!(promise instanceof io.netty.channel.VoidChannelPromise)) {
                closeFuture().addListener(closed -> promise.trySuccess());
            }
            if (state == State.ACTIVE) {
                state = State.CLOSING;
                inbound.close();
                outbound.handOverAll(used);
                used.close(); // onRungInactive0 comes back
            }
        }

        @Override
        public void deregister(ChannelPromise promise) {
            if (started && isOpen()) {
                closeNow(); // the rung is bound to this loop
            }
            super.deregister(promise);
        }

        void flushAgain0() {
            flush0();
        }

        void closeNow() {
            ClosedChannelException closed = new ClosedChannelException();
            super.close(voidPromise(), closed, closed);
        }
    }
}
