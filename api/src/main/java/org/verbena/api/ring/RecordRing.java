package org.verbena.api.ring;

import io.netty.buffer.ByteBuf;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.util.concurrent.Future;
import io.netty.util.concurrent.Promise;
import io.netty.util.concurrent.PromiseNotifier;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.channels.ClosedChannelException;
import java.util.ArrayDeque;
import java.util.Set;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.verbena.api.ImmediateDataEvent;
import org.verbena.api.RdmaChannel;
import org.verbena.transport.MemoryDomain.Access;
import org.verbena.transport.RegisteredMemory;
import org.verbena.transport.RemoteMemory;

/**
 * Sends records by RDMA WRITE: each end has a ring of memory that its peer fills, and no record is overwritten before
 * it was read.
 *
 * <pre>{@code
 *   writer                                              reader
 *     |  ring of the reader's memory:                     |
 *     |  [ free | records that were not read | free ]     |
 *     |                                                   |
 *     |-- WRITE with immediate 0, the record ------------>|  reads it where it lies
 *     |                                                   |  ... and more, until a quarter of the ring was read
 *     |<------------------- immediate n, without bytes ---|  n bytes may be written again
 * }</pre>
 *
 * <p>A plain WRITE neither notifies the reader nor checks for room. Here immediate data notify the reader, and the
 * writer counts the room and waits while the ring is full. A record is contiguous. One that does not fit before the end
 * of the ring goes to its start; both ends know that from the lengths, so the ring holds nothing but records. Both ends
 * need immediate data: InfiniBand, RoCE, the soft provider, but not iWARP without RFC 7306.
 *
 * <p>It is a handler of its channel's pipeline. Add it at once: its memory is released when it is removed, at the
 * latest when the channel ends. Then send the {@link #token} to the peer, and call {@link #begin} with the peer's token
 * before either end sends.
 */
public final class RecordRing extends ChannelInboundHandlerAdapter {
    /**
     * A record may take one part of the ring, and room is returned part by part: so the longest record always fits
     * eventually.
     */
    private static final int PARTS = 4;

    private static final int RECORD = 0;
    private static final int PAGE_BYTES = 4096;

    /** How far one end of a ring is. */
    private static final class Position {
        private final int capacityBytes;
        private int offset;

        Position(int capacityBytes) {
            this.capacityBytes = capacityBytes;
        }

        /** The bytes that the next record takes: itself, and the rest of the ring if it does not fit there. */
        int taken(int bytes) {
            return fitsBehind(bytes) ? bytes : bytes + capacityBytes - offset;
        }

        private boolean fitsBehind(int bytes) {
            return bytes <= capacityBytes - offset;
        }

        /** Where the next record begins; the one after it follows. */
        int next(int bytes) {
            int begin = fitsBehind(bytes) ? offset : 0;
            offset = begin + bytes;
            return begin;
        }
    }

    private record Waiting(ByteBuf record, Promise<Void> done) {}

    private final RdmaChannel channel;
    private final Consumer<MemorySegment> reader;
    private final int maxWaitingBytes;
    private final RegisteredMemory memory;
    private final Position reading;
    /** Bytes that were read and not returned yet. */
    private int readBytes;

    private @Nullable RemoteMemory peer;
    private Position writing = new Position(0);
    /** Bytes that the peer has not returned yet. */
    private int usedBytes;

    private final ArrayDeque<Waiting> waiting = new ArrayDeque<>();
    private long waitingBytes;

    /**
     * Creates this end's ring.
     *
     * @param channel active
     * @param capacityBytes of this end's ring, 4 or more
     * @param maxWaitingBytes how many bytes of records may wait for room in the peer's ring; {@link #send} fails
     *     beyond
     * @param reader gets each record on the event loop; the record is valid until it returns
     * @throws IllegalArgumentException a smaller capacity
     */
    public RecordRing(RdmaChannel channel, int capacityBytes, int maxWaitingBytes, Consumer<MemorySegment> reader) {
        if (capacityBytes < PARTS) {
            throw new IllegalArgumentException("a ring of " + capacityBytes + " bytes: " + PARTS + " or more");
        }
        this.channel = channel;
        this.maxWaitingBytes = maxWaitingBytes;
        this.reader = reader;
        memory = channel.memory()
                .register(
                        Arena.ofAuto().allocate(capacityBytes, PAGE_BYTES),
                        Set.of(Access.LOCAL_WRITE, Access.REMOTE_WRITE));
        reading = new Position(capacityBytes);
    }

    /**
     * Returns the token with which the peer writes into this end's ring. It is a secret of the two ends. Any thread.
     *
     * @return the memory of this end's ring
     */
    public RemoteMemory token() {
        return memory.remote();
    }

