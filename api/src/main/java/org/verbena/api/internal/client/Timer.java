package org.verbena.api.internal.client;

import java.util.concurrent.Future;

/** Runs steps later on the control thread. A test may have another one. */
public interface Timer {
    /** Runs a step after this time, unless it is cancelled by then. */
    Future<?> schedule(Runnable step, long delayNanos);
}
