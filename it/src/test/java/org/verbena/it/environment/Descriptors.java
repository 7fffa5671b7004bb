package org.verbena.it.environment;

import java.io.File;
import java.io.FileInputStream;
import java.io.IOException;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.verbena.api.MessageHandler;
import org.verbena.api.RdmaClient;
import org.verbena.api.RdmaEventLoopGroup;
import org.verbena.api.RdmaServer;
import org.verbena.transport.ConnectionException;

/** The program that is run: connects and listens when the process has no descriptor left, and again when it has. */
public final class Descriptors {
    private static final MessageHandler ECHO = MessageHandler.ofBytes((exchange, message) -> exchange.reply(message));

    private Descriptors() {}

    /** Prints what was thrown for each provider; ends with 1 if nothing was, or something else. */
    public static void main(String[] providers) {
        try {
            for (String provider : providers) {
                try (RdmaEventLoopGroup group = new RdmaEventLoopGroup(provider, 1);
                        RdmaServer server = RdmaServer.builder().group(group).bind("127.0.0.1", 0, ECHO)) {
                    refuse(provider, group, server.port());
                    connect(group, server.port()).close();
                    System.out.println(provider + " connects again");
                }
            }
        } catch (Throwable thrown) {
            thrown.printStackTrace();
            System.exit(1);
        }
        System.exit(0);
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
            int now = Objects.requireNonNull(new File("/proc/self/fd").list()).length;
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
            System.out.println("descriptors: " + all.size());
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
