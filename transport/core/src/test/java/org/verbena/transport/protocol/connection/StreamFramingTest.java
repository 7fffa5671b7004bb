package org.verbena.transport.protocol.connection;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.util.EnumSet;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.Framing;
import org.verbena.transport.MemoryDomain;
import org.verbena.transport.MessageStatistics;
import org.verbena.transport.ProtocolException;
import org.verbena.transport.protocol.MessageOptions;
import org.verbena.transport.protocol.PrivateData;
import org.verbena.transport.protocol.Role;
import org.verbena.transport.protocol.connection.SimulatedNetwork.Device;
import org.verbena.transport.protocol.wire.Wire;

/**
 * What STREAM framing promises, one fact at a time. The schedule comes from a fixed seed; the random test varies it.
 */
@Timeout(240)
class StreamFramingTest {
    private static final int PAYLOAD = 256 - Wire.HEADER_BYTES;
    private static final MessageOptions OPTIONS = MessageOptions.DEFAULTS
            .withFraming(Framing.STREAM)
            .withReceives(8, 256)
            .withRendezvousThresholdBytes(Integer.MAX_VALUE);

    private SimulatedNetwork network = new SimulatedNetwork(new Random(1), Device.VERBS, Device.VERBS);
    private Party left;
    private Party right;

    private void connected(MessageOptions options) {
        connected(options, 4 << 20);
    }

    private void connected(MessageOptions options, long poolBytesOfRight) {
        left = Party.of("left", Role.INITIATOR, network.left, options);
        right = new Party(
                "right",
                Role.ACCEPTOR,
                network.right,
                options,
                network.random,
                EnumSet.of(MemoryDomain.Access.LOCAL_WRITE),
                poolBytesOfRight);
        left.other = right;
        right.other = left;
        byte[] data = PrivateData.of(options);
        network.connect(left.connection, data, right.connection, data);
        settle();
        assertThat(right.active).isEqualTo(1);
    }

    private void settle() {
        while (network.step()) {
            // until nothing can happen
        }
    }

    private void end() throws Exception {
        left.connection.close();
        settle();
        assertThat(left.inactive).isEqualTo(1);
        assertThat(right.inactive).isEqualTo(1);
        assertThat(left.told).isEqualTo(left.sent);
        left.checkMemory();
        right.checkMemory();
    }

    private long frames(Runnable work) {
        MessageStatistics before = left.connection.statistics();
        work.run();
        settle();
        MessageStatistics after = left.connection.statistics();
        return after.framesSent() - after.controlFramesSent() - before.framesSent() + before.controlFramesSent();
    }

    @Test
    void smallWritesOfOneFlushGoInOneFrame() throws Exception {
        connected(OPTIONS);
        assertThat(frames(() -> {
                    for (int i = 0; i < 20; i++) {
                        left.send(PAYLOAD / 20);
                    }
                    left.connection.flush();
                }))
                .isEqualTo(1);
        assertThat(right.received).isEqualTo(20);
        assertThat(left.succeeded).isEqualTo(20);
        end();
    }

    @Test
    void whatIsFlushedWithinACallbackIsWithTheDeviceBeforeItReturns() throws Exception {
        connected(OPTIONS);
        right.whim = () -> {
            right.whim = () -> {};
            int before = right.endpoint.flushes;
            right.sendPooled(10);
            right.connection.flush();
            assertThat(right.endpoint.flushes).isEqualTo(before);
            right.connection.flushNow();
            assertThat(right.endpoint.flushes).isGreaterThan(before);
        };
        left.sendPooled(10);
        left.connection.flush();
        settle();
        assertThat(right.sent).isEqualTo(1);
        assertThat(left.received).isEqualTo(1);
        end();
    }

    @Test
    void largeWritesFillTheirFrames() throws Exception {
        connected(OPTIONS);
        assertThat(frames(() -> {
                    left.sendPooled(9);
                    left.sendPooled(PAYLOAD * 10 - 18);
                    left.sendPooled(9);
                    left.connection.flush();
                }))
                .isEqualTo(10);
        assertThat(right.received).isEqualTo(3);
        end();
    }

    @Test
    void segmentsEndBetweenWritesThatFitIntoOne() throws Exception {
        connected(OPTIONS);
        int body = PAYLOAD / 3 - 9;
        right.keepMessages = true;
        for (int i = 0; i < 7; i++) {
            left.sendPooled(9);
            left.sendPooled(body + 1); // a byte too long for three in a segment
        }
        left.connection.flush();
        settle();
        assertThat(right.kept)
                .map(ByteBuf::readableBytes)
                .containsExactly(2 * (body + 10), 2 * (body + 10), 2 * (body + 10), body + 10);
        end();
    }

