package org.verbena.transport.protocol.connection;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Random;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.transport.Framing;
import org.verbena.transport.MemoryDomain;
import org.verbena.transport.RegisteredMemory;
import org.verbena.transport.WorkStatus;
import org.verbena.transport.protocol.MessageOptions;
import org.verbena.transport.protocol.PrivateData;
import org.verbena.transport.protocol.Role;
import org.verbena.transport.protocol.connection.SimulatedNetwork.Device;
import org.verbena.transport.protocol.wire.Wire;
import org.verbena.transport.spi.Endpoint;
import org.verbena.transport.spi.EndpointHandler;
import org.verbena.transport.spi.ScatterGatherList;
import org.verbena.transport.spi.WorkRequest;

/**
 * Version 1 of the protocol, byte for byte: a peer that knows nothing but recorded frames talks with a connection of
 * today. If one of these tests fails, the change that made it fail keeps today's version from talking with the ones
 * before it. Either the change is a mistake, or it needs a version of its own, negotiated in HELLO, and new recordings
 * beside these.
 *
 * <p>A record has what the peer says ({@code <}) and what the connection says ({@code >}): type, flags, control
 * acknowledged, grant, rendezvous done, length, then the payload. A dot stands for a digit of an address or a key,
 * which differ.
 */
@Timeout(240)
class RecordedFramesTest {
    private static final MessageOptions OPTIONS = MessageOptions.DEFAULTS
            .withReceives(8, 256)
            .withMaxMessageBytes(100_000)
            .withRendezvousThresholdBytes(1000);

    private static final String NO_HEADER_FIELDS = " 0000 00000000 00000000 00000000 ";

    /**
     * Versions 1 to 1, reads, immediate data and atomics, receives of 256 bytes, 6 grants, messages of 1 MiB, 1
     * rendezvous.
     */
    private static final String PEER_HELLO =
            "5652424e 01 01 01 00 00000007 00000100 00000006 00000006 00100000 00000001 00000000";

    private static final String PEER_STREAM_HELLO = PEER_HELLO.replace("5652424e 01 01 01", "5652424e 01 01 02");

    private SimulatedNetwork network = new SimulatedNetwork(new Random(1), Device.VERBS, Device.VERBS);
    private final Peer peer = new Peer();
    private Party party;

    private void settle() {
        while (network.step()) {
            // until nothing can happen
        }
    }

    /** An initiator, and a peer that accepts. */
    private void initiate(MessageOptions options, String peersData, String helloAck) {
        party = Party.of("initiator", Role.INITIATOR, network.left, options);
        start(helloAck);
        network.connect(party.connection, bytes(peersData), peer, PrivateData.of(options));
        settle();
    }

    /** An acceptor, and a peer that connects. */
    private void accept(MessageOptions options, String peersData, String hello) {
        party = Party.of("acceptor", Role.ACCEPTOR, network.right, options);
        start(null);
        network.connect(peer, PrivateData.of(options), party.connection, bytes(peersData));
        settle();
        peer.says("01 00" + NO_HEADER_FIELDS + hello);
    }

    private void start(@Nullable String helloAck) {
        peer.answerToHello = helloAck == null ? null : "02 00" + NO_HEADER_FIELDS + helloAck;
        party.other = party; // both ends send messages of the same lengths
    }

    private void sends(int length) {
        party.sendPooled(length);
        party.connection.flush();
        settle();
    }

    private void ended() throws Exception {
        assertThat(party.inactive).isEqualTo(1);
        assertThat(party.inactiveCause).as(peer.record()).isNull();
        party.checkMemory();
    }

    @Test
    void privateData() {
        assertThat(PrivateData.of(OPTIONS)).isEqualTo(bytes("5652424e 01 01 01 00"));
        assertThat(PrivateData.of(OPTIONS.withFraming(Framing.STREAM))).isEqualTo(bytes("5652424e 01 01 02 00"));
        assertThat(PrivateData.of(OPTIONS.withFraming(Framing.RAW))).isEmpty();
        assertThat(Wire.rejection("no, it is full"))
                .isEqualTo(bytes("5652424e ff 0e 6e 6f 2c 20 69 74 20 69 73 20 66 75 6c 6c"));
        assertThat(PrivateData.reason(bytes("5652424e ff 0e 6e 6f 2c 20 69 74 20 69 73 20 66 75 6c 6c")))
                .isEqualTo("no, it is full");
        assertThat(Wire.rejection("x".repeat(49))).hasSize(6 + 48).endsWith("x".getBytes(UTF_8));
    }

