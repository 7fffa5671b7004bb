package org.verbena.transport.shm;

import io.netty.channel.IoHandler;
import io.netty.channel.IoHandlerContext;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.software.SoftwareDomain;
import org.verbena.transport.software.SoftwareIoHandler;
import org.verbena.transport.spi.PollCounters;

/**
 * Polls the rings of the connections of one loop. A connection that has had something to do lately is polled; any other
 * sleeps, and its peer wakes it through its socket. Before the loop blocks, all sleep. Not thread-safe; confined to the
 * loop's thread.
 */
final class ShmIoHandler extends SoftwareIoHandler {
    /** While there is work, the sockets are checked once in so many turns: a check is a system call. */
    private static final int TURNS_BETWEEN_SOCKETS = 16;

    /** While spinning, polls between two checks of the clock and the tasks. */
    private static final int POLLS_BETWEEN_CLOCKS = 32;

    /** While spinning, how long until the loop yields to other threads: a record that comes meanwhile waits. */
    private static final long NANOS_BETWEEN_YIELDS = 5_000;

    /** While spinning, yields between two checks of the sockets. */
    private static final int YIELDS_BETWEEN_SOCKETS = 4;

    /** Polls without a record after which a connection sleeps: about as long as a wake-up costs. */
    private static final int IDLE_POLLS = 2048;

    private static final int CONTROL_BYTES = 4096;

    private static final IoHandlerContext POLLING = new IoHandlerContext() {
        @Override
        public boolean canBlock() {
            return false;
        }

        @Override
        public long delayNanos(long currentTimeNanos) {
            return 0;
        }

        @Override
        public long deadlineNanos() {
            return -1;
        }
    };

    private final List<ShmEndpoint> awake = new ArrayList<>();
    private @Nullable ByteBuffer controlBuffer;
    private int turnsSinceSockets;

    ShmIoHandler(
            IoHandler nio,
            long spinNanos,
            SoftwareDomain domain,
            PollCounters.Loop counters,
            int sharedReceiveDepth,
            int stallTimeoutMillis) {
        super(nio, spinNanos, domain, counters, sharedReceiveDepth, stallTimeoutMillis);
    }

    @Override
    public int run(IoHandlerContext context) {
        int handled = poll();
        if (handled == 0 && turns.isEmpty() && context.canBlock()) {
            handled = await(context);
        } else if (++turnsSinceSockets >= TURNS_BETWEEN_SOCKETS || handled == 0) {
            handled += pollSockets();
        }
        return handled + runTurns();
    }

    private int pollSockets() {
        turnsSinceSockets = 0;
        return nio.run(POLLING);
    }

    private int poll() {
        int handled = 0;
        for (int i = awake.size() - 1; i >= 0; i--) {
            if (i >= awake.size()) {
                continue; // some have ended meanwhile
            }
            ShmEndpoint endpoint = awake.get(i);
            int records = endpoint.poll();
            handled += records;
            if (records > 0) {
                endpoint.idlePolls = 0;
            } else if (++endpoint.idlePolls > IDLE_POLLS && endpoint.isAwake()) {
                fallAsleep(endpoint);
            }
        }
        return handled;
    }

    private void fallAsleep(ShmEndpoint endpoint) {
        if (endpoint.fallAsleep()) {
            removeAwake(endpoint);
        } else {
            endpoint.idlePolls = 0;
        }
    }

    /** Nothing is left to do: waits for more. */
    private int await(IoHandlerContext context) {
        long start = System.nanoTime();
        int handled = spin(context, start);
        if (handled == 0 && turns.isEmpty() && context.canBlock()) {
            for (int i = awake.size() - 1; i >= 0; i--) {
                fallAsleep(awake.get(i)); // which removes only this one, or none
            }
            if (awake.isEmpty()) {
                counters.waits(start);
                handled = nio.run(context);
                counters.woke();
            } else {
                handled = poll();
            }
        }
        if (spin.isAdaptive()) {
            spin.waited(System.nanoTime() - start);
        }
        return handled;
    }

    /** Polls for a while, but only until a task or a deadline is due. */
    private int spin(IoHandlerContext context, long start) {
        long nanos = spin.nanos(start);
        if (nanos == 0 || awake.isEmpty()) {
            return 0;
        }
        long budgetNanos = Math.min(nanos, context.delayNanos(start));
        long now = start;
        long yielded = start;
        int yields = 0;
        do {
            int handled = pollRepeatedly();
            now = System.nanoTime();
            if (handled == 0 && now - yielded >= NANOS_BETWEEN_YIELDS) {
                yields++;
                handled = yields % YIELDS_BETWEEN_SOCKETS == 0 ? pollSockets() : 0;
                if (handled == 0 && spin.isAdaptive()) {
                    Thread.yield();
                }
                now = System.nanoTime();
                yielded = now;
                counters.spins(now);
            }
            if (handled > 0) {
                counters.spun(now - start);
                return handled;
            }
        } while (spin.polled(now) && turns.isEmpty() && context.canBlock() && now - start < budgetNanos);
        counters.spun(now - start);
        return 0;
    }

    private int pollRepeatedly() {
        int handled = 0;
        for (int i = 0; i < POLLS_BETWEEN_CLOCKS && handled == 0; i++) {
            if (i > 0) {
                Thread.onSpinWait();
            }
            handled = poll();
        }
        return handled;
    }

    /** Polls a connection from now on. */
    void wake(ShmEndpoint endpoint) {
        endpoint.idlePolls = 0;
        if (endpoint.awakeIndex < 0) {
            endpoint.awakeIndex = awake.size();
            awake.add(endpoint);
        }
    }

    /** Polls a connection no longer. */
    void removeAwake(ShmEndpoint endpoint) {
        int index = endpoint.awakeIndex;
        if (index >= 0) {
            endpoint.awakeIndex = -1;
            ShmEndpoint last = awake.removeLast();
            if (last != endpoint) {
                awake.set(index, last);
                last.awakeIndex = index;
            }
        }
    }

    /** Where control bytes are read into; nothing in it is kept between two turns. */
    ByteBuffer controlBuffer() {
        ByteBuffer buffer = controlBuffer;
        if (buffer == null) {
            buffer = ByteBuffer.allocateDirect(CONTROL_BYTES);
            controlBuffer = buffer;
        }
        return buffer.clear();
    }
}
