package org.verbena.transport.protocol.connection;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.Framing;
import org.verbena.transport.MemoryDomain.Access;
import org.verbena.transport.MessageTooLargeException;
import org.verbena.transport.ProtocolException;
import org.verbena.transport.RegisteredMemory;
import org.verbena.transport.RegisteredMemoryExhaustedException;
import org.verbena.transport.WorkCompletionException;
import org.verbena.transport.WorkStatus;
import org.verbena.transport.protocol.Frame;
import org.verbena.transport.protocol.MessageOptions;
import org.verbena.transport.protocol.OperationCallback;
import org.verbena.transport.protocol.PrivateData;
import org.verbena.transport.protocol.Role;
import org.verbena.transport.protocol.connection.SimulatedNetwork.Device;
import org.verbena.transport.protocol.memory.HeldByUser;
import org.verbena.transport.protocol.memory.MessageBuffers;
import org.verbena.transport.protocol.sending.SendLedger;
import org.verbena.transport.protocol.wire.Wire;
import org.verbena.transport.spi.ScatterGatherList;
import org.verbena.transport.spi.WorkRequest;

/** What the protocol promises, one fact at a time. The schedule comes from a fixed seed; the random test varies it. */
@Timeout(240)
class MessageConnectionTest extends SimulatedPair {
    @Test
    void messagesFromEmptyToTheLimitArriveWithAndWithoutRendezvous() throws Exception {
        connected();
        for (int length : new int[] {0, 1, 47, 48, 49, 239, 240, 241, 480, 3999, 4000, 4001, 99_999, 100_000}) {
            left.send(length);
            right.sendPooled(length);
        }
        left.connection.flush();
        right.connection.flush();
        settle();
        assertThat(right.received).isEqualTo(left.sent);
        assertThat(left.received).isEqualTo(right.sent);
        assertThat(right.connection.statistics().rendezvousSent()).isEqualTo(3);
        assertThat(left.connection.statistics().rendezvousReceived()).isEqualTo(3);
        end();
    }

    @Test
    void aMessageInSeveralPiecesGoesByRendezvousWithAKeyForEach() throws Exception {
        connect(OPTIONS.withMaxMessageBytes(500_000), OPTIONS.withMaxMessageBytes(500_000));
        settle();
        left.sendSges(List.of(left.sendPool.allocate(8), left.sendPool.allocate(10_000)));
        left.sendSges(List.of(left.sendPool.allocate(8), Unpooled.directBuffer(300_000), left.sendPool.allocate(1)));
        left.connection.flush();
        settle();
        assertThat(right.received).isEqualTo(2);
        assertThat(left.connection.statistics().rendezvousSent()).isEqualTo(2);
        assertThat(left.connection.statistics().registrations()).isEqualTo(5);
        assertThat(left.connection.statistics().copiedBytes()).isZero();
        end();
    }

    @Test
    void piecesThatTheDeviceRefusesGoInFragments() throws Exception {
        connected();
        List<ByteBuf> pieces = List.of(left.sendPool.allocate(8), left.sendPool.allocate(10_000));
        network.left.domain.refuses = true;
        left.sendSges(pieces);
        left.connection.flush();
        settle();
        network.left.domain.refuses = false;
        assertThat(right.received).isEqualTo(1);
        assertThat(left.connection.statistics().rendezvousSent()).isZero();
        end();
    }

    @Test
    void piecesOnTheHeapOrTooManyGoInFragments() throws Exception {
        connect(OPTIONS.withMaxMessageBytes(500_000), OPTIONS.withMaxMessageBytes(500_000));
        settle();
        left.sendSges(List.of(left.sendPool.allocate(8), Unpooled.buffer(300_000)));
        List<ByteBuf> many = new ArrayList<>();
        for (int i = 0; i <= Wire.MAX_PIECES; i++) {
            many.add(left.sendPool.allocate(1000));
        }
        left.sendSges(many);
        left.connection.flush();
        settle();
        assertThat(right.received).isEqualTo(2);
        assertThat(left.connection.statistics().rendezvousSent()).isZero();
        assertThat(left.connection.statistics().registrations()).isZero();
        end();
    }

    @Test
    void copiesNothingFromRegisteredMemory() throws Exception {
        packs = false; // short messages that share a frame are copied
        connected();
        for (int length : new int[] {1, 200, 3000, 50_000}) {
            left.sendPooled(length);
        }
        left.connection.flush();
        settle();
        assertThat(right.received).isEqualTo(4);
        assertThat(left.connection.statistics().copiedBytes()).isZero();
        int number = left.sent++;
        left.sizes.add(1000);
        ByteBuf foreign = Unpooled.buffer(1000);
        for (int i = 0; i < 1000; i++) {
            foreign.writeByte(Party.pattern(number, i));
        }
        left.connection.send(foreign, (context, cause) -> left.told++, null);
        left.connection.flush();
        settle();
        assertThat(right.received).isEqualTo(5);
        assertThat(left.connection.statistics().copiedBytes()).isEqualTo(1000);
        end();
    }

    @Test
    void keepsPooledMemoryOpenWhileWorkIsOutstanding() throws Exception {
        connected();
        int before = network.left.worksToHold + network.right.worksToHold;
        for (int length : new int[] {0, 1, 200, 3000, 50_000}) {
            left.sendPooled(length);
            right.send(length);
        }
        left.connection.flush();
        right.connection.flush();
        do {
            left.trimPools();
            right.trimPools();
        } while (network.step());
        assertThat(right.received).isEqualTo(left.sent);
        assertThat(left.received).isEqualTo(right.sent);
        // No reference is counted in its regions, which all loops share.
        assertThat(network.left.worksToHold + network.right.worksToHold).isEqualTo(before);
        end();
    }

    @Test
    void anInboundMessageIsTheReceiveBufferItself() throws Exception {
        connected();
        right.keepMessages = true;
        left.sendPooled(100);
        left.connection.flush();
        settle();
        ByteBuf message = right.kept.element();
        assertThat(message.capacity()).isEqualTo(256);
        assertThat(message.readerIndex()).isEqualTo(Wire.HEADER_BYTES);
        assertThat(message.refCnt()).isEqualTo(1);
        end();
    }

