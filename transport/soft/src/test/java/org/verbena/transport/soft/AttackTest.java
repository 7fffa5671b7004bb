package org.verbena.transport.soft;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.MemoryDomain.Access;
import org.verbena.transport.RegisteredMemory;
import org.verbena.transport.WorkCompletionException;
import org.verbena.transport.WorkStatus;
import org.verbena.transport.software.SoftwareIoHandler;
import org.verbena.transport.spi.EndpointOptions;
import org.verbena.transport.spi.Patience;
import org.verbena.transport.spi.RecordingEndpointHandler;
import org.verbena.transport.spi.ScatterGatherList;
import org.verbena.transport.spi.WorkRequest;

/**
 * Hostile peers. Each one must get the Terminate message, or the silence, that it deserves and lose its connection; an
 * honest connection on the same loop must not notice, and no byte outside of what a peer may touch may change.
 */
@Timeout(240)
class AttackTest {
    private static final int TABLE_BYTES = 4096;
    private static final byte GUARD = 0x77;
    private static final SoftOptions OPTIONS = SoftOptions.ofSystemProperties().with(o -> {
        o.handshakeTimeoutMillis = (int) Patience.LIMIT.toMillis();
        o.maxHandshakes = 4;
        o.sharedReceiveDepth = 64;
    });
    private static final int FIRST = 0x1002;

    private SoftFixture fixture;
    private MemorySegment pages;
    private RegisteredMemory table;
    private RegisteredMemory readOnly;
    private RegisteredMemory closed;
    private RegisteredMemory secret;
    private RegisteredMemory receives;
    private RegisteredMemory anothers;
    private RecordingEndpointHandler honest;
    private RecordingEndpointHandler honestServer;

    @BeforeEach
    void open() {
        fixture = new SoftFixture(OPTIONS);
        pages = fixture.arena.allocate(3L * TABLE_BYTES, 4096);
        pages.fill(GUARD);
        table = fixture.provider
                .memoryDomain()
                .register(
                        pages.asSlice(TABLE_BYTES, TABLE_BYTES),
                        Set.of(Access.REMOTE_WRITE, Access.REMOTE_READ, Access.REMOTE_ATOMIC));
        readOnly = fixture.region(TABLE_BYTES, Access.REMOTE_READ);
        closed = fixture.region(TABLE_BYTES, Access.REMOTE_READ, Access.REMOTE_WRITE, Access.REMOTE_ATOMIC);
        closed.close();
        secret = fixture.region(TABLE_BYTES, Access.LOCAL_WRITE);
        receives = fixture.region(TABLE_BYTES, Access.LOCAL_WRITE);
        honest = fixture.connect(EndpointOptions.DEFAULTS);
        honestServer = fixture.awaitAccepted();
        honest.awaitConnected();
        honestServer.awaitConnected();
        anothers = fixture.ownRegion(
                honestServer, TABLE_BYTES, Access.REMOTE_READ, Access.REMOTE_WRITE, Access.REMOTE_ATOMIC);
        honestTraffic();
    }

    @AfterEach
    void close() {
        try {
            honestTraffic();
            assertThat(pages.asSlice(0, TABLE_BYTES).toArray(ValueLayout.JAVA_BYTE))
                    .as("the page before the table")
                    .containsOnly(GUARD);
            assertThat(pages.asSlice(2L * TABLE_BYTES, TABLE_BYTES).toArray(ValueLayout.JAVA_BYTE))
                    .as("the page behind the table")
                    .containsOnly(GUARD);
            assertThat(secret.segment().toArray(ValueLayout.JAVA_BYTE)).containsOnly(0);
            assertThat(closed.segment().toArray(ValueLayout.JAVA_BYTE)).containsOnly(0);
            assertThat(anothers.segment().toArray(ValueLayout.JAVA_BYTE)).containsOnly(0);
            WorkRequest invalidated = new WorkRequest(1).asRead(1, 0, anothers.address(), anothers.remoteKey());
            invalidated.buffers().add(fixture.region(8, Access.LOCAL_WRITE), 0, 8);
            honest.send(invalidated);
            assertThat(honest.awaitSend().status())
                    .as("its key was not invalidated")
                    .isEqualTo(WorkStatus.SUCCESS);
            assertThat(readOnly.segment().toArray(ValueLayout.JAVA_BYTE)).containsOnly(0);
        } finally {
            table.close();
            fixture.close();
        }
    }

    /** One message over the honest connection: it is still served. */
    private void honestTraffic() {
        RegisteredMemory memory = fixture.region(64, Access.LOCAL_WRITE);
        honestServer.receive(1, memory, 0, 64);
        honest.send(new WorkRequest(1).asSend(2, 0));
        assertThat(honest.awaitSend().status()).isEqualTo(WorkStatus.SUCCESS);
        assertThat(honestServer.awaitReceive().status()).isEqualTo(WorkStatus.SUCCESS);
        memory.close();
    }

    // ---- in the startup phase

