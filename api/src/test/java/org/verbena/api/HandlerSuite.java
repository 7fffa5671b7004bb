package org.verbena.api;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.bootstrap.ServerBootstrap;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandler;
import io.netty.channel.ChannelInitializer;
import io.netty.handler.ssl.SslContext;
import io.netty.handler.ssl.SslContextBuilder;
import io.netty.handler.ssl.SslHandler;
import io.netty.handler.ssl.SslProvider;
import io.netty.handler.timeout.IdleState;
import io.netty.handler.timeout.IdleStateEvent;
import io.netty.handler.timeout.IdleStateHandler;
import java.io.ByteArrayOutputStream;
import java.security.KeyStore;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.TrustManagerFactory;
import org.junit.jupiter.api.Test;
import org.verbena.transport.spi.Patience;

/** Netty's own handlers in an RdmaChannel's pipeline. */
public abstract class HandlerSuite extends ApiSuite {
    private static final String PASSWORD = "password";

    @Test
    void idleConnectionsAreNoticed() {
        try (Server server = listen()) {
            RdmaChannel client = connect(server, new IdleStateHandler(0, 0, 100, TimeUnit.MILLISECONDS));
            IdleStateEvent event = (IdleStateEvent) Patience.take("the idle event", inbox(client).events);
            assertThat(event.state()).isEqualTo(IdleState.ALL_IDLE);
            done("closing", client.close());
        }
    }

    @Test
    protected void tlsRunsOverMessages() throws Exception {
        KeyStore keys = keyStore();
        KeyManagerFactory identity = KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
        identity.init(keys, PASSWORD.toCharArray());
        TrustManagerFactory trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        trust.init(keys);
        SslContext forServer = SslContextBuilder.forServer(identity)
                .sslProvider(SslProvider.JDK)
                .build();
        SslContext forClient = SslContextBuilder.forClient()
                .sslProvider(SslProvider.JDK)
                .trustManager(trust)
                .endpointIdentificationAlgorithm(null)
                .build();
        BlockingQueue<RdmaChannel> accepted = new LinkedBlockingQueue<>();
        RdmaServerChannel server = (RdmaServerChannel) done(
                        "listening",
                        new ServerBootstrap()
                                .group(group)
                                .channel(RdmaServerChannel.class)
                                .childHandler(initializer(forServer, accepted))
                                .bind(host(), 0))
                .channel();
        RdmaChannel client = (RdmaChannel) done(
                        "connecting",
                        bootstrap()
                                .handler(initializer(forClient, new LinkedBlockingQueue<>()))
                                .connect(server.localAddress()))
                .channel();
        done("the handshake", client.pipeline().get(SslHandler.class).handshakeFuture());
        RdmaChannel peer = Patience.take("the connection", accepted);
        int count = 50;
        int expected = 0;
        for (int i = 0; i < count; i++) {
            client.writeAndFlush(pattern(client, i * 1000, i));
            expected += i * 1000;
        }
        // TLS keeps bytes, not boundaries.
        ByteArrayOutputStream came = new ByteArrayOutputStream();
        while (came.size() < expected) {
            came.writeBytes(inbox(peer).next());
        }
        byte[] all = came.toByteArray();
        int at = 0;
        for (int i = 0; i < count; i++) {
            assertThat(java.util.Arrays.copyOfRange(all, at, at + i * 1000)).isEqualTo(patternBytes(i * 1000, i));
            at += i * 1000;
        }
        done("closing", client.close());
        done("the peer closing", peer.closeFuture());
        assertThat(inbox(peer).failures).isEmpty();
        done("the server closing", server.close());
    }

    private static ChannelHandler initializer(SslContext context, BlockingQueue<RdmaChannel> accepted) {
        return new ChannelInitializer<>() {
            @Override
            protected void initChannel(Channel channel) {
                channel.pipeline().addLast(StreamSuite.patient(context, channel));
                channel.pipeline().addLast(new Inbox(accepted::add));
            }
        };
    }

    /**
     * A key pair for localhost, made once by the JDK's keytool; a single round of its password's hash, since the usual
     * 10,000 take seconds in the lab's guest.
     */
    private static KeyStore keyStore() throws Exception {
        KeyStore keys = KeyStore.getInstance("PKCS12");
        try (var in = HandlerSuite.class.getResourceAsStream("localhost.p12")) {
            keys.load(in, PASSWORD.toCharArray());
        }
        return keys;
    }
}
