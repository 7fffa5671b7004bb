package org.verbena.transport.protocol.state;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.transport.spi.ChildJvm;
import org.verbena.transport.spi.Patience;

/** In a JVM of its own, in which nothing is loaded. */
@Timeout(240)
class FlightEventsLoadingTest {
    @Test
    void theFirstConnectionDoesNotLoadTheFlightRecorder() throws Exception {
        assertThat(ChildJvm.run(List.of(), FirstConnection.class)).contains("loaded by verbena-load");
    }

    /** Its main thread stands for a loop. */
    static final class FirstConnection {
        private FirstConnection() {}

        public static void main(String... arguments) {
            if (FlightEvents.beginConnect() != null) {
                throw new AssertionError("nobody records");
            }
            Patience.until("the events are loaded", FlightEvents::isReady);
            System.out.println("loaded by " + FlightEvents.Prototypes.LOADER.getName());
        }
    }
}
