package org.verbena.api;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

class SoftManyChannelsTest extends ManyChannelsSuite {
    @Override
    protected String provider() {
        return "soft";
    }

    @Test
    @Tag("full")
    @Timeout(1800)
    void tenThousandChannelsEchoWithDefaults() throws Exception {
        echoWithDefaults(10_000);
    }
}
