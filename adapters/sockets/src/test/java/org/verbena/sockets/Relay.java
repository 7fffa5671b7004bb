package org.verbena.sockets;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;

/** Carries each connection to an RDMA listener on to a TCP server, on virtual threads. Half closes go through. */
final class Relay implements AutoCloseable {
    private final ServerSocket listener;
    private final InetSocketAddress target;

    Relay(ServerSocket listener, InetSocketAddress target) {
        this.listener = listener;
        this.target = target;
        Thread.startVirtualThread(this::accept);
    }

    int port() {
        return listener.getLocalPort();
    }

    @Override
    public void close() throws IOException {
        listener.close();
    }

    private void accept() {
        try {
            while (true) {
                Socket client = listener.accept();
                Thread.startVirtualThread(() -> carry(client));
            }
        } catch (IOException closed) {
            // The end.
        }
    }

    private void carry(Socket client) {
        try (client;
                Socket server = new Socket(target.getAddress(), target.getPort())) {
            Thread back = Thread.startVirtualThread(() -> copy(server, client));
            copy(client, server);
            back.join();
        } catch (IOException | InterruptedException lost) {
            // Both are closed, and tell their peers.
        }
    }

    private static void copy(Socket from, Socket to) {
        try {
            from.getInputStream().transferTo(to.getOutputStream());
            to.shutdownOutput();
        } catch (IOException lost) {
            // The end of one direction ends the other, too.
            close(from);
            close(to);
        }
    }

    private static void close(Socket socket) {
        try {
            socket.close();
        } catch (IOException besides) {
            throw new AssertionError(besides);
        }
    }
}
