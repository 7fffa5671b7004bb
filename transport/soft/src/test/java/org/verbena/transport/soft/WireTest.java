package org.verbena.transport.soft;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.lang.foreign.ValueLayout;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HexFormat;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.EndpointCapabilities;
import org.verbena.transport.MemoryDomain.Access;
import org.verbena.transport.RegisteredMemory;
import org.verbena.transport.WorkCompletionException;
import org.verbena.transport.WorkStatus;
import org.verbena.transport.spi.EndpointHandler;
import org.verbena.transport.spi.EndpointOptions;
import org.verbena.transport.spi.RecordingEndpointHandler;
import org.verbena.transport.spi.RecordingEndpointHandler.Completion;
import org.verbena.transport.spi.WorkRequest;

/**
 * What goes over the wire, byte by byte, as RFC 5044, 5041, 5040, 6581 and 7306 draw it; the other end is a plain
 * socket.
 */
@Timeout(240)
class WireTest {
    private static final SoftOptions OPTIONS = SoftOptions.ofSystemProperties().with(o -> {
        o.maxHandshakes = 4;
        o.sharedReceiveDepth = 64;
    });
    private static final EndpointOptions NO_DATA = EndpointOptions.DEFAULTS;

    private SoftFixture fixture;
    private ServerSocket server;

    @BeforeEach
    void open() throws IOException {
        fixture = new SoftFixture(OPTIONS);
        server = new ServerSocket(0, 8, InetAddress.getLoopbackAddress());
    }

    @AfterEach
    void close() throws IOException {
        server.close();
        fixture.close();
    }

    private InetSocketAddress peerAddress() {
        return (InetSocketAddress) server.getLocalSocketAddress();
    }

    private RawPeer acceptPeer() throws IOException {
        return new RawPeer(server.accept());
    }

    private static String text(String ascii) {
        return HexFormat.of().formatHex(ascii.getBytes(StandardCharsets.US_ASCII));
    }

    /** An initiator of ours that a siw-like responder has accepted: peer-to-peer with a write, 16 reads, no token. */
    private RecordingEndpointHandler connectTo(RawPeer[] peer) throws IOException {
        RecordingEndpointHandler client = fixture.connect(peerAddress(), NO_DATA);
        peer[0] = acceptPeer();
        peer[0].readFrame();
        peer[0].send(RawPeer.reply(0x1002, RawPeer.hex("8010 8010")));
        client.awaitConnected();
        // The ready-to-receive write.
        assertThat(peer[0].readSegment().hex()).isEqualTo("c14056626e61000000000001" + "0007");
        return client;
    }

    // ---- startup

    @Test
    void requestsMatchRfc6581() throws IOException {
        RecordingEndpointHandler client = fixture.connect(
                peerAddress(), EndpointOptions.DEFAULTS.with(o -> o.privateData = new byte[] {1, 2, 3}));
        try (RawPeer peer = acceptPeer()) {
            // Key; S and revision 2; 7 bytes: A and B with 16 inbound, C and D with 16 outbound reads, the user's
            // three.
            assertThat(HexFormat.of().formatHex(peer.readBytes(27)))
                    .isEqualTo(text("MPA ID Req Frame") + "1002" + "0007" + "c010" + "c010" + "010203");
        }
        assertThat(client.awaitDisconnected())
                .isInstanceOf(ConnectionException.class)
                .hasMessageContaining("without an MPA reply");
    }

    @Test
    void requestsMatchRfc5044InRevision1() throws IOException {
        try (SoftFixture old = new SoftFixture(OPTIONS.with(o -> {
            o.crc = true;
            o.mpaRevision = 1;
        }))) {
            RecordingEndpointHandler client =
                    old.connect(peerAddress(), NO_DATA.with(o -> o.privateData = new byte[] {9}));
            try (RawPeer peer = acceptPeer()) {
                assertThat(HexFormat.of().formatHex(peer.readBytes(21)))
                        .isEqualTo(text("MPA ID Req Frame") + "4001" + "0001" + "09");
                peer.send(RawPeer.reply(0x0001, new byte[] {7, 8}));
                assertThat(client.awaitConnected()).containsExactly(7, 8);
                EndpointCapabilities capabilities = client.awaitPrepared().capabilities();
                assertThat(capabilities.atomics()).isFalse();
                assertThat(capabilities.readDepth()).isEqualTo(16);
                // Asked for by one side, CRC is used by both.
                client.send(new WorkRequest(1).asSend(1, 0));
                peer.setCrc(true);
                assertThat(peer.readSegment())
                        .satisfies(
                                segment -> assertThat(segment.hex()).isEqualTo("414300000000000000000000000100000000"))
                        .satisfies(segment -> assertThat(segment.crcFits()).isTrue());
            }
            client.awaitDisconnected();
        }
    }

