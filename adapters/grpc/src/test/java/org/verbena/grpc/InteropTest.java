package org.verbena.grpc;

import org.junit.runner.RunWith;
import org.junit.runners.JUnit4;

/** gRPC's interoperability suite on the soft provider. */
@RunWith(JUnit4.class)
public class InteropTest extends InteropSuite {
    @Override
    protected String provider() {
        return "soft";
    }

    @Override
    protected boolean tls() {
        return false;
    }
}
