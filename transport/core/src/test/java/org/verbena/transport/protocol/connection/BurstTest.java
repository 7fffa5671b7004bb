package org.verbena.transport.protocol.connection;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.management.ManagementFactory;
import java.util.Random;
import javax.management.ObjectName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.transport.protocol.MessageOptions;
import org.verbena.transport.protocol.connection.SimulatedNetwork.Device;
import org.verbena.transport.protocol.receiving.Inbound;
import org.verbena.transport.protocol.sending.Operation;

/** What a burst needed is given back. */
@Timeout(240)
class BurstTest {
    private static final int CONNECTIONS = 8;
    private static final int MESSAGES = 1000;

    /** Those of a loop, in FreeList, and a few for each connection. */
    private static final int KEPT = 2048 + CONNECTIONS * 64;

    private static long instances(Class<?> type) throws Exception {
        String histogram = (String) ManagementFactory.getPlatformMBeanServer()
                .invoke(
                        new ObjectName("com.sun.management:type=DiagnosticCommand"),
                        "gcClassHistogram",
                        new Object[] {new String[0]},
                        new String[] {String[].class.getName()});
        return histogram
                .lines()
                .map(line -> line.strip().split("\\s+"))
                .filter(words -> words.length >= 4 && words[3].equals(type.getName()))
                .mapToLong(words -> Long.parseLong(words[1]))
                .sum();
    }

    @Test
    void theObjectsOfABurstServeAllConnectionsOfALoop() throws Exception {
        MessageOptions options = MessageOptions.DEFAULTS.withReceives(16, 4096);
        Crowd crowd = new Crowd(new Random(3), Device.VERBS, Device.VERBS, options, 16 << 20, 16 << 20);
        for (int i = 0; i < CONNECTIONS; i++) {
            crowd.add();
        }
        crowd.settle();
        for (int i = 0; i < CONNECTIONS; i++) {
            Party receiver = crowd.rights.get(i);
            for (int j = 0; j < MESSAGES; j++) {
                crowd.lefts.get(i).sendHeap(10);
            }
            crowd.lefts.get(i).connection.flush();
            crowd.settle();
            assertThat(receiver.received).isEqualTo(MESSAGES);
        }
        assertThat(instances(Operation.class)).isLessThan(KEPT);
        assertThat(instances(Inbound.class)).isLessThan(KEPT);
        crowd.close();
    }

    /** By default receives are shorter where there are many, instead of refused. */
    @Test
    void connectionsByDefaultAreNotBoundedByReceivesThatLieEmpty() throws Exception {
        Device device = new Device(false, 16, 16, 4, 4, 64, 4, 0).withReceives(64 << 10, 0);
        MessageOptions options = MessageOptions.DEFAULTS.withMaxMessageBytes(1 << 20);
        Crowd crowd = new Crowd(new Random(3), device, device, options, 64 << 20, 8 << 20);
        for (int i = 0; i < 100; i++) { // 32 had all that receives may take
            crowd.add();
            crowd.settle();
        }
        for (Party party : crowd.rights) {
            assertThat(party.active).as(party.name).isEqualTo(1);
            party.other.sendHeap(3000);
            party.other.connection.flush();
            crowd.settle();
            assertThat(party.received).as(party.name).isEqualTo(1);
        }
        crowd.close();
    }
}