    @Test
    void answersASiwWithoutPeerToPeerAndWithoutToken() throws IOException {
        try (RawPeer peer = RawPeer.connect(fixture.address)) {
            peer.send(RawPeer.request(0x1002, RawPeer.hex("0004 0080 616263")));
            // Its 4 inbound reads are our most outbound ones; of its 128 we take our 16.
            assertThat(HexFormat.of().formatHex(peer.readBytes(24)))
                    .isEqualTo(text("MPA ID Rep Frame") + "1002" + "0004" + "0010" + "0004");
            RecordingEndpointHandler accepted = fixture.awaitAccepted();
            assertThat(accepted.awaitConnected()).isEqualTo("abc".getBytes(StandardCharsets.US_ASCII));
            EndpointCapabilities capabilities = accepted.awaitPrepared().capabilities();
            assertThat(capabilities.readDepth()).isEqualTo(4);
            assertThat(capabilities.atomics()).isFalse();
            assertThat(capabilities.immediateData()).isFalse();
        }
    }

    @Test
    void answersRevision1InRevision1() throws IOException {
        try (RawPeer peer = RawPeer.connect(fixture.address)) {
            peer.send(RawPeer.request(0x4001));
            assertThat(HexFormat.of().formatHex(peer.readBytes(20)))
                    .isEqualTo(text("MPA ID Rep Frame") + "4001" + "0000");
            fixture.awaitAccepted().awaitConnected();
        }
    }

    @ParameterizedTest
    @CsvSource({
        // All three ready messages are known: write is taken, and the token added, for it may be one of ours.
        "c010c010, 1002000c80108010 56626e6100010007",
        "8010c010, 1002000480108010",
        "80104010, 1002000480104010",
        "c0100010, 1002000480108010",
        "80100000, 1002000480008010",
        // A read is the ready message, and needs a place even if no others do.
        "80104000, 1002000480014010",
        // Not negotiated in this way: given back.
        "3fff3fff, 100200043fff3fff"
    })
    void answersPeerToPeerWithOneReadyMessage(String setup, String rest) throws IOException {
        try (RawPeer peer = RawPeer.connect(fixture.address)) {
            peer.send(RawPeer.request(0x1002, RawPeer.hex(setup)));
            byte[] expected = RawPeer.hex(text("MPA ID Rep Frame") + rest);
            assertThat(HexFormat.of().formatHex(peer.readBytes(expected.length)))
                    .isEqualTo(HexFormat.of().formatHex(expected));
            RecordingEndpointHandler accepted = fixture.awaitAccepted();
            accepted.awaitPrepared();
            if (!setup.startsWith("3")) {
                assertThat(accepted.isConnected()).as("before it is ready").isFalse();
            }
        }
    }

    @Test
    void rejectsWithTheReason() throws IOException {
        fixture.listening.whenRequested(connection -> connection.reject(new byte[] {4, 2}));
        try (RawPeer peer = RawPeer.connect(fixture.address)) {
            peer.send(RawPeer.request(0x1002, RawPeer.hex("00100010")));
            assertThat(HexFormat.of().formatHex(peer.readBytes(26)))
                    .isEqualTo(text("MPA ID Rep Frame") + "3002" + "0006" + "00000000" + "0402");
            assertThat(peer.isEnded()).isTrue();
        }
        try (RawPeer peer = RawPeer.connect(fixture.address)) {
            peer.send(RawPeer.request(0x0001));
            assertThat(HexFormat.of().formatHex(peer.readBytes(22)))
                    .isEqualTo(text("MPA ID Rep Frame") + "2001" + "0002" + "0402");
            assertThat(peer.isEnded()).isTrue();
        }
    }

