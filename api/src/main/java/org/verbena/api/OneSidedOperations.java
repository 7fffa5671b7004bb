package org.verbena.api;

import io.netty.buffer.ByteBuf;
import io.netty.channel.EventLoop;
import io.netty.util.concurrent.DefaultPromise;
import io.netty.util.concurrent.EventExecutor;
import io.netty.util.concurrent.Future;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.nio.channels.ClosedChannelException;
import java.util.EnumSet;
import java.util.Objects;
import java.util.concurrent.RejectedExecutionException;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.transport.protocol.MessageBuffers;
import org.verbena.transport.protocol.MessageConnection;
import org.verbena.transport.protocol.OperationCallback;
import org.verbena.transport.spi.MemoryDomain;
import org.verbena.transport.spi.MemoryDomain.Access;
import org.verbena.transport.spi.RegisteredMemory;
import org.verbena.transport.spi.RemoteMemory;
import org.verbena.transport.spi.ScatterGatherList;

/**
 * The reads, writes and atomics of one channel. Each is an {@link Operation}: a promise that holds its buffers from the call to the outcome, also
 * when it is cancelled. Checks against the token are made in the call; everything else happens on the loop.
 */
final class OneSidedOperations {
    private static final Logger LOG = LoggerFactory.getLogger(OneSidedOperations.class);

    /** Pieces that an operation on buffers may have without allocating a list of its own. */
    private static final int USUAL_PIECES = 64;

    /** What an atomic works on. */
    private static final int ATOMIC_BYTES = 8;

    private static final OperationCallback OUTCOME = (context, cause) -> {
        if (context instanceof Operation<?> operation) {
            operation.finish0(cause);
        }
    };

    private final AbstractRdmaChannel channel;

    /** The loop's: filled and read within one call. */
    private final ScatterGatherList usualList = new ScatterGatherList(USUAL_PIECES);

    /** The loop's: whether a task that flushes is on its way. */
    private boolean flushScheduled;

    OneSidedOperations(AbstractRdmaChannel channel) {
        this.channel = channel;
    }

    Future<Void> read(RemoteMemory from, long offsetBytes, ByteBuf[] into) {
        return submit(new BufferRead(from, offsetBytes, into.clone()));
    }

    Future<Void> read(RemoteMemory from, long offsetBytes, RegisteredMemory into, long intoOffsetBytes, int bytes) {
        return submit(new RegionTransfer(false, from, offsetBytes, into, intoOffsetBytes, bytes));
    }

    Future<Void> write(RemoteMemory to, long offsetBytes, ByteBuf[] from) {
        return submit(new BufferWrite(BufferWrite.Kind.PLAIN, to, offsetBytes, 0, from.clone()));
    }

    Future<Void> write(RemoteMemory to, long offsetBytes, RegisteredMemory from, long fromOffsetBytes, int bytes) {
        return submit(new RegionTransfer(true, to, offsetBytes, from, fromOffsetBytes, bytes));
    }

    Future<Void> flushingWrite(RemoteMemory to, long offsetBytes, ByteBuf[] from) {
        return submit(new BufferWrite(BufferWrite.Kind.FLUSHING, to, offsetBytes, 0, from.clone()));
    }

    Future<Void> writeWithImmediate(RemoteMemory to, long offsetBytes, int immediateData, ByteBuf[] from) {
        return submit(new BufferWrite(BufferWrite.Kind.IMMEDIATE, to, offsetBytes, immediateData, from.clone()));
    }

    Future<Long> compareAndSwap(RemoteMemory at, long offsetBytes, long expected, long value) {
        return submit(new Atomic(true, at, offsetBytes, expected, value));
    }

    Future<Long> fetchAndAdd(RemoteMemory at, long offsetBytes, long add) {
        return submit(new Atomic(false, at, offsetBytes, add, 0));
    }

    private <T> Future<T> submit(Operation<T> operation) {
        try {
            operation.check();
        } catch (RuntimeException cause) {
            operation.tryFailure(cause);
            return operation;
        }
        operation.hold();
        EventLoop loop = channel.eventLoop();
        if (loop.inEventLoop()) {
            operation.start0(true);
        } else {
            try {
                loop.execute(operation);
            } catch (RejectedExecutionException ended) {
                ClosedChannelException closed = new ClosedChannelException();
                closed.initCause(ended);
                operation.letGo();
                operation.tryFailure(closed);
            }
        }
        return operation;
    }

    /** What other threads ask for is flushed when the loop has started all of it. */
    private void scheduleFlush0() {
        if (!flushScheduled) {
            flushScheduled = true;
            channel.eventLoop().execute(() -> {
                flushScheduled = false;
                try {
                    channel.connectionForOperation0().flush();
                } catch (Exception closed) {
                    LOG.trace("{}: nothing to flush, its operations have failed", channel, closed);
                }
            });
        }
    }

