package org.verbena.transport.verbs;

import java.net.InetSocketAddress;
import org.junit.jupiter.params.AfterParameterizedClassInvocation;
import org.junit.jupiter.params.BeforeParameterizedClassInvocation;
import org.junit.jupiter.params.Parameter;
import org.verbena.transport.protocol.connection.MessageContract;
import org.verbena.transport.spi.RdmaProvider;

/** The message protocol over devices in memory, with the limits and habits of each adapter family. */
@Families.Suite
class StubMessagesTest extends MessageContract {
    @Parameter
    String family;

    private static VerbsProvider provider;

    @BeforeParameterizedClassInvocation
    static void play(String family) throws Exception {
        Families.play(family);
        StubDevice.call("stub_link", 1);
        provider = new VerbsProvider();
    }

    @AfterParameterizedClassInvocation
    static void closeProvider() {
        StubDevice.close(provider);
    }

    @Override
    protected RdmaProvider provider() {
        return provider;
    }

    @Override
    protected InetSocketAddress listenAddress() {
        return new InetSocketAddress(StubDevice.ROCE.getAddress(), 0);
    }

    /** As fragments and by rendezvous, both ways: a quarter of what other providers carry is enough here. */
    @Override
    protected int messageCount() {
        return Integer.getInteger("verbena.protocol.messages", 100);
    }

    @Override
    protected boolean hasSharedReceiveQueues() {
        return Families.hasSharedReceives();
    }
}