    @ParameterizedTest
    @CsvSource({"3002, 00000000050607", "2001, 050607", "2002, 050607"})
    void reportsTheReasonOfAReject(String flags, String privateData) throws IOException {
        RecordingEndpointHandler client = fixture.connect(peerAddress(), NO_DATA);
        try (RawPeer peer = acceptPeer()) {
            peer.readFrame();
            peer.send(RawPeer.reply(Integer.parseInt(flags, 16), RawPeer.hex(privateData)));
            assertThat(client.awaitDisconnected())
                    .isInstanceOfSatisfying(
                            ConnectionException.Rejected.class,
                            rejected -> assertThat(rejected.privateData()).containsExactly(5, 6, 7));
            assertThat(client.isConnected()).isFalse();
        }
    }

    /** Invalid replies, and what the message says. */
    @ParameterizedTest
    @CsvSource({
        "4d50412049442052657120 4672616d65 1002 0004 00100010, another protocol",
        "48545450 2f312e31 20343030 20426164, another protocol",
        "4d50412049442052657020 4672616d65 1003 0000, revision 3",
        "4d50412049442052657020 4672616d65 1002 0002 0010, setup data",
        "4d50412049442052657020 4672616d65 1002 0201, limit of 512",
        "4d50412049442052657020 4672616d65 9002 0004 00100010, markers",
        "4d5041204944, within its reply",
        "'', without an MPA reply"
    })
    void givesUpOnAnInvalidReply(String reply, String message) throws IOException {
        RecordingEndpointHandler client = fixture.connect(peerAddress(), NO_DATA);
        try (RawPeer peer = acceptPeer()) {
            peer.readFrame();
            peer.send(RawPeer.hex(reply));
            peer.finish();
            assertThat(client.awaitDisconnected())
                    .isInstanceOf(ConnectionException.class)
                    .hasMessageContaining(message);
        }
    }

    @ParameterizedTest
    @CsvSource({
        // More reads at a time than anybody serves; ready messages that do not exist.
        "8010 8fff, 2006",
        "8010 0010, 2007"
    })
    void terminatesSetupThatCannotBeMet(String setup, String code) throws IOException {
        RecordingEndpointHandler client = fixture.connect(peerAddress(), NO_DATA);
        try (RawPeer peer = acceptPeer()) {
            peer.readFrame();
            peer.send(RawPeer.reply(0x1002, RawPeer.hex(setup)));
            assertThat(peer.readTerminate()).isEqualTo(Integer.parseInt(code, 16));
            assertThat(peer.isEnded()).isTrue();
            assertThat(client.awaitDisconnected()).isInstanceOf(ConnectionException.class);
            assertThat(client.isConnected()).isFalse();
        }
    }

    @ParameterizedTest
    @CsvSource({
        // Ready by write, by read, by send.
        "80108010, c140 56626e61 0000000000010007",
        "80104010, 4141 00000000 00000001 00000001 00000000 00000000 0000000000000000 00000000 00000000 0000000000000000",
        "c0100010, 4143 00000000 00000000 00000001 00000000"
    })
    void reportsReadyAsTheResponderWants(String setup, String segment) throws IOException {
        RecordingEndpointHandler client = fixture.connect(peerAddress(), NO_DATA);
        try (RawPeer peer = acceptPeer()) {
            peer.readFrame();
            peer.send(RawPeer.reply(0x1002, RawPeer.hex(setup)));
            assertThat(peer.readSegment().hex()).isEqualTo(segment.replace(" ", ""));
            client.awaitConnected();
            if (segment.startsWith("4141")) {
                peer.send(peer.tagged(RawPeer.READ_RESPONSE, 0, 0));
            }
            client.send(new WorkRequest(1).asSend(1, 0));
            RawPeer.Segment send = peer.readSegment();
            assertThat(send.hex()).endsWith(segment.startsWith("4143") ? "0000000200000000" : "0000000100000000");
            assertThat(client.awaitSend().status()).isEqualTo(WorkStatus.SUCCESS);
        }
    }