    private static int pieces(ByteBuf[] buffers) {
        int count = 0;
        for (ByteBuf buffer : buffers) {
            count += Math.max(1, buffer.nioBufferCount());
        }
        return count;
    }

    private ScatterGatherList listFor(int pieces) {
        return pieces <= USUAL_PIECES ? usualList.clear() : new ScatterGatherList(pieces);
    }

    /** Native memory for one operation whose buffers the device does not know. */
    private static final class Bounce implements AutoCloseable {
        private final Arena arena = Arena.ofShared();
        final RegisteredMemory region;

        Bounce(MemoryDomain domain, long bytes, EnumSet<Access> access) {
            try {
                // A page, so that registering it shares no page with a neighbour.
                region = domain.register(arena.allocate(bytes, 4096), access);
            } catch (RuntimeException refused) {
                arena.close();
                throw refused;
            }
        }

        MemorySegment segment() {
            return region.segment();
        }

        /** After the outcome, when no work request holds it any more. */
        @Override
        public void close() {
            region.whenGone(arena::close);
            region.close();
        }
    }

    /** One operation: its own promise. */
    private abstract class Operation<T> extends DefaultPromise<T> implements Runnable {
        final RemoteMemory remote;
        final long offsetBytes;

        Operation(RemoteMemory remote, long offsetBytes) {
            super(channel.eventLoop());
            this.remote = remote;
            this.offsetBytes = offsetBytes;
        }

        /** Against the token; on the caller's thread. */
        abstract void check();

        /** Keeps the buffers until {@link #letGo}. */
        abstract void hold();

        abstract void letGo();

        abstract void post0(MessageConnection connection, MemoryDomain domain);

        /** Takes the result out of the buffers, which are still held. */
        abstract T result0();

        @Override
        protected EventExecutor executor() {
            return channel.eventLoop();
        }

        @Override
        public final void run() {
            start0(false);
        }

        final void start0(boolean flushNow) {
            assert channel.eventLoop().inEventLoop();
            try {
                MessageConnection connection = channel.connectionForOperation0();
                post0(connection, channel.memory());
                if (flushNow) {
                    connection.flush();
                } else {
                    scheduleFlush0();
                }
            } catch (Exception cause) {
                finish0(cause);
            }
        }

        /** The outcome: the buffers are let go before anyone hears of it. */
        final void finish0(@Nullable Throwable cause) {
            if (cause != null) {
                letGo();
                tryFailure(channel.translate0(cause));
                return;
            }
            T result;
            try {
                result = result0();
            } catch (RuntimeException failure) {
                letGo();
                tryFailure(failure);
                return;
            }
            letGo();
            trySuccess(result);
        }
    }

    private final class RegionTransfer extends Operation<Void> {
        private final boolean write;
        private final RegisteredMemory local;
        private final long localOffsetBytes;
        private final int bytes;

        RegionTransfer(
                boolean write,
                RemoteMemory remote,
                long offsetBytes,
                RegisteredMemory local,
                long localOffsetBytes,
                int bytes) {
            super(remote, offsetBytes);
            this.write = write;
            this.local = local;
            this.localOffsetBytes = localOffsetBytes;
            this.bytes = bytes;
        }

        @Override
        void check() {
            remote.checkAccess(write ? Access.REMOTE_WRITE : Access.REMOTE_READ);
            remote.checkBounds(offsetBytes, bytes);
            new ScatterGatherList(1).add(local, localOffsetBytes, bytes);
            if (local.isClosed()) {
                throw new IllegalStateException("the local memory is closed");
            }
        }

        @Override
        void hold() {
            local.retain();
        }

        @Override
        void letGo() {
            local.release();
        }

        @Override
        void post0(MessageConnection connection, MemoryDomain domain) {
            ScatterGatherList list = usualList.clear().add(local, localOffsetBytes, bytes);
            long address = remote.address() + offsetBytes;
            if (write) {
                connection.write(address, remote.key(), list, null, OUTCOME, this);
            } else {
                connection.read(address, remote.key(), list, null, OUTCOME, this);
            }
        }

        @Override
        @SuppressWarnings("NullAway") // Void has no other value
        Void result0() {
            return null;
        }
    }

    private abstract class BufferTransfer extends Operation<Void> {
        final ByteBuf[] buffers;

        @Nullable Bounce bounce;

        BufferTransfer(RemoteMemory remote, long offsetBytes, ByteBuf[] buffers) {
            super(remote, offsetBytes);
            this.buffers = buffers;
        }

        @Override
        final void hold() {
            for (ByteBuf buffer : buffers) {
                buffer.retain();
            }
        }

        @Override
        void letGo() {
            for (ByteBuf buffer : buffers) {
                buffer.release();
            }
            Bounce used = bounce;
            bounce = null;
            if (used != null) {
                used.close();
            }
        }

