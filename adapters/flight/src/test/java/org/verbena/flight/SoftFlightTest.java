package org.verbena.flight;

/** The suite on the soft provider. */
class SoftFlightTest extends FlightSuite {
    @Override
    protected String provider() {
        return "soft";
    }
}
