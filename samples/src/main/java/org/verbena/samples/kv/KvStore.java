package org.verbena.samples.kv;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import org.verbena.samples.command.CommandFailure;
import org.verbena.transport.MemoryDomain;
import org.verbena.transport.MemoryDomain.Access;
import org.verbena.transport.RegisteredMemory;

/**
 * The key-value server's memory, as {@link KvFormat} describes it. One thread at a time changes it; adapters read it at
 * any time.
 */
final class KvStore implements AutoCloseable {
    private static final VarHandle LONG = ValueLayout.JAVA_LONG.varHandle();
    private static final int PAGE_BYTES = 4096;

    /** The clock's first value, so that no lock word is 0. */
    private static final long FIRST_MILLIS = 1000;

    private final KvFormat.Geometry geometry;
    private final Arena arena = Arena.ofShared();
    private final MemorySegment data;
    private final MemorySegment locks;
    private final Map<MemoryDomain, Registration> registrations = new ConcurrentHashMap<>();

    // Guarded by its server.
    private long keys;

    private long clockNanos = TimeUnit.MILLISECONDS.toNanos(FIRST_MILLIS);
    private long tickNanos = System.nanoTime();

    /** The regions whose tokens clients get. */
    private record Registration(RegisteredMemory data, RegisteredMemory locks, boolean atomics) {}

    KvStore(KvFormat.Geometry geometry) {
        if (ByteOrder.nativeOrder() != ByteOrder.LITTLE_ENDIAN) {
            throw new UnsupportedOperationException(
                    "kv-server's memory is little endian, and atomics are in the processor's order, which here is not");
        }
        this.geometry = geometry;
        try {
            data = arena.allocate(geometry.dataBytes(), PAGE_BYTES);
            locks = arena.allocate(geometry.lockBytes(), PAGE_BYTES);
        } catch (OutOfMemoryError tooMuch) {
            arena.close();
            throw new CommandFailure(
                    (geometry.dataBytes() + geometry.lockBytes()) / (1 << 20)
                            + " MiB are not available: use fewer --slots, a"
                            + " smaller --value-size, or more memory for the process or its container",
                    tooMuch);
        }
        tick();
    }

    KvFormat.Geometry geometry() {
        return geometry;
    }

    long keys() {
        return keys;
    }

    /** The memory that clients read. */
    MemorySegment data() {
        return data;
    }

    /** The tokens for clients of a device: of the data, and of the locks if it has atomics. */
    List<byte[]> tokens(MemoryDomain domain, boolean atomics) {
        Registration registered = registrations.computeIfAbsent(domain, device -> register(device, atomics));
        List<byte[]> tokens = new ArrayList<>();
        tokens.add(registered.data.remote().encode());
        if (registered.atomics) {
            tokens.add(registered.locks.remote().encode());
        }
        return tokens;
    }

    private Registration register(MemoryDomain domain, boolean atomics) {
        RegisteredMemory readable = domain.register(data, EnumSet.of(Access.REMOTE_READ));
        try {
            EnumSet<Access> access = EnumSet.of(Access.LOCAL_WRITE, Access.REMOTE_READ);
            if (atomics) {
                access.add(Access.REMOTE_ATOMIC);
            }
            return new Registration(readable, domain.register(locks, access), atomics);
        } catch (RuntimeException refused) {
            readable.close();
            throw refused;
        }
    }

    /** Moves the clock, between requests; never by more than has gone by since the last time. */
    void tick() {
        long nowNanos = System.nanoTime();
        clockNanos += Math.min(nowNanos - tickNanos, TimeUnit.MILLISECONDS.toNanos(KvFormat.CLOCK_STEP_MILLIS));
        tickNanos = nowNanos;
        LONG.setRelease(data, KvFormat.CLOCK_OFFSET, TimeUnit.NANOSECONDS.toMillis(clockNanos));
    }

