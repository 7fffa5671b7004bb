package org.verbena.transport.buffer;

import io.netty.buffer.AbstractReferenceCountedByteBuf;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufAllocator;
import io.netty.buffer.CompositeByteBuf;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.ReadOnlyBufferException;
import java.nio.channels.ClosedChannelException;
import java.nio.channels.FileChannel;
import java.nio.channels.GatheringByteChannel;
import java.nio.channels.ScatteringByteChannel;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.MemoryDomain;
import org.verbena.transport.RegisteredMemory;
import org.verbena.transport.RegisteredMemoryExhaustedException;
import org.verbena.transport.spi.ScatterGatherList;

/**
 * A Netty buffer in registered memory: its content is sent without a copy, and received data is read from it without a
 * copy. It behaves like Netty's own direct buffers: big-endian by default, reference-counted, grown by {@link
 * #capacity(int)} within {@link #maxCapacity()} (beyond its block it moves to a larger one, which changes {@link
 * #region()} and {@link #memoryAddress()}).
 *
 * <p>Keep a reference until the completion of every work request that uses it: releasing the last one makes the memory
 * available to others.
 *
 * <p>{@link #gather} converts any buffer into scatter/gather elements of a work request: this one, its slices,
 * duplicates, read-only and leak-tracking views, and composites of these.
 *
 * <p>Access is checked against the memory's life: a view that outlives its buffer throws once the memory is freed.
 */
public final class RegisteredByteBuf extends AbstractReferenceCountedByteBuf {
    private static final ValueLayout.OfByte BYTE = ValueLayout.JAVA_BYTE;
    private static final ValueLayout.OfShort SHORT = ValueLayout.JAVA_SHORT_UNALIGNED.withOrder(ByteOrder.BIG_ENDIAN);
    private static final ValueLayout.OfInt INT = ValueLayout.JAVA_INT_UNALIGNED.withOrder(ByteOrder.BIG_ENDIAN);
    private static final ValueLayout.OfLong LONG = ValueLayout.JAVA_LONG_UNALIGNED.withOrder(ByteOrder.BIG_ENDIAN);
    private static final ValueLayout.OfShort SHORT_LE =
            ValueLayout.JAVA_SHORT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
    private static final ValueLayout.OfInt INT_LE = ValueLayout.JAVA_INT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
    private static final ValueLayout.OfLong LONG_LE =
            ValueLayout.JAVA_LONG_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

    /**
     * A segment over all of memory: copies to and from direct buffers, whose bounds are checked before, need no object
     * per copy.
     */
    @SuppressWarnings("restricted")
    private static final MemorySegment EVERYTHING = MemorySegment.NULL.reinterpret(Long.MAX_VALUE);

    /** The number of bytes copied at a time from or to a stream. */
    private static final int STREAM_BYTES = 8 << 10;

    private static final int FOREIGN = -1;

    private final RegisteredBufferPool pool;
    private Block block;
    private MemorySegment memory;
    private long base;
    private int capacity;

    /** A view of the whole block, of which {@link #internalNioBuffer} shows a part; made when it is first needed. */
    private @Nullable ByteBuffer internalView;

    /** The same, which nobody changes: threads that read one buffer at the same time share it. */
    private @Nullable ByteBuffer source;

    /** Called once, at the release. Written by the holder before it hands the buffer on. */
    private @Nullable ReleaseHook hook;

    private int charge;

    RegisteredByteBuf(RegisteredBufferPool pool, Block block, int capacity, int maxCapacity) {
        super(maxCapacity);
        this.pool = pool;
        this.capacity = capacity;
        this.block = block;
        memory = block.slab.chunk.segment;
        base = block.offsetBytes;
    }

    /** Prepares this object for another use of its block. */
    void reuse(int newCapacity, int newMaxCapacity) {
        maxCapacity(newMaxCapacity);
        capacity = newCapacity;
        resetRefCnt();
        clear();
        markReaderIndex();
        markWriterIndex();
    }

