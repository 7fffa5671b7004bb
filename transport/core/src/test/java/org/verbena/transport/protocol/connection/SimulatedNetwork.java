package org.verbena.transport.protocol.connection;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.spi.EndpointHandler;

/**
 * Two simulated endpoints and what is between them. Nothing happens by itself: {@link #step()} does one thing that may
 * happen now, chosen by the seed, so that one seed is one schedule. Single-threaded.
 */
final class SimulatedNetwork {
    /** More steps than any run needs to come to rest. */
    private static final long MAX_STEPS = 20_000_000;

    /** The properties of the endpoints. */
    record Device(
            boolean iwarp,
            int sendDepth,
            int receiveDepth,
            int maxSges,
            int maxReadSges,
            int maxInlineBytes,
            int readDepth,
            int sharedDepth,
            int receiveBytes,
            int firstReceiveBytes) {
        static final Device VERBS = new Device(false, 16, 16, 4, 4, 64, 4, 0);
        static final Device IWARP = new Device(true, 16, 16, 4, 1, 80, 4, 0);

        /** With receives of 16 KiB. */
        Device(
                boolean iwarp,
                int sendDepth,
                int receiveDepth,
                int maxSges,
                int maxReadSges,
                int maxInlineBytes,
                int readDepth,
                int sharedDepth) {
            this(
                    iwarp,
                    sendDepth,
                    receiveDepth,
                    maxSges,
                    maxReadSges,
                    maxInlineBytes,
                    readDepth,
                    sharedDepth,
                    16 << 10,
                    0);
        }

        /** With receives by default of so many bytes, and fewer at first. */
        Device withReceives(int bytes, int firstBytes) {
            return new Device(
                    iwarp,
                    sendDepth,
                    receiveDepth,
                    maxSges,
                    maxReadSges,
                    maxInlineBytes,
                    readDepth,
                    sharedDepth,
                    bytes,
                    firstBytes);
        }
    }

    final Random random;
    final SimulatedEndpoint left;
    final SimulatedEndpoint right;
    private boolean within;
    private boolean prepared;
    long steps;
    /** The time, for both ends. */
    long nowNanos;

    int receiverNotReady;

    /** Whether a message without a receive ends the connection, as devices do, and not the test. */
    boolean endsOnOverrun;

    SimulatedNetwork(Random random, Device leftDevice, Device rightDevice) {
        this(random, leftDevice, rightDevice, null);
    }

    /** With ends on the same loops as those of another. */
    SimulatedNetwork(Random random, Device leftDevice, Device rightDevice, @Nullable SimulatedNetwork sibling) {
        this.random = random;
        left = new SimulatedEndpoint(this, leftDevice, 7471, sibling == null ? null : sibling.left);
        right = new SimulatedEndpoint(this, rightDevice, 40000, sibling == null ? null : sibling.right);
        left.peer = right;
        right.peer = left;
    }

    /** The left one connects, the right one accepts; {@code onConnected} of either comes as a step. */
    void connect(EndpointHandler leftHandler, byte[] leftData, EndpointHandler rightHandler, byte[] rightData) {
        left.prepare(leftHandler, rightData);
        right.prepare(rightHandler, leftData);
        prepared = true;
    }

    /** Does one of the things that can happen; false if nothing can. */
    boolean step() {
        List<Runnable> possible = new ArrayList<>();
        left.possible(possible, true);
        right.possible(possible, true);
        if (possible.isEmpty()) {
            return false;
        }
        if (++steps > MAX_STEPS || Thread.currentThread().isInterrupted()) {
            throw new AssertionError("no rest after " + steps + " steps: " + left + " / " + right);
        }
        possible.get(random.nextInt(possible.size())).run();
        return true;
    }

    /** The other steps go on while an endpoint is in the middle of a flush; its own handler is not called. */
    void goOnDuringFlushOf(SimulatedEndpoint busy) {
        if (!prepared || within || random.nextInt(4) != 0) {
            return;
        }
        within = true;
        try {
            for (int i = random.nextInt(12); i > 0; i--) {
                List<Runnable> possible = new ArrayList<>();
                busy.possible(possible, false);
                busy.peer.possible(possible, busy.peer.idle());
                if (possible.isEmpty()) {
                    return;
                }
                possible.get(random.nextInt(possible.size())).run();
            }
        } finally {
            within = false;
        }
    }
}