    /** Bytes that are not a request. */
    enum Startup {
        ANOTHER_PROTOCOL("GET / HTTP/1.1\r\nHost: x\r\n\r\n".getBytes(java.nio.charset.StandardCharsets.US_ASCII)),
        A_REPLY_FOR_A_REQUEST(RawPeer.reply(FIRST, new byte[4])),
        REVISION_3(RawPeer.request(0x1003, new byte[4])),
        REVISION_255(RawPeer.request(0x00ff)),
        PRIVATE_DATA_OVER_THE_LIMIT(RawPeer.request(0x0001, new byte[513])),
        ENHANCED_WITHOUT_SETUP_DATA(RawPeer.request(FIRST, new byte[2])),
        MORE_PRIVATE_DATA_THAN_ANNOUNCED(
                RawPeer.hex("4d50412049442052657120 4672616d65 0001 0000 00000000 00000000 00000000"));

        final byte[] bytes;

        Startup(byte[] bytes) {
            this.bytes = bytes;
        }
    }

    @ParameterizedTest
    @EnumSource(Startup.class)
    void dropsStrangers(Startup attack) throws IOException {
        try (RawPeer peer = RawPeer.connect(fixture.address)) {
            peer.send(attack.bytes);
            if (attack == Startup.MORE_PRIVATE_DATA_THAN_ANNOUNCED) {
                // The request itself is good; what follows it is parsed as a segment, and is not one.
                peer.readFrame();
                fixture.awaitAccepted().awaitDisconnected();
                assertThat(peer.readTerminate()).isEqualTo(0x2003);
            }
            assertThat(peer.isEnded()).isTrue();
        }
    }

    @Test
    void dropsAPeerThatSendsMoreBeforeItIsAnswered() throws IOException {
        fixture.listening.whenRequested(connection -> {});
        try (RawPeer peer = RawPeer.connect(fixture.address)) {
            peer.send(RawPeer.request(FIRST, RawPeer.hex("00100010")));
            peer.send(new byte[100]);
            assertThat(peer.isEnded()).isTrue();
        }
    }

    @Test
    void rejectsMarkers() throws IOException {
        try (RawPeer peer = RawPeer.connect(fixture.address)) {
            peer.send(RawPeer.request(0x9002, RawPeer.hex("00100010")));
            RawPeer.Frame reply = peer.readFrame();
            assertThat(reply.flags() & 0xa000).isEqualTo(0x2000);
            assertThat(peer.isEnded()).isTrue();
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 1, 19, 22})
    void dropsAPeerThatNeverFinishesItsRequest(int bytes) throws IOException {
        int millis = 100;
        SoftFixture hasty = new SoftFixture(OPTIONS.with(o -> o.handshakeTimeoutMillis = millis));
        long start = System.nanoTime();
        try (hasty;
                RawPeer peer = RawPeer.connect(hasty.address)) {
            peer.send(Arrays.copyOf(RawPeer.request(FIRST, RawPeer.hex("00100010")), bytes));
            assertThat(peer.isEnded()).isTrue();
            assertThat(System.nanoTime() - start).isGreaterThan(TimeUnit.MILLISECONDS.toNanos(millis));
        }
    }

    @Test
    void givesUpAnAcceptedPeerThatNeverReportsReady() throws IOException {
        SoftFixture slow = new SoftFixture(OPTIONS, EndpointOptions.DEFAULTS.with(o -> {
            o.connectTimeoutMillis = 1_000; // the reply goes out before, on a busy machine as well
            o.sendDepth = 4;
            o.receiveDepth = 4;
            o.maxSges = 1;
            o.maxInlineBytes = 0;
            o.readDepth = 1;
        }));
        try (slow;
                RawPeer peer = RawPeer.connect(slow.address)) {
            peer.send(RawPeer.request(FIRST, RawPeer.hex("80108010")));
            peer.readFrame();
            assertThat(slow.awaitAccepted().awaitDisconnected()).isInstanceOf(ConnectionException.TimedOut.class);
            assertThat(peer.isEnded()).isTrue();
        }
    }

    @Test
    void servesOthersWhileHandshakesHang() throws IOException {
        RawPeer[] idle = new RawPeer[3 * OPTIONS.maxHandshakes()];
        try (SoftFixture crowded = new SoftFixture(OPTIONS.with(o -> o.handshakeTimeoutMillis = 4_000))) {
            for (int i = 0; i < idle.length; i++) {
                idle[i] = RawPeer.connect(crowded.address);
            }
            // More than may be in handshake: the oldest make room, and time is up for the others.
            RecordingEndpointHandler late = crowded.connect(EndpointOptions.DEFAULTS);
            late.awaitConnected();
            for (RawPeer peer : idle) {
                assertThat(peer.isEnded()).isTrue();
                peer.close();
            }
        }
    }

    // ---- in the stream

    /** A segment, or several, that must not pass. */
    @FunctionalInterface
    interface Bad {
        byte[] bytes(AttackTest test, RawPeer peer);
    }