    @Test
    void anInitiatorsMessages() throws Exception {
        initiate(OPTIONS, "5652424e 01 01 01 00", PEER_HELLO);
        assertThat(party.active).isEqualTo(1);
        sends(5);
        sends(300);
        sends(2000);
        peer.says("08 00 cccc 0000000a 00000001 00000000");
        assertThat(party.succeeded).as(peer.record()).isEqualTo(3);
        peer.says("03 00 cccc 0000000a 00000001 00000005" + pattern(0, 0, 5));
        peer.says("03 00 cccc 0000000a 00000001 0000012c" + pattern(1, 0, 240));
        peer.says("04 00 cccc 0000000a 00000001 0000003c" + pattern(1, 240, 60));
        peer.advertises("05 00 cccc 0000000a 00000001 000007d0", 2, 2000);
        assertThat(party.received).as(peer.record()).isEqualTo(3);
        peer.says("09 00 cccc 0000000a 00000001 00000000");
        assertThat(party.connection.ping(4711)).isTrue();
        settle();
        peer.says("0b 00 cccc 0000000a 00000001 00000000 0000000000001267");
        assertThat(party.pongs).as(peer.record()).isEqualTo(1);
        peer.says("0a 00 cccc 0000000a 00000001 00000000 1122334455667788");
        peer.says("09 00 cccc 0000000a 00000001 00000000");
        peer.says("08 02 cccc 0000000a 00000001 00000000");
        peer.says("09 00 cccc 0000000a 00000001 00000000");
        party.connection.close();
        settle();
        peer.says("0c 00 cccc 0000000a 00000001 00000000");
        peer.matches("""
                private data 5652424e01010100
                > 01 00 0000 00000001 00000000 00000000
                  5652424e010101000000003f000001000000000100000006000186a00000001000000000
                < 02 00 0000 00000000 00000000 00000000
                  5652424e0101010000000007000001000000000600000006001000000000000100000000
                > 08 00 0000 00000006 00000000 00000000
                > 03 00 0000 00000006 00000000 00000005
                  00070e151c
                > 03 00 0000 00000006 00000000 0000012c
                  1f262d343b424950 and 232 bytes
                > 04 00 0000 00000006 00000000 0000003c
                  afb6bdc4cbd2d9e0 and 52 bytes
                > 05 00 0000 00000006 00000000 000007d0
                  ........................000007d0
                < 08 00 0001 0000000a 00000001 00000000
                > 09 00 0001 00000006 00000000 00000000
                < 03 00 0002 0000000a 00000001 00000005
                  00070e151c
                < 03 00 0002 0000000a 00000001 0000012c
                  1f262d343b424950 and 232 bytes
                < 04 00 0002 0000000a 00000001 0000003c
                  afb6bdc4cbd2d9e0 and 52 bytes
                > 08 00 0001 00000009 00000000 00000000
                < 05 00 0003 0000000a 00000001 000007d0
                  ........................000007d0
                > 08 00 0001 0000000a 00000001 00000000
                < 09 00 0004 0000000a 00000001 00000000
                > 0a 00 0002 0000000a 00000001 00000000
                  0000000000001267
                < 0b 00 0005 0000000a 00000001 00000000
                  0000000000001267
                > 09 00 0003 0000000a 00000001 00000000
                < 0a 00 0006 0000000a 00000001 00000000
                  1122334455667788
                > 0b 00 0004 0000000a 00000001 00000000
                  1122334455667788
                < 09 00 0007 0000000a 00000001 00000000
                < 08 02 0007 0000000a 00000001 00000000
                > 0d 00 0006 0000000a 00000001 00000005
                < 09 00 0008 0000000a 00000001 00000000
                > 0c 00 0007 0000000a 00000001 00000000
                < 0c 00 0009 0000000a 00000001 00000000
                """);
        ended();
    }