        @Override
        @SuppressWarnings("NullAway") // Void has no other value
        Void result0() {
            return null;
        }
    }

    private final class BufferRead extends BufferTransfer {
        BufferRead(RemoteMemory remote, long offsetBytes, ByteBuf[] buffers) {
            super(remote, offsetBytes, buffers);
        }

        private long totalBytes() {
            long total = 0;
            for (ByteBuf buffer : buffers) {
                total += buffer.writableBytes();
            }
            return total;
        }

        @Override
        void check() {
            remote.checkAccess(Access.REMOTE_READ);
            remote.checkBounds(offsetBytes, totalBytes());
        }

        @Override
        void post0(MessageConnection connection, MemoryDomain domain) {
            boolean sinkNeedsRemoteWrite = channel.capabilities().readSinkNeedsRemoteWrite();
            ScatterGatherList list = gatherSinks(domain, sinkNeedsRemoteWrite);
            if (list == null) {
                EnumSet<Access> access = EnumSet.of(Access.LOCAL_WRITE);
                if (sinkNeedsRemoteWrite) {
                    access.add(Access.REMOTE_WRITE);
                }
                Bounce sink = new Bounce(domain, totalBytes(), access);
                bounce = sink;
                list = usualList.clear().add(sink.region, 0, Math.toIntExact(totalBytes()));
            }
            connection.read(remote.address() + offsetBytes, remote.key(), list, null, OUTCOME, this);
        }

        /** The buffers' own registered memory, or null if some of it is none, or lacks a right. */
        private @Nullable ScatterGatherList gatherSinks(MemoryDomain domain, boolean sinkNeedsRemoteWrite) {
            MessageBuffers registered = ChannelBuffers.SOURCE.forDomain(domain);
            ScatterGatherList list = listFor(pieces(buffers));
            for (ByteBuf buffer : buffers) {
                int bytes = buffer.writableBytes();
                if (bytes > 0
                        && registered.gather(buffer, buffer.writerIndex(), bytes, pieces(buffers), list) < bytes) {
                    return null;
                }
            }
            for (int i = 0; i < list.count(); i++) {
                EnumSet<Access> needed = EnumSet.of(Access.LOCAL_WRITE);
                if (sinkNeedsRemoteWrite) {
                    needed.add(Access.REMOTE_WRITE);
                }
                if (!list.region(i).access().containsAll(needed)) {
                    return null;
                }
            }
            return list;
        }

        @Override
        Void result0() {
            Bounce filled = bounce;
            int at = 0;
            for (ByteBuf buffer : buffers) {
                int bytes = buffer.writableBytes();
                if (filled != null) {
                    buffer.setBytes(
                            buffer.writerIndex(),
                            filled.segment().asSlice(at, bytes).asByteBuffer());
                    at += bytes;
                }
                buffer.writerIndex(buffer.writerIndex() + bytes);
            }
            return super.result0();
        }
    }

    private final class BufferWrite extends BufferTransfer {
        enum Kind {
            PLAIN,
            FLUSHING,
            IMMEDIATE
        }

        private final Kind kind;
        private final int immediateData;
        private @Nullable Bounce lastByte;

        /** Of a flushing write: the write has to succeed before the read counts. */
        private boolean written;

        private @Nullable RuntimeException readRefusal;

        BufferWrite(Kind kind, RemoteMemory remote, long offsetBytes, int immediateData, ByteBuf[] buffers) {
            super(remote, offsetBytes, buffers);
            this.kind = kind;
            this.immediateData = immediateData;
        }

        private long totalBytes() {
            long total = 0;
            for (ByteBuf buffer : buffers) {
                total += buffer.readableBytes();
            }
            return total;
        }

        @Override
        void check() {
            remote.checkAccess(Access.REMOTE_WRITE);
            remote.checkBounds(offsetBytes, totalBytes());
            if (kind == Kind.FLUSHING) {
                remote.checkAccess(Access.REMOTE_READ);
                if (totalBytes() == 0) {
                    throw new IllegalArgumentException("a flushing write needs a byte at least");
                }
            }
        }

        @Override
        void post0(MessageConnection connection, MemoryDomain domain) {
            ScatterGatherList list = gatherSources(domain);
            if (list == null) {
                Bounce source = new Bounce(domain, totalBytes(), EnumSet.of(Access.LOCAL_WRITE));
                bounce = source;
                int at = 0;
                for (ByteBuf buffer : buffers) {
                    int bytes = buffer.readableBytes();
                    buffer.getBytes(
                            buffer.readerIndex(),
                            source.segment().asSlice(at, bytes).asByteBuffer());
                    at += bytes;
                }
                list = usualList.clear().add(source.region, 0, at);
            }
            long address = remote.address() + offsetBytes;
            switch (kind) {
                case PLAIN -> connection.write(address, remote.key(), list, null, OUTCOME, this);
                case IMMEDIATE ->
                    connection.writeWithImmediate(address, remote.key(), immediateData, list, null, OUTCOME, this);
                case FLUSHING -> postFlushing0(connection, domain, address, list);
            }
        }

