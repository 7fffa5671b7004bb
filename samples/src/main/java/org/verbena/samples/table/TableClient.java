package org.verbena.samples.table;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import io.netty.util.concurrent.Future;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.Callable;
import java.util.function.Supplier;
import org.verbena.api.RdmaChannel;
import org.verbena.api.RdmaClient;
import org.verbena.samples.command.CommandFailure;
import org.verbena.samples.command.ConnectionOptions;
import org.verbena.samples.command.Measurement;
import org.verbena.samples.command.Pipelined;
import org.verbena.samples.command.Report;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/**
 * Changes and reads rows of a table-server's table and adds to its counter, all without involving the server's program.
 */
@Command(name = "table-client", description = "Reads and changes a table-server's table with one-sided operations.")
public final class TableClient implements Callable<Integer> {
    @Mixin
    @SuppressWarnings("NullAway.Init") // picocli sets it
    private ConnectionOptions options;

    @Option(
            names = "--count",
            paramLabel = "N",
            defaultValue = "10000",
            description = "Repetitions of each operation (${DEFAULT-VALUE}).")
    private int count;

    @Option(
            names = "--window",
            paramLabel = "N",
            defaultValue = "8",
            description = "Operations in flight at once (${DEFAULT-VALUE}).")
    private int window;

    @Mixin
    @SuppressWarnings("NullAway.Init") // picocli sets it
    private Report report;

    @CommandLine.Spec
    @SuppressWarnings("NullAway.Init") // picocli sets it
    private CommandLine.Model.CommandSpec spec;

    @Override
    public Integer call() throws Exception {
        if (count < 1 || window < 1) {
            throw new CommandLine.ParameterException(spec.commandLine(), "--count and --window must be 1 or more");
        }
        try (RdmaClient client =
                RdmaClient.builder().provider(options.provider).connect(options.host, options.remotePort())) {
            RdmaChannel channel = client.channel();
            Table table = table(client);
            report.line("table: " + table.rows() + " rows of " + table.rowBytes() + " bytes");
            checkARow(channel, table);
            Measurement reads = reads(channel, table, count, window, Long.MAX_VALUE);
            report.row("read " + table.rowBytes() + " B x" + window, reads, table.rowBytes());
            Measurement writes = writes(channel, table, count, window, Long.MAX_VALUE);
            report.row("write " + table.rowBytes() + " B x" + window, writes, table.rowBytes());
            if (channel.capabilities().atomics()) {
                report.row("fetch-and-add x" + window, adds(channel, table, count, window, Long.MAX_VALUE), Long.BYTES);
                long counter = channel.fetchAndAdd(table.memory(), Table.COUNTER_OFFSET, 0)
                        .sync()
                        .getNow();
                report.line("counter: " + counter);
                report.member("counter", counter);
            } else {
                report.line("fetch-and-add: " + client.provider() + " has no atomics here");
            }
            report.member("provider", client.provider())
                    .member("rows", table.rows())
                    .member("rowBytes", table.rowBytes())
                    .end();
        }
        return CommandLine.ExitCode.OK;
    }

    /** Asks the server for its table. */
    public static Table table(RdmaClient client) throws InterruptedException {
        ByteBuf answer = client.request(Unpooled.EMPTY_BUFFER).sync().getNow();
        try {
            return Table.decode(ByteBufUtil.getBytes(answer));
        } finally {
            answer.release();
        }
    }

    /** Writes a row, reads it and compares. */
    public static void checkARow(RdmaChannel channel, Table table) throws InterruptedException {
        int row = table.rows() - 1;
        ByteBuf written = channel.alloc().buffer(table.rowBytes());
        ByteBuf read = channel.alloc().buffer(table.rowBytes(), table.rowBytes());
        try {
            written.writeCharSequence("z".repeat(table.rowBytes()), StandardCharsets.US_ASCII);
            channel.flushingWrite(table.memory(), table.offsetOf(row), written).sync();
            channel.read(table.memory(), table.offsetOf(row), read).sync();
            if (!read.equals(written)) {
                throw new CommandFailure("row " + row + " is not what was written to it");
            }
        } finally {
            written.release();
            read.release();
        }
    }

    public static Measurement reads(RdmaChannel channel, Table table, long count, int window, long limitNanos)
            throws InterruptedException {
        int[] row = new int[1];
        return run(channel, count, window, limitNanos, () -> {
            ByteBuf into = channel.alloc().buffer(table.rowBytes(), table.rowBytes());
            Future<Void> read = channel.read(table.memory(), table.offsetOf(row[0]++ % table.rows()), into);
            into.release(); // the operation holds it
            return read;
        });
    }

    public static Measurement writes(RdmaChannel channel, Table table, long count, int window, long limitNanos)
            throws InterruptedException {
        int[] row = new int[1];
        return run(channel, count, window, limitNanos, () -> {
            ByteBuf from = channel.alloc().buffer(table.rowBytes(), table.rowBytes());
            from.writerIndex(table.rowBytes());
            Future<Void> write = channel.write(table.memory(), table.offsetOf(row[0]++ % table.rows()), from);
            from.release(); // the operation holds it
            return write;
        });
    }

    public static Measurement adds(RdmaChannel channel, Table table, long count, int window, long limitNanos)
            throws InterruptedException {
        return run(
                channel, count, window, limitNanos, () -> channel.fetchAndAdd(table.memory(), Table.COUNTER_OFFSET, 1));
    }

    private static Measurement run(
            RdmaChannel channel, long count, int window, long limitNanos, Supplier<Future<?>> operation)
            throws InterruptedException {
        return Pipelined.run(channel.eventLoop(), count, window, limitNanos, operation)
                .sync()
                .getNow();
    }
}