    @Test
    void segmentsFillUpWhereEndingEarlierWouldLeaveHalf() throws Exception {
        connected(OPTIONS);
        right.keepMessages = true;
        for (int i = 0; i < 3; i++) {
            left.sendPooled(PAYLOAD / 2 - 1);
            left.sendPooled(PAYLOAD - 1);
        }
        left.connection.flush();
        settle();
        assertThat(right.kept.element().readableBytes()).isEqualTo(PAYLOAD);
        assertThat(right.received).isEqualTo(6);
        end();
    }

    @Test
    void largeWritesInRegisteredMemoryAreNotCopied() throws Exception {
        connected(OPTIONS);
        left.sendPooled(3 * PAYLOAD);
        left.connection.flush();
        settle();
        assertThat(left.connection.statistics().copiedBytes()).isZero();
        assertThat(right.received).isEqualTo(1);
        end();
    }

    @Test
    void largeWritesGoByRendezvousInStretches() throws Exception {
        connected(OPTIONS.withRendezvousThresholdBytes(1000).withMaxMessageBytes(10_000));
        left.sendPooled(50);
        left.sendPooled(35_000);
        left.sendPooled(60);
        left.connection.flush();
        settle();
        assertThat(left.connection.statistics().rendezvousSent()).isEqualTo(4);
        assertThat(right.received).isEqualTo(3);
        assertThat(left.succeeded).isEqualTo(3);
        end();
    }

    @Test
    void emptyWritesSucceedInOrderWithoutAFrame() throws Exception {
        connected(OPTIONS);
        assertThat(frames(() -> {
                    for (int i = 0; i < 3; i++) {
                        ByteBuf empty = Unpooled.buffer(0);
                        left.sent++;
                        left.connection.send(
                                empty,
                                (context, cause) -> {
                                    assertThat(cause).isNull();
                                    left.told++;
                                },
                                null);
                    }
                    left.connection.flush();
                }))
                .isZero();
        assertThat(left.told).isEqualTo(3);
        end();
    }

    @Test
    void smallSegmentsDoNotKeepAReceiveBuffer() throws Exception {
        connected(OPTIONS);
        right.keepMessages = true;
        left.send(20);
        left.connection.flush();
        settle();
        assertThat(right.kept.element().capacity()).isEqualTo(20);
        end();
    }

    @Test
    void aReaderThatKeepsMoreThanThePoolGetsTheRestAllTheSame() throws Exception {
        connected(OPTIONS, 256 << 10);
        right.keepMessages = true;
        for (int i = 0; i < 10; i++) {
            left.sendPooled(100_000);
        }
        left.connection.flush();
        settle();
        assertThat(right.received).as("%s", right).isEqualTo(10);
        end();
    }

    @Test
    void aReaderThatKeepsMoreThanThePoolGetsStretchesByRendezvousAllTheSame() throws Exception {
        connected(OPTIONS.withRendezvousThresholdBytes(1000), 256 << 10);
        right.keepMessages = true;
        for (int i = 0; i < 10; i++) {
            left.sendPooled(100_000);
        }
        left.connection.flush();
        settle();
        assertThat(right.received).as("%s", right).isEqualTo(10);
        assertThat(right.connection.statistics().registrations()).isPositive();
        end();
    }

    @Test
    void oneHalfEndsWhileTheOtherGoesOn() throws Exception {
        connected(OPTIONS);
        left.send(3000);
        left.shutdownOutput();
        settle();
        assertThat(right.received).isEqualTo(1);
        assertThat(right.ended).isEqualTo(1);
        assertThat(left.endsTold).isEqualTo(1);
        assertThat(left.inactive).isZero();
        right.send(5000);
        right.connection.flush();
        settle();
        assertThat(left.received).isEqualTo(1);
        assertThat(left.ended).isZero();
        left.send(1);
        assertThat(left.failures).hasSize(1);
        assertThat(left.failures.get(0)).isInstanceOf(ConnectionException.class).hasMessageContaining("shut down");
        right.shutdownOutput();
        settle();
        assertThat(left.ended).isEqualTo(1);
        end();
    }

    @Test
    void theEndWaitsForTheReader() throws Exception {
        connected(OPTIONS);
        right.setReading(false);
        left.send(20_000);
        left.shutdownOutput();
        settle();
        assertThat(right.received).isZero();
        assertThat(left.endsTold).isZero();
        right.setReading(true);
        settle();
        assertThat(right.received).isEqualTo(1);
        assertThat(right.ended).isEqualTo(1);
        assertThat(left.endsTold).isEqualTo(1);
        end();
    }