    @Override
    protected void deallocate() {
        ReleaseHook account = hook;
        int charged = charge; // once its block is back, another thread may be given this buffer
        hook = null;
        pool.giveBack(block);
        if (account != null) {
            account.onReleased(charged);
        }
    }

    /**
     * Charges the buffer to an account until it is released. Call it once, as the holder of the only reference.
     *
     * @param account called at the release
     * @param units the amount that the account is credited then
     */
    public void chargeTo(ReleaseHook account, int units) {
        charge = units;
        hook = account;
    }

    /**
     * The registered memory that contains the buffer; it is much larger than the buffer. Retain it with {@link
     * RegisteredMemory#retain()} only while the buffer is retained as well.
     *
     * @return the region
     */
    public RegisteredMemory region() {
        ensureAccessible();
        return block.slab.chunk.region;
    }

    /**
     * The position of index 0 in the region.
     *
     * @return bytes from the start of the region
     */
    public long regionOffsetBytes() {
        ensureAccessible();
        return base;
    }

    /**
     * The domain that the memory is registered in.
     *
     * @return the pool's domain
     */
    public MemoryDomain domain() {
        return pool.domain();
    }

    /**
     * The buffer's memory from index 0 to its capacity.
     *
     * @return a piece of the region's segment; not to be used once the buffer is released
     */
    public MemorySegment segment() {
        ensureAccessible();
        return memory.asSlice(base, capacity);
    }

    /**
     * The capacity that it can grow to without moving.
     *
     * @return the length of its block
     */
    public int blockBytes() {
        return block.lengthBytes;
    }

    /**
     * Appends bytes, as the other methods to write do, without an object for where they come from.
     *
     * @param from where they are
     * @param offsetBytes where they begin there
     * @param lengthBytes how many, within the {@link #writableBytes()}
     * @throws IndexOutOfBoundsException there is no room for them, or they are not all there
     */
    public void write(MemorySegment from, long offsetBytes, int lengthBytes) {
        int index = writerIndex();
        checkIndex(index, lengthBytes);
        MemorySegment.copy(from, offsetBytes, memory, base + index, lengthBytes);
        writerIndex(index + lengthBytes);
    }

    // Scatter/gather elements of a work request.

    /**
     * Adds a buffer's readable bytes to a work request, without a copy and, for this kind of buffer, its views and
     * composites, without allocating an object. Retain the buffer until the work request completes: only that keeps its
     * memory registered.
     *
     * @param buffer any buffer
     * @param domain the memory domain of the work request's endpoint
     * @param sges receives the elements; must have room for {@link #countSges}
     * @return false if any part of the buffer is outside the memory registered in this domain; then nothing is added
     */
    public static boolean gather(ByteBuf buffer, MemoryDomain domain, ScatterGatherList sges) {
        return gather(buffer, buffer.readerIndex(), buffer.readableBytes(), domain, sges);
    }

    /**
     * Adds a part of a buffer to a work request: to send it, or to receive into it.
     *
     * @param buffer any buffer
     * @param index where the part begins
     * @param lengthBytes its length; 0 adds nothing
     * @param domain the memory domain of the work request's endpoint
     * @param sges receives the elements; must have room for {@link #countSges}
     * @return false if any of it is outside the memory registered in this domain; then nothing is added
     * @throws IndexOutOfBoundsException outside the buffer, or more elements than there is room for
     */
    public static boolean gather(
            ByteBuf buffer, int index, int lengthBytes, MemoryDomain domain, ScatterGatherList sges) {
        checkPart(buffer, index, lengthBytes);
        if (!(buffer instanceof CompositeByteBuf)) {
            RegisteredByteBuf root = rootOf(buffer);
            if (root != null) {
                return visitRoot(root, buffer, index, lengthBytes, domain, sges) != FOREIGN;
            }
        }
        return visit(buffer, index, lengthBytes, domain, null) != FOREIGN
                && visit(buffer, index, lengthBytes, domain, sges) != FOREIGN;
    }

