package org.verbena.vertx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.junit.jupiter.api.Test;
import org.verbena.transport.ProviderUnavailableException;
import org.verbena.transport.provider.ProviderChoice;

/** The suite on the soft provider. */
class SoftVertxTest extends VertxSuite {
    @Override
    protected String provider() {
        return "soft";
    }

    /** Vert.x takes TCP in place of a transport that is not available. */
    @Test
    void aTransportThatCannotWorkIsNotReplaced() {
        String configured = System.setProperty(ProviderChoice.PROPERTY, "none such");
        try {
            assertThatThrownBy(RdmaTransport::new)
                    .isInstanceOf(ProviderUnavailableException.class)
                    .hasMessageContaining("none such");
        } finally {
            if (configured == null) {
                System.clearProperty(ProviderChoice.PROPERTY);
            } else {
                System.setProperty(ProviderChoice.PROPERTY, configured);
            }
        }
        assertThat(new RdmaTransport().available()).isTrue();
    }
}
