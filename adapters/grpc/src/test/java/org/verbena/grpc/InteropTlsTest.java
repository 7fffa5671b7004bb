package org.verbena.grpc;

import org.junit.runner.RunWith;
import org.junit.runners.JUnit4;

/** gRPC's interoperability suite on the soft provider, with TLS and certificates on both ends. */
@RunWith(JUnit4.class)
public class InteropTlsTest extends InteropSuite {
    @Override
    protected String provider() {
        return "soft";
    }

    @Override
    protected boolean tls() {
        return true;
    }
}
