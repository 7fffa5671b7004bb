package org.verbena.api.internal.client;

import java.util.ArrayDeque;
import java.util.LinkedHashSet;
import java.util.Queue;
import java.util.SequencedSet;

/**
 * How many attempts to connect of a client run at once: each has a thread, a socket, and on a device an id. The others
 * wait, the oldest first. All clients of a {@link Control} share a bound as well; a few attempts of each client do not
 * depend on it, so that no client waits for another one's silent addresses. Control thread only.
 */
final class DialLimit {
    /** More than servers that answer need; of addresses that do not, so many are tried in each connect timeout. */
    static final int MAX_OF_CLIENT = 128;

    /** Below the descriptors that a process has by default. */
    static final int MAX_OF_ALL = 512;

    /** That the other clients cannot take. */
    static final int MIN_OF_CLIENT = 8;

    /** What the clients of a control have in common. */
    static final class Shared {
        private int running;

        /** Those with attempts that wait, the one whose turn is next first. */
        private final SequencedSet<DialLimit> waiting = new LinkedHashSet<>();
    }

    private final Shared shared;
    private final Queue<Dial> queue = new ArrayDeque<>();
    private int running;

    DialLimit(Shared shared) {
        this.shared = shared;
    }

    /** Begins an attempt, now or when others are over. */
    void begin0(Dial dial) {
        if (queue.isEmpty() && mayBegin()) {
            run0(dial, false);
        } else {
            queue.add(dial);
            shared.waiting.add(this);
        }
    }

    private boolean mayBegin() {
        return running < MIN_OF_CLIENT || (running < MAX_OF_CLIENT && shared.running < MAX_OF_ALL);
    }

    private void run0(Dial dial, boolean late) {
        running++;
        shared.running++;
        dial.begin0(late);
    }

    /** One that has begun is over: each client that waits takes its turn. */
    void ended0() {
        running--;
        shared.running--;
        for (int turns = shared.waiting.size(); turns > 0; turns--) {
            shared.waiting.removeFirst().takeTurn0();
        }
    }

    private void takeTurn0() {
        while (!queue.isEmpty() && queue.element().isCancelled0()) {
            queue.remove();
        }
        if (!queue.isEmpty() && mayBegin()) {
            run0(queue.remove(), true);
        }
        if (!queue.isEmpty()) {
            shared.waiting.add(this);
        }
    }
}
