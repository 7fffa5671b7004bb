package org.verbena.sockets;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.ThreadLocalRandom;
import java.util.stream.Stream;
import org.verbena.transport.spi.Patience;

/**
 * A PostgreSQL server of Debian's package with a new cluster, on a port of the loopback interface. It refuses to run as
 * root.
 */
final class Postgres implements AutoCloseable {
    private static final String USER = "postgres";

    /**
     * Where its port is: below those that the system gives to whoever asks for any, as other tests do meanwhile. One of
     * them would be taken for PostgreSQL.
     */
    private static final int FIRST_PORT = 20_000;

    private static final int LAST_PORT = 32_000;
    private static final int PORTS_TRIED = 5;

    private final Process process;
    private final int port;
    private final Path log;

    private Postgres(Process process, int port, Path log) {
        this.process = process;
        this.port = port;
        this.log = log;
    }

    /** For a test that failed: whether it still runs, and what it wrote. */
    String describe() {
        return "PostgreSQL on port " + port + (process.isAlive() ? " runs" : " has ended") + ": " + read(log);
    }

    /** The folder with its programs, if it is installed. */
    static Optional<Path> programs() throws IOException {
        Path versions = Path.of("/usr/lib/postgresql");
        if (!Files.isDirectory(versions)) {
            return Optional.empty();
        }
        try (Stream<Path> found = Files.list(versions)) {
            return found.map(version -> version.resolve("bin"))
                    .filter(bin ->
                            Files.isExecutable(bin.resolve("initdb")) && Files.isExecutable(bin.resolve("postgres")))
                    .max(Path::compareTo);
        }
    }

    /**
     * Makes a cluster and starts a server.
     *
     * @param programs its programs
     * @param folder an empty folder, which becomes its own
     */
    static Postgres start(Path programs, Path folder) throws Exception {
        boolean root = System.getProperty("user.name").equals("root");
        if (root) {
            Files.setOwner(
                    folder,
                    folder.getFileSystem().getUserPrincipalLookupService().lookupPrincipalByName(USER));
        }
        Path cluster = folder.resolve("cluster");
        Path log = folder.resolve("log");
        Process made = run(
                root,
                log,
                programs.resolve("initdb").toString(),
                "--pgdata=" + cluster,
                "--username=" + USER,
                "--auth=trust",
                "--encoding=UTF8",
                "--no-locale",
                "--no-sync");
        if (made.waitFor() != 0) {
            throw new AssertionError("initdb failed: " + Files.readString(log));
        }
        for (int left = PORTS_TRIED; ; left--) {
            int port = ThreadLocalRandom.current().nextInt(FIRST_PORT, LAST_PORT);
            Process server = run(
                    root,
                    log,
                    programs.resolve("postgres").toString(),
                    "-D",
                    cluster.toString(),
                    "-p",
                    String.valueOf(port),
                    "-h",
                    "127.0.0.1",
                    "-k",
                    folder.toString(),
                    "-F");
            Patience.until("PostgreSQL is ready", () -> !server.isAlive() || isReady(cluster, server));
            if (server.isAlive()) {
                return new Postgres(server, port, log);
            }
            if (left == 0 || !read(log).contains("Address already in use")) {
                throw new AssertionError("PostgreSQL ended: " + read(log));
            }
        }
    }

    /** It says so in the file of its lock: the first line is its process, the eighth its state. */
    private static boolean isReady(Path cluster, Process server) {
        List<String> lines;
        try {
            lines = Files.readAllLines(cluster.resolve("postmaster.pid"));
        } catch (IOException notYet) {
            return false;
        }
        return lines.size() >= 8
                && lines.get(0).equals(String.valueOf(server.pid()))
                && lines.get(7).trim().equals("ready");
    }

    private static String read(Path log) {
        try {
            return Files.readString(log);
        } catch (IOException e) {
            return e.toString();
        }
    }

    private static Process run(boolean root, Path log, String... command) throws IOException {
        List<String> words = new ArrayList<>();
        if (root) {
            // Replaces itself by the program: the process is the server itself.
            words.addAll(List.of("setpriv", "--reuid=" + USER, "--regid=" + USER, "--clear-groups", "--"));
        }
        words.addAll(List.of(command));
        return new ProcessBuilder(words)
                .directory(log.getParent().toFile())
                .redirectErrorStream(true)
                .redirectOutput(ProcessBuilder.Redirect.appendTo(log.toFile()))
                .start();
    }

    InetSocketAddress address() {
        return new InetSocketAddress("127.0.0.1", port);
    }

    /** SIGINT, on which it ends whatever its clients do. */
    @Override
    public void close() throws IOException {
        new ProcessBuilder("kill", "-INT", String.valueOf(process.pid()))
                .inheritIO()
                .start();
        Patience.await("the end of PostgreSQL", process.onExit());
    }
}
