package org.verbena.transport.verbs;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.verbena.cm.Cm;
import org.verbena.verbs.AddressVector;
import org.verbena.verbs.CompletionQueue;
import org.verbena.verbs.Context;
import org.verbena.verbs.PostBatch;
import org.verbena.verbs.ProtectionDomain;
import org.verbena.verbs.QueuePair;
import org.verbena.verbs.QueuePairAttributes;
import org.verbena.verbs.QueuePairCapabilities;
import org.verbena.verbs.QueuePairOptions;
import org.verbena.verbs.WorkCompletions;
import org.verbena.verbs.address.Gid;
import org.verbena.verbs.address.GlobalRoute;
import org.verbena.verbs.device.Mtu;
import org.verbena.verbs.memory.AccessFlag;
import org.verbena.verbs.queue.QueuePairAttribute;
import org.verbena.verbs.queue.QueuePairState;
import org.verbena.verbs.work.SendFlags;

/** What each driver takes in which state of a queue pair: the table is in {@code src/test/c/stub_rdma.c}. */
@Timeout(60)
class QueuePairStatesTest {
    private ProtectionDomain domain;
    private CompletionQueue completions;
    private QueuePair made;

    @BeforeEach
    void resetStub() throws Exception {
        StubDevice.install();
    }

    @AfterEach
    void giveBack() {
        made.close();
        completions.close();
        domain.close();
    }

    private void become(String family) {
        StubDevice.become(family);
        Context context = Cm.devices().stream()
                .filter(device -> device.device().name().equals("stub0"))
                .findAny()
                .orElseThrow();
        domain = context.allocateProtectionDomain();
        completions = context.createCompletionQueue(16);
        made = domain.createQueuePair(QueuePairOptions.reliable(completions, new QueuePairCapabilities(4, 4, 1, 1, 0)));
    }

    private void initialize() {
        made.modify(QueuePairAttributes.to(QueuePairState.INIT)
                .pkeyIndex(0)
                .portNumber(1)
                .accessFlags(AccessFlag.REMOTE_WRITE)
                .build());
    }

    private void receive() {
        made.modify(QueuePairAttributes.to(QueuePairState.RTR)
                .pathMtu(Mtu.MTU_1024)
                .destinationQueuePair(17)
                .receivePsn(0)
                .maxReadsAsTarget(1)
                .minRnrTimer(12)
                .address(new AddressVector(1, new GlobalRoute(new Gid(1, 2), 0, 1, 0, 0), 0, 0, 0, 0))
                .build());
    }

    private void send() {
        made.modify(QueuePairAttributes.to(QueuePairState.RTS)
                .sendPsn(0)
                .timeout(14)
                .retryCount(7)
                .rnrRetryCount(7)
                .maxReadsAsInitiator(1)
                .build());
    }

    private static int post(PostBatch batch) {
        int errno = batch.tryFlush();
        batch.discard();
        return errno;
    }

    private int tryReceive() {
        return post(made.receiveQueue().receive(1));
    }

    private int trySend() {
        return post(made.sendQueue().send(2, SendFlags.SIGNALED));
    }

    private int completed() {
        try (WorkCompletions polled = new WorkCompletions(16)) {
            return completions.poll(polled);
        }
    }

    /** What is taken too early is not done before the queue pair is ready. */
    @ParameterizedTest
    @CsvSource({
        "ideal, 22, 22",
        "mlx5, 12, 22",
        "mlx4, 0, 0",
        "bnxt_re, 0, 0",
        "irdma-roce, 0, 0",
        "erdma-roce, 0, 0",
        "mana-rc, 22, 22",
        "hns, 22, 22",
        "ionic, 22, 22",
        "qedr, 22, 22"
    })
    void workIsTakenAndDoneInItsState(String family, int early, int inReset) {
        become(family);
        assertThat(tryReceive()).isEqualTo(inReset);
        initialize();
        assertThat(tryReceive()).isZero();
        assertThat(trySend()).isEqualTo(early);
        receive();
        assertThat(trySend()).isEqualTo(early);
        assertThat(completed()).isZero();
        send();
        assertThat(trySend()).isZero();
        assertThat(completed()).isEqualTo(early == 0 ? 3 : 1);
    }

    /** The kernel's drivers refuse what the specification does not have; mana's asks the firmware. */
    @ParameterizedTest
    @CsvSource({"ideal, 22", "mlx5, 22", "bnxt_re, 22", "irdma-roce, 22", "hns, 22", "qedr, 22", "mana-rc, 71"})
    void stepsThatThereAreNotAreRefused(String family, int errno) {
        become(family);
        assertThat(modify(QueuePairState.RTR)).isEqualTo(errno);
        assertThat(modify(QueuePairState.ERR)).isEqualTo(errno);
        assertThat(modify(QueuePairState.INIT)).as("without a port").isEqualTo(errno);
        initialize();
        assertThat(modify(QueuePairState.RTS)).isEqualTo(errno);
        assertThat(modify(QueuePairState.INIT, QueuePairAttribute.MIN_RNR_TIMER))
                .isEqualTo(errno);
        receive();
        send();
        assertThat(modify(QueuePairState.RTS, QueuePairAttribute.MIN_RNR_TIMER)).isZero();
        assertThat(modify(QueuePairState.INIT)).isEqualTo(errno);
        StubDevice.call("stub_complete", made.number(), 10, 0); // nothing is out: it fails by itself
        assertThat(modify(QueuePairState.RTS, QueuePairAttribute.MIN_RNR_TIMER)).isEqualTo(errno);
        assertThat(modify(QueuePairState.ERR)).isZero();
        assertThat(made.lastKnownState()).isEqualTo(QueuePairState.ERR);
        assertThat(modify(QueuePairState.RTS)).isEqualTo(errno);
        assertThat(modify(QueuePairState.ERR)).isZero();
    }

    private int modify(QueuePairState to, QueuePairAttribute... attributes) {
        int mask = QueuePairAttribute.STATE.value();
        for (QueuePairAttribute attribute : attributes) {
            mask |= attribute.value();
        }
        return StubDevice.call("stub_modify", made.number(), to.value(), mask);
    }
}
