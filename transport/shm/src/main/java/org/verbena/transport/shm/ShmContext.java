package org.verbena.transport.shm;

import org.verbena.transport.software.SoftwareDomain;

/**
 * The parts that all listeners and endpoints of a provider share.
 *
 * @param options how it behaves
 * @param domain the keys
 */
record ShmContext(ShmOptions options, SoftwareDomain domain) {
    static final long PID = ProcessHandle.current().pid();
}
