package org.verbena.grpc;

import org.junit.runner.RunWith;
import org.junit.runners.JUnit4;

/** gRPC's interoperability suite on the native transport and the soft provider. */
@RunWith(JUnit4.class)
public class NativeInteropTest extends NativeInteropSuite {
    @Override
    protected String provider() {
        return "soft";
    }
}
