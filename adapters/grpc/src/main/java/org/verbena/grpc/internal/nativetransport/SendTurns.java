package org.verbena.grpc.internal.nativetransport;

import java.util.LinkedHashSet;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;

/** The calls of a connection that have credit and wait for the channel. Event loop only. */
final class SendTurns {
    /** In turns. All are open: a call that leaves must not be kept by a peer that does not read. */
    private final LinkedHashSet<StreamFlow> waiting = new LinkedHashSet<>();

    private final BooleanSupplier writable;
    private final Consumer<StreamFlow> sendOne;

    /**
     * Without calls.
     *
     * @param writable whether the channel takes more
     * @param sendOne sends of a call's first what its credit allows
     */
    SendTurns(BooleanSupplier writable, Consumer<StreamFlow> sendOne) {
        this.writable = writable;
        this.sendOne = sendOne;
    }

    /** Sends what a call may send, unless it waits for its turn. */
    void pump0(StreamFlow flow) {
        while (!flow.queued && flow.maySend()) {
            if (writable.getAsBoolean()) {
                sendOne.accept(flow);
            } else {
                flow.queued = true;
                waiting.add(flow);
            }
        }
    }

    /** Lets those that wait send, one payload each in turn. */
    void pumpAll0() {
        while (!waiting.isEmpty() && writable.getAsBoolean()) {
            StreamFlow flow = waiting.removeFirst();
            if (flow.maySend()) {
                sendOne.accept(flow);
            }
            flow.queued = !flow.removed && flow.maySend();
            if (flow.queued) {
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
