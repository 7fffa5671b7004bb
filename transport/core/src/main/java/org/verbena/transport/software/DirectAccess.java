package org.verbena.transport.software;

/** Opens memory to a connection's peer, which then reads it by itself. Any thread. */
public interface DirectAccess {
    /**
     * Opens memory, unless the peer cannot reach it: then it has to be read for the peer.
     *
     * @param memory registered, with the right to read it
     * @return whether it is open; {@link #withdraw} follows before the memory is gone
     */
    boolean publish(SoftwareMemory memory);

    /** Closes memory that was opened: what the peer has not read completely by now, it does not get. */
    void withdraw(SoftwareMemory memory);
}
