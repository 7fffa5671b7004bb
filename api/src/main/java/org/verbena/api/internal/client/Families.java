package org.verbena.api.internal.client;

import java.net.Inet6Address;
import java.net.InetSocketAddress;
import java.util.List;
import java.util.concurrent.Future;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * Which of a name's addresses a client uses. A name with addresses of IPv6 and IPv4 has each of its servers twice, and
 * one of the two ways may not work here. So the two families race: the addresses of the one that the system prefers are
 * tried first, those of the other one as well a little later, or at once when these have failed. The client stays with
 * the family of the first that connects, and leaves the other. When all of its connections are lost, that family has
 * the head start. The addresses of one family are different servers, which the client uses all: these do not race.
 *
 * <pre>{@code
 *                  +--none connects in time, or all fail--+
 *                  |                                      v
 *  found --> ONE FAMILY                              BOTH FAMILIES
 *              ^   ^                                      |
 *              |   +--one of this family connects---------+
 *              +--all connections are lost
 * }</pre>
 *
 * <p>Control thread only.
 *
 * <p>Source: RFC 8305, 5
 */
final class Families {
    /** How long one family may take before the other one is tried as well; RFC 8305, 8 recommends it. */
    static final long DELAY_NANOS = 250_000_000;

    private final Control control;
    private final Consumer<List<InetSocketAddress>> use;
    private List<InetSocketAddress> all = List.of();

    /** Whether IPv6 was the last to win; null while none was. */
    private @Nullable Boolean six;

    /** Whether an address has connected, and the other family is left. */
    private boolean decided;

    private boolean both;

    /** Until both families are tried. */
    private @Nullable Future<?> headStart;

    /**
     * Prepares it.
     *
     * @param use gets the addresses to connect to, each time that they change
     */
    Families(Control control, Consumer<List<InetSocketAddress>> use) {
        this.control = control;
        this.use = use;
    }

    /** These are the addresses from now on, the preferred ones first. */
    void found0(List<InetSocketAddress> addresses) {
        all = List.copyOf(addresses);
        if (six != null && inUse().isEmpty()) {
            six = null;
            decided = false;
        }
        use.accept(inUse());
        race0();
    }

    /** An address has connected: leaves those that are the same servers on another way. */
    void won0(InetSocketAddress address) {
        stop0();
        if (decided) {
            return;
        }
        decided = true;
        six = isSix(address);
        both = false;
        use.accept(inUse());
    }

    /**
     * None of the addresses in use connects, or all of their connections are lost.
     *
     * @return whether others are tried, now or soon
     */
    boolean failed0() {
        if (!hasMore()) {
            return false;
        }
        if (decided) {
            decided = false;
            race0();
        } else if (six == null) {
            widen0();
        }
        return true;
    }

    /** Begins as with the first addresses the next time. */
    void forget0() {
        stop0();
        six = null;
        decided = false;
        both = false;
    }

    /** The other family is not tried any more. */
    void stop0() {
        Future<?> scheduled = headStart;
        if (scheduled != null) {
            scheduled.cancel(false);
            headStart = null;
        }
    }

    private void race0() {
        if (!decided && headStart == null && hasMore()) {
            headStart = control.schedule(
                    () -> {
                        headStart = null;
                        widen0();
                    },
                    DELAY_NANOS);
        }
    }

    private void widen0() {
        stop0();
        if (!decided && hasMore()) {
            both = true;
            use.accept(inUse());
        }
    }

    /** Whether there are addresses that are not in use. */
    private boolean hasMore() {
        return inUse().size() < all.size();
    }

    private List<InetSocketAddress> inUse() {
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
