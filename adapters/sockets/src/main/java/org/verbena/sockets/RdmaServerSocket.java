package org.verbena.sockets;

import java.io.IOException;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.SocketException;

/** The JDK's server socket over an {@link RdmaServerSocketImpl}. */
final class RdmaServerSocket extends ServerSocket {
    private final RdmaServerSocketImpl impl;

    RdmaServerSocket(RdmaServerSocketImpl impl) {
        super(impl);
        this.impl = impl;
    }

    @Override
    public Socket accept() throws IOException {
        if (isClosed()) {
            throw new SocketException("Socket is closed");
        }
        if (!isBound()) {
            throw new SocketException("Socket is not bound yet");
        }
        RdmaSocket accepted = new RdmaSocket(impl.newAccepted());
        implAccept(accepted);
        return accepted;
    }
}