    @Test
    void theEndIsReportedAfterThePeerHasClosed() throws Exception {
        connected(OPTIONS);
        right.setReading(false);
        left.send(100);
        left.shutdownOutput();
        left.connection.close();
        settle();
        assertThat(left.inactive).isEqualTo(1);
        assertThat(right.inactive).isZero();
        right.setReading(true);
        assertThat(right.received).isEqualTo(1);
        assertThat(right.ended).isEqualTo(1);
        assertThat(right.inactive).isEqualTo(1);
        left.checkMemory();
        right.checkMemory();
    }

    @Test
    void messagesHaveNoHalfClose() throws Exception {
        connected(OPTIONS.withFraming(Framing.MESSAGE));
        assertThatThrownBy(() -> left.shutdownOutput())
                .isInstanceOf(UnsupportedOperationException.class)
                .hasMessageContaining("STREAM");
        end();
    }

    @Test
    void aPeerWithAnotherFramingIsAStranger() {
        byte[] messages = PrivateData.of(MessageOptions.DEFAULTS);
        byte[] rejection = PrivateData.rejection(OPTIONS, messages);
        assertThat(rejection).isNotNull();
        assertThat(PrivateData.reason(rejection)).isEqualTo("framing MESSAGE is not STREAM");
        assertThat(PrivateData.rejection(OPTIONS, PrivateData.of(OPTIONS))).isNull();
    }

    @Test
    void aPeerThatBreaksTheStreamIsCutOff() throws Exception {
        cutOff("CONTINUATION of 10 bytes", rogue -> rogue.type(Wire.CONTINUATION, 10, 10));
        cutOff("MESSAGE of 10 bytes of 11", rogue -> rogue.type(Wire.MESSAGE, 11, 10));
        cutOff("MESSAGE of 0 bytes of 0", rogue -> rogue.type(Wire.MESSAGE, 0, 0));
        cutOff("END of 1 bytes", rogue -> rogue.type(Wire.END, 1, 1));
        cutOff("after the end", rogue -> {
            rogue.type(Wire.END, 0, 0);
            rogue.type(Wire.MESSAGE, 1, 1);
        });
        cutOff("after the end", rogue -> {
            rogue.type(Wire.END, 0, 0);
            rogue.type(Wire.END, 0, 0);
        });
    }

    private void cutOff(String reason, Consumer<Rogue> attack) throws Exception {
        network = new SimulatedNetwork(new Random(1), Device.VERBS, Device.VERBS);
        left = Party.of("left", Role.INITIATOR, network.left, OPTIONS);
        left.other = left;
        left.keepMessages = true;
        left.sizes.add(1_000_000);
        Rogue rogue = new Rogue(frames -> {});
        rogue.answers = true;
        rogue.helloAck =
                Rogue.HELLO_ACK.toBuilder().framing(Framing.STREAM.wireValue()).build();
        byte[] data = PrivateData.of(OPTIONS);
        network.connect(left.connection, data, rogue, data);
        settle();
        assertThat(left.active).isEqualTo(1);
        attack.accept(rogue);
        settle();
        assertThat(left.inactiveCause).isInstanceOf(ProtocolException.class).hasMessageContaining(reason);
        left.checkMemory();
    }

    @Test
    void aPeerThatFallsSilentIsGivenUpWithinAMinute() throws Exception {
        left = Party.of("left", Role.INITIATOR, network.left, OPTIONS);
        left.other = left;
        Rogue rogue = new Rogue(frames -> {});
        rogue.answers = true;
        rogue.helloAck =
                Rogue.HELLO_ACK.toBuilder().framing(Framing.STREAM.wireValue()).build();
        byte[] data = PrivateData.of(OPTIONS);
        network.connect(left.connection, data, rogue, data);
        settle();
        assertThat(left.active).isEqualTo(1);
        long startNanos = network.nowNanos;
        while (left.inactive == 0 && left.deadlineNanos != MessageConnection.NO_DEADLINE) {
            network.nowNanos = Math.max(network.nowNanos, left.deadlineNanos);
            left.tick();
            settle();
        }
        assertThat(left.inactiveCause).isInstanceOf(ConnectionException.TimedOut.class);
        assertThat(network.nowNanos - startNanos).isEqualTo(TimeUnit.SECONDS.toNanos(40));
        left.checkMemory();
    }
}
