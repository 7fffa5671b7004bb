package org.verbena.it.lab;

import io.netty.util.ResourceLeakDetector;
import java.nio.file.Path;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.verbena.api.RdmaStreamSuite;

/** Streams on verbs over soft iWARP: the message protocol above siw, every day. */
@Tag("lab")
class StreamsOnSiwTest extends RdmaStreamSuite {
    {
        // Recording every access to every buffer is too slow for the guest.
        ResourceLeakDetector.setLevel(ResourceLeakDetector.Level.SIMPLE);
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
    protected int manyChannels() {
        return 20;
    }

    @Override
    protected int manyBytes() {
        return 2 << 20;
    }

    /** Every day a killed process is met on siw by {@link ConnectionManagerTest}. */
    @Test
    @Tag("lab-full")
    @Override
    protected void aPeerThatIsKilledEndsTheChannel() throws Exception {
        super.aPeerThatIsKilledEndsTheChannel();
    }

    /** The same on every device, and every day on soft. */
    @Test
    @Tag("lab-full")
    @Override
    protected void aTransferThatIsUnderWayShowsItsProgress(@TempDir Path folder) throws Exception {
        super.aTransferThatIsUnderWayShowsItsProgress(folder);
    }

    @Test
    @Tag("lab-full")
    @Override
    protected void tlsAuthenticatesBothEnds() throws Exception {
        super.tlsAuthenticatesBothEnds();
    }

    @Test
    @Tag("lab-full")
    @Override
    protected void tlsRejectsAClientWithoutACertificate() throws Exception {
        super.tlsRejectsAClientWithoutACertificate();
    }
}
