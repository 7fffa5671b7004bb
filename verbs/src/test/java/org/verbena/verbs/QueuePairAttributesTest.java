package org.verbena.verbs;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.verbs.address.Gid;
import org.verbena.verbs.address.GlobalRoute;
import org.verbena.verbs.device.Mtu;
import org.verbena.verbs.memory.AccessFlag;
import org.verbena.verbs.queue.MigrationState;
import org.verbena.verbs.queue.QueuePairAttribute;
import org.verbena.verbs.queue.QueuePairState;
import org.verbena.verbs.queue.QueuePairType;

/** Each attribute is where C has it in its struct, in its mask, and comes back by a query. */
@Timeout(240)
class QueuePairAttributesTest {
    private static final QueuePairCapabilities SIZES = new QueuePairCapabilities(4, 4, 2, 2, 16);
    private static final AddressVector PATH = AddressVector.local(1, 0x11);

    private Context context;
    private ProtectionDomain domain;
    private CompletionQueue completions;
    private QueuePair queuePair;

    @BeforeEach
    void open() throws Exception {
        Stub.install();
        context = Verbs.device("stub0").open();
        domain = context.allocateProtectionDomain();
        completions = context.createCompletionQueue(8);
        queuePair = domain.createQueuePair(QueuePairOptions.reliable(completions, SIZES));
    }

    @AfterEach
    void close() {
        queuePair.close();
        completions.close();
        domain.close();
        context.close();
        assertThat(Stub.live()).isZero();
    }

    private void assertModified(String member, long value) {
        assertThat(Stub.number("stub_modified", queuePair.nativeAddress(), member))
                .as(member)
                .isEqualTo(value);
    }

    private QueuePairAttributes query() {
        return queuePair.query(QueuePairAttribute.STATE, QueuePairAttribute.values());
    }

    private void toInit() {
        queuePair.modify(QueuePairAttributes.to(QueuePairState.INIT)
                .portNumber(2)
                .pkeyIndex(0xfffe)
                .accessFlags(AccessFlag.REMOTE_READ, AccessFlag.REMOTE_ATOMIC)
                .build());
    }

    private static QueuePairAttributes.Builder toReceive() {
        return QueuePairAttributes.to(QueuePairState.RTR)
                .address(PATH)
                .pathMtu(Mtu.MTU_2048)
                .destinationQueuePair(0x654321)
                .receivePsn(0xabcdef)
                .maxReadsAsTarget(7)
                .minRnrTimer(13);
    }

    private static QueuePairAttributes.Builder toSend() {
        return QueuePairAttributes.to(QueuePairState.RTS)
                .sendPsn(0xfedcba)
                .timeout(14)
                .retryCount(6)
                .rnrRetryCount(5)
                .maxReadsAsInitiator(4);
    }

    @Test
    void eachStepArrivesAndIsQueried() {
        toInit();
        assertModified("mask", 1 | 1 << 3 | 1 << 4 | 1 << 5);
        assertModified("qp_state", 1);
        assertModified("port_num", 2);
        assertModified("pkey_index", 0xfffe);
        assertModified("qp_access_flags", 1 << 2 | 1 << 3);
        assertThat(query().portNumber()).isEqualTo(2);
        assertThat(query().pkeyIndex()).isEqualTo(0xfffe);

        queuePair.modify(toReceive().build());
        assertModified("ah_attr.dlid", 0x11);
        assertModified("ah_attr.is_global", 0);
        assertModified("path_mtu", 4);
        assertModified("dest_qp_num", 0x654321);
        assertModified("rq_psn", 0xabcdef);
        assertModified("max_dest_rd_atomic", 7);
        assertModified("min_rnr_timer", 13);
        QueuePairAttributes receiving = query();
        assertThat(receiving.pathMtu()).isEqualTo(Mtu.MTU_2048);
        assertThat(receiving.minRnrTimer()).isEqualTo(13);
        assertThat(receiving.address()).isEqualTo(PATH);

        queuePair.modify(toSend().currentState(QueuePairState.RTR).build());
        assertModified("mask", 1 | 1 << 1 | 1 << 9 | 1 << 10 | 1 << 11 | 1 << 13 | 1 << 16);
        assertModified("cur_qp_state", 2);
        assertModified("sq_psn", 0xfedcba);
        assertModified("timeout", 14);
        assertModified("retry_cnt", 6);
        assertModified("rnr_retry", 5);
        assertModified("max_rd_atomic", 4);
        QueuePairAttributes sending = query();
        assertThat(sending.sendPsn()).isEqualTo(0xfedcba);
        assertThat(sending.rnrRetryCount()).isEqualTo(5);
        assertThat(sending.maxReadsAsInitiator()).isEqualTo(4);
        assertThat(sending.isSendQueueDraining()).isFalse();
    }

