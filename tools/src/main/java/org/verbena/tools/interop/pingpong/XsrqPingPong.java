package org.verbena.tools.interop.pingpong;

import java.io.IOException;
import java.io.PrintWriter;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import org.verbena.samples.command.ByteSize;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/**
 * A Java version of rdma-core's {@code ibv_xsrq_pingpong}: one server and several clients over extended reliable
 * connections, whose messages land in a shared receive queue that the sender names. {@link XsrqSession} has what
 * happens on the device.
 *
 * <p>Source: ibv_xsrq_pingpong(1)
 */
@Command(
        name = "xsrq",
        description =
                "Sends messages back and forth over extended reliable connections (XRC), like ibv_xsrq_pingpong(1).",
        footer = {
            "%nFew adapters have XRC: NVIDIA's InfiniBand and RoCE adapters do, rxe and siw do not. It is tested against C's program on a simulated"
                    + " device, but not yet on an adapter.",
            "%nThe clients of one server run on one machine and share the file /tmp/xrc_domain.",
            PingPong.GID_NOTE
        })
final class XsrqPingPong implements Callable<Integer> {
    /** C's server accepts any number; here each client costs two queue pairs. */
    private static final int MAX_CLIENTS = 1024;

    /** As in C. */
    private static final int HOP_LIMIT = 5;

    @Parameters(
            index = "0",
            arity = "0..1",
            paramLabel = "HOST",
            description = "The server; without it this side is the server.")
    private @Nullable String host;

    @Option(
            names = {"-s", "--size"},
            defaultValue = "4096",
            converter = ByteSize.class,
            description = "Message size in bytes (${DEFAULT-VALUE}).")
    private int sizeBytes;

    @Option(
            names = {"-c", "--clients"},
            paramLabel = "COUNT",
            defaultValue = "1",
            description = "Server: how many clients to wait for and serve (${DEFAULT-VALUE}).")
    private int clients;

    @Option(
            names = {"-n", "--num_tests"},
            paramLabel = "COUNT",
            defaultValue = "5",
            description = "Messages each way with each client, the same on all sides (${DEFAULT-VALUE}).")
    private int count;

    @Mixin
    @SuppressWarnings("NullAway.Init") // picocli sets it
    private PingPongOptions options;

    @Mixin
    @SuppressWarnings("NullAway.Init") // picocli sets it
    private MtuOption mtu;

    @Mixin
    @SuppressWarnings("NullAway.Init") // picocli sets it
    private PingPong.OnDemandOption onDemand;

    @CommandLine.Spec
    @SuppressWarnings("NullAway.Init") // picocli sets it
    private CommandLine.Model.CommandSpec spec;

    @Override
    public Integer call() throws IOException {
        options.check(spec, host);
        PingPongOptions.requireRange(spec, "clients", clients, 1, MAX_CLIENTS);
        PingPongOptions.requireRange(spec, "num_tests", count, 1, Integer.MAX_VALUE);
        PrintWriter out = spec.commandLine().getOut();
        try (XsrqSession session = new XsrqSession(
                options.open(),
                options.path(mtu.mtu, HOP_LIMIT),
                sizeBytes,
                host == null ? clients : 1,
                count,
                options.events,
                PingPongFeatures.onDemand(onDemand.wanted),
                out,
                spec.commandLine().getErr())) {
            session.run(host, options.tcpPort);
        } finally {
            out.flush();
        }
        return CommandLine.ExitCode.OK;
    }
}
