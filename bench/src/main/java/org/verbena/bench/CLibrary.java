package org.verbena.bench;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** A library of the repository's own, compiled from C for one run. */
public final class CLibrary {
    private CLibrary() {}

    /**
     * Compiles a library.
     *
     * @param source the file in C
     * @param options more of gcc's options
     * @return the library, in a folder of its own
     * @throws IllegalStateException it does not compile
     * @throws UncheckedIOException there is no gcc
     */
    public static Path compile(Path source, String... options) {
        try {
            Path library = Files.createTempDirectory("stub").resolve("libstub.so");
            List<String> command = new ArrayList<>(
                    List.of("gcc", "-shared", "-fPIC", "-O2", "-o", library.toString(), source.toString()));
            command.addAll(List.of(options));
            Process gcc = new ProcessBuilder(command).inheritIO().start();
            if (gcc.waitFor() != 0) {
                throw new IllegalStateException(
                        source + " does not compile: install gcc, libibverbs-dev and librdmacm-dev");
            }
            return library;
        } catch (IOException missing) {
            throw new UncheckedIOException("gcc is needed to build the stub library", missing);
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException(interrupted);
        }
    }
}
