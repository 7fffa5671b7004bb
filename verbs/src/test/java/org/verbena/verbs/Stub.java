package org.verbena.verbs;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import org.verbena.verbs.ffm.CProbe;

/**
 * The stub library of {@code src/test/c}, compiled and put in libibverbs' place. A test class calls {@link #install}
 * before it touches anything of libibverbs; one library serves the whole JVM.
 */
@SuppressWarnings("restricted") // loads and calls a library
public final class Stub {
    /** More options of the C compiler, with spaces between. */
    static final String FLAGS = "org.verbena.test.stubFlags";

    private static SymbolLookup symbols;

    /** How the stub refuses: as most providers, as siw, as siw's doorbell, as siw's overflow. */
    public static final int REFUSE_POSITIVE = 0;

    public static final int REFUSE_NEGATIVE = 1;
    public static final int REFUSE_MINUS_ONE = 2;
    public static final int REFUSE_ZERO = 3;

    private Stub() {}

    public static Path compile() throws Exception {
        CProbe.assumeHeaders("infiniband/verbs.h");
        String flags = System.getProperty(FLAGS, "");
        return CProbe.sharedLibrary(
                Path.of("../verbs/src/test/c/stub_ibverbs.c"), flags.isEmpty() ? new String[0] : flags.split(" "));
    }

    public static synchronized void install() throws Exception {
        if (symbols == null) {
            Path library = compile();
            System.setProperty("org.verbena.verbs.library", library.toString());
            symbols = SymbolLookup.libraryLookup(library, Arena.global());
        }
        call("stub_reset");
    }

    /** Calls a function whose arguments are int, long or String, and gives what it returns as an int. */
    public static int call(String function, Object... arguments) {
        return (int) invoke(function, ValueLayout.JAVA_INT, arguments);
    }

    /** Calls a function that returns a 64-bit number. */
    public static long number(String function, Object... arguments) {
        return (long) invoke(function, ValueLayout.JAVA_LONG, arguments);
    }

    /** Calls a function that returns a string. */
    public static String text(String function) {
        return ((MemorySegment) invoke(function, ValueLayout.ADDRESS))
                .reinterpret(1 << 16)
                .getString(0);
    }

    private static Object invoke(String function, MemoryLayout result, Object... arguments) {
        try (Arena arena = Arena.ofConfined()) {
            MemoryLayout[] layouts = new MemoryLayout[arguments.length];
            Object[] values = new Object[arguments.length];
            for (int i = 0; i < arguments.length; i++) {
                switch (arguments[i]) {
                    case Integer number -> {
                        layouts[i] = ValueLayout.JAVA_INT;
                        values[i] = number;
                    }
                    case Long number -> {
                        layouts[i] = ValueLayout.JAVA_LONG;
                        values[i] = number;
                    }
                    case String text -> {
                        layouts[i] = ValueLayout.ADDRESS;
                        values[i] = arena.allocateFrom(text);
                    }
                    default -> throw new IllegalArgumentException(String.valueOf(arguments[i]));
                }
            }
            return Linker.nativeLinker()
                    .downcallHandle(symbols.findOrThrow(function), FunctionDescriptor.of(result, layouts))
                    .invokeWithArguments(values);
        } catch (Throwable thrown) {
            throw new IllegalStateException(function, thrown);
        }
    }

    public static void failNext(String function, int errno) {
        call("stub_fail", function, errno, 1);
    }

    public static int live() {
        return call("stub_live");
    }

    public static int postedCount() {
        return call("stub_posted_count");
    }

    public static int postCalls() {
        return call("stub_post_calls");
    }

    /** What the stub saw of a work request. */
    public record Posted(
            long workRequestId,
            long remoteAddress,
            long compareAdd,
            long swap,
            int opcode,
            int flags,
            int immediate,
            int remoteKey,
            int sges,
            int call,
            long[] addresses,
            int[] lengths,
            int[] keys,
            byte[] firstBytes) {}

    public static Posted posted(int index) {
        MemorySegment struct = ((MemorySegment) invoke("stub_posted", ValueLayout.ADDRESS, index)).reinterpret(256);
        int sges = struct.get(ValueLayout.JAVA_INT, 48);
        long[] addresses = new long[sges];
        int[] lengths = new int[sges];
        int[] keys = new int[sges];
        for (int i = 0; i < sges; i++) {
            addresses[i] = struct.get(ValueLayout.JAVA_LONG, 56 + i * 16L);
            lengths[i] = struct.get(ValueLayout.JAVA_INT, 56 + i * 16L + 8);
            keys[i] = struct.get(ValueLayout.JAVA_INT, 56 + i * 16L + 12);
        }
        return new Posted(
                struct.get(ValueLayout.JAVA_LONG, 0),
                struct.get(ValueLayout.JAVA_LONG, 8),
                struct.get(ValueLayout.JAVA_LONG, 16),
                struct.get(ValueLayout.JAVA_LONG, 24),
                struct.get(ValueLayout.JAVA_INT, 32),
                struct.get(ValueLayout.JAVA_INT, 36),
                struct.get(ValueLayout.JAVA_INT, 40),
                struct.get(ValueLayout.JAVA_INT, 44),
                sges,
                struct.get(ValueLayout.JAVA_INT, 52),
                addresses,
                lengths,
                keys,
                struct.asSlice(56 + 8 * 16, 8).toArray(ValueLayout.JAVA_BYTE));
    }
}
