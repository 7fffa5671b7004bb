package org.verbena.sockets;

import io.netty.channel.ChannelFuture;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.ChannelOption;
import io.netty.channel.FixedRecvByteBufAllocator;
import io.netty.channel.socket.ServerSocketChannelConfig;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.BindException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.net.SocketException;
import java.net.SocketImpl;
import java.net.SocketOption;
import java.net.SocketOptions;
import java.net.SocketTimeoutException;
import java.net.StandardSocketOptions;
import java.util.ArrayDeque;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;
import org.verbena.api.RdmaEventLoopGroup;
import org.verbena.api.RdmaServerSocketChannel;
import org.verbena.api.RdmaSocketChannel;

/**
 * Implements {@code ServerSocket} on an {@link RdmaServerSocketChannel}. Connections are set up before the program
 * accepts them. Once as many as the backlog are, the channel reads no more requests until one is accepted. Peers whose
 * handshake is not complete do not count: strangers would fill the backlog with them. The provider bounds their number.
 */
final class RdmaServerSocketImpl extends SocketImpl implements Connection.Acceptor {
    private final RdmaEventLoopGroup group;
    private final Map<SocketOption<?>, Object> options = new ConcurrentHashMap<>(
            Map.of(StandardSocketOptions.SO_RCVBUF, 64 << 10, StandardSocketOptions.SO_REUSEADDR, true));
    private final BooleanSupplier mayAccept = this::mayAccept;

    private volatile int timeoutMillis;

    /** Guards the fields that follow; the event loops of all connections take it. */
    private final ReentrantLock state = new ReentrantLock();

    private final Condition acceptable = state.newCondition();
    private final ArrayDeque<Connection> established = new ArrayDeque<>();
    private @Nullable InetSocketAddress bindAddress;
    private @Nullable RdmaServerSocketChannel channel;
    private int backlog;

    private boolean full;
    private boolean closed;
    private @Nullable Throwable failure;

    RdmaServerSocketImpl(RdmaEventLoopGroup group) {
        this.group = group;
    }

    /** The socket for the next accepted connection. */
    RdmaSocketImpl newAccepted() {
        return new RdmaSocketImpl(group);
    }

    @Override
    protected void create(boolean stream) throws IOException {
        if (!stream) {
            throw new IOException("datagrams are not supported");
        }
    }

    /** Listening needs the backlog: {@link #listen} follows. */
    @Override
    protected void bind(InetAddress host, int port) throws IOException {
        state.lock();
        try {
            if (closed) {
                throw Connection.socketClosed();
            }
            bindAddress = new InetSocketAddress(host, port);
        } finally {
            state.unlock();
        }
    }

    @Override
    protected void listen(int backlog) throws IOException {
        checkMayListen();
        RdmaServerSocketChannel made = new RdmaServerSocketChannel();
        ServerSocketChannelConfig config = made.config();
        config.setAutoRead(false);
        config.setRecvByteBufAllocator(new FixedRecvByteBufAllocator(1).maxMessagesPerRead(1));
        config.setOption(ChannelOption.SO_BACKLOG, backlog);
        config.setReuseAddress((Boolean) get(StandardSocketOptions.SO_REUSEADDR));
        made.pipeline().addLast(new Requests());
        ChannelFuture listening = group.register(made);
        Blocking.untilDone(listening);
        InetSocketAddress wanted;
        state.lock();
        try {
            wanted = checkMayListen();
            this.backlog = backlog;
            channel = made; // it has its loop, so a thread that closes this socket now can close it
        } catch (SocketException refused) {
            made.close();
            throw refused;
        } finally {
            state.unlock();
        }
        if (listening.isSuccess()) {
            listening = made.bind(wanted);
            Blocking.untilDone(listening);
        }
        Throwable cause = listening.cause();
        if (cause != null) {
            state.lock();
            try {
                if (closed) {
                    throw Connection.socketClosed();
                }
                channel = null; // another address may work
            } finally {
                state.unlock();
            }
            throw cause instanceof BindException
                    ? (IOException) new BindException(cause.getMessage()).initCause(cause)
                    : new SocketException("listen on " + wanted + ": " + cause.getMessage(), cause);
        }
        address = wanted.getAddress();
        InetSocketAddress local = made.localAddress();
        localport = local == null ? wanted.getPort() : local.getPort();
    }

    /** Returns the address to listen on. */
    private InetSocketAddress checkMayListen() throws SocketException {
        state.lock();
        try {
            if (closed) {
                throw Connection.socketClosed();
            }
            if (channel != null || bindAddress == null) {
                throw new SocketException(channel != null ? "Already bound" : "Not bound");
            }
            return bindAddress;
        } finally {
            state.unlock();
        }
    }

    @Override
    protected void accept(SocketImpl into) throws IOException {
        if (!(into instanceof RdmaSocketImpl socket)) {
            throw new SocketException("only RDMA sockets can be accepted, not " + into);
        }
        Connection accepted;
        state.lock();
        try {
            if (!mayAccept()) {
                refuseToBlockTheLoop();
                if (!Blocking.until(acceptable, mayAccept, TimeUnit.MILLISECONDS.toNanos(timeoutMillis))) {
                    throw new SocketTimeoutException("Accept timed out");
                }
            }
            if (closed) {
                throw Connection.socketClosed();
            }
            if (established.isEmpty()) {
                throw new SocketException("the listener was closed", failure);
            }
            accepted = established.remove();
            RdmaServerSocketChannel listener = channel;
            if (full && listener != null) {
                full = false;
                listener.read();
            }
        } finally {
            state.unlock();
        }
        socket.adopt(accepted);
    }

