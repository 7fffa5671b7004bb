package org.verbena.transport.protocol.sending;

import java.util.function.LongUnaryOperator;
import org.verbena.transport.protocol.TransferBudget;
import org.verbena.transport.protocol.state.ConnectionCounters;
import org.verbena.transport.protocol.state.Work;

/**
 * The turns of one connection in its loop's {@link TransferBudget}. Its reads of its peer's messages and its program's
 * reads and writes take turns like two connections, so that neither can keep the other waiting.
 */
public final class Transfers {
    private final LongUnaryOperator wakeAfter;
    private final Runnable waiter;
    private final Runnable onWait;
    private TransferBudget.Share messages;
    private TransferBudget.Share operations;

    /**
     * With a budget of its own, without limit, until {@link #prepare}.
     *
     * @param wakeAfter makes the loop call the connection after so many nanoseconds, or sooner; returns the time now
     * @param waiter run when what waits should be tried again
     */
    public Transfers(LongUnaryOperator wakeAfter, ConnectionCounters counters, Runnable waiter) {
        this.wakeAfter = wakeAfter;
        this.waiter = waiter;
        onWait = counters::transferStallBegan;
        TransferBudget unlimited = new TransferBudget(Long.MAX_VALUE);
        messages = unlimited.new Share(waiter, onWait);
        operations = unlimited.new Share(waiter, onWait);
    }

    /** The device is known, and with it the budget. */
    public void prepare(TransferBudget budget) {
        messages = budget.new Share(waiter, onWait);
        operations = budget.new Share(waiter, onWait);
    }

    /** For reads of messages that the peer advertised. */
    public TransferBudget.Share messages() {
        return messages;
    }

    /** For the program's reads and writes. */
    public TransferBudget.Share operations() {
        return operations;
    }

    /** The share that a work request belongs to. */
    TransferBudget.Share shareOf(Work owner) {
        return owner.fetches() ? messages : operations;
    }

    /**
     * Whether a transfer may go now. If not, the connection is called when it is its turn, and after a while in any
     * case: those that have the budget may be stalled.
     */
    public boolean tryBegin(TransferBudget.Share share, long bytes) {
        if (share.tryBegin(bytes)) {
            return true;
        }
        share.check(wakeAfter.applyAsLong(TransferBudget.STALLED_NANOS));
        return share.tryBegin(bytes);
    }

    /** The connection wants nothing any more. */
    public void leave() {
        messages.leave();
        operations.leave();
    }
}
