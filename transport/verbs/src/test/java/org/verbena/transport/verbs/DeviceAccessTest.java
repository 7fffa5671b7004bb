package org.verbena.transport.verbs;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.channel.IoEventLoop;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.transport.CompletionLoopOptions;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.spi.EndpointOptions;
import org.verbena.transport.spi.ListenOptions;
import org.verbena.transport.spi.Patience;
import org.verbena.transport.spi.RecordingEndpointHandler;
import org.verbena.transport.spi.RecordingListenerHandler;
import org.verbena.verbs.ffm.Errno;

/** A user who may use the connection manager and not the devices is told so. */
@Timeout(240)
class DeviceAccessTest {
    private static final String REMEDY = "give this user read and write permission on /dev/infiniband/uverbs*";

    private final VerbsProvider provider = new VerbsProvider();

    @BeforeAll
    static void installStub() throws Exception {
        StubDevice.install();
    }

    @Test
    void saysThatDevicesMayNotBeOpened() {
        StubDevice.fail("ibv_open_device", Errno.EACCES, Integer.MAX_VALUE);
        assertThat(provider.unavailabilityCause())
                .hasMessageContaining("ibv_open_device(stub0) failed with EACCES")
                .hasMessageContaining(REMEDY);
        assertThat(provider.serves(StubDevice.ROCE)).isFalse();
        MultiThreadIoEventLoopGroup group =
                new MultiThreadIoEventLoopGroup(1, provider.newIoHandlerFactory(CompletionLoopOptions.DEFAULTS));
        try {
            IoEventLoop loop = group.next();
            RecordingEndpointHandler client = new RecordingEndpointHandler("client", loop);
            provider.connect(loop, StubDevice.ROCE, EndpointOptions.DEFAULTS, client);
            assertThat(client.awaitDisconnected())
                    .isInstanceOf(ConnectionException.Unreachable.class)
                    .hasMessageContaining("10.0.0.1:7471 failed while resolving the address")
                    .hasMessageContaining("ibv_open_device(stub0) failed with EACCES")
                    .hasMessageContaining(REMEDY);
            client.assertNoViolations();
            RecordingListenerHandler listener = new RecordingListenerHandler(loop);
            provider.listen(loop, StubDevice.ROCE, ListenOptions.DEFAULTS, listener);
            assertThat(listener.awaitClosed())
                    .hasMessageContaining("cannot listen on 10.0.0.1:7471")
                    .hasMessageContaining(REMEDY);
            listener.assertNoViolations();
        } finally {
            Patience.await("the loop ended", group.shutdownGracefully(0, 5, TimeUnit.SECONDS));
        }
    }
}
