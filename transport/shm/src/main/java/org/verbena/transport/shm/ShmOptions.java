package org.verbena.transport.shm;

import java.nio.file.Path;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.spi.OptionProperties;

/**
 * The options of the shared-memory provider. The provider that {@link java.util.ServiceLoader} finds reads them from
 * system properties named {@code org.verbena.shm.} plus the component's name.
 *
 * @param ringBytes the shared memory of one direction of a connection, a power of two from 16 KiB to 64 MiB; the kernel
 *     provides it page by page, when it is first used. The connecting side decides
 * @param handshakeTimeoutMillis how long a client may take to send its request after connecting, and the program to
 *     accept or reject it, 1 or more
 * @param maxHandshakes connections of one listener that are not accepted yet, 1 or more; beyond that, the oldest
 *     without a complete request makes room, and if all have one, further clients wait in the socket's backlog
 * @param stallTimeoutMillis how long a peer that owes something (a response, room in its ring) may do nothing before
 *     the connection is closed, 1000 or more; 0 waits forever
 * @param sharedReceiveDepth the depth of a loop's shared receive queue, 1 to 2^20
 * @param directory where the sockets of this user's servers are; null for {@code $XDG_RUNTIME_DIR/verbena-shm}, or
 *     without that {@code verbena-shm-<uid>} in {@code java.io.tmpdir}. Both sides need the same
 */
public record ShmOptions(
        int ringBytes,
        int handshakeTimeoutMillis,
        int maxHandshakes,
        int stallTimeoutMillis,
        int sharedReceiveDepth,
        @Nullable Path directory) {

    /**
     * Rings of 256 KiB, 5 s for the handshake, 1024 handshakes at once, 30 s without progress, 4096 shared receives.
     */
    public static final ShmOptions DEFAULTS = new ShmOptions(256 << 10, 5_000, 1024, 30_000, 4096, null);

    private static final String PREFIX = "org.verbena.shm.";

    /** Checks ranges. */
    public ShmOptions {
        check("ringBytes", ringBytes, Ring.MIN_BYTES, Ring.MAX_BYTES);
        if (Integer.bitCount(ringBytes) != 1) {
            throw new IllegalArgumentException(PREFIX + "ringBytes " + ringBytes + " is not a power of two");
        }
        check("handshakeTimeoutMillis", handshakeTimeoutMillis, 1, Integer.MAX_VALUE);
        check("maxHandshakes", maxHandshakes, 1, 1 << 20);
        if (stallTimeoutMillis != 0) {
            check("stallTimeoutMillis", stallTimeoutMillis, 1000, Integer.MAX_VALUE);
        }
        check("sharedReceiveDepth", sharedReceiveDepth, 1, 1 << 20);
    }

    private static void check(String name, int value, int least, int most) {
        if (value < least || value > most) {
            throw new IllegalArgumentException(PREFIX + name + " " + value + " is not within " + least + " to " + most);
        }
    }

    /**
     * The defaults, overridden by system properties such as {@code -Dorg.verbena.shm.ringBytes=1048576}.
     *
     * @return the options
     * @throws IllegalArgumentException a property is malformed or out of range
     */
    public static ShmOptions ofSystemProperties() {
        String directory = System.getProperty(PREFIX + "directory");
        return new ShmOptions(
                OptionProperties.number(PREFIX + "ringBytes", DEFAULTS.ringBytes),
                OptionProperties.number(PREFIX + "handshakeTimeoutMillis", DEFAULTS.handshakeTimeoutMillis),
                OptionProperties.number(PREFIX + "maxHandshakes", DEFAULTS.maxHandshakes),
                OptionProperties.number(PREFIX + "stallTimeoutMillis", DEFAULTS.stallTimeoutMillis),
                OptionProperties.number(PREFIX + "sharedReceiveDepth", DEFAULTS.sharedReceiveDepth),
                directory == null || directory.isEmpty() ? null : Path.of(directory));
    }

    /**
     * These options with other rings.
     *
     * @param bytes see {@link #ringBytes()}
     * @return a copy
     */
    public ShmOptions withRingBytes(int bytes) {
        return new ShmOptions(
                bytes, handshakeTimeoutMillis, maxHandshakes, stallTimeoutMillis, sharedReceiveDepth, directory);
    }

    /**
     * These options with another time for the handshake.
     *
     * @param millis see {@link #handshakeTimeoutMillis()}
     * @return a copy
     */
    public ShmOptions withHandshakeTimeoutMillis(int millis) {
        return new ShmOptions(ringBytes, millis, maxHandshakes, stallTimeoutMillis, sharedReceiveDepth, directory);
    }

    /**
     * These options with another directory.
     *
     * @param path see {@link #directory()}
     * @return a copy
     */
    public ShmOptions withDirectory(Path path) {
        return new ShmOptions(
                ringBytes, handshakeTimeoutMillis, maxHandshakes, stallTimeoutMillis, sharedReceiveDepth, path);
    }

    /**
     * These options with another stall timeout.
     *
     * @param millis see {@link #stallTimeoutMillis()}
     * @return a copy
     */
    public ShmOptions withStallTimeoutMillis(int millis) {
        return new ShmOptions(ringBytes, handshakeTimeoutMillis, maxHandshakes, millis, sharedReceiveDepth, directory);
    }
}
