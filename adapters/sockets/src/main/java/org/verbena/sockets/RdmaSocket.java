package org.verbena.sockets;

import java.net.Socket;
import java.net.SocketException;

/** The JDK's socket, which keeps its state and checks its arguments, over an {@link RdmaSocketImpl}. */
final class RdmaSocket extends Socket {
    RdmaSocket(RdmaSocketImpl impl) throws SocketException {
        super(impl);
    }
}
