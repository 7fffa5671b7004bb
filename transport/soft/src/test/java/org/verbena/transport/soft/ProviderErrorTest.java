package org.verbena.transport.soft;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.transport.spi.Endpoint;
import org.verbena.transport.spi.EndpointOptions;
import org.verbena.transport.spi.RecordingEndpointHandler;

/** Errors of the JVM in the provider's own code: classes that cannot be loaded, no heap. */
@Timeout(240)
class ProviderErrorTest {
    /** In a task of the loop, where no event of the socket is there to catch it. */
    @Test
    void aConnectionEndsThoughClosingItFailsWithAnError() {
        try (SoftFixture fixture = new SoftFixture(SoftOptions.ofSystemProperties())) {
            RecordingEndpointHandler client = fixture.connect(EndpointOptions.DEFAULTS);
            RecordingEndpointHandler server = fixture.awaitAccepted();
            server.awaitConnected();
            client.awaitConnected();
            fixture.throwAtNextSchedule(new NoClassDefFoundError("thrown by the test"));
            client.run(Endpoint::disconnect);
            client.awaitDisconnected();
            server.awaitDisconnected();
        }
    }
}
