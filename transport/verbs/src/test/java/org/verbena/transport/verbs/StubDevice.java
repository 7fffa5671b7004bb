package org.verbena.transport.verbs;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.net.Inet4Address;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.NetworkInterface;
import java.net.SocketException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.Assumptions;
import org.verbena.cm.Cm;
import org.verbena.transport.spi.EndpointOptions;
import org.verbena.transport.spi.Patience;

/**
 * The two devices of {@code src/test/c/stub_rdma.c}, in the place of libibverbs, librdmacm and the C library's epoll;
 * see there for what they do. A test class calls {@link #install} before it touches anything of the provider, and has a
 * JVM of its own.
 */
@SuppressWarnings("restricted") // loads and calls a library
final class StubDevice {
    /** An address of the RoCE device, stub0. */
    static final InetSocketAddress ROCE = new InetSocketAddress("10.0.0.1", 7471);

    /** An address of the iWARP device, stub1. */
    static final InetSocketAddress IWARP = new InetSocketAddress("10.0.1.1", 7471);

    /** A host behind the iWARP device that does not answer. */
    static final InetSocketAddress SILENT = new InetSocketAddress("10.0.1.250", 7471);

    /** More options of the C compiler, with spaces between. */
    static final String FLAGS = "org.verbena.test.stubFlags";

    private static final Set<InetAddress> HOST = new LinkedHashSet<>();

    private static SymbolLookup symbols;

    /** What sysfs says of the processors near stub0, once it {@linkplain #become becomes} another device. */
    static String localProcessors = "";

    /** What stub0 is. */
    private static String played = Families.IDEAL;

    private StubDevice() {}

    /** Compiles the library and makes the bindings load it; skips the test, saying why, where it cannot. */
    static synchronized void install() throws Exception {
        if (symbols == null) {
            Assumptions.assumeTrue(
                    Files.exists(Path.of("/usr/include/rdma/rdma_cma.h")), "librdmacm-dev is not installed");
            Path library = compiled();
            System.setProperty("org.verbena.verbs.library", library.toString());
            System.setProperty("org.verbena.cm.library", library.toString());
            System.setProperty("org.verbena.transport.verbs.libc", library.toString());
            symbols = SymbolLookup.libraryLookup(library, Arena.global());
        }
        call("stub_reset");
        String wanted = Families.playing();
        if (!wanted.equals(played)) {
            call("stub_remove", 0, 1);
            Cm.devices();
            call("stub_abandon", 0);
            become(wanted);
        }
    }

