package org.verbena.transport.shm;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.shm.ffm.ProcessFiles;
import org.verbena.transport.spi.EndpointOptions;

/**
 * The two frames that set a connection up: the connecting side's request, which describes its shared file, and the
 * answer. Each begins with its length.
 */
final class Handshake {
    private static final long MAGIC = 0x5645_5242_534d_3034L; // VERBSM04

    /** Bits that differ between versions: two digits of text. */
    private static final long VERSION_BITS = 0xffff;

    /** Two IPv6 addresses and the greatest private data fit well. */
    private static final int MAX_FRAME_BYTES = 1024;

    private Handshake() {}

    /**
     * The request of the connecting side.
     *
     * @param pid its process
     * @param namespace of PIDs that it is in; 0 if it does not know
     * @param descriptor there, of the shared file
     * @param secretHigh a random number that is in the file as well: a client that names a file of another process does
     *     not know it
     * @param secretLow the rest of it
     * @param ringBytes of one direction
     * @param readDepth reads and atomics that it answers, and that it wants to have out
     * @param from its address
     * @param to the address that it connects to
     * @param privateData of its program
     */
    @SuppressWarnings("ArrayRecordComponent")
    record Request(
            long pid,
            long namespace,
            int descriptor,
            long secretHigh,
            long secretLow,
            int ringBytes,
            int readDepth,
            InetSocketAddress from,
            InetSocketAddress to,
            byte[] privateData) {

        ByteBuffer encode() {
            ByteBuffer frame = begin();
            frame.putLong(MAGIC)
                    .putLong(pid)
                    .putLong(namespace)
                    .putInt(descriptor)
                    .putLong(secretHigh)
                    .putLong(secretLow)
                    .putInt(ringBytes)
                    .putInt(readDepth);
            put(frame, from);
            put(frame, to);
            put(frame, privateData);
            return end(frame);
        }

        static Request decode(ByteBuffer frame) throws IOException {
            try {
                long magic = frame.getLong();
                if (magic != MAGIC) {
                    if (isOfAnotherVersion(magic)) {
                        throw new VersionException(
                                "sent a connect request of another version: both sides need the same of Verbena");
                    }
                    throw new IOException("sent no connect request");
                }
                Request made = new Request(
                        frame.getLong(),
                        frame.getLong(),
                        frame.getInt(),
                        frame.getLong(),
                        frame.getLong(),
                        frame.getInt(),
                        frame.getInt(),
                        address(frame),
                        address(frame),
                        bytes(frame));
                int ring = made.ringBytes;
                if (ring < Ring.MIN_BYTES || ring > Ring.MAX_BYTES || Integer.bitCount(ring) != 1) {
                    throw new IOException("wants a ring of " + ring + " bytes");
                }
                if (made.readDepth < 0 || made.readDepth > 128 || made.pid < 1 || made.descriptor < 0) {
                    throw new IOException("sent a connect request that is out of range: process " + made.pid
                            + ", descriptor " + made.descriptor + ", reads " + made.readDepth);
                }
                return made;
            } catch (BufferUnderflowException e) {
                throw new IOException("sent a connect request that is cut", e);
            }
        }
    }

    /** What the accepting side has decided. */
    enum Verdict {
        ACCEPTED(0),
        REJECTED(1),
        /** It would have accepted, and cannot map the connecting side's file. */
        CANNOT_SHARE(2);

        private final byte number;

        Verdict(int number) {
            this.number = (byte) number;
        }

        private static Verdict of(byte number) throws IOException {
            for (Verdict each : values()) {
                if (each.number == number) {
                    return each;
                }
            }
            throw new IOException("the answer is neither yes nor no: " + number);
        }
    }

    /**
     * The answer of the accepting side.
     *
     * @param verdict its decision
     * @param readDepth as in the request
     * @param pid its process
     * @param namespace of PIDs that it is in; 0 if it does not know
     * @param descriptor there, of the shared file, until the connecting side sends something; -1 for none
     * @param privateData of its program
     */
    @SuppressWarnings("ArrayRecordComponent")
    record Reply(Verdict verdict, int readDepth, long pid, long namespace, int descriptor, byte[] privateData) {

        static Reply accepted(int readDepth, int descriptor, byte[] privateData) {
            return new Reply(
                    Verdict.ACCEPTED, readDepth, ShmContext.PID, ProcessFiles.pidNamespace(), descriptor, privateData);
        }

