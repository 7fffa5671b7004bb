package org.verbena.grpc.internal.nativetransport;

import java.util.LinkedHashSet;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;

/** The credit that a connection's calls share, and the calls that wait for it or for the channel. Event loop only. */
final class SendTurns {
    /** How many bytes the peer takes of all calls. */
    long credit;

    /** In turns. All are open: a call that leaves must not be kept by the peer's refusal to give credit. */
    private final LinkedHashSet<StreamFlow> waiting = new LinkedHashSet<>();

    private final BooleanSupplier writable;
    private final Consumer<StreamFlow> sendOne;

    /**
     * Without credit.
     *
     * @param writable whether the channel takes more
     * @param sendOne sends of a call's first what its credit and this allow
     */
    SendTurns(BooleanSupplier writable, Consumer<StreamFlow> sendOne) {
        this.writable = writable;
        this.sendOne = sendOne;
    }

    /** Sends what a call may send, unless it waits for its turn. */
    void pump0(StreamFlow flow) {
        while (!flow.queued && flow.maySend()) {
            if (isTaken0(flow)) {
                sendOne.accept(flow);
            } else {
                flow.queued = true;
                waiting.add(flow);
            }
        }
    }

    private boolean isTaken0(StreamFlow flow) {
        Outgoing next = flow.pending.peek();
        return writable.getAsBoolean() && (credit > 0 || next == null || next.remainingBytes() == 0);
    }

    /** Lets those that wait send, one payload each in turn. */
    void pumpAll0() {
        int stuck = 0;
        while (stuck < waiting.size() && writable.getAsBoolean()) {
            StreamFlow flow = waiting.removeFirst();
            if (!flow.maySend()) {
                flow.queued = false;
            } else if (isTaken0(flow)) {
                stuck = 0;
                sendOne.accept(flow);
                if (!flow.removed && flow.maySend()) {
                    waiting.add(flow);
                } else {
                    flow.queued = false;
                }
            } else {
                stuck++;
                waiting.add(flow);
            }
        }
    }

    /** A call leaves. */
    void remove0(StreamFlow flow) {
        if (flow.queued) {
            flow.queued = false;
            waiting.remove(flow);
        }
    }

    /** How many calls wait. */
    int waiting0() {
        return waiting.size();
    }

    /** The connection has ended. */
    void clear0() {
        waiting.clear();
    }
}
