package org.verbena.api.internal.channel;

import io.netty.buffer.ByteBuf;
import io.netty.channel.EventLoop;
import io.netty.util.concurrent.DefaultPromise;
import io.netty.util.concurrent.Future;
import io.netty.util.concurrent.ImmediateEventExecutor;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.nio.channels.ClosedChannelException;
import java.nio.channels.NotYetConnectedException;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.RejectedExecutionException;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.api.internal.loop.RdmaEventLoop;
import org.verbena.api.internal.memory.ChannelBuffers;
import org.verbena.transport.MemoryDomain;
import org.verbena.transport.MemoryDomain.Access;
import org.verbena.transport.RegisteredMemory;
import org.verbena.transport.RemoteMemory;
import org.verbena.transport.protocol.OperationCallback;
import org.verbena.transport.protocol.connection.MessageConnection;
import org.verbena.transport.protocol.memory.MessageBuffers;
import org.verbena.transport.spi.ScatterGatherList;

/**
 * The reads, writes and atomics of one channel. Each is an {@link Operation}: a promise that holds its memory from the
 * call until the operation completes, even if it is cancelled. The call checks the arguments and retains the memory; an
 * invalid argument fails the promise. Everything else happens on the loop. An operation on one buffer or region
 * allocates its promise and nothing else.
 */
public final class OneSidedOperations {
    private static final Logger LOG = LoggerFactory.getLogger(OneSidedOperations.class);

    /** The number of SGEs that an operation on buffers may have without allocating a list. */
    private static final int USUAL_SGES = 64;

    /** The size of an atomic's operand. */
    private static final int ATOMIC_BYTES = 8;

    private static final Set<Access> LOCAL = Set.of(Access.LOCAL_WRITE);
    private static final Set<Access> LOCAL_AND_REMOTE = Set.of(Access.LOCAL_WRITE, Access.REMOTE_WRITE);

    private static final OperationCallback OUTCOME = (context, cause) -> {
        if (context instanceof Operation<?> operation) {
            operation.finish0(cause);
        }
    };

    /** The callback of the write of a flushing write. */
    private static final OperationCallback WRITTEN = (context, cause) -> {
        if (context instanceof BufferWrite write) {
            write.onWritten0(cause);
        }
    };

    private final OperationGate gate;
    private final Runnable flush = this::flush0;

    /** Event loop only: filled and read within one call. */
    private @Nullable ScatterGatherList usualList;

    /** Event loop only: whether a task that flushes is scheduled. */
    private boolean flushScheduled;

    public OneSidedOperations(OperationGate gate) {
        this.gate = gate;
    }

    public Future<Void> read(RemoteMemory from, long offsetBytes, ByteBuf[] into) {
        EventLoop loop = gate.loop();
        return loop == null ? unregistered() : submit(loop, new BufferRead(loop, from, offsetBytes, into));
    }

    public Future<Void> read(
            RemoteMemory from, long offsetBytes, RegisteredMemory into, long intoOffsetBytes, int bytes) {
        EventLoop loop = gate.loop();
        return loop == null
                ? unregistered()
                : submit(loop, new RegionTransfer(loop, false, from, offsetBytes, into, intoOffsetBytes, bytes));
    }

    public Future<Void> write(RemoteMemory to, long offsetBytes, ByteBuf[] from) {
        return write(BufferWrite.Kind.PLAIN, to, offsetBytes, 0, from);
    }

    public Future<Void> write(
            RemoteMemory to, long offsetBytes, RegisteredMemory from, long fromOffsetBytes, int bytes) {
        EventLoop loop = gate.loop();
        return loop == null
                ? unregistered()
                : submit(loop, new RegionTransfer(loop, true, to, offsetBytes, from, fromOffsetBytes, bytes));
    }

    public Future<Void> flushingWrite(RemoteMemory to, long offsetBytes, ByteBuf[] from) {
        return write(BufferWrite.Kind.FLUSHING, to, offsetBytes, 0, from);
    }

