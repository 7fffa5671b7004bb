package org.verbena.grpc.internal.nativetransport;

import io.grpc.Attributes;
import org.verbena.api.Carrier;

/** Attributes of native connections. */
public final class NativeAttributes {
    /** What carries the connection. Only native connections have it. */
    public static final Attributes.Key<Carrier> CARRIER = Attributes.Key.create("verbena-carrier");

    private NativeAttributes() {}
}
