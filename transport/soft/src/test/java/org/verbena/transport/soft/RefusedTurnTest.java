package org.verbena.transport.soft;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.channel.IoEventLoop;
import io.netty.channel.IoHandlerFactory;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import io.netty.channel.SingleThreadIoEventLoop;
import io.netty.util.concurrent.ScheduledFuture;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.transport.CompletionLoopOptions;
import org.verbena.transport.spi.Endpoint;
import org.verbena.transport.spi.EndpointOptions;
import org.verbena.transport.spi.ListenOptions;
import org.verbena.transport.spi.Listener;
import org.verbena.transport.spi.RecordingEndpointHandler;
import org.verbena.transport.spi.RecordingListenerHandler;

/** A loop refuses a task once, as if there were no memory for it: what the task was for happens all the same. */
@Timeout(240)
class RefusedTurnTest {
    private final AtomicBoolean refuses = new AtomicBoolean();
    private final AtomicBoolean refusesLater = new AtomicBoolean();

    /** With a loop that refuses the next task, or the next for later, when a test says so. */
    private MultiThreadIoEventLoopGroup group(SoftProvider provider) {
        return new MultiThreadIoEventLoopGroup(1, provider.newIoHandlerFactory(CompletionLoopOptions.DEFAULTS)) {
            @Override
            protected IoEventLoop newChild(Executor executor, IoHandlerFactory factory, Object... arguments) {
                return new SingleThreadIoEventLoop(this, executor, factory) {
                    @Override
                    public void execute(Runnable task) {
                        if (refuses.compareAndSet(true, false)) {
                            throw new OutOfMemoryError("no memory for a task");
                        }
                        super.execute(task);
                    }

                    @Override
                    public ScheduledFuture<?> schedule(Runnable task, long delay, TimeUnit unit) {
                        if (refusesLater.compareAndSet(true, false)) {
                            throw new OutOfMemoryError("no memory for a task");
                        }
                        return super.schedule(task, delay, unit);
                    }
                };
            }
        };
    }

    @Test
    void aConnectionEndsThoughItsTurnWasRefused() {
        endWith(refuses);
    }

    /** Its socket has no time for its last words, and closes at once. */
    @Test
    void aConnectionEndsThoughItsTimeLimitWasRefused() {
        endWith(refusesLater);
    }

    private void endWith(AtomicBoolean refusing) {
        SoftProvider provider = new SoftProvider(SoftOptions.ofSystemProperties());
        try (MultiThreadIoEventLoopGroup group = group(provider)) {
            IoEventLoop loop = group.next();
            RecordingListenerHandler listening = new RecordingListenerHandler(loop);
            RecordingEndpointHandler server = new RecordingEndpointHandler("server", loop);
            listening.whenRequested(connection -> {
                Endpoint unused = connection.accept(loop, EndpointOptions.DEFAULTS, server);
            });
            Listener listener = provider.listen(
                    loop,
                    new InetSocketAddress(InetAddress.getLoopbackAddress(), 0),
                    ListenOptions.DEFAULTS,
                    listening);
            RecordingEndpointHandler client = new RecordingEndpointHandler("client", loop);
            Endpoint connected =
                    provider.connect(loop, listening.awaitListening().localAddress(), EndpointOptions.DEFAULTS, client);
            client.awaitConnected();
            server.awaitConnected();
            loop.execute(() -> {
                refusing.set(true);
                connected.disconnect();
            });
            client.awaitDisconnected();
            server.awaitDisconnected();
            assertThat(refusing).as("a task was refused").isFalse();
            listener.close();
        }
    }
}