    @Test
    void sendsNoReadyMessageWithoutPeerToPeer() throws IOException {
        RecordingEndpointHandler client = fixture.connect(peerAddress(), NO_DATA);
        try (RawPeer peer = acceptPeer()) {
            peer.readFrame();
            peer.send(RawPeer.reply(0x1002, RawPeer.hex("0003 0005")));
            client.awaitConnected();
            assertThat(client.awaitPrepared().capabilities().readDepth()).isEqualTo(3);
            client.send(new WorkRequest(1).asSend(1, 0));
            assertThat(peer.readSegment().hex()).isEqualTo("414300000000000000000000000100000000");
        }
    }

    @Test
    void aResponderWaitsForTheFirstSegmentBeforeItSends() throws IOException {
        RegisteredMemory memory = fixture.region(8, Access.LOCAL_WRITE);
        try (RawPeer peer = RawPeer.connect(fixture.address).introduce(false)) {
            RecordingEndpointHandler accepted = fixture.awaitAccepted();
            accepted.awaitConnected();
            accepted.receive(1, memory, 0, 8);
            accepted.send(new WorkRequest(1).asSend(2, 0));
            peer.socket().setSoTimeout(200);
            org.assertj.core.api.Assertions.assertThatThrownBy(peer::readSegment)
                    .isInstanceOf(java.net.SocketTimeoutException.class);
            peer.socket().setSoTimeout(RawPeer.PATIENCE_MILLIS);
            peer.send(peer.untagged(RawPeer.SEND, 0, 1, 0));
            assertThat(peer.readSegment().hex()).isEqualTo("414300000000000000000000000100000000");
            assertThat(accepted.awaitReceive().status()).isEqualTo(WorkStatus.SUCCESS);
        }
    }

    // ---- messages

    @Test
    void sendsMatchRfc5040() throws IOException {
        RawPeer[] peer = new RawPeer[1];
        RecordingEndpointHandler client = connectTo(peer);
        RegisteredMemory memory = fixture.region(64, Access.LOCAL_WRITE);
        for (int i = 0; i < 64; i++) {
            memory.segment().set(ValueLayout.JAVA_BYTE, i, (byte) (0x10 + i));
        }
        try (RawPeer to = peer[0]) {
            WorkRequest request = new WorkRequest(2);
            request.asSend(1, 0).buffers().add(memory, 1, 3).add(memory, 8, 2);
            client.send(request);
            // Length 18 + 5; queue 0, number 1, offset 0; five bytes; three of pad; no CRC.
            assertThat(HexFormat.of().formatHex(to.readBytes(2 + 23 + 3 + 4)))
                    .isEqualTo("0017 4143 00000000 00000000 00000001 00000000 111213 1819 000000 00000000"
                            .replace(" ", ""));
            request.asSend(2, WorkRequest.SOLICITED | WorkRequest.INLINE)
                    .buffers()
                    .add(memory, 0, 4);
            client.send(request);
            assertThat(to.readSegment().hex())
                    .isEqualTo("4145 00000000 00000000 00000002 00000000 10111213".replace(" ", ""));
            client.send(request.asSendWithInvalidate(3, 0, 0xcafe0102));
            assertThat(to.readSegment().hex()).isEqualTo("4144 cafe0102 00000000 00000003 00000000".replace(" ", ""));
            client.send(request.asSendWithInvalidate(4, WorkRequest.SOLICITED, 0xcafe0102));
            assertThat(to.readSegment().hex()).isEqualTo("4146 cafe0102 00000000 00000004 00000000".replace(" ", ""));
            request.asWrite(5, 0, 0x1122334455667788L, 0xcafe0102).buffers().add(memory, 0, 1);
            client.send(request);
            assertThat(to.readSegment().hex()).isEqualTo("c140 cafe0102 1122334455667788 10".replace(" ", ""));
            request.asRead(6, 0, 0x1122334455667788L, 0xcafe0102).buffers().add(memory, 16, 32);
            client.send(request);
            RawPeer.Segment read = to.readSegment();
            String sink = HexFormat.of().toHexDigits(memory.remoteKey())
                    + HexFormat.of().toHexDigits(memory.address() + 16);
            assertThat(read.hex())
                    .isEqualTo("4141000000000000000100000001" + "00000000" + sink + "00000020" + "cafe0102"
                            + "1122334455667788");
            to.send(to.tagged(
                    RawPeer.READ_RESPONSE & ~RawPeer.MORE, memory.remoteKey(), memory.address() + 16, new byte[20]));
            to.send(to.tagged(RawPeer.READ_RESPONSE, memory.remoteKey(), memory.address() + 36, new byte[12]));
            assertThat(client.awaitSends(6).getLast()).isEqualTo(new Completion(6, WorkStatus.SUCCESS, 32, 0, 0));
        }
    }

