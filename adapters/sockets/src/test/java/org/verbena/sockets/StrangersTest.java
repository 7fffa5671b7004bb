package org.verbena.sockets;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.concurrent.FutureTask;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.api.RdmaEventLoopGroup;
import org.verbena.transport.CompletionLoopOptions;
import org.verbena.transport.Framing;
import org.verbena.transport.provider.ProviderChoice;
import org.verbena.transport.soft.SoftOptions;
import org.verbena.transport.soft.SoftProvider;
import org.verbena.transport.spi.Patience;
import org.verbena.transport.spi.Strangers;

/** Server sockets whose port strangers reach. */
@Timeout(180)
class StrangersTest {
    private static final int BACKLOG = 10;

    private static void serve(SoftOptions options, boolean untilTheirEnd) throws Exception {
        InetAddress host = InetAddress.getLoopbackAddress();
        try (RdmaEventLoopGroup loops = new RdmaEventLoopGroup(
                        new ProviderChoice(new SoftProvider(options), "a test"),
                        1,
                        null,
                        CompletionLoopOptions.DEFAULTS);
                ServerSocket server = new RdmaServerSocketFactory(loops).createServerSocket(0, BACKLOG, host);
                Strangers strangers = new Strangers(new InetSocketAddress(host, server.getLocalPort()))) {
            strangers.connectSilently(6 * BACKLOG, Framing.STREAM);
            strangers.sendNoise(6);
            for (int i = 0; i < 3; i++) {
                echo(loops, server);
            }
            if (untilTheirEnd) {
                strangers.awaitEnd();
                echo(loops, server);
            }
        }
    }

    private static void echo(RdmaEventLoopGroup loops, ServerSocket server) throws IOException {
        FutureTask<Socket> accepting = new FutureTask<>(server::accept);
        Thread.startVirtualThread(accepting);
        try (Socket client = new RdmaSocketFactory(loops).createSocket(server.getInetAddress(), server.getLocalPort());
                Socket accepted = Patience.await("the client is accepted", accepting)) {
            client.setSoTimeout((int) Patience.LIMIT.toMillis());
            client.getOutputStream().write(42);
            accepted.getOutputStream().write(accepted.getInputStream().read());
            assertThat(client.getInputStream().read()).isEqualTo(42);
        }
    }

    /** Peers that say nothing have no place in the backlog, however long their handshake may take. */
    @Test
    void silentPeersDoNotFillTheBacklog() throws Exception {
        serve(SoftOptions.ofSystemProperties().with(o -> o.handshakeTimeoutMillis = 600_000), false);
    }

    @Test
    void strangersAreEndedInTime() throws Exception {
        serve(SoftOptions.ofSystemProperties(), true);
    }
}
