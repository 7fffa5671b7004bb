package org.verbena.api;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.channel.Channel;
import java.io.IOException;
import java.net.Inet6Address;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.SocketAddress;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.api.client.ClientState;
import org.verbena.api.client.Target;
import org.verbena.api.internal.client.Connected;
import org.verbena.api.internal.client.Dialer;
import org.verbena.api.internal.client.Links;
import org.verbena.api.internal.request.NameLookup;
import org.verbena.api.ladder.LadderOptions;
import org.verbena.transport.spi.LoopClock;
import org.verbena.transport.spi.Patience;

/** A name's addresses of IPv6 and IPv4 race: what the one costs that loses. */
@Timeout(120)
class RacedAddressesTest {
    private static final InetAddress FOUR = InetAddress.ofLiteral("127.0.0.1");
    private static final InetAddress SIX = InetAddress.ofLiteral("::1");
    private static final MessageHandler ECHO = (exchange, message) -> exchange.reply(message.retain());

    private final NameLookup names = new NameLookup(host -> new InetAddress[] {SIX, FOUR});
    private final RdmaServer four = RdmaServer.builder()
            .provider("soft")
            .threadsPerProvider(1)
            .bind(FOUR.getHostAddress(), ApiSuite.lastingPort(), ECHO);

    @AfterEach
    void close() {
        four.close();
    }

    @Test
    void anAddressThatIsSilentCostsAHeadStartAndNoTimeout() throws IOException {
        try (ServerSocket silent = new ServerSocket(four.port(), 10, SIX)) {
            silent.setSoTimeout((int) Patience.LIMIT.toMillis());
            long beganNanos = System.nanoTime();
            try (RdmaClient client = RdmaClient.builder()
                    .provider("soft")
                    .names(names)
                    .connectTimeout(Duration.ofHours(1))
                    .connect("both", four.port())) {
                assertThat(System.nanoTime() - beganNanos)
                        .as("the preferred one has its time")
                        .isGreaterThanOrEqualTo(Duration.ofMillis(250).toNanos());
                assertThat(Patience.await("a reply", client.request(new byte[3])))
                        .hasSize(3);
                assertThat(four.connections().size()).isEqualTo(1);
                try (Socket loser = silent.accept()) {
                    loser.setSoTimeout((int) Patience.LIMIT.toMillis());
                    while (loser.getInputStream().read() >= 0) {
                        // what it has sent of its handshake
                    }
                }
                assertThat(client.state()).isEqualTo(ClientState.READY);
            }
        }
    }

    /** Connects by IPv6 only when it may, even if nobody wants that any more. */
    private static final class Held implements Dialer {
        final BlockingQueue<SocketAddress> dialed = new LinkedBlockingQueue<>();
        final CountDownLatch six = new CountDownLatch(1);
        final CompletableFuture<Void> cancelled = new CompletableFuture<>();
        final CompletableFuture<Channel> late = new CompletableFuture<>();
        private final Dialer dialer;

        Held(Dialer dialer) {
            this.dialer = dialer;
        }

        @Override
        public Connected connect(SocketAddress address, @Nullable List<String> rungs, long beganNanos) {
            dialed.add(address);
            if (!(((InetSocketAddress) address).getAddress() instanceof Inet6Address)) {
                return dialer.connect(address, rungs, beganNanos);
            }
            while (six.getCount() > 0) {
                try {
                    six.await();
                } catch (InterruptedException lost) {
                    cancelled.complete(null); // it is not, and its thread is not interrupted any more
                }
            }
            Connected connected = dialer.connect(address, rungs, beganNanos);
            late.complete(connected.channel());
            return connected;
        }

        @Override
        public @Nullable LadderOptions ladder() {
            return dialer.ladder();
        }

        @Override
        public boolean isEnding() {
            return dialer.isEnding();
        }

        @Override
        public LoopClock clock() {
            return dialer.clock();
        }

        @Override
        public CompletableFuture<Void> close() {
            return dialer.close();
        }
    }

    /** An attempt that is too late leaves nothing at its server, although it could not be stopped. */
    @Test
    void theLoserIsClosed() {
        BlockingQueue<RdmaChannel> accepted = new LinkedBlockingQueue<>();
        try (RdmaServer six = RdmaServer.builder()
                .provider("soft")
                .threadsPerProvider(1)
                .onConnect(accepted::add)
                .bind(SIX.getHostAddress(), four.port(), ECHO)) {
            ClientSettings how = new ClientSettings();
            how.provider = "soft";
            ClientDialer dialer = new ClientDialer(how);
            Held held = new Held(dialer);
            Links links = new Links("both", held, how.linking());
            dialer.begin(links);
            links.begin(Target.of("both", four.port()), names);
            Patience.await("a connection", links.first());
            assertThat(held.dialed).hasSize(2);
            assertThat(held.dialed.remove()).isEqualTo(new InetSocketAddress(SIX, four.port()));
            assertThat(links.channel().remoteAddress()).isEqualTo(new InetSocketAddress(FOUR, four.port()));

            // After that: an attempt that is let go before is ended by the interrupt.
            Patience.await("the end of the race", held.cancelled);
            held.six.countDown();
            Channel late = Patience.await("the loser", held.late);
            RdmaChannel itsEnd = Patience.take("the loser's end", accepted);
            Patience.until("it is closed", () -> !late.isOpen() && !itsEnd.isOpen());
            Patience.until("nothing is left", () -> six.connections().isEmpty());
            assertThat(links.state()).isEqualTo(ClientState.READY);
            assertThat(four.connections().size()).isEqualTo(1);
            Patience.await("closing", links.close());
        }
    }
}
