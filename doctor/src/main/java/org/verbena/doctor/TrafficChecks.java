package org.verbena.doctor;

import io.netty.buffer.ByteBuf;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.UnknownHostException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Consumer;
import org.verbena.api.MessageHandler;
import org.verbena.api.RdmaClient;
import org.verbena.api.RdmaServer;
import org.verbena.api.ServerMemory;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.MemoryDomain.Access;
import org.verbena.transport.RdmaException;
import org.verbena.transport.RemoteMemory;
import org.verbena.transport.provider.ProviderChoice;
import org.verbena.transport.system.UserDirectory;
import org.verbena.verbs.NativeRdmaException;

/** Checks by traffic: both ends in this process on each device, then a peer. */
final class TrafficChecks {
    static final String ROUTE = "route";
    static final String CONNECTION = "connection";

    private static final Duration PATIENCE = Duration.ofSeconds(5);
    private static final int[] SIZES = {64, 1 << 10, 4 << 10, 16 << 10, 128 << 10, 1 << 20};
    private static final int ROUNDS = 10;
    private static final int REGION_BYTES = 4096;
    private static final double NANOS_PER_MICRO = 1e3;

    private TrafficChecks() {}

    /** The prefix of the names of checks of a provider's traffic within this machine. */
    static String loopbackOn(String provider) {
        return "loopback on " + provider + ", ";
    }

    /** Connects both ends in this process, sends a message that is answered, and reads the server's memory. */
    static Finding loopback(String provider, String host) {
        String name = loopbackOn(provider) + host;
        if (ProviderChoice.installed().stream()
                .noneMatch(installed -> installed.name().equals(provider))) {
            return Finding.skipped(name, "org.verbena:verbena-transport-" + provider + " is not on the class path");
        }
        byte[] expected = pattern(REGION_BYTES);
        try (ServerMemory memory = ServerMemory.allocate(REGION_BYTES, Access.REMOTE_READ)) {
            MemorySegment.copy(expected, 0, memory.segment(), ValueLayout.JAVA_BYTE, 0, REGION_BYTES);
            MessageHandler tellsTheToken =
                    (exchange, message) -> exchange.reply(exchange.token(memory).encode());
            try (RdmaServer server = RdmaServer.builder().provider(provider).bind(host, 0, tellsTheToken);
                    RdmaClient client = RdmaClient.builder()
                            .provider(provider)
                            .connectTimeout(PATIENCE)
                            .requestTimeout(PATIENCE)
                            .reconnect(false)
                            .connect(host, server.port())) {
                RemoteMemory token = RemoteMemory.decode(await(client, new byte[] {1}));
                return readBack(name, client, token, expected, PATIENCE);
            }
        } catch (RdmaException | NativeRdmaException | IllegalStateException refused) {
            return Finding.failure(name, refused);
        } catch (ExecutionException failed) {
            return Finding.failure(name, cause(failed));
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
            return Finding.skipped(name, "interrupted");
        }
    }

    /**
     * The same through shared memory, with the directory in which its ends find each other: it may differ between a
     * service and a login.
     */
    static Finding sharedMemory(String host) {
        Finding traffic = loopback(ProviderVerdict.SHM, host);
        return traffic.verdict() == Verdict.OK
                ? Finding.ok(traffic.check(), traffic.evidence() + "; servers and clients meet in " + meetingPlace())
                : traffic;
    }

    /** The same on the software provider, with what carries its bytes. */
    static Finding software(String host) {
        Finding traffic = loopback(ProviderVerdict.SOFT, host);
        return traffic.verdict() == Verdict.OK
                ? Finding.ok(
                        traffic.check(),
                        traffic.evidence() + "; "
                                + ProviderChoice.find(ProviderVerdict.SOFT).description())
                : traffic;
    }

    /** The directory of servers' sockets. */
    static Path meetingPlace() {
        String set = System.getProperty("org.verbena.shm.directory", "");
        return set.isEmpty() ? UserDirectory.of("verbena-shm") : Path.of(set);
    }

    /** Reads the server's memory, which must contain these bytes. */
    static Finding readBack(String name, RdmaClient client, RemoteMemory token, byte[] expected, Duration patience)
            throws InterruptedException, ExecutionException {
        ByteBuf read = client.channel().alloc().buffer(expected.length, expected.length);
        try {
            client.channel().read(token, 0, read).get(patience.toMillis(), TimeUnit.MILLISECONDS);
            byte[] got = new byte[expected.length];
            read.readBytes(got);
            return Arrays.equals(got, expected)
                    ? Finding.ok(name, "a send, its reply and a read of " + expected.length + " bytes")
                    : Finding.failure(name, "the read returned other bytes than the memory has", "suspect the device");
        } catch (TimeoutException late) {
            return Finding.failure(
                    name,
                    "a send was answered, and a read was not within " + patience.toMillis() + " ms",
                    "suspect the device, or a machine that is very busy: try again");
        } finally {
            read.release();
        }
    }

    /** Checks a name's addresses, the route and its device, a connection, and messages if the peer echoes. */
    static void peer(Peer peer, Consumer<Finding> found) {
        InetSocketAddress remote;
        try {
            InetAddress[] addresses = InetAddress.getAllByName(peer.host());
            List<String> texts =
                    Arrays.stream(addresses).map(InetAddress::getHostAddress).toList();
            found.accept(Finding.ok("name " + peer.host(), String.join(", ", texts)));
            remote = new InetSocketAddress(addresses[0], peer.port());
        } catch (UnknownHostException unknown) {
            found.accept(Finding.failure(
                    "name " + peer.host(), "no address is known", "check the spelling, DNS and /etc/hosts"));
            return;
        }
        if (!route(peer.provider(), remote, found) || peer.port() == 0) {
            return;
        }
        connect(peer, remote, found);
    }

