package org.verbena.it.lab;

import java.net.InetSocketAddress;
import org.junit.jupiter.api.Tag;
import org.verbena.transport.protocol.connection.MessageContract;
import org.verbena.transport.spi.RdmaProvider;
import org.verbena.transport.verbs.VerbsProvider;

/** The message protocol over soft RoCE: every day on the stub library, and below all channels there. */
@Tag("lab")
@Tag("lab-full")
class MessagesOnRxeTest extends MessageContract {
    private static final RdmaProvider PROVIDER = new VerbsProvider();

    @Override
    protected RdmaProvider provider() {
        return PROVIDER;
    }

    @Override
    protected InetSocketAddress listenAddress() {
        return new InetSocketAddress(LabDevice.RXE.address(), 0);
    }

    /** Fewer than on a host: the guest is some ten times slower. */
    @Override
    protected int messageCount() {
        return Integer.getInteger("verbena.protocol.messages", 100);
    }
}
