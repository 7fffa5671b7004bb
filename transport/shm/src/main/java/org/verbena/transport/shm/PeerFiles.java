package org.verbena.transport.shm;

import io.netty.util.collection.IntObjectHashMap;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The files of its process that the peer of one connection has announced. None is opened before it is used. Not
 * thread-safe; confined to the loop's thread.
 */
final class PeerFiles implements Control.Files {
    private static final Logger LOG = LoggerFactory.getLogger(PeerFiles.class);

    /** A peer with more files has the rest read by its own loop. */
    private static final int MAX_FILES = 4096;

    /** Null if it is not sure which process the peer is: then nothing of it is mapped. */
    private final @Nullable PeerProcess process;

    /** Null while the peer has none. */
    private @Nullable IntObjectHashMap<Announced> announced;

    private static final class Announced {
        final int descriptor;
        final long lengthBytes;
        final boolean isWritable;
        private boolean wasSought;
        private @Nullable PeerFile file;

        Announced(int descriptor, long lengthBytes, boolean isWritable) {
            this.descriptor = descriptor;
            this.lengthBytes = lengthBytes;
            this.isWritable = isWritable;
        }
    }

    PeerFiles(@Nullable PeerProcess process) {
        this.process = process;
    }

    /** The peer has a file to map. One that cannot be mapped is ignored. */
    @Override
    public void add(int number, int descriptor, long lengthBytes, boolean isWritable) {
        if (process == null || lengthBytes <= 0 || descriptor < 0) {
            return;
        }
        IntObjectHashMap<Announced> all = announced;
        if (all == null) {
            all = new IntObjectHashMap<>();
            announced = all;
        }
        if (all.size() < MAX_FILES) {
            release(all.put(number, new Announced(descriptor, lengthBytes, isWritable)));
        }
    }

    /** The peer has freed a file. */
    @Override
    public void remove(int number) {
        IntObjectHashMap<Announced> all = announced;
        if (all != null) {
            release(all.remove(number));
        }
    }

    /**
     * Finds a file.
     *
     * @param number that the peer has given to it
     * @return null if there is none that could be mapped
     */
    @Nullable PeerFile find(int number) {
        IntObjectHashMap<Announced> all = announced;
        Announced found = all == null ? null : all.get(number);
        if (found == null) {
            return null;
        }
        if (!found.wasSought && process != null) {
            found.wasSought = true;
            try {
                found.file = process.find(found.descriptor, found.lengthBytes, found.isWritable);
            } catch (IOException e) {
                LOG.debug("the peer does not have what it shares; its own loop accesses it", e);
            }
        }
        return found.file;
    }

    private void release(@Nullable Announced old) {
        if (old != null && old.file != null && process != null) {
            process.release(old.file);
        }
    }

    /** The connection has ended. Idempotent. */
    void close() {
        IntObjectHashMap<Announced> all = announced;
        if (all != null && process != null) {
            announced = null;
            List<PeerFile> used = new ArrayList<>();
            for (Announced each : all.values()) {
                if (each.file != null) {
                    used.add(each.file);
                }
            }
            process.release(used);
        }
    }
}
