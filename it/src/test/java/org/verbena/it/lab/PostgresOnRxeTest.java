package org.verbena.it.lab;

import org.junit.jupiter.api.Tag;
import org.verbena.sockets.PostgresSuite;

/** PostgreSQL's JDBC driver on verbs over soft RoCE. */
@Tag("lab")
@Tag("lab-full")
class PostgresOnRxeTest extends PostgresSuite {
    @Override
    protected String provider() {
        return "verbs";
    }

    @Override
    protected String host() {
        return LabDevice.RXE.address();
    }
}
