package org.verbena.disni;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Assumptions;

/**
 * The devices of {@code transport/verbs/src/test/c/stub_rdma.c} in the place of libibverbs and librdmacm, with ids and
 * queue pairs that reach each other; see there. Installed before anything of the bindings is touched.
 */
@SuppressWarnings("restricted") // loads and calls a library
public final class StubLibrary {
    /** An address of the RoCE device. */
    public static final String ROCE = "10.0.0.1";

    /** An address of the iWARP device. */
    public static final String IWARP = "10.0.1.1";

    private static SymbolLookup symbols;

    private StubLibrary() {}

    /** Compiles the library and makes the bindings load it; skips the test, saying why, where it cannot. */
    public static synchronized void install() throws Exception {
        if (symbols == null) {
            Assumptions.assumeTrue(
                    Files.exists(Path.of("/usr/include/rdma/rdma_cma.h")), "librdmacm-dev is not installed");
            Path library = Files.createTempDirectory("stub").resolve("libstub_rdma.so");
            Process gcc;
            try {
                gcc = new ProcessBuilder(
                                "gcc",
                                "-shared",
                                "-fPIC",
                                "-O2",
                                "-o",
                                library.toString(),
                                "../../transport/verbs/src/test/c/stub_rdma.c",
                                "-lpthread")
                        .redirectErrorStream(true)
                        .start();
            } catch (IOException missing) {
                Assumptions.abort("gcc is not installed");
                return;
            }
            String messages = new String(gcc.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
            if (!gcc.waitFor(60, TimeUnit.SECONDS) || gcc.exitValue() != 0) {
                throw new IllegalStateException(messages);
            }
            System.setProperty("org.verbena.verbs.library", library.toString());
            System.setProperty("org.verbena.cm.library", library.toString());
            symbols = SymbolLookup.libraryLookup(library, Arena.global());
        }
        call("stub_reset");
        call("stub_link", 1);
    }

    private static void call(String function, int... arguments) {
        ValueLayout.OfInt[] layouts = new ValueLayout.OfInt[arguments.length];
        Object[] values = new Object[arguments.length];
        for (int i = 0; i < arguments.length; i++) {
            layouts[i] = ValueLayout.JAVA_INT;
            values[i] = arguments[i];
        }
        invoke(function, FunctionDescriptor.ofVoid(layouts), values);
    }

    /** Makes a function of C fail once. */
    public static void fail(String function, int errno) {
        try (Arena arena = Arena.ofConfined()) {
            invoke(
                    "stub_fail",
                    FunctionDescriptor.ofVoid(ValueLayout.ADDRESS, ValueLayout.JAVA_INT, ValueLayout.JAVA_INT),
                    arena.allocateFrom(function),
                    errno,
                    1);
        }
    }

    /** What was created and not destroyed, as "ibv_mr 2 rdma_cm_id 1"; empty if there is nothing. */
    public static String leaks() {
        return ((MemorySegment) invoke("stub_leaks", FunctionDescriptor.of(ValueLayout.ADDRESS)))
                .reinterpret(4096)
                .getString(0)
                .strip();
    }

    private static Object invoke(String function, FunctionDescriptor descriptor, Object... arguments) {
        try {
            return Linker.nativeLinker()
                    .downcallHandle(symbols.findOrThrow(function), descriptor)
                    .invokeWithArguments(arguments);
        } catch (Throwable thrown) {
            throw new IllegalStateException(function, thrown);
        }
    }
}
