package org.verbena.it.shm;

import org.verbena.api.RdmaStreamSuite;

/** The stream suite through shared memory. */
class ShmStreamsTest extends RdmaStreamSuite {
    @Override
    protected String provider() {
        return "shm";
    }
}