    public Future<Void> writeWithImmediate(RemoteMemory to, long offsetBytes, int immediateData, ByteBuf[] from) {
        return write(BufferWrite.Kind.IMMEDIATE, to, offsetBytes, immediateData, from);
    }

    private Future<Void> write(
            BufferWrite.Kind kind, RemoteMemory to, long offsetBytes, int immediateData, ByteBuf[] from) {
        EventLoop loop = gate.loop();
        return loop == null
                ? unregistered()
                : submit(loop, new BufferWrite(loop, kind, to, offsetBytes, immediateData, from));
    }

    public Future<Long> compareAndSwap(RemoteMemory at, long offsetBytes, long expected, long value) {
        EventLoop loop = gate.loop();
        return loop == null ? unregistered() : submit(loop, new Atomic(loop, true, at, offsetBytes, expected, value));
    }

    public Future<Long> fetchAndAdd(RemoteMemory at, long offsetBytes, long add) {
        EventLoop loop = gate.loop();
        return loop == null ? unregistered() : submit(loop, new Atomic(loop, false, at, offsetBytes, add, 0));
    }

    private static <T> Future<T> unregistered() {
        return ImmediateEventExecutor.INSTANCE.newFailedFuture(new NotYetConnectedException());
    }

    private static <T> Future<T> submit(EventLoop loop, Operation<T> operation) {
        try {
            operation.take();
        } catch (RuntimeException cause) {
            operation.tryFailure(cause);
            return operation;
        }
        if (loop.inEventLoop()) {
            operation.start0(true);
        } else {
            try {
                loop.execute(operation);
            } catch (RejectedExecutionException ended) {
                ClosedChannelException closed = new ClosedChannelException();
                closed.initCause(ended);
                operation.releaseMemory();
                operation.tryFailure(closed);
            }
        }
        return operation;
    }

    /** Operations of other threads are flushed when the loop has started all of them. */
    private void scheduleFlush0(EventLoop loop) {
        if (!flushScheduled) {
            flushScheduled = true;
            try {
                loop.execute(flush);
            } catch (RejectedExecutionException | Error refused) {
                LOG.debug("the loop takes no task: flushing now", refused);
                flush0();
            }
        }
    }

    private void flush0() {
        flushScheduled = false;
        try {
            gate.enter0().flush();
        } catch (ClosedChannelException | NotYetConnectedException closed) {
            LOG.trace("nothing to flush: the operations have failed", closed);
        }
    }

    /** An empty list. Made for the first operation, as most channels have none. */
    private ScatterGatherList usualList() {
        ScatterGatherList list = usualList;
        if (list == null) {
            list = new ScatterGatherList(USUAL_SGES);
            usualList = list;
        }
        return list.clear();
    }

    private ScatterGatherList listFor(int sges) {
        return sges <= USUAL_SGES ? usualList() : new ScatterGatherList(sges);
    }

    private static boolean isOutside(RegisteredMemory region, long offsetBytes, int bytes) {
        return offsetBytes < 0 || bytes < 0 || offsetBytes > region.lengthBytes() - bytes;
    }

    /** Native memory for one operation whose buffers are not registered. */
    private static final class Bounce implements AutoCloseable {
        /** A page, so that registering it shares no page with a neighbour. */
        private static final int ALIGNMENT_BYTES = 4096;

        private final Arena arena = Arena.ofShared();
        final RegisteredMemory region;

        Bounce(MemoryDomain domain, long bytes, Set<Access> access) {
            try {
                region = domain.register(arena.allocate(bytes, ALIGNMENT_BYTES), access);
            } catch (Throwable refused) {
                arena.close();
                throw refused;
            }
        }

        MemorySegment segment() {
            return region.segment();
        }

        /** Called after completion, when no work request holds it any more. */
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
        private final EventLoop loop;

        /** Event loop only: whether the operation has completed. */
        private boolean over;

        /** A few bytes to read into, from the pool or allocated for it. */
        private @Nullable ByteBuf pooledScratch;

