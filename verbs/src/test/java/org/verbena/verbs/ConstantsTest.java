package org.verbena.verbs;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.verbs.ffm.CProbe;

/** Every constant has the value that C's constant of that name has. */
class ConstantsTest {
    /** Every enum that mirrors one of C's. */
    static final List<Class<? extends NativeConstant>> ENUMS = List.of(
            AccessFlag.class,
            AsyncEventType.class,
            AtomicCapability.class,
            CompletionStatus.class,
            DeviceCapability.class,
            GidType.class,
            LinkLayer.class,
            MigrationState.class,
            Mtu.class,
            NodeType.class,
            PortState.class,
            QueuePairAttribute.class,
            QueuePairState.class,
            QueuePairType.class,
            TransportType.class,
            WorkCompletionOpcode.class,
            WorkRequestOpcode.class);

    @Test
    @Timeout(60)
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
        bound.put("IBV_SEND_FENCE", (long) SendFlags.FENCE);
        bound.put("IBV_SEND_SIGNALED", (long) SendFlags.SIGNALED);
        bound.put("IBV_SEND_SOLICITED", (long) SendFlags.SOLICITED);
        bound.put("IBV_SEND_INLINE", (long) SendFlags.INLINE);
        bound.put("IBV_SEND_IP_CSUM", (long) SendFlags.IP_CSUM);
        Map<String, String> expressions = new LinkedHashMap<>();
        bound.keySet().forEach(name -> expressions.put(name, name));
        assertThat(CProbe.evaluate(List.of("infiniband/verbs.h"), expressions)).isEqualTo(bound);
        System.out.println(bound.size() + " constants compared");
    }
}
