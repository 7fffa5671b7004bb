package org.verbena.transport.software;

/** Opens memory to a connection's peer, which then accesses it by itself. Any thread. */
public interface DirectAccess {
    /**
     * Opens memory, unless the peer cannot reach it: then this side accesses it for the peer.
     *
     * @param memory registered, with a right for peers
     * @return whether it is open; {@link #withdraw} follows before the memory is gone
     */
    boolean publish(SoftwareMemory memory);

    /**
     * Closes memory that was opened, without waiting. From now on the peer does not get what it has not read
     * completely, and begins no write; it may be in the middle of one.
     */
    void withdraw(SoftwareMemory memory);

    /**
     * Whether the peer is still in the middle of a write that it had begun when the memory was withdrawn. For about a
     * second at most: the connection of a peer that takes longer ends.
     */
    boolean isVisited(SoftwareMemory memory);

    /**
     * Runs an action once the memory, which was withdrawn, is not {@linkplain #isVisited visited}.
     *
     * @param memory withdrawn
     * @param action runs now, or on the connection's loop
     */
    void whenLeft(SoftwareMemory memory, Runnable action);
}