    @Test
    void anAcceptorsMessages() throws Exception {
        accept(OPTIONS, "5652424e 01 01 01 00", PEER_HELLO);
        assertThat(party.active).as(peer.record()).isEqualTo(1);
        sends(5);
        peer.says("03 00 cccc 00000006 00000000 00000005" + pattern(0, 0, 5));
        assertThat(party.received).as(peer.record()).isEqualTo(1);
        peer.says("0c 00 cccc 00000006 00000000 00000000");
        peer.leaves();
        peer.matches("""
                private data 5652424e01010100
                < 01 00 0000 00000000 00000000 00000000
                  5652424e0101010000000007000001000000000600000006001000000000000100000000
                > 02 00 0000 00000006 00000000 00000000
                  5652424e010101000000003f000001000000000600000006000186a00000001000000000
                > 03 00 0000 00000006 00000000 00000005
                  00070e151c
                < 03 00 0000 00000006 00000000 00000005
                  00070e151c
                < 0c 00 0000 00000006 00000000 00000000
                > 0c 00 0001 00000007 00000000 00000000
                """);
        ended();
    }

    /** Only an end that shares receives asks for grants back. */
    @Test
    void anAcceptorThatSharesReceives() throws Exception {
        network = new SimulatedNetwork(new Random(1), Device.VERBS, new Device(false, 16, 16, 4, 4, 64, 4, 20));
        accept(OPTIONS, "5652424e 01 01 01 00", PEER_HELLO);
        peer.says("0d 00 cccc 00000006 00000000 00000001");
        peer.says("0c 00 cccc 00000006 00000000 00000000");
        peer.leaves();
        peer.matches("""
                private data 5652424e01010100
                < 01 00 0000 00000000 00000000 00000000
                  5652424e0101010000000007000001000000000600000006001000000000000100000000
                > 02 00 0000 00000001 00000000 00000000
                  5652424e010101000000003f000001000000000100000006000186a00000001000000000
                < 0d 00 0000 00000006 00000000 00000001
                > 08 00 0001 00000002 00000000 00000000
                < 0c 00 0001 00000006 00000000 00000000
                > 0c 00 0002 00000002 00000000 00000000
                """);
        ended();
    }

    @Test
    void streams() throws Exception {
        MessageOptions stream = OPTIONS.withFraming(Framing.STREAM);
        initiate(stream, "5652424e 01 01 02 00", PEER_STREAM_HELLO);
        sends(5);
        party.shutdownOutput();
        party.connection.flush();
        settle();
        peer.says("03 00 cccc 00000006 00000000 00000005" + pattern(0, 0, 5));
        peer.says("06 00 cccc 00000006 00000000 00000000");
        assertThat(party.received).as(peer.record()).isEqualTo(1);
        assertThat(party.ended).as(peer.record()).isEqualTo(1);
        party.connection.close();
        settle();
        peer.says("0c 00 cccc 00000006 00000000 00000000");
        peer.matches("""
                private data 5652424e01010200
                > 01 00 0000 00000001 00000000 00000000
                  5652424e010102000000002f000001000000000100000006000186a00000001000000000
                < 02 00 0000 00000000 00000000 00000000
                  5652424e0101020000000007000001000000000600000006001000000000000100000000
                > 08 00 0000 00000006 00000000 00000000
                > 03 00 0000 00000006 00000000 00000005
                  00070e151c
                > 06 00 0000 00000006 00000000 00000000
                < 03 00 0001 00000006 00000000 00000005
                  00070e151c
                < 06 00 0001 00000006 00000000 00000000
                > 0c 00 0000 00000008 00000000 00000000
                < 0c 00 0002 00000006 00000000 00000000
                """);
        ended();
    }

