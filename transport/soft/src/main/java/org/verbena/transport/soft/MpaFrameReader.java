package org.verbena.transport.soft;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/**
 * Reads one frame of the startup phase, in as many pieces as it arrives, and not a byte more: the next owner of the
 * socket reads what follows. Not thread-safe; confined to the loop's thread.
 */
final class MpaFrameReader {
    private final boolean reply;
    private final ByteBuffer bytes = ByteBuffer.allocate(MpaFrame.HEADER_BYTES + MpaFrame.MAX_PRIVATE_DATA_BYTES);
    private boolean ended;

    /**
     * Nothing read yet.
     *
     * @param reply whether a reply is expected, or a request
     */
    MpaFrameReader(boolean reply) {
        this.reply = reply;
        bytes.limit(MpaFrame.HEADER_BYTES);
    }

    /** Whether the peer ended the stream before the frame was complete. */
    boolean isEnded() {
        return ended;
    }

    /** Whether some of the frame has come. */
    boolean hasBytes() {
        return bytes.position() > 0;
    }

    /** Whether enough has come to know that this is the frame. */
    boolean hasKey() {
        return bytes.position() >= MpaFrame.KEY_BYTES && MpaFrame.mayBeKey(bytes.array(), bytes.position(), reply);
    }

    /** Whether what has come, and all that can come, is of another protocol. */
    boolean isOtherProtocol() {
        return hasBytes() && !hasKey() && (ended || !MpaFrame.mayBeKey(bytes.array(), bytes.position(), reply));
    }

    /** A copy of what has come. */
    byte[] bytes() {
        return Arrays.copyOf(bytes.array(), bytes.position());
    }

    /**
     * Reads on.
     *
     * @param channel non-blocking
     * @return the frame; null if more must come, or {@link #isEnded()}
     * @throws IOException the connection is broken
     * @throws MpaException the frame is malformed
     */
    @Nullable MpaFrame read(SocketChannel channel) throws IOException, MpaException {
        while (true) {
            if (channel.read(bytes) < 0) {
                ended = true;
                return null;
            }
            MpaFrame.checkKey(bytes.array(), bytes.position(), reply);
            if (bytes.hasRemaining()) {
                return null;
            }
            int whole = MpaFrame.HEADER_BYTES + MpaFrame.privateDataBytes(bytes.array());
            if (bytes.position() == whole) {
                return MpaFrame.decode(bytes.array(), whole, reply);
            }
            bytes.limit(whole);
        }
    }
}
