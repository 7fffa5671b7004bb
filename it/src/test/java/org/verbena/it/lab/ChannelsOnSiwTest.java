package org.verbena.it.lab;

import io.netty.util.ResourceLeakDetector;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Tag;
import org.verbena.api.ChannelSuite;
import org.verbena.api.ClaimsSuite;
import org.verbena.api.HandlerSuite;
import org.verbena.api.OneSidedSuite;
import org.verbena.api.PreSharedKeysSuite;
import org.verbena.api.RawSuite;
import org.verbena.api.ServerMemorySuite;
import org.verbena.api.ShortFormSuite;
import org.verbena.transport.ConnectionException;

/**
 * The Channel API on verbs over soft iWARP: one-sided operations, whose refusals siw reports in its own way. The rest
 * runs on soft RoCE every day, and streams on both.
 */
@Tag("lab")
@Tag("lab-long")
class ChannelsOnSiwTest {

    /**
     * Recording every access to every buffer is too slow for the guest; the pools are still checked to get everything
     * back.
     */
    private static void traceFewerBuffers() {
        ResourceLeakDetector.setLevel(ResourceLeakDetector.Level.SIMPLE);
    }

    @Nested
    @Tag("lab-full")
    class Channels extends ChannelSuite {
        {
            traceFewerBuffers();
        }

        @Override
        protected String provider() {
            return "verbs";
        }

        @Override
        protected String host() {
            return LabDevice.SIW.address();
        }

        /** siw gives up a connect whose peer has not answered MPA's request within 10 s. */
        @Override
        protected int connectsAtOnce() {
            return 16;
        }
    }

    @Nested
    class MemoryOfServers extends ServerMemorySuite {
        {
            traceFewerBuffers();
        }

        @Override
        protected String provider() {
            return "verbs";
        }

        @Override
        protected String host() {
            return LabDevice.SIW.address();
        }

        /** As with other one-sided operations: siw does not say why. */
        @Override
        protected Class<? extends Throwable> refusal() {
            return ConnectionException.Lost.class;
        }
    }

    @Nested
    class OneSidedOperations extends OneSidedSuite {
        {
            traceFewerBuffers();
        }

        @Override
        protected String provider() {
            return "verbs";
        }

        @Override
        protected String host() {
            return LabDevice.SIW.address();
        }

        /** siw flushes the read when the peer's Terminate comes, and does not say why. */
        @Override
        protected Class<? extends Throwable> refusal() {
            return ConnectionException.Lost.class;
        }
    }

    @Nested
    @Tag("lab-full")
    class ShortForms extends ShortFormSuite {
        {
            traceFewerBuffers();
        }

        @Override
        protected String provider() {
            return "verbs";
        }

        @Override
        protected String host() {
            return LabDevice.SIW.address();
        }
    }

    @Nested
    @Tag("lab-full")
    class Handlers extends HandlerSuite {
        {
            traceFewerBuffers();
        }

        @Override
        protected String provider() {
            return "verbs";
        }

        @Override
        protected String host() {
            return LabDevice.SIW.address();
        }
    }

    @Nested
    @Tag("lab-full")
    class Keys extends PreSharedKeysSuite {
        {
            traceFewerBuffers();
        }

        @Override
        protected String provider() {
            return "verbs";
        }

        @Override
        protected String host() {
            return LabDevice.SIW.address();
        }
    }

    @Nested
    @Tag("lab-full")
    class Raw extends RawSuite {
        {
            traceFewerBuffers();
        }

        @Override
        protected String provider() {
            return "verbs";
        }

        @Override
        protected String host() {
            return LabDevice.SIW.address();
        }

        @Override
        protected boolean repeatsSends() {
            return false;
        }

        @Override
        protected int greatestConnectBytes() {
            return 251;
        }

        @Override
        protected int greatestAcceptBytes() {
            return 251;
        }
    }

    @Nested
    @Tag("lab-full")
    class Claims extends ClaimsSuite {
        {
            traceFewerBuffers();
        }

        @Override
        protected String provider() {
            return "verbs";
        }

        @Override
        protected String host() {
            return LabDevice.SIW.address();
        }
    }
}
