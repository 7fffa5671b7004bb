package org.verbena.ratis;

import java.util.concurrent.Semaphore;
import org.apache.ratis.conf.RaftProperties;
import org.apache.ratis.server.RaftServerConfigKeys;

/**
 * How much may wait at a server for earlier requests, of all clients together: as much again as Ratis lets a leader
 * have under way ({@code raft.server.write.element-limit} and {@code byte-limit}).
 */
final class WaitingLimit {
    private final int requests;
    private final Semaphore places;
    private final Semaphore bytes;

    WaitingLimit(int requests, int bytes) {
        this.requests = requests;
        this.places = new Semaphore(requests);
        this.bytes = new Semaphore(bytes);
    }

    static WaitingLimit of(RaftProperties properties) {
        long bytes = RaftServerConfigKeys.Write.byteLimit(properties).getSize();
        return new WaitingLimit(
                RaftServerConfigKeys.Write.elementLimit(properties), (int) Math.min(bytes, Integer.MAX_VALUE));
    }

    int requests() {
        return requests;
    }

    /** Returns whether there is room, which is taken then. */
    boolean acquire(int length) {
        if (!places.tryAcquire()) {
            return false;
        }
        if (!bytes.tryAcquire(length)) {
            places.release();
            return false;
        }
        return true;
    }

    void release(int length) {
        bytes.release(length);
        places.release();
    }
}