    /**
     * What a plain iWARP peer may try, and the Terminate code that it earns: layer, type, code. Whether a key is
     * unknown, closed, without that right or for less memory must not be told: 0x1100 and 0x0100 each time.
     */
    enum Attack {
        DDP_VERSION_0_TAGGED(0x1104, (t, p) -> p.tagged(0xc040, t.table.remoteKey(), t.table.address(), new byte[4])),
        DDP_VERSION_2_UNTAGGED(0x1206, (t, p) -> p.untagged(0x4243, 0, 1, 0)),
        RDMAP_VERSION_0(0x0205, (t, p) -> p.untagged(0x4103, 0, 1, 0)),
        RDMAP_VERSION_2(0x0205, (t, p) -> p.untagged(0x4183, 0, 1, 0)),
        OPCODE_12(0x0206, (t, p) -> p.untagged(0x414c, 0, 1, 0)),
        OPCODE_15_TAGGED(0x0206, (t, p) -> p.tagged(0xc14f, 0, 0)),
        SEND_TAGGED(0x0206, (t, p) -> p.tagged(0xc143, t.table.remoteKey(), t.table.address(), new byte[8])),
        WRITE_UNTAGGED(0x0206, (t, p) -> p.untagged(0x4140, 0, 1, 0, new byte[8])),
        LENGTH_0(0x2003, (t, p) -> p.fpdu(new byte[2], 0)),
        LENGTH_TOO_SHORT_FOR_TAGGED(
                0x2003,
                (t, p) ->
                        p.fpdu(ByteBuffer.allocate(13).putShort((short) 0xc140).array())),
        LENGTH_TOO_SHORT_FOR_UNTAGGED(
                0x2003,
                (t, p) ->
                        p.fpdu(ByteBuffer.allocate(17).putShort((short) 0x4143).array())),

        SEND_ON_QUEUE_1(0x1201, (t, p) -> p.untagged(RawPeer.SEND, 1, 1, 0)),
        SEND_ON_QUEUE_MAX(0x1201, (t, p) -> p.untagged(RawPeer.SEND, -1, 1, 0)),
        SEND_NUMBER_0(0x1203, (t, p) -> p.untagged(RawPeer.SEND, 0, 0, 0)),
        SEND_NUMBER_2_FIRST(0x1203, (t, p) -> p.untagged(RawPeer.SEND, 0, 2, 0)),
        SEND_OFFSET_NOT_0(0x1204, (t, p) -> p.untagged(RawPeer.SEND, 0, 1, 4, new byte[4])),
        SEND_OFFSET_NEGATIVE(0x1204, (t, p) -> p.untagged(RawPeer.SEND, 0, 1, -4, new byte[4])),
        SEND_SEGMENT_TWICE(0x1204, (t, p) -> twice(p.untagged(RawPeer.SEND & ~RawPeer.MORE, 0, 1, 0, new byte[8]))),
        SEND_SKIPS_WITHIN_MESSAGE(
                0x1204,
                (t, p) -> join(
                        p.untagged(RawPeer.SEND & ~RawPeer.MORE, 0, 1, 0, new byte[8]),
                        p.untagged(RawPeer.SEND, 0, 1, 12, new byte[8]))),
        SEND_NEXT_BEFORE_LAST(
                0x1203,
                (t, p) -> join(
                        p.untagged(RawPeer.SEND & ~RawPeer.MORE, 0, 1, 0, new byte[8]),
                        p.untagged(RawPeer.SEND, 0, 2, 0, new byte[8]))),
        SEND_TOO_LONG(0x1205, (t, p) -> p.untagged(RawPeer.SEND, 0, 1, 0, new byte[65])),
        SEND_PAST_ITS_RECEIVE(
                0x1205,
                (t, p) -> join(
                        p.untagged(RawPeer.SEND & ~RawPeer.MORE, 0, 1, 0, new byte[60]),
                        p.untagged(RawPeer.SEND, 0, 1, 60, new byte[5]))),
        SEND_WITHOUT_RECEIVE(
                0x1202, (t, p) -> join(p.untagged(RawPeer.SEND, 0, 1, 0), p.untagged(RawPeer.SEND, 0, 2, 0))),
        INVALIDATE_UNKNOWN(0x0109, (t, p) -> p.untagged(RawPeer.SEND_INVALIDATE, 0x12345678, 0, 1, 0, new byte[0])),
        INVALIDATE_WHAT_NO_PEER_MAY_USE(
                0x0109, (t, p) -> p.untagged(RawPeer.SEND_INVALIDATE, t.secret.remoteKey(), 0, 1, 0, new byte[0])),
        INVALIDATE_CLOSED(
                0x0109, (t, p) -> p.untagged(RawPeer.SEND_INVALIDATE, t.closed.remoteKey(), 0, 1, 0, new byte[0])),
        INVALIDATE_WHAT_ALL_PEERS_MAY_USE(
                0x0109, (t, p) -> p.untagged(RawPeer.SEND_INVALIDATE, t.table.remoteKey(), 0, 1, 0, new byte[0])),
        INVALIDATE_WHAT_ANOTHER_PEER_MAY_USE(
                0x0109, (t, p) -> p.untagged(RawPeer.SEND_INVALIDATE, t.anothers.remoteKey(), 0, 1, 0, new byte[0])),