    /**
     * Both ends with the default receive depth, and so many bytes of 2 KiB each for the right one's: it begins with 64
     * receives and may keep 128.
     */
    private void connectedByDefault(long receivePoolBytes) {
        Device device = new Device(false, 256, 256, 4, 4, 64, 4, 0);
        network = new SimulatedNetwork(new Random(1), device, device);
        MessageOptions options = OPTIONS.withReceives(MessageOptions.DEVICE_DEFAULT, 2048);
        connect(options, options, receivePoolBytes);
        settle();
        assertThat(left.connection.creditsAvailable()).isEqualTo(62);
    }

    @Test
    void theLedgerGrowsWithTheWorkRequests() throws Exception {
        packs = false; // each message needs a grant and a slot
        connectedByDefault(4 << 20);
        assertThat(left.sendPool.metrics().usedBytes()).isEqualTo(8 * SendLedger.SLOT_BYTES);
        for (int i = 0; i < 300; i++) {
            left.sendHeap(1 + i % 90); // with a copy and without one
        }
        left.connection.flush();
        assertThat(network.left.freeSendSlots()).isLessThan(256 - 32);
        settle();
        assertThat(right.received).isEqualTo(300);
        assertThat(left.sendPool.metrics().usedBytes()).isEqualTo(256 * SendLedger.SLOT_BYTES);
        end();
    }

    private void sendAndSettle(int messages) {
        for (int i = 0; i < messages; i++) {
            left.sendPooled(10);
        }
        left.connection.flush();
        settle();
        assertThat(right.received).isEqualTo(left.sent);
    }

    @Test
    void aPeerThatHadToWaitIsGrantedMore() throws Exception {
        packs = false; // each message needs a grant and a slot
        connectedByDefault(4 << 20);
        List<Frame> waited = new ArrayList<>();
        left.onFrameSent(frame -> {
            if (frame.detail().contains("waited for grants")) {
                waited.add(frame);
            }
        });
        sendAndSettle(62);
        assertThat(left.connection.creditsAvailable()).isLessThanOrEqualTo(62);
        assertThat(waited).isEmpty();
        sendAndSettle(200);
        assertThat(waited).isNotEmpty();
        sendAndSettle(200);
        int window = (int) right.connection.statistics().creditsGranted();
        assertThat(window).isBetween(126 - 15, 126);
        // More than half of it: less would have been worth a frame.
        assertThat(left.connection.creditsAvailable()).isBetween(window / 2 + 1, 126);
        end();
    }

    @Test
    void aPeerThatHadToWaitIsGrantedNoMoreWhenMemoryIsScarce() throws Exception {
        packs = false; // each message needs a grant and a slot
        connectedByDefault(384 << 10);
        sendAndSettle(200);
        sendAndSettle(200);
        assertThat(right.connection.statistics().creditsGranted()).isBetween(1L, 62L);
        end();
    }

    @Test
    void aPeerThatHadToWaitForTheReaderIsGrantedNoMore() throws Exception {
        packs = false; // each message needs a grant and a slot
        connectedByDefault(4 << 20);
        right.setReading(false);
        for (int i = 0; i < 62 + 5; i++) {
            left.sendPooled(10);
        }
        left.connection.flush();
        settle();
        assertThat(left.connection.creditsAvailable()).isZero();
        right.connection.ping(4711); // a frame that the left end answers, and so reports that it waits
        settle();
        assertThat(right.connection.statistics().creditsGranted()).isZero();
        right.setReading(true);
        settle();
        assertThat(right.received).isEqualTo(67);
        end();
    }

    @Test
    void aDefaultLimitOfRendezvousFollowsFromThePeersReceives() throws Exception {
        MessageOptions byDefault = OPTIONS.withRendezvousThresholdBytes(MessageOptions.DEVICE_DEFAULT);
        connect(byDefault.withReceives(8, 4096), byDefault.withReceives(8, 256));
        settle();
        for (Party party : new Party[] {left, right}) {
            party.sendPooled(2560);
            party.sendPooled(2561);
            party.connection.flush();
        }
        settle();
        assertThat(left.connection.statistics().rendezvousSent()).isEqualTo(1);
        assertThat(right.connection.statistics().rendezvousSent()).isZero();
        end();
    }

    @Test
    void controlPassesAFullSendQueue() throws Exception {
        packs = false; // each message needs a grant and a slot
        connect(OPTIONS.withReceives(64, 256), OPTIONS.withReceives(64, 256));
        settle();
        for (int i = 0; i < 40; i++) {
            left.sendPooled(10);
        }
        left.connection.flush();
        assertThat(left.connection.isWritable()).isFalse();
        assertThat(left.connection.statistics().slotStalls()).isEqualTo(1);
        long before = left.connection.statistics().controlFramesSent();
        left.connection.ping(4711);
        assertThat(left.connection.statistics().controlFramesSent()).isEqualTo(before + 1);
        settle();
        assertThat(left.pongs).isEqualTo(1);
        assertThat(right.received).isEqualTo(40);
        end();
    }

    @Test
    void manyMessagesGoWithOneFlush() throws Exception {
        packs = false; // each message needs a grant and a slot
        connected();
        int before = network.left.flushes;
        for (int i = 0; i < 5; i++) {
            left.sendPooled(10);
        }
        left.connection.flush();
        assertThat(network.left.flushes).isEqualTo(before + 1);
        settle();
        end();
    }

    @Test
    void aReaderThatStopsStopsTheSender() throws Exception {
        packs = false; // each message needs a grant and a slot
        connected();
        right.setReading(false);
        for (int i = 0; i < 1000; i++) {
            left.sendPooled(10);
        }
        left.connection.flush();
        settle();
        assertThat(left.connection.isWritable()).isFalse();
        assertThat(left.lastWritable).isFalse();
        assertThat(left.told).as("one window is on its way").isEqualTo(6);
        assertThat(right.received).isZero();
        assertThat(left.connection.statistics().creditStalls()).isPositive();
        // Control frames pass all the same.
        assertThat(left.connection.ping(4711)).isTrue();
        assertThat(left.connection.ping(4712)).as("one ping at a time").isFalse();
        settle();
        assertThat(left.pongs).isEqualTo(1);
        right.setReading(true);
        settle();
        assertThat(right.received).isEqualTo(1000);
        assertThat(left.lastWritable).isTrue();
        end();
    }