        private @Nullable Bounce ownScratch;

        Operation(EventLoop loop, RemoteMemory remote, long offsetBytes) {
            super(((RdmaEventLoop) loop).notifier());
            this.loop = loop;
            this.remote = remote;
            this.offsetBytes = offsetBytes;
        }

        /** Checks the arguments and retains the memory, or throws and retains nothing. On the caller's thread. */
        abstract void take();

        /** Releases all memory, after {@link #take}. Called once. */
        void releaseMemory() {
            ByteBuf pooled = pooledScratch;
            pooledScratch = null;
            if (pooled != null) {
                pooled.release();
            }
            Bounce own = ownScratch;
            ownScratch = null;
            if (own != null) {
                own.close();
            }
        }

        abstract void post0(MessageConnection connection, MemoryDomain domain);

        /** Reads the result from the memory, which is still held. */
        abstract T result0();

        final RemoteMemory token() {
            return Objects.requireNonNull(remote, "the token of the peer's memory is null");
        }

        /** A list with a few bytes to read into. */
        final ScatterGatherList scratch0(MemoryDomain domain, int bytes, boolean needsRemoteWrite) {
            ScatterGatherList list = usualList();
            if (!needsRemoteWrite) {
                MessageBuffers registered = ChannelBuffers.SOURCE.forDomain(domain);
                ByteBuf buffer = registered.tryAllocateSend(bytes);
                pooledScratch = buffer;
                if (buffer != null && registered.gather(buffer, 0, bytes, 1, list) == bytes) {
                    return list;
                }
            }
            Bounce sink = new Bounce(domain, bytes, needsRemoteWrite ? LOCAL_AND_REMOTE : LOCAL);
            ownScratch = sink;
            return list.clear().add(sink.region, 0, bytes);
        }

        final long scratchLong0() {
            Bounce own = ownScratch;
            if (own != null) {
                return own.segment().get(ValueLayout.JAVA_LONG_UNALIGNED, 0);
            }
            ByteBuf pooled = Objects.requireNonNull(pooledScratch);
            return ByteOrder.nativeOrder() == ByteOrder.LITTLE_ENDIAN ? pooled.getLongLE(0) : pooled.getLong(0);
        }

        @Override
        protected final void checkDeadLock() {
            RdmaEventLoop.checkMayWait(loop);
        }

        @Override
        public final void run() {
            start0(false);
        }

        final void start0(boolean flushNow) {
            assert loop.inEventLoop();
            MessageConnection connection;
            try {
                connection = gate.enter0();
                post0(connection, gate.domain0());
            } catch (Throwable cause) {
                finish0(cause);
                return;
            } finally {
                ScatterGatherList used = usualList;
                if (used != null) {
                    used.clear();
                }
            }
            if (flushNow) {
                connection.flush();
            } else {
                scheduleFlush0(loop);
            }
        }

        /** Completes the operation: releases the memory, then notifies listeners. */
        @SuppressWarnings("NullAway") // the result of a Void is null
        final void finish0(@Nullable Throwable cause) {
            if (over) {
                return;
            }
            over = true;
            Throwable failure = cause == null ? null : gate.translate0(cause);
            T result = null;
            try {
                if (failure == null) {
                    result = result0();
                }
            } catch (Throwable thrown) {
                failure = thrown;
            }
            try {
                releaseMemory();
            } catch (RuntimeException releasedByOthers) {
                failure = failure == null ? releasedByOthers : failure;
            }
            if (failure == null) {
                trySuccess(result);
            } else {
                tryFailure(failure);
            }
        }
    }

    private final class RegionTransfer extends Operation<Void> {
        private final boolean write;
        private final RegisteredMemory local;
        private final long localOffsetBytes;
        private final int bytes;

        RegionTransfer(
                EventLoop loop,
                boolean write,
                RemoteMemory remote,
                long offsetBytes,
                RegisteredMemory local,
                long localOffsetBytes,
                int bytes) {
            super(loop, remote, offsetBytes);
            this.write = write;
            this.local = local;
            this.localOffsetBytes = localOffsetBytes;
            this.bytes = bytes;
        }

