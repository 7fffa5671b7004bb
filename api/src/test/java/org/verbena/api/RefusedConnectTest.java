package org.verbena.api;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.bootstrap.Bootstrap;
import io.netty.channel.ChannelFuture;
import io.netty.channel.ChannelInboundHandlerAdapter;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.transport.CompletionLoopOptions;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.provider.ProviderChoice;
import org.verbena.transport.spi.Patience;

/** A provider that throws instead of connecting. */
@Timeout(120)
class RefusedConnectTest {
    @Test
    void itsConnectionIsCountedAsLostAndNoLongerOpen() {
        StagedProvider provider = new StagedProvider();
        ConnectionException refusal = new ConnectionException("not today");
        provider.connectTo(address -> {
            throw refusal;
        });
        try (RdmaEventLoopGroup group = new RdmaEventLoopGroup(
                new ProviderChoice(provider, "for a test"), 1, null, CompletionLoopOptions.DEFAULTS)) {
            ChannelFuture connecting = new Bootstrap()
                    .group(group)
                    .channel(RdmaChannel.class)
                    .handler(new ChannelInboundHandlerAdapter())
                    .connect(new InetSocketAddress(InetAddress.getLoopbackAddress(), 1));
            assertThat(connecting.awaitUninterruptibly(Patience.LIMIT.toMillis()))
                    .isTrue();
            assertThat(connecting.cause()).isSameAs(refusal);
            assertThat(connecting.channel().closeFuture().awaitUninterruptibly(Patience.LIMIT.toMillis()))
                    .isTrue();
        }
        ProviderStatistics figures = ProviderStatistics.of(provider);
        assertThat(figures.openConnections()).isZero();
        assertThat(figures.lostConnections()).isEqualTo(1);
    }
}
