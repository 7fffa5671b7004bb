package org.verbena.transport.software;

import io.netty.channel.IoEvent;
import io.netty.channel.IoEventLoop;
import io.netty.channel.IoRegistration;
import io.netty.channel.nio.NioIoOps;
import io.netty.util.concurrent.ScheduledFuture;
import java.io.IOException;
import java.net.BindException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.NetworkInterface;
import java.net.SocketException;
import java.nio.channels.SocketChannel;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.spi.IncomingConnection;
import org.verbena.transport.spi.ListenOptions;
import org.verbena.transport.spi.Listener;
import org.verbena.transport.spi.ListenerHandler;

/**
 * Listens on a socket. A subclass opens it and reads the requests of those that connect. Not thread-safe; confined to
 * the loop's thread.
 */
public abstract class SoftwareListener implements Listener, LoopMember {
    private static final Logger LOG = LoggerFactory.getLogger(SoftwareListener.class);

    /** Connections taken in one turn, before others have theirs. */
    private static final int ACCEPTS_PER_TURN = 64;

    /** Below it a system may reserve ports for its administrator. */
    private static final int FIRST_PORT_FOR_ALL = 1024;

    /** How long to pause when the system has no descriptors left. */
    protected static final int PAUSE_MILLIS = 500;

    protected final IoEventLoop loop;
    protected final InetSocketAddress wanted;
    protected final ListenOptions options;
    protected final ListenerHandler handler;
    private @Nullable IoRegistration registration;
    private @Nullable SoftwareIoHandler io;
    private @Nullable ScheduledFuture<?> pause;
    private boolean closed;
    private int place;
    private @Nullable Throwable endCause;
    private boolean reported;

    /** Written by the loop once, read by any thread. */
    private volatile @Nullable InetSocketAddress localAddress;

    protected SoftwareListener(
            IoEventLoop loop, InetSocketAddress wanted, ListenOptions options, ListenerHandler handler) {
        this.loop = loop;
        this.wanted = wanted;
        this.options = options;
        this.handler = handler;
    }

    /** Opens and binds the socket, not blocking; gives its address. */
    protected abstract InetSocketAddress openChannel() throws IOException;

    /** Closes the socket, if it was opened. */
    protected abstract void closeChannel() throws IOException;

    /** Whether none may be accepted at present; {@link #acceptMore} follows then. */
    protected abstract boolean isFull();

    /** The next connection, or null. */
    protected abstract @Nullable SocketChannel acceptNext() throws IOException;

    /** Begins to read the request of a connection, which is this listener's. */
    protected abstract void begin(SocketChannel accepted) throws IOException;

    /** Closes the connections whose requests are not complete: no handler would decide on them. */
    protected abstract void closeUnfinished();

    /** Makes room for what cannot be accepted; false if there is none to be made. */
    protected abstract boolean makesRoom(IOException failure);

    /** Begins to listen; on the loop. */
    public final void open() {
        assert loop.inEventLoop();
        if (closed) {
            return;
        }
        try {
            localAddress = openChannel();
            register();
        } catch (Throwable e) {
            end(new ConnectionException("listening on " + wanted + ": " + SoftwareEndpoint.why(e) + hint(e), e));
            return;
        }
        try {
            handler.onListening(this);
        } catch (Throwable t) {
            end(t);
            return;
        }
        acceptMore(true);
    }

    private void register() throws IOException {
        var future = loop.register(this);
        if (!future.isSuccess()) {
            throw new IOException("the event loop did not take the socket", future.cause());
        }
        registration = future.getNow();
    }

    /**
     * Closes the socket and opens it again at the same address, which the subclass knows. If that fails, no peer can
     * reach the listener, which may try again.
     */
    protected final void reopen() {
        SoftwareIoHandler loopHandler = io;
        if (closed || loopHandler == null) {
            return;
        }
        if (registration != null) {
            registration.cancel();
        }
        try {
            closeChannel();
        } catch (IOException e) {
            LOG.debug("closing {}", this, e);
        }
        // The system keeps the socket until the selector has released it, at its next select.
        loopHandler.runAfterSelect(() -> {
            if (closed) {
                return;
            }
            try {
                localAddress = openChannel();
                loopHandler.remove(this);
                register();
                acceptMore(true);
            } catch (Throwable e) {
                onReopenFailure(e);
            }
        });
    }

    /** It could not be {@linkplain #reopen opened once more}. */
    protected void onReopenFailure(Throwable why) {
        LOG.warn("{} cannot be opened again", this, why);
    }

