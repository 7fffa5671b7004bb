package org.verbena.tools.interop.pingpong;

import java.io.IOException;
import java.io.PrintWriter;
import java.io.Writer;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import org.verbena.samples.command.ByteSize;
import org.verbena.samples.command.Json;
import org.verbena.tools.interop.pingpong.PingPong.Kind;
import org.verbena.verbs.device.Mtu;
import picocli.CommandLine;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** The common part of those commands of {@link PingPong} that run a {@link PingPongSession}. */
abstract class PingPongCommand implements Callable<Integer> {
    /** How long the client waits for the server over TCP; the server waits without a limit, as C's does. */
    private static final int EXCHANGE_MILLIS = 60_000;

    /** Both ends are in one subnet, as in C. */
    private static final int HOP_LIMIT = 1;

    /** C's help says 2048 for datagrams, but its program uses 1024, which fits into the MTU of an Ethernet port. */
    private static final int DATAGRAM_BYTES = 1024;

    private static final int MESSAGE_BYTES = 4096;

    @Parameters(
            index = "0",
            arity = "0..1",
            paramLabel = "HOST",
            description = "The server; without it this side is the server.")
    private @Nullable String host;

    @Option(
            names = {"-s", "--size"},
            converter = ByteSize.class,
            description = "Message size in bytes (" + MESSAGE_BYTES + "; ud: " + DATAGRAM_BYTES
                    + ", and at most the port's MTU).")
    private @Nullable Integer sizeBytes;

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
            description = "Verify received data.")
    private boolean validating;

    @Option(names = "--json", description = "Print the figures as JSON.")
    private boolean json;

    @Mixin
    @SuppressWarnings("NullAway.Init") // picocli sets it
    private PingPongOptions options;

    @CommandLine.Spec
    @SuppressWarnings("NullAway.Init") // picocli sets it
    private CommandLine.Model.CommandSpec spec;

    /** What to do, once the options that only this kind has are checked. */
    abstract PingPongPlan plan(CommandLine.Model.CommandSpec command);

    /** The plan for one queue pair. */
    final PingPongPlan plan(Kind kind, Mtu mtu, PingPongFeatures features) {
        int size = sizeBytes != null ? sizeBytes : kind == Kind.UD ? DATAGRAM_BYTES : MESSAGE_BYTES;
        return new PingPongPlan(
                kind, options.path(mtu, HOP_LIMIT), size, 1, receiveDepth, count, options.events, validating, features);
    }

    @Override
    public final Integer call() throws IOException {
        options.check(spec, host);
        PingPongOptions.requireRange(spec, "rx-depth", receiveDepth, 1, 1 << 20);
        PingPongOptions.requireRange(spec, "iters", count, 1, Integer.MAX_VALUE);
        PingPongPlan plan = plan(spec);
        PrintWriter out = spec.commandLine().getOut();
        try (PingPongSession session = new PingPongSession(
                plan,
                options.open(),
                json ? new PrintWriter(Writer.nullWriter()) : out,
                spec.commandLine().getErr())) {
            ByHandOptions.meet(host, options.tcpPort, host == null ? 0 : EXCHANGE_MILLIS, session::run);
            if (json) {
                out.print(Json.of(session.figures()));
            }
        } finally {
            out.flush();
        }
        return CommandLine.ExitCode.OK;
    }
}