    /** siw answers it wrongly in one piece. */
    @Test
    void readsFewBytesOfTwoPagesPageByPage() throws IOException {
        RawPeer[] peer = new RawPeer[1];
        RecordingEndpointHandler client = connectTo(peer);
        RegisteredMemory memory = fixture.region(64, Access.LOCAL_WRITE);
        try (RawPeer to = peer[0]) {
            WorkRequest request = new WorkRequest(1);
            request.asRead(6, 0, 0x1ff6, 0xcafe0102).buffers().add(memory, 16, 32);
            client.send(request);
            request.asRead(7, 0, 0x2ff6, 0xcafe0102).buffers().add(memory, 48, 10);
            client.send(request);
            String key = HexFormat.of().toHexDigits(memory.remoteKey());
            assertThat(to.readSegment().hex())
                    .isEqualTo("4141000000000000000100000001" + "00000000" + key
                            + HexFormat.of().toHexDigits(memory.address() + 16) + "0000000a" + "cafe0102"
                            + "0000000000001ff6");
            assertThat(to.readSegment().hex())
                    .isEqualTo("4141000000000000000100000002" + "00000000" + key
                            + HexFormat.of().toHexDigits(memory.address() + 26) + "00000016" + "cafe0102"
                            + "0000000000002000");
            // All on one page.
            assertThat(to.readSegment().hex())
                    .isEqualTo("4141000000000000000100000003" + "00000000" + key
                            + HexFormat.of().toHexDigits(memory.address() + 48) + "0000000a" + "cafe0102"
                            + "0000000000002ff6");
            byte[] ones = new byte[32];
            Arrays.fill(ones, (byte) 1);
            to.send(to.tagged(
                    RawPeer.READ_RESPONSE, memory.remoteKey(), memory.address() + 16, Arrays.copyOf(ones, 10)));
            to.send(to.tagged(
                    RawPeer.READ_RESPONSE, memory.remoteKey(), memory.address() + 26, Arrays.copyOf(ones, 22)));
            to.send(to.tagged(RawPeer.READ_RESPONSE, memory.remoteKey(), memory.address() + 48, new byte[10]));
            assertThat(client.awaitSend()).isEqualTo(new Completion(6, WorkStatus.SUCCESS, 32, 0, 0));
            assertThat(client.awaitSend()).isEqualTo(new Completion(7, WorkStatus.SUCCESS, 10, 0, 0));
            assertThat(memory.segment().asSlice(16, 32).toArray(ValueLayout.JAVA_BYTE))
                    .isEqualTo(ones);
        }
    }

    @Test
    void cutsLongMessagesAtTheSegmentLimit() throws IOException {
        try (SoftFixture small = new SoftFixture(OPTIONS.with(o -> {
            o.crc = true;
            o.maxFpduBytes = 128;
        }))) {
            RegisteredMemory memory = small.region(300);
            RecordingEndpointHandler client = small.connect(peerAddress(), NO_DATA);
            try (RawPeer peer = acceptPeer()) {
                peer.readFrame();
                peer.send(RawPeer.reply(0x5002, RawPeer.hex("0010 0010")));
                peer.setCrc(true);
                client.awaitConnected();
                WorkRequest request = new WorkRequest(1);
                request.asSend(1, 0).buffers().add(memory, 0, 300);
                client.send(request);
                // 128 bytes are 2 length, 18 header, 104 payload, 4 CRC.
                for (int offset = 0; offset < 300; offset += 104) {
                    RawPeer.Segment segment = peer.readSegment();
                    assertThat(segment.crcFits()).isTrue();
                    assertThat(segment.ulpdu()).hasSize(18 + Math.min(104, 300 - offset));
                    assertThat(segment.hex())
                            .startsWith((offset + 104 < 300 ? "0143" : "4143") + "000000000000000000000001"
                                    + HexFormat.of().toHexDigits(offset));
                }
            }
            client.awaitDisconnected();
        }
    }