        @Override
        void take() {
            token().checkAccess(write ? Access.REMOTE_WRITE : Access.REMOTE_READ);
            remote.checkBounds(offsetBytes, bytes);
            Objects.requireNonNull(local, "the local memory is null");
            if (isOutside(local, localOffsetBytes, bytes)) {
                throw new IndexOutOfBoundsException("offset " + localOffsetBytes + " and length " + bytes
                        + " are outside local memory of " + local.lengthBytes() + " bytes");
            }
            if (!local.tryRetain()) {
                throw localMemoryIsClosed();
            }
            if (local.isClosed()) {
                local.release();
                throw localMemoryIsClosed();
            }
        }

        private static IllegalStateException localMemoryIsClosed() {
            return new IllegalStateException("the local memory is closed");
        }

        @Override
        void releaseMemory() {
            super.releaseMemory();
            local.release();
        }

        @Override
        void post0(MessageConnection connection, MemoryDomain domain) {
            ScatterGatherList list = usualList().add(local, localOffsetBytes, bytes);
            long address = remote.address() + offsetBytes;
            if (write) {
                connection.oneSided().write(address, remote.key(), list, null, OUTCOME, this);
            } else {
                connection.oneSided().read(address, remote.key(), list, null, OUTCOME, this);
            }
        }

        @Override
        @SuppressWarnings("NullAway") // Void has no other value
        Void result0() {
            return null;
        }
    }

    /** A transfer to or from buffers, with the ranges that they have at the time of the call. */
    private abstract class BufferTransfer extends Operation<Void> {
        /** The caller's array, or a copy of it if there are several. */
        private ByteBuf[] buffers;

        /** The buffer, if there is one. */
        private @Nullable ByteBuf only;

        private int onlyIndex;
        private int onlyBytes;

        /** Index and length of each, if there are several. */
        private int @Nullable [] ranges;

        private long totalBytes;
        private @Nullable Bounce bounce;

        BufferTransfer(EventLoop loop, RemoteMemory remote, long offsetBytes, ByteBuf[] buffers) {
            super(loop, remote, offsetBytes);
            this.buffers = buffers;
        }

        /** Where a buffer's range begins. */
        abstract int indexIn(ByteBuf buffer);

        /** How long a buffer's range is. */
        abstract int bytesOf(ByteBuf buffer);

        /** Checks the length against the token. */
        abstract void check(RemoteMemory token, long bytes);

        final int count() {
            return only != null ? 1 : buffers.length;
        }

        final ByteBuf buffer(int i) {
            return only != null ? only : buffers[i];
        }

        final int index(int i) {
            return ranges == null ? onlyIndex : ranges[2 * i];
        }

        final int bytes(int i) {
            return ranges == null ? onlyBytes : ranges[2 * i + 1];
        }

        final long totalBytes() {
            return totalBytes;
        }

        @Override
        final void take() {
            RemoteMemory token = token();
            Objects.requireNonNull(buffers, "the array of buffers is null");
            if (buffers.length == 1) {
                only = requireBuffer(buffers[0]);
            } else {
                buffers = buffers.clone();
                ranges = new int[2 * buffers.length];
            }
            int held = 0;
            try {
                for (int i = 0; i < count(); i++) {
                    ByteBuf buffer = requireBuffer(buffer(i)).retain();
                    held++;
                    int index = indexIn(buffer);
                    int bytes = bytesOf(buffer);
                    if (ranges == null) {
                        onlyIndex = index;
                        onlyBytes = bytes;
                    } else {
                        ranges[2 * i] = index;
                        ranges[2 * i + 1] = bytes;
                    }
                    totalBytes += bytes;
                }
                check(token, totalBytes);
            } catch (RuntimeException cause) {
                for (int i = 0; i < held; i++) {
                    buffer(i).release();
                }
                throw cause;
            }
        }

