package org.verbena.verbs.packet;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.verbs.ffm.CProbe;
import org.verbena.verbs.ffm.NativeConstant;

/** Every constant has the value that C's constant of that name has. */
class ConstantsTest {
    /** Every enum that mirrors one of C's. */
    private static final List<Class<? extends NativeConstant>> ENUMS = List.of(
            CounterKind.class,
            EspFlag.class,
            FlowFlag.class,
            FlowRuleType.class,
            FlowSpecType.class,
            ReceiveHashField.class,
            TagOperation.class,
            WorkQueueFlag.class,
            WorkQueueState.class);

    @Test
    @Timeout(240)
    void constantsHaveTheValuesOfTheInstalledHeaders() throws Exception {
        CProbe.assumeHeaders("infiniband/verbs.h");
        Map<String, Long> bound = new LinkedHashMap<>();
        ENUMS.stream().flatMap(type -> Stream.of(type.getEnumConstants())).forEach(constant -> {
            // UNKNOWN stands for values that C has no name for.
            if (constant.value() != -1) {
                bound.put(constant.cName(), (long) constant.value());
            }
        });
        // A bit that C has as an unsigned long.
        bound.put("IBV_RX_HASH_INNER", Integer.toUnsignedLong(ReceiveHashField.INNER.value()));
        bound.put("IBV_RX_HASH_FUNC_TOEPLITZ", (long) ReceiveHash.TOEPLITZ);
        bound.put("IBV_WQT_RQ", (long) ReceiveWorkQueue.RECEIVE);
        bound.put("IBV_WQ_INIT_ATTR_FLAGS", (long) ReceiveWorkQueue.WITH_FLAGS);
        bound.put("IBV_WQ_ATTR_STATE", (long) ReceiveWorkQueue.STATE);
        bound.put("IBV_WQ_ATTR_CURR_STATE", (long) ReceiveWorkQueue.CURRENT_STATE);
        bound.put("IBV_WQ_ATTR_FLAGS", (long) ReceiveWorkQueue.FLAGS);
        bound.put("IBV_READ_COUNTERS_ATTR_PREFER_CACHED", (long) Counters.PREFER_CACHED);
        bound.put("IBV_FLOW_ACTION_ESP_MASK_ESN", (long) EspParameters.WITH_ESN);
        bound.put("IBV_FLOW_ACTION_ESP_KEYMAT_AES_GCM", (long) EspParameters.AES_GCM);
        bound.put("IBV_FLOW_ACTION_IV_ALGO_SEQ", (long) EspParameters.SEQUENTIAL_VECTORS);
        bound.put("IBV_FLOW_ACTION_ESP_REPLAY_BMP", (long) EspParameters.REPLAY_BITMAP);
        bound.put("IBV_OPS_SIGNALED", (long) TagList.SIGNALED);
        bound.put("IBV_OPS_TM_SYNC", (long) TagList.SYNC);
        bound.put("IBV_SRQT_TM", (long) TagList.TAG_MATCHING_TYPE);
        Map<String, String> expressions = new LinkedHashMap<>();
        bound.keySet().forEach(name -> expressions.put(name, name));
        bound.put("tag_matching_mask", (long) TagList.TAG_MATCHING_MASK);
        expressions.put(
                "tag_matching_mask",
                "IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_TM");
        assertThat(CProbe.evaluate(List.of("infiniband/verbs.h"), expressions)).isEqualTo(bound);
        System.out.println(bound.size() + " constants compared");
    }
}
