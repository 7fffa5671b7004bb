package org.verbena.it.lab;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.bootstrap.Bootstrap;
import io.netty.buffer.Unpooled;
import io.netty.channel.ChannelFuture;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.socket.DatagramPacket;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.Objects;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.verbena.api.RdmaEventLoopGroup;
import org.verbena.api.datagram.RdmaDatagramChannel;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.spi.Patience;

/**
 * A program with datagram channels on two devices, one of which it loses. In a process of its own: it may fail to let
 * go of the device, and then the device is gone only when the process has ended.
 */
public final class DatagramLoss {
    private DatagramLoss() {}

    /** A channel with what it has read and what it was told. */
    private static final class End extends ChannelInboundHandlerAdapter {
        final BlockingQueue<DatagramPacket> packets = new LinkedBlockingQueue<>();
        final BlockingQueue<Throwable> causes = new LinkedBlockingQueue<>();
        final RdmaDatagramChannel channel;

        End(RdmaEventLoopGroup group, String address) {
            channel = (RdmaDatagramChannel) new Bootstrap()
                    .group(group)
                    .channel(RdmaDatagramChannel.class)
                    .handler(this)
                    .bind(address, 0)
                    .syncUninterruptibly()
                    .channel();
        }

        @Override
        public void channelRead(ChannelHandlerContext context, Object message) {
            packets.add((DatagramPacket) message);
        }

        @Override
        public void exceptionCaught(ChannelHandlerContext context, Throwable cause) {
            causes.add(cause);
        }

        ChannelFuture write(InetSocketAddress to) {
            return channel.writeAndFlush(new DatagramPacket(Unpooled.wrappedBuffer(new byte[64]), to));
        }

        DatagramPacket exchange(End with) throws InterruptedException {
            write(with.channel.localAddress()).syncUninterruptibly();
            return Objects.requireNonNull(with.packets.poll(Patience.LIMIT.toMillis(), TimeUnit.MILLISECONDS));
        }
    }

    /**
     * Runs.
     *
     * @param arguments the device that will be lost and its address
     */
    public static void main(String[] arguments) {
        try {
            lose(arguments[0], arguments[1]);
            System.out.println("done");
            System.exit(0);
        } catch (Throwable failure) {
            failure.printStackTrace();
            System.exit(1);
        }
    }

    private static void lose(String device, String address) throws Exception {
        try (RdmaEventLoopGroup group = new RdmaEventLoopGroup("verbs", 1)) {
            End kept = new End(group, LabDevice.RXE.address());
            kept.exchange(kept).release();
            End server = new End(group, address);
            End client = new End(group, address);
            server.channel.joinGroup(InetAddress.getByName("239.77.2.1")).syncUninterruptibly();
            DatagramPacket held = client.exchange(server);
            String silent = address.substring(0, address.lastIndexOf('.')) + ".250";
            ChannelFuture waiting = client.write(new InetSocketAddress(silent, 7990));

            Process removing = new ProcessBuilder("rdma", "link", "delete", device)
                    .inheritIO()
                    .start();
            for (End lost : new End[] {client, server}) {
                assertThat(lost.channel.closeFuture().await(Patience.LIMIT.toMillis()))
                        .as("the channel closes")
                        .isTrue();
                assertThat(lost.causes.poll(Patience.LIMIT.toMillis(), TimeUnit.MILLISECONDS))
                        .isInstanceOf(ConnectionException.Lost.class)
                        .hasMessageContaining("was removed");
            }
            assertThat(waiting.await(Patience.LIMIT.toMillis())).isTrue();
            assertThat(waiting.isSuccess()).isFalse();
            kept.exchange(kept).release();
            held.release();
            assertThat(removing.waitFor(Patience.LIMIT.toMillis(), TimeUnit.MILLISECONDS))
                    .as("the device is gone")
                    .isTrue();
            kept.exchange(kept).release();
        }
    }
}
