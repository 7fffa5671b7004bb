package org.verbena.transport.spi;

/** A system that has no more threads: what a thread inherits is asked for before it starts, and refuses it here. */
public final class NoThreads {
    private static final InheritableThreadLocal<Boolean> REFUSING = new InheritableThreadLocal<>() {
        @Override
        protected Boolean childValue(Boolean refusing) {
            throw new OutOfMemoryError("unable to create native thread");
        }
    };

    private NoThreads() {}

    /** Runs something whose thread can start no other meanwhile. */
    public static void during(Runnable action) {
        REFUSING.set(true);
        try {
            action.run();
        } finally {
            REFUSING.remove();
        }
    }
}