    @Test
    void whatCameBeforeThePeerClosedCanStillBeRead() throws Exception {
        connected();
        right.setReading(false);
        left.sendPooled(10);
        left.sendPooled(3000);
        left.connection.close();
        settle();
        assertThat(left.told).isEqualTo(1);
        right.setReading(true);
        settle();
        assertThat(right.received).isEqualTo(2);
        assertThat(left.inactive).isEqualTo(1);
        assertThat(left.inactiveCause).isNull();
        assertThat(right.inactive).isEqualTo(1);
        assertThat(right.inactiveCause).isNull();
        left.checkMemory();
        right.checkMemory();
    }

    @Test
    void aDisconnectedEndLingersUntilItHasRead() throws Exception {
        connected();
        right.setReading(false);
        left.sendPooled(10);
        left.connection.close();
        settle();
        assertThat(left.inactive).isEqualTo(1);
        assertThat(right.inactive).as("a message waits").isZero();
        List<@Nullable Throwable> refusals = new ArrayList<>();
        right.connection.send(Unpooled.buffer(1).writeByte(1), (context, cause) -> refusals.add(cause), null);
        assertThat(refusals).hasSize(1).doesNotContainNull();
        right.setReading(true);
        assertThat(right.received).isEqualTo(1);
        assertThat(right.inactive).isEqualTo(1);
        left.checkMemory();
        right.checkMemory();
    }

    @Test
    void messagesOverThePeersLimitFailAloneBeforeAByteMoves() throws Exception {
        connect(OPTIONS, OPTIONS.withMaxMessageBytes(500));
        List<@Nullable Throwable> outcomes = new ArrayList<>();
        OperationCallback callback = (context, cause) -> outcomes.add(cause);
        left.connection.send(Unpooled.buffer().writeZero(501), callback, null);
        settle();
        long before = network.left.payloadBytesSent;
        left.connection.send(Unpooled.buffer().writeZero(5000), callback, null);
        left.connection.flush();
        settle();
        assertThat(network.left.payloadBytesSent).isEqualTo(before);
        assertThat(outcomes)
                .hasSize(2)
                .allSatisfy(cause -> assertThat(cause)
                        .isInstanceOf(MessageTooLargeException.class)
                        .hasMessageContaining("500")
                        .hasMessageContaining("MAX_MESSAGE_BYTES"));
        left.sendPooled(500);
        left.connection.flush();
        settle();
        assertThat(right.received).isEqualTo(1);
        end();
    }

    /** Memory of the right end that the left one may read, and memory to read it into. */
    private final class Readable implements AutoCloseable {
        private final Arena arena = Arena.ofShared();
        private final Set<Access> all = Set.of(Access.LOCAL_WRITE, Access.REMOTE_READ, Access.REMOTE_WRITE);
        private final RegisteredMemory there = register(right);
        private final RegisteredMemory here = register(left);

        private RegisteredMemory register(Party party) {
            MemorySegment segment = arena.allocate(64, 8);
            return party.endpoint.domain.register(segment, all);
        }

        void read(int offset, OperationCallback callback) {
            ScatterGatherList into = new ScatterGatherList(1).add(here, offset, 8);
            left.connection.oneSided().read(there.address() + offset, there.remoteKey(), into, null, callback, null);
            left.connection.flush();
        }

        @Override
        public void close() {
            there.close();
            here.close();
            arena.close();
        }
    }

    @Test
    void everyOutcomeIsReportedThoughACallbackSendsWhileTheConnectionEnds() throws Exception {
        packs = false; // each message needs a grant and a slot
        for (boolean closes : new boolean[] {false, true}) {
            network = new SimulatedNetwork(new Random(1), Device.VERBS, Device.VERBS);
            connected();
            right.setReading(false);
            List<String> told = new ArrayList<>();
            try (Readable readable = new Readable()) {
                readable.read(0, (context, cause) -> {
                    told.add("R0");
                    left.connection.send(Unpooled.buffer(1).writeByte(1), (c, e) -> told.add("S"), null);
                    if (closes) {
                        left.connection.close();
                        left.connection.abort(null);
                    }
                });
                for (int i = 0; i < 20; i++) {
                    left.sendPooled(8); // the window is 6: the rest waits
                }
                left.connection.flush();
                readable.read(8, (context, cause) -> told.add("R1"));
                network.left.loseConnection(new ConnectionException.Lost("pulled out"));
                settle();
                assertThat(told).containsExactlyInAnyOrder("R0", "R1", "S");
                assertThat(left.told).isEqualTo(20);
                assertThat(left.inactive).isEqualTo(1);
            }
            left.checkMemory();
            right.checkMemory();
        }
    }

    @Test
    void retryingARefusedOperationFromItsCallbackDoesNotRecurse() throws Exception {
        connected();
        left.connection.close();
        settle();
        int[] asked = {0};
        try (Readable readable = new Readable()) {
            readable.read(0, new OperationCallback() {
                @Override
                public void onComplete(@Nullable Object context, @Nullable Throwable cause) {
                    assertThat(cause).isNotNull();
                    if (++asked[0] < 100_000) {
                        readable.read(0, this);
                    }
                }
            });
        }
        assertThat(asked[0]).isEqualTo(100_000);
        left.checkMemory();
        right.checkMemory();
    }

    @Test
    void anErrorInACallbackSuppressesNoOtherOutcome() throws Exception {
        packs = false; // each message needs a grant and a slot
        connected();
        right.setReading(false);
        Error bug = new AssertionError("a bug of the user's");
        List<String> told = new ArrayList<>();
        try (Readable readable = new Readable()) {
            readable.read(0, (context, cause) -> {
                told.add("R0");
                throw bug;
            });
            for (int i = 0; i < 20; i++) {
                left.sendPooled(8);
            }
            left.connection.flush();
            readable.read(8, (context, cause) -> told.add("R1"));
            network.left.loseConnection(new ConnectionException.Lost("pulled out"));
            assertThat(catchThrowable(this::settle)).isSameAs(bug);
            settle();
        }
        assertThat(told).containsExactly("R0", "R1");
        assertThat(left.told).isEqualTo(20);
        assertThat(left.inactive).isEqualTo(1);
        left.checkMemory();
        right.checkMemory();
    }