        private void postFlushing0(
                MessageConnection connection, MemoryDomain domain, long address, ScatterGatherList list) {
            Bounce sink = new Bounce(domain, 1, EnumSet.of(Access.LOCAL_WRITE, Access.REMOTE_WRITE));
            lastByte = sink;
            connection.write(address, remote.key(), list, null, (context, cause) -> onWritten0(cause), null);
            try {
                connection.read(
                        address + totalBytes() - 1,
                        remote.key(),
                        usualList.clear().add(sink.region, 0, 1),
                        null,
                        OUTCOME,
                        this);
            } catch (RuntimeException cause) {
                readRefusal = cause; // the write is under way with these buffers: its outcome ends it
            }
        }

        private void onWritten0(@Nullable Throwable cause) {
            written = cause == null;
            if (readRefusal != null) {
                finish0(readRefusal);
            }
        }

        /** The buffers' own registered memory, or null if some of it is none. */
        private @Nullable ScatterGatherList gatherSources(MemoryDomain domain) {
            MessageBuffers registered = ChannelBuffers.SOURCE.forDomain(domain);
            ScatterGatherList list = listFor(pieces(buffers));
            for (ByteBuf buffer : buffers) {
                int bytes = buffer.readableBytes();
                if (bytes > 0
                        && registered.gather(buffer, buffer.readerIndex(), bytes, pieces(buffers), list) < bytes) {
                    return null;
                }
            }
            return list;
        }

        @Override
        Void result0() {
            if (kind == Kind.FLUSHING && !written) {
                throw new IllegalStateException("the read behind a write succeeded, but not the write");
            }
            return super.result0();
        }

        @Override
        void letGo() {
            super.letGo();
            Bounce used = lastByte;
            lastByte = null;
            if (used != null) {
                used.close();
            }
        }
    }

    private final class Atomic extends Operation<Long> {
        private final boolean compare;
        private final long compareOrAdd;
        private final long swap;
        private @Nullable ByteBuf pooled;
        private @Nullable Bounce bounce;

        Atomic(boolean compare, RemoteMemory remote, long offsetBytes, long compareOrAdd, long swap) {
            super(remote, offsetBytes);
            this.compare = compare;
            this.compareOrAdd = compareOrAdd;
            this.swap = swap;
        }

        @Override
        void check() {
            remote.checkAccess(Access.REMOTE_ATOMIC);
            remote.checkBounds(offsetBytes, ATOMIC_BYTES);
            long address = remote.address() + offsetBytes;
            if (address % ATOMIC_BYTES != 0) {
                throw new IllegalArgumentException("an atomic at 0x" + Long.toHexString(address)
                        + ": the address must be a multiple of " + ATOMIC_BYTES);
            }
        }

        @Override
        void hold() {}

        @Override
        void letGo() {
            ByteBuf buffer = pooled;
            pooled = null;
            if (buffer != null) {
                buffer.release();
            }
            Bounce used = bounce;
            bounce = null;
            if (used != null) {
                used.close();
            }
        }

        @Override
        void post0(MessageConnection connection, MemoryDomain domain) {
            MessageBuffers registered = ChannelBuffers.SOURCE.forDomain(domain);
            ScatterGatherList list = usualList.clear();
            ByteBuf buffer = registered.tryAllocateSend(ATOMIC_BYTES);
            pooled = buffer;
            if (buffer == null || registered.gather(buffer, 0, ATOMIC_BYTES, 1, list) < ATOMIC_BYTES) {
                Bounce sink = new Bounce(domain, ATOMIC_BYTES, EnumSet.of(Access.LOCAL_WRITE));
                bounce = sink;
                list.clear().add(sink.region, 0, ATOMIC_BYTES);
            }
            long address = remote.address() + offsetBytes;
            if (compare) {
                connection.compareAndSwap(address, remote.key(), compareOrAdd, swap, list, null, OUTCOME, this);
            } else {
                connection.fetchAndAdd(address, remote.key(), compareOrAdd, list, null, OUTCOME, this);
            }
        }

        @Override
        Long result0() {
            Bounce used = bounce;
            if (used != null) {
                return used.segment().get(ValueLayout.JAVA_LONG_UNALIGNED, 0);
            }
            ByteBuf buffer = Objects.requireNonNull(pooled);
            return ByteOrder.nativeOrder() == ByteOrder.LITTLE_ENDIAN ? buffer.getLongLE(0) : buffer.getLong(0);
        }
    }
}
