package org.verbena.grpc.internal.wire;

import org.jspecify.annotations.Nullable;

/** Why an end opens or takes no more calls. */
public enum GoAwayReason {
    /** It is shutting down, and finishes what has begun. */
    GRACEFUL(0),
    /** The peer sent pings too often. */
    TOO_MANY_PINGS(1),
    /** The peer cancelled calls too often. */
    TOO_MANY_RESETS(2),
    /** The peer broke the rules of the wire. */
    VIOLATION(3);

    private final int wireValue;

    GoAwayReason(int wireValue) {
        this.wireValue = wireValue;
    }

    int wireValue() {
        return wireValue;
    }

    static @Nullable GoAwayReason of(int wireValue) {
        return switch (wireValue) {
            case 0 -> GRACEFUL;
            case 1 -> TOO_MANY_PINGS;
            case 2 -> TOO_MANY_RESETS;
            case 3 -> VIOLATION;
            default -> null;
        };
    }
}
