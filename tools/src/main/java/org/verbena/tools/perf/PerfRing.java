package org.verbena.tools.perf;

import io.netty.channel.EventLoop;
import io.netty.util.concurrent.Future;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.verbena.api.RdmaChannel;
import org.verbena.api.ring.RecordRing;
import org.verbena.transport.RemoteMemory;

/** Records in rings of memory that the peer writes: one at the server, and one here for records that come back. */
final class PerfRing implements PerfSubject {
    /** The longest record. */
    static final int MAX_BYTES = 8 << 20;

    private static final int MIN_CAPACITY = 64 << 10;
    /** A record is at most a quarter of its ring; with twice that the ring fills while room is returned. */
    private static final int RECORDS = 8;

    /** The largest ring. */
    static final int MAX_CAPACITY = RECORDS * MAX_BYTES;

    private final PerfConnection connection;
    private final RdmaChannel channel;
    private final Echoes echoes;
    private @Nullable RecordRing last;

    PerfRing(PerfConnection connection) {
        this.connection = connection;
        channel = connection.client().channel();
        echoes = new Echoes(channel.eventLoop());
        channel.closeFuture().addListener(closed -> echoes.fail("the server closed the connection"));
    }

    /** The size of a ring for records of that length, this many at once. */
    static int capacityBytes(int bytes, int window) {
        return Math.clamp(bytes * Math.max(RECORDS, 2L * window), MIN_CAPACITY, MAX_CAPACITY);
    }

    @Override
    public Supplier<Future<?>> operation(PerfTest test, boolean isLatency, int bytes, PerfClient.Load load)
            throws InterruptedException {
        int capacityBytes = capacityBytes(bytes, load.window());
        RecordRing ring = new RecordRing(channel, capacityBytes, Integer.MAX_VALUE, record -> echoes.arrived());
        // Behind the last one, which gets its own records until the server has the new one.
        channel.pipeline().addLast(ring);
        RemoteMemory token =
                connection.ring(isLatency ? PerfProtocol.ECHO : PerfProtocol.COUNT, capacityBytes, ring.token());
        RecordRing before = last;
        last = ring;
        channel.eventLoop()
                .submit(() -> {
                    if (before != null) {
                        channel.pipeline().remove(before);
                    }
                    ring.begin(token);
                })
                .sync();
        Supplier<Future<?>> sending = () -> ring.send(PerfConnection.filled(channel, bytes));
        return isLatency ? () -> echoes.expect(sending.get()) : sending;
    }

    @Override
    public EventLoop loop() {
        return channel.eventLoop();
    }

    @Override
    public long arrived() throws InterruptedException {
        return connection.counted();
    }

    @Override
    public void close() {}
}
