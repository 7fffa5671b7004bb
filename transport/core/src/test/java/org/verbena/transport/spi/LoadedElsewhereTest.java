package org.verbena.transport.spi;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** A thread that loads what a loop needs. */
@Timeout(120)
class LoadedElsewhereTest {
    @Test
    void whereThereIsNoThreadTheNextCallTries() {
        AtomicInteger loaded = new AtomicInteger();
        LoadedElsewhere elsewhere = new LoadedElsewhere(loaded::incrementAndGet);
        for (int i = 0; i < 2; i++) {
            NoThreads.during(() -> assertThat(elsewhere.isDone()).isFalse());
        }
        assertThat(loaded).hasValue(0);
        Patience.until("it is loaded", elsewhere::isDone);
        assertThat(loaded).hasValue(1);
    }
}
