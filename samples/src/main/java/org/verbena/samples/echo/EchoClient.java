package org.verbena.samples.echo;

import io.netty.buffer.ByteBuf;
import io.netty.util.concurrent.Future;
import io.netty.util.concurrent.Promise;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import org.verbena.api.RdmaClient;
import org.verbena.api.ladder.LadderResult;
import org.verbena.samples.command.CommandFailure;
import org.verbena.samples.command.Conditions;
import org.verbena.samples.command.ConnectionOptions;
import org.verbena.samples.command.LadderLines;
import org.verbena.samples.command.LoopOptions;
import org.verbena.samples.command.Measurement;
import org.verbena.samples.command.Pipelined;
import org.verbena.samples.command.Report;
import org.verbena.samples.command.TrafficOptions;
import org.verbena.samples.command.Verbosity;
import org.verbena.samples.command.WarmUp;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** Sends requests, a window of them at a time, and reports how long the replies took. Every reply is checked. */
@Command(
        name = "echo-client",
        description = "Sends messages to an echo-server and prints how long they took.",
        footer =
                "%nWith --provider ladder, -v also prints the ladder to standard error: which rungs were tried, how long"
                        + " each took, why it is not used, and which is.")
public final class EchoClient implements Callable<Integer> {
    @Mixin
    @SuppressWarnings("NullAway.Init") // picocli sets it
    private ConnectionOptions options;

    @Mixin
    @SuppressWarnings("NullAway.Init") // picocli sets it
    private LoopOptions loop;

    @Mixin
    @SuppressWarnings("NullAway.Init") // picocli sets it
    private TrafficOptions traffic;

    @Option(
            names = "--warm-up",
            paramLabel = "COUNT",
            description =
                    "Messages sent first and not counted. By default they are sent until their times no longer fall, for 3"
                            + " seconds at most: until code is compiled and caches are warm.")
    private @Nullable Integer warmUp;

    @Mixin
    @SuppressWarnings("NullAway.Init") // picocli sets it
    private Report report;

    @CommandLine.Spec
    @SuppressWarnings("NullAway.Init") // picocli sets it
    private CommandLine.Model.CommandSpec spec;

    @Override
    public Integer call() throws InterruptedException {
        traffic.check();
        if (warmUp != null && warmUp < 0) {
            throw new CommandLine.ParameterException(spec.commandLine(), "--warm-up must be 0 or more, not " + warmUp);
        }
        try (RdmaClient client = RdmaClient.builder()
                .provider(options.provider)
                .loopOptions(loop.completionLoop())
                .connect(options.host, options.remotePort())) {
            LadderResult ladder = client.ladder();
            if (ladder != null && Verbosity.isRaised()) {
                LadderLines.of(ladder).forEach(spec.commandLine().getErr()::println);
            }
            Conditions conditions = new Conditions();
            conditions.add(warmUp(client));
            Measurement echo = run(client, traffic.count, traffic.window, traffic.sizeBytes, Long.MAX_VALUE);
            report.row("echo " + traffic.sizeBytes + " B x" + traffic.window, echo, traffic.sizeBytes);
            report.line(
                    "provider " + client.provider() + ", " + client.channel().localAddress() + " to "
                            + client.channel().remoteAddress());
            if (ladder != null) {
                report.line("ladder: " + ladder.rung() + ", " + ladder.reason());
            }
            report.line(conditions.line());
            report.member("provider", client.provider())
                    .member("local", client.channel().localAddress())
                    .member("remote", client.channel().remoteAddress())
                    .member("conditions", conditions.members())
                    .end();
        }
        return CommandLine.ExitCode.OK;
    }

    private WarmUp.Outcome warmUp(RdmaClient client) throws InterruptedException {
        if (warmUp == null) {
            return new WarmUp()
                    .run(
                            nanos -> run(client, Long.MAX_VALUE, traffic.window, traffic.sizeBytes, nanos),
                            WarmUp.MAX_NANOS);
        }
        long beganNanos = System.nanoTime();
        if (warmUp > 0) {
            run(client, warmUp, traffic.window, traffic.sizeBytes, Long.MAX_VALUE);
        }
        return new WarmUp.Outcome(System.nanoTime() - beganNanos, warmUp, true);
    }

    /** Echoes until the count is reached or the time is over. */
    public static Measurement run(RdmaClient client, long count, int window, int sizeBytes, long limitNanos)
            throws InterruptedException {
        return Pipelined.run(client.channel().eventLoop(), count, window, limitNanos, () -> echo(client, sizeBytes))
                .sync()
                .getNow();
    }

    private static Future<?> echo(RdmaClient client, int sizeBytes) {
        // The first and the last byte reveal a message that was cut or mixed up.
        byte mark = (byte) sizeBytes;
        ByteBuf message = client.channel().alloc().buffer(Math.max(1, sizeBytes));
        message.writerIndex(sizeBytes);
        if (sizeBytes > 0) {
            message.setByte(0, mark);
            message.setByte(sizeBytes - 1, mark);
        }
        Promise<Boolean> checked = client.channel().eventLoop().newPromise();
        client.request(message).addListener((Future<ByteBuf> done) -> {
            if (!done.isSuccess()) {
                checked.tryFailure(done.cause());
                return;
            }
            ByteBuf reply = done.getNow();
            boolean same = isEcho(reply, sizeBytes, mark);
            reply.release();
            if (same) {
                checked.trySuccess(true);
            } else {
                checked.tryFailure(new CommandFailure("a reply differs from its request"));
            }
        });
        return checked;
    }

    private static boolean isEcho(ByteBuf reply, int sizeBytes, byte mark) {
        return reply.readableBytes() == sizeBytes
                && (sizeBytes == 0 || reply.getByte(reply.readerIndex()) == mark)
                && (sizeBytes == 0 || reply.getByte(reply.writerIndex() - 1) == mark);
    }
}
