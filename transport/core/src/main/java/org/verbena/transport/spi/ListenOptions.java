package org.verbena.transport.spi;

/**
 * The options of a listener.
 *
 * @param backlog connection requests that may wait, 1 or more
 * @param reuseAddress whether the address may be bound again while old connections linger
 * @param plainTcp whether TCP connections of other protocols go to {@link ListenerHandler#onPlainConnection}; without
 *     it they are dropped. Only for providers that {@link RdmaProvider#takesPlainTcp() take them}
 * @param plainTcpAfterMillis a connection that has not sent enough bytes to recognise its protocol after so many
 *     milliseconds counts as one of another protocol; 0 for never. No effect unless below the provider's limit for
 *     handshakes
 */
public record ListenOptions(int backlog, boolean reuseAddress, boolean plainTcp, int plainTcpAfterMillis) {

    /** A backlog of 1024, address reused, no plain TCP. */
    public static final ListenOptions DEFAULTS = new ListenOptions(1024, true);

    /** Checks ranges. */
    public ListenOptions {
        if (backlog < 1) {
            throw new IllegalArgumentException("backlog " + backlog + " is below 1");
        }
        if (plainTcpAfterMillis < 0) {
            throw new IllegalArgumentException("plainTcpAfterMillis " + plainTcpAfterMillis + " is below 0");
        }
    }

    /**
     * Options without plain TCP.
     *
     * @param backlog connection requests that may wait, 1 or more
     * @param reuseAddress whether the address may be bound again while old connections linger
     */
    public ListenOptions(int backlog, boolean reuseAddress) {
        this(backlog, reuseAddress, false, 0);
    }
}