        WRITE_UNKNOWN_STAG(0x1100, (t, p) -> p.tagged(RawPeer.WRITE, 0x12345678, t.table.address(), new byte[8])),
        WRITE_STAG_0(0x1100, (t, p) -> p.tagged(RawPeer.WRITE, 0, t.table.address(), new byte[8])),
        WRITE_WRONG_KEY_BYTE(
                0x1100, (t, p) -> p.tagged(RawPeer.WRITE, t.table.remoteKey() ^ 1, t.table.address(), new byte[8])),
        WRITE_CLOSED(0x1100, (t, p) -> p.tagged(RawPeer.WRITE, t.closed.remoteKey(), t.closed.address(), new byte[8])),
        WRITE_WITHOUT_RIGHT(
                0x1100, (t, p) -> p.tagged(RawPeer.WRITE, t.readOnly.remoteKey(), t.readOnly.address(), new byte[8])),
        WRITE_LOCAL_MEMORY(
                0x1100, (t, p) -> p.tagged(RawPeer.WRITE, t.secret.remoteKey(), t.secret.address(), new byte[8])),
        WRITE_WHAT_ANOTHER_PEER_MAY(
                0x1100, (t, p) -> p.tagged(RawPeer.WRITE, t.anothers.remoteKey(), t.anothers.address(), new byte[8])),
        WRITE_BEFORE(
                0x1100, (t, p) -> p.tagged(RawPeer.WRITE, t.table.remoteKey(), t.table.address() - 1, new byte[8])),
        WRITE_BEHIND(
                0x1100,
                (t, p) ->
                        p.tagged(RawPeer.WRITE, t.table.remoteKey(), t.table.address() + TABLE_BYTES - 7, new byte[8])),
        WRITE_FAR_BEHIND(
                0x1100,
                (t, p) -> p.tagged(RawPeer.WRITE, t.table.remoteKey(), t.table.address() + (1L << 40), new byte[8])),
        WRITE_AT_0(0x1100, (t, p) -> p.tagged(RawPeer.WRITE, t.table.remoteKey(), 0, new byte[8])),
        WRITE_WRAPS(0x1103, (t, p) -> p.tagged(RawPeer.WRITE, t.table.remoteKey(), -4, new byte[8])),
        WRITE_WRAPS_AT_THE_END(0x1100, (t, p) -> p.tagged(RawPeer.WRITE, t.table.remoteKey(), -8, new byte[8])),

        READ_UNKNOWN_STAG(0x0100, (t, p) -> p.readRequest(1, 1, 0, 8, 0x12345678, t.table.address())),
        READ_CLOSED(0x0100, (t, p) -> p.readRequest(1, 1, 0, 8, t.closed.remoteKey(), t.closed.address())),
        READ_WITHOUT_RIGHT(0x0100, (t, p) -> p.readRequest(1, 1, 0, 8, t.secret.remoteKey(), t.secret.address())),
        READ_WHAT_ANOTHER_PEER_MAY(
                0x0100, (t, p) -> p.readRequest(1, 1, 0, 8, t.anothers.remoteKey(), t.anothers.address())),
        READ_BEFORE(0x0100, (t, p) -> p.readRequest(1, 1, 0, 8, t.table.remoteKey(), t.table.address() - 1)),
        READ_BEHIND(0x0100, (t, p) -> p.readRequest(1, 1, 0, TABLE_BYTES, t.table.remoteKey(), t.table.address() + 1)),
        READ_OF_4_GIB(0x0101, (t, p) -> p.readRequest(1, 1, 0, -1, t.table.remoteKey(), t.table.address())),
        READ_WRAPS(0x0104, (t, p) -> p.readRequest(1, 1, 0, 16, t.table.remoteKey(), -8)),
        READ_NUMBER_2_FIRST(0x1203, (t, p) -> p.readRequest(2, 1, 0, 8, t.table.remoteKey(), t.table.address())),
        READ_ON_QUEUE_0(0x1201, (t, p) -> p.untagged(RawPeer.READ_REQUEST, 0, 1, 0, new byte[28])),
        READ_WITH_PAYLOAD(0x1205, (t, p) -> p.untagged(RawPeer.READ_REQUEST, 1, 1, 0, new byte[32])),
        READ_TOO_SHORT(0x02ff, (t, p) -> p.untagged(RawPeer.READ_REQUEST, 1, 1, 0, new byte[24])),
        READ_IN_PIECES(0x02ff, (t, p) -> p.untagged(0x0141, 1, 1, 0, new byte[28])),
        READ_FLOOD(0x1202, (t, p) -> {
            byte[][] many = new byte[17][];
            for (int i = 0; i < many.length; i++) {
                many[i] = p.readRequest(1 + i, 1, 0, TABLE_BYTES, t.table.remoteKey(), t.table.address());
            }
            return join(many);
        }),

