package org.verbena.transport.verbs;

import static org.assertj.core.api.Assertions.assertThat;

import java.net.InetSocketAddress;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.AfterParameterizedClassInvocation;
import org.junit.jupiter.params.BeforeParameterizedClassInvocation;
import org.junit.jupiter.params.Parameter;
import org.verbena.transport.spi.ProviderContract;
import org.verbena.transport.spi.RdmaProvider;
import org.verbena.transport.spi.WorkRequest;

/** The native provider keeps the contract on devices in memory, with the limits and habits of each adapter family. */
@Families.Suite
@Families.Everyday({"mlx5", "irdma-iwarp"})
class StubContractTest extends ProviderContract {
    /** Shorter than usual, since what nobody decides on is waited for. */
    private static final int DECISION_MILLIS = 4_000;

    @Parameter
    String family;

    private static VerbsProvider provider;

    @BeforeParameterizedClassInvocation
    static void play(String family) throws Exception {
        Families.play(family);
        StubDevice.call("stub_link", 1);
        provider = new VerbsProvider(DECISION_MILLIS);
    }

    @AfterParameterizedClassInvocation
    static void closeProvider() {
        StubDevice.close(provider);
        assertThat(StubDevice.leaks()).isEmpty();
    }

    @Override
    protected RdmaProvider provider() {
        return provider;
    }

    @Override
    protected InetSocketAddress listenAddress() {
        return new InetSocketAddress(StubDevice.ROCE.getAddress(), 0);
    }

    /** The stub has room for 2048 queue pairs. */
    @Override
    protected int connectionCount() {
        return 150;
    }

    /** Of iWARP a write or a send is done when TCP has it, and the peer's TERMINATE flushes a read. */
    @Override
    protected boolean reportsRemoteAccessErrors(WorkRequest.Opcode opcode) {
        return !Families.isIwarp();
    }

    /**
     * On cxgb4 an inline write is the last of its chain, so that it is signalled, and libcxgb4 keeps a completion that
     * has come when it flushes (cq.c, c4iw_flush_hw_cq).
     */
    @Override
    protected boolean namesWhatFailed() {
        return !Families.flushesWhatWasDone() || family.startsWith("cxgb4");
    }

    @Override
    protected int minInlineBytes() {
        return switch (family) {
            case "x722" -> 48;
            case "hns" -> 32;
            case "mana-rc" -> 0;
            default -> super.minInlineBytes();
        };
    }

    @Override
    protected int minSges() {
        return family.equals("x722") ? 3 : super.minSges();
    }

    @Override
    protected boolean hasSharedReceiveQueues() {
        return Families.hasSharedReceives();
    }

    /** It waits for {@link #DECISION_MILLIS}. */
    @Test
    @Tag("full")
    @Override
    protected void rejectsARequestThatIsForgotten() {
        super.rejectsARequestThatIsForgotten();
    }
}
