package org.verbena.grpc.internal.nativetransport;

import static org.assertj.core.api.Assertions.assertThat;
import static org.verbena.grpc.internal.nativetransport.NativeTransportHarness.await;
import static org.verbena.grpc.internal.nativetransport.NativeTransportHarness.open;

import io.grpc.Metadata;
import io.grpc.Status;
import io.grpc.internal.ClientStreamListener.RpcProgress;
import io.netty.channel.ChannelFuture;
import io.netty.util.concurrent.SingleThreadEventExecutor;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.api.RdmaEventLoopGroup;
import org.verbena.grpc.internal.nativetransport.NativeTransportHarness.Peer;
import org.verbena.grpc.internal.nativetransport.Recorders.OfCall;
import org.verbena.grpc.internal.nativetransport.Recorders.OfConnection;
import org.verbena.grpc.internal.nativetransport.Recorders.OfServed;
import org.verbena.grpc.internal.nativetransport.Recorders.OfTransport;
import org.verbena.transport.spi.Patience;

/** What happens at the moment in which a connection or a server ends. */
@Timeout(120)
class NativeEndingTest {
    private final OfTransport listener = new OfTransport();
    private NativeTransportHarness harness;

    private void openHarness(int maxStreams) throws Exception {
        harness = new NativeTransportHarness("soft", settings -> settings.maxStreams = maxStreams);
    }

    @AfterEach
    void closeHarness() throws Exception {
        harness.close();
    }

    /** A call that is made again at once when it ends, as programs do that subscribe. */
    private static final class Repeated extends OfCall {
        private final NativeClientTransport client;
        private final OfTransport listener;
        final OfCall again = new OfCall();

        /** Whether gRPC knew at that time that the connection takes no calls. */
        final BlockingQueue<Boolean> known = new LinkedBlockingQueue<>();

        Repeated(NativeClientTransport client, OfTransport listener) {
            this.client = client;
            this.listener = listener;
        }

        @Override
        public void closed(Status status, RpcProgress rpcProgress, Metadata last) {
            known.add(!listener.shutdown.isEmpty());
            open(client, again, new Metadata());
            super.closed(status, rpcProgress, last);
        }

        void goesElsewhere() throws Exception {
            assertThat(Patience.take("the end of the call", known))
                    .as("gRPC knows before the call ends that the connection takes no more")
                    .isTrue();
            assertThat(again.closedWith()).isEqualTo(Status.Code.UNAVAILABLE);
            assertThat(again.progress).containsExactly(RpcProgress.MISCARRIED);
        }
    }

    @Test
    void aCallThatBeginsAsItsConnectionIsLostGoesElsewhere() throws Exception {
        openHarness(10);
        NativeClientTransport client = harness.connected(listener);
        OfConnection connection = harness.connection();
        Repeated call = new Repeated(client, listener);
        open(client, call, new Metadata());
        connection.call();
        ((NativeServerTransport) connection.transport).channel().close();
        assertThat(call.closedWith()).isEqualTo(Status.Code.UNAVAILABLE);
        await("the client is terminated", listener.terminated);
        assertThat(call.again.closed).as("the end of the second call").hasSize(1);
        call.goesElsewhere();
    }

    @Test
    void callsThatWaitWhenTheServerShutsDownGoElsewhere() throws Exception {
        openHarness(1);
        NativeClientTransport client = harness.connected(listener);
        OfConnection connection = harness.connection();
        OfCall first = new OfCall();
        open(client, first, new Metadata());
        OfServed served = connection.call();
        Repeated waiting = new Repeated(client, listener);
        open(client, waiting, new Metadata());
        client.loop().submit(() -> {}).get(); // it waits
        connection.transport.shutdown();
        assertThat(waiting.closedWith()).isEqualTo(Status.Code.UNAVAILABLE);
        assertThat(waiting.progress).containsExactly(RpcProgress.MISCARRIED);
        waiting.goesElsewhere();
        served.stream.close(Status.OK, new Metadata());
        assertThat(first.closedWith()).isEqualTo(Status.Code.OK);
        await("the client is terminated", listener.terminated);
        await("the server's connection is terminated", connection.terminated);
    }

    /** The port is closed at another time than connections that it has accepted are registered. */
    @Test
    void aConnectionThatArrivesAsTheServerShutsDownIsClosed() throws Exception {
        RdmaEventLoopGroup workers = new RdmaEventLoopGroup("soft", 1);
        harness = new NativeTransportHarness(new RdmaEventLoopGroup("soft", 2), workers, settings -> {});
        SingleThreadEventExecutor worker = (SingleThreadEventExecutor) workers.next();
        CountDownLatch busy = new CountDownLatch(1);
        worker.execute(() -> {
            try {
                await("the end of the test", busy);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
        });
        Peer peer = new Peer();
        ChannelFuture connected;
        try {
            connected = harness.connect(peer);
            Patience.until("it is accepted", () -> worker.pendingTasks() > 0);
            harness.accepting.shutdown();
        } finally {
            busy.countDown();
        }
        Patience.until(
                "it is closed, or served",
                () -> connected.isDone() && (!peer.channel.isActive() || !peer.received.isEmpty()));
        assertThat(harness.server.connections).isEmpty();
        peer.awaitClosed();
    }
}
