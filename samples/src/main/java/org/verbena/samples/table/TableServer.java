package org.verbena.samples.table;

import java.io.PrintWriter;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.EnumSet;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import org.verbena.api.MessageHandler;
import org.verbena.api.RdmaChannel;
import org.verbena.api.RdmaServer;
import org.verbena.samples.command.ByteSize;
import org.verbena.samples.command.ConnectionOptions;
import org.verbena.samples.command.ServerSignals;
import org.verbena.transport.MemoryDomain;
import org.verbena.transport.MemoryDomain.Access;
import org.verbena.transport.RegisteredMemory;
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
    private static final int PAGE_BYTES = 4096;

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
        MemorySegment memory = Arena.global().allocate(Table.lengthBytes(rows, rowBytes), PAGE_BYTES);
        try (RdmaServer server = RdmaServer.builder()
                .provider(options.provider)
                .bind(options.host, options.listenPort(), handler(memory, rows, rowBytes))) {
            PrintWriter out = spec.commandLine().getOut();
            out.println("table-server listens on " + server.localAddress() + " (" + server.provider() + "): " + rows
                    + " rows of " + rowBytes + " bytes");
            out.flush();
            new CountDownLatch(1).await();
        }
        return CommandLine.ExitCode.OK;
    }

    /** Sends the table's token to every client that asks. The table is registered once per device, for all clients. */
    public static MessageHandler handler(MemorySegment memory, int rows, int rowBytes) {
        Map<MemoryDomain, RegisteredMemory> registered = new ConcurrentHashMap<>();
        return (exchange, message) -> {
            RdmaChannel channel = exchange.channel();
            RegisteredMemory region = registered.computeIfAbsent(
                    channel.sharedMemory(), domain -> domain.register(memory, access(channel)));
            exchange.reply(new Table(region.remote(), rows, rowBytes).encode());
        };
    }

    private static Set<Access> access(RdmaChannel channel) {
        EnumSet<Access> access = EnumSet.of(Access.LOCAL_WRITE, Access.REMOTE_READ, Access.REMOTE_WRITE);
        if (channel.capabilities().atomics()) {
            access.add(Access.REMOTE_ATOMIC);
        }
        return access;
    }
}
