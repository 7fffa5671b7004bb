package org.verbena.api;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.netty.bootstrap.Bootstrap;
import io.netty.channel.Channel;
import io.netty.channel.ChannelOption;
import io.netty.channel.EventLoopGroup;
import io.netty.channel.ServerChannel;
import java.net.ConnectException;
import org.junit.jupiter.api.Test;
import org.verbena.transport.buffer.RdmaByteBufAllocator;
import org.verbena.transport.protocol.Framing;
import org.verbena.transport.spi.ConnectionException;

/** The stream suite on RDMA, and what only that has. A subclass names the provider. */
public abstract class RdmaStreamSuite extends StreamSuite {
    /** Which provider. */
    protected abstract String provider();

    @Override
    protected EventLoopGroup newGroup() {
        return new RdmaEventLoopGroup(provider(), 3);
    }

    @Override
    protected Class<? extends Channel> channelClass() {
        return RdmaStreamChannel.class;
    }

    @Override
    protected Class<? extends ServerChannel> serverChannelClass() {
        return RdmaStreamServerChannel.class;
    }

    @Override
    protected void abort(Channel channel) {
        channel.eventLoop().execute(() -> channel.unsafe().closeForcibly());
    }

    @Test
    void aChannelOfMessagesIsRejectedWithAReason() {
        try (Server server = listen()) {
            Bootstrap messages =
                    new Bootstrap().group(group).channel(RdmaChannel.class).handler(new Reader());
            assertThat(failure("connecting", messages.connect(host(), server.port())))
                    .isInstanceOf(ConnectionException.class)
                    .hasMessageContaining("framing MESSAGE is not STREAM");
        }
    }

    @Test
    void refusesAnotherFraming() {
        RdmaStreamChannel stream = new RdmaStreamChannel();
        assertThatThrownBy(() -> stream.config().setOption(RdmaChannelOption.FRAMING, Framing.MESSAGE))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("RdmaChannel");
        assertThatThrownBy(() -> new RdmaChannel().config().setOption(RdmaChannelOption.FRAMING, Framing.STREAM))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("RdmaStreamChannel");
    }

    @Test
    void registeredMemoryIsUsedThoughAnotherAllocatorIsSet() {
        try (Server server = listen()) {
            Channel client = connect(
                    bootstrap()
                            .option(ChannelOption.ALLOCATOR, io.netty.buffer.PooledByteBufAllocator.DEFAULT)
                            .option(RdmaChannelOption.REGISTERED_ALLOCATOR, true),
                    server);
            assertThat(client.alloc()).isInstanceOf(RdmaByteBufAllocator.class);
            Channel peer = server.next();
            done("closing", client.close());
            done("the peer closing", peer.closeFuture());
        }
    }

    @Test
    void aFailureToConnectKeepsItsCause() {
        Throwable failure = failure("connecting to nobody", bootstrap().connect(host(), 1));
        assertThat(failure).isInstanceOf(ConnectException.class);
        assertThat(failure.getCause()).isInstanceOf(ConnectionException.class);
    }
}
