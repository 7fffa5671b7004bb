package org.verbena.it.lab;

import io.netty.util.ResourceLeakDetector;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.verbena.api.ChannelSuite;
import org.verbena.api.ClaimsSuite;
import org.verbena.api.HandlerSuite;
import org.verbena.api.OneSidedSuite;
import org.verbena.api.PreSharedKeysSuite;
import org.verbena.api.RawSuite;
import org.verbena.api.ServerMemorySuite;
import org.verbena.api.ShortFormSuite;

/**
 * The Channel API on verbs over soft RoCE: the lane with receives and credits, and the kernel's keys, atomics,
 * immediate data and private data, which no provider in Java has. What uses nothing of the device runs on soft every
 * day.
 */
@Tag("lab")
@Tag("lab-long")
class ChannelsOnRxeTest {

    /**
     * Recording every access to every buffer is too slow for the guest; the pools are still checked to get everything
     * back.
     */
    private static void traceFewerBuffers() {
        ResourceLeakDetector.setLevel(ResourceLeakDetector.Level.SIMPLE);
    }

    @Nested
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
            return LabDevice.RXE.address();
        }

        /** The provider's contract has it every day. */
        @Test
        @Tag("lab-full")
        @Override
        protected void aServerForgetsPeersThatGaveUp() {
            super.aServerForgetsPeersThatGaveUp();
        }

        /** The provider's contract has 300 of them every day. */
        @Test
        @Tag("lab-full")
        @Override
        protected void carriesManyConnectionsAtOnce() {
            super.carriesManyConnectionsAtOnce();
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
            return LabDevice.RXE.address();
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
            return LabDevice.RXE.address();
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
            return LabDevice.RXE.address();
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
            return LabDevice.RXE.address();
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
            return LabDevice.RXE.address();
        }
    }

    @Nested
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
            return LabDevice.RXE.address();
        }

        @Override
        protected boolean repeatsSends() {
            return true;
        }

        @Override
        protected int greatestConnectBytes() {
            return 56;
        }

        @Override
        protected int greatestAcceptBytes() {
            return 196;
        }
    }

    @Nested
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
            return LabDevice.RXE.address();
        }
    }
}
