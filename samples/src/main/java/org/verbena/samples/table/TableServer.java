package org.verbena.samples.table;

import java.io.PrintWriter;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import org.verbena.api.MessageHandler;
import org.verbena.api.RdmaServer;
import org.verbena.api.ServerMemory;
import org.verbena.samples.command.ByteSize;
import org.verbena.samples.command.ConnectionOptions;
import org.verbena.samples.command.ServerSignals;
import org.verbena.transport.MemoryDomain.Access;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/**
 * Exposes a table in its memory. A client that asks gets the table's token, and can then read and change it without the
 * server's program and, on an RDMA device, without its processor.
 */
@Command(
        name = "table-server",
        description = "Exposes a table that table-client reads and changes with one-sided operations.")
public final class TableServer implements Callable<Integer> {
    @Mixin
    @SuppressWarnings("NullAway.Init") // picocli sets it
    private ConnectionOptions options;

    @Option(names = "--rows", paramLabel = "N", defaultValue = "1024", description = "Rows (${DEFAULT-VALUE}).")
    private int rows;

    @Option(
            names = "--row-size",
            paramLabel = "BYTES",
            defaultValue = "64",
            converter = ByteSize.class,
            description = "Row size in bytes, a multiple of 8 (${DEFAULT-VALUE}).")
    private int rowBytes;

    @CommandLine.Spec
    @SuppressWarnings("NullAway.Init") // picocli sets it
    private CommandLine.Model.CommandSpec spec;

    @Override
    public Integer call() throws InterruptedException {
        if (rows < 1 || rowBytes < 8 || rowBytes % 8 != 0) {
            throw new CommandLine.ParameterException(
                    spec.commandLine(),
                    "--rows must be 1 or more and --row-size a multiple of 8; they are " + rows + ", " + rowBytes);
        }
        ServerSignals.endWithZero();
        try (ServerMemory table = memory(rows, rowBytes);
                RdmaServer server = RdmaServer.builder()
                        .provider(options.provider)
                        .bind(options.host, options.listenPort(), handler(table, rows, rowBytes))) {
            PrintWriter out = spec.commandLine().getOut();
            out.println("table-server listens on " + server.localAddress() + " (" + server.provider() + "): " + rows
                    + " rows of " + rowBytes + " bytes");
            out.flush();
            new CountDownLatch(1).await();
        }
        return CommandLine.ExitCode.OK;
    }

    /** Allocates the table, for clients to read, to write and to count in. */
    public static ServerMemory memory(int rows, int rowBytes) {
        return ServerMemory.allocate(
                Table.lengthBytes(rows, rowBytes), Access.REMOTE_READ, Access.REMOTE_WRITE, Access.REMOTE_ATOMIC);
    }

    /** Sends every client that asks its token for the table. */
    public static MessageHandler handler(ServerMemory table, int rows, int rowBytes) {
        return (exchange, message) -> exchange.reply(new Table(exchange.token(table), rows, rowBytes).encode());
    }
}
