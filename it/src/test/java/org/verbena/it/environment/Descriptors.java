package org.verbena.it.environment;

import java.io.File;
import java.io.FileInputStream;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Stream;
import org.verbena.api.MessageHandler;
import org.verbena.api.RdmaClient;
import org.verbena.api.RdmaEventLoopGroup;
import org.verbena.api.RdmaServer;
import org.verbena.transport.ConnectionException;

/** The program that is run: connects, listens and accepts when the process has no descriptor left, and when it has. */
public final class Descriptors {
    private static final MessageHandler ECHO = MessageHandler.ofBytes((exchange, message) -> exchange.reply(message));

    private Descriptors() {}

    /** How many clients without a request have to leave, one for the next. */
    private static final int LEAVING = 2;

    /** Prints what was thrown for each provider; ends with 1 if nothing was, or something else. */
    public static void main(String[] providers) {
        try {
            loadAll();
            for (String provider : providers) {
                try (RdmaEventLoopGroup group = new RdmaEventLoopGroup(provider, 1);
                        RdmaServer server = RdmaServer.builder().group(group).bind("127.0.0.1", 0, ECHO)) {
                    refuse(provider, group, server.port());
                    connect(group, server.port()).close();
                    System.out.println(provider + " connects again");
                    crowd(provider, server.port());
                    connect(group, server.port()).close();
                    System.out.println(provider + " accepts again");
                }
            }
        } catch (Throwable thrown) {
            thrown.printStackTrace();
            System.exit(1);
        }
        System.exit(0);
    }

    /** What lies in folders, and not in a jar that is open, cannot be loaded without a descriptor. */
    private static void loadAll() throws IOException, ClassNotFoundException {
        for (String entry : System.getProperty("java.class.path").split(File.pathSeparator)) {
            Path folder = Path.of(entry);
            if (!Files.isDirectory(folder)) {
                continue;
            }
            try (Stream<Path> files = Files.walk(folder.resolve("org"))) {
                for (Path file :
                        files.filter(each -> each.toString().endsWith(".class")).toList()) {
                    String name = folder.relativize(file).toString().replace('/', '.');
                    if (!name.endsWith("package-info.class")) {
                        load(name.substring(0, name.length() - ".class".length()));
                    }
                }
            }
        }
    }

    private static void load(String name) throws ClassNotFoundException {
        try {
            Class<?> unused = Class.forName(name, false, Descriptors.class.getClassLoader());
        } catch (NoClassDefFoundError test) {
            System.out.println(name + " is a test of what is not here");
        }
    }

    /**
     * Clients that say nothing come while there is no descriptor: each next one makes the one before it leave. Where
     * there is none to leave, the server waits.
     */
    private static void crowd(String provider, int port) throws IOException {
        SocketAddress server = addressOf(provider, port);
        awaitClosed();
        List<SocketChannel> silent = new ArrayList<>();
        for (int i = 0; i <= LEAVING + 1; i++) {
            silent.add(
                    server instanceof UnixDomainSocketAddress
                            ? SocketChannel.open(StandardProtocolFamily.UNIX)
                            : SocketChannel.open());
        }
        int before = descriptors();
        silent.getFirst().connect(server);
        while (descriptors() == before) {
            LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(1)); // until it is accepted
        }
        Deque<FileInputStream> all = new ArrayDeque<>();
        try {
            takeAll(all);
            for (int i = 1; i <= LEAVING; i++) {
                silent.get(i).connect(server);
                awaitEnd(silent.get(i - 1));
            }
            System.out.println(provider + " has clients leave that say nothing");
            int most = all.size();
            silent.get(LEAVING).close();
            while (all.size() < most + 2) { // both ends
                LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(1));
                takeAll(all);
            }
            silent.getLast().connect(server);
        } finally {
            for (FileInputStream each : all) {
                each.close();
            }
        }
        for (SocketChannel each : silent) {
            each.close();
        }
    }

    private static SocketAddress addressOf(String provider, int port) throws IOException {
        if (!provider.equals("shm")) {
            return new InetSocketAddress("127.0.0.1", port);
        }
        try (Stream<Path> names = Files.list(Path.of(System.getProperty("org.verbena.shm.directory")))) {
            return UnixDomainSocketAddress.of(
                    names.filter(name -> name.getFileName().toString().startsWith(port + "-"))
                            .findFirst()
                            .orElseThrow());
        }
    }

    private static void awaitEnd(SocketChannel silent) {
        ByteBuffer some = ByteBuffer.allocate(100);
        try {
            while (silent.read(some) >= 0) {
                some.clear();
            }
        } catch (IOException cut) {
            System.out.println("cut off: " + cut);
        }
    }

    private static int descriptors() {
        return Objects.requireNonNull(new File("/proc/self/fd").list()).length;
    }

    private static void refuse(String provider, RdmaEventLoopGroup group, int port) throws IOException {
        // What can be loaded only with descriptors.
        connect(group, port).close();
        RdmaServer.builder().group(group).bind("127.0.0.1", 0, ECHO).close();
        awaitClosed();
        Deque<FileInputStream> all = new ArrayDeque<>();
        try {
            takeAll(all);
            System.out.println(provider + " does not connect: " + whatIsThrown(() -> connect(group, port)));
            System.out.println(provider + " does not listen: "
                    + whatIsThrown(() -> RdmaServer.builder().group(group).bind("127.0.0.1", 0, ECHO)));
        } finally {
            for (FileInputStream each : all) {
                each.close();
            }
        }
    }

    /** What was closed has given its descriptors back: their number has not changed for a while. */
    private static void awaitClosed() {
        int same = 0;
        for (int before = -1; same < 5; ) {
            int now = descriptors();
            same = now == before ? same + 1 : 0;
            before = now;
            LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(50));
        }
    }

    private static void takeAll(Deque<FileInputStream> all) {
        try {
            while (true) {
                all.add(new FileInputStream("/dev/null"));
            }
        } catch (IOException none) {
            return; // there is none
        }
    }

    private static String whatIsThrown(Runnable call) {
        try {
            call.run();
        } catch (ConnectionException expected) {
            return expected.getClass().getSimpleName() + ": " + expected.getMessage();
        }
        throw new IllegalStateException("nothing was thrown");
    }

    private static RdmaClient connect(RdmaEventLoopGroup group, int port) {
        return RdmaClient.builder().group(group).connect("127.0.0.1", port);
    }
}
