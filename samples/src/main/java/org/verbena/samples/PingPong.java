package org.verbena.samples;

import java.io.IOException;
import java.io.PrintWriter;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Parameters;

/**
 * The programs {@code ibv_rc_pingpong}, {@code ibv_uc_pingpong}, {@code ibv_ud_pingpong} and {@code ibv_srq_pingpong} of rdma-core once more:
 * messages go to and fro over queue pairs that are connected without a connection manager. Each side talks with C's. {@link PingPongSession}
 * has what happens on the device.
 *
 * <p>Source: ibv_rc_pingpong(1)
 */
@Command(
        name = "pingpong",
        description = "Sends messages to and fro, as ibv_rc_pingpong(1) and its like do; each end talks with C's.",
        subcommands = XsrqPingPong.class,
        footer = "%nOn RoCE both sides need -g: the index of a RoCE v2 GID that `verbena devices` lists.")
final class PingPong implements Callable<Integer> {
    /** What is measured. */
    enum Kind {
        /** Reliable connection. */
        RC,
        /** Unreliable connection. */
        UC,
        /** Unreliable datagrams. */
        UD,
        /** Reliable connections with a shared receive queue. */
        SRQ
    }

    /** How long the client waits for the server over TCP; the server waits as long as it takes, as C's does. */
    private static final int EXCHANGE_MILLIS = 60_000;

    // Optional for picocli, since it is missing where xsrq, which is a command with options of its own, is called.
    @Parameters(
            index = "0",
            arity = "0..1",
            paramLabel = "KIND",
            description = "rc, uc, ud or srq; or the command xsrq.")
    private @Nullable Kind givenKind;

    @Parameters(index = "1", arity = "0..1", paramLabel = "HOST", description = "The server; without it be the server.")
    private @Nullable String host;

    @Option(
            names = {"-s", "--size"},
            converter = ByteSize.class,
            description = "Bytes of a message (4096; ud: 1024, and at most the port's MTU).")
    private @Nullable Integer sizeBytes;

    @Option(
            names = {"-q", "--num-qp"},
            paramLabel = "COUNT",
            defaultValue = "16",
            description = "srq: how many queue pairs (${DEFAULT-VALUE}).")
    private int queuePairs;

    @Option(
            names = {"-r", "--rx-depth"},
            paramLabel = "COUNT",
            defaultValue = "500",
            description = "Receives to keep posted (${DEFAULT-VALUE}).")
    private int receiveDepth;

    @Option(
            names = {"-n", "--iters"},
            paramLabel = "COUNT",
            defaultValue = "1000",
            description = "Exchanges (${DEFAULT-VALUE}).")
    private int count;

    @Option(
            names = {"-c", "--chk"},
            description = "Check what was received.")
    private boolean validating;

    @Mixin
    @SuppressWarnings("NullAway.Init") // picocli sets it
    private PingPongOptions options;

    @CommandLine.Spec
    @SuppressWarnings("NullAway.Init") // picocli sets it
    private CommandLine.Model.CommandSpec spec;

    @Override
    public Integer call() throws IOException {
        Kind kind = givenKind;
        if (kind == null) {
            throw new ParameterException(spec.commandLine(), "Missing required parameter: 'KIND'");
        }
        options.check(spec);
        PingPongOptions.requireRange(spec, "rx-depth", receiveDepth, 1, 1 << 20);
        PingPongOptions.requireRange(spec, "iters", count, 1, Integer.MAX_VALUE);
        PingPongOptions.requireRange(spec, "num-qp", queuePairs, 1, PingPongSession.MAX_QUEUE_PAIRS);
        // C's help says 2048 for datagrams, and its program takes 1024: what fits into the MTU of an Ethernet port.
        int size = sizeBytes != null ? sizeBytes : kind == Kind.UD ? 1024 : 4096;
        PrintWriter out = spec.commandLine().getOut();
        try (PingPongSession session = new PingPongSession(
                kind,
                options.open(),
                options.path(1),
                size,
                kind == Kind.SRQ ? queuePairs : 1,
                receiveDepth,
                count,
                options.events,
                validating,
                out)) {
            ByHandOptions.meet(host, options.tcpPort, host == null ? 0 : EXCHANGE_MILLIS, session::run);
        } finally {
            out.flush();
        }
        return CommandLine.ExitCode.OK;
    }
}
