package org.verbena.api.internal.channel;

import io.netty.buffer.ByteBuf;
import io.netty.channel.FileRegion;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.WritableByteChannel;
import java.util.concurrent.TimeUnit;
import java.util.function.IntConsumer;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.protocol.OperationCallback;
import org.verbena.transport.protocol.connection.MessageConnection;

/** Sends {@link FileRegion}s chunk by chunk, one region after the other. Event loop only. */
final class FileSender {
    /** How much of a file is read at a time. */
    private static final int CHUNK_BYTES = 64 << 10;

    /** Chunks under way at once: enough to keep the connection busy while the next is read. */
    private static final int MAX_CHUNKS = 8;

    /** The delay before the next attempt to read a region that gave no bytes. */
    private static final int RETRY_MILLIS = 1;

    private final OutboundBridge.Host host;
    private final IntConsumer onProgress;
    private final OperationCallback onChunk = this::onChunk0;
    private int chunksOut;
    private boolean failed;
    private boolean retryScheduled;

    FileSender(OutboundBridge.Host host, IntConsumer onProgress) {
        this.host = host;
        this.onProgress = onProgress;
    }

    /**
     * Sends a region's next chunks, as many as may be in flight. When they complete, it asks the host to flush again.
     *
     * @param region complete when it has transferred its count, even if it wrote a different number of bytes
     * @param open sends the chunks
     * @param onSent called with the outcome of the last chunk, whose bytes are its context
     * @return whether the last chunk has been handed over
     */
    boolean send(FileRegion region, MessageConnection open, OperationCallback onSent) {
        while (chunksOut < MAX_CHUNKS && !failed && !retryScheduled) {
            long leftBytes = region.count() - region.transferred();
            ByteBuf chunk = host.alloc().directBuffer((int) Math.clamp(leftBytes, 1L, CHUNK_BYTES), CHUNK_BYTES);
            try {
                fill(chunk, region);
            } catch (IOException | RuntimeException cause) {
                chunk.release();
                // Some of it may have been sent: the peer does not expect what would follow.
                failed = true;
                host.abortLocally0(cause);
                return false;
            }
            boolean complete = region.transferred() >= region.count();
            boolean full = chunk.maxWritableBytes() == 0;
            Integer bytes = chunk.readableBytes();
            if (complete) {
                open.send(chunk, onSent, bytes);
                return true;
            }
            if (chunk.isReadable()) {
                chunksOut++;
                open.send(chunk, onChunk, bytes);
            } else {
                chunk.release();
            }
            if (!full) {
                retryLater();
            }
        }
        return false;
    }

    /** Reads until the chunk is full, or the region is complete or gives no bytes for now. */
    private static void fill(ByteBuf chunk, FileRegion region) throws IOException {
        Sink sink = new Sink(chunk);
        boolean gives = true;
        while (gives && chunk.maxWritableBytes() > 0 && region.transferred() < region.count()) {
            int bytesBefore = chunk.readableBytes();
            long transferredBefore = region.transferred();
            region.transferTo(sink, transferredBefore);
            gives = chunk.readableBytes() > bytesBefore || region.transferred() > transferredBefore;
        }
    }

    private void retryLater() {
        host.eventLoop()
                .schedule(
                        () -> {
                            retryScheduled = false;
                            host.flushAgain0();
                        },
                        RETRY_MILLIS,
                        TimeUnit.MILLISECONDS);
        retryScheduled = true;
    }

    private void onChunk0(@Nullable Object context, @Nullable Throwable cause) {
        chunksOut--;
        if (cause != null) {
            failed = true;
            host.abort0(cause); // a part of a file is useless to the peer
        } else if (context instanceof Integer bytes) {
            onProgress.accept(bytes);
            host.flushAgain0();
        }
    }

    /** Writes as much as fits into a chunk. */
    private record Sink(ByteBuf chunk) implements WritableByteChannel {
        @Override
        public int write(ByteBuffer bytes) {
            int length = Math.min(bytes.remaining(), chunk.maxWritableBytes());
            chunk.writeBytes(bytes.slice().limit(length));
            bytes.position(bytes.position() + length);
            return length;
        }

        @Override
        public boolean isOpen() {
            return true;
        }

        @Override
        public void close() {
            // The memory belongs to the caller.
        }
    }
}
