package org.verbena.transport.verbs;

import org.verbena.transport.spi.ProviderException;
import org.verbena.verbs.NativeRdmaException;

/** Turns what the bindings throw into what the SPI promises. */
final class NativeFailures {
    private NativeFailures() {}

    /** The SPI's exception for a failed native call: the same message, with the native failure as its cause. */
    static ProviderException of(NativeRdmaException failure) {
        return new ProviderException(String.valueOf(failure.getMessage()), failure);
    }
}
