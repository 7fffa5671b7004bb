package org.verbena.transport.protocol.connection;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.Framing;
import org.verbena.transport.SendCompletion;
import org.verbena.transport.protocol.MessageOptions;
import org.verbena.transport.protocol.connection.SimulatedNetwork.Device;
import org.verbena.transport.spi.WorkRequest;

/** When messages count as sent, and what the device is asked to report for it. */
class SendCompletionTest extends SimulatedPair {
    private static final MessageOptions POSTED = OPTIONS.with(o -> o.sendCompletion = SendCompletion.POSTED);

    /** Goes into the work request. */
    private static final int SHORT = 40;

    /** Longer than that, within a receive. */
    private static final int LONG = 200;

    private final List<Integer> flags = new ArrayList<>();

    private void connectWith(MessageOptions options) {
        connect(options, options);
        settle();
        network.left.onPost = request -> flags.add(request.flags() & WorkRequest.UNSIGNALLED);
    }

    private static void sendHeap(Party party, int length) {
        party.sendHeap(length);
        party.connection.flush();
    }

    private void sendPooled(int length) {
        left.sendPooled(length);
        left.connection.flush();
    }

    @ParameterizedTest
    @EnumSource(Framing.class)
    void aCopiedMessageIsSentWhenPosted(Framing framing) throws Exception {
        connectWith(POSTED.withFraming(framing));
        sendHeap(left, SHORT);
        assertThat(left.succeeded).isEqualTo(1);
        sendHeap(left, LONG);
        assertThat(left.succeeded).isEqualTo(2);
        settle();
        end();
        assertThat(left.failures).isEmpty();
    }

    @ParameterizedTest
    @EnumSource(value = Framing.class, names = "RAW", mode = EnumSource.Mode.EXCLUDE)
    void aMessageIsSentWhenAcknowledgedByDefault(Framing framing) throws Exception {
        connectWith(OPTIONS.withFraming(framing));
        sendHeap(left, SHORT);
        sendHeap(left, LONG);
        assertThat(left.succeeded).isZero();
        settle();
        assertThat(left.succeeded).isEqualTo(2);
        end();
    }

    /** Its memory is needed until then, and messages come to their outcomes in their order. */
    @Test
    void aMessageInItsOwnMemoryIsSentWhenAcknowledged() throws Exception {
        connectWith(POSTED);
        sendPooled(LONG);
        sendHeap(left, SHORT);
        assertThat(left.succeeded).isZero();
        settle();
        assertThat(left.succeeded).isEqualTo(2);
        end();
    }

    /** The device reports what is awaited, and the frames of RAW, behind which there is no CLOSE. */
    @ParameterizedTest
    @CsvSource({"MESSAGE, POSTED, true", "STREAM, POSTED, true", "RAW, POSTED, false", "MESSAGE, ACKNOWLEDGED, false"})
    void theDeviceIsAskedToReportWhatIsAwaited(Framing framing, SendCompletion completion, boolean isUnsignalled)
            throws Exception {
        connectWith(OPTIONS.withFraming(framing).with(o -> o.sendCompletion = completion));
        sendHeap(left, SHORT);
        assertThat(flags).containsExactly(isUnsignalled ? WorkRequest.UNSIGNALLED : 0);
        sendHeap(left, LONG);
        assertThat(flags).last().isEqualTo(0);
        settle();
        end();
    }

    /** By the short form, whatever the options say; one that is awaited makes the frame that it shares awaited. */
    @ParameterizedTest
    @EnumSource(Framing.class)
    void aMessageThatNobodyAwaitsIsSentWhenPosted(Framing framing) throws Exception {
        connectWith(OPTIONS.withFraming(framing));
        boolean isEarly = framing == Framing.MESSAGE;
        left.sendUnawaited(SHORT);
        left.connection.flush();
        assertThat(left.succeeded).isEqualTo(isEarly ? 1 : 0);
        assertThat(flags).containsExactly(isEarly ? WorkRequest.UNSIGNALLED : 0);
        left.sendUnawaited(1);
        left.sendUnawaited(2);
        left.connection.flush();
        assertThat(left.succeeded).isEqualTo(isEarly ? 3 : 0);
        left.sendUnawaited(1);
        left.sendHeap(2);
        left.connection.flush();
        assertThat(left.succeeded).isEqualTo(isEarly ? 3 : 0);
        assertThat(flags).last().isEqualTo(0);
        settle();
        assertThat(left.succeeded).isEqualTo(5);
        end();
    }

    /** What the device reports late holds nothing up: neither sending, nor closing, nor the peer's closing. */
    @ParameterizedTest
    @EnumSource(value = Framing.class, names = "RAW", mode = EnumSource.Mode.EXCLUDE)
    void manyShortMessagesArrive(Framing framing) throws Exception {
        Device shallow = new Device(false, 5, 16, 4, 4, 64, 4, 0);
        network = new SimulatedNetwork(new Random(2), shallow, Device.VERBS);
        connectWith(POSTED.withFraming(framing));
        for (int i = 0; i < 300; i++) {
            sendHeap(left, SHORT);
            sendHeap(right, 1 + i % SHORT);
            if (i % 7 == 0) {
                settle();
            }
        }
        settle();
        assertThat(left.succeeded).isEqualTo(300);
        assertThat(right.succeeded).isEqualTo(300);
        end();
    }

    /** It is longer than a slot and fits in the work request. */
    @Test
    void aCopyThatTheDeviceCopiesAgainIsGivenBackAtOnce() throws Exception {
        network = new SimulatedNetwork(new Random(3), new Device(false, 16, 16, 4, 4, 200, 4, 0), Device.VERBS);
        connectWith(POSTED);
        long before = left.sendPool.metrics().usedBytes();
        sendHeap(left, 100);
        assertThat(flags).containsExactly(WorkRequest.UNSIGNALLED);
        assertThat(left.sendPool.metrics().usedBytes()).isEqualTo(before);
        settle();
        end();
    }

    @Test
    void aLossAfterwardsEndsTheConnectionAndFailsNothing() throws Exception {
        connectWith(POSTED);
        sendHeap(left, SHORT);
        sendPooled(LONG);
        network.left.loseConnection(new ConnectionException.Lost("the path broke"));
        settle();
        assertThat(left.inactiveCause).isInstanceOf(ConnectionException.Lost.class);
        assertThat(left.succeeded).isEqualTo(1);
        assertThat(left.failures).hasSize(1);
        left.checkMemory();
    }
}
