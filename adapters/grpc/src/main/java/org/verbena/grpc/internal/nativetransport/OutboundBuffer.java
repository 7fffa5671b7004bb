package org.verbena.grpc.internal.nativetransport;

import io.grpc.internal.WritableBuffer;
import io.grpc.internal.WritableBufferAllocator;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufAllocator;
import java.util.Objects;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.verbena.grpc.internal.wire.Frames;

/**
 * What gRPC's framer fills, and the payload of DATA. A short one is an array, which is copied behind other frames; a
 * long one lies in the channel's memory, with room for its frame's header in front, and is sent as it is.
 */
final class OutboundBuffer implements WritableBuffer {
    /** Up to this, copying costs less than a message of its own. */
    static final int MAX_SHORT_BYTES = 2048;

    private final byte @Nullable [] array;
    private final @Nullable ByteBuf memory;
    private int written;
    private int taken;

    private OutboundBuffer(byte @Nullable [] array, @Nullable ByteBuf memory) {
        this.array = array;
        this.memory = memory;
    }

    /**
     * Gives out buffers. Any thread.
     *
     * @param memory the channel's allocator
     * @return the allocator for gRPC's framer
     */
    static WritableBufferAllocator allocator(Supplier<ByteBufAllocator> memory) {
        return capacityBytes -> {
            if (capacityBytes <= MAX_SHORT_BYTES) {
                return new OutboundBuffer(new byte[capacityBytes], null);
            }
            int bytes = Frames.HEADER_BYTES + Math.min(capacityBytes, Frames.MAX_DATA_BYTES);
            ByteBuf room = memory.get().directBuffer(bytes, bytes);
            room.setIndex(Frames.HEADER_BYTES, Frames.HEADER_BYTES);
            return new OutboundBuffer(null, room);
        };
    }

    /**
     * What gRPC's framer gives the transport, which is one of these unless something puts buffers of its own into it.
     *
     * @throws UnsupportedOperationException if it is not; it has been released
     */
    static OutboundBuffer of(WritableBuffer frame) {
        if (frame instanceof OutboundBuffer own) {
            return own;
        }
        frame.release();
        throw new UnsupportedOperationException(
                "a message was put into gRPC's framer as " + frame.getClass().getName()
                        + ", which only HTTP/2 sends: for Arrow Flight leave arrow.flight.enable_zero_copy_write off");
    }

    /** Whether it is copied behind other frames. */
    boolean isShort() {
        return array != null;
    }

    /** Copies the next bytes of a short one. */
    void copy(ByteBuf into, int lengthBytes) {
        if (array != null) {
            into.writeBytes(array, taken, lengthBytes);
            taken += lengthBytes;
        }
    }

    /** The content of a long one, behind room for a frame's header. */
    ByteBuf memory() {
        return Objects.requireNonNull(memory);
    }

    @Override
    public void write(byte[] from, int index, int lengthBytes) {
        if (array != null) {
            System.arraycopy(from, index, array, written, lengthBytes);
            written += lengthBytes;
        } else if (memory != null) {
            memory.writeBytes(from, index, lengthBytes);
        }
    }

    @Override
    public void write(byte value) {
        if (array != null) {
            array[written] = value;
            written++;
        } else if (memory != null) {
            memory.writeByte(value);
        }
    }

    @Override
    public int writableBytes() {
        return array != null ? array.length - written : memory != null ? memory.writableBytes() : 0;
    }

    @Override
    public int readableBytes() {
        return memory != null ? memory.readableBytes() : written - taken;
    }

    @Override
    public void release() {
        if (memory != null) {
            memory.release();
        }
    }
}
