package org.verbena.api.internal.memory;

import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.verbena.transport.spi.PeerGroup;

/**
 * A server and its connections, whose peers share memory: until the server is closed and the last of its connections,
 * since clients use memory while the server shuts down. Any thread.
 */
public final class ServerPeers {
    private final PeerGroup group = new PeerGroup();

    // Guarded by this.

    /** The server itself, while it is open, and its connections. */
    private int open = 1;

    /** What has a region for this server. */
    private Set<ServerRegions> memories = Collections.emptySet();

    /** As devices know them. */
    public PeerGroup group() {
        return group;
    }

    /**
     * Adds a connection.
     *
     * @return whether it counts, and has to {@link #leave}; false if all have left
     */
    public synchronized boolean enter() {
        if (open == 0) {
            return false;
        }
        open++;
        return true;
    }

    /** The server, or one of its connections, is closed. The last one closes the regions. */
    public void leave() {
        List<ServerRegions> ended;
        synchronized (this) {
            if (--open > 0) {
                return;
            }
            ended = List.copyOf(memories);
            memories = Set.of();
        }
        ended.forEach(memory -> memory.onEnd(this));
    }

    /**
     * Notes that memory has a region for this server.
     *
     * @return false if all have left: then it may have none
     */
    synchronized boolean use(ServerRegions memory) {
        if (open == 0) {
            return false;
        }
        if (memories.isEmpty()) {
            memories = new HashSet<>();
        }
        memories.add(memory);
        return true;
    }

    /** The memory is closed. */
    synchronized void forget(ServerRegions memory) {
        if (open > 0) {
            memories.remove(memory);
        }
    }
}
