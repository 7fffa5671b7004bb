package org.verbena.transport.shm;

import java.io.IOException;
import java.util.HashMap;
import java.util.Map;
import org.verbena.transport.shm.ffm.ProcessFiles;

/** The processes that a provider has connections with. Any thread. */
final class PeerProcesses {
    private final PeerMappings mappings;

    /** By their numbers. Guarded by this. */
    private final Map<Long, PeerProcess> processes = new HashMap<>();

    PeerProcesses(PeerMappings mappings) {
        this.mappings = mappings;
    }

    /**
     * Finds a process. {@link PeerProcess#leave} follows.
     *
     * @param pid its number, which the kernel may have given to several, one after the other
     * @return the one that has it now
     * @throws IOException there is none, or it is not this user's
     */
    synchronized PeerProcess find(long pid) throws IOException {
        PeerProcess found = processes.get(pid);
        if (found == null || !found.files().isAlive()) {
            found = new PeerProcess(this, mappings, pid, ProcessFiles.of(pid));
            processes.put(pid, found);
        }
        found.connections++;
        return found;
    }

    synchronized void retain(PeerProcess process) {
        process.connections++;
    }

    synchronized void leave(PeerProcess process) {
        if (--process.connections == 0) {
            processes.remove(process.pid, process);
            process.files().close();
        }
    }
}