    @Test
    void aFrameListenerThatThrowsLeaksNothing() throws Exception {
        for (boolean sent : new boolean[] {false, true}) {
            network = new SimulatedNetwork(new Random(1), Device.VERBS, Device.VERBS);
            connected();
            RuntimeException bug = new IllegalStateException("a bug of the listener's");
            (sent ? left : right).connection.setFrameListener(new Frame.Listener() {
                @Override
                public void onFrameSent(Frame frame) {
                    if (sent) {
                        throw bug;
                    }
                }

                @Override
                public void onFrameReceived(Frame frame) {
                    throw bug;
                }
            });
            left.sendPooled(10);
            left.connection.flush();
            settle();
            assertThat((sent ? left : right).inactiveCause).isSameAs(bug);
            assertThat(left.told).isEqualTo(1);
            left.checkMemory();
            right.checkMemory();
        }
    }

    @Test
    void helloIsSentAgainIfItWasRefused() throws Exception {
        network.left.refusals = 1;
        connect(OPTIONS, OPTIONS);
        settle();
        left.connection.flush();
        settle();
        assertThat(left.active).isEqualTo(1);
        end();
    }

    @Test
    void aPeerThatFallsSilentIsGivenUpWithinAMinute() throws Exception {
        Rogue rogue = rogue(OPTIONS, frames -> {});
        settle();
        pass(5_000);
        rogue.type(Wire.STATE, 0, 0);
        settle();
        pass(39_999);
        assertThat(left.inactive).isZero();
        pass(1);
        assertThat(left.inactiveCause)
                .isInstanceOf(ConnectionException.TimedOut.class)
                .hasMessageContaining("silent for 40000 ms");
        left.checkMemory();
    }

    @Test
    void idlePeersKeepTheirConnection() throws Exception {
        connected();
        pass(TimeUnit.HOURS.toMillis(1));
        assertThat(left.inactive + right.inactive).isZero();
        long frames = left.connection.statistics().framesSent()
                + right.connection.statistics().framesSent();
        // Once in 20 s one asks and the other answers, or both do, and the receives that it took are granted again.
        assertThat(frames).isBetween(2 * 179L, 2 * 4 * 180L);
        end();
    }

    @Test
    void anIdleConnectionWithoutKeepaliveHasNoDeadline() throws Exception {
        connect(OPTIONS.withKeepAliveMillis(0), OPTIONS.withKeepAliveMillis(0));
        settle();
        left.sendPooled(10);
        left.connection.flush();
        settle();
        pass(20_000);
        assertThat(left.connection.nextDeadlineNanos()).isEqualTo(MessageConnection.NO_DEADLINE);
        assertThat(right.connection.nextDeadlineNanos()).isEqualTo(MessageConnection.NO_DEADLINE);
        assertThat(left.deadlineNanos).isEqualTo(MessageConnection.NO_DEADLINE);
        end();
    }

    @Test
    void callsFromTheDeadlineCallbackTakeEffect() {
        Rogue rogue = rogue(OPTIONS.withKeepAliveMillis(0), Rogue::acknowledge);
        settle();
        pass(20_000); // nothing is due any more
        left.onDeadline = () -> {
            left.sendPooled(10);
            left.connection.flush();
        };
        rogue.type(Wire.MESSAGE, 1000, 240); // from now on the rest is awaited
        settle();
        assertThat(left.sent).isEqualTo(1);
        assertThat(rogue.typesHeard).contains(Wire.MESSAGE);
    }

    @Test
    void piecesThatSumToTwoGibibytesDoNotOverflow() throws Exception {
        connected();
        List<Integer> flags = new ArrayList<>();
        network.left.onPost = request -> flags.add(request.flags());
        network.left.refusals = Integer.MAX_VALUE;
        Path sparse = Files.createTempFile("verbena", ".sparse");
        try (FileChannel file = FileChannel.open(sparse, StandardOpenOption.READ, StandardOpenOption.WRITE);
                Arena arena = Arena.ofShared()) {
            MemorySegment segment = file.map(FileChannel.MapMode.READ_WRITE, 0, 1L << 30, arena);
            RegisteredMemory region = left.endpoint.domain.register(segment, Set.of(Access.LOCAL_WRITE));
            ScatterGatherList from =
                    new ScatterGatherList(2).add(region, 0, 1 << 30).add(region, 0, 1 << 30);
            left.connection.oneSided().write(0, 1, from, null, (context, cause) -> left.failures.add(cause), null);
            left.connection.flush();
            assertThat(flags).containsOnly(0);
            left.connection.abort(null);
            settle();
            assertThat(left.failures).hasSize(1);
            region.close();
            left.checkMemory();
            right.checkMemory();
        } finally {
            Files.delete(sparse);
        }
    }

    @Test
    void aClosingConnectionReportsItsDeadlineAtOnce() {
        Rogue rogue = rogue(OPTIONS.withKeepAliveMillis(0), Rogue::acknowledge);
        settle();
        pass(20_000);
        left.connection.close();
        assertThat(left.deadlineNanos).isEqualTo(network.nowNanos + TimeUnit.SECONDS.toNanos(10));
        settle();
        assertThat(rogue.typesHeard).contains(Wire.CLOSE);
    }

    @Test
    void aMessageLargerThanThePoolFailsAtItsSender() throws Exception {
        MessageOptions options = MessageOptions.DEFAULTS
                .withReceives(8, 4096)
                .withMaxMessageBytes(1 << 20)
                .withRendezvousThresholdBytes(Integer.MAX_VALUE);
        connect(options, options, 256 << 10);
        settle();
        left.connection.send(
                Unpooled.wrappedBuffer(new byte[400_000]), (context, cause) -> left.failures.add(cause), null);
        left.connection.flush();
        settle();
        assertThat(left.failures).hasSize(1);
        assertThat(left.failures.get(0))
                .isInstanceOf(MessageTooLargeException.class)
                .hasMessageContaining("limit of " + (192 << 10))
                .hasMessageContaining("receive buffers");
        left.failures.clear();
        left.sendPooled(192 << 10);
        left.connection.flush();
        settle();
        assertThat(right.received).isEqualTo(1);
        end();
    }

    @Test
    void releasedMemoryIsUsedAtOnce() throws Exception {
        MessageOptions options = MessageOptions.DEFAULTS.withReceives(8, 16 << 10);
        connect(options, options, 256 << 10);
        settle();
        right.keepMessages = true;
        for (int i = 0; i < 100; i++) {
            left.sendPooled(10_000);
        }
        left.connection.flush();
        settle();
        int kept = right.kept.size();
        assertThat(kept).isBetween(1, 16);
        for (int round = 0; round < 20 && right.received < 100; round++) {
            right.releaseKept(1000);
            settle(); // no time passes
            assertThat(right.kept).as("round %d", round).isNotEmpty();
        }
        assertThat(right.received).isEqualTo(100);
        end();
    }

