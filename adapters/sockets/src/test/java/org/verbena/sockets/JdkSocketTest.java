package org.verbena.sockets;

import javax.net.ServerSocketFactory;
import javax.net.SocketFactory;

/** The suite on the JDK's own sockets, so that it asks for nothing that they do not do. */
class JdkSocketTest extends SocketSuite {
    @Override
    protected SocketFactory clients() {
        return SocketFactory.getDefault();
    }

    @Override
    protected ServerSocketFactory servers() {
        return ServerSocketFactory.getDefault();
    }
}