        RESPONSE_NOBODY_ASKED_FOR(0x0206, (t, p) -> p.tagged(RawPeer.READ_RESPONSE, 1, 0, new byte[8])),
        ATOMIC_RESPONSE_NOBODY_ASKED_FOR(0x0206, (t, p) -> p.untagged(RawPeer.ATOMIC_RESPONSE, 3, 1, 0, new byte[12])),
        ATOMIC_NOT_AGREED_ON(0x0206, (t, p) -> p.atomicRequest(1, 0, t.table.remoteKey(), t.table.address(), 1, 0, 0)),
        IMMEDIATE_NOT_AGREED_ON(0x0206, (t, p) -> p.untagged(RawPeer.IMMEDIATE, 0, 1, 0, new byte[8])),
        TERMINATE_ON_QUEUE_0(0x1201, (t, p) -> p.untagged(RawPeer.TERMINATE, 0, 1, 0, new byte[4])),
        TERMINATE_EMPTY(0x1203, (t, p) -> p.untagged(RawPeer.TERMINATE, 2, 1, 0)),
        TERMINATE_HUGE(0x1203, (t, p) -> p.untagged(RawPeer.TERMINATE, 2, 1, 0, new byte[60_000]));

        final int expected;
        final Bad bad;

        Attack(int expected, Bad bad) {
            this.expected = expected;
            this.bad = bad;
        }
    }

    private static byte[] join(byte[]... parts) {
        return List.of(parts).stream()
                .collect(
                        java.io.ByteArrayOutputStream::new,
                        java.io.ByteArrayOutputStream::writeBytes,
                        (a, b) -> a.writeBytes(b.toByteArray()))
                .toByteArray();
    }

    private static byte[] twice(byte[] bytes) {
        return join(bytes, bytes);
    }

    @ParameterizedTest
    @EnumSource(Attack.class)
    void terminatesWithTheRightCode(Attack attack) throws IOException {
        attack(attack.expected, attack.bad, false, false, false);
    }

    @ParameterizedTest
    @EnumSource(Attack.class)
    void terminatesWithTheRightCodeUnderCrc(Attack attack) throws IOException {
        attack(attack.expected, attack.bad, true, false, false);
    }

    @ParameterizedTest
    @EnumSource(value = Attack.class, names = "READ_FLOOD", mode = EnumSource.Mode.EXCLUDE)
    void terminatesWithTheRightCodeByteByByte(Attack attack) throws IOException {
        attack(attack.expected, attack.bad, false, false, true);
    }

    /** What a peer of this provider may try. */
    enum OwnKindAttack {
        ATOMIC_MISALIGNED(0x0207, (t, p) -> p.atomicRequest(1, 0, t.table.remoteKey(), t.table.address() + 4, 1, 0, 0)),
        ATOMIC_OPERATION_1(0x0206, (t, p) -> p.atomicRequest(1, 1, t.table.remoteKey(), t.table.address(), 1, 0, 0)),
        ATOMIC_OPERATION_15(0x0206, (t, p) -> p.atomicRequest(1, 15, t.table.remoteKey(), t.table.address(), 1, 0, 0)),
        ATOMIC_UNKNOWN_STAG(0x0100, (t, p) -> p.atomicRequest(1, 0, 0x12345678, t.table.address(), 1, 0, 0)),
        ATOMIC_CLOSED(0x0100, (t, p) -> p.atomicRequest(1, 2, t.closed.remoteKey(), t.closed.address(), 1, -1, 0)),
        ATOMIC_WITHOUT_RIGHT(
                0x0100, (t, p) -> p.atomicRequest(1, 0, t.readOnly.remoteKey(), t.readOnly.address(), 1, 0, 0)),
        ATOMIC_ON_WHAT_ANOTHER_PEER_MAY(
                0x0100, (t, p) -> p.atomicRequest(1, 0, t.anothers.remoteKey(), t.anothers.address(), 1, 0, 0)),
        ATOMIC_BEHIND(
                0x0100, (t, p) -> p.atomicRequest(1, 0, t.table.remoteKey(), t.table.address() + TABLE_BYTES, 1, 0, 0)),
        ATOMIC_BEFORE(0x0100, (t, p) -> p.atomicRequest(1, 0, t.table.remoteKey(), t.table.address() - 8, 1, 0, 0)),
        ATOMIC_AT_THE_END_OF_ALL_MEMORY(0x0100, (t, p) -> p.atomicRequest(1, 0, t.table.remoteKey(), -8, 1, 0, 0)),
        ATOMIC_TOO_SHORT(0x02ff, (t, p) -> p.untagged(RawPeer.ATOMIC_REQUEST, 1, 1, 0, new byte[48])),
        ATOMIC_TOO_LONG(0x1205, (t, p) -> p.untagged(RawPeer.ATOMIC_REQUEST, 1, 1, 0, new byte[56])),
        IMMEDIATE_WITHIN_A_SEND(
                0x0206,
                (t, p) -> join(
                        p.untagged(RawPeer.SEND & ~RawPeer.MORE, 0, 1, 0, new byte[8]),
                        p.untagged(RawPeer.IMMEDIATE, 0, 1, 8, new byte[8]))),
        IMMEDIATE_WITHOUT_RECEIVE(
                0x1202,
                (t, p) -> join(
                        p.untagged(RawPeer.IMMEDIATE, 0, 1, 0, new byte[8]),
                        p.untagged(RawPeer.IMMEDIATE, 0, 2, 0, new byte[8]))),
        IMMEDIATE_TWICE_FOR_ONE_SEND(
                0x0206,
                (t, p) -> join(
                        p.untagged(RawPeer.IMMEDIATE, 0, 1, 0, RawPeer.hex("00000001 00000000")),
                        p.untagged(RawPeer.IMMEDIATE, 0, 2, 0, RawPeer.hex("00000001 00000000")))),
        IMMEDIATE_OF_4_BYTES(0x02ff, (t, p) -> p.untagged(RawPeer.IMMEDIATE, 0, 1, 0, new byte[4])),
        IMMEDIATE_OF_12_BYTES(0x1205, (t, p) -> p.untagged(RawPeer.IMMEDIATE, 0, 1, 0, new byte[12]));

