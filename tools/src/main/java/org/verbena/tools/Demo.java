package org.verbena.tools;

import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;
import org.verbena.api.MessageHandler;
import org.verbena.api.RdmaChannel;
import org.verbena.api.RdmaClient;
import org.verbena.api.RdmaServer;
import org.verbena.api.ServerMemory;
import org.verbena.samples.command.Conditions;
import org.verbena.samples.command.PortNumber;
import org.verbena.samples.command.Report;
import org.verbena.samples.command.Verbosity;
import org.verbena.samples.command.WarmUp;
import org.verbena.samples.echo.EchoClient;
import org.verbena.samples.table.Table;
import org.verbena.samples.table.TableClient;
import org.verbena.samples.table.TableServer;
import org.verbena.transport.provider.ProviderChoice;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;

/** Both ends in one process: echo at several sizes, one-sided operations, one table. */
@Command(
        name = "demo",
        description = "Demonstrates Verbena in less than a minute, with both ends in one process.",
        footer =
                "%nBy default it runs on the loopback address; give --host an RDMA device's address to use that device.")
final class Demo implements Callable<Integer> {
    private static final int[] SIZES = {64, 1 << 10, 16 << 10, 128 << 10, 1 << 20};
    private static final int ROWS = 256;
    private static final int ROW_BYTES = 4096;

    /** The most operations of a line, which may end sooner by its time. */
    private static final int MAX = 100_000;

    private static final String EACH_MILLIS = "800";

    /** The longest warm-up of a line, as a multiple of its time; it is never longer than elsewhere. */
    private static final int MAX_WARM_UPS = 4;

    @Option(
            names = "--millis",
            paramLabel = "N",
            defaultValue = EACH_MILLIS,
            description =
                    "The longest time to measure each line, in milliseconds (${DEFAULT-VALUE}); each is warmed up before,"
                            + " until its times no longer fall.")
    private int eachMillis;

    @Option(
            names = "--host",
            paramLabel = "ADDR",
            defaultValue = "127.0.0.1",
            description = "The address that both ends use (${DEFAULT-VALUE}).")
    @SuppressWarnings("NullAway.Init") // picocli sets it
    private String host;

    @Option(
            names = "--provider",
            paramLabel = "auto|verbs|soft|shm",
            description =
                    "verbs: RDMA devices; soft: iWARP in Java; auto: verbs where a device serves the address, else soft (auto).")
    private String provider = ProviderChoice.configured();

    @Option(
            names = "--port",
            paramLabel = "N",
            defaultValue = "0",
            converter = PortNumber.class,
            description = "Port; 0 for any free port.")
    private int port;

    @Mixin
    @SuppressWarnings({"NullAway.Init", "UnusedVariable"}) // picocli sets it, and it acts by itself
    private Verbosity verbosity;

    @Mixin
    @SuppressWarnings("NullAway.Init") // picocli sets it
    private Report report;

    @CommandLine.Spec
    @SuppressWarnings("NullAway.Init") // picocli sets it
    private CommandLine.Model.CommandSpec spec;

    @Override
    public Integer call() throws InterruptedException {
        if (eachMillis < 1) {
            throw new ParameterException(spec.commandLine(), "--millis must be 1 or more, not " + eachMillis);
        }
        try (ServerMemory memory = TableServer.memory(ROWS, ROW_BYTES);
                RdmaServer server = RdmaServer.builder()
                        .provider(provider)
                        .bind(host, port, answering(TableServer.handler(memory, ROWS, ROW_BYTES)));
                RdmaClient client =
                        RdmaClient.builder().provider(provider).reconnect(false).connect(host, server.port())) {
            RdmaChannel channel = client.channel();
            report.line("Verbena on " + client.provider() + ", " + channel.localAddress() + " to "
                    + channel.remoteAddress());
            report.line("");
            report.member("provider", client.provider())
                    .member("local", channel.localAddress())
                    .member("remote", channel.remoteAddress())
                    .member("atomics", channel.capabilities().atomics());
            Lines lines = new Lines();
            for (int size : SIZES) {
                lines.add("echo " + sizeName(size), size, nanos -> EchoClient.run(client, MAX, 1, size, nanos));
            }
            lines.add("echo 64 B x64", 64, nanos -> EchoClient.run(client, 4 * MAX, 64, 64, nanos));
            Table table = TableClient.table(client);
            TableClient.checkARow(channel, table);
            lines.add("read 4 KiB", ROW_BYTES, nanos -> TableClient.reads(channel, table, MAX, 1, nanos));
            lines.add("write 4 KiB", ROW_BYTES, nanos -> TableClient.writes(channel, table, MAX, 1, nanos));
            if (channel.capabilities().atomics()) {
                lines.add("fetch-and-add", Long.BYTES, nanos -> TableClient.adds(channel, table, MAX, 1, nanos));
            } else {
                report.line("fetch-and-add          the device has no atomics");
            }
            report.line("");
            report.line("Every reply and row was checked. Times include both ends, on one machine.");
            report.line(lines.conditions.line());
            report.member("conditions", lines.conditions.members());
            report.end();
        }
        return CommandLine.ExitCode.OK;
    }

    /** The lines of the table, each warmed up before it is measured. */
    private final class Lines {
        private final long eachNanos = TimeUnit.MILLISECONDS.toNanos(eachMillis);
        private final WarmUp warmUp = new WarmUp();
        private final Conditions conditions = new Conditions();

        private void add(String operation, int bytes, WarmUp.Window window) throws InterruptedException {
            conditions.add(warmUp.run(window, Math.min(WarmUp.MAX_NANOS, MAX_WARM_UPS * eachNanos)));
            report.row(operation, window.run(eachNanos), bytes);
        }
    }

    /** An empty request asks for the table; any other is echoed. */
    private static MessageHandler answering(MessageHandler advertiseTable) {
        return (exchange, message) -> {
            if (message.isReadable()) {
                exchange.reply(message.retain());
            } else {
                advertiseTable.onMessage(exchange, message);
            }
        };
    }

    private static String sizeName(int bytes) {
        if (bytes >= 1 << 20) {
            return (bytes >> 20) + " MiB";
        }
        return bytes >= 1 << 10 ? (bytes >> 10) + " KiB" : bytes + " B";
    }
}
