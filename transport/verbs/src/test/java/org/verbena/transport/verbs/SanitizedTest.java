package org.verbena.transport.verbs;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.netty.channel.IoEventLoop;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.transport.CompletionLoopOptions;
import org.verbena.transport.MemoryDomain.Access;
import org.verbena.transport.RegisteredMemory;
import org.verbena.transport.spi.EndpointOptions;
import org.verbena.transport.spi.Patience;
import org.verbena.transport.spi.RecordingEndpointHandler;
import org.verbena.transport.spi.WorkRequest;
import org.verbena.verbs.device.AsyncEventType;

/**
 * The provider on the stub library, compiled with the address sanitizer, in another process: what it passes to C is
 * read, and nothing is used after it was given back.
 */
@Tag("full")
@Timeout(300)
class SanitizedTest {
    private static final String FAULT = "fault";

    @Test
    void noFamilyReadsWhatIsNotThere() throws Exception {
        assertThat(run()).contains("all families are done").doesNotContain("AddressSanitizer");
    }

    @Test
    void wouldFindAFault() throws Exception {
        assertThat(run(FAULT)).contains("AddressSanitizer: heap-buffer-overflow");
    }

    private static String run(String... arguments) throws IOException, InterruptedException {
        assumeTrue(Files.exists(Path.of("/usr/include/rdma/rdma_cma.h")), "librdmacm-dev is not installed");
        Process gcc = new ProcessBuilder("gcc", "-print-file-name=libasan.so").start();
        Path sanitizer = Path.of(new String(gcc.getInputStream().readAllBytes(), StandardCharsets.UTF_8).strip());
        assumeTrue(sanitizer.isAbsolute(), "gcc has no libasan");
        Path output = Files.createTempFile("sanitized", ".log");
        ProcessBuilder java = new ProcessBuilder(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "--enable-native-access=ALL-UNNAMED",
                "-XX:TieredStopAtLevel=1",
                "-D" + StubDevice.FLAGS + "=-fsanitize=address -fno-omit-frame-pointer -Wno-error",
                "-cp",
                System.getProperty("java.class.path"),
                SanitizedTest.class.getName(),
                arguments.length == 0 ? "" : arguments[0]);
        java.environment().put("LD_PRELOAD", sanitizer.toString());
        // The JVM handles its own faults, and frees little at its end.
        java.environment().put("ASAN_OPTIONS", "handle_segv=0:detect_leaks=0");
        Process child =
                java.redirectErrorStream(true).redirectOutput(output.toFile()).start();
        try {
            assertThat(child.waitFor(240, TimeUnit.SECONDS)).as("it ended").isTrue();
            return Files.readString(output);
        } finally {
            child.destroyForcibly();
            Files.delete(output);
        }
    }

    public static void main(String... arguments) throws Exception {
        StubDevice.install();
        if (arguments[0].equals(FAULT)) {
            StubDevice.call("stub_fault");
        }
        for (String family : Families.CONNECTING) {
            StubDevice.become(family);
            play();
        }
        System.out.println("all families are done");
    }

    private static void play() {
        VerbsProvider provider = new VerbsProvider();
        MultiThreadIoEventLoopGroup group =
                new MultiThreadIoEventLoopGroup(1, provider.newIoHandlerFactory(CompletionLoopOptions.DEFAULTS));
        IoEventLoop loop = group.next();
        for (int i = 0; i < 5; i++) {
            RecordingEndpointHandler client = new RecordingEndpointHandler("client " + i, loop);
            provider.connect(loop, StubDevice.ROCE, EndpointOptions.DEFAULTS, client);
            client.awaitConnected();
            RegisteredMemory memory = client.call(endpoint -> endpoint.connectionMemory()
                    .register(Arena.global().allocate(4096), Set.of(Access.LOCAL_WRITE, Access.REMOTE_READ)));
            for (int inline : new int[] {0, 1}) {
                WorkRequest work = new WorkRequest(1).asSend(inline, 0);
                work.buffers().add(memory, 0, inline == 0 ? 1000 : 16);
                client.send(work);
                client.awaitSend();
            }
            client.receive(1, memory, 0, 64);
            int number = StubDevice.lastNumber();
            StubDevice.call("stub_receive", number, 10, 0);
            client.awaitReceive();
            if (i == 2) {
                StubDevice.call("stub_async_queue", number, AsyncEventType.CQ_ERR.value());
            } else {
                client.awaitPrepared().disconnect();
            }
            client.awaitDisconnected();
            memory.close();
        }
        Patience.await("the loop ended", group.shutdownGracefully(0, 5, TimeUnit.SECONDS));
        StubDevice.close(provider);
    }
}
