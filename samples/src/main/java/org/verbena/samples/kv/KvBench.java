package org.verbena.samples.kv;

import org.verbena.samples.command.ByteSize;
import org.verbena.samples.command.CommandFailure;
import org.verbena.samples.command.Measurement;
import org.verbena.samples.command.Report;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** {@code kv-client bench}: shows that gets do not involve the server's program. */
@Command(
        name = "bench",
        description = "Puts and gets the key 'bench', once and again, and prints the times and how many requests the"
                + " server's program served during the gets.")
final class KvBench extends KvClient.Connected {
    @Mixin
    @SuppressWarnings("NullAway.Init") // picocli sets it
    private Report report;

    @Option(
            names = "--count",
            paramLabel = "N",
            defaultValue = "10000",
            description = "Puts, and then gets (${DEFAULT-VALUE}).")
    private int count;

    @Option(
            names = "--size",
            paramLabel = "BYTES",
            defaultValue = "64",
            converter = ByteSize.class,
            description = "Value size in bytes (${DEFAULT-VALUE}).")
    private int valueBytes;

    @Override
    void check() {
        if (count < 1 || valueBytes < 0) {
            throw new CommandLine.ParameterException(
                    spec.commandLine(), "--count must be 1 or more, and --size 0 or more");
        }
    }

    @Override
    void run(KvConnection connection) throws InterruptedException {
        byte[] key = KvClient.bytes("bench");
        byte[] value = new byte[valueBytes];
        report.row("put " + valueBytes + " B", Measurement.of(count, () -> connection.put(key, value)), valueBytes);
        long before = connection.requestsServed();
        Measurement gets = Measurement.of(count, () -> {
            if (connection.get(key).orElseThrow().length != valueBytes) {
                throw new CommandFailure("a get did not return what was put");
            }
        });
        report.row("get " + valueBytes + " B", gets, valueBytes);
        long served = connection.requestsServed() - before - 1; // the second question
        report.line("requests that the server's program served during the gets: " + served);
        report.member("requestsDuringGets", served).end();
    }
}
