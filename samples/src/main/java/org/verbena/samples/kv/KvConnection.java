package org.verbena.samples.kv;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.util.concurrent.Future;
import io.netty.util.concurrent.Promise;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Optional;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.verbena.api.RdmaChannel;
import org.verbena.api.RdmaClient;
import org.verbena.samples.command.CommandFailure;
import org.verbena.transport.RemoteMemory;

/**
 * A client of {@code kv-server}: reads its memory, takes its locks, and asks it for the rest. {@link KvFormat} has the
 * protocol.
 */
final class KvConnection implements AutoCloseable {
    /** The first tries follow each other without a pause: a put takes less than a microsecond. */
    private static final int TRIES_AT_ONCE = 8;

    private static final long TRY_PAUSE_MILLIS = 1;
    private static final int LOCK_PAUSE_MILLIS = 10;

    private final RdmaClient client;
    private final RdmaChannel channel;
    private final KvFormat.Geometry geometry;
    private final RemoteMemory data;
    private final @Nullable RemoteMemory locks;
    private final int owner;
    private final LongAdder tornReads = new LongAdder();

    KvConnection(String provider, String host, int port) throws InterruptedException {
        client = RdmaClient.builder().provider(provider).connect(host, port);
        channel = client.channel();
        try {
            ByteBuffer layout = askForLayout();
            geometry = new KvFormat.Geometry(layout.getInt(), layout.getInt());
            owner = layout.getInt();
            data = readToken(layout);
            locks = layout.hasRemaining() ? readToken(layout) : null;
        } catch (RuntimeException | InterruptedException failure) {
            client.close();
            throw failure;
        }
    }

    private ByteBuffer askForLayout() throws InterruptedException {
        try {
            return ask(ByteBuffer.allocate(2).put(KvFormat.LAYOUT).put((byte) KvFormat.VERSION));
        } catch (CommandFailure failure) {
            throw failure;
        } catch (RuntimeException lost) {
            throw new CommandFailure(
                    channel.remoteAddress() + " gave no answer; is it a kv-server? " + lost.getMessage(), lost);
        }
    }

    private static RemoteMemory readToken(ByteBuffer in) {
        byte[] token = new byte[RemoteMemory.ENCODED_BYTES];
        in.get(token);
        return RemoteMemory.decode(token);
    }

    RdmaClient client() {
        return client;
    }

    /** The number that the server gave this client. */
    int owner() {
        return owner;
    }

    /** How often a read did not verify. */
    long tornReads() {
        return tornReads.sum();
    }

    // ---- what the server has no part in

    /**
     * Reads a value.
     *
     * @return the value; empty if there is no such key
     */
    Future<Optional<KvFormat.Item>> get(byte[] key) {
        long hash = KvFormat.hash(key);
        return new Lookup(key, hash, geometry.firstEntryOf(hash), KvFormat.WINDOW).start();
    }

    /** Reads all values, one after the other: each as it is when it is read. */
    void list(Consumer<KvFormat.Item> consumer) throws InterruptedException {
        for (int first = 0; first < geometry.entries(); first += KvFormat.WINDOW) {
            int count = Math.min(KvFormat.WINDOW, geometry.entries() - first);
            ByteBuf entries = read(data, KvFormat.Geometry.entryOffset(first), count * KvFormat.ENTRY_BYTES);
            try {
                for (int i = 0; i < count; i++) {
                    KvFormat.Entry entry = KvFormat.Entry.read(entries, i * KvFormat.ENTRY_BYTES);
                    if (entry == null || entry.version() != 0) {
                        await(new Lookup(null, 0, first + i, 1).start()).ifPresent(consumer);
                    }
                }
            } finally {
                entries.release();
            }
        }
    }

    /** One get: the entries, then the record, and again if what was read was torn. On the channel's loop. */
    private final class Lookup {
        private final byte @Nullable [] key;
        private final long hash;
        private final int first;
        private final int count;
        private final Promise<Optional<KvFormat.Item>> outcome =
                channel.eventLoop().newPromise();
        private int tries;

        /**
         * Looks for one.
         *
         * @param key null for whatever key is there
         */
        Lookup(byte @Nullable [] key, long hash, int first, int count) {
            this.key = key;
            this.hash = hash;
            this.first = first;
            this.count = count;
        }

        Future<Optional<KvFormat.Item>> start() {
            tries++;
            read0(KvFormat.Geometry.entryOffset(first), count * KvFormat.ENTRY_BYTES, this::onEntries);
            return outcome;
        }

