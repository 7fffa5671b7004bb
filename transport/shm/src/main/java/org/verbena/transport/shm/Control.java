package org.verbena.transport.shm;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.List;
import org.verbena.transport.spi.WorkStatus;

/**
 * What is said on the socket once a connection is up: a byte that wakes, and how the connection ends. What was written
 * into the ring before it was said counts. One thread.
 */
final class Control {
    private static final byte WAKE = 1;
    private static final byte DISCONNECT = 2;
    private static final byte TERMINATE = 3;

    /** The reasons of a TERMINATE, by their numbers on the wire. */
    private static final WorkStatus[] REASONS = {
        WorkStatus.GENERAL_ERROR,
        WorkStatus.REMOTE_ACCESS_ERROR,
        WorkStatus.REMOTE_INVALID_REQUEST_ERROR,
        WorkStatus.RECEIVER_NOT_READY_RETRY_EXCEEDED
    };

    private final ControlSocket socket;
    private final ByteBuffer wake = ByteBuffer.allocateDirect(1).put(0, WAKE);

    /** What has come of a TERMINATE: 1 byte of status, 4 of request. */
    private final ByteBuffer terminate = ByteBuffer.allocate(1 + Integer.BYTES);

    private boolean inTerminate;

    /** What was read. */
    enum Events {
        /** The peer has written into a ring, or read from one. */
        WOKEN,
        /** The peer has disconnected in good order. */
        DISCONNECTED,
        /** The peer has ended the connection because of a request of this side. */
        TERMINATED,
        /** The socket has ended, and nothing was said. */
        ENDED
    }

    Control(ControlSocket socket) {
        this.socket = socket;
    }

    /** The peer sleeps, and there is something for it. */
    void wakePeer() throws IOException {
        // A socket that is full has something to read for it.
        if (!socket.hasUnsent()) {
            socket.channel().write(wake.clear());
        }
    }

    static ByteBuffer disconnect() {
        return ByteBuffer.allocate(1).put(0, DISCONNECT);
    }

    static ByteBuffer terminate(WorkStatus status, int request) {
        return ByteBuffer.allocate(2 + Integer.BYTES)
                .put(TERMINATE)
                .put((byte) Math.max(0, List.of(REASONS).indexOf(status)))
                .putInt(request)
                .flip();
    }

    /**
     * Reads what has come.
     *
     * @throws IOException the socket is broken
     * @throws RingException the peer says what nobody says
     */
    Events read() throws IOException {
        while (true) {
            ByteBuffer bytes = socket.io().controlBuffer();
            int read = socket.channel().read(bytes);
            if (read <= 0) {
                return read < 0 ? Events.ENDED : Events.WOKEN;
            }
            bytes.flip();
            while (bytes.hasRemaining()) {
                byte next = bytes.get();
                if (inTerminate) {
                    terminate.put(next);
                    if (!terminate.hasRemaining()) {
                        return Events.TERMINATED;
                    }
                    continue;
                }
                switch (next) {
                    case WAKE -> {}
                    case DISCONNECT -> {
                        return Events.DISCONNECTED;
                    }
                    case TERMINATE -> inTerminate = true;
                    default -> throw new RingException("the byte " + next + " on the socket");
                }
            }
        }
    }

    WorkStatus terminateStatus() {
        int reason = terminate.get(0);
        return REASONS[reason > 0 && reason < REASONS.length ? reason : 0];
    }

    int terminateRequest() {
        return terminate.getInt(1);
    }
}
