package org.verbena.api.internal.client;

import java.util.concurrent.Future;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.transport.spi.LoopClock;

/**
 * Where the connections of a client are changed: one step after another. Nothing of a program's runs there, so nothing
 * of a program's can hold it up. Methods that end in 0 run there.
 */
abstract class Control {
    private static final Logger LOG = LoggerFactory.getLogger(Control.class);

    private final LoopClock clock;
    private final DialLimit.Shared dials = new DialLimit.Shared();

    Control(LoopClock clock) {
        this.clock = clock;
    }

    /** That of the clients of these loops: with the system's clock one thread of the process. */
    static Control of(LoopClock clock) {
        return clock.isSystem() ? ControlThread.OF_PROCESS : new ControlSteps(clock);
    }

    /**
     * A client begins, which has its steps run until it {@linkplain #leave leaves}.
     *
     * @throws Error there is no thread for them
     */
    void enter() {}

    void leave() {}

    LoopClock clock() {
        return clock;
    }

    /** The attempts to connect of all its clients. */
    DialLimit.Shared dials() {
        return dials;
    }

    /** The time by which it schedules. Any thread. */
    long nanoTime() {
        return clock.nanoTime();
    }

    /** Whether the caller is a step. */
    abstract boolean isCurrent();

    /** Runs a step: now if the caller is one, else after those that were submitted before. Any thread. */
    void run(Runnable step) {
        if (isCurrent()) {
            step.run();
        } else {
            submit(step);
        }
    }

    /** Runs a step after those that were submitted before. Any thread. */
    abstract void submit(Runnable step);

    /** Runs a step after this time, unless it is cancelled by then. Any thread. */
    abstract Future<?> schedule(Runnable step, long delayNanos);

    static void attempt(Runnable step) {
        try {
            step.run();
        } catch (Throwable thrown) {
            LOG.error("a step of a client's connections has failed", thrown);
        }
    }
}
