package org.verbena.transport.protocol.sending;

import io.netty.buffer.AbstractByteBuf;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufAllocator;
import io.netty.buffer.Unpooled;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.channels.GatheringByteChannel;
import java.nio.channels.ScatteringByteChannel;

/**
 * A window onto a part of another buffer, which is moved from one claim to the next. While it is closed, every access
 * throws. It owns nothing: retaining and releasing it have no effect.
 */
public final class ClaimedBuf extends AbstractByteBuf {
    private ByteBuf memory = Unpooled.EMPTY_BUFFER;
    private int base;
    private int capacity;
    private boolean isOpen;

    public ClaimedBuf() {
        super(Integer.MAX_VALUE);
    }

    /** Shows this part of the memory from now on, empty. */
    public void open(ByteBuf of, int index, int lengthBytes) {
        memory = of;
        base = index;
        capacity = lengthBytes;
        maxCapacity(lengthBytes);
        clear();
        markReaderIndex();
        markWriterIndex();
        isOpen = true;
    }

    /** Shows nothing from now on. */
    public void close() {
        isOpen = false;
        memory = Unpooled.EMPTY_BUFFER;
    }

    @Override
    public int capacity() {
        return capacity;
    }

    @Override
    public ByteBuf capacity(int newCapacity) {
        checkNewCapacity(newCapacity);
        if (newCapacity < capacity) {
            trimIndicesToCapacity(newCapacity);
        }
        capacity = newCapacity; // within the claim, which is the greatest
        return this;
    }

    @Override
    public ByteBufAllocator alloc() {
        return memory.alloc();
    }

    @Override
    @Deprecated
    @SuppressWarnings("InlineMeSuggester") // deprecated by Netty, which calls it all the same
    public ByteOrder order() {
        return ByteOrder.BIG_ENDIAN;
    }

    /** None, so that nothing sends this memory, which it does not hold, without a copy. */
    @Override
    @SuppressWarnings("NullAway") // Netty's way to say that there is nothing underneath
    public ByteBuf unwrap() {
        return null;
    }

    @Override
    public boolean isDirect() {
        return memory.isDirect();
    }

    @Override
    public boolean isContiguous() {
        return memory.isContiguous();
    }

    @Override
    public boolean hasArray() {
        return false;
    }

    @Override
    public byte[] array() {
        throw new UnsupportedOperationException("a claim has no array");
    }

    @Override
    public int arrayOffset() {
        throw new UnsupportedOperationException("a claim has no array");
    }

    @Override
    public boolean hasMemoryAddress() {
        return memory.hasMemoryAddress();
    }

    @Override
    public long memoryAddress() {
        return memory.memoryAddress() + base;
    }

    @Override
    public int refCnt() {
        return isOpen ? 1 : 0;
    }

    @Override
    public ByteBuf retain() {
        return this;
    }

    @Override
    public ByteBuf retain(int increment) {
        return this;
    }

    @Override
    public ByteBuf touch() {
        return this;
    }

    @Override
    public ByteBuf touch(Object hint) {
        return this;
    }

    @Override
    public boolean release() {
        return false;
    }

    @Override
    public boolean release(int decrement) {
        return false;
    }

    @Override
    protected byte _getByte(int index) {
        return memory.getByte(base + index);
    }

    @Override
    protected short _getShort(int index) {
        return memory.getShort(base + index);
    }

    @Override
    protected short _getShortLE(int index) {
        return memory.getShortLE(base + index);
    }

    @Override
    protected int _getUnsignedMedium(int index) {
        return memory.getUnsignedMedium(base + index);
    }

    @Override
    protected int _getUnsignedMediumLE(int index) {
        return memory.getUnsignedMediumLE(base + index);
    }

    @Override
    protected int _getInt(int index) {
        return memory.getInt(base + index);
    }

    @Override
    protected int _getIntLE(int index) {
        return memory.getIntLE(base + index);
    }

    @Override
    protected long _getLong(int index) {
        return memory.getLong(base + index);
    }

    @Override
    protected long _getLongLE(int index) {
        return memory.getLongLE(base + index);
    }