    /**
     * Sets the peer's ring. Event loop only.
     *
     * @param token the peer's
     * @throws IllegalArgumentException it cannot be a ring
     */
    public void begin(RemoteMemory token) {
        long capacityBytes = token.lengthBytes();
        if (capacityBytes < PARTS || capacityBytes > Integer.MAX_VALUE) {
            throw new IllegalArgumentException("a ring of " + capacityBytes + " bytes");
        }
        peer = token;
        writing = new Position((int) capacityBytes);
    }

    /**
     * Returns the longest record that the peer's ring takes: a quarter of it.
     *
     * @return in bytes; 0 before {@link #begin}
     */
    public int mostRecordBytes() {
        return writing.capacityBytes / PARTS;
    }

    /**
     * Writes a record, once there is room for it and those before it. Event loop only.
     *
     * @param record 1 to {@link #mostRecordBytes} bytes; its ownership is taken
     * @return done when the write has completed. Fails with IllegalArgumentException for other lengths, with
     *     IllegalStateException if too much waits already, with UnsupportedOperationException without immediate data
     */
    public Future<Void> send(ByteBuf record) {
        RemoteMemory ring = peer;
        int bytes = record.readableBytes();
        if (ring == null || bytes < 1 || bytes > mostRecordBytes()) {
            record.release();
            return channel.eventLoop()
                    .newFailedFuture(
                            new IllegalArgumentException("a record of " + bytes + " bytes: 1 to " + mostRecordBytes()));
        }
        if (waiting.isEmpty() && fits(bytes)) {
            return write(ring, record);
        }
        if (waitingBytes + bytes > maxWaitingBytes) {
            record.release();
            return channel.eventLoop()
                    .newFailedFuture(new IllegalStateException(
                            "the peer does not read: its ring is full, and " + waitingBytes + " bytes wait"));
        }
        Promise<Void> done = channel.eventLoop().newPromise();
        waiting.add(new Waiting(record, done));
        waitingBytes += bytes;
        return done;
    }

    private boolean fits(int bytes) {
        return writing.taken(bytes) <= writing.capacityBytes - usedBytes;
    }

    private Future<Void> write(RemoteMemory ring, ByteBuf record) {
        int bytes = record.readableBytes();
        usedBytes += writing.taken(bytes);
        try {
            return channel.writeWithImmediate(ring, writing.next(bytes), RECORD, record);
        } finally {
            record.release(); // the operation holds it
        }
    }

    @Override
    public void userEventTriggered(ChannelHandlerContext context, Object event) {
        if (!(event instanceof ImmediateDataEvent written)) {
            context.fireUserEventTriggered(event);
        } else if (written.immediateData() == RECORD) {
            read(written.lengthBytes());
        } else {
            freed(written.immediateData());
        }
    }

    private void read(int bytes) {
        if (bytes < 1 || bytes > reading.capacityBytes / PARTS) {
            throw new IllegalStateException(
                    "the peer wrote a record of " + bytes + " bytes into a ring of " + reading.capacityBytes);
        }
        int taken = reading.taken(bytes);
        reader.accept(memory.segment().asSlice(reading.next(bytes), bytes));
        readBytes += taken;
        RemoteMemory ring = peer;
        if (readBytes >= reading.capacityBytes / PARTS && ring != null) {
            channel.writeWithImmediate(ring, 0, readBytes);
            readBytes = 0;
        }
    }

    private void freed(int bytes) {
        if (bytes < 0 || bytes > usedBytes) {
            throw new IllegalStateException("the peer gives back " + bytes + " bytes of " + usedBytes);
        }
        usedBytes -= bytes;
        RemoteMemory ring = peer;
        for (Waiting next = waiting.peek(); next != null && ring != null; next = waiting.peek()) {
            int length = next.record.readableBytes();
            if (!fits(length)) {
                return;
            }
            waiting.remove();
            waitingBytes -= length;
            write(ring, next.record).addListener(new PromiseNotifier<>(next.done));
        }
    }

    /** The peer broke the rules, or the reader failed: the state of the ring is unknown. */
    @Override
    public void exceptionCaught(ChannelHandlerContext context, Throwable cause) {
        context.close();
        context.fireExceptionCaught(cause);
    }

    @Override
    public void channelInactive(ChannelHandlerContext context) {
        failWaiting();
        context.fireChannelInactive();
    }

    /** Releases its memory: the peer can write no more. */
    @Override
    public void handlerRemoved(ChannelHandlerContext context) {
        failWaiting();
        memory.close();
    }

    private void failWaiting() {
        for (Waiting next = waiting.poll(); next != null; next = waiting.poll()) {
            next.record.release();
            next.done.setFailure(new ClosedChannelException());
        }
        waitingBytes = 0;
    }
}
