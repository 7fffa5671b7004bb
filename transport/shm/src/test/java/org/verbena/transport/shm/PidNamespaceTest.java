package org.verbena.transport.shm;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.spi.RecordingEndpointHandler;

/** Two containers that share a directory and no PID namespace. */
@Timeout(240)
class PidNamespaceTest {
    private static final List<String> CONTAINER =
            List.of("unshare", "-U", "-r", "-p", "-f", "--mount-proc", "--kill-child");

    @TempDir
    Path parent;

    private final List<Process> processes = new ArrayList<>();

    @BeforeEach
    void check() throws InterruptedException {
        try {
            List<String> probe = new ArrayList<>(CONTAINER);
            probe.add("true");
            assumeTrue(new ProcessBuilder(probe).start().waitFor() == 0, "this user may make no namespaces here");
        } catch (IOException none) {
            assumeTrue(false, "there is no unshare(1) here: " + none);
        }
    }

    @AfterEach
    void killAll() {
        processes.forEach(Process::destroyForcibly);
    }

    private ShmOptions options() {
        return ShmOptions.DEFAULTS.withDirectory(parent.resolve("sockets"));
    }

    private void start(String... arguments) throws IOException {
        processes.add(ShmChild.start(CONTAINER, parent.resolve("sockets"), arguments));
    }

    @Test
    void theClientIsToldWhy() throws IOException {
        try (ShmFixture fixture = new ShmFixture(options())) {
            start("server");
            int port = ShmChild.awaitPort(processes.getFirst());
            RecordingEndpointHandler client =
                    fixture.connect(new InetSocketAddress(InetAddress.getLoopbackAddress(), port), handler -> {});
            assertThat(client.awaitDisconnected())
                    .isInstanceOf(ConnectionException.Rejected.class)
                    .hasMessageContaining("PID namespace");
        }
    }

    @Test
    void theServerSaysWhy() throws IOException {
        try (ShmFixture fixture = new ShmFixture(options())) {
            start("client", String.valueOf(fixture.address.getPort()), "1");
            assertThat(fixture.acceptInVain())
                    .isInstanceOf(ConnectionException.class)
                    .hasMessageContaining("PID namespace");
        }
    }
}