        private void read0(long offsetBytes, int bytes, Consumer<ByteBuf> next) {
            ByteBuf into = channel.alloc().buffer(bytes, bytes);
            channel.read(data, offsetBytes, into).addListener(done -> {
                try {
                    if (done.isSuccess()) {
                        next.accept(into);
                    } else {
                        outcome.tryFailure(done.cause());
                    }
                } catch (RuntimeException failure) {
                    outcome.tryFailure(failure);
                } finally {
                    into.release();
                }
            });
        }

        private void onEntries(ByteBuf entries) {
            followFrom(entries, 0, false);
        }

        /** Goes through the entries for one that may be the key's. */
        private void followFrom(ByteBuf entries, int from, boolean tornBefore) {
            boolean torn = tornBefore;
            for (int i = from; i < count; i++) {
                KvFormat.Entry entry = KvFormat.Entry.read(entries, i * KvFormat.ENTRY_BYTES);
                if (entry == null) {
                    torn = true;
                } else if (entry.version() != 0 && (key == null || entry.hash() == hash)) {
                    follow(entries, i, entry, torn);
                    return;
                }
            }
            if (torn) {
                tryAgain();
            } else {
                outcome.trySuccess(Optional.empty());
            }
        }

        private void follow(ByteBuf entries, int index, KvFormat.Entry entry, boolean torn) {
            entries.retain();
            read0(entry.recordOffset(), entry.recordBytes(), record -> {
                try {
                    KvFormat.Item item = KvFormat.Item.read(first + index, entry, record);
                    if (item == null) {
                        tryAgain();
                    } else if (key == null || Arrays.equals(key, item.key())) {
                        outcome.trySuccess(Optional.of(item));
                    } else {
                        followFrom(entries, index + 1, torn); // another key of the same hash
                    }
                } finally {
                    entries.release();
                }
            });
        }

        private void tryAgain() {
            tornReads.increment();
            if (tries >= KvFormat.MAX_TRIES) {
                outcome.tryFailure(new CommandFailure("the data read was torn " + tries
                        + " times: the server was stopped during a put, or its memory is damaged"));
            } else if (tries < TRIES_AT_ONCE) {
                start();
            } else {
                channel.eventLoop().schedule(this::start, TRY_PAUSE_MILLIS, TimeUnit.MILLISECONDS);
            }
        }
    }

    // ---- locks, in which it has no part either

    /** A lock that was taken. One thread. */
    final class Lock {
        private final int entry;
        private final long leaseMillis;
        private long word;
        private long endNanos;

        private Lock(int entry, long leaseMillis, long word, long endNanos) {
            this.entry = entry;
            this.leaseMillis = leaseMillis;
            this.word = word;
            this.endNanos = endNanos;
        }

        /** The lock word that the server expects with a put. */
        long word() {
            return word;
        }

        /** How long it is certain to be held; by this process's own clock, from before it was taken. */
        long leftMillis() {
            return TimeUnit.NANOSECONDS.toMillis(endNanos - System.nanoTime());
        }

        /** Holds it for another lease from now on, if it is still this client's. */
        void renew() throws InterruptedException {
            long beginNanos = System.nanoTime();
            long next = KvFormat.lockWord(readLong(data, KvFormat.CLOCK_OFFSET) + leaseMillis, owner);
            if (!swap(word, next)) {
                throw new CommandFailure("the lock expired, and another client has it");
            }
            word = next;
            endNanos = endOf(beginNanos, leaseMillis);
        }

        /** Releases it; false if it had expired and another client has taken it. */
        boolean release() throws InterruptedException {
            long held = word;
            word = 0;
            return held == 0 || swap(held, 0);
        }

        private boolean swap(long expected, long value) throws InterruptedException {
            return await(channel.compareAndSwap(lockMemory(), lockOffset(entry), expected, value)) == expected;
        }
    }

