package org.verbena.transport.shm;

import io.netty.channel.IoEventLoop;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.transport.software.LoopSocket;
import org.verbena.transport.software.SoftwareListener;
import org.verbena.transport.spi.ListenOptions;
import org.verbena.transport.spi.ListenerHandler;

/**
 * Listens on a Unix socket and reads the requests of those that connect. When it has its maximum of them, the oldest
 * without a complete request is dropped for the next one. A socket whose name was removed gets it again. Not
 * thread-safe; confined to the loop's thread.
 */
final class ShmListener extends SoftwareListener {
    private static final Logger LOG = LoggerFactory.getLogger(ShmListener.class);

    /** Clients that wait in the backlog of a socket without a name. */
    private static final int MOST_LEFT = 4096;

    private final ShmContext context;
    private final Set<PendingRequest> pending = new HashSet<>();

    /** Those whose request is not complete, oldest first. */
    private final Set<PendingRequest> unfinished = new LinkedHashSet<>();

    private SocketDirectory.@Nullable Bound bound;

    ShmListener(
            IoEventLoop loop,
            ShmContext context,
            InetSocketAddress wanted,
            ListenOptions options,
            ListenerHandler handler) {
        super(loop, wanted, options, handler);
        this.context = context;
    }

    @Override
    protected InetSocketAddress openChannel() throws IOException {
        SocketDirectory.Bound made = bind(bound == null ? wanted : bound.address());
        bound = made;
        return made.address();
    }

    private SocketDirectory.Bound bind(InetSocketAddress address) throws IOException {
        SocketDirectory.Bound made =
                SocketDirectory.open(context.options().directory()).bind(address, options.backlog());
        try {
            made.channel().configureBlocking(false);
            return made;
        } catch (IOException e) {
            made.close();
            throw e;
        }
    }

    /** Clean-up scripts and the end of a login session remove names, and whole directories. */
    @Override
    public void onTick() {
        SocketDirectory.Bound old = bound;
        if (old == null || isClosed() || old.hasName()) {
            return;
        }
        if (old.channel().isOpen()) {
            takeTheRest(old.channel());
            context.local()
                    .warn(this + " is not to be found: its name was removed from " + old.directory()
                            + ", and is made again; exclude the directory from clean-up, or set"
                            + " org.verbena.shm.directory");
        }
        reopen();
    }

    /** Clients that found it while it had its name. */
    private void takeTheRest(ServerSocketChannel from) {
        try {
            for (int i = 0; i < MOST_LEFT && !isFull(); i++) {
                SocketChannel left = from.accept();
                if (left == null) {
                    return;
                }
                begin(left);
            }
        } catch (IOException e) {
            LOG.debug("accepting the rest on {}", this, e);
        }
    }

    @Override
    protected void onReopenFailure(Throwable why) {
        context.local().warn(this + " is not to be found, and cannot be yet: " + why.getMessage());
    }

    @Override
    protected void closeChannel() throws IOException {
        SocketDirectory.Bound now = bound;
        if (now != null) {
            now.close();
        }
    }

    ShmContext context() {
        return context;
    }

    @Override
    protected @Nullable SocketChannel acceptNext() throws IOException {
        return selectableChannel().accept();
    }

    /** Whether none can be dropped for another one. */
    @Override
    protected boolean isFull() {
        int most = context.options().maxHandshakes();
        return pending.size() > most || (pending.size() == most && unfinished.isEmpty());
    }

    private void makeRoom() {
        while (pending.size() >= context.options().maxHandshakes() && !unfinished.isEmpty()) {
            PendingRequest oldest = unfinished.iterator().next();
            // Its request may have arrived, and the loop has not read it yet.
            oldest.onReadable();
            if (unfinished.contains(oldest)) {
                oldest.evict();
            }
        }
    }

    /** Mostly the process has no descriptors left: those of silent clients are the first to spare. */
    @Override
    protected boolean makesRoom(IOException failure) {
        boolean any = !unfinished.isEmpty();
        context.local()
                .warn("accepting on " + localAddress() + " fails, and "
                        + (any ? "drops a client without a request" : "pauses for " + PAUSE_MILLIS + " ms") + ": "
                        + failure + LoopSocket.DESCRIPTORS_HINT);
        if (any) {
            unfinished.iterator().next().evict();
        }
        return any;
    }

    @Override
    protected void closeUnfinished() {
        List.copyOf(unfinished).forEach(PendingRequest::leave);
    }

    @Override
    protected void begin(SocketChannel accepted) throws IOException {
        try {
            accepted.configureBlocking(false);
        } catch (IOException | RuntimeException e) {
            LOG.debug("a connection to {} ended immediately", localAddress(), e);
            LoopSocket.closeQuietly(accepted);
            return;
        }
        makeRoom();
        PendingRequest request = new PendingRequest(this);
        pending.add(request);
        unfinished.add(request);
        request.begin(accepted);
    }

    /** A request can be decided on. */
    void complete(PendingRequest request) {
        unfinished.remove(request);
    }

    /** A request has been decided on, or dropped. */
    void ended(PendingRequest request) {
        unfinished.remove(request);
        if (pending.remove(request) && pending.size() + 1 >= context.options().maxHandshakes()) {
            acceptMore(true);
        }
    }

    @Override
    public ServerSocketChannel selectableChannel() {
        return bound().channel();
    }

    private SocketDirectory.Bound bound() {
        SocketDirectory.Bound now = bound;
        if (now == null) {
            throw new IllegalStateException("not open yet");
        }
        return now;
    }

    @Override
    public void onLoopEnding() {
        super.onLoopEnding();
        for (PendingRequest request : List.copyOf(pending)) {
            request.onLoopEnding();
        }
    }

    @Override
    public String toString() {
        return "shm " + super.toString();
    }
}