    private boolean mayAccept() {
        RdmaServerSocketChannel listener = channel;
        return !established.isEmpty() || closed || listener == null || !listener.isOpen();
    }

    private void refuseToBlockTheLoop() {
        RdmaServerSocketChannel listener = channel;
        if (listener != null && listener.eventLoop().inEventLoop()) {
            throw new IllegalStateException("a blocking server socket is used on its own event loop, which would wait"
                    + " for itself: use a thread, or a server channel's handler");
        }
    }

    @Override
    protected void close() {
        RdmaServerSocketChannel listener;
        Connection[] unaccepted;
        state.lock();
        try {
            if (closed) {
                return;
            }
            closed = true;
            listener = channel;
            unaccepted = established.toArray(Connection[]::new);
            established.clear();
            acceptable.signalAll();
        } finally {
            state.unlock();
        }
        for (Connection each : unaccepted) {
            each.close();
        }
        if (listener != null) {
            ChannelFuture gone = listener.close();
            if (!listener.eventLoop().inEventLoop()) {
                gone.awaitUninterruptibly(); // the port is free when this returns
            }
        }
    }

    // ---- the event loops'
    // -----------------------------------------------------------------------------------------------------------------

    private final class Requests extends ChannelInboundHandlerAdapter {
        @Override
        public void channelActive(ChannelHandlerContext context) {
            context.read();
        }

        @Override
        public void channelRead(ChannelHandlerContext context, Object message) {
            RdmaSocketChannel requested = (RdmaSocketChannel) message;
            new Connection(requested, RdmaServerSocketImpl.this);
            group.register(requested).addListener(registered -> {
                if (!registered.isSuccess()) {
                    requested.unsafe().closeForcibly();
                }
            });
        }

        @Override
        public void channelReadComplete(ChannelHandlerContext context) {
            state.lock();
            try {
                full = established.size() >= backlog;
                if (full) {
                    return;
                }
            } finally {
                state.unlock();
            }
            context.read();
        }

        @Override
        public void exceptionCaught(ChannelHandlerContext context, Throwable cause) {
            state.lock();
            try {
                failure = cause;
            } finally {
                state.unlock();
            }
        }

        @Override
        public void channelInactive(ChannelHandlerContext context) {
            state.lock();
            try {
                acceptable.signalAll();
            } finally {
                state.unlock();
            }
        }
    }

    @Override
    public void onEstablished(Connection connection) {
        state.lock();
        try {
            if (!closed) {
                established.add(connection);
                acceptable.signal();
                return;
            }
        } finally {
            state.unlock();
        }
        connection.close();
    }

    // ---- options
    // -----------------------------------------------------------------------------------------------------------------

    @Override
    protected Set<SocketOption<?>> supportedOptions() {
        return Options.OF_SERVERS;
    }

    @Override
    protected <T> void setOption(SocketOption<T> name, T value) {
        Options.check(Options.OF_SERVERS, name, value);
        options.put(name, value);
    }

    @Override
    @SuppressWarnings("unchecked") // the option's type says what its value is
    protected <T> T getOption(SocketOption<T> name) {
        Options.checkSupported(Options.OF_SERVERS, name);
        return (T) get(name);
    }

    @SuppressWarnings("NullAway") // all that are supported have a value
    private Object get(SocketOption<?> name) {
        return options.get(name);
    }

    @Override
    public void setOption(int id, Object value) throws SocketException {
        if (id == SocketOptions.SO_TIMEOUT) {
            timeoutMillis = Options.millis(value);
            return;
        }
        SocketOption<?> name = Options.of(id);
        try {
            if (name == null) {
                throw new UnsupportedOperationException("Unknown option " + id);
            }
            Options.check(Options.OF_SERVERS, name, value);
        } catch (IllegalArgumentException | UnsupportedOperationException cause) {
            throw new SocketException(cause.getMessage(), cause);
        }
        options.put(name, value);
    }

    @Override
    public Object getOption(int id) throws SocketException {
        if (id == SocketOptions.SO_TIMEOUT) {
            return timeoutMillis;
        }
        SocketOption<?> name = Options.of(id);
        if (name == null || !Options.OF_SERVERS.contains(name)) {
            throw new SocketException("Unknown option " + id);
        }
        return get(name);
    }

    // ---- not a server's
    // -----------------------------------------------------------------------------------------------------------------

    private static UnsupportedOperationException listens() {
        return new UnsupportedOperationException("this socket listens");
    }

    @Override
    protected void connect(String host, int port) {
        throw listens();
    }

    @Override
    protected void connect(InetAddress address, int port) {
        throw listens();
    }

    @Override
    protected void connect(SocketAddress address, int timeout) {
        throw listens();
    }

    @Override
    protected InputStream getInputStream() {
        throw listens();
    }

    @Override
    protected OutputStream getOutputStream() {
        throw listens();
    }

    @Override
    protected int available() {
        throw listens();
    }

    @Override
    protected void sendUrgentData(int data) {
        throw listens();
    }
}
