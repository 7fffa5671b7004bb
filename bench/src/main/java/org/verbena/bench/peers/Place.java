package org.verbena.bench.peers;

import java.net.InetAddress;
import java.net.InetSocketAddress;

/**
 * Where the two processes of a contender meet and what Verbena takes to get there: system properties, the same in the
 * orchestrator and in both processes.
 */
public final class Place {
    /** A host name or address of this machine; loopback if it is not there. */
    static final String HOST = "peers.host";

    /** Verbena's provider; soft if it is not there. */
    static final String PROVIDER = "peers.provider";

    /** Over how many connections a client's messages go, in turn; one if it is not there. */
    static final String CONNECTIONS = "peers.connections";

    private Place() {}

    /** The name of the provider that Verbena is measured on. */
    public static String provider() {
        return System.getProperty(PROVIDER, "soft");
    }

    /** Over how many connections a client's messages go, in turn. Contenders that do not ask for it have one. */
    public static int connections() {
        return Integer.getInteger(CONNECTIONS, 1);
    }

    /** The address that servers bind to and clients connect to, as a literal. */
    public static String host() {
        return address(0).getAddress().getHostAddress();
    }

    /** That address and a port, or 0 for any. */
    public static InetSocketAddress address(int port) {
        String host = System.getProperty(HOST);
        if (host == null) {
            return new InetSocketAddress(InetAddress.getLoopbackAddress(), port);
        }
        InetSocketAddress address = new InetSocketAddress(host, port);
        if (address.isUnresolved()) {
            throw new IllegalArgumentException("--host " + host + " has no address: give one of this machine's");
        }
        return address;
    }

    /** For a contender without a network: it can only be had where no host is named. */
    public static void refuseHost(String contender) {
        if (System.getProperty(HOST) != null) {
            throw new IllegalArgumentException(contender + " does not go through a network: leave it out, or --host");
        }
    }
}
