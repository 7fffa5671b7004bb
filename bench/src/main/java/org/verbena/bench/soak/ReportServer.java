package org.verbena.bench.soak;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.TimeUnit;
import org.verbena.api.ProviderStatistics;
import org.verbena.api.RdmaChannelOption;
import org.verbena.api.RdmaEventLoopGroup;
import org.verbena.api.RdmaServer;

/** The server of {@link Report}: sends back what it gets, and prints its state for each line of its standard input. */
final class ReportServer {
    static final String READY = "report server at port ";
    static final String STATE = "state ";

    private ReportServer() {}

    /** Provider, host and port; 0 for any. Ends with its standard input. */
    public static void main(String[] arguments) throws Exception {
        RdmaEventLoopGroup group = new RdmaEventLoopGroup(arguments[0], 2);
        RdmaServer server = RdmaServer.builder()
                .group(group)
                .option(RdmaChannelOption.SHARED_RECEIVE_QUEUE, true)
                .option(RdmaChannelOption.SEND_DEPTH, 16)
                .bind(
                        arguments[1],
                        Integer.parseInt(arguments[2]),
                        (exchange, message) -> exchange.reply(message.retain()));
        state(group); // its classes cannot be loaded any more when no descriptor is left
        System.out.println(READY + server.port());
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        while (input.readLine() != null) {
            System.out.println(STATE + state(group));
        }
        server.close();
        group.shutdownGracefully(0, 10, TimeUnit.SECONDS).sync();
        System.out.println(STATE + SoakServer.leaks(ProviderStatistics.of(group.provider())));
        Runtime.getRuntime().halt(0);
    }

    /** Its connections, and the bytes of heap that it uses. */
    private static String state(RdmaEventLoopGroup group) {
        return ProviderStatistics.of(group.provider()).openConnections() + " "
                + ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed();
    }
}