    @Test
    void aUserThatKeepsMessagesStopsOnlyItsPeer() throws Exception {
        connected(); // 8 receives of 256 bytes
        right.keepMessages = true;
        for (int i = 0; i < 1000; i++) {
            left.sendPooled(200);
        }
        left.connection.flush();
        settle();
        assertThat(right.kept).hasSizeBetween(8, 16);
        assertThat(right.receivePool.metrics().usedBytes()).isLessThanOrEqualTo(2 * 8 * 256);
        assertThat(left.connection.isWritable()).isFalse();
        assertThat(left.connection.ping(4711)).isTrue();
        settle();
        assertThat(left.pongs).as("control passes all the same").isEqualTo(1);
        right.keepMessages = false;
        right.releaseKept(1000);
        settle();
        assertThat(right.received).isEqualTo(1000);
        end();
    }

    @Test
    void smallMessagesThatTheUserKeepsDoNotHoldReceives() throws Exception {
        MessageOptions options = MessageOptions.DEFAULTS.withReceives(8, 16 << 10);
        connect(options, options, 4 << 20);
        settle();
        right.keepMessages = true;
        for (int i = 0; i < 2000; i++) {
            left.sendPooled(64);
        }
        left.connection.flush();
        settle();
        assertThat(right.received).isEqualTo(2000);
        assertThat(right.receivePool.metrics().usedBytes()).isLessThanOrEqualTo(2000 * 64 + 2 * 8 * (16 << 10));
        end();
    }

    @Test
    void aPeerCostsOneReceiveBeforeHello() throws Exception {
        MessageOptions options = MessageOptions.DEFAULTS.withReceives(MessageOptions.DEVICE_DEFAULT, 16 << 10);
        Device device = new Device(false, 256, 256, 4, 4, 64, 4, 0);
        network = new SimulatedNetwork(new Random(1), device, device);
        connect(options, options);
        assertThat(right.receivePool.metrics().usedBytes()).isEqualTo(16 << 10);
        settle();
        assertThat(right.receivePool.metrics().usedBytes()).isEqualTo(64 * (16 << 10));
        end();
    }

    @Test
    void aPeerThatStopsWithinAMessageIsCutOffOnlyWhileOthersWaitForItsMemory() throws Exception {
        Rogue rogue = rogue(OPTIONS.withKeepAliveMillis(0), Rogue::acknowledge);
        settle();
        rogue.type(Wire.MESSAGE, 1000, 240);
        settle();
        pass(60_000);
        assertThat(left.inactive).as("nobody waits").isZero();
        MessageBuffers.Waiter other = () -> {};
        HeldByUser account = new HeldByUser(() -> {});
        assertThat(left.buffers.tryAllocateMessage((int) Party.POOL_BYTES, other, account))
                .isNull();
        pass(21_000);
        assertThat(left.inactiveCause)
                .isInstanceOf(ConnectionException.TimedOut.class)
                .hasMessageContaining("760 bytes before its end");
        left.buffers.forgetMessage(other);
        left.checkMemory();
    }

    @Test
    void largeMessagesOfManyPeersTakeTurns() throws Exception {
        // 8 peers at once, each with messages of more than half of the pool, in fragments or by rendezvous.
        for (int threshold : new int[] {Integer.MAX_VALUE, 10_000}) {
            MessageOptions options = MessageOptions.DEFAULTS
                    .withReceives(8, 1024)
                    .withMaxMessageBytes(1 << 20)
                    .withRendezvousThresholdBytes(threshold);
            Crowd crowd = new Crowd(new Random(3), Device.VERBS, Device.VERBS, options, 16 << 20, 512 << 10);
            for (int i = 0; i < 8; i++) {
                crowd.add();
            }
            crowd.settle();
            for (Party l : crowd.lefts) {
                for (int i = 0; i < 3; i++) {
                    l.sendPooled(320_000);
                }
                l.connection.flush();
            }
            crowd.settle();
            for (Party r : crowd.rights) {
                assertThat(r.received).as("%s", r).isEqualTo(3);
            }
            crowd.close();
        }
    }

    @Test
    void everythingPendingFailsWithTheFirstCause() throws Exception {
        connected();
        for (int i = 0; i < 20; i++) {
            left.sendPooled(10);
        }
        network.left.failNextSend = WorkStatus.TRANSPORT_RETRY_EXCEEDED;
        left.connection.flush();
        settle();
        assertThat(left.told).isEqualTo(20);
        assertThat(left.inactiveCause)
                .isInstanceOf(WorkCompletionException.class)
                .hasMessageContaining("10 bytes");
        assertThat(left.failures).hasSize(20).containsOnly(left.inactiveCause);
        assertThat(right.inactiveCause)
                .isInstanceOf(ConnectionException.Lost.class)
                .hasMessageContaining("without sending CLOSE");
        left.checkMemory();
        right.checkMemory();
    }

    @Test
    void theDevicesReportIsTheCauseRatherThanItsConsequence() throws Exception {
        connected();
        for (int i = 0; i < 20; i++) {
            left.sendPooled(10);
        }
        network.left.failNextSend = WorkStatus.TRANSPORT_RETRY_EXCEEDED;
        network.left.explanation = new ConnectionException.Lost(
                "port 1 is down", new WorkCompletionException("a send", WorkStatus.TRANSPORT_RETRY_EXCEEDED, 0));
        left.connection.flush();
        settle();
        assertThat(left.told).isEqualTo(20);
        assertThat(left.inactiveCause).isSameAs(network.left.explanation);
        assertThat(left.failures).hasSize(20).containsOnly(left.inactiveCause);
        left.checkMemory();
        right.checkMemory();
    }

    @Test
    void aCallbackThatThrowsEndsTheConnectionWithItAsTheCause() throws Exception {
        connected();
        RuntimeException bug = new IllegalStateException("a bug of the user's");
        left.sent++;
        left.sizes.add(0);
        left.connection.send(
                Unpooled.EMPTY_BUFFER,
                (context, cause) -> {
                    left.told++;
                    throw bug;
                },
                null);
        left.connection.flush();
        settle();
        assertThat(left.inactiveCause).isSameAs(bug);
        left.checkMemory();
        right.checkMemory();
    }

