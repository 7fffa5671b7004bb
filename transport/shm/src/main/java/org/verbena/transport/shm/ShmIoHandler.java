package org.verbena.transport.shm;

import io.netty.channel.IoHandler;
import io.netty.channel.IoHandlerContext;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.software.SoftwareDomain;
import org.verbena.transport.software.SoftwareIoHandler;
import org.verbena.transport.spi.PollCounters;
import org.verbena.transport.system.Polling;

/**
 * Polls the doorbells of one loop: each is a bit for each of its connections with one process, so a turn costs by what
 * there is to do, and not by connections. Before the loop blocks, it sets so in all of them, and the first of a process
 * that rings wakes it through a socket.
 *
 * <p>A connection that is the only one with its process is polled by itself. Among many of these, one that had nothing
 * to do lately sleeps, and is woken by itself. Not thread-safe; confined to the loop's thread.
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

    /** So few cost next to nothing: none of them sleeps before the loop does. */
    static final int FEW = 8;

    /** Polls for nothing after which one of many sleeps: about as long as a wake-up costs. */
    private static final int IDLE_POLLS = 2048;

    private static final int CONTROL_BYTES = 4096;

    private final List<Polled> awake = new ArrayList<>();
    private final Map<PeerProcess, LoopDoorbell> doorbells = new HashMap<>();
    private @Nullable ByteBuffer controlBuffer;
    private int turnsSinceSockets;

    // What the loop has done, for tests; its thread only.
    private long socketPolls;
    private long sleeps;
    private long wakeUps;
    private long endpointPolls;

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
        socketPolls++;
        return select(Polling.CONTEXT);
    }

    private int poll() {
        int handled = 0;
        for (int i = awake.size() - 1; i >= 0; i--) {
            if (i >= awake.size()) {
                continue; // some have ended meanwhile
            }
            Polled next = awake.get(i);
            int found = next.poll();
            handled += found;
            if (found > 0) {
                next.idlePolls = 0;
            } else if (next.idlePolls < IDLE_POLLS) {
                next.idlePolls++;
            } else if (awake.size() > FEW && next.isAwake()) {
                fallAsleep(next);
            }
        }
        return handled;
    }

    private void fallAsleep(Polled next) {
        if (next.fallAsleep()) {
            removeAwake(next);
        } else {
            next.idlePolls = 0;
        }
    }

    /** Nothing is left to do: waits for more. */
    private int await(IoHandlerContext context) {
        long start = System.nanoTime();
        int handled = spin(context, start);
        if (handled == 0 && turns.isEmpty() && context.canBlock()) {
            sleeps++;
            for (int i = awake.size() - 1; i >= 0; i--) {
                fallAsleep(awake.get(i)); // which removes only this one, or none
            }
            if (awake.isEmpty()) {
                counters.waits(start);
                handled = select(context);
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

    /** Polls something from now on. */
    void wake(Polled next) {
        next.idlePolls = 0;
        if (next.awakeIndex < 0) {
            next.awakeIndex = awake.size();
            awake.add(next);
            next.awake();
        }
    }

    /** Polls something no longer. */
    void removeAwake(Polled old) {
        int index = old.awakeIndex;
        if (index >= 0) {
            old.awakeIndex = -1;
            Polled last = awake.removeLast();
            if (index < awake.size()) {
                awake.set(index, last);
                last.awakeIndex = index;
            }
        }
    }

    /** The doorbell of the connections with a process. */
    LoopDoorbell doorbell(PeerProcess process) {
        return doorbells.computeIfAbsent(process, with -> new LoopDoorbell(this, with));
    }

    /** The last connection of a doorbell has ended. */
    void forget(PeerProcess process, LoopDoorbell doorbell) {
        doorbells.remove(process, doorbell);
    }

    void countWakeUp() {
        wakeUps++;
    }

    void countEndpointPoll() {
        endpointPolls++;
    }

    /**
     * What the loop has done so far.
     *
     * @param socketPolls looks at all sockets, which are a system call each
     * @param sleeps times that it set that it sleeps, to block then, unless something had come
     * @param wakeUps sent to peers, each a system call
     * @param endpointPolls looks at a connection
     */
    record Work(long socketPolls, long sleeps, long wakeUps, long endpointPolls) {}

    Work work() {
        return new Work(socketPolls, sleeps, wakeUps, endpointPolls);
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
