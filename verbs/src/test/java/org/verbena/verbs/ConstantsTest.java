package org.verbena.verbs;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.verbs.address.GidType;
import org.verbena.verbs.address.Rate;
import org.verbena.verbs.device.AsyncEventType;
import org.verbena.verbs.device.AtomicCapability;
import org.verbena.verbs.device.DeviceCapability;
import org.verbena.verbs.device.LinkLayer;
import org.verbena.verbs.device.Mtu;
import org.verbena.verbs.device.NodeType;
import org.verbena.verbs.device.OnDemandOperation;
import org.verbena.verbs.device.PortState;
import org.verbena.verbs.device.TransportType;
import org.verbena.verbs.ffm.CProbe;
import org.verbena.verbs.ffm.IbvOdpCaps;
import org.verbena.verbs.ffm.NativeConstant;
import org.verbena.verbs.memory.AccessFlag;
import org.verbena.verbs.memory.AdviceKind;
import org.verbena.verbs.memory.ForkStatus;
import org.verbena.verbs.memory.WindowType;
import org.verbena.verbs.queue.CompletionQueueFlag;
import org.verbena.verbs.queue.MigrationState;
import org.verbena.verbs.queue.QueuePairAttribute;
import org.verbena.verbs.queue.QueuePairCreateFlag;
import org.verbena.verbs.queue.QueuePairState;
import org.verbena.verbs.queue.QueuePairType;
import org.verbena.verbs.work.CompletionField;
import org.verbena.verbs.work.CompletionStatus;
import org.verbena.verbs.work.SendFlags;
import org.verbena.verbs.work.SendOperation;
import org.verbena.verbs.work.WorkCompletionOpcode;
import org.verbena.verbs.work.WorkRequestOpcode;

/** Every constant has the value that C's constant of that name has. */
class ConstantsTest {
    /** Every enum that mirrors one of C's. */
    static final List<Class<? extends NativeConstant>> ENUMS = List.of(
            AccessFlag.class,
            AdviceKind.class,
            AsyncEventType.class,
            AtomicCapability.class,
            CompletionField.class,
            CompletionStatus.class,
            DeviceCapability.class,
            ForkStatus.class,
            GidType.class,
            LinkLayer.class,
            MigrationState.class,
            Mtu.class,
            NodeType.class,
            OnDemandOperation.class,
            PortState.class,
            QueuePairAttribute.class,
            CompletionQueueFlag.class,
            QueuePairCreateFlag.class,
            QueuePairState.class,
            QueuePairType.class,
            Rate.class,
            SendOperation.class,
            TransportType.class,
            WindowType.class,
            WorkCompletionOpcode.class,
            WorkRequestOpcode.class);

    /** Constants that rdma-core 45 and later brought: older headers do not have them. */
    static final Set<String> LATER = Set.of(
            "IBV_EVENT_DEVICE_SPEED_CHANGE",
            "IBV_ACCESS_FLUSH_GLOBAL",
            "IBV_ACCESS_FLUSH_PERSISTENT",
            "IBV_WC_FLUSH",
            "IBV_WR_FLUSH",
            "IBV_QP_EX_WITH_FLUSH");

    @Test
    @Timeout(240)
    void constantsHaveTheValuesOfTheInstalledHeaders() throws Exception {
        CProbe.assumeHeaders("infiniband/verbs.h");
        Map<String, Long> bound = new LinkedHashMap<>();
        ENUMS.stream().flatMap(type -> Stream.of(type.getEnumConstants())).forEach(constant -> {
            // UNKNOWN stands for values that C has no name for, where C has no constant of that name itself.
            boolean invented =
                    constant.value() == -1 && !(constant instanceof NodeType) && !(constant instanceof TransportType);
            if (!invented) {
                bound.put(constant.cName(), (long) constant.value());
            }
        });
        bound.put("IBV_WC_TM_SYNC_REQ", (long) CompletionReader.TAG_SYNC_REQUESTED);
        bound.put("IBV_WC_TM_MATCH", (long) CompletionReader.TAG_MATCHED);
        bound.put("IBV_WC_TM_DATA_VALID", (long) CompletionReader.TAG_DATA_VALID);
        bound.put("IBV_ODP_SUPPORT", IbvOdpCaps.SUPPORT);
        bound.put("IBV_ODP_SUPPORT_IMPLICIT", IbvOdpCaps.SUPPORT_IMPLICIT);
        bound.put("IBV_SEND_FENCE", (long) SendFlags.FENCE);
        bound.put("IBV_SEND_SIGNALED", (long) SendFlags.SIGNALED);
        bound.put("IBV_SEND_SOLICITED", (long) SendFlags.SOLICITED);
        bound.put("IBV_SEND_INLINE", (long) SendFlags.INLINE);
        bound.put("IBV_SEND_IP_CSUM", (long) SendFlags.IP_CSUM);
        String header = Files.readString(Path.of("/usr/include/infiniband/verbs.h"));
        for (String later : LATER) {
            if (!header.contains(later)) {
                System.out.println("Not compared, for the headers are older: " + later);
                bound.remove(later);
            }
        }
        Map<String, String> expressions = new LinkedHashMap<>();
        bound.keySet().forEach(name -> expressions.put(name, name));
        assertThat(CProbe.evaluate(List.of("infiniband/verbs.h"), expressions)).isEqualTo(bound);
        System.out.println(bound.size() + " constants compared");
    }
}
