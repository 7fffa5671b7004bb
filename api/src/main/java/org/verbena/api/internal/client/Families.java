package org.verbena.api.internal.client;

import java.net.Inet6Address;
import java.net.InetSocketAddress;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Which of a name's addresses a client uses. A name with addresses of IPv6 and IPv4 has each of its servers twice, and
 * one of the two ways may not work here. So the addresses of the family that the system prefers are tried first, those
 * of the other one as well a little later, and the client stays with the family of the first that connects, until none
 * of its addresses does. Changed by one thread.
 *
 * <p>Source: RFC 8305, 5
 */
final class Families {
    /** How long the preferred family may take before the other one is tried as well; RFC 8305, 8 recommends it. */
    static final long DELAY_NANOS = 250_000_000;

    private List<InetSocketAddress> all = List.of();

    /** Whether IPv6 has won; null while none has. */
    private @Nullable Boolean six;

    private boolean both;

    /** These are the addresses from now on, the preferred ones first. */
    void update(List<InetSocketAddress> addresses) {
        all = List.copyOf(addresses);
        if (six != null && inUse().isEmpty()) {
            six = null;
        }
    }

    /** Both families are tried. */
    void widen() {
        six = null;
        both = true;
    }

    /** An address has connected. */
    void won(InetSocketAddress address) {
        six = isSix(address);
        both = false;
    }

    /** Whether no family has won yet. */
    boolean isOpen() {
        return six == null;
    }

    /** Whether there are addresses that are not in use. */
    boolean hasMore() {
        return inUse().size() < all.size();
    }

    List<InetSocketAddress> inUse() {
        if (both || all.isEmpty()) {
            return all;
        }
        boolean family = six == null ? isSix(all.getFirst()) : six;
        return all.stream().filter(address -> isSix(address) == family).toList();
    }

    private static boolean isSix(InetSocketAddress address) {
        return address.getAddress() instanceof Inet6Address;
    }
}