    @Test
    void writesAKnownCrc() throws IOException {
        try (RawPeer peer = RawPeer.connect(fixture.address)) {
            peer.send(RawPeer.request(0x5002, RawPeer.hex("00100010")));
            peer.readFrame();
            // A zero-length read, and its answer; CRC32C of 0016... computed with the polynomial of RFC 3720, B.4.
            peer.setCrc(true);
            peer.send(peer.readRequest(1, 0x01020304, 0x05060708090a0b0cL, 0, 0, 0));
            byte[] answer = peer.readBytes(20);
            assertThat(HexFormat.of().formatHex(answer, 0, 16)).isEqualTo("000ec1420102030405060708090a0b0c");
            assertThat(Integer.reverseBytes(java.nio.ByteBuffer.wrap(answer).getInt(16)))
                    .isEqualTo(castagnoli(answer, 16));
        }
    }

    /** CRC32C bit by bit, reflected polynomial 0x82f63b78. */
    private static int castagnoli(byte[] bytes, int length) {
        int crc = -1;
        for (int i = 0; i < length; i++) {
            crc ^= bytes[i] & 0xff;
            for (int bit = 0; bit < 8; bit++) {
                crc = (crc & 1) != 0 ? crc >>> 1 ^ 0x82f63b78 : crc >>> 1;
            }
        }
        return ~crc;
    }

    @Test
    void knowsTheCrcOfRfc3720() {
        assertThat(castagnoli(new byte[32], 32)).isEqualTo(0x8a9136aa);
    }

    @Test
    void servesReadsAndWrites() throws IOException {
        RegisteredMemory table = fixture.region(64, Access.REMOTE_READ, Access.REMOTE_WRITE);
        try (RawPeer peer = RawPeer.connect(fixture.address).introduce(false)) {
            fixture.awaitAccepted().awaitConnected();
            peer.send(
                    peer.tagged(RawPeer.WRITE & ~RawPeer.MORE, table.remoteKey(), table.address() + 60, new byte[] {1}),
                    peer.tagged(RawPeer.WRITE, table.remoteKey(), table.address() + 61, new byte[] {2, 3, 4}),
                    peer.readRequest(1, 0x0a0b0c0d, 0x1000, 4, table.remoteKey(), table.address() + 60));
            assertThat(peer.readSegment().hex()).isEqualTo("c1420a0b0c0d000000000000100001020304");
            // No bytes, so neither key nor address count.
            peer.send(peer.tagged(RawPeer.WRITE, 0x99999999, -1), peer.readRequest(2, 5, 6, 0, 0x99999999, -1));
            assertThat(peer.readSegment().hex()).isEqualTo("c142000000050000000000000006");
        }
    }

    @ParameterizedTest
    @CsvSource({
        // operation, value, mask, compare, before, after
        "0, 5, 0, 0, 7, c",
        "0, ffffffffffffffff, 0, 0, 0, ffffffffffffffff",
        // Two fields of 32 bits: no carry from the lower into the upper one.
        "0, 00000001ffffffff, 8000000080000000, 0, 0000000200000001, 0000000300000000",
        "2, 9, ffffffffffffffff, 7, 7, 9",
        "2, 9, ffffffffffffffff, 8, 7, 7",
        "2, ffffffffffffffff, f0, 7, 7, f7"
    })
    void servesAtomics(int operation, String value, String mask, String compare, String before, String after)
            throws IOException {
        RegisteredMemory table = fixture.region(64, Access.REMOTE_ATOMIC);
        long old = Long.parseUnsignedLong(before, 16);
        table.segment().set(ValueLayout.JAVA_LONG, 8, old);
        try (RawPeer peer = RawPeer.connect(fixture.address).introduceAsOurs(false)) {
            RecordingEndpointHandler accepted = fixture.awaitAccepted();
            accepted.awaitConnected();
            assertThat(accepted.awaitPrepared().capabilities().atomics()).isTrue();
            peer.send(peer.atomicRequest(
                    1,
                    operation,
                    table.remoteKey(),
                    table.address() + 8,
                    Long.parseUnsignedLong(value, 16),
                    Long.parseUnsignedLong(mask, 16),
                    Long.parseUnsignedLong(compare, 16)));
            assertThat(peer.readSegment().hex())
                    .isEqualTo("414b00000000000000030000000100000000" + "00000001"
                            + HexFormat.of().toHexDigits(old));
            assertThat(table.segment().get(ValueLayout.JAVA_LONG, 8)).isEqualTo(Long.parseUnsignedLong(after, 16));
        }
    }

