package org.verbena.api.client;

import java.net.InetSocketAddress;
import java.util.List;
import java.util.function.Consumer;

/**
 * Follows the addresses of a client's servers, for instance in a file, in a registry of services, or among the
 * endpoints that a cluster's manager publishes.
 */
@FunctionalInterface
public interface TargetResolver {
    /**
     * Begins to follow them. Called once for each client, on a virtual thread, and may block; closing the client
     * interrupts it. What it throws fails the client's first connect, and is tried again later, with a longer wait each
     * time.
     *
     * @param updates takes all addresses that are good now, resolved, each time that they change; at any time, on any
     *     thread. The client connects to those that are new, and leaves those that are gone when there is a
     *     connection to another one and their requests are answered: what such a server sends after that is lost. An
     *     empty list means that there are no servers at present, and has all of them left
     * @return ends the following; closed with the client
     * @throws Exception the addresses cannot be followed now
     */
    AutoCloseable resolve(Consumer<List<InetSocketAddress>> updates) throws Exception;
}
