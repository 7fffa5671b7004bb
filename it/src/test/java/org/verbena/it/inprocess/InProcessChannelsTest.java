package org.verbena.it.inprocess;

import org.junit.jupiter.api.Nested;
import org.verbena.api.ServerMemorySuite;
import org.verbena.testing.InProcessProvider;

/** What programs test with the test kit's provider behaves as on others. */
class InProcessChannelsTest {

    @Nested
    class MemoryOfServers extends ServerMemorySuite {
        @Override
        protected String provider() {
            return InProcessProvider.NAME;
        }
    }
}