        final int expected;
        final Bad bad;

        OwnKindAttack(int expected, Bad bad) {
            this.expected = expected;
            this.bad = bad;
        }
    }

    @ParameterizedTest
    @EnumSource(OwnKindAttack.class)
    void terminatesItsOwnKindWithTheRightCode(OwnKindAttack attack) throws IOException {
        attack(attack.expected, attack.bad, false, true, false);
    }

    private void attack(int expected, Bad bad, boolean crc, boolean ours, boolean dribble) throws IOException {
        try (RawPeer peer = RawPeer.connect(fixture.address)) {
            if (ours) {
                peer.introduceAsOurs(crc);
            } else {
                peer.introduce(crc);
            }
            RecordingEndpointHandler victim = fixture.awaitAccepted();
            victim.awaitConnected();
            victim.receive(7, receives, 0, 64);
            byte[] bytes = bad.bytes(this, peer);
            if (dribble) {
                for (int i = 0; i < Math.min(bytes.length, 200); i++) {
                    peer.send(Arrays.copyOfRange(bytes, i, i + 1));
                }
                peer.send(Arrays.copyOfRange(bytes, Math.min(bytes.length, 200), bytes.length));
            } else {
                peer.send(bytes);
            }
            assertThat(peer.readTerminate()).as("layer, type and code").isEqualTo(expected);
            assertThat(peer.isEnded()).isTrue();
            Throwable cause = victim.awaitDisconnected();
            if (expected == 0x1205 && victim.unclaimedCompletions() > 0 && isSendTooLong(bytes)) {
                assertThat(victim.awaitReceive().status()).isEqualTo(WorkStatus.LOCAL_LENGTH_ERROR);
                assertThat(cause).isInstanceOf(WorkCompletionException.class);
            } else {
                assertThat(cause).isInstanceOf(ConnectionException.class).hasMessageContaining("TERMINATE");
            }
        }
    }

    private static boolean isSendTooLong(byte[] bytes) {
        return (bytes[3] & 0xf) == 3;
    }

    @Test
    void terminatesOnAWrongCrc() throws IOException {
        try (RawPeer peer = RawPeer.connect(fixture.address).introduce(true)) {
            RecordingEndpointHandler victim = fixture.awaitAccepted();
            victim.awaitConnected();
            byte[] write = peer.tagged(RawPeer.WRITE, table.remoteKey(), table.address(), new byte[64]);
            write[30] ^= 1;
            peer.send(write);
            assertThat(peer.readTerminate()).isEqualTo(0x2002);
            assertThat(pages.get(ValueLayout.JAVA_BYTE, TABLE_BYTES))
                    .as("nothing of it was placed")
                    .isEqualTo(GUARD);
            assertThat(victim.awaitDisconnected()).hasMessageContaining("CRC");
        }
    }

    @Test
    void quotesTheRefusedSegmentInATerminate() throws IOException {
        try (RawPeer peer = RawPeer.connect(fixture.address).introduce(false)) {
            peer.send(peer.readRequest(1, 0x11223344, 0x5566778899aabbccL, 8, 0xdeadbe01, 0x0102030405060708L));
            RawPeer.Segment segment = peer.readSegment();
            // Control, no key, queue 2, number 1, offset 0; layer 0, type 1, code 0, all three parts follow; the
            // segment's length, its DDP header and its RDMAP header.
            assertThat(segment.hex())
                    .isEqualTo("4147 00000000 00000002 00000001 00000000 0100 e000 002e".replace(" ", "")
                            + "4141 00000000 00000001 00000001 00000000".replace(" ", "")
                            + "11223344 5566778899aabbcc 00000008 deadbe01 0102030405060708".replace(" ", ""));
        }
    }