    @Test
    void strangersAreRejectedWithAReason() {
        MessageOptions rawOptions = OPTIONS.withFraming(Framing.RAW);
        assertThat(PrivateData.rejection(OPTIONS, PrivateData.of(OPTIONS))).isNull();
        assertThat(PrivateData.rejection(rawOptions, new byte[0])).isNull();
        assertThat(PrivateData.rejection(rawOptions, new byte[56])).isNull();
        for (byte[] strange : new byte[][] {{}, new byte[56], "GET / HTTP/1.1".getBytes()}) {
            byte[] rejection = PrivateData.rejection(OPTIONS, strange);
            assertThat(rejection).isNotNull().hasSizeLessThanOrEqualTo(56);
            assertThat(PrivateData.reason(rejection)).contains("framing MESSAGE");
        }
        byte[] toRaw = PrivateData.rejection(rawOptions, PrivateData.of(OPTIONS));
        assertThat(PrivateData.reason(toRaw)).contains("RAW");
        byte[] newer = PrivateData.of(OPTIONS);
        newer[4] = 2;
        newer[5] = 3;
        assertThat(PrivateData.reason(PrivateData.rejection(OPTIONS, newer))).contains("2-3");
        assertThat(PrivateData.reason(new byte[20])).isNull();
    }

    @Test
    void anAcceptorThatIsNotOursIsCutOff() throws Exception {
        left = Party.of("left", Role.INITIATOR, network.left, OPTIONS);
        right = Party.of("right", Role.ACCEPTOR, network.right, OPTIONS.withFraming(Framing.RAW));
        left.other = right;
        right.other = left;
        network.connect(left.connection, PrivateData.of(OPTIONS), right.connection, new byte[0]);
        settle();
        assertThat(left.inactiveCause).isInstanceOf(ProtocolException.class).hasMessageContaining("RAW");
        left.checkMemory();
        right.checkMemory();
    }

    @Test
    void aPeerThatSendsNothingIsGivenUp() throws Exception {
        Rogue rogue = rogue(OPTIONS, frames -> {});
        rogue.helloAck = null;
        settle();
        pass(9_999);
        assertThat(left.inactive).isZero();
        pass(1);
        assertThat(left.inactiveCause)
                .isInstanceOf(ConnectionException.TimedOut.class)
                .hasMessageContaining("HELLO");
        assertThat(rogue.endpoint).isNotNull();
        left.checkMemory();
    }

    @Test
    void aPeerThatAnswersNoPingIsGivenUp() throws Exception {
        Rogue rogue = rogue(OPTIONS.withKeepAliveMillis(1000), frames -> {});
        settle();
        assertThat(left.active).isEqualTo(1);
        pass(1);
        rogue.type(Wire.STATE, 0, 0);
        settle();
        pass(999);
        assertThat(rogue.typesHeard).doesNotContain(Wire.PING);
        pass(1);
        assertThat(rogue.typesHeard).contains(Wire.PING);
        pass(999);
        assertThat(left.inactive).isZero();
        pass(1);
        assertThat(left.inactiveCause)
                .isInstanceOf(ConnectionException.TimedOut.class)
                .hasMessageContaining("did not answer a keepalive");
        left.checkMemory();
    }

    /** A collection of garbage, or a machine that is moved: nothing was asked of the peer meanwhile. */
    @Test
    void aPeerIsNotGivenUpForThePauseOfThisEnd() throws Exception {
        Rogue rogue = rogue(OPTIONS.withKeepAliveMillis(1000), frames -> {});
        settle();
        rogue.type(Wire.STATE, 0, 0);
        settle();
        network.nowNanos += TimeUnit.SECONDS.toNanos(5);
        left.tick();
        settle();
        assertThat(left.inactive).isZero();
        assertThat(rogue.typesHeard).contains(Wire.PING);
        pass(999);
        assertThat(left.inactive).as("it has the whole time for its answer").isZero();
        pass(1);
        assertThat(left.inactiveCause)
                .isInstanceOf(ConnectionException.TimedOut.class)
                .hasMessageContaining("did not answer a keepalive");
        left.checkMemory();
    }

    @Test
    void aPeerHasTheWholeTimeToAnswerAProgramsPing() throws Exception {
        Rogue rogue = rogue(OPTIONS.withKeepAliveMillis(1000), frames -> {});
        settle();
        rogue.type(Wire.STATE, 0, 0);
        settle();
        network.nowNanos += TimeUnit.SECONDS.toNanos(5);
        assertThat(left.connection.ping(4711)).isTrue();
        left.tick();
        settle();
        pass(999);
        assertThat(left.inactive).isZero();
        pass(1);
        assertThat(left.inactiveCause).isInstanceOf(ConnectionException.TimedOut.class);
        left.checkMemory();
    }

    @Test
    void aPeerThatDoesNotAnswerCloseIsGivenUp() throws Exception {
        Rogue rogue = rogue(OPTIONS, Rogue::acknowledge);
        settle();
        left.connection.close();
        settle();
        assertThat(rogue.typesHeard).contains(Wire.CLOSE);
        pass(9_999);
        assertThat(left.inactive).isZero();
        pass(1);
        assertThat(left.inactiveCause)
                .isInstanceOf(ConnectionException.TimedOut.class)
                .hasMessageContaining("CLOSE");
        left.checkMemory();
    }

    @Test
    void aPeerThatIgnoresCreditsIsCutOff() throws Exception {
        cutOff("granted 6", rogue -> {
            left.setReading(false);
            for (int i = 0; i < 7; i++) {
                rogue.type(Wire.MESSAGE, 0, 0);
            }
        });
    }

    @Test
    void cutsOffAPeerThatAdvertisesInvalidMemory() throws Exception {
        cutOff("advertised", rogue -> rogue.type(Wire.RENDEZVOUS, 5000, 0));
        cutOff("another sum", rogue -> rogue.advertise(5000, 4999));
        cutOff("another sum", rogue -> rogue.advertise(5000, -1));
        cutOff("over the limit", rogue -> rogue.advertise(100_001, 100_001));
        cutOff("more messages than it may", rogue -> {
            left.setReading(false);
            for (int i = 0; i < 3; i++) {
                rogue.advertise(5000, 5000);
            }
        });
    }