    /**
     * Sets a key's value.
     *
     * @param lockWord of the lock that the client holds on it, or 0
     * @return the new version
     * @throws CommandFailure if the key is locked, or there is no room
     */
    long put(byte[] key, ByteBuffer value, long lockWord) {
        if (value.remaining() > geometry.maxValueBytes(key.length)) {
            throw new CommandFailure("a value of " + value.remaining() + " bytes is too long, the limit is "
                    + geometry.maxValueBytes(key.length) + ": start kv-server with a larger --value-size");
        }
        long hash = KvFormat.hash(key);
        int entry = find(key, hash);
        checkLock(entry, lockWord);
        MemorySegment slot = data.asSlice(KvFormat.Geometry.entryOffset(entry), KvFormat.ENTRY_BYTES);
        long before = slot.get(ValueLayout.JAVA_LONG, 0);
        long version = before + 2;
        long recordOffset = geometry.recordOffset(entry, version);
        int recordBytes = KvFormat.Item.recordBytes(key, value.remaining());
        // Each step can be seen before the next one: while the record is written the entry names the other one.
        KvFormat.Item.write(data.asSlice(recordOffset, geometry.recordBytes()).asByteBuffer(), version, key, value);
        VarHandle.storeStoreFence();
        LONG.setOpaque(slot, 0L, before + 1);
        VarHandle.storeStoreFence();
        ByteBuffer entryBytes = ByteBuffer.allocate(KvFormat.ENTRY_BYTES);
        new KvFormat.Entry(version, hash, recordOffset, recordBytes).write(entryBytes);
        MemorySegment.copy(
                MemorySegment.ofBuffer(entryBytes), Long.BYTES, slot, Long.BYTES, KvFormat.ENTRY_BYTES - Long.BYTES);
        LONG.setRelease(slot, 0L, version);
        if (before == 0) {
            keys++;
        }
        return version;
    }

    /** The key's entry, or one that is free for it. */
    private int find(byte[] key, long hash) {
        int first = geometry.firstEntryOf(hash);
        int free = -1;
        for (int entry = first; entry < first + KvFormat.WINDOW; entry++) {
            MemorySegment slot = data.asSlice(KvFormat.Geometry.entryOffset(entry), KvFormat.ENTRY_BYTES);
            if (slot.get(ValueLayout.JAVA_LONG, 0) == 0) {
                free = free < 0 ? entry : free;
            } else if (slot.get(ValueLayout.JAVA_LONG, 8) == hash && Arrays.equals(key, keyOf(slot))) {
                return entry;
            }
        }
        if (free < 0) {
            throw new CommandFailure("there is no room for this key, with " + keys + " keys in " + geometry.slots()
                    + " slots: start kv-server with more --slots");
        }
        return free;
    }

    private byte[] keyOf(MemorySegment slot) {
        ByteBuffer record = data.asSlice(slot.get(ValueLayout.JAVA_LONG, 16), geometry.recordBytes())
                .asByteBuffer()
                .order(ByteOrder.LITTLE_ENDIAN);
        byte[] key = new byte[record.getInt(8)];
        record.get(16, key);
        return key;
    }

    private void checkLock(int entry, long given) {
        long word = (long) LONG.getAcquire(locks, (long) entry * KvFormat.LOCK_BYTES);
        long leftMillis = KvFormat.untilMillis(word) - (long) LONG.get(data, KvFormat.CLOCK_OFFSET);
        if (given != 0 && (given != word || leftMillis <= 0)) {
            throw new CommandFailure("the lock for this change has expired"
                    + (leftMillis > 0 ? "; owner " + KvFormat.owner(word) + " has it now" : ""));
        }
        if (given == 0 && leftMillis > 0) {
            throw new CommandFailure("the key is locked by owner " + KvFormat.owner(word) + " for " + leftMillis
                    + " ms, unless it renews it");
        }
    }

    /** Frees the memory once no adapter uses it any more. */
    @Override
    public void close() {
        int[] known = {1};
        Runnable gone = () -> {
            synchronized (known) {
                if (--known[0] == 0) {
                    arena.close();
                }
            }
        };
        for (Registration registration : registrations.values()) {
            for (RegisteredMemory memory : List.of(registration.data, registration.locks)) {
                synchronized (known) {
                    known[0]++;
                }
                memory.whenGone(gone);
                memory.close();
            }
        }
        gone.run();
    }
}
