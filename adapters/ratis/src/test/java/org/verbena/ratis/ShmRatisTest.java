package org.verbena.ratis;

import org.junit.jupiter.api.Tag;

/** The suite on shared memory. */
@Tag("full")
class ShmRatisTest extends RatisSuite {
    @Override
    protected String provider() {
        return "shm";
    }
}
