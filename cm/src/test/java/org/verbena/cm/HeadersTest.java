package org.verbena.cm;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.GroupLayout;
import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.cm.ffm.RdmaCmConstants;
import org.verbena.cm.ffm.Sockaddr;
import org.verbena.cm.ffm.Structs;
import org.verbena.verbs.ffm.CProbe;
import org.verbena.verbs.ffm.Layouts;

/** Asks a C compiler about every struct, member and constant that is bound, and compares. */
@Timeout(240)
class HeadersTest {
    private static final List<String> HEADERS =
            List.of("netinet/in.h", "infiniband/ib.h", "rdma/rdma_cma.h", "rdma/rdma_verbs.h");

    private static void addConstants(Map<String, Long> bound, Class<?> owner, String prefix)
            throws IllegalAccessException {
        for (Field field : owner.getDeclaredFields()) {
            if (Modifier.isPublic(field.getModifiers()) && field.getName().startsWith(prefix)) {
                bound.put(field.getName(), ((Number) field.get(null)).longValue());
            }
        }
    }

    @Test
    void everythingBoundIsAsInTheHeaders() throws Exception {
        CProbe.assumeHeaders("rdma/rdma_cma.h");
        Map<String, Long> bound = new LinkedHashMap<>();
        Map<String, String> expressions = new LinkedHashMap<>();
        for (GroupLayout struct : Structs.ALL) {
            Layouts.describe(struct, bound, expressions);
        }
        for (CmEventType type : CmEventType.values()) {
            if (type != CmEventType.UNKNOWN) {
                bound.put("RDMA_CM_EVENT_" + type, (long) type.value());
            }
        }
        for (PortSpace space : PortSpace.values()) {
            bound.put("RDMA_PS_" + space, (long) space.value());
        }
        addConstants(bound, RdmaCmConstants.class, "");
        addConstants(bound, Sockaddr.class, "AF_");
        bound.put("sizeof(sockaddr_storage)", Sockaddr.STORAGE_BYTES);
        expressions.put("sizeof(sockaddr_storage)", "sizeof(struct sockaddr_storage)");
        bound.put("RDMA_UDP_QKEY", (long) DatagramParameters.UDP_QUEUE_KEY);
        bound.put("RDMA_MAX_RESP_RES", (long) ConnectionParameters.DEVICE_MAXIMUM);
        bound.keySet().forEach(name -> expressions.putIfAbsent(name, name));
        assertThat(bound).hasSizeGreaterThan(240);
        assertThat(CProbe.evaluate(HEADERS, expressions)).isEqualTo(bound);
    }
}
