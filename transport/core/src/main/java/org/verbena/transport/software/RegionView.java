package org.verbena.transport.software;

import java.nio.ByteBuffer;
import org.jspecify.annotations.Nullable;

/**
 * A byte buffer over registered memory, for the socket. It remembers the buffer of the region it was last used for, so
 * that the usual case, few regions used over and over, makes no garbage. Not thread-safe; confined to the loop's
 * thread.
 */
public final class RegionView {
    /** The longest byte buffer that is made: a little less than the JDK's limit, which is an array's. */
    private static final int LARGEST_BUFFER_BYTES = Integer.MAX_VALUE - 8;

    private static final ByteBuffer NOTHING = ByteBuffer.allocate(0);

    private @Nullable SoftwareMemory region;
    private ByteBuffer buffer = NOTHING;

    /**
     * Aims the view.
     *
     * @param memory the region
     * @param offset where, from its start
     * @param length how much
     * @return the buffer, valid until the next call
     */
    public ByteBuffer aim(SoftwareMemory memory, long offset, int length) {
        if (memory.lengthBytes() > LARGEST_BUFFER_BYTES) {
            // A buffer cannot span it: a new one each time, for pieces of regions over 2 GiB.
            region = null;
            buffer = memory.segment().asSlice(offset, length).asByteBuffer();
            return buffer;
        }
        if (region != memory) {
            buffer = memory.segment().asByteBuffer();
            region = memory;
        }
        return buffer.limit((int) offset + length).position((int) offset);
    }

    /** Forgets the region unless it is likely to come again. */
    public void forgetIfClosed() {
        if (region != null && region.isClosed()) {
            region = null;
            buffer = NOTHING;
        }
    }
}
