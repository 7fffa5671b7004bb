package org.verbena.tools.interop.pingpong;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import org.jspecify.annotations.Nullable;
import org.verbena.cm.TcpQueuePairExchange;
import org.verbena.tools.command.DeviceOption;
import org.verbena.verbs.Context;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** A mixin: the local end of a queue pair that is connected by hand. */
final class ByHandOptions {
    @Mixin
    @SuppressWarnings("NullAway.Init") // picocli sets it
    private DeviceOption device;

    @Option(
            names = {"-i", "--ib-port"},
            paramLabel = "PORT",
            defaultValue = "1",
            description = "Port of the device (${DEFAULT-VALUE}).")
    int devicePort;

    @Option(
            names = {"-g", "--gid-idx"},
            paramLabel = "INDEX",
            defaultValue = "-1",
            description = "Index of the local GID; RoCE needs one.")
    int gidIndex;

    /** Opens the device, or reports why there is none. */
    Context open() {
        return device.open();
    }

    /** Runs once both sides are connected over TCP. */
    interface Meeting {
        void run(TcpQueuePairExchange exchange) throws IOException;
    }

    /**
     * Connects to the other side over TCP.
     *
     * @param host the server; null to be the server, and to wait for a client as long as it takes
     * @param answerMillis how long each answer may take; 0 for no limit
     */
    static void meet(@Nullable String host, int tcpPort, int answerMillis, Meeting meeting) throws IOException {
        if (host == null) {
            try (ServerSocket listener = new ServerSocket(tcpPort);
                    TcpQueuePairExchange exchange = TcpQueuePairExchange.accept(listener, answerMillis)) {
                meeting.run(exchange);
            }
        } else {
            try (TcpQueuePairExchange exchange =
                    TcpQueuePairExchange.connect(new InetSocketAddress(host, tcpPort), answerMillis)) {
                meeting.run(exchange);
            }
        }
    }
}
