package org.verbena.api.internal.client;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;
import org.verbena.api.internal.loop.LoopFuture;
import org.verbena.api.internal.loop.Threads;

/** The futures of those who wait for the same state of a client. Control thread only, except where said. */
final class ReadyFutures {
    private final Control control;
    private final List<Waiter> waiters = new ArrayList<>();

    ReadyFutures(Control control) {
        this.control = control;
    }

    private final class Waiter extends LoopFuture<Void> {
        void end(@Nullable Throwable refusal) {
            if (refusal == null) {
                give(null);
            } else {
                giveFailure(refusal);
            }
        }

        @Override
        protected void stop() {
            control.run(() -> waiters.remove(this));
        }
    }

    /**
     * Adds one. Any thread.
     *
     * @param added then runs on the control thread
     */
    CompletableFuture<Void> add(Runnable added) {
        Waiter waiter = new Waiter();
        control.run(() -> {
            waiters.add(waiter);
            added.run();
        });
        return waiter;
    }

    boolean isEmpty() {
        return waiters.isEmpty();
    }

    /** Ends all of these, on virtual threads, since they may have stages of the program's. */
    void endAll0(@Nullable Throwable refusal) {
        List<Waiter> all = List.copyOf(waiters);
        waiters.clear();
        all.forEach(each -> Threads.start(control.clock(), "verbena-notifier", () -> each.end(refusal)));
    }
}
