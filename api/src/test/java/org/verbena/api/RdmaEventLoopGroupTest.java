package org.verbena.api;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ch.qos.logback.classic.Logger;
import ch.qos.logback.classic.spi.ILoggingEvent;
import ch.qos.logback.core.read.ListAppender;
import io.netty.bootstrap.ServerBootstrap;
import io.netty.channel.ChannelFuture;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.slf4j.LoggerFactory;
import org.verbena.api.internal.loop.LoopGroup;
import org.verbena.transport.CompletionLoopOptions;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.ProviderUnavailableException;
import org.verbena.transport.provider.ProviderChoice;
import org.verbena.transport.spi.Patience;
import org.verbena.transport.spi.RefusingThreads;

@Timeout(240)
class RdmaEventLoopGroupTest {
    static {
        LeakWatch.start();
    }

    @Test
    void hasTheProviderThatIsNamed() {
        RdmaEventLoopGroup group = new RdmaEventLoopGroup("soft", 2, new CompletionLoopOptions(0, 16, 64));
        try {
            assertThat(group.provider().name()).isEqualTo("soft");
            assertThat(group.executorCount()).isEqualTo(2);
            assertThat(LoopGroup.providerOf(group.next())).isSameAs(group.provider());
        } finally {
            group.shutdownGracefully(0, 1, TimeUnit.SECONDS);
        }
    }

    @Test
    void refusesAMissingProvider() {
        assertThatThrownBy(() -> new RdmaEventLoopGroup("warp", 1))
                .isInstanceOf(ProviderUnavailableException.class)
                .hasMessageContaining("soft");
    }

    @Test
    void takesTheProviderOfTheSystemProperty() {
        String before = System.getProperty(ProviderChoice.PROPERTY);
        System.setProperty(ProviderChoice.PROPERTY, "soft");
        try {
            RdmaEventLoopGroup group = new RdmaEventLoopGroup(1);
            assertThat(group.provider().name()).isEqualTo("soft");
            group.shutdownGracefully(0, 1, TimeUnit.SECONDS);
            System.setProperty(ProviderChoice.PROPERTY, "warp");
            assertThatThrownBy(RdmaEventLoopGroup::new).isInstanceOf(ProviderUnavailableException.class);
        } finally {
            if (before == null) {
                System.clearProperty(ProviderChoice.PROPERTY);
            } else {
                System.setProperty(ProviderChoice.PROPERTY, before);
            }
        }
    }

    @Test
    void anAutomaticChoiceServes() {
        RdmaEventLoopGroup group = new RdmaEventLoopGroup("auto", 1);
        assertThat(group.provider().unavailabilityCause()).isNull();
        group.shutdownGracefully(0, 1, TimeUnit.SECONDS);
    }

    @Test
    void aLoopThatHasEndedTakesNoChannels() {
        RdmaEventLoopGroup group = new RdmaEventLoopGroup("soft", 1);
        group.shutdownGracefully(0, 1, TimeUnit.SECONDS).awaitUninterruptibly(Patience.LIMIT.toMillis());
        ChannelFuture binding = new ServerBootstrap()
                .group(group)
                .channel(RdmaServerChannel.class)
                .childHandler(new ChannelInboundHandlerAdapter())
                .bind("127.0.0.1", 0);
        assertThat(binding.awaitUninterruptibly(Patience.LIMIT.toMillis())).isTrue();
        assertThat(binding.isSuccess()).isFalse();
        assertThat(binding.channel().isOpen()).isFalse();
    }

    @Test
    void whoeverWaitsForAChannelWithoutALoopIsCalled() {
        RdmaEventLoopGroup ended = new RdmaEventLoopGroup("soft", 1);
        ended.shutdownGracefully(0, 1, TimeUnit.SECONDS).awaitUninterruptibly(Patience.LIMIT.toMillis());
        assertThat(failureOf(ended)).isInstanceOf(RejectedExecutionException.class);
        try (RdmaEventLoopGroup refusing = new RdmaEventLoopGroup(
                ProviderChoice.choose("soft", null), 1, new RefusingThreads(0, 2), CompletionLoopOptions.DEFAULTS)) {
            assertThat(failureOf(refusing)).isInstanceOf(OutOfMemoryError.class);
            assertThat(failureOf(refusing)).as("the next channel").isNull();
        }
    }

    /** What a listener gets if a server binds; null if it is bound. */
    private static @Nullable Throwable failureOf(RdmaEventLoopGroup loops) {
        CompletableFuture<Optional<Throwable>> outcome = new CompletableFuture<>();
        new ServerBootstrap()
                .group(loops)
                .channel(RdmaServerChannel.class)
                .childHandler(new ChannelInboundHandlerAdapter())
                .bind("127.0.0.1", 0)
                .addListener(bound -> outcome.complete(Optional.ofNullable(bound.cause())));
        return Patience.await("the outcome", outcome).orElse(null);
    }

    /** Netty logs each registration that fails, with its stack: there may be many while a server ends. */
    @Test
    void aLoopThatIsEndingRefusesAcceptedConnectionsQuietly() {
        CompletableFuture<Object> accepted = new CompletableFuture<>();
        ListAppender<ILoggingEvent> appender = new ListAppender<>();
        Logger logger = (Logger) LoggerFactory.getLogger(ServerBootstrap.class);
        appender.start();
        logger.addAppender(appender);
        try (RdmaEventLoopGroup listening = new RdmaEventLoopGroup("soft", 1);
                RdmaEventLoopGroup serving = new RdmaEventLoopGroup("soft", 1)) {
            RdmaServerChannel server = (RdmaServerChannel) new ServerBootstrap()
                    .group(listening, serving)
                    .channel(RdmaServerChannel.class)
                    .handler(new ChannelInboundHandlerAdapter() {
                        @Override
                        public void channelRead(ChannelHandlerContext context, Object child) {
                            context.fireChannelRead(child);
                            accepted.complete(child);
                        }
                    })
                    .childHandler(new ChannelInboundHandlerAdapter())
                    .bind("127.0.0.1", 0)
                    .syncUninterruptibly()
                    .channel();
            // The loop goes on when the registration is there, behind the task that begins the end.
            serving.next().execute(() -> Patience.await("a connection", accepted));
            serving.shutdownGracefully(0, 1, TimeUnit.SECONDS);
            int port = Objects.requireNonNull(server.localAddress()).getPort();
            assertThatThrownBy(() -> RdmaClient.builder().group(listening).connect("127.0.0.1", port))
                    .isInstanceOf(ConnectionException.class);
        } finally {
            logger.detachAppender(appender);
        }
        assertThat(appender.list).isEmpty();
    }
}
