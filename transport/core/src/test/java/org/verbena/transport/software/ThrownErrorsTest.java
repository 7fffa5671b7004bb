package org.verbena.transport.software;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.channel.IoEventLoop;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import io.netty.channel.nio.NioIoHandler;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.channels.SelectableChannel;
import java.nio.channels.SocketChannel;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.WorkStatus;
import org.verbena.transport.spi.Endpoint;
import org.verbena.transport.spi.EndpointHandler;
import org.verbena.transport.spi.EndpointOptions;
import org.verbena.transport.spi.IncomingConnection;
import org.verbena.transport.spi.ListenOptions;
import org.verbena.transport.spi.Listener;
import org.verbena.transport.spi.ListenerHandler;

/** An Error on a loop, such as that of a class that cannot be initialised, has its outcome: the handler is called. */
@Timeout(120)
class ThrownErrorsTest {
    private static final InetSocketAddress ADDRESS = new InetSocketAddress("127.0.0.1", 7);

    private final MultiThreadIoEventLoopGroup group = new MultiThreadIoEventLoopGroup(1, NioIoHandler.newFactory());
    private final IoEventLoop loop = group.next();
    private final CompletableFuture<@Nullable Throwable> ended = new CompletableFuture<>();

    @AfterEach
    void endLoop() {
        group.shutdownGracefully(0, 1, TimeUnit.SECONDS).syncUninterruptibly();
    }

    private final class Handler implements EndpointHandler, ListenerHandler {
        @Override
        public void onPrepared(Endpoint endpoint) {}

        @Override
        public void onConnected(Endpoint endpoint, byte[] privateData) {}

        @Override
        public void onSendCompletion(Endpoint endpoint, long workId, WorkStatus status, int lengthBytes) {}

        @Override
        public void onReceiveCompletion(
                Endpoint endpoint, long workId, WorkStatus status, int lengthBytes, int flags, int immediateData) {}

        @Override
        public void onCompletionsHandled(Endpoint endpoint) {}

        @Override
        public void onDisconnected(Endpoint endpoint, @Nullable Throwable cause) {
            ended.complete(cause);
        }

        @Override
        public void onListening(Listener listener) {}

        @Override
        public void onConnectRequest(Listener listener, IncomingConnection connection) {}

        @Override
        public void onClosed(Listener listener, @Nullable Throwable cause) {
            ended.complete(cause);
        }
    }

    /** Whose socket can be neither opened nor closed. */
    private final class BrokenListener extends SoftwareListener {
        BrokenListener() {
            super(ThrownErrorsTest.this.loop, ADDRESS, ListenOptions.DEFAULTS, new Handler());
        }

        @Override
        protected InetSocketAddress openChannel() {
            throw new ExceptionInInitializerError("no sockets of this kind");
        }

        @Override
        protected void closeChannel() {
            throw new NoClassDefFoundError("no sockets of this kind");
        }

        @Override
        protected boolean isFull() {
            return false;
        }

        @Override
        protected @Nullable SocketChannel acceptNext() {
            return null;
        }

        @Override
        protected void begin(SocketChannel accepted) {}

        @Override
        protected void closeUnfinished() {}

        @Override
        protected boolean makesRoom(IOException failure) {
            return false;
        }

        @Override
        public SelectableChannel selectableChannel() {
            throw new IllegalStateException();
        }
    }

    /** Which cannot leave its peer, nor release anything. */
    private final class BrokenEndpoint extends SoftwareEndpoint {
        private final ConnectionOutcome outcome = new ConnectionOutcome();

        BrokenEndpoint() {
            super(
                    ThrownErrorsTest.this.loop,
                    new SoftwareDomain(),
                    EndpointOptions.DEFAULTS,
                    new Handler(),
                    ADDRESS,
                    true);
        }

        @Override
        protected void pump() {}

        @Override
        protected @Nullable SoftwareIoHandler io() {
            return null;
        }

        @Override
        protected void leavePeer() {
            throw new OutOfMemoryError("unable to create native thread");
        }

        @Override
        protected void release() {
            throw new OutOfMemoryError("unable to create native thread");
        }

        @Override
        protected void distrust() {}

        @Override
        protected void closeSocketNow() {}

        @Override
        protected int receiveBufferBytes() {
            return 1024;
        }

        @Override
        public int rendezvousBytes(int peerReceiveBytes) {
            return 1024;
        }

        @Override
        protected int mostBatchMessages() {
            return 1;
        }

        @Override
        protected boolean takesImmediateData() {
            return false;
        }

        @Override
        protected boolean doesAtomics() {
            return false;
        }

        @Override
        public boolean isHeadDone() {
            return false;
        }

        @Override
        public @Nullable Placement receiveInProgress() {
            return null;
        }

        @Override
        public ConnectionOutcome outcome() {
            return outcome;
        }
    }

    @Test
    void aListenerThatCannotOpenIsClosedWithTheError() {
        loop.execute(new BrokenListener()::open);
        assertThat(ended.join())
                .isInstanceOf(ConnectionException.class)
                .hasCauseInstanceOf(ExceptionInInitializerError.class);
    }

    @Test
    void aConnectionThatCannotBeSetUpEndsWithTheError() {
        Error thrown = new NoClassDefFoundError("no descriptor for its file");
        loop.execute(new BrokenEndpoint().guarded(() -> {
            throw thrown;
        }));
        assertThat(ended.join()).isInstanceOf(ConnectionException.class).hasCause(thrown);
    }
}