        private static ByteBuf requireBuffer(@Nullable ByteBuf buffer) {
            return Objects.requireNonNull(buffer, "a buffer is null");
        }

        @Override
        void releaseMemory() {
            super.releaseMemory();
            Bounce used = bounce;
            bounce = null;
            if (used != null) {
                used.close();
            }
            for (int i = 0; i < count(); i++) {
                buffer(i).release();
            }
        }

        /** The buffers' own registered memory, or null if any of it is not registered. */
        final @Nullable ScatterGatherList gather0(MemoryDomain domain) {
            MessageBuffers registered = ChannelBuffers.SOURCE.forDomain(domain);
            int sges = 0;
            for (int i = 0; i < count(); i++) {
                sges += Math.max(1, buffer(i).nioBufferCount());
            }
            ScatterGatherList list = listFor(sges);
            for (int i = 0; i < count(); i++) {
                if (bytes(i) > 0 && registered.gather(buffer(i), index(i), bytes(i), sges, list) < bytes(i)) {
                    return null;
                }
            }
            return list;
        }

        final Bounce bounce0(MemoryDomain domain, Set<Access> access) {
            Bounce made = new Bounce(domain, totalBytes, access);
            bounce = made;
            return made;
        }

        final @Nullable Bounce bounce() {
            return bounce;
        }

        final ScatterGatherList all(Bounce of) {
            return usualList().add(of.region, 0, Math.toIntExact(totalBytes));
        }

        @Override
        @SuppressWarnings("NullAway") // Void has no other value
        Void result0() {
            return null;
        }
    }

    private final class BufferRead extends BufferTransfer {
        BufferRead(EventLoop loop, RemoteMemory remote, long offsetBytes, ByteBuf[] buffers) {
            super(loop, remote, offsetBytes, buffers);
        }

        @Override
        int indexIn(ByteBuf buffer) {
            return buffer.writerIndex();
        }

        @Override
        int bytesOf(ByteBuf buffer) {
            return buffer.writableBytes();
        }

        @Override
        void check(RemoteMemory token, long bytes) {
            token.checkAccess(Access.REMOTE_READ);
            token.checkBounds(offsetBytes, bytes);
        }

        @Override
        void post0(MessageConnection connection, MemoryDomain domain) {
            boolean needsRemoteWrite = gate.readSinkNeedsRemoteWrite0();
            ScatterGatherList list = gather0(domain);
            if (list == null || !mayBeReadInto(list, needsRemoteWrite)) {
                list = all(bounce0(domain, needsRemoteWrite ? LOCAL_AND_REMOTE : LOCAL));
            }
            connection.oneSided().read(remote.address() + offsetBytes, remote.key(), list, null, OUTCOME, this);
        }

        private static boolean mayBeReadInto(ScatterGatherList list, boolean needsRemoteWrite) {
            for (int i = 0; i < list.count(); i++) {
                Set<Access> access = list.region(i).access();
                if (!access.contains(Access.LOCAL_WRITE)
                        || (needsRemoteWrite && !access.contains(Access.REMOTE_WRITE))) {
                    return false;
                }
            }
            return true;
        }