        static Reply refused(Verdict verdict, byte[] reason) {
            return new Reply(verdict, 0, ShmContext.PID, ProcessFiles.pidNamespace(), -1, reason);
        }

        ByteBuffer encode() {
            ByteBuffer frame = begin();
            frame.putLong(MAGIC)
                    .put(verdict.number)
                    .putInt(readDepth)
                    .putLong(pid)
                    .putLong(namespace)
                    .putInt(descriptor);
            put(frame, privateData);
            return end(frame);
        }

        static Reply decode(ByteBuffer frame) throws IOException {
            try {
                long magic = frame.getLong();
                if (magic != MAGIC) {
                    throw isOfAnotherVersion(magic)
                            ? new VersionException(
                                    "the server is of another version: both sides need the same of Verbena")
                            : new IOException("the answer is none");
                }
                Reply made = new Reply(
                        Verdict.of(frame.get()),
                        frame.getInt(),
                        frame.getLong(),
                        frame.getLong(),
                        frame.getInt(),
                        bytes(frame));
                if (made.readDepth < 0 || made.readDepth > 128 || made.pid < 1) {
                    throw new IOException(
                            "the answer is out of range: process " + made.pid + ", reads " + made.readDepth);
                }
                return made;
            } catch (BufferUnderflowException e) {
                throw new IOException("the answer is cut", e);
            }
        }
    }

    /** The peer would share memory, in another way. */
    static final class VersionException extends IOException {
        @java.io.Serial
        private static final long serialVersionUID = 1L;

        VersionException(String message) {
            super(message);
        }
    }

    private static boolean isOfAnotherVersion(long magic) {
        return magic != MAGIC && (magic | VERSION_BITS) == (MAGIC | VERSION_BITS);
    }

    private static ByteBuffer begin() {
        return ByteBuffer.allocate(MAX_FRAME_BYTES).putInt(0);
    }

    private static ByteBuffer end(ByteBuffer frame) {
        return frame.putInt(0, frame.position() - Integer.BYTES).flip();
    }

    private static void put(ByteBuffer frame, InetSocketAddress address) {
        put(frame, address.getAddress().getAddress());
        frame.putInt(address.getPort());
    }

    private static void put(ByteBuffer frame, byte[] bytes) {
        frame.putInt(bytes.length).put(bytes);
    }

    private static byte[] bytes(ByteBuffer frame) throws IOException {
        int length = frame.getInt();
        if (length < 0 || length > EndpointOptions.GREATEST_PRIVATE_DATA_BYTES) {
            throw new IOException("sent a field of " + length + " bytes");
        }
        byte[] bytes = new byte[length];
        frame.get(bytes);
        return bytes;
    }

    private static InetSocketAddress address(ByteBuffer frame) throws IOException {
        InetAddress address = InetAddress.getByAddress(bytes(frame));
        int port = frame.getInt();
        if (port < 0 || port > 0xffff) {
            throw new IOException("sent a port of " + port);
        }
        return new InetSocketAddress(address, port);
    }

    /** Reads one frame, and no byte beyond it. */
    static final class Reader {
        private final ByteBuffer frame = ByteBuffer.allocate(MAX_FRAME_BYTES).limit(Integer.BYTES);
        private boolean hasLength;
        private boolean ended;

        /**
         * Reads what has come.
         *
         * @param from non-blocking
         * @return the frame behind its length; null if it is not complete
         * @throws IOException it is no frame, or the peer is gone
         */
        @Nullable ByteBuffer read(SocketChannel from) throws IOException {
            while (true) {
                int read = from.read(frame);
                if (read < 0) {
                    ended = true;
                    return null;
                }
                if (frame.hasRemaining()) {
                    return null;
                }
                if (hasLength) {
                    return frame.flip().position(Integer.BYTES);
                }
                int length = frame.getInt(0);
                if (length < 1 || length > MAX_FRAME_BYTES - Integer.BYTES) {
                    throw new IOException("sent a frame of " + length + " bytes");
                }
                hasLength = true;
                frame.limit(Integer.BYTES + length);
            }
        }

        /** Whether the peer has closed the socket. */
        boolean isEnded() {
            return ended;
        }
    }
}