    @Test
    void quotesTheRefusedWriteInATerminate() throws IOException {
        try (RawPeer peer = RawPeer.connect(fixture.address).introduce(false)) {
            peer.send(peer.tagged(RawPeer.WRITE, 0xdeadbe01, 0x0102030405060708L, new byte[5]));
            assertThat(peer.readSegment().hex())
                    .isEqualTo("4147 00000000 00000002 00000001 00000000 1100 c000 0013 c140 deadbe01 0102030405060708"
                            .replace(" ", ""));
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 19, 30, 83})
    void givesUpAPeerThatStopsInTheMiddleOfASegment(int bytes) throws IOException {
        try (RawPeer peer = RawPeer.connect(fixture.address).introduce(false)) {
            RecordingEndpointHandler victim = fixture.awaitAccepted();
            victim.awaitConnected();
            peer.send(
                    Arrays.copyOf(peer.tagged(RawPeer.WRITE, table.remoteKey(), table.address(), new byte[64]), bytes));
            assertThat(fixture.awaitGivenUp(victim))
                    .isInstanceOf(ConnectionException.Lost.class)
                    .hasMessageContaining("rest of a message");
            assertThat(peer.isEnded()).isTrue();
        }
    }

    /** One byte in each tick: never silent, never done. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void givesUpAPeerThatDrips(boolean crc) throws IOException {
        try (RawPeer peer = RawPeer.connect(fixture.address).introduce(crc)) {
            RecordingEndpointHandler victim = fixture.awaitAccepted();
            victim.awaitConnected();
            byte[] write = peer.tagged(RawPeer.WRITE, table.remoteKey(), table.address(), new byte[64]);
            int sent = 0;
            while (sent < 40 && !victim.isDisconnected()) {
                peer.send(Arrays.copyOfRange(write, sent, ++sent));
                awaitReceivedBytes(victim, sent);
                fixture.tick();
            }
            assertThat(sent).as("bytes until it was given up").isLessThan(3 * SoftwareIoHandler.TICKS_PER_STALL);
            assertThat(victim.awaitDisconnected())
                    .isInstanceOf(ConnectionException.Lost.class)
                    .hasMessageContaining("slower than");
        }
    }

    private static void awaitReceivedBytes(RecordingEndpointHandler victim, long bytes) {
        Patience.until(
                "what was sent has come",
                () -> victim.isDisconnected()
                        || victim.call(endpoint -> ((SoftEndpoint) endpoint).receivedBytes()) >= bytes);
    }

    @Test
    void givesUpAPeerThatNeverAnswersARead() throws IOException {
        try (RawPeer peer = RawPeer.connect(fixture.address).introduce(false)) {
            RecordingEndpointHandler victim = fixture.awaitAccepted();
            victim.awaitConnected();
            peer.send(peer.tagged(RawPeer.WRITE, 0, 0));
            WorkRequest read = new WorkRequest(1).asRead(5, 0, 0x1000, 0x77);
            read.buffers().add(receives, 0, 64);
            victim.send(read);
            assertThat(fixture.awaitGivenUp(victim))
                    .isInstanceOf(ConnectionException.Lost.class)
                    .hasMessageContaining("response");
            assertThat(victim.awaitSend().status()).isEqualTo(WorkStatus.FLUSHED);
        }
    }

    /** Writes, however many, do not excuse a missing response. */
    @Test
    void givesUpAPeerThatSendsEverythingButTheAnswer() throws IOException {
        try (RawPeer peer = RawPeer.connect(fixture.address).introduce(false)) {
            RecordingEndpointHandler victim = fixture.awaitAccepted();
            victim.awaitConnected();
            byte[] write = peer.tagged(RawPeer.WRITE, table.remoteKey(), table.address(), new byte[64]);
            peer.send(write);
            WorkRequest read = new WorkRequest(1).asRead(5, 0, 0x1000, 0x77);
            read.buffers().add(receives, 0, 64);
            victim.send(read);
            int sent = 1;
            while (sent < 40 && !victim.isDisconnected()) {
                peer.send(write);
                sent++;
                awaitReceivedBytes(victim, (long) sent * write.length);
                fixture.tick();
            }
            assertThat(sent).as("writes until it was given up").isLessThan(3 * SoftwareIoHandler.TICKS_PER_STALL);
            assertThat(victim.awaitDisconnected())
                    .isInstanceOf(ConnectionException.Lost.class)
                    .hasMessageContaining("response");
        }
    }

    @Test
    void givesUpAPeerThatNeverReadsAndHoldsNothingForIt() throws IOException {
        RegisteredMemory large = fixture.region(8L << 20, Access.REMOTE_READ);
        try (RawPeer peer = RawPeer.connect(fixture.address).introduce(false)) {
            RecordingEndpointHandler victim = fixture.awaitAccepted();
            victim.awaitConnected();
            for (int i = 1; i <= 16; i++) {
                peer.send(peer.readRequest(i, 1, 0, 8 << 20, large.remoteKey(), large.address()));
            }
            assertThat(fixture.awaitGivenUp(victim))
                    .isInstanceOf(ConnectionException.Lost.class)
                    .hasMessageContaining("room to send");
        }
    }