    /** Java has one exception for several reasons, whose texts are the operating system's, in whatever language. */
    private String hint(Throwable refused) {
        if (!(refused instanceof BindException)) {
            return "";
        }
        InetAddress address = wanted.getAddress();
        try {
            if (!address.isAnyLocalAddress() && NetworkInterface.getByInetAddress(address) == null) {
                return " (this host has no such address)";
            }
        } catch (SocketException unknown) {
            LOG.trace("whether {} is an address of this host is unknown", address, unknown);
        }
        return wanted.getPort() > 0 && wanted.getPort() < FIRST_PORT_FOR_ALL
                ? " (is another server on that port, or may this user not have it?)"
                : " (is another server on that port?)";
    }

    /** Accepts connections, or lets them wait in the socket's backlog. */
    protected final void acceptMore(boolean more) {
        IoRegistration now = registration;
        if (now != null && now.isValid() && !closed) {
            now.submit(more ? NioIoOps.ACCEPT : NioIoOps.NONE);
        }
    }

    @Override
    public final void handle(IoRegistration from, IoEvent event) {
        if (closed) {
            return;
        }
        try {
            for (int i = 0; i < ACCEPTS_PER_TURN && !closed; i++) {
                if (isFull()) {
                    acceptMore(false);
                    return;
                }
                SocketChannel accepted = acceptNext();
                if (accepted == null) {
                    return;
                }
                begin(accepted);
            }
        } catch (IOException e) {
            if (!makesRoom(e)) {
                pause();
            }
        } catch (RuntimeException | Error e) {
            // Also classes that cannot be loaded while the process has no descriptors left.
            LOG.error("accepting on {}", localAddress, e);
            pause();
        }
    }

    private void pause() {
        pause = loop.schedule(() -> acceptMore(true), PAUSE_MILLIS, TimeUnit.MILLISECONDS); // first: it may fail
        acceptMore(false);
    }

    /** Gives a complete request to the user; false if the listener is closed. */
    public final boolean onRequest(IncomingConnection connection) {
        if (closed) {
            return false;
        }
        try {
            handler.onConnectRequest(this, connection);
        } catch (Throwable t) {
            LOG.warn("the handler of {} threw at a connect request", this, t);
            return false;
        }
        return true;
    }

    protected final boolean isClosed() {
        return closed;
    }

    @Override
    public final InetSocketAddress localAddress() {
        InetSocketAddress now = localAddress;
        if (now == null) {
            throw new IllegalStateException("the address is known from onListening on");
        }
        return now;
    }

    @Override
    public final void close() {
        try {
            // A task on the loop's own thread too: the handler is not called from within a call of its user.
            loop.execute(() -> end(null));
        } catch (RejectedExecutionException e) {
            LOG.debug("closing {} after its loop ended", this, e);
        }
    }

    private void end(@Nullable Throwable cause) {
        if (closed) {
            return;
        }
        endCause = cause;
        try {
            closeNow();
            closeUnfinished();
        } catch (Throwable t) {
            LOG.warn("closing {}", this, t);
        }
        SoftwareIoHandler loopHandler = io;
        if (loopHandler == null) {
            reportClosed();
        } else {
            // The system accepts on the port until the selector has released the channel, which it does at its next
            // select.
            loopHandler.runAfterSelect(this::reportClosed);
        }
    }

    private void reportClosed() {
        if (reported) {
            return;
        }
        reported = true;
        if (io != null) {
            io.remove(this);
        }
        try {
            handler.onClosed(this, endCause);
        } catch (Throwable t) {
            LOG.warn("the handler of {} threw at its end", this, t);
        }
    }

    @Override
    public final IoEventLoop loop() {
        return loop;
    }

    @Override
    public final int place() {
        return place;
    }

    @Override
    public final void setPlace(int value) {
        place = value;
    }

    @Override
    public final void bind(SoftwareIoHandler to) {
        io = to;
    }

    @Override
    public void onLoopEnding() {
        end(null);
        reportClosed();
    }

    @Override
    public final void closeNow() {
        closed = true;
        ScheduledFuture<?> pausing = pause;
        if (pausing != null) {
            pausing.cancel(false);
        }
        if (registration != null) {
            registration.cancel();
        }
        try {
            closeChannel();
        } catch (IOException e) {
            LOG.debug("closing {}", this, e);
        }
    }

    @Override
    public String toString() {
        return "listener on " + (localAddress == null ? wanted : localAddress);
    }
}
