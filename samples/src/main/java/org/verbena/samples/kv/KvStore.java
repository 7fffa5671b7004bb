package org.verbena.samples.kv;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.util.Objects;
import org.verbena.api.RdmaChannel;
import org.verbena.api.ServerMemory;
import org.verbena.samples.command.CommandFailure;
import org.verbena.transport.MemoryDomain.Access;
import org.verbena.transport.RemoteMemory;

/**
 * The key-value server's memory, as {@link KvFormat} describes it. Any thread; only one at a time changes it, and
 * adapters read it at any time.
 */
final class KvStore {
    private static final int PAGE_BYTES = 4096;

    private final KvFormat.Geometry geometry;
    private final MemorySegment memory;

    /** The same, for all clients. */
    private final ServerMemory served;

    /** Takes the memory, until the process ends. */
    KvStore(KvFormat.Geometry geometry) {
        this.geometry = geometry;
        try {
            memory = Arena.global().allocate(geometry.memoryBytes(), PAGE_BYTES);
        } catch (OutOfMemoryError tooMuch) {
            throw new CommandFailure(
                    (geometry.memoryBytes() >> 20)
                            + " MiB are not available: use fewer --slots, a smaller --value-size,"
                            + " or more memory for the process or its container",
                    tooMuch);
        }
        served = ServerMemory.of(memory, Access.REMOTE_READ);
    }

    KvFormat.Geometry geometry() {
        return geometry;
    }

    /** The right to read the memory, for a client. */
    RemoteMemory tokenFor(RdmaChannel channel) {
        return served.tokenFor(channel);
    }

    /** A slot in which a key can be. */
    ByteBuffer slot(byte[] key, int probe) {
        return memory.asSlice(geometry.offsetOf(key, probe), geometry.slotBytes())
                .asByteBuffer();
    }

    /**
     * Sets a key's value.
     *
     * @throws CommandFailure if there is no room
     */
    synchronized void put(byte[] key, byte[] value) {
        if (value.length > geometry.maxValueBytes(key.length)) {
            throw new CommandFailure("a value of " + value.length + " bytes is too long, the limit is "
                    + geometry.maxValueBytes(key.length) + ": start kv-server with a larger --value-size");
        }
        for (int probe = 0; probe < KvFormat.PROBES; probe++) {
            ByteBuffer slot = slot(key, probe);
            KvFormat.Item there = Objects.requireNonNull(KvFormat.Item.read(slot), "nobody else writes");
            if (there.isNone() || there.isOf(key)) {
                new KvFormat.Item(key, value).write(slot);
                return;
            }
        }
        throw new CommandFailure(
                "there is no room for this key in " + geometry.slots() + " slots: start kv-server with more --slots");
    }
}