    /** A peer that asks for grants, feature 8, is told of them with other frames, or when it asks. */
    @Test
    void aPeerThatAsks() throws Exception {
        String hello = PEER_HELLO.replace("00000007", "0000000f");
        initiate(OPTIONS, "5652424e 01 01 01 00", hello);
        sends(5);
        peer.says("03 00 cccc 00000006 00000000 00000005" + pattern(0, 0, 5));
        peer.says("08 04 cccc 00000006 00000000 00000000");
        assertThat(party.received).as(peer.record()).isEqualTo(1);
        party.connection.close();
        settle();
        peer.says("0c 00 cccc 00000006 00000000 00000000");
        peer.matches("""
                private data 5652424e01010100
                > 01 00 0000 00000001 00000000 00000000
                  5652424e010101000000003f000001000000000100000006000186a00000001000000000
                < 02 00 0000 00000000 00000000 00000000
                  5652424e010101000000000f000001000000000600000006001000000000000100000000
                > 03 00 0000 00000006 00000000 00000005
                  00070e151c
                < 03 00 0000 00000006 00000000 00000005
                  00070e151c
                < 08 04 0000 00000006 00000000 00000000
                > 09 00 0001 00000007 00000000 00000000
                > 0c 00 0001 00000007 00000000 00000000
                < 0c 00 0002 00000006 00000000 00000000
                """);
        ended();
    }

    /** With a peer that takes frames with several messages, feature 16: what waits together goes together. */
    @Test
    void aPeerThatPacks() throws Exception {
        String hello = PEER_HELLO.replace("00000007", "00000017");
        initiate(OPTIONS, "5652424e 01 01 01 00", hello);
        party.sendPooled(5);
        party.sendPooled(0);
        party.sendPooled(3);
        sends(300);
        sends(4);
        peer.says("07 00 cccc 00000008 00000000 00000003 00000005 00000000 00000003" + pattern(0, 0, 5)
                + pattern(2, 0, 3));
        assertThat(party.received).as(peer.record()).isEqualTo(3);
        party.connection.close();
        settle();
        peer.says("0c 00 cccc 00000008 00000000 00000000");
        peer.matches("""
                private data 5652424e01010100
                > 01 00 0000 00000001 00000000 00000000
                  5652424e010101000000003f000001000000000100000006000186a00000001000000000
                < 02 00 0000 00000000 00000000 00000000
                  5652424e0101010000000017000001000000000600000006001000000000000100000000
                > 08 00 0000 00000006 00000000 00000000
                > 07 00 0000 00000006 00000000 00000003
                  00000005000000000000000300070e151c3e454c
                > 03 00 0000 00000006 00000000 0000012c
                  5d646b727980878e and 232 bytes
                > 04 00 0000 00000006 00000000 0000003c
                  edf4fb020910171e and 52 bytes
                > 03 00 0000 00000006 00000000 00000004
                  7c838a91
                < 07 00 0001 00000008 00000000 00000003
                  00000005000000000000000300070e151c3e454c
                > 0c 00 0000 00000007 00000000 00000000
                < 0c 00 0002 00000008 00000000 00000000
                """);
        ended();
    }

    /** As {@link Party} fills messages. */
    private static String pattern(int number, int from, int count) {
        StringBuilder hex = new StringBuilder(" ");
        for (int i = 0; i < count; i++) {
            hex.append(HexFormat.of().toHexDigits(Party.pattern(number, from + i)));
        }
        return hex.toString();
    }

    private static byte[] bytes(String hex) {
        return HexFormat.of().parseHex(hex.replace(" ", ""));
    }

    /**
     * Sends what it is told to, byte for byte, and records what it receives. It knows nothing of the protocol but how
     * to count control frames.
     */
    private final class Peer implements EndpointHandler {
        private static final int SLOT_BYTES = 512;
        private static final int RECEIVES = 16;
        private static final int SLOTS = 64;
        private static final int HEADER_DIGITS = 32;
        private static final int SHORT_DIGITS = 72;

