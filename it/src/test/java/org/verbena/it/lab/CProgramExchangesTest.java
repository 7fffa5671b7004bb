package org.verbena.it.lab;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.transport.MemoryDomain;
import org.verbena.transport.QueuePairEnd;
import org.verbena.transport.RegisteredMemory;
import org.verbena.transport.spi.Patience;

/** The exchanges for programs in C with each other, without queue pairs. */
@Timeout(240)
class CProgramExchangesTest {
    private static final MemoryDomain NONE = new MemoryDomain() {
        @Override
        public RegisteredMemory register(MemorySegment segment, Set<Access> access) {
            throw new UnsupportedOperationException();
        }

        @Override
        public long registeredBytes() {
            return 0;
        }
    };

    private static QueuePairEnd end(int number) {
        return new QueuePairEnd(number, 77, 0, 0, 0x0000_ffff_7f00_0001L, 4096, 16, new byte[0]);
    }

    private static InetSocketAddress at(CProgramExchange server) {
        return new InetSocketAddress(InetAddress.getLoopbackAddress(), server.port());
    }

    /** Both ends learn of the other, and are ready when both are connected. */
    private static void meet(CProgramExchange server, CProgramExchange client, int mtuBytes, int packet) {
        assertThat(server.answers()).isTrue();
        assertThat(client.answers()).isFalse();
        CompletableFuture<QueuePairEnd> atServer =
                server.exchange(server.adapt(end(11)), NONE).toCompletableFuture();
        CompletableFuture<QueuePairEnd> atClient =
                client.exchange(client.adapt(end(12)), NONE).toCompletableFuture();
        QueuePairEnd learnt = Patience.await("the client's end", atServer);
        assertThat(learnt)
                .isEqualTo(new QueuePairEnd(12, packet, 0, 0, end(1).gidInterface(), mtuBytes, 1, new byte[0]));
        CompletableFuture<Void> serverReady = server.ready().toCompletableFuture();
        assertThat(Patience.await("the server's end", atClient).queuePairNumber())
                .isEqualTo(11);
        Patience.await("the client is ready", client.ready().toCompletableFuture());
        Patience.await("the server is ready", serverReady);
    }

    @Test
    void pingPongsExchange() throws IOException {
        PingPongExchange server = new PingPongExchange();
        meet(server, new PingPongExchange(at(server)), 1024, 77);
    }

    @Test
    void examplesExchangeAndWaitForEachOther() throws IOException {
        try (RcExampleExchange server = new RcExampleExchange((MemorySegment) null);
                RcExampleExchange client = new RcExampleExchange(at(server))) {
            meet(server, client, 256, 0);
            CompletableFuture<Void> waits = server.synchronize('R');
            Patience.await("point R", client.synchronize('R'));
            Patience.await("point R", waits);
        }
    }

    @Test
    void givingUpEndsWhatIsUnderWay() throws IOException {
        PingPongExchange server = new PingPongExchange();
        CompletableFuture<QueuePairEnd> came = server.exchange(end(1), NONE).toCompletableFuture();
        server.giveUp();
        Patience.until("it has an outcome", came::isDone);
        assertThat(came.exceptionNow()).isInstanceOf(IOException.class);
    }
}