    /**
     * The number of elements that {@link #gather} would add.
     *
     * @param buffer any buffer
     * @param index where the part begins
     * @param lengthBytes its length
     * @param domain the memory domain of the work request's endpoint
     * @return -1 if any of it is outside the memory registered in this domain
     */
    public static int countSges(ByteBuf buffer, int index, int lengthBytes, MemoryDomain domain) {
        checkPart(buffer, index, lengthBytes);
        return visit(buffer, index, lengthBytes, domain, null);
    }

    private static void checkPart(ByteBuf buffer, int index, int lengthBytes) {
        if (index < 0 || lengthBytes < 0 || index > buffer.capacity() - lengthBytes) {
            throw new IndexOutOfBoundsException("index " + index + " and length " + lengthBytes
                    + " are outside a buffer of " + buffer.capacity() + " bytes");
        }
    }

    /** The registered buffer under a chain of views, or null. */
    private static @Nullable RegisteredByteBuf rootOf(ByteBuf buffer) {
        for (ByteBuf b = buffer; b != null; b = b.unwrap()) {
            if (b instanceof RegisteredByteBuf root) {
                return root;
            }
        }
        return null;
    }

    private static int visit(
            ByteBuf buffer, int index, int length, MemoryDomain domain, @Nullable ScatterGatherList sges) {
        if (length == 0) {
            return 0;
        }
        if (buffer instanceof CompositeByteBuf composite) {
            return visitComposite(composite, index, length, domain, sges);
        }
        for (ByteBuf b = buffer; b != null; b = b.unwrap()) {
            if (b instanceof RegisteredByteBuf root) {
                return visitRoot(root, buffer, index, length, domain, sges);
            }
            if (b instanceof CompositeByteBuf composite) {
                return visitViewOfComposite(composite, buffer, index, length, domain, sges);
            }
        }
        return FOREIGN;
    }

    private static int visitRoot(
            RegisteredByteBuf root,
            ByteBuf view,
            int index,
            int length,
            MemoryDomain domain,
            @Nullable ScatterGatherList sges) {
        if (!root.pool.domain().equals(domain) || !view.hasMemoryAddress()) {
            return FOREIGN;
        }
        if (length == 0) {
            return 0;
        }
        RegisteredMemory region = root.region();
        if (sges != null) {
            // Views add their offset to the address; nothing else reveals it.
            sges.addHeld(region, view.memoryAddress() + index - region.address(), length);
        }
        return 1;
    }

    private static int visitComposite(
            CompositeByteBuf composite, int index, int length, MemoryDomain domain, @Nullable ScatterGatherList sges) {
        int count = 0;
        int component = composite.toComponentIndex(index);
        int at = index;
        int left = length;
        while (left > 0) {
            ByteBuf part = composite.internalComponent(component);
            int from = at - composite.toByteIndex(component);
            int partLength = Math.min(left, part.capacity() - from);
            int added = visit(part, from, partLength, domain, sges);
            if (added == FOREIGN) {
                return FOREIGN;
            }
            count += added;
            at += partLength;
            left -= partLength;
            component++;
        }
        return count;
    }

    /**
     * A slice of a composite does not reveal where it begins, but its NIO views have addresses, and the composite's
     * components give the regions. This path allocates.
     */
    private static int visitViewOfComposite(
            CompositeByteBuf composite,
            ByteBuf view,
            int index,
            int length,
            MemoryDomain domain,
            @Nullable ScatterGatherList sges) {
        List<RegisteredByteBuf> roots = new ArrayList<>();
        collectRoots(composite, roots);
        int count = 0;
        for (ByteBuffer part : view.nioBuffers(index, length)) {
            if (!part.hasRemaining()) {
                continue;
            }
            RegisteredMemory region = part.isDirect() ? regionOf(part, roots, domain) : null;
            if (region == null) {
                return FOREIGN;
            }
            if (sges != null) {
                sges.addHeld(region, MemorySegment.ofBuffer(part).address() - region.address(), part.remaining());
            }
            count++;
        }
        return count;
    }

    private static void collectRoots(CompositeByteBuf composite, List<RegisteredByteBuf> roots) {
        for (int i = 0; i < composite.numComponents(); i++) {
            collectRootsUnder(composite.internalComponent(i), roots);
        }
    }