        private final WorkRequest request = new WorkRequest(1);
        private final ScatterGatherList list = new ScatterGatherList(1);
        private final MemorySegment memory = Arena.ofAuto().allocate(SLOTS * SLOT_BYTES + 4096, 64);
        private final List<String> lines = new ArrayList<>();
        private Endpoint endpoint;
        private RegisteredMemory region;
        private int nextSlot = RECEIVES;
        private int control;
        private @Nullable String answerToHello;

        @Override
        public void onPrepared(Endpoint prepared) {
            endpoint = prepared;
            region = prepared.memoryDomain()
                    .register(memory, Set.of(MemoryDomain.Access.LOCAL_WRITE, MemoryDomain.Access.REMOTE_READ));
            for (int i = 0; i < RECEIVES; i++) {
                receive(i);
            }
            prepared.flush();
        }

        private void receive(int slot) {
            list.clear().add(region, (long) slot * SLOT_BYTES, SLOT_BYTES);
            endpoint.postReceive(slot, list);
        }

        @Override
        public void onConnected(Endpoint connected, byte[] privateData) {
            lines.add("private data " + HexFormat.of().formatHex(privateData));
        }

        @Override
        public void onSendCompletion(Endpoint from, long workId, WorkStatus status, int lengthBytes) {
            // it waits for nothing
        }

        @Override
        public void onReceiveCompletion(
                Endpoint from, long workId, WorkStatus status, int lengthBytes, int flags, int immediateData) {
            if (status != WorkStatus.SUCCESS) {
                return;
            }
            byte[] frame = memory.asSlice(workId * SLOT_BYTES, lengthBytes).toArray(ValueLayout.JAVA_BYTE);
            lines.add("> " + spaced(HexFormat.of().formatHex(frame)));
            receive((int) workId);
            if (frame[0] >= 8) {
                control++;
            } else if (answerToHello != null) {
                post(answerToHello);
                answerToHello = null;
            }
        }

        @Override
        public void onCompletionsHandled(Endpoint from) {
            from.flush();
        }

        @Override
        public void onDisconnected(Endpoint from, @Nullable Throwable cause) {
            region.close();
        }

        /** Sends a frame, in which {@code cccc} is the number of control frames received. */
        void says(String frame) {
            post(frame);
            endpoint.flush();
            settle();
        }

        void leaves() {
            endpoint.disconnect();
            settle();
        }

        /** Sends a frame that says where a message can be read. */
        void advertises(String header, int number, int length) {
            int offset = SLOTS * SLOT_BYTES;
            for (int i = 0; i < length; i++) {
                memory.set(ValueLayout.JAVA_BYTE, offset + i, Party.pattern(number, i));
            }
            says(header + " %016x %08x %08x".formatted(region.address() + offset, region.remoteKey(), length));
        }

        private void post(String said) {
            String hex = said.replace("cccc", "%04x".formatted(control)).replace(" ", "");
            lines.add("< " + spaced(hex));
            byte[] frame = bytes(hex);
            MemorySegment.copy(frame, 0, memory, ValueLayout.JAVA_BYTE, nextSlot * SLOT_BYTES, frame.length);
            request.asSend(0, 0).buffers().add(region, (long) nextSlot * SLOT_BYTES, frame.length);
            endpoint.post(request);
            nextSlot = nextSlot == SLOTS - 1 ? RECEIVES : nextSlot + 1;
        }

        /** The header's fields, and the payload on a line of its own: all of it if it is short, else its beginning. */
        private static String spaced(String hex) {
            String header = hex.substring(0, 2) + " " + hex.substring(2, 4) + " " + hex.substring(4, 8) + " "
                    + hex.substring(8, 16) + " " + hex.substring(16, 24) + " " + hex.substring(24, HEADER_DIGITS);
            if (hex.length() == HEADER_DIGITS) {
                return header;
            }
            String payload = hex.substring(HEADER_DIGITS);
            return header + "\n  "
                    + (payload.length() <= SHORT_DIGITS
                            ? payload
                            : payload.substring(0, 16) + " and " + (payload.length() - 16) / 2 + " bytes");
        }

        String record() {
            return String.join("\n", lines) + "\n";
        }

        void matches(String expected) {
            assertThat(record()).matches(expected);
        }
    }
}