    /** The library, which the first class to ask compiles for all JVMs of the module's tests. */
    private static Path compiled() throws Exception {
        String flags = System.getProperty(FLAGS, "");
        MessageDigest digest = MessageDigest.getInstance("SHA-256");
        digest.update(flags.getBytes(StandardCharsets.UTF_8));
        try (Stream<Path> sources = Files.list(Path.of("src/test/c")).sorted()) {
            for (Path source : sources.toList()) {
                digest.update(Files.readAllBytes(source));
            }
        }
        Path folder = Files.createDirectories(Path.of("target/stub"));
        Path library = folder.resolve("libstub_rdma-" + HexFormat.of().formatHex(digest.digest(), 0, 8) + ".so");
        if (Files.exists(library)) {
            return library.toAbsolutePath();
        }
        Path made = Files.createTempFile(folder, "made", ".so");
        Process gcc;
        try {
            List<String> command = new ArrayList<>(List.of(
                    "gcc",
                    "-shared",
                    "-fPIC",
                    "-O2",
                    "-Wall",
                    "-Werror",
                    "-o",
                    made.toString(),
                    "src/test/c/stub_rdma.c",
                    "-lpthread"));
            if (!flags.isEmpty()) {
                command.addAll(List.of(flags.split(" ")));
            }
            gcc = new ProcessBuilder(command).redirectErrorStream(true).start();
        } catch (IOException missing) {
            Assumptions.abort("gcc is not installed");
            throw missing;
        }
        String messages = new String(gcc.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        if (!gcc.waitFor(60, TimeUnit.SECONDS) || gcc.exitValue() != 0) {
            throw new IllegalStateException(messages);
        }
        return Files.move(made, library, StandardCopyOption.ATOMIC_MOVE).toAbsolutePath();
    }

    /**
     * Makes stub0 another device, of an adapter family of the table in stub_rdma.c; or the ideal one. Nothing may be
     * left on the one before.
     */
    static void become(String family) {
        call("stub_remove", 0, 1);
        Cm.devices();
        assertThat(call("stub_is_open", 0)).as("stub0 is open").isZero();
        assertThat(call(
                        "stub_personality",
                        family.equals(Families.IDEAL) ? "" : family,
                        sysfs(family).toString()))
                .isZero();
        call("stub_remove", 0, 0);
        Cm.devices();
        played = family;
    }

    /**
     * Lets stub0 have the addresses of this host as well, from now on.
     *
     * @return those of version 4 that are not loopback's
     */
    static synchronized Set<InetAddress> serveHostAddresses() throws SocketException {
        if (HOST.isEmpty()) {
            NetworkInterface.networkInterfaces()
                    .flatMap(NetworkInterface::inetAddresses)
                    .filter(address -> address instanceof Inet4Address && !address.isLoopbackAddress())
                    .forEach(HOST::add);
            HOST.forEach(address -> call("stub_host_address", address.getHostAddress()));
        }
        return HOST;
    }

    /** What the kernel says of it. */
    private static Path sysfs(String family) {
        String driver = switch (family) {
            case "mlx5", "mlx5-ib" -> "mlx5_core";
            case "mlx4" -> "mlx4_core";
            case "bnxt_re" -> "bnxt_en";
            case "irdma-roce", "irdma-iwarp" -> "ice";
            case "x722" -> "i40e";
            case "hns" -> "hns3";
            case "mana-rc" -> "mana";
            case "erdma-roce" -> "erdma";
            case "qedr" -> "qede";
            case "cxgb4-t5" -> "cxgb4";
            case Families.IDEAL -> "";
            default -> family;
        };
        try {
            Path root = Files.createTempDirectory("sysfs");
            Path device = Files.createDirectories(root.resolve("stub0").resolve("device"));
            if (!driver.isEmpty()) {
                Path its = Files.createDirectories(root.resolve("drivers").resolve(driver));
                Files.createSymbolicLink(device.resolve("driver"), its);
                Files.writeString(device.resolve("numa_node"), "1\n");
                Files.writeString(device.resolve("local_cpulist"), localProcessors + "\n");
            }
            return root;
        } catch (IOException failure) {
            throw new UncheckedIOException(failure);
        }
    }

    /** What its devices have room for. */
    static EndpointOptions options(boolean shared, int timeoutMillis) {
        return EndpointOptions.DEFAULTS.with(o -> {
            o.connectTimeoutMillis = timeoutMillis;
            o.sendDepth = 16;
            o.receiveDepth = 4;
            o.maxSges = 2;
            o.maxInlineBytes = 0;
            o.readDepth = 4;
            o.sharedReceiveQueue = shared;
        });
    }

    /** Calls a function whose arguments are int, long or String, and gives what it returns as an int. */
    static int call(String function, Object... arguments) {
        return (int) invoke(function, ValueLayout.JAVA_INT, arguments);
    }

    /** The names of the threads that have called a function. */
    static String threadsOf(String function) {
        return text("stub_threads_of", function);
    }

    /** What was created and not destroyed, as "ibv_mr 2 rdma_cm_id 1"; empty if there is nothing. */
    static String leaks() {
        return text("stub_leaks");
    }

    /**
     * Closes a provider whose loops have ended. One whose queues were still in use tries to give them back half a
     * second later, on the loops that this ends.
     */
    static void close(VerbsProvider provider) {
        Patience.until("ids and queues are closed", () -> !leaks().matches(".*(rdma_cm_id|stub_channel).*"));
        provider.close();
    }

    /** How often each quirk was indulged in since the last seed, in the same form. */
    static String indulged() {
        return text("stub_indulged");
    }

    /** How often each function was called since the last reset, in the same form. */
    static String allCalls() {
        return text("stub_all_calls");
    }

    /** What a key of a window opens now, as "ADDRESS LENGTH"; empty for nothing. */
    static String opened(int key) {
        return text("stub_opened", key);
    }

    private static String text(String function, Object... arguments) {
        return ((MemorySegment) invoke(function, ValueLayout.ADDRESS, arguments))
                .reinterpret(4096)
                .getString(0)
                .strip();
    }

    /** Makes a function of C fail so many times; {@code "poll_cq:stub0"} for one device only. */
    static void fail(String function, int errno, int times) {
        call("stub_fail", function, errno, times);
    }

    /** Makes a function of C fail once, after so many successful calls. */
    static void failOnce(String function, int errno, int skip) {
        call("stub_fail_later", function, errno, skip, 1);
    }

    /** The queue pair that was made last. */
    static int lastNumber() {
        return call("stub_last_number");
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
}
