package org.verbena.transport.software;

/** Opens memory to a connection's peer, which then accesses it by itself. Any thread. */
public interface DirectAccess {
    /**
     * Opens memory, unless the peer cannot reach it: then it has to be accessed for the peer.
     *
     * @param memory registered, with a right for peers
     * @return whether it is open; {@link #withdraw} follows before the memory is gone
     */
    boolean publish(SoftwareMemory memory);

    /**
     * Closes memory that was opened. When this returns, the peer writes it no more, and does not get what it has not read
     * completely by then.
     */
    void withdraw(SoftwareMemory memory);
}
