package org.verbena.it.lab;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import java.lang.foreign.Arena;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Objects;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.verbena.cm.CmEvent;
import org.verbena.cm.CmEventType;
import org.verbena.cm.CmException;
import org.verbena.cm.CmId;
import org.verbena.cm.ConnectionParameters;
import org.verbena.cm.DatagramParameters;
import org.verbena.cm.EventChannel;
import org.verbena.cm.MulticastMembership;
import org.verbena.cm.PortSpace;
import org.verbena.cm.sync.CmEndpoint;
import org.verbena.transport.spi.Patience;
import org.verbena.verbs.AddressHandle;
import org.verbena.verbs.MemoryRegion;
import org.verbena.verbs.WorkCompletions;
import org.verbena.verbs.work.SendFlags;

/** Datagrams: looked up, sent, and multicast, with C's mckey as well. rxe only: iWARP has none. */
@Tag("lab")
@Timeout(350)
class DatagramTest {
    private static final int PORT = 7950;
    private static final int WAIT_MILLIS = 15_000;

    /** What the device puts in front of a datagram. */
    private static final int GLOBAL_ROUTE_BYTES = 40;

    private static final int MESSAGE_BYTES = 64;
    private static final InetSocketAddress LOCAL = new InetSocketAddress(LabDevice.RXE.address(), 0);

    private static void requireSuccess(WorkCompletions completion) {
        assertThat(completion).as("a completion in time").isNotNull();
        assertThat(completion.isSuccess(0)).as(completion.describe(0)).isTrue();
    }

    @Test
    void looksAServiceUpAndSendsToIt() {
        InetSocketAddress at = new InetSocketAddress(LabDevice.RXE.address(), PORT);
        try (EventChannel events = EventChannel.open();
                CmId listener = CmId.create(events, PortSpace.UDP);
                CmId client = CmId.create(events, PortSpace.UDP);
                Arena arena = Arena.ofShared()) {
            listener.bind(at);
            listener.listen(4);
            ConnectedPair.resolve(events, client, at);
            try (CmEndpoint sender = CmEndpoint.create(client, 4, 4);
                    MemoryRegion message = sender.registerMessages(arena.allocate(MESSAGE_BYTES))) {
                client.connect(
                        ConnectionParameters.DEFAULT.withPrivateData("who?".getBytes(StandardCharsets.US_ASCII)));
                CmEvent request = ConnectedPair.expect(events, CmEventType.CONNECT_REQUEST);
                assertThat(request.listener()).isSameAs(listener);
                assertThat(new String(request.privateData(), StandardCharsets.US_ASCII))
                        .startsWith("who?");
                try (CmId server = request.id();
                        CmEndpoint receiver = CmEndpoint.create(server, 4, 4);
                        MemoryRegion buffer =
                                receiver.registerMessages(arena.allocate(GLOBAL_ROUTE_BYTES + MESSAGE_BYTES))) {
                    receiver.postReceive(1, buffer, 0, GLOBAL_ROUTE_BYTES + MESSAGE_BYTES);
                    server.accept(
                            ConnectionParameters.DEFAULT.withPrivateData("me".getBytes(StandardCharsets.US_ASCII)));
                    CmEvent answer = ConnectedPair.expect(events, CmEventType.ESTABLISHED);
                    DatagramParameters parameters = Objects.requireNonNull(answer.datagram());
                    assertThat(new String(answer.privateData(), StandardCharsets.US_ASCII))
                            .startsWith("me");
                    assertThat(parameters.queuePairNumber())
                            .isEqualTo(receiver.queuePair().number());
                    assertThat(parameters.queueKey()).isEqualTo(DatagramParameters.UDP_QUEUE_KEY);
                    message.segment().setString(0, "a datagram");
                    try (AddressHandle handle = sender.domain().createAddressHandle(parameters.address())) {
                        sender.postDatagram(2, message, 0, MESSAGE_BYTES, SendFlags.SIGNALED, handle, parameters);
                        requireSuccess(sender.awaitSend(WAIT_MILLIS));
                    }
                    WorkCompletions received = receiver.awaitReceive(WAIT_MILLIS);
                    requireSuccess(received);
                    assertThat(received.lengthBytes(0)).isEqualTo(GLOBAL_ROUTE_BYTES + MESSAGE_BYTES);
                    assertThat(buffer.segment().getString(GLOBAL_ROUTE_BYTES)).isEqualTo("a datagram");
                }
            }
        }
    }

