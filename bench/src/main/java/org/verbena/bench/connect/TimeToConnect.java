package org.verbena.bench.connect;

import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import org.verbena.api.RdmaClient;
import org.verbena.api.RdmaEventLoopGroup;
import org.verbena.api.RdmaServer;
import org.verbena.api.ladder.LadderOptions;
import org.verbena.transport.CompletionLoopOptions;
import org.verbena.transport.provider.ProviderChoice;
import org.verbena.transport.provider.ProviderSet;
import org.verbena.transport.spi.RdmaProvider;

/**
 * How long {@link RdmaClient} takes to connect by a ladder whose first rung is right, dead (its connections are refused
 * at once) or silent (its peer never says a word): the medians of each round, the three kinds in turns. All on soft, in
 * one process; nothing is remembered between two connects, so that each of them meets the bad rung.
 */
public final class TimeToConnect {
    private static final String RIGHT = "right";
    private static final String DEAD = "dead";
    private static final String SILENT = "silent";
    private static final double NANOS_PER_MILLI = 1e6;

    /** What the ladder may cost. */
    private static final double MAX_MORE_MILLIS = 300;

    private int rounds = 5;
    private int connects = 40;

    private TimeToConnect() {}

    /**
     * The command line.
     *
     * @param arguments see bench/README.md
     * @throws Exception what went wrong
     */
    public static void main(String... arguments) throws Exception {
        TimeToConnect bench = new TimeToConnect();
        for (int i = 0; i < arguments.length; i++) {
            switch (arguments[i]) {
                case "--rounds" -> bench.rounds = Integer.parseInt(arguments[++i]);
                case "--connects" -> bench.connects = Integer.parseInt(arguments[++i]);
                default -> {
                    System.err.println("connect: " + arguments[i] + " is not known; see bench/connect --help");
                    System.exit(2);
                }
            }
        }
        System.exit(bench.run() ? 0 : 1);
    }

    private boolean run() throws Exception {
        RdmaProvider soft = ProviderChoice.find("soft");
        InetAddress loopback = InetAddress.getLoopbackAddress();
        boolean fast = true;
        try (ServerSocket silence = new ServerSocket(0, 128, loopback);
                RdmaServer server = RdmaServer.builder()
                        .provider("soft")
                        .threadsPerProvider(1)
                        .bind("127.0.0.1", 0, (exchange, message) -> exchange.reply(message.retain()))) {
            Thread.ofVirtual().start(() -> keep(silence));
            RdmaEventLoopGroup group = new RdmaEventLoopGroup(
                    new ProviderSet(
                            List.of(
                                    new ProviderChoice(new Detour(soft, DEAD, unused(loopback)), "a bad rung"),
                                    new ProviderChoice(
                                            new Detour(
                                                    soft,
                                                    SILENT,
                                                    new InetSocketAddress(loopback, silence.getLocalPort())),
                                            "a bad rung"),
                                    new ProviderChoice(soft, "the rung that is right")),
                            Set.of()),
                    1,
                    null,
                    CompletionLoopOptions.DEFAULTS);
            List<String> kinds = List.of(RIGHT, DEAD, SILENT);
            kinds.forEach(kind -> medianMillis(group, server.port(), kind, Math.min(connects, 10))); // warms up
            System.out.printf(
                    Locale.ROOT,
                    "%5s %10s %10s %10s %12s %14s%n",
                    "round",
                    "right, ms",
                    "dead, ms",
                    "silent, ms",
                    "dead - right",
                    "silent - right");
            for (int round = 1; round <= rounds; round++) {
                double[] medians = kinds.stream()
                        .mapToDouble(kind -> medianMillis(group, server.port(), kind, connects))
                        .toArray();
                double dead = medians[1] - medians[0];
                double silent = medians[2] - medians[0];
                System.out.printf(
                        Locale.ROOT,
                        "%5d %10.2f %10.2f %10.2f %12.2f %14.2f%n",
                        round,
                        medians[0],
                        medians[1],
                        medians[2],
                        dead,
                        silent);
                fast &= dead < MAX_MORE_MILLIS && silent < MAX_MORE_MILLIS;
            }
            group.close();
        }
        System.out.printf(
                Locale.ROOT,
                "%s: under %.0f ms more in %s%n",
                fast ? "passed" : "failed",
                MAX_MORE_MILLIS,
                fast ? "all rounds" : "some rounds only");
        return fast;
    }

    /** A port where nobody listens. */
    private static InetSocketAddress unused(InetAddress address) throws Exception {
        try (ServerSocket free = new ServerSocket(0, 1, address)) {
            return new InetSocketAddress(address, free.getLocalPort());
        }
    }

    /** Takes connections, and says nothing until their clients have gone. */
    private static void keep(ServerSocket silence) {
        List<Socket> open = new ArrayList<>();
        try {
            while (true) {
                Socket socket = silence.accept();
                open.add(socket);
                open.removeIf(TimeToConnect::hasGone);
            }
        } catch (java.io.IOException closed) {
            open.forEach(TimeToConnect::close);
        }
    }

    private static boolean hasGone(Socket socket) {
        try {
            socket.setSoTimeout(1);
            byte[] request = new byte[1024];
            while (socket.getInputStream().read(request) >= 0) {
                // what the client has asked for
            }
        } catch (java.net.SocketTimeoutException stillThere) {
            return false;
        } catch (java.io.IOException reset) {
            // gone as well
        }
        close(socket);
        return true;
    }

    private static void close(Socket socket) {
        try {
            socket.close();
        } catch (java.io.IOException alreadyGone) {
            // nothing is left to do
        }
    }

    private static double medianMillis(RdmaEventLoopGroup group, int port, String kind, int count) {
        LadderOptions options = LadderOptions.DEFAULTS.withForgetAfter(Duration.ZERO);
        options = kind.equals(RIGHT) ? options.withRungs("soft") : options.withRungs(kind, "soft");
        long[] nanos = new long[count];
        for (int i = 0; i < count; i++) {
            long began = System.nanoTime();
            try (RdmaClient client =
                    RdmaClient.builder().group(group).ladder(options).connect("127.0.0.1", port)) {
                nanos[i] = System.nanoTime() - began;
                if (!client.provider().equals("soft")) {
                    throw new IllegalStateException("connected with " + client.provider());
                }
            }
        }
        Arrays.sort(nanos);
        return nanos[count / 2] / NANOS_PER_MILLI;
    }
}
