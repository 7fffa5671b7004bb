package org.verbena.transport.spi;

/**
 * The options of a listener.
 *
 * @param backlog connection requests that may wait, 1 or more
 * @param reuseAddress whether the address may be bound again while old connections linger
 */
public record ListenOptions(int backlog, boolean reuseAddress) {

    /** A backlog of 1024, address reused. */
    public static final ListenOptions DEFAULTS = new ListenOptions(1024, true);

    /** Checks ranges. */
    public ListenOptions {
        if (backlog < 1) {
            throw new IllegalArgumentException("backlog " + backlog + " is below 1");
        }
    }
}