    @Test
    void takesImmediateData() throws IOException {
        RegisteredMemory memory = fixture.region(64, Access.REMOTE_WRITE);
        try (RawPeer peer = RawPeer.connect(fixture.address).introduceAsOurs(false)) {
            RecordingEndpointHandler accepted = fixture.awaitAccepted();
            accepted.receive(1, memory, 0, 8);
            accepted.receive(2, memory, 0, 8);
            peer.send(
                    peer.tagged(RawPeer.WRITE, memory.remoteKey(), memory.address() + 32, new byte[5]),
                    peer.untagged(RawPeer.IMMEDIATE, 0, 1, 0, RawPeer.hex("00000000 fedcba98")),
                    peer.untagged(RawPeer.IMMEDIATE, 0, 2, 0, RawPeer.hex("00000001 01020304")),
                    peer.untagged(RawPeer.SEND, 0, 3, 0, new byte[3]));
            assertThat(accepted.awaitReceive())
                    .isEqualTo(new Completion(
                            1,
                            WorkStatus.SUCCESS,
                            5,
                            EndpointHandler.REMOTE_WRITE | EndpointHandler.WITH_IMMEDIATE,
                            0xfedcba98));
            assertThat(accepted.awaitReceive())
                    .isEqualTo(new Completion(2, WorkStatus.SUCCESS, 3, EndpointHandler.WITH_IMMEDIATE, 0x01020304));
        }
    }

    // ---- what a responder can do to a reader

    @ParameterizedTest
    @CsvSource({
        // read from, in how many parts; key off by, offset off by, bytes, last; the code
        "0x1000, 1, 1, 0, 32, true, 1100",
        "0x1000, 1, 0, 1, 32, true, 1101",
        "0x1000, 1, 0, -1, 32, true, 1101",
        "0x1000, 1, 0, 0, 33, true, 1101",
        "0x1000, 1, 0, 0, 31, true, 1101",
        "0x1000, 1, 0, 0, 36, false, 1101",
        // Ten bytes on its first page.
        "0x1ff6, 2, 0, 0, 11, true, 1101",
        "0x1ff6, 2, 0, 0, 9, true, 1101",
        "0x1ff6, 2, 0, 10, 10, true, 1101"
    })
    void refusesResponsesThatAreNotWhatWasAskedFor(
            long from, int parts, int key, long offset, int bytes, boolean last, String code) throws IOException {
        RawPeer[] peers = new RawPeer[1];
        RecordingEndpointHandler client = connectTo(peers);
        RegisteredMemory memory = fixture.region(64, Access.LOCAL_WRITE);
        try (RawPeer peer = peers[0]) {
            WorkRequest request = new WorkRequest(1);
            request.asRead(6, 0, from, 0xcafe0102).buffers().add(memory, 16, 32);
            client.send(request);
            for (int i = 0; i < parts; i++) {
                peer.readSegment();
            }
            byte[] payload = new byte[bytes];
            Arrays.fill(payload, (byte) 1);
            peer.send(peer.tagged(
                    last ? RawPeer.READ_RESPONSE : RawPeer.READ_RESPONSE & ~RawPeer.MORE,
                    memory.remoteKey() + key,
                    memory.address() + 16 + offset,
                    payload));
            assertThat(peer.readTerminate()).isEqualTo(Integer.parseInt(code, 16));
            assertThat(client.awaitSend().status()).isEqualTo(WorkStatus.FLUSHED);
            assertThat(client.awaitDisconnected()).isInstanceOf(ConnectionException.class);
            assertThat(memory.segment().toArray(ValueLayout.JAVA_BYTE)).containsOnly(0);
        }
    }

