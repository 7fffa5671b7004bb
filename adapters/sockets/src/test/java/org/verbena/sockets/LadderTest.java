package org.verbena.sockets;

import static org.assertj.core.api.Assertions.assertThat;

import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.api.RdmaEventLoopGroup;
import org.verbena.api.ladder.LadderOptions;
import org.verbena.transport.CompletionLoopOptions;

/** Sockets that climb, and a server without Verbena. {@link LadderSocketTest} has the suite. */
@Timeout(120)
class LadderTest {
    private static RdmaEventLoopGroup loops(LadderOptions options) {
        return new RdmaEventLoopGroup(options, 1, null, CompletionLoopOptions.DEFAULTS);
    }

    @Test
    void fallsToPlainTcpIfItMay() throws Exception {
        InetAddress host = InetAddress.getLoopbackAddress();
        try (ServerSocket server = new ServerSocket(0, 10, host);
                RdmaEventLoopGroup climbing = loops(LadderOptions.DEFAULTS)) {
            // It says nothing to soft's request, which comes first.
            try (Socket client = new RdmaSocketFactory(climbing).createSocket(host, server.getLocalPort());
                    Socket ofSoft = server.accept();
                    Socket accepted = server.accept()) {
                assertThat(ofSoft.getPort()).isNotEqualTo(accepted.getPort());
                client.getOutputStream().write(7);
                assertThat(accepted.getInputStream().read()).isEqualTo(7);
                accepted.getOutputStream().write(8);
                accepted.shutdownOutput();
                assertThat(client.getInputStream().readAllBytes()).containsExactly(8);
                assertThat(client.getLocalPort()).isEqualTo(accepted.getPort());
            }
        }
    }
}