        @Override
        Void result0() {
            Bounce filled = bounce();
            long at = 0;
            for (int i = 0; i < count(); i++) {
                ByteBuf buffer = buffer(i);
                int bytes = bytes(i);
                if (filled != null) {
                    buffer.setBytes(
                            index(i), filled.segment().asSlice(at, bytes).asByteBuffer());
                    at += bytes;
                }
                buffer.writerIndex(index(i) + bytes);
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

        /** The read of a flushing write, which counts only if the write has succeeded. */
        private boolean written;

        private boolean writeIsOver;
        private @Nullable Throwable readRefusal;

        BufferWrite(
                EventLoop loop,
                Kind kind,
                RemoteMemory remote,
                long offsetBytes,
                int immediateData,
                ByteBuf[] buffers) {
            super(loop, remote, offsetBytes, buffers);
            this.kind = kind;
            this.immediateData = immediateData;
        }

        @Override
        int indexIn(ByteBuf buffer) {
            return buffer.readerIndex();
        }

        @Override
        int bytesOf(ByteBuf buffer) {
            return buffer.readableBytes();
        }

        @Override
        void check(RemoteMemory token, long bytes) {
            token.checkAccess(Access.REMOTE_WRITE);
            token.checkBounds(offsetBytes, bytes);
            if (kind == Kind.FLUSHING) {
                token.checkAccess(Access.REMOTE_READ);
                if (bytes == 0) {
                    throw new IllegalArgumentException("a flushing write needs at least one byte");
                }
            }
        }

        @Override
        void post0(MessageConnection connection, MemoryDomain domain) {
            ScatterGatherList list = gather0(domain);
            if (list == null) {
                Bounce source = bounce0(domain, LOCAL);
                long at = 0;
                for (int i = 0; i < count(); i++) {
                    buffer(i)
                            .getBytes(
                                    index(i),
                                    source.segment().asSlice(at, bytes(i)).asByteBuffer());
                    at += bytes(i);
                }
                list = all(source);
            }
            long address = remote.address() + offsetBytes;
            switch (kind) {
                case PLAIN -> connection.oneSided().write(address, remote.key(), list, null, OUTCOME, this);
                case IMMEDIATE ->
                    connection
                            .oneSided()
                            .writeWithImmediate(address, remote.key(), immediateData, list, null, OUTCOME, this);
                case FLUSHING -> postFlushing0(connection, domain, address, list);
            }
        }

        private void postFlushing0(
                MessageConnection connection, MemoryDomain domain, long address, ScatterGatherList list) {
            connection.oneSided().write(address, remote.key(), list, null, WRITTEN, this);
            try {
                ScatterGatherList sink = scratch0(domain, 1, gate.readSinkNeedsRemoteWrite0());
                connection.oneSided().read(address + totalBytes() - 1, remote.key(), sink, null, OUTCOME, this);
            } catch (Throwable cause) {
                if (writeIsOver) {
                    throw cause;
                }
                readRefusal = cause; // the write is under way with these buffers: its outcome ends it
            }
        }

        private void onWritten0(@Nullable Throwable cause) {
            written = cause == null;
            writeIsOver = true;
            if (readRefusal != null) {
                finish0(readRefusal);
            }
        }

        @Override
        Void result0() {
            if (kind == Kind.FLUSHING && !written) {
                throw new IllegalStateException("the read behind a write succeeded, but not the write");
            }
            return super.result0();
        }
    }

    private final class Atomic extends Operation<Long> {
        private final boolean compare;
        private final long compareOrAdd;
        private final long swap;

        Atomic(EventLoop loop, boolean compare, RemoteMemory remote, long offsetBytes, long compareOrAdd, long swap) {
            super(loop, remote, offsetBytes);
            this.compare = compare;
            this.compareOrAdd = compareOrAdd;
            this.swap = swap;
        }

        @Override
        void take() {
            token().checkAccess(Access.REMOTE_ATOMIC);
            remote.checkBounds(offsetBytes, ATOMIC_BYTES);
            long address = remote.address() + offsetBytes;
            if (address % ATOMIC_BYTES != 0) {
                throw new IllegalArgumentException("an atomic at 0x" + Long.toHexString(address)
                        + ": the address must be a multiple of " + ATOMIC_BYTES);
            }
        }

        @Override
        void post0(MessageConnection connection, MemoryDomain domain) {
            ScatterGatherList list = scratch0(domain, ATOMIC_BYTES, false);
            long address = remote.address() + offsetBytes;
            if (compare) {
                connection
                        .oneSided()
                        .compareAndSwap(address, remote.key(), compareOrAdd, swap, list, null, OUTCOME, this);
            } else {
                connection.oneSided().fetchAndAdd(address, remote.key(), compareOrAdd, list, null, OUTCOME, this);
            }
        }

        @Override
        Long result0() {
            return scratchLong0();
        }
    }
}
