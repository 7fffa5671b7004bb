package org.verbena.verbs.packet;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.Arena;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.verbs.CloseProbe;
import org.verbena.verbs.CompletionQueue;
import org.verbena.verbs.Context;
import org.verbena.verbs.ProtectionDomain;
import org.verbena.verbs.QueuePair;
import org.verbena.verbs.QueuePairCapabilities;
import org.verbena.verbs.QueuePairOptions;
import org.verbena.verbs.Stub;
import org.verbena.verbs.Verbs;
import org.verbena.verbs.VerbsObject;

/** No call about an object is under way in C while the object is closed. */
@Timeout(240)
class CloseDuringCallsTest {
    private static final List<Class<?>> TYPES =
            List.of(Flow.class, FlowAction.class, Counters.class, ReceiveWorkQueue.class, IndirectionTable.class);

    private static final EspParameters ESP = EspParameters.of(
            EspAssociation.inlineCrypto(Set.of()), new EspKey(new byte[16], new byte[4], new byte[8], 16));

    private final Arena arena = Arena.ofShared();
    private final CloseProbe probe = new CloseProbe(arena, Map.of(), Map.of(EspParameters.class, ESP));

    @BeforeEach
    void installStub() throws Exception {
        Stub.install();
    }

    @AfterEach
    void nothingLeaks() {
        Stub.call("stub_pause", 0);
        probe.closeAll();
        arena.close();
        assertThat(Stub.live()).isZero();
    }

    @Test
    void everyCallKeepsItsObjectOpen() throws Exception {
        assertThat(probe.heldCalls(TYPES, this::make))
                .containsExactlyInAnyOrder(
                        "Counters.attach", "Counters.read", "FlowAction.modify", "ReceiveWorkQueue.moveTo");
    }

    private VerbsObject make(Class<?> type) {
        Context context = probe.keep(Verbs.device("stub0").open());
        if (type == Counters.class) {
            Counters counters = probe.keep(Counters.create(context));
            counters.attach(CounterKind.BYTES, 0);
            return counters;
        } else if (type == FlowAction.class) {
            return probe.keep(FlowAction.create(context, ESP));
        }
        ProtectionDomain domain = probe.keep(context.allocateProtectionDomain());
        CompletionQueue completions = probe.keep(context.createCompletionQueue(8));
        if (type == Flow.class) {
            QueuePair queuePair = probe.keep(domain.createQueuePair(
                    QueuePairOptions.reliable(completions, new QueuePairCapabilities(4, 4, 2, 2, 16))));
            return probe.keep(Flow.create(queuePair, FlowRule.steering(1)));
        }
        ReceiveWorkQueue queue = probe.keep(ReceiveWorkQueue.create(domain, 3, 1, completions, Set.of()));
        return type == ReceiveWorkQueue.class ? queue : probe.keep(IndirectionTable.create(context, List.of(queue)));
    }
}
