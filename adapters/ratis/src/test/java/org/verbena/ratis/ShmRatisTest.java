package org.verbena.ratis;

import java.io.IOException;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** The suite on shared memory. */
@Tag("full")
class ShmRatisTest extends RatisSuite {
    @Override
    protected String provider() {
        return "shm";
    }

    @Test
    void appendsAThousandWithAChangeOfLeader() throws IOException {
        appendWithAChangeOfLeader(1_000);
    }
}
