package org.verbena.grpc.internal.nativetransport;

import io.grpc.internal.AbstractReadableBuffer;
import io.grpc.internal.ReadableBuffer;
import io.netty.buffer.ByteBuf;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * A long payload of DATA where the channel received it, for gRPC's deframer and the program's deserializer. One thread
 * at a time. What it and its parts have is counted as held until they are closed.
 */
final class InboundBuffer extends AbstractReadableBuffer {
    private final ByteBuf content;
    private final AtomicInteger heldBytes;
    private int counted;
    private boolean closed;

    /**
     * Takes over a reference.
     *
     * @param content released when this is closed
     * @param heldBytes what its connection holds; this is counted there until it is closed
     */
    InboundBuffer(ByteBuf content, AtomicInteger heldBytes) {
        this(content, heldBytes, content.readableBytes());
        heldBytes.addAndGet(counted);
    }

    private InboundBuffer(ByteBuf content, AtomicInteger heldBytes, int counted) {
        this.content = content;
        this.heldBytes = heldBytes;
        this.counted = counted;
    }

    @Override
    public int readableBytes() {
        return content.readableBytes();
    }

    @Override
    public int readUnsignedByte() {
        return content.readUnsignedByte();
    }

    @Override
    public void skipBytes(int length) {
        content.skipBytes(length);
    }

    @Override
    public void readBytes(byte[] into, int index, int length) {
        content.readBytes(into, index, length);
    }

    @Override
    public void readBytes(OutputStream into, int length) throws IOException {
        content.readBytes(into, length);
    }

    /** For gRPC before 1.79. */
    public void readBytes(ByteBuffer into) {
        content.readBytes(into);
    }

    @Override
    public ReadableBuffer readBytes(int length) {
        InboundBuffer part = new InboundBuffer(content.readRetainedSlice(length), heldBytes, length);
        counted -= length;
        return part;
    }

    @Override
    public boolean hasArray() {
        return content.hasArray();
    }

    @Override
    public byte[] array() {
        return content.array();
    }

    @Override
    public int arrayOffset() {
        return content.arrayOffset() + content.readerIndex();
    }

    @Override
    public boolean markSupported() {
        return true;
    }

    @Override
    public void mark() {
        content.markReaderIndex();
    }

    @Override
    public void reset() {
        content.resetReaderIndex();
    }

    @Override
    public boolean byteBufferSupported() {
        return content.nioBufferCount() > 0;
    }

    @Override
    public ByteBuffer getByteBuffer() {
        return content.nioBufferCount() == 1 ? content.nioBuffer() : content.nioBuffers()[0];
    }

    @Override
    public void close() {
        if (!closed) {
            closed = true;
            heldBytes.addAndGet(-counted);
            content.release();
        }
    }
}
