package org.verbena.it.lab;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.verbena.verbs.CompletionQueue;
import org.verbena.verbs.Context;
import org.verbena.verbs.ProtectionDomain;
import org.verbena.verbs.QueuePair;
import org.verbena.verbs.QueuePairCapabilities;
import org.verbena.verbs.QueuePairExtension;
import org.verbena.verbs.QueuePairOptions;
import org.verbena.verbs.Verbs;
import org.verbena.verbs.VerbsException;
import org.verbena.verbs.queue.QueuePairType;
import org.verbena.verbs.work.SendOperation;

/** Queue pairs that the lab's devices do not make, and what is said of it. */
@Tag("lab")
@Timeout(350)
class RefusedQueuePairsTest {
    private static final QueuePairCapabilities SIZES = new QueuePairCapabilities(16, 16, 2, 2, 64);

    @ParameterizedTest
    @EnumSource
    void queuePairsThatADeviceLacksAreAnsweredClearly(LabDevice device) {
        Set<QueuePairType> lacking = EnumSet.of(QueuePairType.XRC_SEND, QueuePairType.RAW_PACKET, QueuePairType.DRIVER);
        if (device == LabDevice.SIW) {
            lacking.addAll(Set.of(QueuePairType.UC, QueuePairType.UD));
        }
        try (Context context = Verbs.device(device.deviceName()).open();
                ProtectionDomain domain = context.allocateProtectionDomain();
                CompletionQueue completions = context.createCompletionQueue(16)) {
            for (QueuePairType type : lacking) {
                assertThatThrownBy(() -> domain.createQueuePair(
                                QueuePairOptions.reliable(completions, SIZES).withType(type)))
                        .isInstanceOf(VerbsException.class)
                        .hasMessageContaining("ibv_create_qp(" + type)
                        .hasMessageContaining("EOPNOTSUPP")
                        .hasMessageContaining("the device does not support this type of queue pair");
            }
            Set<SendOperation> unknown = EnumSet.of(SendOperation.TSO);
            if (device == LabDevice.SIW) {
                // rxe's library knows them, or learns to: FlushTest.
                unknown.addAll(Set.of(SendOperation.ATOMIC_WRITE, SendOperation.FLUSH));
            }
            for (SendOperation operation : unknown) {
                assertThatThrownBy(() -> domain.createQueuePair(
                                QueuePairOptions.reliable(completions, SIZES),
                                QueuePairExtension.building(EnumSet.of(operation))))
                        .isInstanceOf(VerbsException.class)
                        .hasMessageContaining("ibv_create_qp_ex")
                        .hasMessageContaining("EOPNOTSUPP");
            }
        }
    }

    @Test
    void saysWhySiwMakesNoMoreQueuePairs() {
        try (Context context = Verbs.device("siw0").open();
                ProtectionDomain domain = context.allocateProtectionDomain();
                CompletionQueue completions = context.createCompletionQueue(16)) {
            QueuePairOptions options =
                    QueuePairOptions.reliable(completions, new QueuePairCapabilities(16, 16, 1, 1, 0));
            List<QueuePair> made = new ArrayList<>();
            try {
                assertThatThrownBy(() -> {
                            while (made.size() < 300) {
                                made.add(domain.createQueuePair(options));
                            }
                        })
                        .isInstanceOf(VerbsException.class)
                        .hasMessageContaining("ibv_create_qp(RC")
                        .hasMessageContaining("145th page")
                        .hasMessageContaining("open another Context");
                try (Context another = Verbs.device("siw0").open();
                        ProtectionDomain anotherDomain = another.allocateProtectionDomain();
                        CompletionQueue anotherQueue = another.createCompletionQueue(16);
                        QueuePair more = anotherDomain.createQueuePair(
                                QueuePairOptions.reliable(anotherQueue, new QueuePairCapabilities(16, 16, 1, 1, 0)))) {
                    assertThat(more.isOpen()).isTrue();
                }
            } finally {
                made.forEach(QueuePair::close);
            }
        }
    }
}