    private static void collectRootsUnder(ByteBuf buffer, List<RegisteredByteBuf> roots) {
        for (ByteBuf b = buffer; b != null; b = b.unwrap()) {
            if (b instanceof RegisteredByteBuf root) {
                roots.add(root);
            } else if (b instanceof CompositeByteBuf composite) {
                collectRoots(composite, roots);
            }
        }
    }

    /**
     * The region of a pool that contains a part of a buffer.
     *
     * @param buffer any buffer, retained
     * @param address where the part begins
     * @param lengthBytes its length
     * @return null if it lies outside the memory of pools
     */
    static @Nullable RegisteredMemory regionOf(ByteBuf buffer, long address, long lengthBytes) {
        List<RegisteredByteBuf> roots = new ArrayList<>(1);
        collectRootsUnder(buffer, roots);
        for (RegisteredByteBuf root : roots) {
            if (root.contains(address, lengthBytes)) {
                return root.region();
            }
        }
        return null;
    }

    private static @Nullable RegisteredMemory regionOf(
            ByteBuffer part, List<RegisteredByteBuf> roots, MemoryDomain domain) {
        long address = MemorySegment.ofBuffer(part).address();
        for (RegisteredByteBuf root : roots) {
            if (root.pool.domain().equals(domain) && root.contains(address, part.remaining())) {
                return root.region();
            }
        }
        return null;
    }

    private boolean contains(long address, long lengthBytes) {
        long start = memoryAddress();
        return address >= start && address + lengthBytes <= start + capacity;
    }

    // The methods of ByteBuf.

    @Override
    public int capacity() {
        return capacity;
    }

    /**
     * Changes the capacity. Shrinking keeps the block; growing beyond it moves the content to a larger one.
     *
     * @param newCapacity from 0 to {@link #maxCapacity()}
     * @return this
     * @throws RegisteredMemoryExhaustedException the pool is at its limit; the buffer is unchanged
     */
    @Override
    public ByteBuf capacity(int newCapacity) {
        checkNewCapacity(newCapacity);
        if (newCapacity < capacity) {
            trimIndicesToCapacity(newCapacity);
        } else if (newCapacity > block.lengthBytes) {
            move(newCapacity);
        }
        capacity = newCapacity;
        return this;
    }

    private void move(int newCapacity) {
        Block larger = pool.takeBlock(newCapacity);
        if (larger == null) {
            throw pool.exhausted(newCapacity);
        }
        Block old = block;
        MemorySegment to = larger.slab.chunk.segment;
        MemorySegment.copy(memory, base, to, larger.offsetBytes, capacity);
        // The two buffer objects swap blocks: the one that came with the larger block takes the old one.
        RegisteredByteBuf waiting = larger.buffer;
        larger.buffer = this;
        old.buffer = waiting;
        if (waiting != null) {
            waiting.live(old);
        }
        live(larger);
        pool.countGrow();
        pool.giveBack(old);
    }

    private void live(Block in) {
        block = in;
        memory = in.slab.chunk.segment;
        base = in.offsetBytes;
        internalView = null;
        source = null;
    }

    @Override
    public int maxFastWritableBytes() {
        return Math.min(block.lengthBytes, maxCapacity()) - writerIndex();
    }

    @Override
    public ByteBufAllocator alloc() {
        return pool.allocator();
    }

    @Override
    @Deprecated
    @SuppressWarnings("InlineMeSuggester") // deprecated by Netty, which calls it all the same
    public ByteOrder order() {
        return ByteOrder.BIG_ENDIAN;
    }

    @Override
    @SuppressWarnings("NullAway") // Netty's way to say that there is nothing underneath
    public ByteBuf unwrap() {
        return null;
    }

    @Override
    public boolean isDirect() {
        return true;
    }

    @Override
    public boolean isContiguous() {
        return true;
    }

    @Override
    public boolean hasArray() {
        return false;
    }

    @Override
    public byte[] array() {
        throw new UnsupportedOperationException("a direct buffer has no array");
    }

    @Override
    public int arrayOffset() {
        throw new UnsupportedOperationException("a direct buffer has no array");
    }