    @Test
    void learnsThatNobodyOffersAService() {
        try (EventChannel events = EventChannel.open();
                CmId client = CmId.create(events, PortSpace.UDP)) {
            ConnectedPair.resolve(events, client, new InetSocketAddress(LabDevice.RXE.address(), 7699));
            try (CmEndpoint endpoint = CmEndpoint.create(client, 1, 1)) {
                endpoint.id().connect(ConnectionParameters.DEFAULT);
                CmEvent event = ConnectedPair.expect(events, CmEventType.UNREACHABLE);
                System.out.println(event.describe());
                assertThat(event.describe()).contains("nobody listens");
            }
        }
    }

    /** Joins and waits for how to send to the group. */
    private static CmEvent join(EventChannel events, CmId id, InetSocketAddress group, MulticastMembership membership) {
        id.joinMulticast(group, membership);
        CmEvent joined = ConnectedPair.expect(events, CmEventType.MULTICAST_JOIN);
        assertThat(joined.group()).isEqualTo(group);
        assertThat(Objects.requireNonNull(joined.datagram()).queuePairNumber()).isEqualTo(0xffffff);
        return joined;
    }

    @Test
    void whatIsSentToAGroupArrivesAtItsMembersUntilTheyLeave() {
        InetSocketAddress group = new InetSocketAddress("239.77.0.1", 0);
        try (EventChannel events = EventChannel.open();
                CmId member = CmId.create(events, PortSpace.UDP);
                CmId sender = CmId.create(events, PortSpace.UDP);
                Arena arena = Arena.ofShared()) {
            member.bind(LOCAL);
            sender.bind(LOCAL);
            try (CmEndpoint receiving = CmEndpoint.create(member, 1, 4);
                    CmEndpoint sending = CmEndpoint.create(sender, 4, 1);
                    MemoryRegion buffer =
                            receiving.registerMessages(arena.allocate(GLOBAL_ROUTE_BYTES + MESSAGE_BYTES));
                    MemoryRegion message = sending.registerMessages(arena.allocate(MESSAGE_BYTES))) {
                receiving.postReceive(1, buffer, 0, GLOBAL_ROUTE_BYTES + MESSAGE_BYTES);
                receiving.postReceive(2, buffer, 0, GLOBAL_ROUTE_BYTES + MESSAGE_BYTES);
                join(events, member, group, MulticastMembership.FULL);
                DatagramParameters to = Objects.requireNonNull(
                        join(events, sender, group, MulticastMembership.FULL).datagram());
                message.segment().setString(0, "to all");
                try (AddressHandle handle = sending.domain().createAddressHandle(to.address())) {
                    sending.postDatagram(3, message, 0, MESSAGE_BYTES, SendFlags.SIGNALED, handle, to);
                    requireSuccess(sending.awaitSend(WAIT_MILLIS));
                    requireSuccess(receiving.awaitReceive(WAIT_MILLIS));
                    assertThat(buffer.segment().getString(GLOBAL_ROUTE_BYTES)).isEqualTo("to all");

                    member.leaveMulticast(group);
                    sending.postDatagram(4, message, 0, MESSAGE_BYTES, SendFlags.SIGNALED, handle, to);
                    requireSuccess(sending.awaitSend(WAIT_MILLIS));
                    assertThat(receiving.awaitReceive(500)).isNull();
                }
                assertThatExceptionOfType(CmException.class)
                        .isThrownBy(() -> member.leaveMulticast(group))
                        .withMessageContaining("not joined");
            }
        }
    }

