package org.verbena.transport.verbs;

import org.verbena.transport.ProviderException;
import org.verbena.verbs.NativeRdmaException;

/** Maps the bindings' exceptions to those of the SPI. */
final class NativeFailures {
    private NativeFailures() {}

    /** The SPI's exception for a failed native call: the same message, with the native failure as its cause. */
    static ProviderException of(NativeRdmaException failure) {
        return new ProviderException(String.valueOf(failure.getMessage()), failure);
    }
}
