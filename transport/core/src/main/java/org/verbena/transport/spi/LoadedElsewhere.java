package org.verbena.transport.spi;

import java.util.concurrent.atomic.AtomicBoolean;
import org.slf4j.LoggerFactory;

/**
 * Classes that take long to load and that a loop can do without until then: a thread of their own loads them when a
 * loop first asks. Any thread.
 */
public final class LoadedElsewhere {
    private final Runnable load;
    private final AtomicBoolean begun = new AtomicBoolean();
    private volatile boolean done;

    /**
     * Nothing is loaded yet.
     *
     * @param load uses the classes once
     */
    public LoadedElsewhere(Runnable load) {
        this.load = load;
    }

    /**
     * Whether the classes are loaded; otherwise they will be. If no thread can be started now, the next call tries.
     *
     * @return whether using them now takes no longer than usual
     */
    public boolean isDone() {
        if (!done && begun.compareAndSet(false, true)) {
            try {
                Thread.ofPlatform().daemon().name("verbena-load").start(this::load);
            } catch (Throwable noThread) {
                begun.set(false);
            }
        }
        return done;
    }

    private void load() {
        try {
            load.run();
            done = true;
        } catch (Throwable failed) {
            LoggerFactory.getLogger(LoadedElsewhere.class).warn("what loops use cannot be loaded", failed);
        }
    }
}
