package org.verbena.transport.shm;

import org.verbena.transport.software.SoftwareDomain;

/**
 * The parts that all listeners and endpoints of a provider share.
 *
 * @param options how it behaves
 * @param domain the keys
 * @param files memory that peers can map
 */
record ShmContext(ShmOptions options, SoftwareDomain domain, SharedFiles files) {
    static final long PID = ProcessHandle.current().pid();

    /** Of a provider that begins. */
    static ShmContext of(ShmOptions options) {
        SharedFiles files = new SharedFiles();
        return new ShmContext(options, new SoftwareDomain(files), files);
    }
}
