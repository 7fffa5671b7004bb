package org.verbena.transport.shm;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.List;
import org.verbena.transport.WorkStatus;

/**
 * The messages on the socket once a connection is up: a byte that wakes, files to map, where to ring, and how the
 * connection ends. What was written into the ring before a message counts. Not thread-safe; confined to the loop's
 * thread.
 */
final class Control {
    private static final byte WAKE = 1;
    private static final byte DISCONNECT = 2;

    /** 1 byte of reason, 4 of request. */
    private static final byte TERMINATE = 3;

    /** 4 bytes of number, 4 of descriptor, 8 of length, 1 that is not 0 if this side may write it. */
    private static final byte FILE = 4;

    /** 4 bytes of number. */
    private static final byte FREED = 5;

    /** 4 bytes of descriptor, 8 of the file's inode, 4 of the connection's bit. */
    private static final byte DOORBELL = 6;

    /**
     * Read of one socket before others have their turn: some 28 files, which are system calls each, or more wake-ups
     * than there ever are.
     */
    static final int TURN_BYTES = 512;

    /** By message, the bytes behind its first one. */
    private static final int[] BODY_BYTES = {0, 0, 0, 5, 17, 4, 16};

    private static final int MAX_BODY_BYTES = 17;

    /** The reasons of a TERMINATE, by their numbers on the wire. */
    private static final WorkStatus[] REASONS = {
        WorkStatus.GENERAL_ERROR,
        WorkStatus.REMOTE_ACCESS_ERROR,
        WorkStatus.REMOTE_INVALID_REQUEST_ERROR,
        WorkStatus.RECEIVER_NOT_READY_RETRY_EXCEEDED
    };

    private final Files files;
    private final Bells bells;

    /** The message that is being read, 0 for none, and what has come of it. */
    private byte saying;

    private final ByteBuffer body = ByteBuffer.allocate(MAX_BODY_BYTES).limit(0);

    /** What was read. */
    enum Events {
        /** The peer may have written into a ring, or read from one. */
        WOKEN,
        /** The peer has disconnected in good order. */
        DISCONNECTED,
        /** The peer has ended the connection because of a request of this side. */
        TERMINATED,
        /** The socket has ended without a message. */
        ENDED
    }

    /** Keeps the files that the peer announces. */
    interface Files {
        void add(int number, int descriptor, long lengthBytes, boolean isWritable);

        void remove(int number);
    }

    /** Rings for the peer. */
    interface Bells {
        /**
         * The peer's loop has a doorbell.
         *
         * @throws RingException it is the second one, or there is no such bit
         */
        void ringAt(int descriptor, long inode, int slot);
    }

    Control(Files files, Bells bells) {
        this.files = files;
        this.bells = bells;
    }

    /**
     * Wakes the peer, which sleeps although there is something for it.
     *
     * @return false if the socket is full: then the peer has something to read there, unless it is just closing it
     */
    static boolean wakePeer(ControlSocket socket) throws IOException {
        if (socket.hasUnsent()) {
            return false;
        }
        ByteBuffer one = socket.io().controlBuffer();
        socket.io().countWakeUp();
        return socket.channel().write(one.put(WAKE).flip()) > 0;
    }

    static ByteBuffer disconnect() {
        return ByteBuffer.allocate(1).put(0, DISCONNECT);
    }

    static ByteBuffer terminate(WorkStatus status, int request) {
        return ByteBuffer.allocate(1 + BODY_BYTES[TERMINATE])
                .put(TERMINATE)
                .put((byte) Math.max(0, List.of(REASONS).indexOf(status)))
                .putInt(request)
                .flip();
    }

    static ByteBuffer file(int number, int descriptor, long lengthBytes, boolean isWritable) {
        return ByteBuffer.allocate(1 + BODY_BYTES[FILE])
                .put(FILE)
                .putInt(number)
                .putInt(descriptor)
                .putLong(lengthBytes)
                .put((byte) (isWritable ? 1 : 0))
                .flip();
    }

    static ByteBuffer freed(int number) {
        return ByteBuffer.allocate(1 + BODY_BYTES[FREED])
                .put(FREED)
                .putInt(number)
                .flip();
    }

    static ByteBuffer doorbell(int descriptor, long inode, int slot) {
        return ByteBuffer.allocate(1 + BODY_BYTES[DOORBELL])
                .put(DOORBELL)
                .putInt(descriptor)
                .putLong(inode)
                .putInt(slot)
                .flip();
    }

    /**
     * Reads what has come, up to a turn's worth. What is left makes the socket readable again.
     *
     * @throws IOException the socket is broken
     * @throws RingException the peer sends no known message
     */
    Events read(ControlSocket socket) throws IOException {
        ByteBuffer bytes = socket.io().controlBuffer().limit(TURN_BYTES);
        int read = socket.channel().read(bytes);
        return read < 0 ? Events.ENDED : parse(bytes.flip());
    }

    /**
     * Takes bytes in the order in which they came, cut anywhere.
     *
     * @param bytes read up to the end, or up to the message that ends the connection
     * @throws RingException the peer sends no known message
     */
    Events parse(ByteBuffer bytes) {
        while (bytes.hasRemaining()) {
            byte next = bytes.get();
            if (saying != 0) {
                body.put(next);
            } else if (next > 0 && next < BODY_BYTES.length) {
                saying = next;
                body.clear().limit(BODY_BYTES[next]);
            } else {
                throw new RingException("the byte " + next + " on the socket");
            }
            if (!body.hasRemaining() && said()) {
                return saying == DISCONNECT ? Events.DISCONNECTED : Events.TERMINATED;
            }
        }
        return Events.WOKEN;
    }

    /** A message is complete; returns whether the connection ends with it. */
    private boolean said() {
        switch (saying) {
            case DISCONNECT, TERMINATE -> {
                return true;
            }
            case FILE -> files.add(body.getInt(0), body.getInt(4), body.getLong(8), body.get(16) != 0);
            case FREED -> files.remove(body.getInt(0));
            case DOORBELL -> bells.ringAt(body.getInt(0), body.getLong(4), body.getInt(12));
            default -> {}
        }
        saying = 0;
        return false;
    }

    WorkStatus terminateStatus() {
        int reason = body.get(0);
        return REASONS[reason > 0 && reason < REASONS.length ? reason : 0];
    }

    int terminateRequest() {
        return body.getInt(1);
    }
}