    /**
     * Takes a key's lock.
     *
     * @param leaseMillis how long it is held unless renewed
     * @param waitMillis how long to try while another client holds it
     * @throws UnsupportedOperationException without atomics
     */
    Lock lock(byte[] key, long leaseMillis, long waitMillis) throws InterruptedException {
        RemoteMemory memory = lockMemory();
        int entry = await(get(key))
                .orElseThrow(() -> new CommandFailure(
                        "there is no key " + new String(key, StandardCharsets.UTF_8) + " to lock: put it first"))
                .entry();
        long deadlineNanos = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(waitMillis);
        while (true) {
            long beginNanos = System.nanoTime();
            long now = readLong(data, KvFormat.CLOCK_OFFSET);
            long held = readLong(memory, lockOffset(entry));
            long leftMillis = KvFormat.untilMillis(held) - now;
            if (leftMillis <= 0) {
                long mine = KvFormat.lockWord(now + leaseMillis, owner);
                if (await(channel.compareAndSwap(memory, lockOffset(entry), held, mine)) == held) {
                    return new Lock(entry, leaseMillis, mine, endOf(beginNanos, leaseMillis));
                }
            }
            if (System.nanoTime() - deadlineNanos >= 0) {
                throw new CommandFailure("the lock was not available within " + waitMillis + " ms: owner "
                        + KvFormat.owner(held) + " holds it for another " + Math.max(0, leftMillis)
                        + " ms, unless it renews it");
            }
            TimeUnit.MILLISECONDS.sleep(1 + ThreadLocalRandom.current().nextInt(LOCK_PAUSE_MILLIS));
        }
    }

    /** Until when a lock is certain to be held if its lease began after this time. */
    private static long endOf(long beginNanos, long leaseMillis) {
        return beginNanos + TimeUnit.MILLISECONDS.toNanos(leaseMillis - KvFormat.CLOCK_LEAD_MILLIS);
    }

    private static long lockOffset(int entry) {
        return (long) entry * KvFormat.LOCK_BYTES;
    }

    private RemoteMemory lockMemory() {
        RemoteMemory memory = locks;
        if (memory == null) {
            throw new UnsupportedOperationException("locks need compare-and-swap, and " + client.provider() + " at "
                    + channel.remoteAddress()
                    + " has no atomics there (soft iWARP and many iWARP adapters have none): put"
                    + " and get work; for locks use RoCE, InfiniBand or --provider soft at both ends");
        }
        return memory;
    }

    // ---- what the server is asked for

    /**
     * Sets a value.
     *
     * @param lockWord of the lock that it is changed under, or 0
     * @return its new version; fails with {@link CommandFailure} if the server refuses
     */
    long put(byte[] key, byte[] value, long lockWord) throws InterruptedException {
        return ask(ByteBuffer.allocate(1 + Long.BYTES + Short.BYTES + key.length + value.length)
                        .put(KvFormat.PUT)
                        .putLong(lockWord)
                        .putShort((short) key.length)
                        .put(key)
                        .put(value))
                .getLong();
    }

    /** Requests that the server has served, this one among them; puts among them; keys that it has. */
    record Counters(long requests, long puts, long keys) {}

    Counters counters() throws InterruptedException {
        ByteBuffer answer = ask(ByteBuffer.allocate(1).put(KvFormat.COUNTERS));
        return new Counters(answer.getLong(), answer.getLong(), answer.getLong());
    }

    private ByteBuffer ask(ByteBuffer request) throws InterruptedException {
        ByteBuf message = Unpooled.wrappedBuffer(request.flip());
        ByteBuf answer = await(client.request(message));
        try {
            byte kind = answer.isReadable() ? answer.readByte() : -1;
            if (kind == KvFormat.FAILED) {
                throw new CommandFailure("the server refuses: " + answer.toString(StandardCharsets.UTF_8));
            }
            if (kind != KvFormat.OK) {
                throw new CommandFailure(channel.remoteAddress() + " does not answer as a kv-server does; is it one?");
            }
            byte[] rest = new byte[answer.readableBytes()];
            answer.readBytes(rest);
            return ByteBuffer.wrap(rest);
        } finally {
            answer.release();
        }
    }

    private ByteBuf read(RemoteMemory from, long offsetBytes, int bytes) throws InterruptedException {
        ByteBuf into = channel.alloc().buffer(bytes, bytes);
        try {
            await(channel.read(from, offsetBytes, into));
            return into.retain();
        } finally {
            into.release();
        }
    }

    private long readLong(RemoteMemory from, long offsetBytes) throws InterruptedException {
        ByteBuf into = read(from, offsetBytes, Long.BYTES);
        try {
            return into.readLongLE();
        } finally {
            into.release();
        }
    }

    static <T> T await(Future<T> future) throws InterruptedException {
        return future.sync().getNow();
    }

    @Override
    public void close() {
        client.close();
    }
}
