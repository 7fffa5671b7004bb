package org.verbena.transport.soft;

import java.io.IOException;
import java.nio.ByteBuffer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.transport.software.ConnectionOutcome;

/** Why a connection ends, and which Terminate message its peer gets. Not thread-safe; confined to the loop's thread. */
final class ConnectionEnd extends ConnectionOutcome {
    private static final Logger LOG = LoggerFactory.getLogger(ConnectionEnd.class);

    /** The payload of the Terminate message that the peer gets. */
    private byte @Nullable [] terminate;

    private boolean reset;

    /** The peer gets a Terminate message with such a payload. */
    void tellPeer(byte[] message) {
        terminate = message;
    }

    /** The peer gets a Terminate message that names no segment. */
    void tellPeer(TerminateReason reason) {
        terminate = ByteBuffer.allocate(4).putShort((short) reason.control()).array();
    }

    /** Nothing more can be sent to the peer. */
    void reset() {
        reset = true;
    }

    boolean isReset() {
        return reset;
    }

    /**
     * Sends what is owed to the peer, as far as possible, and makes the socket close itself.
     *
     * @param socket of the connection
     * @param out its sending half
     * @param peer for messages
     */
    void leave(SoftSocket socket, FpduSender out, Object peer) {
        ByteBuffer lastBytes = null;
        if (!reset) {
            out.stopSending();
            try {
                try {
                    out.pump();
                } catch (FpduSender.ResponseRefusedException e) {
                    if (terminate == null) {
                        tellPeer(TerminateReason.RDMAP_INVALID_STAG);
                    }
                }
                lastBytes = out.lastBytes(terminate);
                reset = lastBytes == null;
            } catch (IOException | FpduSender.RegionGoneException e) {
                LOG.debug("the last bytes to {}: {}", peer, e.toString());
                reset = true;
            }
        }
        if (reset) {
            socket.reset();
        } else {
            socket.closeGracefully(lastBytes != null && lastBytes.hasRemaining() ? lastBytes : null);
        }
    }
}
