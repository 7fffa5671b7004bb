package org.verbena.tools;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.bootstrap.Bootstrap;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.ChannelOption;
import io.netty.channel.SimpleChannelInboundHandler;
import io.netty.channel.WriteBufferWaterMark;
import io.netty.channel.embedded.EmbeddedChannel;
import io.netty.channel.socket.SocketChannel;
import java.io.ByteArrayOutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.Random;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.api.RdmaEventLoopGroup;
import org.verbena.api.RdmaSocketChannel;
import org.verbena.samples.ServerProcess;
import org.verbena.transport.spi.Patience;

/** The relay in a process of its own, between a client on soft and a TCP server. */
@Timeout(240)
class RelayTest {
    private final RdmaEventLoopGroup loops = new RdmaEventLoopGroup("soft", 1);
    private ServerSocket target;
    private ServerProcess relay;

    @BeforeEach
    void start() throws Exception {
        target = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
        relay = VerbenaProcess.startServer(
                "relay", "--provider", "soft", "--listen", "0", "--to", "localhost:" + target.getLocalPort());
    }

    @AfterEach
    void stop() throws Exception {
        loops.close();
        relay.close();
        target.close();
    }

    /** What a client received. */
    private static final class Answer extends SimpleChannelInboundHandler<ByteBuf> {
        private final ByteArrayOutputStream bytes = new ByteArrayOutputStream();

        @Override
        protected synchronized void channelRead0(ChannelHandlerContext context, ByteBuf message) throws Exception {
            message.readBytes(bytes, message.readableBytes());
        }

        synchronized byte[] bytes() {
            return bytes.toByteArray();
        }
    }

    private SocketChannel connect(Answer answer) throws Exception {
        return (SocketChannel) new Bootstrap()
                .group(loops)
                .channel(RdmaSocketChannel.class)
                .option(ChannelOption.ALLOW_HALF_CLOSURE, true)
                .handler(new ChannelInitializer<>() {
                    @Override
                    protected void initChannel(io.netty.channel.Channel channel) {
                        channel.pipeline().addLast(answer);
                    }
                })
                .connect("127.0.0.1", relay.port)
                .sync()
                .channel();
    }

    private static byte[] random(int bytes) {
        byte[] made = new byte[bytes];
        new Random(7).nextBytes(made);
        return made;
    }

    @Test
    void halfClosesGoThroughAndNothingIsLost() throws Exception {
        byte[] question = random(20 << 20);
        Answer answer = new Answer();
        SocketChannel client = connect(answer);
        client.writeAndFlush(Unpooled.wrappedBuffer(question));
        client.shutdownOutput();
        try (Socket server = target.accept()) {
            byte[] read = server.getInputStream().readAllBytes(); // to the client's end, with the other half open
            assertThat(read).isEqualTo(question);
            server.getOutputStream().write(read);
        }
        Patience.until("the answer", () -> answer.bytes().length == question.length && client.isInputShutdown());
        assertThat(answer.bytes()).isEqualTo(question);
        client.close().sync();
        relay.stop();
    }

    @Test
    void aLostEndEndsTheOther() throws Exception {
        SocketChannel client = connect(new Answer());
        Socket server = target.accept();
        server.setSoLinger(true, 0); // a reset
        server.close();
        Patience.until("the client knows", () -> client.isInputShutdown() || !client.isActive());
        SocketChannel other = connect(new Answer());
        try (Socket ofOther = target.accept()) {
            other.close().sync();
            assertThat(ofOther.getInputStream().read()).isEqualTo(-1);
        }
        target.close();
        Patience.await("a client of nobody is cut off", connect(new Answer()).closeFuture());
    }

    @Test
    void aStoppedRelayTakesNoMoreAndFinishesWhatIsOpen() throws Exception {
        Answer answer = new Answer();
        SocketChannel client = connect(answer);
        client.writeAndFlush(Unpooled.wrappedBuffer(new byte[] {1}));
        try (Socket server = target.accept()) {
            assertThat(server.getInputStream().read()).isEqualTo(1);
            ProcessHandle.of(relay.pid()).orElseThrow().destroy();
            Patience.until("it takes no more", this::isClosed);
            server.getOutputStream().write(new byte[100_000]);
        }
        Patience.until("the whole answer", () -> answer.bytes().length == 100_000);
        client.close();
        assertThat(relay.awaitEnd()).isEmpty();
    }

    private boolean isClosed() {
        try (Socket attempt = new Socket()) {
            attempt.connect(new InetSocketAddress("127.0.0.1", relay.port));
            return false;
        } catch (java.io.IOException refused) {
            return true;
        }
    }

    @Test
    void aSlowEndSlowsTheOtherDown() {
        EmbeddedChannel fast = new EmbeddedChannel();
        EmbeddedChannel slow = new EmbeddedChannel(new Relay.Onward(fast));
        slow.config().setWriteBufferWaterMark(new WriteBufferWaterMark(10, 20));
        fast.pipeline().addLast(new Relay.Onward(slow));
        fast.pipeline().fireChannelRead(Unpooled.wrappedBuffer(new byte[100]));
        assertThat(fast.config().isAutoRead()).isFalse();
        fast.pipeline().fireChannelReadComplete();
        assertThat(fast.config().isAutoRead()).isTrue();
        slow.finishAndReleaseAll();
        fast.finishAndReleaseAll();
    }
}