    @Override
    public boolean hasMemoryAddress() {
        return true;
    }

    @Override
    public long memoryAddress() {
        ensureAccessible();
        return memory.address() + base;
    }

    @Override
    protected byte _getByte(int index) {
        return memory.get(BYTE, base + index);
    }

    @Override
    protected short _getShort(int index) {
        return memory.get(SHORT, base + index);
    }

    @Override
    protected short _getShortLE(int index) {
        return memory.get(SHORT_LE, base + index);
    }

    @Override
    protected int _getUnsignedMedium(int index) {
        return ((_getByte(index) & 0xff) << 16) | (_getShort(index + 1) & 0xffff);
    }

    @Override
    protected int _getUnsignedMediumLE(int index) {
        return (_getByte(index) & 0xff) | ((_getShortLE(index + 1) & 0xffff) << 8);
    }

    @Override
    protected int _getInt(int index) {
        return memory.get(INT, base + index);
    }

    @Override
    protected int _getIntLE(int index) {
        return memory.get(INT_LE, base + index);
    }

    @Override
    protected long _getLong(int index) {
        return memory.get(LONG, base + index);
    }

    @Override
    protected long _getLongLE(int index) {
        return memory.get(LONG_LE, base + index);
    }

    @Override
    protected void _setByte(int index, int value) {
        memory.set(BYTE, base + index, (byte) value);
    }

    @Override
    protected void _setShort(int index, int value) {
        memory.set(SHORT, base + index, (short) value);
    }

    @Override
    protected void _setShortLE(int index, int value) {
        memory.set(SHORT_LE, base + index, (short) value);
    }

    @Override
    protected void _setMedium(int index, int value) {
        _setByte(index, value >> 16);
        _setShort(index + 1, value);
    }

    @Override
    protected void _setMediumLE(int index, int value) {
        _setByte(index, value);
        _setShortLE(index + 1, value >> 8);
    }

    @Override
    protected void _setInt(int index, int value) {
        memory.set(INT, base + index, value);
    }

    @Override
    protected void _setIntLE(int index, int value) {
        memory.set(INT_LE, base + index, value);
    }

    @Override
    protected void _setLong(int index, long value) {
        memory.set(LONG, base + index, value);
    }

    @Override
    protected void _setLongLE(int index, long value) {
        memory.set(LONG_LE, base + index, value);
    }

    @Override
    public ByteBuf setZero(int index, int length) {
        checkIndex(index, length);
        memory.asSlice(base + index, length).fill((byte) 0);
        return this;
    }

    @Override
    public ByteBuf getBytes(int index, ByteBuf dst, int dstIndex, int length) {
        checkDstIndex(index, length, dstIndex, dst.capacity());
        if (dst.isReadOnly()) {
            dst.setBytes(dstIndex, this, index, length);
        } else if (dst.hasMemoryAddress()) {
            MemorySegment.copy(memory, base + index, EVERYTHING, dst.memoryAddress() + dstIndex, length);
        } else if (dst.hasArray()) {
            getBytes(index, dst.array(), dst.arrayOffset() + dstIndex, length);
        } else {
            dst.setBytes(dstIndex, this, index, length);
        }
        return this;
    }

    @Override
    public ByteBuf getBytes(int index, byte[] dst, int dstIndex, int length) {
        checkDstIndex(index, length, dstIndex, dst.length);
        MemorySegment.copy(memory, BYTE, base + index, dst, dstIndex, length);
        return this;
    }

    @Override
    public ByteBuf getBytes(int index, ByteBuffer dst) {
        int length = dst.remaining();
        checkIndex(index, length);
        if (dst.isReadOnly()) {
            throw new ReadOnlyBufferException();
        }
        if (dst.isDirect()) {
            dst.put(dst.position(), source(), index, length); // makes no object for the copy
        } else {
            MemorySegment.copy(memory, base + index, MemorySegment.ofBuffer(dst), 0, length);
        }
        dst.position(dst.position() + length);
        return this;
    }

