package org.verbena.verbs.packet;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.List;
import java.util.Set;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.verbs.CompletionQueue;
import org.verbena.verbs.Context;
import org.verbena.verbs.ProtectionDomain;
import org.verbena.verbs.QueuePair;
import org.verbena.verbs.QueuePairCapabilities;
import org.verbena.verbs.QueuePairOptions;
import org.verbena.verbs.Stub;
import org.verbena.verbs.Verbs;

@Timeout(240)
class UnknownAbiTest {
    private static final QueuePairCapabilities SIZES = new QueuePairCapabilities(4, 4, 2, 2, 16);

    @Test
    void destroysWhatHasAnUnknownAbi() throws Exception {
        Stub.install();
        EspParameters esp = EspParameters.of(
                EspAssociation.inlineCrypto(Set.of()), new EspKey(new byte[16], new byte[4], new byte[8], 16));
        try (Context context = Verbs.device("stub0").open();
                ProtectionDomain domain = context.allocateProtectionDomain();
                CompletionQueue completions = context.createCompletionQueue(8);
                QueuePair queuePair = domain.createQueuePair(QueuePairOptions.reliable(completions, SIZES));
                ReceiveWorkQueue work = ReceiveWorkQueue.create(domain, 3, 1, completions, Set.of())) {
            int live = Stub.live();
            Stub.call("stub_break_abi", 7);
            for (ThrowingCallable creation : List.<ThrowingCallable>of(
                    () -> Counters.create(context),
                    () -> TagList.create(domain, 4, 1, 16, 3, completions),
                    () -> FlowAction.create(context, esp),
                    () -> IndirectionTable.create(context, List.of(work)),
                    () -> ReceiveWorkQueue.create(domain, 3, 1, completions, Set.of()),
                    () -> Flow.create(queuePair, FlowRule.steering(1)))) {
                assertThatThrownBy(creation).isInstanceOf(UnsupportedOperationException.class);
                assertThat(Stub.live()).isEqualTo(live);
            }
            Stub.call("stub_break_abi", 0);
        }
        assertThat(Stub.live()).isZero();
    }
}
