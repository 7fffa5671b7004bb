package org.verbena.transport.protocol;

/**
 * The turns of one connection in its loop's {@link TransferBudget}. What it fetches of its peer's messages and what its
 * program reads and writes take turns like two connections, so that neither can keep the other waiting.
 */
final class Transfers {
    private final Deadlines deadlines;
    private final Runnable waiter;
    private final Runnable onWait;
    private TransferBudget.Share messages;
    private TransferBudget.Share operations;

    /**
     * With a budget of its own, without limit, until {@link #prepare}.
     *
     * @param waiter run when what waits should be tried again
     */
    Transfers(Deadlines deadlines, ConnectionCounters counters, Runnable waiter) {
        this.deadlines = deadlines;
        this.waiter = waiter;
        onWait = counters::transferStallBegan;
        TransferBudget unlimited = new TransferBudget(Long.MAX_VALUE);
        messages = unlimited.new Share(waiter, onWait);
        operations = unlimited.new Share(waiter, onWait);
    }

    /** The device is known, and with it the budget. */
    void prepare(TransferBudget budget) {
        messages = budget.new Share(waiter, onWait);
        operations = budget.new Share(waiter, onWait);
    }

    /** For reads of messages that the peer advertised. */
    TransferBudget.Share messages() {
        return messages;
    }

    /** For the program's reads and writes. */
    TransferBudget.Share operations() {
        return operations;
    }

    /** Whose turn a work request is. */
    TransferBudget.Share shareOf(Work owner) {
        return owner instanceof Inbound ? messages : operations;
    }

    /**
     * Whether a transfer may go now. If not, the connection is called when it is its turn, and after a while in any
     * case: those that have the budget may be stalled.
     */
    boolean tryBegin(TransferBudget.Share share, long bytes) {
        if (share.tryBegin(bytes)) {
            return true;
        }
        share.check(deadlines.awaitTransfer(TransferBudget.STALLED_NANOS));
        return share.tryBegin(bytes);
    }

    /** The connection wants nothing any more. */
    void leave() {
        messages.leave();
        operations.leave();
    }
}