    /** Between two messages of the stream there is room for the reason. */
    @Test
    void tellsThePeerThatTheMemoryItReadsIsClosed() throws IOException {
        RegisteredMemory large = fixture.region(32L << 20, Access.REMOTE_READ);
        RegisteredMemory small = fixture.region(64 << 10, Access.REMOTE_READ);
        try (RawPeer peer = RawPeer.connect(fixture.address).introduce(false)) {
            RecordingEndpointHandler victim = fixture.awaitAccepted();
            victim.awaitConnected();
            peer.send(join(
                    peer.readRequest(1, 1, 0, 32 << 20, large.remoteKey(), large.address()),
                    peer.readRequest(2, 1, 0, 64 << 10, small.remoteKey(), small.address())));
            peer.readSegment();
            small.close();
            assertThat(peer.readTerminate()).isEqualTo(0x0100);
            assertThat(peer.isEnded()).isTrue();
            assertThat(victim.awaitDisconnected()).hasMessageContaining("deregistered");
        }
    }

    @Test
    void survivesAPeerThatResetsInTheMiddle() throws IOException {
        for (int i = 0; i < 20; i++) {
            RawPeer peer = RawPeer.connect(fixture.address).introduce(false);
            RecordingEndpointHandler victim = fixture.awaitAccepted();
            victim.awaitConnected();
            victim.receive(1, receives, 0, 64);
            peer.send(Arrays.copyOf(peer.untagged(RawPeer.SEND, 0, 1, 0, new byte[64]), 10 + i));
            peer.socket().setSoLinger(true, 0);
            peer.close();
            assertThat(victim.awaitDisconnected()).isInstanceOf(ConnectionException.Lost.class);
            assertThat(victim.awaitReceive().status()).isEqualTo(WorkStatus.FLUSHED);
        }
    }

    @Test
    void stopsAPeerFromReadingMemoryThatIsClosedMeanwhile() throws IOException {
        RegisteredMemory large = fixture.region(64L << 20, Access.REMOTE_READ);
        try (RawPeer peer = RawPeer.connect(fixture.address).introduce(false)) {
            RecordingEndpointHandler victim = fixture.awaitAccepted();
            victim.awaitConnected();
            peer.send(peer.readRequest(1, 1, 0, 64 << 20, large.remoteKey(), large.address()));
            peer.readSegment();
            large.close();
            Patience.until("the region is gone", () -> victim.isDisconnected() || drained(peer));
            assertThat(victim.awaitDisconnected()).hasMessageContaining("deregistered");
        }
    }

    private static boolean drained(RawPeer peer) {
        try {
            peer.readBytes(64 * 1024);
            return false;
        } catch (IOException e) {
            return true;
        }
    }

    @Test
    void refusesInvalidatedKeys() throws IOException {
        try (RawPeer peer = RawPeer.connect(fixture.address).introduce(false)) {
            RecordingEndpointHandler victim = fixture.awaitAccepted();
            victim.awaitConnected();
            victim.receive(1, receives, 0, 64);
            RegisteredMemory lent = fixture.ownRegion(victim, 64, Access.REMOTE_WRITE);
            peer.send(
                    peer.tagged(RawPeer.WRITE, lent.remoteKey(), lent.address(), new byte[] {1, 2, 3}),
                    peer.untagged(RawPeer.SEND_INVALIDATE, lent.remoteKey(), 0, 1, 0, new byte[0]));
            assertThat(victim.awaitReceive().immediateData()).isEqualTo(lent.remoteKey());
            peer.send(peer.tagged(RawPeer.WRITE, lent.remoteKey(), lent.address(), new byte[] {4, 5, 6}));
            assertThat(peer.readTerminate()).isEqualTo(0x1100);
            assertThat(lent.segment().get(ValueLayout.JAVA_BYTE, 0)).isEqualTo((byte) 1);
        }
    }

    @Test
    void postsNothingTwiceIntoAReceiveQueueThatIsFull() {
        RecordingEndpointHandler client = fixture.connect(EndpointOptions.DEFAULTS.with(o -> {
            o.connectTimeoutMillis = 5_000;
            o.sendDepth = 4;
            o.receiveDepth = 3;
            o.maxSges = 1;
            o.maxInlineBytes = 0;
            o.readDepth = 1;
        }));
        client.awaitConnected();
        ScatterGatherList list = new ScatterGatherList(1).add(receives, 0, 8);
        boolean[] taken = new boolean[4];
        client.run(endpoint -> {
            for (int i = 0; i < taken.length; i++) {
                taken[i] = client.postReceive(endpoint, i, list);
            }
        });
        assertThat(taken).containsExactly(true, true, true, false);
    }
}
