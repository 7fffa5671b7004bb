package org.verbena.sockets;

import java.net.Socket;
import org.verbena.api.RdmaEventLoopGroup;

/** A program that writes, closes its socket and ends. */
final class ExitingClient {
    private ExitingClient() {}

    /** The provider, the host, the port and the number of bytes. */
    public static void main(String[] arguments) throws Exception {
        RdmaEventLoopGroup group = new RdmaEventLoopGroup(arguments[0], 1);
        try (Socket socket = new RdmaSocketFactory(group).createSocket(arguments[1], Integer.parseInt(arguments[2]))) {
            socket.getOutputStream().write(new byte[Integer.parseInt(arguments[3])]);
        }
        System.exit(0); // the loops' threads are no daemons
    }
}
