package org.verbena.transport.protocol.connection;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.protocol.MessageOptions;
import org.verbena.transport.protocol.TransferBudget;
import org.verbena.transport.protocol.connection.SimulatedNetwork.Device;
import org.verbena.transport.spi.WorkRequest;

/** Connections of one loop that read long messages of their peers within one budget. */
@Timeout(240)
class SharedTransfersTest {
    private static final MessageOptions OPTIONS = MessageOptions.DEFAULTS
            .withReceives(8, 1024)
            .withMaxMessageBytes(1 << 20)
            .withRendezvousThresholdBytes(10_000);
    private static final int BYTES = 50_000;

    private final TransferBudget budget = new TransferBudget(60_000);
    private final List<Integer> reads = new ArrayList<>();

    private Crowd crowd(Random random, int connections) {
        Crowd crowd = new Crowd(random, Device.VERBS, Device.VERBS, OPTIONS, 64 << 20, 64 << 20);
        crowd.rightBudget = budget;
        for (int i = 0; i < connections; i++) {
            crowd.add();
            int number = i;
            crowd.rights.get(i).endpoint.onPost = request -> {
                if (request.opcode() == WorkRequest.Opcode.READ) {
                    reads.add(number);
                }
            };
        }
        crowd.settle();
        return crowd;
    }

    private static void send(Crowd crowd, int connection, int messages) {
        Party sender = crowd.lefts.get(connection);
        for (int i = 0; i < messages; i++) {
            sender.sendPooled(BYTES);
        }
        sender.connection.flush();
    }

    private static void hold(Crowd crowd, boolean held) {
        crowd.rights.forEach(party -> party.endpoint.responsesHeld = held);
    }

    private void assertFree() {
        assertThat(budget.outBytes()).isZero();
        assertThat(budget.isAwaited()).isFalse();
    }

    @Test
    void theyTakeTurns() throws Exception {
        Crowd crowd = crowd(new Random(1), 4);
        hold(crowd, true);
        for (int i = 0; i < 4; i++) {
            send(crowd, i, 8);
        }
        crowd.settle();
        assertThat(reads).hasSize(1);
        while (reads.size() < 32) {
            assertThat(budget.outBytes()).isEqualTo(BYTES);
            crowd.rights.forEach(party -> party.endpoint.respond());
            crowd.settle();
        }
        for (int i = 1; i + 4 <= 28; i++) {
            assertThat(new HashSet<>(reads.subList(i, i + 4)))
                    .as("four reads from %d on of %s", i, reads)
                    .hasSize(4);
        }
        hold(crowd, false);
        crowd.settle();
        for (Party reader : crowd.rights) {
            assertThat(reader.received).isEqualTo(8);
            assertThat(reader.connection.statistics().transferStalls()).isPositive();
        }
        assertFree();
        crowd.close();
    }

    @Test
    void oneThatEndsLetsTheOthersGoOn() throws Exception {
        Crowd crowd = crowd(new Random(2), 3);
        hold(crowd, true);
        for (int i = 0; i < 3; i++) {
            send(crowd, i, 3);
        }
        crowd.settle();
        Party holder = crowd.rights.get(reads.getFirst());
        holder.endpoint.loseConnection(new ConnectionException.Lost("pulled out"));
        hold(crowd, false);
        crowd.settle();
        for (Party reader : crowd.rights) {
            assertThat(reader.received).isEqualTo(reader.equals(holder) ? 0 : 3);
        }
        assertFree();
        crowd.close();
    }

    @Test
    void oneThatWaitsAndEndsIsSkipped() throws Exception {
        Crowd crowd = crowd(new Random(3), 3);
        hold(crowd, true);
        for (int i = 0; i < 3; i++) {
            send(crowd, i, 2);
            crowd.settle();
        }
        crowd.rights.get(1).connection.abort(new IllegalStateException("whim"));
        hold(crowd, false);
        crowd.settle();
        assertThat(crowd.rights.get(0).received).isEqualTo(2);
        assertThat(crowd.rights.get(1).received).isZero();
        assertThat(crowd.rights.get(2).received).isEqualTo(2);
        assertFree();
        crowd.close();
    }

    @Test
    void aPeerThatAnswersNoReadsDoesNotKeepOthersWaiting() throws Exception {
        Crowd crowd = crowd(new Random(4), 2);
        crowd.rights.get(0).endpoint.responsesHeld = true;
        send(crowd, 0, 1);
        crowd.settle();
        send(crowd, 1, 3);
        crowd.settle();
        assertThat(crowd.rights.get(1).received).isZero();
        crowd.pass(250);
        assertThat(crowd.rights.get(1).received).isEqualTo(3);
        crowd.rights.get(0).endpoint.responsesHeld = false;
        crowd.settle();
        assertThat(crowd.rights.get(0).received).isEqualTo(1);
        assertFree();
        crowd.close();
    }

    @Test
    void nothingLeaksWhateverEndsWhen() throws Exception {
        for (int run = 0; run < 40; run++) {
            long seed = System.nanoTime();
            try {
                run(new Random(seed));
            } catch (Throwable failure) {
                throw new AssertionError("seed " + seed + ": " + failure.getMessage(), failure);
            }
        }
    }

    private void run(Random random) throws Exception {
        Crowd crowd = crowd(random, 5);
        for (int turn = 0; turn < 300; turn++) {
            int connection = random.nextInt(5);
            switch (random.nextInt(120)) {
                case 0 -> crowd.rights.get(connection).connection.close();
                case 1 -> crowd.lefts.get(connection).connection.close();
                case 2 -> crowd.rights.get(connection).connection.abort(null);
                case 3 -> crowd.rights.get(connection).endpoint.loseConnection(new ConnectionException.Lost("out"));
                case 4, 5, 6, 7, 8, 9 -> send(crowd, connection, 1 + random.nextInt(3));
                default -> {
                    for (int i = random.nextInt(20); i > 0; i--) {
                        crowd.networks.get(random.nextInt(5)).step();
                    }
                }
            }
            assertThat(budget.outBytes()).isLessThanOrEqualTo(60_000);
        }
        crowd.settle();
        for (int i = 0; i < 5; i++) {
            assertThat(crowd.rights.get(i).inactive + crowd.rights.get(i).received)
                    .as("what was sent has come, or the connection has ended: %s", crowd.rights.get(i))
                    .isGreaterThanOrEqualTo(Math.min(1, crowd.lefts.get(i).sent));
        }
        assertFree();
        crowd.close();
    }
}
