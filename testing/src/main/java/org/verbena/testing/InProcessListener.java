package org.verbena.testing;

import io.netty.channel.IoEventLoop;
import java.net.InetSocketAddress;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.RejectedExecutionException;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.spi.Listener;
import org.verbena.transport.spi.ListenerHandler;

/** Has a port, and hands the requests for it to its user. What is not said to be for any thread is for the loop's. */
final class InProcessListener implements Listener, InProcessIoHandler.Member {
    private static final Logger LOG = LoggerFactory.getLogger(InProcessListener.class);

    private final InProcessProvider provider;
    private final IoEventLoop loop;
    private final InetSocketAddress wanted;
    private final ListenerHandler handler;

    /** Requests that nobody has decided on. Any thread removes from it. */
    private final Set<ConnectRequest> undecided = ConcurrentHashMap.newKeySet();

    private @Nullable InProcessIoHandler io;
    private boolean closed;

    /** Written by the loop once, read by any thread. */
    private volatile @Nullable InetSocketAddress localAddress;

    InProcessListener(InProcessProvider provider, IoEventLoop loop, InetSocketAddress wanted, ListenerHandler handler) {
        this.provider = provider;
        this.loop = loop;
        this.wanted = wanted;
        this.handler = handler;
    }

    void open() {
        InProcessIoHandler found = InProcessIoHandler.of(loop);
        if (closed) {
            return;
        }
        try {
            if (found == null) {
                throw new ConnectionException("listening on " + wanted + ": the event loop was shut down");
            }
            found.add(this);
            io = found;
            localAddress = Ports.take(wanted, this);
            handler.onListening(this);
        } catch (Throwable t) {
            end(t);
        }
    }

    InProcessProvider provider() {
        return provider;
    }

    IoEventLoop loop() {
        return loop;
    }

    /**
     * Takes a request. Any thread.
     *
     * @return false if the loop has ended
     */
    boolean offer(ConnectRequest request) {
        try {
            loop.execute(() -> ask(request));
            return true;
        } catch (RejectedExecutionException e) {
            LOG.debug("{} has lost its loop", this, e);
            return false;
        }
    }

    private void ask(ConnectRequest request) {
        if (closed) {
            request.refuse();
            return;
        }
        undecided.add(request);
        request.startTimeout();
        try {
            handler.onConnectRequest(this, request);
        } catch (Throwable t) {
            LOG.warn("the handler of {} threw at a connect request", this, t);
            request.refuse();
        }
    }

    /** A request is decided on. Any thread. */
    void decided(ConnectRequest request) {
        undecided.remove(request);
    }

    @Override
    public InetSocketAddress localAddress() {
        InetSocketAddress now = localAddress;
        if (now == null) {
            throw new IllegalStateException("the address is known from onListening on");
        }
        return now;
    }

    @Override
    public void close() {
        try {
            // A task on the loop's own thread too: the handler is not called from within a call of its user.
            loop.execute(() -> end(null));
        } catch (RejectedExecutionException e) {
            LOG.debug("closing {} after its loop ended", this, e);
        }
    }

    @Override
    public void onLoopEnding() {
        undecided.forEach(ConnectRequest::refuse);
        end(null);
    }

    private void end(@Nullable Throwable cause) {
        if (closed) {
            return;
        }
        closed = true;
        InetSocketAddress had = localAddress;
        if (had != null) {
            Ports.release(had.getPort(), this);
        }
        InProcessIoHandler with = io;
        if (with != null) {
            with.remove(this);
        }
        try {
            handler.onClosed(this, cause);
        } catch (Throwable t) {
            LOG.warn("the handler of {} threw at its end", this, t);
        }
    }

    @Override
    public String toString() {
        InetSocketAddress now = localAddress;
        return InProcessProvider.NAME + " listener on " + (now == null ? wanted : now);
    }
}
