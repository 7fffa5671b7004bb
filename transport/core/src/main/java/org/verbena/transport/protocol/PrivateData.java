package org.verbena.transport.protocol;

import org.jspecify.annotations.Nullable;
import org.verbena.transport.PreSharedKeys;
import org.verbena.transport.protocol.wire.Wire;

/** The private data that two ends exchange in the connect request and its answer, before a connection is up. */
public final class PrivateData {
    /** The reason of a rejection for want of a pre-shared key. */
    public static final String KEY_REQUIRED = "a pre-shared key is required";

    private PrivateData() {}

    /**
     * The private data for a connect request or its acceptance, which identifies the protocol to the other end.
     *
     * @param options the options of this end
     * @return empty for RAW
     */
    public static byte[] of(MessageOptions options) {
        return Wire.preamble(options.framing());
    }

    /**
     * Validates a connect request's private data. Returns null to accept it, or the payload for {@code
     * IncomingConnection.reject}.
     *
     * @param options the options of this end
     * @param privateData the private data of the request
     * @return null if the peer is compatible; otherwise the reason, as private data for the rejection
     */
    public static byte @Nullable [] rejection(MessageOptions options, byte[] privateData) {
        String violation = Wire.violation(options.framing(), privateData);
        return violation == null ? null : Wire.rejection(violation);
    }

    /**
     * Validates a connect request's private data as {@link #rejection(MessageOptions, byte[])} does, for an end that
     * may require a pre-shared key.
     *
     * @param options the options of this end
     * @param keys the keys that this end accepts; null if it requires none
     * @param privateData the private data of the request
     * @return null if the peer is compatible; otherwise the reason, as private data for the rejection
     */
    public static byte @Nullable [] rejection(
            MessageOptions options, @Nullable PreSharedKeys keys, byte[] privateData) {
        byte[] rejection = rejection(options, privateData);
        if (rejection == null && keys != null && (privateData[Wire.PREAMBLE_FLAGS] & Wire.AUTHENTICATES) == 0) {
            return Wire.rejection(KEY_REQUIRED);
        }
        return rejection;
    }

    /**
     * Decodes the reason of a rejection.
     *
     * @param privateData of {@code ConnectionException.Rejected}
     * @return the reason, or null if the private data has none of this protocol
     */
    public static @Nullable String reason(byte[] privateData) {
        return Wire.rejectionReason(privateData);
    }
}