    @Override
    protected void _setByte(int index, int value) {
        memory.setByte(base + index, value);
    }

    @Override
    protected void _setShort(int index, int value) {
        memory.setShort(base + index, value);
    }

    @Override
    protected void _setShortLE(int index, int value) {
        memory.setShortLE(base + index, value);
    }

    @Override
    protected void _setMedium(int index, int value) {
        memory.setMedium(base + index, value);
    }

    @Override
    protected void _setMediumLE(int index, int value) {
        memory.setMediumLE(base + index, value);
    }

    @Override
    protected void _setInt(int index, int value) {
        memory.setInt(base + index, value);
    }

    @Override
    protected void _setIntLE(int index, int value) {
        memory.setIntLE(base + index, value);
    }

    @Override
    protected void _setLong(int index, long value) {
        memory.setLong(base + index, value);
    }

    @Override
    protected void _setLongLE(int index, long value) {
        memory.setLongLE(base + index, value);
    }

    @Override
    public ByteBuf getBytes(int index, ByteBuf dst, int dstIndex, int length) {
        checkDstIndex(index, length, dstIndex, dst.capacity());
        memory.getBytes(base + index, dst, dstIndex, length);
        return this;
    }

    @Override
    public ByteBuf getBytes(int index, byte[] dst, int dstIndex, int length) {
        checkDstIndex(index, length, dstIndex, dst.length);
        memory.getBytes(base + index, dst, dstIndex, length);
        return this;
    }

    @Override
    public ByteBuf getBytes(int index, ByteBuffer dst) {
        checkIndex(index, dst.remaining());
        memory.getBytes(base + index, dst);
        return this;
    }

    @Override
    public ByteBuf getBytes(int index, OutputStream out, int length) throws IOException {
        checkIndex(index, length);
        memory.getBytes(base + index, out, length);
        return this;
    }

    @Override
    public int getBytes(int index, GatheringByteChannel out, int length) throws IOException {
        checkIndex(index, length);
        return memory.getBytes(base + index, out, length);
    }

    @Override
    public int getBytes(int index, FileChannel out, long position, int length) throws IOException {
        checkIndex(index, length);
        return memory.getBytes(base + index, out, position, length);
    }

    @Override
    public ByteBuf setBytes(int index, ByteBuf src, int srcIndex, int length) {
        checkSrcIndex(index, length, srcIndex, src.capacity());
        memory.setBytes(base + index, src, srcIndex, length);
        return this;
    }

    @Override
    public ByteBuf setBytes(int index, byte[] src, int srcIndex, int length) {
        checkSrcIndex(index, length, srcIndex, src.length);
        memory.setBytes(base + index, src, srcIndex, length);
        return this;
    }

    @Override
    public ByteBuf setBytes(int index, ByteBuffer src) {
        checkIndex(index, src.remaining());
        memory.setBytes(base + index, src);
        return this;
    }

    @Override
    public int setBytes(int index, InputStream in, int length) throws IOException {
        checkIndex(index, length);
        return memory.setBytes(base + index, in, length);
    }

    @Override
    public int setBytes(int index, ScatteringByteChannel in, int length) throws IOException {
        checkIndex(index, length);
        return memory.setBytes(base + index, in, length);
    }

    @Override
    public int setBytes(int index, FileChannel in, long position, int length) throws IOException {
        checkIndex(index, length);
        return memory.setBytes(base + index, in, position, length);
    }

    @Override
    public ByteBuf copy(int index, int length) {
        checkIndex(index, length);
        return memory.copy(base + index, length);
    }

    @Override
    public int nioBufferCount() {
        return 1;
    }

    @Override
    public ByteBuffer nioBuffer(int index, int length) {
        checkIndex(index, length);
        return memory.nioBuffer(base + index, length);
    }

    @Override
    public ByteBuffer internalNioBuffer(int index, int length) {
        checkIndex(index, length);
        return memory.internalNioBuffer(base + index, length);
    }

    @Override
    public ByteBuffer[] nioBuffers(int index, int length) {
        return new ByteBuffer[] {nioBuffer(index, length)};
    }
}
