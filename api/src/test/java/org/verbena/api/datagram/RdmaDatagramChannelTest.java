package org.verbena.api.datagram;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.netty.bootstrap.Bootstrap;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.ChannelFuture;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.ChannelOption;
import io.netty.channel.socket.DatagramPacket;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.channels.ClosedChannelException;
import java.nio.channels.NotYetConnectedException;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.api.RdmaChannelOption;
import org.verbena.api.RdmaEventLoopGroup;
import org.verbena.transport.spi.Patience;

/** What a datagram channel is without a device: on a provider that has no datagrams. */
@Timeout(120)
class RdmaDatagramChannelTest {
    private static final InetSocketAddress ADDRESS = new InetSocketAddress("127.0.0.1", 7471);
    private final RdmaEventLoopGroup group = new RdmaEventLoopGroup("soft", 1);

    @AfterEach
    void end() {
        group.close();
    }

    private Bootstrap bootstrap() {
        return new Bootstrap()
                .group(group)
                .channel(RdmaDatagramChannel.class)
                .handler(new ChannelInboundHandlerAdapter());
    }

    private static Throwable failureOf(ChannelFuture future) {
        assertThat(future.awaitUninterruptibly(Patience.LIMIT.toMillis())).isTrue();
        return future.cause();
    }

    @Test
    void softRefusesByName() {
        assertThat(group.provider().hasDatagrams()).isFalse();
        for (ChannelFuture refused :
                new ChannelFuture[] {bootstrap().bind(ADDRESS), bootstrap().connect(ADDRESS)}) {
            assertThat(failureOf(refused))
                    .isInstanceOf(UnsupportedOperationException.class)
                    .hasMessageContaining("soft has no datagrams")
                    .hasMessageContaining("verbs");
            assertThat(refused.channel().closeFuture().awaitUninterruptibly(Patience.LIMIT.toMillis()))
                    .isTrue();
        }
    }

    @Test
    void failsWhatNeedsABoundChannel() throws Exception {
        RdmaDatagramChannel channel =
                (RdmaDatagramChannel) bootstrap().register().sync().channel();
        assertThat(channel.isOpen()).isTrue();
        assertThat(channel.isActive()).isFalse();
        assertThat(channel.localAddress()).isNull();
        assertThat(channel.remoteAddress()).isNull();
        assertThat(channel.queuePairAddress()).isNull();
        ByteBuf content = Unpooled.wrappedBuffer(new byte[8]);
        assertThat(failureOf(channel.writeAndFlush(new DatagramPacket(content, ADDRESS))))
                .isInstanceOf(NotYetConnectedException.class);
        assertThat(content.refCnt()).isZero();
        InetAddress multicast = InetAddress.getByName("239.1.2.3");
        assertThat(failureOf(channel.joinGroup(multicast))).isInstanceOf(NotYetConnectedException.class);
        assertThat(failureOf(channel.joinGroup(ADDRESS.getAddress())))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("not a multicast address");
        channel.close().sync();
        assertThat(failureOf(channel.block(multicast, ADDRESS.getAddress())))
                .isInstanceOf(ClosedChannelException.class);
        assertThat(failureOf(channel.writeAndFlush(new DatagramPacket(Unpooled.buffer(1), ADDRESS))))
                .isInstanceOf(ClosedChannelException.class);
        assertThat(channel.statistics().failed()).isEqualTo(2);
    }

    @Test
    void hasTheOptionsThatMeanSomethingAndRefusesOthersByName() {
        RdmaDatagramChannel channel = new RdmaDatagramChannel();
        channel.config().setOption(RdmaChannelOption.RECEIVE_DEPTH, 7);
        channel.config().setOption(RdmaChannelOption.SEND_DEPTH, 5);
        channel.config().setReuseAddress(true).setTrafficClass(16);
        assertThat(channel.config().getOptions())
                .containsEntry(RdmaChannelOption.RECEIVE_DEPTH, 7)
                .containsEntry(RdmaChannelOption.SEND_DEPTH, 5)
                .containsEntry(ChannelOption.SO_REUSEADDR, true)
                .containsEntry(ChannelOption.IP_TOS, 16);
        assertThatThrownBy(() -> channel.config().setOption(RdmaChannelOption.SEND_DEPTH, 0))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("SEND_DEPTH 0");
        assertThatThrownBy(() -> channel.config().setOption(ChannelOption.SO_RCVBUF, 1))
                .isInstanceOf(UnsupportedOperationException.class)
                .hasMessageContaining("SO_RCVBUF")
                .hasMessageContaining("RECEIVE_DEPTH");
        assertThatThrownBy(() -> channel.config().setOption(ChannelOption.SO_BROADCAST, true))
                .isInstanceOf(UnsupportedOperationException.class)
                .hasMessageContaining("SO_BROADCAST");
        assertThatThrownBy(() -> channel.config().setTimeToLive(3))
                .isInstanceOf(UnsupportedOperationException.class)
                .hasMessageContaining("IP_MULTICAST_TTL");
    }

    @Test
    void aPacketKeepsItsImmediateDataInItsCopies() {
        RdmaDatagramPacket packet = new RdmaDatagramPacket(Unpooled.wrappedBuffer(new byte[4]), ADDRESS, 9);
        for (RdmaDatagramPacket other :
                new RdmaDatagramPacket[] {packet.copy(), packet.duplicate(), packet.replace(Unpooled.buffer())}) {
            assertThat(other.hasImmediateData()).isTrue();
            assertThat(other.immediateData()).isEqualTo(9);
            assertThat(other.recipient()).isEqualTo(ADDRESS);
        }
        assertThat(new RdmaDatagramPacket(Unpooled.buffer(), ADDRESS).hasImmediateData())
                .isFalse();
        packet.release();
    }
}
