package org.verbena.api.client;

import java.net.InetSocketAddress;
import java.util.List;
import java.util.Objects;
import java.util.stream.Collectors;

/**
 * Where a client's servers are. Each address is a server that may answer any request: the client has connections to all
 * of them at once.
 */
public sealed interface Target {
    /**
     * A name or address with a port. All addresses of a name are used. A name is looked up again when the client has
     * lost all its connections, and from time to time. A server whose address is gone by then is left when there is a
     * connection to another one and its requests are answered: what it sends after that is lost.
     *
     * @param host a name or address
     * @param port 1 to 65535
     * @return the target
     * @throws IllegalArgumentException the host is null or blank, or the port is not one
     */
    static Target of(String host, int port) {
        return new Name(host, port);
    }

    /**
     * These servers, and no others.
     *
     * @param addresses one or more, resolved
     * @return the target
     * @throws IllegalArgumentException there are none, or one is not resolved
     */
    static Target of(List<InetSocketAddress> addresses) {
        return new Addresses(addresses);
    }

    /**
     * The servers that a resolver of the program's own finds.
     *
     * @param resolver follows their addresses
     * @return the target
     */
    static Target resolver(TargetResolver resolver) {
        return new Resolved(resolver);
    }

    /**
     * What {@link #of(String, int)} makes.
     *
     * @param host a name or address
     * @param port 1 to 65535
     */
    record Name(String host, int port) implements Target {
        private static final int MAX_PORT = 65_535;

        /** Checks. */
        public Name {
            if (host == null || host.isBlank()) {
                throw new IllegalArgumentException("connect to port " + port + ": the host is "
                        + (host == null ? "null" : "blank") + "; name one, or say localhost");
            }
            if (port < 1 || port > MAX_PORT) {
                throw new IllegalArgumentException(
                        "connect to " + host + ":" + port + ": the port is not within 1 to " + MAX_PORT);
            }
        }

        @Override
        public String toString() {
            return host + ":" + port;
        }
    }

    /**
     * What {@link #of(List)} makes.
     *
     * @param addresses one or more, resolved
     */
    record Addresses(List<InetSocketAddress> addresses) implements Target {
        /** Checks and copies. */
        public Addresses {
            addresses = List.copyOf(addresses);
            if (addresses.isEmpty()) {
                throw new IllegalArgumentException("a target needs one address or more");
            }
            for (InetSocketAddress address : addresses) {
                if (address.isUnresolved()) {
                    throw new IllegalArgumentException(
                            "connect to " + address + ": it is not resolved; use Target.of(host, port) for names");
                }
            }
        }

        @Override
        public String toString() {
            return addresses.stream()
                    .map(address -> address.getAddress().getHostAddress() + ":" + address.getPort())
                    .collect(Collectors.joining(", "));
        }
    }

    /**
     * What {@link #resolver} makes.
     *
     * @param resolver follows the addresses
     */
    record Resolved(TargetResolver resolver) implements Target {
        /** Checks. */
        public Resolved {
            Objects.requireNonNull(resolver, "the resolver is null");
        }

        @Override
        public String toString() {
            return "what " + resolver.getClass().getName() + " finds";
        }
    }
}
