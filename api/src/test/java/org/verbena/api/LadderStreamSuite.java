package org.verbena.api;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.bootstrap.Bootstrap;
import io.netty.bootstrap.ServerBootstrap;
import io.netty.channel.Channel;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.EventLoopGroup;
import io.netty.channel.ServerChannel;
import io.netty.channel.socket.SocketChannel;
import java.net.InetSocketAddress;
import java.net.SocketException;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.verbena.api.ladder.LadderOptions;
import org.verbena.transport.spi.Patience;

/** The stream suite with clients that climb. A subclass says to which rung, and what listens there. */
abstract class LadderStreamSuite extends StreamSuite {
    private RdmaEventLoopGroup clients;

    /** The clients' loops. */
    abstract RdmaEventLoopGroup newClientGroup();

    /** The rung that they are to use. */
    abstract String rung();

    /** The rungs' own suites run long streams. */
    @Override
    protected int manyBytes() {
        return 4 << 20;
    }

    @Override
    protected int manyChannels() {
        return 50;
    }

    @BeforeEach
    void openClients() {
        clients = newClientGroup();
    }

    @AfterEach
    void closeClients() {
        clients.close();
    }

    @Override
    protected EventLoopGroup newGroup() {
        return new RdmaEventLoopGroup("soft", 3);
    }

    @Override
    protected Class<? extends Channel> channelClass() {
        return LadderSocketChannel.class;
    }

    @Override
    protected Class<? extends ServerChannel> serverChannelClass() {
        return RdmaServerSocketChannel.class;
    }

    /**
     * Another than for sockets: which of the rungs will be used is not known, so a bind takes no port before it
     * connects.
     */
    @Override
    @Test
    protected void aClientsBindTakesAPort() {
        try (Server server = listen()) {
            Channel free = done("binding", bootstrap().bind(host(), 0)).channel();
            done("connecting", free.connect(server.channel.localAddress()));
            Channel freePeer = server.next();
            assertThat(free.localAddress()).isEqualTo(freePeer.remoteAddress());
            assertThat(failure(
                            "connecting from a port in use",
                            bootstrap().connect(server.channel.localAddress(), free.localAddress())))
                    .isInstanceOf(SocketException.class);
            closeBoth(free, freePeer);
        }
    }

    /** The same by {@link RdmaLadder}, on whose connections the program's handler comes late. */
    @Test
    void theServerMaySpeakFirstToAConnectionOfTheLadder() {
        byte[] greeting = {1, 2, 3, 4, 5, 6, 7};
        try (Server server = new Server(
                new ServerBootstrap(), 0, channel -> channel.pipeline().addLast(new Greeter(greeting)))) {
            Bootstrap bare = new Bootstrap().group(clients).handler(new ChannelInitializer<SocketChannel>() {
                @Override
                protected void initChannel(SocketChannel channel) {
                    channel.pipeline().addLast(new Reader());
                }
            });
            InetSocketAddress address = new InetSocketAddress(host(), server.port());
            LadderOptions options = LadderOptions.DEFAULTS.withRungs(rung());
            for (int i = 0; i < 20; i++) {
                Channel client = done("connecting", RdmaLadder.connectStream(bare, address, options))
                        .getNow();
                Channel peer = server.next();
                Patience.until("the greeting comes", () -> reader(client).bytes == greeting.length);
                closeBoth(client, peer);
            }
        }
    }

    @Override
    protected Bootstrap newBootstrap() {
        RdmaEventLoopGroup loops = clients == null ? newClientGroup() : clients; // none in another process
        return new Bootstrap()
                .group(loops)
                .channel(LadderSocketChannel.class)
                .option(RdmaChannelOption.LADDER, LadderOptions.DEFAULTS.withRungs(rung()));
    }
}
