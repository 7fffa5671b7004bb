package org.verbena.it.shm;

import org.verbena.api.FairLoopSuite;

/** Long messages of many peers come through shared memory. */
class ShmFairLoopTest extends FairLoopSuite {
    @Override
    protected String provider() {
        return "shm";
    }
}
