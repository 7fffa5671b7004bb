package org.verbena.api.internal.client;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;

/** In the test's own time. */
class IdlenessTest {
    private static final long AFTER_NANOS = 100;

    private final ManualControl control = new ManualControl();
    private final AtomicBoolean hasWork = new AtomicBoolean();
    private final AtomicInteger idle = new AtomicInteger();
    private final AtomicLong carried = new AtomicLong();
    private final AtomicInteger load = new AtomicInteger();
    private final Idleness idleness = new Idleness(AFTER_NANOS, control, hasWork::get, idle::incrementAndGet);

    private void begin() {
        idleness.opened0(this, carried::get, load::get);
        idleness.begin0();
    }

    @Test
    void whatCarriesNothingIsIdleWhenTheTimeIsOver() throws Exception {
        begin();
        idleness.begin0();
        assertThat(control.pending()).as("one timer").isEqualTo(1);
        while (idle.get() == 0) {
            control.next();
        }
        assertThat(control.nanoTime()).isEqualTo(AFTER_NANOS);
        assertThat(control.pending()).as("an idle client has no timer").isZero();
    }

    @Test
    void whateverIsCarriedBeginsTheTimeAgain() throws Exception {
        begin();
        for (int i = 0; i < 10; i++) {
            control.next();
            carried.incrementAndGet();
        }
        control.next();
        long lastNanos = control.nanoTime();
        while (idle.get() == 0) {
            control.next();
        }
        assertThat(control.nanoTime() - lastNanos).isEqualTo(AFTER_NANOS);
    }

    @Test
    void whatIsUnderWayOrWaitsKeepsItAwake() throws Exception {
        begin();
        load.set(1);
        for (int i = 0; i < 5; i++) {
            control.next();
        }
        load.set(0);
        hasWork.set(true);
        for (int i = 0; i < 5; i++) {
            control.next();
        }
        assertThat(idle).hasValue(0);
        hasWork.set(false);
        control.next();
        control.next();
        assertThat(idle).hasValue(1);
    }

    /** A connection is replaced: what the old one carried at last counts, and the new one alone counts for nothing. */
    @Test
    void whatAClosedConnectionHasCarriedCounts() throws Exception {
        begin();
        control.next();
        carried.incrementAndGet();
        idleness.closed0(this);
        idleness.opened0(new Object(), () -> 0, () -> 0);
        control.next();
        control.next();
        assertThat(idle).hasValue(0);
        control.next();
        assertThat(idle).hasValue(1);
    }

    @Test
    void aClientThatHasLostItsConnectionsHasNoTimer() throws Exception {
        begin();
        idleness.stop0();
        idleness.closed0(this);
        assertThat(control.pending()).isZero();
        begin();
        assertThat(control.pending()).isEqualTo(1);
        control.next();
        assertThat(idle).hasValue(0);
        control.next();
        assertThat(idle).hasValue(1);
    }
}