    @Test
    void cutsOffAPeerThatSendsInvalidFrames() throws Exception {
        cutOff("type 77", rogue -> rogue.type(77, 0, 0));
        cutOff("HELLO", rogue -> rogue.type(Wire.HELLO, 0, 40));
        cutOff("header has 16", rogue -> rogue.bytes(15));
        cutOff("over the limit of 100000", rogue -> rogue.type(Wire.MESSAGE, 100_001, 240));
        cutOff("10 bytes of 9", rogue -> rogue.type(Wire.MESSAGE, 9, 10));
        cutOff("of 4294967295", rogue -> rogue.type(Wire.MESSAGE, -1, 240));
        cutOff("fragment of 10 bytes", rogue -> rogue.type(Wire.MESSAGE, 1000, 10));
        cutOff("continues", rogue -> rogue.type(Wire.CONTINUATION, 10, 10));
        cutOff("within another", rogue -> {
            rogue.type(Wire.MESSAGE, 1000, 240);
            rogue.type(Wire.MESSAGE, 0, 0);
        });
        cutOff("continues", rogue -> {
            rogue.type(Wire.MESSAGE, 1000, 240);
            rogue.type(Wire.CONTINUATION, 750, 240);
        });
        cutOff("CLOSE within", rogue -> {
            rogue.type(Wire.MESSAGE, 1000, 240);
            rogue.type(Wire.CLOSE, 0, 0);
        });
        cutOff("after CLOSE", rogue -> {
            rogue.type(Wire.CLOSE, 0, 0);
            rogue.type(Wire.MESSAGE, 0, 0);
        });
        cutOff("ping that was not sent", rogue -> rogue.type(Wire.PONG, 0, 8));
        cutOff("PING of 16", rogue -> rogue.type(Wire.PING, 0, 0));
        cutOff("was not asked for", rogue -> rogue.type(Wire.RETURN, 1, 0));
    }

    @Test
    void aPeerWithAFalseHeaderIsCutOff() throws Exception {
        cutOff("grants", rogue -> {
            rogue.grant += 100;
            rogue.type(Wire.MESSAGE, 0, 0);
        });
        cutOff("grants", rogue -> {
            rogue.grant--;
            rogue.type(Wire.MESSAGE, 0, 0);
        });
        cutOff("acknowledges", rogue -> {
            rogue.control += 5;
            rogue.type(Wire.MESSAGE, 0, 0);
        });
        cutOff("were read", rogue -> {
            rogue.done++;
            rogue.type(Wire.MESSAGE, 0, 0);
        });
    }

    @Test
    void cutsOffAPeerWithAnInvalidHello() throws Exception {
        helloCutOff("receive buffers of 63", hello -> hello.receiveBufferBytes(63));
        helloCutOff("window of 0", hello -> hello.window(0, 0));
        helloCutOff("0 bytes at the most", hello -> hello.maxMessageBytes(0));
        helloCutOff("4294967295 rendezvous", hello -> hello.maxRendezvous(-1));
        helloCutOff("versions 2 to 3", hello -> hello.versions(2, 3));
        helloCutOff("framing 9", hello -> hello.framing(9));
    }

    private void helloCutOff(String reason, UnaryOperator<Wire.Hello.Builder> misdeed) throws Exception {
        network = new SimulatedNetwork(new Random(1), Device.VERBS, Device.VERBS);
        Rogue rogue = rogue(OPTIONS, frames -> {});
        rogue.helloAck = misdeed.apply(Rogue.HELLO_ACK.toBuilder()).build();
        settle();
        assertThat(left.inactiveCause).isInstanceOf(ProtocolException.class).hasMessageContaining(reason);
        left.checkMemory();
    }

    private void cutOff(String reason, Consumer<Rogue> misdeed) throws Exception {
        network = new SimulatedNetwork(new Random(1), Device.VERBS, Device.VERBS);
        Rogue rogue = rogue(
                OPTIONS.with(o -> {
                    o.maxRendezvous = 2;
                    o.maxInlineBytes = 0;
                    o.registerThresholdBytes = 0;
                }),
                frames -> {});
        settle();
        assertThat(left.active).as("connected before: " + reason).isEqualTo(1);
        left.keepMessages = false;
        left.other = left;
        for (int i = 0; i < 8; i++) {
            left.sizes.add(0);
        }
        misdeed.accept(rogue);
        settle();
        assertThat(left.inactive).as(reason).isEqualTo(1);
        assertThat(left.inactiveCause)
                .isInstanceOf(ProtocolException.class)
                .hasMessageContaining(reason)
                .hasMessageContaining("was disconnected");
        left.checkMemory();
    }

    @Test
    void rawKeepsAllReceivesFromTheBeginning() throws Exception {
        Device device = new Device(false, 256, 256, 4, 4, 64, 4, 0);
        network = new SimulatedNetwork(new Random(1), device, device);
        MessageOptions rawOptions = OPTIONS.withFraming(Framing.RAW).withReceives(MessageOptions.DEVICE_DEFAULT, 2048);
        connect(rawOptions, rawOptions);
        settle();
        assertThat(network.right.receivesOut).isEqualTo(128);
        end();
    }

    @Test
    void rawCarriesOneMessageASend() throws Exception {
        MessageOptions rawOptions = OPTIONS.withFraming(Framing.RAW);
        connect(rawOptions, rawOptions);
        settle();
        for (int length : new int[] {0, 1, 100, 256}) {
            left.send(length);
        }
        left.connection.flush();
        settle();
        assertThat(right.received).isEqualTo(4);
        assertThat(network.left.payloadBytesSent).isEqualTo(357);
        assertThat(left.connection.statistics().framesSent()).isEqualTo(4);
        assertThat(left.connection.ping(1)).isFalse();
        left.connection.close();
        settle();
        assertThat(left.inactiveCause).isNull();
        assertThat(right.inactiveCause).isNull();
        left.checkMemory();
        right.checkMemory();
    }

