package org.verbena.transport.shm;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.transport.software.SoftwareDomain;
import org.verbena.transport.spi.RateLimitedLog;

/**
 * The parts that all listeners and endpoints of a provider share.
 *
 * @param options how it behaves
 * @param domain the keys
 * @param files memory that peers can map
 * @param processes the peers
 * @param strangers what clients and peers do wrong
 * @param local what this side cannot do for its peers
 */
record ShmContext(
        ShmOptions options,
        SoftwareDomain domain,
        SharedFiles files,
        PeerProcesses processes,
        RateLimitedLog strangers,
        RateLimitedLog local) {
    private static final Logger LOG = LoggerFactory.getLogger(ShmContext.class);

    static final long PID = ProcessHandle.current().pid();

    /** Creates the parts of a new provider. */
    static ShmContext of(ShmOptions options) {
        SharedFiles files = new SharedFiles();
        return new ShmContext(
                options,
                new SoftwareDomain(files),
                files,
                new PeerProcesses(PeerMappings.ALL),
                new RateLimitedLog(LOG),
                new RateLimitedLog(LOG));
    }
}
