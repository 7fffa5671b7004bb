package org.verbena.it.lab;

import java.net.InetSocketAddress;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.verbena.transport.spi.ProviderContract;
import org.verbena.transport.spi.RdmaProvider;
import org.verbena.transport.spi.WorkRequest;
import org.verbena.transport.verbs.VerbsProvider;

/** The native provider over soft iWARP keeps the contract, without what iWARP lacks. */
@Tag("lab")
class VerbsProviderOnSiwTest extends ProviderContract {
    private static final RdmaProvider PROVIDER = new VerbsProvider();

    @Override
    protected RdmaProvider provider() {
        return PROVIDER;
    }

    @Override
    protected InetSocketAddress listenAddress() {
        return new InetSocketAddress(LabDevice.SIW.address(), 0);
    }

    /**
     * Both ends are in the guest, on one context: with two pages an end, 300 go far beyond the 145th, at which siw
     * refuses a queue.
     */
    @Override
    protected int connectionCount() {
        return Integer.getInteger("verbena.test.connections", 300);
    }

    /** It waits for ten seconds; every day on soft RoCE. */
    @Test
    @Tag("lab-full")
    @Override
    protected void rejectsARequestThatIsForgotten() {
        super.rejectsARequestThatIsForgotten();
    }

    /** The peer answers with a TERMINATE, on which siw flushes the read; a write has completed when TCP had it. */
    @Override
    protected boolean reportsRemoteAccessErrors(WorkRequest.Opcode opcode) {
        return false;
    }

    /** siw 6.1 serves reads of memory that was registered without REMOTE_READ. */
    @Override
    protected boolean refusesWithoutRight(WorkRequest.Opcode opcode) {
        return opcode != WorkRequest.Opcode.READ;
    }
}
