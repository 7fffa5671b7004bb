package org.verbena.transport.verbs;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.channel.IoEventLoop;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.verbena.cm.Cm;
import org.verbena.transport.CompletionLoopOptions;
import org.verbena.transport.EndpointCapabilities;
import org.verbena.transport.spi.EndpointOptions;
import org.verbena.transport.spi.Patience;
import org.verbena.transport.spi.RecordingEndpointHandler;
import org.verbena.verbs.Context;
import org.verbena.verbs.device.TransportType;

/** What {@code docs/adapters.md} says of connections on each family is what they have on the stub. */
@Timeout(60)
class FamiliesTableTest {
    private static final Path PAGE = Path.of("../../docs/adapters.md");

    static List<String> families() {
        return Families.CONNECTING;
    }

    @ParameterizedTest
    @MethodSource("families")
    void thePageSaysWhatAConnectionHas(String family) throws Exception {
        StubDevice.install();
        StubDevice.become(family);
        VerbsProvider provider = new VerbsProvider();
        MultiThreadIoEventLoopGroup group =
                new MultiThreadIoEventLoopGroup(1, provider.newIoHandlerFactory(CompletionLoopOptions.DEFAULTS));
        IoEventLoop loop = group.next();
        RecordingEndpointHandler client = new RecordingEndpointHandler(family, loop);
        provider.connect(loop, StubDevice.ROCE, EndpointOptions.DEFAULTS, client);
        client.awaitConnected();
        EndpointCapabilities can = client.call(endpoint -> endpoint.capabilities());
        Context device = Cm.devices().getFirst();
        String row = "| " + family
                + " | " + can.sendDepth() + ", " + can.receiveDepth()
                + " | " + can.maxSges() + ", " + can.maxReceiveSges()
                + " | " + can.maxInlineBytes()
                + " | " + yes(device.queryDevice().maxSharedReceiveQueues() > 0)
                + " | " + yes(can.connectionMemory())
                + " | " + yes(can.atomics())
                + " | " + yes(can.immediateData())
                + " | " + datagrams(device) + " |";
        client.awaitPrepared().disconnect();
        client.awaitDisconnected();
        Patience.await("the loop ended", group.shutdownGracefully(0, 5, TimeUnit.SECONDS));
        StubDevice.close(provider);
        assertThat(rows()).contains(row);
    }

    private static List<String> rows() throws IOException {
        return Files.readAllLines(PAGE);
    }

    private static String datagrams(Context device) {
        return device.device().transportType() == TransportType.IB && !VerbsDevice.hasDatagrams(device)
                ? "by hand"
                : yes(VerbsDevice.hasDatagrams(device));
    }

    private static String yes(boolean has) {
        return has ? "yes" : "no";
    }
}
