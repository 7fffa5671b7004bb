package org.verbena.it.lab;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.transport.spi.Patience;

/** What our commands tell of devices is what C's tell. */
@Tag("lab")
@Timeout(350)
class DevicesCommandTest {
    /** Lines without their layout. */
    private static List<String> lines(String text) {
        return text.lines()
                .map(line -> line.strip().replaceAll("\\s+", " "))
                .filter(line -> !line.isEmpty())
                .toList();
    }

    @Test
    void printsWhatDevinfoPrints() {
        String wanted = PeerProgram.run(Patience.LIMIT, "ibv_devinfo", "-v");
        assertThat(wanted).contains("hca_id:\trxe0", "hca_id:\tsiw0");
        // What logging has to say of itself comes with the first command.
        assertThat(Command.run("devices").exitCode()).isZero();
        Command command = Command.run("devices", "-v");
        System.out.println(command.out());
        assertThat(command.exitCode()).as(command.err()).isZero();
        assertThat(lines(command.out())).containsExactlyElementsOf(lines(wanted));
    }

    @Test
    void listsWhatDevicesLists() {
        String wanted = PeerProgram.run(Patience.LIMIT, "ibv_devices");
        assertThat(wanted).contains("rxe0", "siw0");
        Command command = Command.run("devices", "--list");
        assertThat(command.exitCode()).as(command.err()).isZero();
        assertThat(command.out()).isEqualTo(wanted + "\n"); // run strips the last one
    }

    @Test
    void printsMoreAsJsonOnRequest() {
        Command command = Command.run("devices", "--json", "-v");
        assertThat(command.exitCode()).as(command.err()).isZero();
        assertThat(command.out())
                .contains("\"name\": \"rxe0\"", "\"name\": \"siw0\"", "\"extended\": {", "\"maxTsoBytes\": 0");
    }

    @Tag("lab-full")
    @Test
    void watchesAsynchronousEventsAsCDoes() {
        try (PeerProgram theirs = PeerProgram.start("ibv_asyncwatch", "-d", "rxe0");
                PeerProgram ours = PeerProgram.startJava("org.verbena.tools.Main", "asyncwatch", "-d", "rxe0")) {
            theirs.awaitLine("async event FD", Patience.LIMIT);
            ours.awaitLine("async event FD", Patience.LIMIT);
            PeerProgram.run(Patience.LIMIT, "ip", "address", "add", "10.77.0.77/24", "dev", "roce");
            try {
                theirs.awaitLine("GID", Patience.LIMIT);
                ours.awaitLine("GID_CHANGE, port=1", Patience.LIMIT);
            } finally {
                PeerProgram.run(Patience.LIMIT, "ip", "address", "del", "10.77.0.77/24", "dev", "roce");
            }
            ours.terminate();
            assertThat(ours.awaitExit(Patience.LIMIT)).as(ours.output()).isZero();
        }
    }
}
