package org.verbena.transport.shm;

import io.netty.channel.IoEventLoop;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.transport.software.SoftwareListener;
import org.verbena.transport.spi.ListenOptions;
import org.verbena.transport.spi.ListenerHandler;

/** Listens on a Unix socket and reads the requests of those that connect. One thread: the loop's. */
final class ShmListener extends SoftwareListener {
    private static final Logger LOG = LoggerFactory.getLogger(ShmListener.class);

    private final ShmContext context;
    private final Set<PendingRequest> pending = new HashSet<>();
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
        SocketDirectory.Bound made =
                SocketDirectory.open(context.options().directory()).bind(wanted, options.backlog());
        bound = made;
        made.channel().configureBlocking(false);
        return made.address();
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

    @Override
    protected boolean isFull() {
        return pending.size() >= context.options().maxHandshakes();
    }

    @Override
    protected boolean makesRoom(IOException failure) {
        LOG.warn(
                "accepting on {} fails, and pauses for {} ms: {} (does 'ulimit -n' allow enough descriptors?)",
                localAddress(),
                PAUSE_MILLIS,
                failure.toString());
        return false;
    }

    @Override
    protected void begin(SocketChannel accepted) throws IOException {
        try {
            accepted.configureBlocking(false);
            bound().directory().checkUser(accepted);
        } catch (IOException | RuntimeException e) {
            LOG.warn("refused a connection to {}: {}", localAddress(), e.toString());
            accepted.close();
            return;
        }
        PendingRequest request = new PendingRequest(this);
        pending.add(request);
        request.begin(accepted);
    }

    /** A request has been decided on, or dropped. */
    void ended(PendingRequest request) {
        if (pending.remove(request) && pending.size() == context.options().maxHandshakes() - 1) {
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
