package org.verbena.ratis;

import java.io.IOException;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** The suite on the soft provider. */
class SoftRatisTest extends RatisSuite {
    @Override
    protected String provider() {
        return "soft";
    }

    @Test
    @Tag("full")
    void appendsAThousandWithAChangeOfLeader() throws IOException {
        appendWithAChangeOfLeader(1_000);
    }
}
