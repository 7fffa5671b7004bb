package org.verbena.sockets;

import java.io.IOException;
import java.io.InputStream;
import java.io.InterruptedIOException;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.net.SocketException;
import java.net.SocketImpl;
import java.net.SocketOption;
import java.net.SocketOptions;
import java.net.UnknownHostException;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.verbena.api.RdmaEventLoopGroup;

/** Implements {@code Socket} on a {@link Connection}. The {@code Socket} itself checks which calls its state allows. */
final class RdmaSocketImpl extends SocketImpl {
    private final RdmaEventLoopGroup group;

    /** Set once, when the socket is created or accepted. */
    private volatile @Nullable Connection connection;

    private volatile int timeoutMillis;
    private volatile boolean urgentInline;

    RdmaSocketImpl(RdmaEventLoopGroup group) {
        this.group = group;
    }

    private Connection open() throws SocketException {
        Connection open = connection;
        if (open == null || open.isClosed()) {
            throw Connection.socketClosed();
        }
        return open;
    }

    @Override
    protected void create(boolean stream) throws IOException {
        if (!stream) {
            throw new IOException("datagrams are not supported");
        }
        Connection made = new Connection(group.newSocketChannel(), null);
        made.register(group);
        connection = made;
    }

    /** Becomes a connection that a peer has requested. */
    void adopt(Connection accepted) {
        connection = accepted;
        InetSocketAddress remote = accepted.channel().remoteAddress();
        if (remote != null) {
            address = remote.getAddress();
            port = remote.getPort();
        }
        readLocalPort(accepted);
    }

    private void readLocalPort(Connection from) {
        InetSocketAddress local = from.channel().localAddress();
        if (local != null) {
            localport = local.getPort();
        }
    }

    @Override
    protected void connect(String host, int port) throws IOException {
        connect(new InetSocketAddress(host, port), 0);
    }

    @Override
    protected void connect(InetAddress address, int port) throws IOException {
        connect(new InetSocketAddress(address, port), 0);
    }

    @Override
    protected void connect(SocketAddress to, int timeoutMillis) throws IOException {
        if (!(to instanceof InetSocketAddress internet)) {
            throw new IllegalArgumentException(to + " is not an internet address");
        }
        if (internet.isUnresolved()) {
            throw new UnknownHostException(internet.getHostName());
        }
        InetAddress host = internet.getAddress();
        if (host.isAnyLocalAddress()) {
            host = InetAddress.getLocalHost();
        }
        Connection open = open();
        address = host;
        port = internet.getPort();
        try {
            open.connect(new InetSocketAddress(host, port), timeoutMillis);
        } catch (InterruptedIOException cause) {
            close();
            if (Thread.currentThread().isVirtual() && Thread.currentThread().isInterrupted()) {
                throw new SocketException("Closed by interrupt");
            }
            throw cause;
        }
        readLocalPort(open);
    }

    @Override
    protected void bind(InetAddress host, int port) throws IOException {
        Connection open = open();
        open.bind(new InetSocketAddress(host, port));
        readLocalPort(open);
    }

    @Override
    protected void listen(int backlog) {
        throw new UnsupportedOperationException("this socket connects");
    }

    @Override
    protected void accept(SocketImpl into) {
        throw new UnsupportedOperationException("this socket connects");
    }

    @Override
    protected InputStream getInputStream() throws IOException {
        return new Input(open());
    }

    @Override
    protected OutputStream getOutputStream() throws IOException {
        return new Output(open());
    }

    @Override
    protected int available() throws IOException {
        return open().available();
    }

    @Override
    protected void close() {
        Connection open = connection;
        if (open != null) {
            open.close();
        }
    }

    @Override
    protected void shutdownInput() throws IOException {
        open().shutdownInput();
    }

    @Override
    protected void shutdownOutput() throws IOException {
        open().shutdownOutput();
    }

    @Override
    protected boolean supportsUrgentData() {
        return false;
    }

    @Override
    protected void sendUrgentData(int data) throws IOException {
        throw new SocketException("Urgent data not supported");
    }

    // ---- options
    // -----------------------------------------------------------------------------------------------------------------

    @Override
    protected Set<SocketOption<?>> supportedOptions() {
        return Options.OF_SOCKETS;
    }

    @Override
    protected <T> void setOption(SocketOption<T> name, T value) throws IOException {
        Options.check(Options.OF_SOCKETS, name, value);
        set(name, value);
    }

    @Override
    @SuppressWarnings("unchecked") // the option's type says what its value is
    protected <T> T getOption(SocketOption<T> name) throws IOException {
        Options.checkSupported(Options.OF_SOCKETS, name);
        return (T) get(name);
    }

    private void set(SocketOption<?> name, Object value) throws SocketException {
        open().channel().config().setOption(Options.ofChannel(name), value);
    }

    private Object get(SocketOption<?> name) throws SocketException {
        return open().channel().config().getOption(Options.ofChannel(name));
    }

    @Override
    public void setOption(int id, Object value) throws SocketException {
        if (id == SocketOptions.SO_TIMEOUT) {
            open();
            timeoutMillis = Options.millis(value);
            return;
        }
        if (id == SocketOptions.SO_OOBINLINE && value instanceof Boolean inline) {
            open();
            urgentInline = inline; // kept: none will come
            return;
        }
        SocketOption<?> name = Options.of(id);
        if (name == null) {
            throw new SocketException("Unknown option " + id);
        }
        Object wanted = id == SocketOptions.SO_LINGER && value.equals(false) ? Integer.valueOf(-1) : value;
        try {
            Options.check(Options.OF_SOCKETS, name, wanted);
            set(name, wanted);
        } catch (IllegalArgumentException cause) {
            throw new SocketException(cause.getMessage(), cause);
        }
    }

    @Override
    public Object getOption(int id) throws SocketException {
        Connection open = open();
        if (id == SocketOptions.SO_TIMEOUT) {
            return timeoutMillis;
        }
        if (id == SocketOptions.SO_OOBINLINE) {
            return urgentInline;
        }
        if (id == SocketOptions.SO_BINDADDR) {
            InetSocketAddress local = open.channel().localAddress();
            return local == null ? new InetSocketAddress(0).getAddress() : local.getAddress();
        }
        SocketOption<?> name = Options.of(id);
        if (name == null) {
            throw new SocketException("Unknown option " + id);
        }
        Object value = get(name);
        if (id == SocketOptions.SO_LINGER && value.equals(-1)) {
            return false; // as in the JDK
        }
        return value;
    }

    // ---- streams: the socket wraps them, closes itself with them, and reads single bytes with them
    // ---------------------------------------------------

    private final class Input extends InputStream {
        private final Connection from;

        Input(Connection from) {
            this.from = from;
        }

        @Override
        public int read() throws IOException {
            byte[] single = new byte[1];
            return read(single, 0, 1) > 0 ? single[0] & 0xff : -1;
        }

        @Override
        public int read(byte[] into, int offset, int length) throws IOException {
            return from.read(into, offset, length, timeoutMillis);
        }

        @Override
        public int available() throws IOException {
            return from.available();
        }
    }

    private static final class Output extends OutputStream {
        private final Connection to;

        Output(Connection to) {
            this.to = to;
        }

        @Override
        public void write(int single) throws IOException {
            write(new byte[] {(byte) single}, 0, 1);
        }

        @Override
        public void write(byte[] from, int offset, int length) throws IOException {
            to.write(from, offset, length);
        }
    }
}
