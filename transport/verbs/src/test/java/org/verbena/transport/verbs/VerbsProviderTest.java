package org.verbena.transport.verbs;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.netty.channel.IoEventLoop;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import io.netty.channel.local.LocalIoHandler;
import java.net.InetSocketAddress;
import java.util.ServiceLoader;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.verbena.transport.CompletionLoopOptions;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.spi.EndpointOptions;
import org.verbena.transport.spi.ListenOptions;
import org.verbena.transport.spi.Patience;
import org.verbena.transport.spi.RdmaProvider;
import org.verbena.transport.spi.RecordingEndpointHandler;
import org.verbena.transport.spi.RecordingListenerHandler;

/** What the provider does without a device; the contract suite in the lab covers the rest. */
@Tag("no-stub")
@Timeout(240)
class VerbsProviderTest {
    private final VerbsProvider provider = new VerbsProvider();
    private final InetSocketAddress address = new InetSocketAddress("192.0.2.1", 7471);

    @Test
    void isFoundByTheServiceLoader() {
        assertThat(ServiceLoader.load(RdmaProvider.class)).anySatisfy(found -> {
            assertThat(found.name()).isEqualTo("verbs");
            assertThat(found.rank()).isEqualTo(100);
        });
    }

    @Test
    void saysWhatToDoWhereItIsUnavailable() {
        Throwable cause = provider.unavailabilityCause();
        assumeTrue(cause != null, "there is a device here");
        assertThat(cause.getMessage()).hasSizeGreaterThan(40);
        assertThat(provider.serves(address)).isFalse();
        assertThat(provider.serves(new InetSocketAddress("0.0.0.0", 0))).isFalse();
        assertThat(provider.description()).isNotBlank();
    }

    @Test
    void neverServesWhatItCannotReach() {
        assertThat(provider.serves(InetSocketAddress.createUnresolved("example.invalid", 1)))
                .isFalse();
        assertThat(provider.serves(new InetSocketAddress("127.0.0.1", 1))).isFalse();
        assertThat(provider.serves(new InetSocketAddress("239.1.2.3", 1))).isFalse();
    }

    @Test
    @EnabledOnOs(OS.LINUX)
    void reportsToTheHandlersThatThereIsNoDevice() {
        assumeTrue(provider.unavailabilityCause() != null, "there is a device here");
        MultiThreadIoEventLoopGroup group =
                new MultiThreadIoEventLoopGroup(1, provider.newIoHandlerFactory(CompletionLoopOptions.DEFAULTS));
        try {
            IoEventLoop loop = group.next();
            RecordingEndpointHandler client = new RecordingEndpointHandler("client", loop);
            provider.connect(loop, address, EndpointOptions.DEFAULTS, client);
            assertThat(client.awaitDisconnected())
                    .isInstanceOf(ConnectionException.class)
                    .hasMessageContaining("192.0.2.1:7471");
            client.assertNoViolations();
            RecordingListenerHandler listener = new RecordingListenerHandler(loop);
            provider.listen(loop, address, ListenOptions.DEFAULTS, listener);
            assertThat(listener.awaitClosed())
                    .isInstanceOf(ConnectionException.class)
                    .hasMessageContaining("192.0.2.1:7471");
            listener.assertNoViolations();
        } finally {
            Patience.await("the loop ended", group.shutdownGracefully(0, 1, TimeUnit.SECONDS));
        }
    }

    @Test
    @EnabledOnOs(OS.LINUX)
    void runsTasksAtOnceAndScheduledOnesInTime() {
        MultiThreadIoEventLoopGroup group =
                new MultiThreadIoEventLoopGroup(2, provider.newIoHandlerFactory(CompletionLoopOptions.DEFAULTS));
        try {
            IoEventLoop one = group.next();
            IoEventLoop two = group.next();
            CompletableFuture<Integer> hops = new CompletableFuture<>();
            hop(one, two, 10_000, hops);
            assertThat(Patience.await("hops between the loops", hops)).isZero();
            long start = System.nanoTime();
            long ran = Patience.await("a scheduled task", one.schedule(System::nanoTime, 30, TimeUnit.MILLISECONDS));
            assertThat(ran - start).isGreaterThanOrEqualTo(TimeUnit.MILLISECONDS.toNanos(30));
        } finally {
            Patience.await("the loops ended", group.shutdownGracefully(0, 1, TimeUnit.SECONDS));
        }
    }

    private static void hop(IoEventLoop from, IoEventLoop to, int left, CompletableFuture<Integer> done) {
        if (left == 0) {
            done.complete(0);
        } else {
            to.execute(() -> hop(to, from, left - 1, done));
        }
    }

    @Test
    void refusesLoopsOfAnotherTransport() {
        MultiThreadIoEventLoopGroup group = new MultiThreadIoEventLoopGroup(1, LocalIoHandler.newFactory());
        try {
            IoEventLoop loop = group.next();
            assertThatThrownBy(() -> provider.connect(
                            loop, address, EndpointOptions.DEFAULTS, new RecordingEndpointHandler("client", loop)))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessageContaining("newIoHandlerFactory");
            assertThatThrownBy(() ->
                            provider.listen(loop, address, ListenOptions.DEFAULTS, new RecordingListenerHandler(loop)))
                    .isInstanceOf(IllegalArgumentException.class);
        } finally {
            Patience.await("the loop ended", group.shutdownGracefully(0, 1, TimeUnit.SECONDS));
        }
    }
}
