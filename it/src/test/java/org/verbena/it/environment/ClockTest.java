package org.verbena.it.environment;

import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** A wall clock that is set forward and back, as by NTP after a suspend: no connection is lost, and none is refused. */
@Tag("full")
@Timeout(120)
class ClockTest {
    private static final Path LIBRARIES = Path.of("/usr/lib");

    /** For programs with threads; where Debian puts it. */
    private static final String LIBFAKETIME = "faketime/libfaketimeMT.so.1";

    @TempDir
    private Path folder;

    @Test
    void connectionsOutliveJumpsOfTheWallClock() throws Exception {
        Optional<Path> library = libfaketime();
        assumeTrue(library.isPresent(), "libfaketime is not installed");
        Path offset = Files.writeString(folder.resolve("offset"), "+0\n");
        Map<String, String> environment = new HashMap<>(System.getenv());
        environment.put("LD_PRELOAD", library.orElseThrow().toString());
        environment.put("FAKETIME_TIMESTAMP_FILE", offset.toString());
        environment.put("FAKETIME_NO_CACHE", "1"); // so that it looks into the file each time
        environment.put("FAKETIME_DONT_FAKE_MONOTONIC", "1"); // as with a real clock, and the JVM hangs otherwise
        environment.put("FAKETIME_FORCE_MONOTONIC_FIX", "0"); // else timed waits return at once, for ever
        new ChildJvm("--enable-native-access=ALL-UNNAMED")
                .withEnvironment(environment)
                .run(ClockJumps.class, offset.toString(), "soft", "shm")
                .succeeded("soft keeps its connections", "shm keeps its connections");
    }

    private static Optional<Path> libfaketime() throws IOException {
        try (Stream<Path> folders = Files.list(LIBRARIES)) { // one for each architecture
            return folders.map(each -> each.resolve(LIBFAKETIME))
                    .filter(Files::exists)
                    .findFirst();
        }
    }
}
