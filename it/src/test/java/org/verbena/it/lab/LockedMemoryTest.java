package org.verbena.it.lab;

import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.api.RdmaClient;
import org.verbena.tools.Main;
import org.verbena.transport.spi.Patience;

/** A server that may lock hardly any memory: it listens, can serve nobody, and says so to both sides. */
@Tag("lab")
@Tag("lab-full")
@Timeout(350)
class LockedMemoryTest {
    private static final int PORT = 7690;

    @Test
    void aServerThatCannotPinMemoryTellsItsPeersAndItsLog() {
        // Root is not bound by the limit, unless it lacks the capability.
        List<String> command =
                new ArrayList<>(List.of("setpriv", "--bounding-set=-ipc_lock", "prlimit", "--memlock=65536:65536"));
        command.addAll(PeerProgram.javaCommand(
                Main.class.getName(), "echo-server", "--provider", "verbs", "--host", "0.0.0.0", "--port", "" + PORT));
        try (PeerProgram server = PeerProgram.start(command)) {
            server.awaitLine("listens on", Patience.LIMIT);
            for (LabDevice device : LabDevice.values()) {
                assertThatThrownBy(() -> RdmaClient.builder()
                                .provider("verbs")
                                .connect(device.address(), PORT)
                                .close())
                        .as("%s", device)
                        .hasMessageContaining("the server cannot serve another connection now");
            }
            server.awaitLine("WARN.*the connection of .* was not established: .*ulimit -l", Patience.LIMIT);
        }
    }
}
