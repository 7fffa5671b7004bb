package org.verbena.api.client;

/**
 * What state the connections of a client are in, all together.
 *
 * <pre>{@code
 * CONNECTING --a connection is up--> READY --the last one is lost--> BACKING_OFF --its time is over--> CONNECTING
 *   |   ^                              |                                 ^
 *   |   +--a request-- IDLE <--unused--+                                 |
 *   +--all attempts have failed------------------------------------------+       any --close--> CLOSED
 * }</pre>
 *
 * <p>If the last connection is left since its address is gone, and there is no other address, READY is followed by
 * CONNECTING.
 */
public enum ClientState {
    /** None is up. The client looks up addresses, or connects. */
    CONNECTING,

    /** At least one is up. Requests are sent at once. */
    READY,

    /**
     * None is up, and none is tried at the moment: the client waits, longer after each failure, and tries again, or
     * looks its target up again. A client that {@linkplain org.verbena.api.RdmaClient#lastFailure fails} logs why at
     * WARN, once a minute at most.
     */
    BACKING_OFF,

    /**
     * None is up, since none has been used {@linkplain org.verbena.api.RdmaClient.Builder#idleAfter for some time}. The
     * client connects with the next request. Nothing is known to be wrong.
     */
    IDLE,

    /** The client is closed, or had a connection that cannot be made again. This does not change any more. */
    CLOSED
}
