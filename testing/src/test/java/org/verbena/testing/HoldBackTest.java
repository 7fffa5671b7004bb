package org.verbena.testing;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.channel.IoEventLoop;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import java.lang.foreign.Arena;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.testing.Faults.Direction;
import org.verbena.transport.CompletionLoopOptions;
import org.verbena.transport.MemoryDomain;
import org.verbena.transport.RegisteredMemory;
import org.verbena.transport.WorkStatus;
import org.verbena.transport.spi.EndpointOptions;
import org.verbena.transport.spi.ListenOptions;
import org.verbena.transport.spi.Patience;
import org.verbena.transport.spi.RecordingEndpointHandler;
import org.verbena.transport.spi.RecordingListenerHandler;
import org.verbena.transport.spi.WorkRequest;

/** Deliveries that wait for others behind them. */
@Timeout(120)
class HoldBackTest {
    private final InProcessProvider provider = new InProcessProvider();
    private final MultiThreadIoEventLoopGroup group =
            new MultiThreadIoEventLoopGroup(2, provider.newIoHandlerFactory(CompletionLoopOptions.DEFAULTS));
    private final Arena arena = Arena.ofShared();
    private final RecordingEndpointHandler client = new RecordingEndpointHandler("client", group.next());
    private final RecordingEndpointHandler server = new RecordingEndpointHandler("server", group.next());
    private Faults faults;
    private RegisteredMemory sink;

    @BeforeEach
    void connect() {
        IoEventLoop loop = group.next();
        RecordingListenerHandler listener = new RecordingListenerHandler(loop);
        InetSocketAddress any = new InetSocketAddress(InetAddress.getLoopbackAddress(), 0);
        assertThat(provider.listen(loop, any, ListenOptions.DEFAULTS, listener)).isNotNull();
        InetSocketAddress address = listener.awaitListening().localAddress();
        assertThat(provider.connect(client.loop(), address, EndpointOptions.DEFAULTS, client))
                .isNotNull();
        listener.awaitRequest().accept(server.loop(), EndpointOptions.DEFAULTS, server);
        client.awaitConnected();
        server.awaitConnected();
        faults = Faults.at(address.getPort());
        sink = server.awaitPrepared()
                .memoryDomain()
                .register(arena.allocate(8), Set.of(MemoryDomain.Access.LOCAL_WRITE));
        for (int i = 0; i < 4; i++) {
            server.receive(i, sink, 0, 8);
        }
    }

    @AfterEach
    void close() {
        faults.close();
        client.awaitPrepared().disconnect();
        client.awaitDisconnected();
        server.awaitDisconnected();
        sink.close();
        Patience.await("the loops have ended", group.shutdownGracefully(0, 1, TimeUnit.SECONDS));
        arena.close();
        client.assertNoViolations();
        server.assertNoViolations();
    }

    private void send(long id) {
        client.send(new WorkRequest(1).asSend(id, 0));
        assertThat(client.awaitSend().workId()).isEqualTo(id);
        server.run(endpoint -> {}); // what has arrived was taken before
    }

    @Test
    void aDeliveryWaitsForThoseBehindIt() {
        faults.holdBack(Direction.TO_SERVER, 2);
        send(1);
        send(2);
        assertThat(server.unclaimedCompletions()).isZero();
        send(3);
        assertThat(server.awaitReceive().workId()).isZero();
        assertThat(server.unclaimedCompletions()).isZero();
        faults.holdBack(Direction.TO_SERVER, 0);
        assertThat(server.awaitReceive().workId()).isEqualTo(1);
        assertThat(server.awaitReceive().workId()).isEqualTo(2);
    }

    @Test
    void whatWasSentBeforeTheEndArrives() {
        faults.holdBack(Direction.TO_SERVER, 3);
        send(1);
        send(2);
        assertThat(server.unclaimedCompletions()).isZero();
        client.awaitPrepared().disconnect();
        assertThat(server.awaitReceive().status()).isEqualTo(WorkStatus.SUCCESS);
        assertThat(server.awaitReceive().status()).isEqualTo(WorkStatus.SUCCESS);
        assertThat(server.awaitDisconnected()).isNull();
    }

    @Test
    void theOtherDirectionIsNotDelayed() {
        faults.holdBack(Direction.TO_CLIENT, 5);
        send(1);
        assertThat(server.awaitReceive().workId()).isZero();
    }
}
