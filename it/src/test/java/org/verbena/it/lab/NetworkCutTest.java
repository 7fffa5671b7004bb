package org.verbena.it.lab;

import io.netty.util.ResourceLeakDetector;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.TestInstance;
import org.verbena.api.NetworkCutSuite;

/** A network that drops all packets for a while, under each provider that has one. */
@Tag("lab")
@Tag("lab-long")
@Tag("lab-full")
class NetworkCutTest {
    @TestInstance(TestInstance.Lifecycle.PER_CLASS) // for the cable
    private abstract static class OnCable extends NetworkCutSuite {
        private final String provider;
        private final String type;
        private Cable cable;

        OnCable(String provider, String type) {
            ResourceLeakDetector.setLevel(ResourceLeakDetector.Level.SIMPLE);
            this.provider = provider;
            this.type = type;
        }

        @BeforeAll
        void lay() throws Exception {
            cable = new Cable(type);
            // The classes for it are loaded before a loop does so, whose peers have little time.
            cable.cut();
            cable.mend();
        }

        @AfterAll
        void takeAway() {
            cable.close();
        }

        @Override
        protected String provider() {
            return provider;
        }

        @Override
        protected String host() {
            return Cable.FAR;
        }

        @Override
        protected void cut() {
            cable.cut();
        }

        @Override
        protected void mend() {
            cable.mend();
        }

        @Override
        protected int queuePairs() {
            return cable.farQueuePairs();
        }
    }

    @Nested
    class OnRxe extends OnCable {
        OnRxe() {
            super("verbs", "rxe");
        }
    }

    @Nested
    class OnSiw extends OnCable {
        OnSiw() {
            super("verbs", "siw");
        }
    }

    @Nested
    class OnSoft extends OnCable {
        OnSoft() {
            super("soft", null);
        }
    }
}
