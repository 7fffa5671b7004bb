package org.verbena.transport.stat;

import java.lang.foreign.MemorySegment;

/** The row of a provider that has had a connection. It stays until the process ends. */
public final class ProviderRow extends StatRow {
    ProviderRow(StatFile file, int index, MemorySegment memory, String name, String description) {
        super(file, index, memory);
        begin(row -> {
            StatLayout.putText(row, StatLayout.PROVIDER_NAME, StatLayout.NAME_BYTES, name);
            StatLayout.putText(row, StatLayout.PROVIDER_DESCRIPTION, StatLayout.DESCRIPTION_BYTES, description);
        });
    }

    /**
     * Its connections. One thread at a time.
     *
     * @param open connections now
     * @param begun connections so far
     * @param lost how many of these did not come up, or were lost
     */
    public void connections(long open, long begun, long lost) {
        put(StatLayout.PROVIDER_OPEN, open);
        put(StatLayout.PROVIDER_BEGUN, begun);
        put(StatLayout.PROVIDER_LOST, lost);
    }

    /**
     * The plain TCP connections on its ports. One thread at a time.
     *
     * @param open connections now
     * @param begun connections so far
     */
    public void plainConnections(long open, long begun) {
        put(StatLayout.PROVIDER_PLAIN_OPEN, open);
        put(StatLayout.PROVIDER_PLAIN_BEGUN, begun);
    }

    /**
     * What waits at its servers. One thread at a time.
     *
     * @param requests that wait for a handler to begin
     */
    public void waiting(long requests) {
        put(StatLayout.PROVIDER_WAITING, requests);
    }

    /**
     * Its memory. One thread at a time.
     *
     * @param bytes registered now, on all devices
     */
    public void registered(long bytes) {
        put(StatLayout.PROVIDER_REGISTERED, bytes);
    }
}
