package org.verbena.it.lab;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.verbena.api.MessageHandler;
import org.verbena.api.RdmaServer;
import org.verbena.tools.Main;
import org.verbena.transport.spi.Patience;

/** What the doctor says of the lab's devices, and of faults that are made on purpose. */
@Tag("lab")
@Timeout(350)
class DoctorTest {
    private static final int PORT = 7695;
    private static final int SILENT_PORT = 7696;
    private static final String INTERFACE = "clinic";
    private static final String NAMESPACE = "ward";
    private static final String NEIGHBOUR = "10.80.0.2";

    private static void run(String command) {
        PeerProgram.run(Patience.LIMIT, command.split(" "));
    }

    @ParameterizedTest
    @EnumSource
    void followsTheWayToAnEchoServer(LabDevice device) {
        MessageHandler echo = MessageHandler.ofBytes((exchange, message) -> exchange.reply(message));
        try (RdmaServer server = RdmaServer.builder().provider("verbs").bind(device.address(), PORT, echo)) {
            Command doctor = Command.run("doctor", "--echo", device.address() + ":" + server.port());
            System.out.println(doctor.out());
            assertThat(doctor.exitCode()).as(doctor.err()).isZero();
            assertThat(doctor.out())
                    .containsPattern("ok +" + device.deviceName() + " port 1: ACTIVE, ")
                    .containsPattern("ok +loopback on verbs, 10\\.77\\.0\\.1: a send, its reply and a read")
                    .containsPattern("ok +loopback on verbs, 10\\.78\\.0\\.1: a send, its reply and a read")
                    .containsPattern("ok +route: .* device " + device.deviceName())
                    .containsPattern("ok +provider: verbs: ")
                    .containsPattern("ok +messages: median of 10 round trips: .*1048576 B in ")
                    .containsPattern("ok +provider shm: ")
                    .endsWith("verbs works, soft works, shm works. All is well.\n");
        }
    }

    @ParameterizedTest
    @EnumSource
    void namesAPortWhereNobodyListens(LabDevice device) {
        Command doctor = Command.run("doctor", "--json", device.address() + ":" + SILENT_PORT);
        assertThat(doctor.exitCode()).isOne();
        assertThat(doctor.out())
                .contains("\"provider\": \"verbs\"", "verbs works, soft works, shm works. Failed: connection: ")
                .contains("listens");
    }

    @Test
    void namesAPortThatIsDownAndADeviceWithoutAddress() throws Exception {
        run("ip link add " + INTERFACE + " type veth peer name " + INTERFACE + "-peer");
        try {
            run("ip link set " + INTERFACE + " up");
            run("ip link set " + INTERFACE + "-peer up");
            run("rdma link add rxe9 type rxe netdev " + INTERFACE);
            DeviceEventsTest.awaitLinks("rxe9/1 state ACTIVE", true);
            Command doctor = Command.run("doctor");
            assertThat(doctor.out())
                    .containsPattern(
                            "WARNING +rxe9 port 1 GIDs: \\d+ entr\\w+, but rdma_cm takes the device for no address")
                    .contains("-> ip address add ADDRESS dev " + INTERFACE);
            run("ip link set " + INTERFACE + " down");
            DeviceEventsTest.awaitLinks("rxe9/1 state ACTIVE", false);
            doctor = Command.run("doctor");
            assertThat(doctor.exitCode()).isOne();
            assertThat(doctor.out())
                    .containsPattern("FAILURE +rxe9 port 1: DOWN, ")
                    .contains("-> ip link set " + INTERFACE + " up");
        } finally {
            run("ip link delete " + INTERFACE);
        }
    }

    /** A neighbour in a network namespace, which has no device: it drops RoCE's packets, as a firewall does. */
    @Test
    @Tag("lab-full")
    void namesANetworkWithoutADeviceAndAFirewall() throws Exception {
        run("ip netns add " + NAMESPACE);
        try {
            run("ip link add " + INTERFACE + " type veth peer name bed netns " + NAMESPACE);
            run("ip address add 10.80.0.1/24 dev " + INTERFACE);
            run("ip link set " + INTERFACE + " up");
            run("ip -n " + NAMESPACE + " address add " + NEIGHBOUR + "/24 dev bed");
            run("ip -n " + NAMESPACE + " link set bed up");
            assertThat(Command.run("doctor", NEIGHBOUR).out())
                    .containsPattern(
                            "WARNING +route: from 10\\.80\\.0\\.1, where no RDMA device is: the software provider");
            run("rdma link add rxe9 type rxe netdev " + INTERFACE);
            DeviceEventsTest.awaitLinks("rxe9/1 state ACTIVE", true);
            Command doctor = Command.run("doctor", NEIGHBOUR + ":" + PORT);
            assertThat(doctor.exitCode()).isOne();
            assertThat(doctor.out())
                    .containsPattern("ok +route: from 10\\.80\\.0\\.1, device rxe9")
                    .containsPattern("FAILURE +connection: .*" + NEIGHBOUR)
                    .contains("no firewall there or on the way drops UDP port 4791 (RoCE)");
        } finally {
            run("ip netns delete " + NAMESPACE); // with its end of the cable, and so with the other
        }
    }

    @Test
    @Tag("lab-full")
    void namesADeviceOfAnotherNetworkNamespace() {
        run("ip netns add " + NAMESPACE);
        try {
            run("ip -n " + NAMESPACE + " link set lo up");
            List<String> command = new ArrayList<>(List.of("ip", "netns", "exec", NAMESPACE));
            command.addAll(PeerProgram.javaCommand(Main.class.getName(), "doctor"));
            try (PeerProgram doctor = PeerProgram.start(command)) {
                doctor.awaitLine(
                        "FAILURE +rxe0 port 1 GIDs: 3 entries, but its interface roce is not in this network namespace",
                        Patience.LIMIT);
                assertThat(doctor.awaitExit(Patience.LIMIT)).as(doctor.output()).isOne();
            }
        } finally {
            run("ip netns delete " + NAMESPACE);
        }
    }

    @Test
    @Tag("lab-full")
    void namesMemoryThatMayNotBeLocked() {
        List<String> command =
                new ArrayList<>(List.of("setpriv", "--bounding-set=-ipc_lock", "prlimit", "--memlock=65536:65536"));
        command.addAll(PeerProgram.javaCommand(Main.class.getName(), "doctor"));
        try (PeerProgram doctor = PeerProgram.start(command)) {
            doctor.awaitLine("FAILURE +locked memory: limit 64 KiB, .*without CAP_IPC_LOCK", Patience.LIMIT);
            assertThat(doctor.awaitExit(Patience.LIMIT)).as(doctor.output()).isOne();
        }
    }

    @Test
    @Tag("lab-full")
    void namesDevicesThatTheUserMayNotOpen() {
        PeerProgram.run(Patience.LIMIT, "chmod", "600", "/dev/infiniband/uverbs0", "/dev/infiniband/rdma_cm");
        List<String> command = new ArrayList<>(List.of("setpriv", "--reuid=65534", "--clear-groups"));
        command.addAll(PeerProgram.javaCommand(Main.class.getName(), "doctor"));
        try (PeerProgram doctor = PeerProgram.start(command)) {
            doctor.awaitLine("FAILURE +device nodes: no access for .*/dev/infiniband/uverbs0", Patience.LIMIT);
            assertThat(doctor.awaitExit(Patience.LIMIT)).as(doctor.output()).isOne();
        }
    }
}