    /** Automatic path migration: the alternate path with its own port, key and timeout, and the states of it. */
    @Test
    void theAlternatePathArrivesAndIsQueried() {
        Gid gid = Gid.of(new byte[] {-2, -128, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9});
        AddressVector other = new AddressVector(2, new GlobalRoute(gid, 3, 64, 0, 0), 0x22, 5, 6, 7);
        toInit();
        queuePair.modify(toReceive().alternatePath(other, 0xfffd, 17).build());
        queuePair.modify(toSend().migrationState(MigrationState.REARM).build());
        assertModified("path_mig_state", 1);
        queuePair.modify(QueuePairAttributes.builder()
                .alternatePath(other, 0xfffd, 17)
                .migrationState(MigrationState.REARM)
                .build());
        assertModified("mask", 1 << 14 | 1 << 18);
        assertModified("alt_pkey_index", 0xfffd);
        assertModified("alt_port_num", 2);
        assertModified("alt_timeout", 17);
        assertModified("alt_ah_attr.dlid", 0x22);
        assertModified("alt_ah_attr.sl", 5);
        assertModified("alt_ah_attr.src_path_bits", 6);
        assertModified("alt_ah_attr.static_rate", 7);
        assertModified("alt_ah_attr.is_global", 1);
        assertModified("alt_ah_attr.port_num", 2);
        assertModified("alt_ah_attr.grh.sgid_index", 3);
        assertModified("alt_ah_attr.grh.hop_limit", 64);
        QueuePairAttributes read = query();
        assertThat(read.alternateAddress()).isEqualTo(other);
        assertThat(read.alternatePkeyIndex()).isEqualTo(0xfffd);
        assertThat(read.alternatePortNumber()).isEqualTo(2);
        assertThat(read.alternateTimeout()).isEqualTo(17);
        assertThat(read.migrationState()).isEqualTo(MigrationState.REARM);
        QueuePairAttributes state = queuePair.query(QueuePairAttribute.STATE);
        assertThatIllegalStateException()
                .isThrownBy(state::alternateAddress)
                .withMessageContaining("ALT_PATH is not among");
    }

    @Test
    void anAlternatePathIsCheckedAtItsBounds() {
        QueuePairAttributes.Builder builder = QueuePairAttributes.builder();
        assertThatIllegalArgumentException()
                .isThrownBy(() -> builder.alternatePath(PATH, 0x10000, 0))
                .withMessageContaining("pkeyIndex");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> builder.alternatePath(PATH, 0, 32))
                .withMessageContaining("timeout");
        // Datagrams have no path of their own, so no other either.
        try (QueuePair datagrams = domain.createQueuePair(
                QueuePairOptions.reliable(completions, SIZES).withType(QueuePairType.UD))) {
            datagrams.modify(QueuePairAttributes.to(QueuePairState.INIT)
                    .portNumber(1)
                    .pkeyIndex(0)
                    .qkey(5)
                    .build());
            assertThatIllegalArgumentException()
                    .isThrownBy(() -> datagrams.modify(QueuePairAttributes.to(QueuePairState.RTR)
                            .alternatePath(PATH, 0, 14)
                            .build()))
                    .withMessageContaining("does not accept [ALT_PATH]");
        }
    }

    @Test
    void sizesAndRatesArrive() {
        toInit();
        queuePair.modify(toReceive().build());
        queuePair.modify(toSend().build());
        queuePair.modify(QueuePairAttributes.builder()
                .capabilities(new QueuePairCapabilities(32, 4, 2, 2, 64))
                .build());
        assertModified("mask", 1 << 19);
        assertModified("cap.max_send_wr", 32);
        assertModified("cap.max_inline_data", 64);
        try (QueuePair raw = domain.createQueuePair(
                QueuePairOptions.reliable(completions, SIZES).withType(QueuePairType.RAW_PACKET))) {
            raw.modify(QueuePairAttributes.to(QueuePairState.INIT).portNumber(1).build());
            raw.modify(QueuePairAttributes.to(QueuePairState.RTR).build());
            raw.modify(QueuePairAttributes.to(QueuePairState.RTS)
                    .rateLimitKilobitsPerSecond(123_456)
                    .build());
            assertThat(Stub.number("stub_modified", raw.nativeAddress(), "rate_limit"))
                    .isEqualTo(123_456);
            assertThat(raw.query(QueuePairAttribute.RATE_LIMIT).rateLimitKilobitsPerSecond())
                    .isEqualTo(123_456);
        }
    }
}