    @Override
    public ByteBuf getBytes(int index, OutputStream out, int length) throws IOException {
        checkIndex(index, length);
        byte[] part = new byte[Math.min(length, STREAM_BYTES)];
        for (int done = 0; done < length; ) {
            int now = Math.min(part.length, length - done);
            MemorySegment.copy(memory, BYTE, base + index + done, part, 0, now);
            out.write(part, 0, now);
            done += now;
        }
        return this;
    }

    @Override
    public int getBytes(int index, GatheringByteChannel out, int length) throws IOException {
        return length == 0 ? emptyPart(index) : out.write(nioBuffer(index, length));
    }

    @Override
    public int getBytes(int index, FileChannel out, long position, int length) throws IOException {
        return length == 0 ? emptyPart(index) : out.write(nioBuffer(index, length), position);
    }

    private int emptyPart(int index) {
        checkIndex(index, 0);
        return 0;
    }

    @Override
    public ByteBuf setBytes(int index, ByteBuf src, int srcIndex, int length) {
        checkSrcIndex(index, length, srcIndex, src.capacity());
        if (src.hasMemoryAddress()) {
            MemorySegment.copy(EVERYTHING, src.memoryAddress() + srcIndex, memory, base + index, length);
        } else if (src.hasArray()) {
            setBytes(index, src.array(), src.arrayOffset() + srcIndex, length);
        } else {
            src.getBytes(srcIndex, this, index, length);
        }
        return this;
    }

    @Override
    public ByteBuf setBytes(int index, byte[] src, int srcIndex, int length) {
        checkSrcIndex(index, length, srcIndex, src.length);
        MemorySegment.copy(src, srcIndex, memory, BYTE, base + index, length);
        return this;
    }

    @Override
    public ByteBuf setBytes(int index, ByteBuffer src) {
        int length = src.remaining();
        checkIndex(index, length);
        MemorySegment.copy(MemorySegment.ofBuffer(src), 0, memory, base + index, length);
        src.position(src.position() + length);
        return this;
    }

    @Override
    public int setBytes(int index, InputStream in, int length) throws IOException {
        checkIndex(index, length);
        byte[] part = new byte[Math.min(length, STREAM_BYTES)];
        int read = in.read(part, 0, part.length);
        if (read > 0) {
            MemorySegment.copy(part, 0, memory, BYTE, base + index, read);
        }
        return read;
    }

    @Override
    public int setBytes(int index, ScatteringByteChannel in, int length) throws IOException {
        try {
            return in.read(nioBuffer(index, length));
        } catch (ClosedChannelException ended) {
            // As ByteBuf.setBytes says.
            return -1;
        }
    }

    @Override
    public int setBytes(int index, FileChannel in, long position, int length) throws IOException {
        try {
            return in.read(nioBuffer(index, length), position);
        } catch (ClosedChannelException ended) {
            // As ByteBuf.setBytes says.
            return -1;
        }
    }

    @Override
    public ByteBuf copy(int index, int length) {
        checkIndex(index, length);
        return alloc().directBuffer(length, maxCapacity()).writeBytes(this, index, length);
    }

    @Override
    public int nioBufferCount() {
        return 1;
    }

    @Override
    public ByteBuffer nioBuffer(int index, int length) {
        checkIndex(index, length);
        return memory.asSlice(base + index, length).asByteBuffer();
    }

    @Override
    public ByteBuffer internalNioBuffer(int index, int length) {
        checkIndex(index, length);
        ByteBuffer view = internalView;
        if (view == null) {
            view = wholeBlock();
            internalView = view;
        }
        return view.clear().position(index).limit(index + length);
    }

    private ByteBuffer source() {
        ByteBuffer view = source;
        if (view == null) {
            view = wholeBlock();
            VarHandle.storeStoreFence(); // a thread that sees the view must see its limit too
            source = view;
        }
        return view;
    }

    private ByteBuffer wholeBlock() {
        return memory.asSlice(base, block.lengthBytes).asByteBuffer();
    }

    @Override
    public ByteBuffer[] nioBuffers(int index, int length) {
        return new ByteBuffer[] {nioBuffer(index, length)};
    }
}
