package org.verbena.testing;

import java.net.InetSocketAddress;
import java.util.HashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.ConnectionException;

/** Who has which port of this process. Any thread. */
final class Ports {
    /** As on most systems, those that nobody asked for come from the upper end. */
    private static final int FIRST_FREE = 49_152;

    private static final int LAST = 65_535;

    private static final Map<Integer, Object> OWNERS = new HashMap<>();

    /** Guarded by the map. A port that was given back is not given out again soon, as on a real system. */
    private static int next = FIRST_FREE;

    private Ports() {}

    /**
     * Takes a port.
     *
     * @param wanted address and port, 0 for any
     * @param owner returns it by {@link #release}
     * @return address and port
     * @throws ConnectionException it is taken, or there is no such address in this process
     */
    static InetSocketAddress take(InetSocketAddress wanted, Object owner) {
        if (!InProcessProvider.isLocal(wanted)) {
            throw new ConnectionException("binding to " + wanted
                    + ": this process has no such address; the provider " + InProcessProvider.NAME
                    + " has those of the loopback interface, and 0.0.0.0");
        }
        synchronized (OWNERS) {
            int port = wanted.getPort() == 0 ? anyFree() : wanted.getPort();
            if (OWNERS.putIfAbsent(port, owner) != null) {
                throw new ConnectionException(
                        "binding to " + wanted + ": the port " + port + " is already in use in this process");
            }
            return new InetSocketAddress(wanted.getAddress(), port);
        }
    }

    private static int anyFree() {
        for (int tries = FIRST_FREE; tries <= LAST; tries++) {
            int port = next;
            next = next == LAST ? FIRST_FREE : next + 1;
            if (!OWNERS.containsKey(port)) {
                return port;
            }
        }
        throw new ConnectionException("binding to any port: all " + (LAST - FIRST_FREE + 1) + " are in use");
    }

    /** Returns a port, if it is still the owner's. */
    static void release(int port, Object owner) {
        synchronized (OWNERS) {
            OWNERS.remove(port, owner);
        }
    }

    /** The server that listens on a port; null if there is none. */
    static @Nullable InProcessListener listener(int port) {
        synchronized (OWNERS) {
            return OWNERS.get(port) instanceof InProcessListener listener ? listener : null;
        }
    }
}
