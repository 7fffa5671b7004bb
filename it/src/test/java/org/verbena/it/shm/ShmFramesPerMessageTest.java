package org.verbena.it.shm;

import org.verbena.api.FramesPerMessageSuite;

/** Frames are counted through shared memory. */
class ShmFramesPerMessageTest extends FramesPerMessageSuite {
    @Override
    protected String provider() {
        return "shm";
    }
}
