package org.verbena.tools.perf;

import java.io.IOException;
import java.io.PrintWriter;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import org.jspecify.annotations.Nullable;
import org.verbena.api.RdmaEventLoopGroup;
import org.verbena.api.RdmaServer;
import org.verbena.samples.command.ConnectionOptions;
import org.verbena.samples.command.LoopOptions;
import org.verbena.samples.command.ServerSignals;
import org.verbena.tools.command.CpuOption;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/**
 * The passive end: messages, requests and memory on one port, and each {@link PerfService} on one of the next ports.
 */
@Command(
        name = "server",
        description = "Serves perf clients: streams, sends and gRPC calls on the three ports after --port,"
                + " everything else on --port.",
        footer = "%nClients get memory to read and write, up to 1 GiB for each connection: for networks you trust.")
final class PerfServer implements Callable<Integer> {
    private static final int HIGHEST_PORT = 65535;

    @Mixin
    @SuppressWarnings("NullAway.Init") // picocli sets it
    private ConnectionOptions options;

    @Mixin
    @SuppressWarnings("NullAway.Init") // picocli sets it
    private LoopOptions loop;

    @Mixin
    @SuppressWarnings("NullAway.Init") // picocli sets it
    private CpuOption cpu;

    @Option(
            names = "--with",
            paramLabel = "TOOL",
            split = ",",
            description = "Run the servers of these C programs for clients that compare with them (--against):"
                    + " perftest, qperf, ucx, or several with commas. They listen on the fourth port after --port, on"
                    + " all addresses.")
    private @Nullable Set<PerfTool> tools;

    @CommandLine.Spec
    @SuppressWarnings("NullAway.Init") // picocli sets it
    private CommandLine.Model.CommandSpec spec;

    @Override
    public Integer call() throws IOException, InterruptedException {
        int services = PerfService.values().length + 1; // and one for C programs
        if (options.listenPort() > HIGHEST_PORT - services) {
            throw new CommandLine.ParameterException(
                    spec.commandLine(),
                    "--port must be " + (HIGHEST_PORT - services) + " or less: other tests take the " + services
                            + " ports after it");
        }
        ServerSignals.endWithZero();
        try (RdmaEventLoopGroup group = cpu.newGroup(options.provider, 0, loop.completionLoop())) {
            ToolServing serving =
                    new ToolServing(tools == null ? Set.of() : tools, toolPort(), PerfTool.hasDevice(group.provider()));
            serving.endWithProcess();
            PerfProtocol protocol = new PerfProtocol(serving);
            serve(group, protocol);
        }
        return CommandLine.ExitCode.OK;
    }

    private int toolPort() throws IOException {
        if (options.listenPort() != 0 || tools == null) {
            return options.listenPort() + PerfService.values().length + 1;
        }
        try (ServerSocket free = new ServerSocket(0)) {
            return free.getLocalPort();
        }
    }

    private void serve(RdmaEventLoopGroup group, PerfProtocol protocol) throws IOException, InterruptedException {
        try (RdmaServer server =
                RdmaServer.builder().group(group).bind(options.host, options.listenPort(), protocol::serve)) {
            StringBuilder others = new StringBuilder();
            for (PerfService service : PerfService.values()) {
                int wanted = options.listenPort() == 0 ? 0 : options.listenPort() + service.offset();
                int port = service.listen(group, new InetSocketAddress(options.host, wanted));
                protocol.port(service, port);
                others.append(", for ").append(service).append(" on port ").append(port);
            }
            PrintWriter out = spec.commandLine().getOut();
            out.println("perf server listens on " + server.localAddress() + " (" + server.provider() + ")" + others);
            out.flush();
            new CountDownLatch(1).await();
        }
    }
}
