package org.verbena.it.lab;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What becomes of connections whose device fails, on an rxe device that is there for this alone: its port goes down, and it is removed. */
@Tag("lab")
@Timeout(240)
class DeviceEventsTest {
    private static final String DEVICE = "rxe7";
    private static final String INTERFACE = "flap";
    private static final String ADDRESS = "10.79.0.1";
    private static final Duration LIMIT = Duration.ofSeconds(20);

    private static void run(String command) {
        PeerProgram.run(LIMIT, command.split(" "));
    }

    @BeforeEach
    void addDevice() throws Exception {
        run("ip link add " + INTERFACE + " type veth peer name " + INTERFACE + "-peer");
        run("ip link set " + INTERFACE + " up");
        run("ip link set " + INTERFACE + "-peer up");
        run("ip address add " + ADDRESS + "/24 dev " + INTERFACE);
        run("rdma link add " + DEVICE + " type rxe netdev " + INTERFACE);
        awaitLinks(DEVICE + "/1 state ACTIVE", true);
    }

    private static void awaitLinks(String text, boolean there) throws InterruptedException {
        long deadline = System.nanoTime() + LIMIT.toNanos();
        while (PeerProgram.run(LIMIT, "rdma", "link").contains(text) != there) {
            assertThat(System.nanoTime()).as(text).isLessThan(deadline);
            Thread.sleep(50);
        }
    }

    /** A test that follows must not find it. */
    @AfterEach
    void removeDevice() throws Exception {
        if (PeerProgram.run(LIMIT, "rdma", "link").contains(DEVICE + "/")) {
            run("rdma link delete " + DEVICE);
        }
        awaitLinks(DEVICE + "/", false);
        run("ip link delete " + INTERFACE);
    }

    private static String lose(String how) {
        try (PeerProgram program = PeerProgram.startJava(DeviceLoss.class.getName(), how, DEVICE, INTERFACE, ADDRESS)) {
            int status = program.awaitExit(Duration.ofSeconds(200));
            System.out.println(program.output());
            assertThat(status).as(program.output()).isZero();
            return program.output();
        }
    }

    @Test
    void aPortThatGoesDownEndsItsConnectionsAndNoOthers() {
        try (PeerProgram theirs = PeerProgram.start("ibv_asyncwatch", "-d", DEVICE)) {
            theirs.awaitLine("async event FD", LIMIT);
            String output = lose("port-down");
            assertThat(output).contains("Port 1 of " + DEVICE + " is down", "done");
            theirs.awaitLine("IBV_EVENT_PORT_ERR", LIMIT);
            theirs.awaitLine("IBV_EVENT_PORT_ACTIVE", LIMIT);
        }
    }

    @Test
    void aDeviceThatIsRemovedEndsItsConnectionsAndNoOthers() {
        assertThat(lose("removal")).contains("done");
    }
}