    private static boolean route(String provider, InetSocketAddress remote, Consumer<Finding> found) {
        InetAddress source = Routes.source(remote);
        if (source == null) {
            found.accept(Finding.failure(
                    ROUTE,
                    "no route to " + remote.getAddress().getHostAddress(),
                    "ip route get " + remote.getAddress().getHostAddress()));
            return false;
        }
        String from = "from " + source.getHostAddress();
        if (provider.equals(ProviderVerdict.SOFT) || provider.equals(ProviderVerdict.SHM)) {
            found.accept(Finding.ok(ROUTE, from + "; " + provider + " needs no device"));
            return true;
        }
        String device = Routes.device(source);
        found.accept(
                device != null
                        ? Finding.ok(ROUTE, from + ", device " + device)
                        : Finding.warning(
                                ROUTE,
                                from + ", where no RDMA device is: the software provider will be used",
                                "if there is a device on another network, name the peer by its address there, or add a"
                                        + " route"));
        return true;
    }

    private static void connect(Peer peer, InetSocketAddress remote, Consumer<Finding> found) {
        ProviderChoice choice;
        try {
            choice = ProviderChoice.choose(peer.provider(), remote);
        } catch (RdmaException none) {
            found.accept(Finding.failure("provider", none));
            return;
        }
        String provider = choice.provider().name();
        found.accept(Finding.ok("provider", provider + ": " + choice.reason()));
        long begin = System.nanoTime();
        try (RdmaClient client = RdmaClient.builder()
                .provider(provider)
                .connectTimeout(PATIENCE)
                .requestTimeout(PATIENCE)
                .reconnect(false)
                .connect(remote.getAddress().getHostAddress(), remote.getPort())) {
            found.accept(Finding.ok(
                    CONNECTION,
                    "established with " + client.channel().remoteAddress() + " in "
                            + micros(System.nanoTime() - begin)));
            if (peer.echoes()) {
                echo(client, found);
            }
        } catch (ConnectionException.TimedOut | ConnectionException.Unreachable silent) {
            found.accept(Finding.failure(
                    CONNECTION, String.valueOf(silent.getMessage()), whatMayBeInTheWay(provider, remote)));
        } catch (RdmaException refused) {
            found.accept(Finding.failure(CONNECTION, refused));
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
            found.accept(Finding.skipped(CONNECTION, "interrupted"));
        }
    }

    /** What to check if no answer comes. */
    static String whatMayBeInTheWay(String provider, InetSocketAddress remote) {
        if (provider.equals(ProviderVerdict.SHM)) {
            return "the server has its socket, but takes no connections: see that its process is not stopped (ps -o"
                    + " stat), and that no handler blocks its event loops (jcmd PID Thread.print)";
        }
        String tcp = "TCP port " + remote.getPort();
        return "see that " + remote.getAddress().getHostAddress()
                + " is up (ping), and that no firewall there or on the"
                + " way drops "
                + (provider.equals("verbs")
                        ? "UDP port 4791 (RoCE) or " + tcp + " (iWARP); that its device is up, rdma link says there"
                        : tcp);
    }

    private static void echo(RdmaClient client, Consumer<Finding> found) throws InterruptedException {
        List<String> passed = new ArrayList<>();
        for (int size : SIZES) {
            byte[] sent = pattern(size);
            long[] nanos = new long[ROUNDS];
            String name = "messages of " + size + " bytes";
            try {
                for (int i = 0; i < ROUNDS; i++) {
                    long begin = System.nanoTime();
                    byte[] echoed = await(client, sent);
                    nanos[i] = System.nanoTime() - begin;
                    if (!Arrays.equals(echoed, sent)) {
                        found.accept(Finding.failure(
                                name, "the reply is another than the request", "run verbena echo-server there"));
                        return;
                    }
                }
            } catch (ExecutionException failed) {
                Throwable cause = cause(failed);
                found.accept(Finding.failure(
                        name,
                        String.valueOf(cause.getMessage()),
                        passed.isEmpty()
                                ? "see that the peer is an echo-server"
                                : "smaller messages passed: compare the MTU of both interfaces and of the switch"
                                        + " (ip link), as packets over the smaller one are lost"));
                return;
            }
            Arrays.sort(nanos);
            passed.add(size + " B in " + micros(nanos[ROUNDS / 2]));
        }
        found.accept(Finding.ok("messages", "median of " + ROUNDS + " round trips: " + String.join(", ", passed)));
    }

    private static byte[] await(RdmaClient client, byte[] message) throws ExecutionException, InterruptedException {
        return client.request(message).get();
    }

    private static Throwable cause(Throwable failed) {
        Throwable cause = failed;
        while ((cause instanceof ExecutionException || cause instanceof CompletionException)
                && cause.getCause() != null) {
            cause = cause.getCause();
        }
        return cause;
    }

    private static byte[] pattern(int length) {
        byte[] bytes = new byte[length];
        for (int i = 0; i < length; i++) {
            bytes[i] = (byte) (i * 31 + (i >> 8));
        }
        return bytes;
    }

    private static String micros(long nanos) {
        return String.format(Locale.ROOT, "%.1f us", nanos / NANOS_PER_MICRO);
    }
}
