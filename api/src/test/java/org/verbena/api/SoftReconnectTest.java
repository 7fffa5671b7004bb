package org.verbena.api;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.verbena.api.client.Target;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.spi.Patience;

class SoftReconnectTest extends ReconnectSuite {
    @Override
    protected String provider() {
        return "soft";
    }

    /** A server that accepts connections and never answers. */
    @Test
    void aSilentAddressHoldsUpNoOther() throws IOException {
        try (ServerSocket silent = new ServerSocket(0, 10, InetAddress.getLoopbackAddress());
                RdmaServer server = RdmaServer.builder()
                        .group(group)
                        .bind(host(), 0, (exchange, message) -> exchange.reply(message.retain()))) {
            InetSocketAddress nobody = new InetSocketAddress(silent.getInetAddress(), silent.getLocalPort());
            try (RdmaClient client = RdmaClient.builder()
                    .group(group)
                    .target(Target.of(List.of(nobody, server.localAddress())))
                    .connectTimeout(Duration.ofMinutes(10))
                    .connect()) {
                for (int i = 0; i < 20; i++) {
                    assertThat(Patience.await("a reply", client.request(new byte[i])))
                            .hasSize(i);
                }
            }
            assertThatThrownBy(() -> RdmaClient.builder()
                            .group(group)
                            .target(Target.of(List.of(nobody)))
                            .connectTimeout(Duration.ofMillis(50))
                            .connect())
                    .isInstanceOf(ConnectionException.TimedOut.class);
        }
    }
}
