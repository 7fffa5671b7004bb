package org.verbena.transport.verbs;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.channel.IoEventLoop;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import java.lang.foreign.Arena;
import java.lang.management.ManagementFactory;
import java.net.InetSocketAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import javax.management.ObjectName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.transport.CompletionLoopOptions;
import org.verbena.transport.spi.EndpointOptions;
import org.verbena.transport.spi.Patience;
import org.verbena.transport.spi.RecordingEndpointHandler;

/** What stops all threads of the JVM for a moment, as closing a shared arena does, is not done for each connection. */
@Timeout(120)
class HandshakesTest {
    private static final String CLOSING_AN_ARENA = "CloseScopedMemory";

    @Test
    void connectionsComeAndGoWithoutStoppingAllThreads() throws Exception {
        StubDevice.install();
        Path log = Files.createTempFile("handshakes", ".log");
        log("output=" + log, "what=handshake*=info");
        Arena.ofShared().close();
        Patience.until("a handshake is in the log", () -> handshakes(log) == 1);
        VerbsProvider provider = new VerbsProvider();
        MultiThreadIoEventLoopGroup group =
                new MultiThreadIoEventLoopGroup(1, provider.newIoHandlerFactory(CompletionLoopOptions.DEFAULTS));
        IoEventLoop loop = group.next();
        for (InetSocketAddress address : new InetSocketAddress[] {StubDevice.ROCE, StubDevice.IWARP}) {
            for (int i = 0; i < 10; i++) {
                RecordingEndpointHandler client = new RecordingEndpointHandler("client " + i, loop);
                provider.connect(loop, address, EndpointOptions.DEFAULTS, client);
                client.awaitConnected();
                client.awaitPrepared().disconnect();
                assertThat(client.awaitDisconnected()).isNull();
            }
        }
        Patience.until("the ids are closed", () -> !StubDevice.leaks().contains("rdma_cm_id"));
        provider.awaitConnectionLoops();
        assertThat(handshakes(log)).isOne();
        log("disable");
        Patience.await("the loop ended", group.shutdownGracefully(0, 5, TimeUnit.SECONDS));
        StubDevice.close(provider);
        Files.delete(log);
    }

    private static void log(String... options) throws Exception {
        ManagementFactory.getPlatformMBeanServer()
                .invoke(
                        new ObjectName("com.sun.management:type=DiagnosticCommand"),
                        "vmLog",
                        new Object[] {options},
                        new String[] {String[].class.getName()});
    }

    private static long handshakes(Path log) {
        try (Stream<String> lines = Files.lines(log)) {
            return lines.filter(line -> line.contains(CLOSING_AN_ARENA)).count();
        } catch (java.io.IOException unreadable) {
            throw new java.io.UncheckedIOException(unreadable);
        }
    }
}