    @Test
    void rawSendsAsItIsTold() throws Exception {
        MessageOptions rawOptions = OPTIONS.withFraming(Framing.RAW);
        connect(rawOptions, rawOptions);
        settle();
        List<String> posted = new ArrayList<>();
        network.left.onPost = request -> posted.add(request.opcode() + " " + request.flags() + " "
                + Integer.toHexString(request.immediateData()) + " " + Integer.toHexString(request.remoteKey()));
        OperationCallback counting = (context, cause) -> left.told++;
        left.sent = 2;
        left.sizes.addAll(List.of(0, 0));
        left.connection.sendRaw(
                Unpooled.EMPTY_BUFFER, WorkRequest.Opcode.SEND, WorkRequest.SOLICITED, 5, counting, null);
        left.connection.sendRaw(
                Unpooled.EMPTY_BUFFER, WorkRequest.Opcode.SEND_WITH_IMMEDIATE, WorkRequest.FENCE, 0, counting, null);
        left.connection.flush();
        settle();
        assertThat(posted)
                .containsExactly(
                        "SEND " + (WorkRequest.SOLICITED | WorkRequest.INLINE) + " 0 0",
                        "SEND_WITH_IMMEDIATE " + WorkRequest.FENCE + " 0 0");
        assertThat(right.received).isEqualTo(2);
        assertThat(right.immediatesReceived).isEqualTo(1);
        for (WorkRequest.Opcode opcode : List.of(WorkRequest.Opcode.READ, WorkRequest.Opcode.SEND)) {
            ByteBuf message = Unpooled.buffer(1);
            int flags = opcode == WorkRequest.Opcode.SEND ? WorkRequest.INLINE : 0;
            assertThat(catchThrowable(() -> left.connection.sendRaw(message, opcode, flags, 0, counting, null)))
                    .isInstanceOf(IllegalArgumentException.class);
            assertThat(message.refCnt()).isZero();
        }
        assertThat(left.told).isEqualTo(2);
        left.connection.close();
        settle();
        left.checkMemory();
        right.checkMemory();
    }

    @Test
    void onlyRawSendsAsItIsTold() throws Exception {
        connected();
        ByteBuf message = Unpooled.buffer(1);
        assertThat(catchThrowable(() -> left.connection.sendRaw(
                        message, WorkRequest.Opcode.SEND_WITH_INVALIDATE, 0, 0, (context, cause) -> {}, null)))
                .isInstanceOf(UnsupportedOperationException.class)
                .hasMessageContaining("RAW")
                .hasMessageContaining("MESSAGE");
        assertThat(message.refCnt()).isZero();
        end();
    }

    @Test
    void manyConnectionsShareReceivesAndNoneIsEverNotReady() throws Exception {
        Device shared = new Device(true, 16, 16, 4, 1, 0, 4, 20);
        MessageOptions options = OPTIONS.withReceives(16, 256).withRendezvousThresholdBytes(Integer.MAX_VALUE);
        Random random = new Random(7);
        Crowd crowd = new Crowd(random, Device.IWARP, shared, options, Party.POOL_BYTES, Party.POOL_BYTES);
        // 20 receives: 6 connections at 3 each, and 2 over.
        for (int i = 0; i < 7; i++) {
            crowd.add();
            crowd.settle();
        }
        assertThat(crowd.rights.get(6).inactiveCause).isInstanceOf(RegisteredMemoryExhaustedException.class);
        assertThat(crowd.lefts.get(6).inactive).isEqualTo(1);
        List<Party> lefts = crowd.lefts.subList(0, 6);
        List<Party> rights = crowd.rights.subList(0, 6);
        for (int round = 0; round < 300; round++) {
            int i = random.nextInt(6);
            lefts.get(i).send(random.nextInt(2000));
            lefts.get(i).connection.flush();
            rights.get(i).setReading(random.nextInt(4) > 0);
            for (int steps = random.nextInt(20); steps > 0; steps--) {
                crowd.networks.get(random.nextInt(6)).step();
            }
        }
        rights.forEach(party -> party.setReading(true));
        crowd.settle();
        for (Party right : rights) {
            assertThat(right.received).as("%s", right).isEqualTo(right.other.sent);
        }
        crowd.close();
        for (Party right : rights) {
            assertThat(right.inactiveCause).isNull();
        }
    }

    @Test
    void rawIsRefusedOnASharedReceiveQueue() throws Exception {
        Device shared = new Device(false, 16, 16, 4, 4, 0, 4, 20);
        network = new SimulatedNetwork(new Random(1), shared, shared);
        MessageOptions rawOptions = OPTIONS.withFraming(Framing.RAW);
        connect(rawOptions, rawOptions);
        settle();
        assertThat(right.inactiveCause)
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("RAW")
                .hasMessageContaining("without a shared receive queue");
        left.checkMemory();
        right.checkMemory();
    }

    @Test
    void grantsAreReclaimedFromPeersThatWereOnceBusy() throws Exception {
        // 320 receives. 8 peers grow their windows until nearly all is promised; then there is room for 100
        // connections.
        promisesComeBack(320, 8, 2000, 100);
    }

    /** As many receives as a loop has by default: they hold a thousand connections that were busy, and more. */
    @Test
    @Timeout(value = 300, unit = TimeUnit.SECONDS)
    void aThousandOnceBusyPeersLeaveRoomForOthers() throws Exception {
        promisesComeBack(40_960, 1000, 200, 1001);
    }

    private static void promisesComeBack(int receives, int busyOnes, int messages, int connections) throws Exception {
        Device shared = new Device(false, 64, 256, 4, 4, 0, 4, receives);
        Device own = new Device(false, 64, 256, 4, 4, 0, 4, 0);
        MessageOptions options = OPTIONS.withReceives(128, 256);
        Crowd crowd = new Crowd(new Random(7), own, shared, options, 64 << 20, 64 << 20);
        for (int i = 0; i < connections; i++) {
            Party left = crowd.add();
            crowd.settle();
            assertThat(left.active).as("%s", left.other).isEqualTo(1);
            if (i < busyOnes) {
                for (int k = 0; k < messages; k++) {
                    left.sendPooled(10);
                }
                left.connection.flush();
                crowd.settle();
            }
        }
        for (Party left : crowd.lefts) {
            int before = left.other.received;
            for (int k = 0; k < 20; k++) {
                left.sendPooled(10);
            }
            left.connection.flush();
            crowd.settle();
            assertThat(left.other.received).isEqualTo(before + 20);
        }
        crowd.close();
        for (Party left : crowd.lefts) {
            assertThat(left.inactiveCause).isNull();
        }
    }
}
