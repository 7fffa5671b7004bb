package org.verbena.it.lab;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.transport.spi.Patience;

/**
 * What becomes of connections whose device fails, on devices that are there for this alone: a port goes down, and a
 * device is removed.
 */
@Tag("lab")
@Tag("lab-long")
@Timeout(450)
class DeviceEventsTest {
    /** For the device's name as well. */
    private static final String NUMBER = "7";

    private static final String INTERFACE = "flap";
    private static final String ADDRESS = "10.79.0.1";
    /** For a JVM's start and all that it waits for. */
    private static final Duration OUR_LIMIT = Duration.ofSeconds(200);
    /** gRPC is much code to load in a slow guest, for five clients and a server. */
    private static final Duration GRPC_LIMIT = Duration.ofSeconds(350);

    private static void run(String command) {
        PeerProgram.run(Patience.LIMIT, command.split(" "));
    }

    @BeforeEach
    void addInterface() {
        run("ip link add " + INTERFACE + " type veth peer name " + INTERFACE + "-peer");
        run("ip link set " + INTERFACE + " up");
        run("ip link set " + INTERFACE + "-peer up");
        run("ip address add " + ADDRESS + "/24 dev " + INTERFACE);
    }

    private static String addDevice(String type) throws Exception {
        String device = type + NUMBER;
        run("rdma link add " + device + " type " + type + " netdev " + INTERFACE);
        awaitLinks(device + "/1 state ACTIVE", true);
        return device;
    }

    /** Waits until {@code rdma link} tells of it or does not. */
    static void awaitLinks(String text, boolean there) {
        Patience.until(
                "rdma link has " + text + ": " + there,
                () -> PeerProgram.run(Patience.LIMIT, "rdma", "link").contains(text) == there);
    }

    /** A test that follows must not find it. */
    @AfterEach
    void removeDevice() throws Exception {
        for (String type : new String[] {"rxe", "siw"}) {
            if (PeerProgram.run(Patience.LIMIT, "rdma", "link").contains(type + NUMBER + "/")) {
                run("rdma link delete " + type + NUMBER);
            }
            awaitLinks(type + NUMBER + "/", false);
        }
        run("ip link delete " + INTERFACE);
    }

    @Tag("lab-full")
    @Test
    void aClientThatLosesItsDeviceUnderLoadComesBackOnTheNextRung() throws Exception {
        String device = addDevice("rxe");
        try (PeerProgram program = PeerProgram.startJava(LadderLoss.class.getName(), device, ADDRESS)) {
            int status = program.awaitExit(OUR_LIMIT);
            System.out.println(program.output());
            assertThat(status).as(program.output()).isZero();
            assertThat(program.output()).contains("done");
        }
    }

    /** Clients of the same server that have soft, plain TCP or another device do not notice. */
    @Tag("lab-full")
    @Test
    void grpcsClientsThatLoseTheirDeviceUnderLoadComeBackOnTheNextRungAndNoOthersNotice() throws Exception {
        String device = addDevice("rxe");
        try (PeerProgram program = PeerProgram.startJava(GrpcLoss.class.getName(), device, ADDRESS)) {
            int status = program.awaitExit(GRPC_LIMIT);
            System.out.println(program.output());
            assertThat(status).as(program.output()).isZero();
            assertThat(program.output()).contains("done");
        }
    }

    @Tag("lab-full")
    @Test
    void aClientMovesUpUnderLoadWhenTheDeviceComesUp() throws Exception {
        try (PeerProgram program =
                PeerProgram.startJava(LadderRise.class.getName(), "rxe" + NUMBER, INTERFACE, ADDRESS)) {
            int status = program.awaitExit(OUR_LIMIT);
            System.out.println(program.output());
            assertThat(status).as(program.output()).isZero();
            assertThat(program.output()).contains("done");
        }
    }

    @Test
    void aDeviceThatIsRemovedOrItsPortDownEndsItsConnectionsAndNoOthersAndComesBack() throws Exception {
        loseDevice("rxe");
    }

    @Tag("lab-full")
    @Test
    void anIwarpDeviceThatIsRemovedOrItsPortDownEndsItsConnectionsAndNoOthersAndComesBack() throws Exception {
        loseDevice("siw");
    }

    /** One process, in which the device is removed, comes back, is removed and comes back, and then loses its port. */
    private static void loseDevice(String type) throws Exception {
        String device = addDevice(type);
        try (PeerProgram program = PeerProgram.startJava(DeviceLoss.class.getName(), device, INTERFACE, ADDRESS)) {
            int status = program.awaitExit(OUR_LIMIT);
            System.out.println(program.output());
            assertThat(status).as(program.output()).isZero();
            assertThat(program.output()).contains("Port 1 of " + device + " is down", "done");
        }
    }

    @Tag("lab-full")
    @Test
    void aDeviceThatIsRemovedEndsItsDatagramsAndNoOthers() throws Exception {
        String device = addDevice("rxe");
        try (PeerProgram program = PeerProgram.startJava(DatagramLoss.class.getName(), device, ADDRESS)) {
            int status = program.awaitExit(OUR_LIMIT);
            System.out.println(program.output());
            assertThat(status).as(program.output()).isZero();
            assertThat(program.output()).contains("done");
        }
    }
}
