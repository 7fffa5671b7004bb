package org.verbena.transport.verbs;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import io.netty.channel.IoEventLoop;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import java.net.InetSocketAddress;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.transport.CompletionLoopOptions;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.spi.LocalBinding;
import org.verbena.transport.spi.Patience;
import org.verbena.transport.spi.RecordingEndpointHandler;
import org.verbena.verbs.ffm.Errno;

/** A local address that is bound before it is known where to connect to. */
@Timeout(240)
class BindingTest {
    private static final InetSocketAddress LOCAL = new InetSocketAddress(StubDevice.ROCE.getAddress(), 0);

    private final VerbsProvider provider = new VerbsProvider();
    private MultiThreadIoEventLoopGroup group;
    private IoEventLoop loop;

    @BeforeEach
    void startLoop() throws Exception {
        StubDevice.install();
        group = new MultiThreadIoEventLoopGroup(1, provider.newIoHandlerFactory(CompletionLoopOptions.DEFAULTS));
        loop = group.next();
    }

    @AfterEach
    void endLoop() {
        Patience.await("the loop ended", group.shutdownGracefully(0, 5, TimeUnit.SECONDS));
        StubDevice.close(provider);
        assertThat(StubDevice.leaks()).doesNotContain("stub_events");
    }

    @Test
    void connectsFromWhatWasBound() {
        LocalBinding binding = provider.bind(LOCAL);
        assertThat(binding.localAddress().getAddress()).isEqualTo(LOCAL.getAddress());
        RecordingEndpointHandler handler = new RecordingEndpointHandler("client", loop);
        binding.connect(loop, StubDevice.ROCE, StubDevice.options(false, 20_000), handler);
        handler.awaitConnected();
        assertThatIllegalStateException()
                .isThrownBy(() -> binding.connect(loop, StubDevice.ROCE, StubDevice.options(false, 20_000), handler));
        binding.close();
        handler.assertNoViolations();
    }

    @Test
    void isGivenBackUnused() {
        LocalBinding binding = provider.bind(LOCAL);
        assertThat(StubDevice.leaks()).contains("rdma_cm_id");
        binding.close();
        binding.close();
        assertThat(StubDevice.leaks()).doesNotContain("rdma_cm_id");
    }

    @Test
    void saysWhatTheDeviceRefuses() {
        StubDevice.fail("rdma_bind_addr", Errno.EADDRINUSE, 1);
        assertThatExceptionOfType(ConnectionException.class).isThrownBy(() -> provider.bind(LOCAL));
        assertThat(StubDevice.leaks()).doesNotContain("rdma_cm_id");
    }
}
