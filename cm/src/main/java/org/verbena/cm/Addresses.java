package org.verbena.cm;

import java.lang.foreign.Arena;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import org.verbena.cm.ffm.Sockaddr;

/** The addresses that ids have: those of IP and those of InfiniBand. */
final class Addresses {
    private Addresses() {}

    /**
     * Writes an address as C has it.
     *
     * @return the address of a {@code struct sockaddr}
     * @throws IllegalArgumentException it is not resolved, or of another kind
     */
    static long write(Arena arena, SocketAddress address) {
        return switch (address) {
            case InetSocketAddress ip -> Sockaddr.write(arena, ip).address();
            case InfinibandAddress infiniband -> infiniband.write(arena).address();
            default ->
                throw new IllegalArgumentException(
                        address + " is neither an InetSocketAddress nor an InfinibandAddress");
        };
    }

    /** Formats an address for messages. */
    static String format(SocketAddress address) {
        if (!(address instanceof InetSocketAddress ip)) {
            return address.toString();
        }
        if (ip.isUnresolved()) {
            return ip.getHostString() + ":" + ip.getPort();
        }
        String host = ip.getAddress().getHostAddress();
        return (host.contains(":") ? "[" + host + "]" : host) + ":" + ip.getPort();
    }
}
