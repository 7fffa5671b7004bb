package org.verbena.it.verbs;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import org.verbena.it.SourceTree;

/** A library in the place of libibverbs and librdmacm, for processes of their own. */
final class StubLibrary {
    private StubLibrary() {}

    /** Compiles it; skips the test, saying why, where it cannot. */
    static Path compile(Path folder, String source) throws IOException, InterruptedException {
        assumeTrue(Files.exists(Path.of("/usr/include/rdma/rdma_cma.h")), "librdmacm-dev is not installed");
        Path library = folder.resolve("libstub.so");
        Path root = SourceTree.root();
        Process gcc;
        try {
            gcc = new ProcessBuilder(
                            "gcc",
                            "-shared",
                            "-fPIC",
                            "-O2",
                            "-o",
                            library.toString(),
                            root.resolve(source).toString(),
                            "-I" + root.resolve("transport/verbs/src/test/c"),
                            "-lpthread")
                    .redirectErrorStream(true)
                    .start();
        } catch (IOException missing) {
            assumeTrue(false, "gcc is not installed");
            throw missing;
        }
        String messages = new String(gcc.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        assertThat(gcc.waitFor()).as(messages).isZero();
        return library;
    }
}