    /** Terminate messages, and what becomes of two reads that are out. */
    @ParameterizedTest
    @CsvSource({
        // Names the second read: queue 1, number 2.
        "0101 e000 002e 4141 00000000 00000001 00000002 00000000, FLUSHED, REMOTE_ACCESS_ERROR, REMOTE_ACCESS_ERROR",
        // Names none: the first is blamed.
        "0100 0000, REMOTE_ACCESS_ERROR, FLUSHED, REMOTE_ACCESS_ERROR",
        // Names a write that is long complete.
        "1100 c000 0013 c140 deadbe01 0102030405060708, FLUSHED, FLUSHED, REMOTE_ACCESS_ERROR",
        // No receive was posted for send number 1, which is complete.
        "1202 c000 0012 4143 00000000 00000000 00000001 00000000, FLUSHED, FLUSHED, RECEIVER_NOT_READY_RETRY_EXCEEDED",
        "1205 c000 0012 4143 00000000 00000000 00000001 00000000, FLUSHED, FLUSHED, REMOTE_INVALID_REQUEST_ERROR",
        "0207 0000, FLUSHED, FLUSHED, REMOTE_OPERATION_ERROR",
        "2002 0000, FLUSHED, FLUSHED, GENERAL_ERROR",
        // Unknown codes.
        "0fee 0000, FLUSHED, FLUSHED, REMOTE_OPERATION_ERROR",
        "f7ff e000, FLUSHED, FLUSHED, GENERAL_ERROR",
        // Cut short.
        "0101 e000 002e 4141 0000, REMOTE_ACCESS_ERROR, FLUSHED, REMOTE_ACCESS_ERROR",
        // Linux's siw: halves of the first byte exchanged, flags at the other end, and the read's length for its
        // number.
        "1000 0700 001c 4141 00000000 00000001 00000020 00000000, REMOTE_ACCESS_ERROR, FLUSHED, REMOTE_ACCESS_ERROR",
        "1000 0700 001c 4141 00000000 00000001 00000002 00000000, REMOTE_ACCESS_ERROR, FLUSHED, REMOTE_ACCESS_ERROR",
        "2102 0300 0012 4143 00000000 00000000 00000001 00000000, FLUSHED, FLUSHED, RECEIVER_NOT_READY_RETRY_EXCEEDED",
        "1100 0300 0013 c140 deadbe01 0102030405060708, FLUSHED, FLUSHED, REMOTE_ACCESS_ERROR"
    })
    void takesTerminateMessages(String message, WorkStatus first, WorkStatus second, WorkStatus cause)
            throws IOException {
        RawPeer[] peers = new RawPeer[1];
        RecordingEndpointHandler client = connectTo(peers);
        RegisteredMemory memory = fixture.region(64, Access.LOCAL_WRITE);
        try (RawPeer peer = peers[0]) {
            client.run(endpoint -> {
                WorkRequest request = new WorkRequest(1);
                request.asRead(1, 0, 0x1000, 0xcafe0102).buffers().add(memory, 0, 32);
                client.post(endpoint, request);
                request.asRead(2, 0, 0x2000, 0xcafe0102).buffers().add(memory, 32, 32);
                client.post(endpoint, request);
                endpoint.flush();
            });
            peer.readSegment();
            peer.readSegment();
            peer.send(peer.untagged(RawPeer.TERMINATE, 2, 1, 0, RawPeer.hex(message)));
            assertThat(client.awaitSend().status()).isEqualTo(first);
            assertThat(client.awaitSend().status()).isEqualTo(second);
            assertThat(client.awaitDisconnected())
                    .isInstanceOfSatisfying(
                            WorkCompletionException.class,
                            failure -> assertThat(failure.status()).isEqualTo(cause));
            assertThat(peer.isEnded()).isTrue();
        }
    }
}