    @Test
    void sendsToAGroupThatItDoesNotReceiveFrom() {
        InetSocketAddress group = new InetSocketAddress("239.77.0.4", 0);
        try (EventChannel events = EventChannel.open();
                CmId member = CmId.create(events, PortSpace.UDP);
                CmId sender = CmId.create(events, PortSpace.UDP);
                Arena arena = Arena.ofShared()) {
            member.bind(LOCAL);
            sender.bind(LOCAL);
            try (CmEndpoint receiving = CmEndpoint.create(member, 1, 4);
                    CmEndpoint sending = CmEndpoint.create(sender, 4, 1);
                    MemoryRegion buffer =
                            receiving.registerMessages(arena.allocate(GLOBAL_ROUTE_BYTES + MESSAGE_BYTES));
                    MemoryRegion message = sending.registerMessages(arena.allocate(MESSAGE_BYTES))) {
                receiving.postReceive(1, buffer, 0, GLOBAL_ROUTE_BYTES + MESSAGE_BYTES);
                join(events, member, group, MulticastMembership.FULL);
                DatagramParameters to =
                        Objects.requireNonNull(join(events, sender, group, MulticastMembership.SEND_ONLY)
                                .datagram());
                message.segment().setString(0, "to the others");
                try (AddressHandle handle = sending.domain().createAddressHandle(to.address())) {
                    sending.postDatagram(3, message, 0, MESSAGE_BYTES, SendFlags.SIGNALED, handle, to);
                    requireSuccess(sending.awaitSend(WAIT_MILLIS));
                    requireSuccess(receiving.awaitReceive(WAIT_MILLIS));
                    assertThat(buffer.segment().getString(GLOBAL_ROUTE_BYTES)).isEqualTo("to the others");
                }
            }
        }
    }

    @Test
    void receivesWhatMckeySends(@TempDir Path folder) {
        InetSocketAddress group = new InetSocketAddress("239.77.0.2", 0);
        try (EventChannel events = EventChannel.open();
                CmId member = CmId.create(events, PortSpace.UDP);
                Arena arena = Arena.ofShared()) {
            member.bind(LOCAL);
            try (CmEndpoint receiving = CmEndpoint.create(member, 1, 16);
                    MemoryRegion buffer =
                            receiving.registerMessages(arena.allocate(GLOBAL_ROUTE_BYTES + MESSAGE_BYTES))) {
                for (int i = 0; i < 10; i++) {
                    receiving.postReceive(i, buffer, 0, GLOBAL_ROUTE_BYTES + MESSAGE_BYTES);
                }
                join(events, member, group, MulticastMembership.FULL);
                try (PeerProgram sender = MulticastSender.start(
                        folder, "-m", "239.77.0.2", "-b", LabDevice.RXE.address(), "-C", "10", "-S", "64")) {
                    sender.awaitLine("initiating data transfers", Patience.LIMIT);
                    for (int i = 0; i < 10; i++) {
                        WorkCompletions received = receiving.awaitReceive(WAIT_MILLIS);
                        requireSuccess(received);
                        assertThat(received.lengthBytes(0)).isEqualTo(GLOBAL_ROUTE_BYTES + MESSAGE_BYTES);
                        assertThat(received.hasImmediateData(0)).isTrue();
                    }
                    sender.terminate();
                    assertThat(sender.awaitExit(Patience.LIMIT))
                            .as(sender.output())
                            .isZero();
                }
            }
        }
    }

    @Test
    void sendsToMckey() {
        InetSocketAddress group = new InetSocketAddress("239.77.0.3", 0);
        try (EventChannel events = EventChannel.open();
                CmId id = CmId.create(events, PortSpace.UDP);
                Arena arena = Arena.ofShared();
                PeerProgram receiver = PeerProgram.start(
                        "mckey", "-m", "239.77.0.3", "-b", LabDevice.RXE.address(), "-C", "10", "-S", "64")) {
            receiver.awaitLine("receiving data transfers", Patience.LIMIT);
            id.bind(LOCAL);
            try (CmEndpoint sending = CmEndpoint.create(id, 4, 1);
                    MemoryRegion message = sending.registerMessages(arena.allocate(MESSAGE_BYTES))) {
                DatagramParameters to = Objects.requireNonNull(
                        join(events, id, group, MulticastMembership.FULL).datagram());
                try (AddressHandle handle = sending.domain().createAddressHandle(to.address())) {
                    for (int i = 0; i < 10; i++) {
                        sending.postDatagram(i, message, 0, MESSAGE_BYTES, SendFlags.SIGNALED, handle, to);
                        requireSuccess(sending.awaitSend(WAIT_MILLIS));
                    }
                }
            }
            assertThat(receiver.awaitExit(Patience.LIMIT)).as(receiver.output()).isZero();
            assertThat(receiver.output()).contains("data transfers complete");
        }
    }
}
