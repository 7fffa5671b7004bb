package org.verbena.tools.interop.rping;

import java.io.PrintWriter;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import org.verbena.samples.command.ByteSize;
import org.verbena.samples.command.ServerSignals;
import org.verbena.samples.command.Verbosity;
import picocli.CommandLine;
import picocli.CommandLine.ArgGroup;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;

/**
 * A Java version of rdma-core's {@code rping} on the raw bindings; it interoperates with C's over any RDMA device. It
 * is a sample of connecting with {@code org.verbena.cm} and of working with {@code org.verbena.verbs}, both with events
 * and without polling.
 *
 * <p>The client has two buffers, one that the server reads from and one that it writes to; the server has one. An
 * advertisement is 16 bytes in network order: the address of a buffer, its remote key, its length. A ping goes like
 * this:
 *
 * <pre>{@code
 *   client                                                        server
 *   fills its first buffer with "rdma-ping-N: ABC..."
 *   SEND: the first buffer's address, key and length   -------->
 *                                                      <--------  RDMA READ of the whole buffer
 *                                                                 sees the ping
 *                                                      <--------  SEND: go ahead (16 bytes that say nothing)
 *   SEND: the second buffer's address, key and length  -------->
 *                                                      <--------  RDMA WRITE of the text and its zero byte
 *                                                      <--------  SEND: go ahead
 *   compares the buffers (with -V), and starts over
 * }</pre>
 *
 * <p>The client sends first, as iWARP requires. It disconnects after its count; that ends the server too, unless it is
 * persistent. With {@code --provider} the same runs on the Channel API ({@link ChannelRping}), on any provider. {@link
 * RpingConnection} is the common part; {@link RpingClient} and {@link RpingServer} are the two columns.
 *
 * <p>Source: rping(1)
 */
@Command(
        name = "rping",
        description = "Pings with RDMA reads and writes, like rping(1); each end interoperates with C's.",
        footer = "%nBoth ends need the same size: the server reads and writes as much as the client announces.")
public final class Rping implements Callable<Integer> {
    /** Room for "rdma-ping-N: " and a number, as in C. */
    static final int MIN_SIZE_BYTES = 23;

    /** 64 KiB; C's stops one byte before. */
    static final int MAX_SIZE_BYTES = 64 * 1024;

    private static final String DEFAULT_PORT = "7174";

    @ArgGroup(multiplicity = "1")
    @SuppressWarnings("NullAway.Init") // picocli sets it
    private Side side;

    /** One of the two must be given. */
    static final class Side {
        @Option(names = "-s", required = true, description = "Run as the server.")
        boolean server;

        @Option(names = "-c", required = true, description = "Run as the client.")
        boolean client;
    }

    @Option(
            names = "-a",
            paramLabel = "ADDR",
            description =
                    "Client: the server's address. Server: the address to listen on; by default any, with ::0 any IPv6 address.")
    private @Nullable InetAddress address;

    @Option(names = "-I", paramLabel = "ADDR", description = "Client: the local address.")
    private @Nullable InetAddress sourceAddress;

    @Option(names = "-p", paramLabel = "PORT", defaultValue = DEFAULT_PORT, description = "Port (${DEFAULT-VALUE}).")
    private int port;

    @Option(
            names = "-C",
            paramLabel = "COUNT",
            defaultValue = "0",
            description = "Client: how many pings; 0 pings forever.")
    private int count;

    @Option(
            names = "-S",
            paramLabel = "SIZE",
            defaultValue = "64",
            converter = ByteSize.class,
            description = "Ping size in bytes, " + MIN_SIZE_BYTES + " to " + MAX_SIZE_BYTES + " (${DEFAULT-VALUE}).")
    private int sizeBytes;

    @Option(names = "-v", description = "Print the pings.")
    private boolean printing;

    @Option(names = "-V", description = "Client: verify what comes back.")
    private boolean validating;

    @Option(names = "-d", description = "Log to standard error.")
    void debug(boolean wanted) {
        if (wanted) {
            Verbosity.raise();
        }
    }

    @Option(
            names = "--provider",
            paramLabel = "auto|verbs|soft|shm",
            description = "Run on the Channel API with this provider, instead of on the bindings.")
    private @Nullable String provider;

    @Option(
            names = "-q",
            description =
                    "Create the queue pair, and take it from state to state, in this program instead of in librdmacm;"
                            + " not on iWARP, whose queue pairs the kernel connects.")
    private boolean ownQueuePair;

    @Option(names = "-P", description = "Server: keep serving clients, several at a time.")
    private boolean persistent;

    @CommandLine.Spec
    @SuppressWarnings("NullAway.Init") // picocli sets it
    private CommandLine.Model.CommandSpec spec;

    @Override
    public Integer call() throws InterruptedException {
        if (sizeBytes < MIN_SIZE_BYTES || sizeBytes > MAX_SIZE_BYTES) {
            throw usage(
                    "Invalid size " + sizeBytes + " (valid range is " + MIN_SIZE_BYTES + " to " + MAX_SIZE_BYTES + ")");
        }
        if (count < 0) {
            throw usage("Invalid count " + count);
        }
        if (port < (side.client ? 1 : 0) || port > 65535) {
            throw usage("Invalid port " + port);
        }
        PrintWriter out = spec.commandLine().getOut();
        PrintWriter pings = printing ? out : new PrintWriter(PrintWriter.nullWriter());
        if (provider != null && ownQueuePair) {
            throw usage("-q makes the queue pair on the bindings, and --provider uses none: give one of them");
        }
        if (provider != null) {
            return onChannels(new ChannelRping(provider, sizeBytes, out, printing));
        }
        if (side.server) {
            InetSocketAddress local =
                    address == null ? new InetSocketAddress(port) : new InetSocketAddress(address, port);
            try (RpingServer server = new RpingServer(local, sizeBytes, ownQueuePair, pings, printing)) {
                server.listen();
                ServerSignals.endWithZero();
                out.println("rping listens on " + server.localAddress());
                out.flush();
                if (persistent) {
                    server.serveAll();
                } else {
                    server.serveOne();
                }
            }
        } else {
            if (address == null) {
                throw usage("The client needs the server's address: -a ADDR");
            }
            InetSocketAddress source = sourceAddress == null ? null : new InetSocketAddress(sourceAddress, 0);
            InetSocketAddress server = new InetSocketAddress(address, port);
            new RpingClient(source, server, sizeBytes, count, validating, ownQueuePair, pings, printing).run();
        }
        pings.flush();
        return CommandLine.ExitCode.OK;
    }

    private int onChannels(ChannelRping rping) throws InterruptedException {
        if (side.server) {
            ServerSignals.endWithZero();
            rping.serve(
                    address == null ? new InetSocketAddress(port) : new InetSocketAddress(address, port), persistent);
        } else if (address == null) {
            throw usage("The client needs the server's address: -a ADDR");
        } else {
            InetSocketAddress source = sourceAddress == null ? null : new InetSocketAddress(sourceAddress, 0);
            rping.ping(source, new InetSocketAddress(address, port), count, validating);
        }
        return CommandLine.ExitCode.OK;
    }

    private ParameterException usage(String message) {
        return new ParameterException(spec.commandLine(), message);
    }
}
