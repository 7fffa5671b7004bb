package org.verbena.transport.soft;

import java.io.IOException;
import java.nio.ByteBuffer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.transport.spi.WorkStatus;

/**
 * Why a connection ends: what its peer is told, and which work request failed by itself rather than with the
 * connection. One thread.
 */
final class ConnectionEnd {
    private static final Logger LOG = LoggerFactory.getLogger(ConnectionEnd.class);

    private @Nullable Throwable cause;

    /** The payload of the Terminate message that the peer gets. */
    private byte @Nullable [] terminate;

    private boolean reset;
    private long failedSequence = -1;
    private WorkStatus failedStatus = WorkStatus.FLUSHED;
    private boolean receiveFailed;

    /** Null for an orderly end. */
    @Nullable Throwable cause() {
        return cause;
    }

    void setCause(Throwable why) {
        cause = why;
    }

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

    /** The receive that a message goes to is too small for it. */
    void receiveTooSmall() {
        receiveFailed = true;
    }

    boolean hasReceiveFailed() {
        return receiveFailed;
    }

    /** The status of the receive in progress. */
    WorkStatus receiveStatus() {
        return receiveFailed ? WorkStatus.LOCAL_LENGTH_ERROR : WorkStatus.FLUSHED;
    }

    /** The peer reported which request of the send queue failed, and how. */
    void requestFailed(long sequence, WorkStatus status) {
        failedSequence = sequence;
        failedStatus = status;
    }

    boolean isFailed(long sequence) {
        return sequence == failedSequence;
    }

    /** The status of a request of the send queue that is not done. */
    WorkStatus status(long sequence) {
        return isFailed(sequence) ? failedStatus : WorkStatus.FLUSHED;
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
