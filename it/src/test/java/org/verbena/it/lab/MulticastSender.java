package org.verbena.it.lab;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.verbena.transport.spi.Patience;

/**
 * C's {@code mckey -s}, which stays in its group until it is {@linkplain PeerProgram#terminate() asked to end}. By
 * itself it destroys its queue pair as soon as its sends are posted, without waiting for them; Linux 6.12's rxe sends
 * them from a work queue, and drops those that it has not begun with.
 */
final class MulticastSender {
    private MulticastSender() {}

    /**
     * Starts one.
     *
     * @param folder for the library that makes it stay
     * @param options of {@code mckey}, besides {@code -s}
     */
    static PeerProgram start(Path folder, String... options) {
        Path source = folder.resolve("stay_in_group.c");
        try (InputStream text = MulticastSender.class.getResourceAsStream("stay_in_group.c")) {
            Files.copy(text, source);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        String library = folder.resolve("libstay_in_group.so").toString();
        PeerProgram.run(
                Patience.LIMIT, "gcc", "-Wall", "-Werror", "-shared", "-fPIC", source.toString(), "-o", library);
        // PeerProgram preloads a library as well.
        List<String> command = new ArrayList<>(
                List.of("sh", "-c", "LD_PRELOAD=\"$0:$LD_PRELOAD\" exec \"$@\"", library, "mckey", "-s"));
        command.addAll(List.of(options));
        return PeerProgram.start(command);
    }
}
