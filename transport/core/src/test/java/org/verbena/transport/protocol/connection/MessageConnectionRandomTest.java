package org.verbena.transport.protocol.connection;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.EnumSet;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.Framing;
import org.verbena.transport.MemoryDomain.Access;
import org.verbena.transport.MessageClaims;
import org.verbena.transport.RegisteredMemory;
import org.verbena.transport.SendCompletion;
import org.verbena.transport.WorkStatus;
import org.verbena.transport.protocol.MessageOptions;
import org.verbena.transport.protocol.PrivateData;
import org.verbena.transport.protocol.Role;
import org.verbena.transport.protocol.TransferBudget;
import org.verbena.transport.protocol.connection.SimulatedNetwork.Device;
import org.verbena.transport.spi.ScatterGatherList;

/**
 * The protocol under schedules generated from seeds: work, completions, users' actions and failures in every
 * interleaving that a seed yields. A failure prints its seed; {@code -Dverbena.protocol.seed=N} runs that one alone,
 * {@code -Dverbena.protocol.seeds=N} runs more of them.
 */
class MessageConnectionRandomTest {
    private static final int SEEDS = Integer.getInteger("verbena.protocol.seeds", 150);
    private static final Long ONE_SEED = Long.getLong("verbena.protocol.seed");

    /** What can go wrong in a run. */
    private enum Fate {
        /** Nothing: all that is sent arrives, then one or both ends close. */
        CLOSE,
        /** Closes and aborts at any time. */
        WHIMS,
        /** The device or the other program fails at any time. */
        FAULTS
    }

    @Test
    @Timeout(value = 20, unit = TimeUnit.MINUTES)
    void everyMessageArrivesOnceAndInOrderAndBothEndsCloseInGoodOrder() {
        forEachSeed(Fate.CLOSE);
    }

    @Test
    @Timeout(value = 20, unit = TimeUnit.MINUTES)
    void everyOperationHasOneOutcomeWhateverEitherEndDoes() {
        forEachSeed(Fate.WHIMS);
    }

    @Test
    @Timeout(value = 20, unit = TimeUnit.MINUTES)
    void everyOperationHasOneOutcomeWhateverFails() {
        forEachSeed(Fate.FAULTS);
    }

    /** Seeds that once found defects; what they generate changes with the protocol and with this test. */
    @ParameterizedTest
    @CsvSource({"CLOSE, 2488803421", "CLOSE, 3055572980", "WHIMS, 543002032"})
    void seedsThatOnceFailed(Fate fate, long seed) {
        run(fate, seed);
    }

    private static void forEachSeed(Fate fate) {
        long first = ONE_SEED != null ? ONE_SEED : System.nanoTime() & 0xffff_ffffL;
        long last = ONE_SEED != null ? ONE_SEED : first + SEEDS - 1;
        for (long seed = first; seed <= last; seed++) {
            try {
                run(fate, seed);
            } catch (Throwable e) {
                throw new AssertionError(
                        fate + " fails with -Dverbena.protocol.seed=" + seed + ": " + e.getMessage(), e);
            }
        }
    }

    private static void run(Fate fate, long seed) {
        try (Arena arena = Arena.ofShared()) {
            new Run(fate, new Random(seed), arena).go();
        } catch (RuntimeException e) {
            throw e;
        } catch (Exception e) {
            throw new AssertionError(e);
        }
    }

    private static final class Run {
        private final Fate fate;
        private final Random random;
        private final Arena arena;
        private final SimulatedNetwork network;
        private final Party left;
        private final Party right;
        private final int largest;
        private final boolean stream;
        /** Both ends' connections are of one loop, for that matter. */
        private final TransferBudget budget;
        /** Actions that are left to do from within callbacks. */
        private int whims;

        Run(Fate fate, Random random, Arena arena) {
            this.fate = fate;
            this.random = random;
            this.arena = arena;
            boolean iwarp = random.nextBoolean();
            network = new SimulatedNetwork(random, device(iwarp), device(iwarp));
            network.left.copies = random.nextBoolean();
            network.right.copies = random.nextBoolean();
            network.left.inPlace = network.left.copies && random.nextBoolean();
            network.right.inPlace = network.right.copies && random.nextBoolean();
            network.left.keepsCopies = network.left.copies && random.nextBoolean();
            network.right.keepsCopies = network.right.copies && random.nextBoolean();
            largest = 1 << random.nextInt(16);
            stream = random.nextInt(3) == 0;
            left = party("left", Role.INITIATOR, network.left);
            right = party("right", Role.ACCEPTOR, network.right);
            left.other = right;
            right.other = left;
            budget = new TransferBudget(random.nextBoolean() ? Long.MAX_VALUE : 1 + random.nextInt(2 * largest), 0);
            left.connection.limitTransfers(domain -> budget);
            right.connection.limitTransfers(domain -> budget);
            whims = random.nextBoolean() ? 0 : 1 << random.nextInt(8);
            left.whim = () -> whim(left);
            right.whim = () -> whim(right);
        }

        /** From within callbacks, users call the connection. */
        private void whim(Party party) {
            if (whims == 0 || random.nextInt(4) > 0) {
                return;
            }
            whims--;
            switch (random.nextInt(fate == Fate.CLOSE ? 11 : 13)) {
                case 0, 1, 2 -> send(party, random.nextInt(64));
                case 3 -> send(party, random.nextInt(largest + 1));
                case 4 -> party.connection.flush();
                case 5 -> party.connection.flushNow();
                case 6 -> party.setReading(random.nextBoolean());
                case 7, 8 -> oneSided(party);
                case 9 -> party.connection.deliverPending();
                case 10 -> claim(party);
                case 11 -> party.connection.close();
                default -> party.connection.abort(random.nextBoolean() ? null : new IllegalStateException("whim"));
            }
        }

        private Device device(boolean iwarp) {
            int receiveDepth = 3 + random.nextInt(random.nextBoolean() ? 4 : random.nextBoolean() ? 30 : 150);
            int shared = random.nextInt(4) == 0 ? 3 + random.nextInt(20) : 0;
            return new Device(
                            iwarp,
                            3 + random.nextInt(random.nextBoolean() ? 4 : 30),
                            receiveDepth,
                            2 + random.nextInt(4),
                            iwarp ? 1 : 1 + random.nextInt(3),
                            random.nextBoolean() ? 0 : 16 + random.nextInt(100),
                            random.nextInt(5),
                            shared)
                    .withReceives(
                            64 + random.nextInt(random.nextBoolean() ? 64 : 4000),
                            random.nextInt(3) == 0 ? 0 : 64 + random.nextInt(128));
        }

        private Party party(String name, Role role, SimulatedEndpoint endpoint) {
            boolean isByDefault = random.nextInt(3) == 0;
            int bufferBytes =
                    isByDefault ? MessageOptions.DEVICE_DEFAULT : 64 + random.nextInt(random.nextBoolean() ? 64 : 4000);
            MessageOptions options = MessageOptions.DEFAULTS.with(o -> {
                o.framing = stream ? Framing.STREAM : Framing.MESSAGE;
                o.receiveDepth = isByDefault || random.nextInt(3) == 0
                        ? MessageOptions.DEVICE_DEFAULT
                        : Math.max(3, endpoint.device.receiveDepth() - random.nextInt(2));
                o.receiveBufferBytes = bufferBytes;
                o.maxMessageBytes = 1 << 20;
                o.rendezvousThresholdBytes =
                        random.nextInt(3) == 0 ? Integer.MAX_VALUE : random.nextInt(2 * largest + 1);
                o.maxRendezvous = 1 + random.nextInt(4);
                o.maxInlineBytes = random.nextBoolean() ? Integer.MAX_VALUE : 0;
                o.registerThresholdBytes = random.nextInt(2 * largest + 1);
                o.keepAliveMillis = random.nextInt(3) == 0 ? 1000 : 0;
                o.sendCompletion = random.nextBoolean() ? SendCompletion.POSTED : SendCompletion.ACKNOWLEDGED;
            });
            EnumSet<Access> access = EnumSet.of(Access.LOCAL_WRITE);
            if (random.nextBoolean()) {
                access.add(Access.REMOTE_READ);
            }
            if (random.nextBoolean()) {
                access.add(Access.REMOTE_WRITE);
            }
            // Room for all, or so little that messages wait for memory.
            Party party = new Party(
                    name, role, endpoint, options, random, access, random.nextInt(3) == 0 ? 256 << 10 : 1 << 20);
            party.keepMessages = random.nextInt(4) == 0;
            if (random.nextInt(4) == 0) {
                party.connection.packNothing();
            }
            party.toggleInCallbacks = random.nextInt(3) == 0;
            return party;
        }

        void go() throws Exception {
            byte[] leftData = PrivateData.of(left.options);
            byte[] rightData = PrivateData.of(right.options);
            assertThat(PrivateData.rejection(right.options, leftData)).isNull();
            network.connect(left.connection, leftData, right.connection, rightData);
            int turns = 20 + random.nextInt(400);
            for (int i = 0; i < turns; i++) {
                userTurn(random.nextBoolean() ? left : right);
                network();
                mishap();
            }
            if (fate == Fate.CLOSE) {
                finishInGoodOrder();
            } else {
                end();
            }
            assertThat(left.inactive).as("%s / %s", left, right).isEqualTo(1);
            assertThat(right.inactive).as("%s / %s", left, right).isEqualTo(1);
            for (Party party : new Party[] {left, right}) {
                assertThat(party.told).as("outcomes of %s", party).isEqualTo(party.sent);
                assertThat(party.oneSidedTold)
                        .as("one-sided outcomes of %s", party)
                        .isEqualTo(party.oneSidedAsked);
                assertThat(party.connection.queuedBytes()).isZero();
                party.checkMemory();
            }
            assertThat(network.receiverNotReady).isZero();
            assertThat(budget.outBytes()).as("what transfers are charged with").isZero();
            assertThat(budget.isAwaited()).as("someone waits for a turn").isFalse();
        }

        private void network() {
            for (int i = random.nextInt(12); i > 0; i--) {
                network.step();
                check();
            }
            if (random.nextInt(16) == 0) {
                tick(1_000_000);
            }
            if (random.nextInt(16) == 0) {
                // Chunks that no buffer lives in go at once: what is posted must not need them.
                left.trimPools();
                right.trimPools();
            }
            if (random.nextInt(64) == 0) {
                tickToDeadline();
            }
        }

        /** A deadline has come. Where all is to end well, the network is not so slow that an end gives its peer up. */
        private void tickToDeadline() {
            long nextNanos = Math.min(left.deadlineNanos, right.deadlineNanos);
            long aheadNanos = nextNanos - network.nowNanos;
            if (nextNanos != MessageConnection.NO_DEADLINE && (fate != Fate.CLOSE || aheadNanos <= 20_000_000)) {
                tick(Math.max(0, aheadNanos));
            }
        }

        private void check() {
            assertThat(left.connection.creditsAvailable()).as("%s", left).isNotNegative();
            assertThat(right.connection.creditsAvailable()).as("%s", right).isNotNegative();
        }

        /** Lets time pass, and calls connections whose deadline has come. */
        private void tick(long nanos) {
            network.nowNanos += nanos;
            left.tick();
            right.tick();
        }

        private void userTurn(Party party) {
            switch (random.nextInt(20)) {
                case 0, 1, 2, 3, 4, 5 -> {
                    for (int i = random.nextInt(8); i >= 0; i--) {
                        send(party, random.nextInt(4) == 0 ? random.nextInt(largest + 1) : random.nextInt(64));
                    }
                    party.connection.flush();
                }
                case 6 -> send(party, random.nextInt(largest + 1));
                case 7 -> { // for frames of several, with what cannot be packed among it
                    for (int i = random.nextInt(40); i >= 0; i--) {
                        send(party, random.nextInt(16) == 0 ? random.nextInt(largest + 1) : random.nextInt(32));
                        if (random.nextInt(16) == 0) {
                            oneSided(party);
                        }
                    }
                }
                case 8, 9 -> party.connection.flush();
                case 10 -> party.setReading(false);
                case 11, 12, 13 -> party.setReading(true);
                case 14 -> party.connection.ping(4711L + party.pongs);
                case 15, 16 -> oneSided(party);
                case 17 -> {
                    for (int i = random.nextInt(40); i >= 0; i--) {
                        claim(party);
                    }
                }
                default -> party.releaseKept(random.nextInt(8));
            }
        }

        /** A stream's reader cannot count empty messages. */
        private void send(Party party, int length) {
            party.send(stream ? Math.max(1, length) : length);
        }

        /** Claims room for a message, or ends the claim that was left open before. */
        private void claim(Party party) {
            if (stream) {
                return;
            }
            MessageClaims claims = party.connection.claims();
            int most = Math.min(claims.maxBytes(), random.nextInt(4) == 0 ? largest : 64);
            if (claims.buffer().refCnt() == 0) {
                claims.tryClaim(random.nextInt(most + 1));
            }
            int room = claims.buffer().refCnt() == 0 ? 0 : claims.buffer().capacity();
            switch (random.nextInt(16)) {
                case 0 -> claims.abort();
                case 1 -> {
                    // It stays open.
                }
                default -> party.fillAndCommit(random.nextBoolean() ? room : random.nextInt(room + 1));
            }
        }

        /** A write, a read that checks it, or an atomic, in memory of its own. */
        private void oneSided(Party party) {
            if (party.inactive > 0 || party.active == 0 || party.endpoint.device.readDepth() == 0) {
                return;
            }
            int length = 8 * (1 + random.nextInt(40));
            MemorySegment there = arena.allocate(length, 8);
            MemorySegment here = arena.allocate(length, 8);
            MemorySegment back = arena.allocate(length, 8);
            Set<Access> all = Set.of(Access.LOCAL_WRITE, Access.REMOTE_READ, Access.REMOTE_WRITE, Access.REMOTE_ATOMIC);
            RegisteredMemory remote = party.other.endpoint.domain.register(there, all);
            RegisteredMemory local = party.endpoint.domain.register(here, all);
            RegisteredMemory sink = party.endpoint.domain.register(back, all);
            for (int i = 0; i < length; i++) {
                here.set(ValueLayout.JAVA_BYTE, i, (byte) random.nextInt());
            }
            ScatterGatherList from = pieces(local, length);
            ScatterGatherList to = pieces(sink, length);
            MessageConnection connection = party.connection;
            boolean immediate = !party.endpoint.device.iwarp() && random.nextBoolean();
            party.oneSidedAsked++;
            if (immediate) {
                connection
                        .oneSided()
                        .writeWithImmediate(
                                remote.address(),
                                remote.remoteKey(),
                                party.immediatesSent++,
                                from,
                                null,
                                party::oneSidedTold,
                                null);
            } else {
                connection
                        .oneSided()
                        .write(remote.address(), remote.remoteKey(), from, null, party::oneSidedTold, null);
            }
            party.oneSidedAsked++;
            Runnable check = () ->
                    assertThat(back.toArray(ValueLayout.JAVA_BYTE)).isEqualTo(here.toArray(ValueLayout.JAVA_BYTE));
            connection.oneSided().read(remote.address(), remote.remoteKey(), to, null, party::oneSidedTold, check);
            local.close();
            sink.close();
            if (!party.endpoint.device.iwarp()) {
                atomic(party, remote, here.get(ValueLayout.JAVA_LONG, 0), all);
            }
            regionsOfPeers.add(remote);
        }

        private void atomic(Party party, RegisteredMemory remote, long before, Set<Access> all) {
            MemorySegment old = arena.allocate(8, 8);
            RegisteredMemory sink = party.endpoint.domain.register(old, all);
            ScatterGatherList piece = new ScatterGatherList(1).add(sink, 0, 8);
            party.oneSidedAsked++;
            Runnable check = () -> assertThat(old.get(ValueLayout.JAVA_LONG, 0)).isEqualTo(before);
            if (random.nextBoolean()) {
                party.connection
                        .oneSided()
                        .fetchAndAdd(remote.address(), remote.remoteKey(), 3, piece, null, party::oneSidedTold, check);
            } else {
                party.connection
                        .oneSided()
                        .compareAndSwap(
                                remote.address(),
                                remote.remoteKey(),
                                before,
                                9,
                                piece,
                                null,
                                party::oneSidedTold,
                                check);
            }
            sink.close();
        }

        private final java.util.List<RegisteredMemory> regionsOfPeers = new java.util.ArrayList<>();

        private ScatterGatherList pieces(RegisteredMemory region, int length) {
            ScatterGatherList list = new ScatterGatherList(8);
            int at = 0;
            for (int i = random.nextInt(7); i > 0 && at < length; i--) {
                int part = random.nextInt(length - at);
                list.add(region, at, part);
                at += part;
            }
            return list.add(region, at, length - at);
        }

        private void mishap() {
            if (fate == Fate.WHIMS && random.nextInt(150) == 0) {
                Party party = random.nextBoolean() ? left : right;
                switch (random.nextInt(3)) {
                    case 0 -> party.connection.abort(new IllegalStateException("whim"));
                    case 1 -> party.connection.abort(null);
                    default -> party.connection.close();
                }
            }
            if (fate == Fate.FAULTS && random.nextInt(150) == 0) {
                SimulatedEndpoint endpoint = random.nextBoolean() ? network.left : network.right;
                if (random.nextBoolean()) {
                    endpoint.failNextSend = WorkStatus.TRANSPORT_RETRY_EXCEEDED;
                } else {
                    endpoint.loseConnection(new ConnectionException.Lost("pulled out"));
                }
            }
        }

        /**
         * Lets the network run until nothing more can happen. No time passes: no connection may depend on time to make
         * progress.
         */
        private void settle() {
            do {
                while (network.step()) {
                    check();
                }
                left.releaseKept(1 + random.nextInt(8));
                right.releaseKept(1 + random.nextInt(8));
            } while (network.step() || !left.kept.isEmpty() || !right.kept.isEmpty());
        }

        private void finishInGoodOrder() {
            whims = 0;
            left.toggleInCallbacks = false;
            right.toggleInCallbacks = false;
            left.setReading(true);
            right.setReading(true);
            for (Party party : new Party[] {left, right}) {
                if (!stream) {
                    party.connection.claims().abort();
                }
                party.connection.flush();
            }
            settle();
            assertThat(left.failures).as("%s / %s", left, right).isEmpty();
            assertThat(right.failures).as("%s / %s", left, right).isEmpty();
            assertThat(right.received).as("%s / %s", left, right).isEqualTo(left.sent);
            assertThat(left.received).as("%s / %s", left, right).isEqualTo(right.sent);
            assertThat(left.succeeded).as("%s / %s", left, right).isEqualTo(left.sent);
            assertThat(right.succeeded).as("%s / %s", left, right).isEqualTo(right.sent);
            assertThat(left.oneSidedSucceeded).as("%s / %s", left, right).isEqualTo(left.oneSidedAsked);
            assertThat(right.oneSidedSucceeded).as("%s / %s", left, right).isEqualTo(right.oneSidedAsked);
            assertThat(right.immediatesReceived).isEqualTo(left.immediatesSent);
            assertThat(left.immediatesReceived).isEqualTo(right.immediatesSent);
            // Closing flushes: what is sent just before arrives as well, if only one end closes.
            Party closer = random.nextBoolean() ? left : right;
            boolean both = random.nextBoolean();
            if (!both) {
                for (int i = random.nextInt(10); i > 0; i--) {
                    send(closer, random.nextInt(largest + 1));
                    claim(closer);
                }
                if (stream && random.nextBoolean()) {
                    halfClose(closer);
                }
            }
            closer.connection.close();
            if (both) {
                for (int i = random.nextInt(20); i > 0; i--) {
                    network.step();
                }
                closer.other.connection.close();
            }
            settle();
            assertThat(closer.other.received).as("%s / %s", left, right).isEqualTo(closer.sent);
            assertThat(left.inactiveCause).as("%s", left).isNull();
            assertThat(right.inactiveCause).as("%s", right).isNull();
            regionsOfPeers.forEach(RegisteredMemory::close);
        }

        /** One half ends, the other continues. */
        private void halfClose(Party closer) {
            closer.shutdownOutput();
            if (random.nextBoolean()) {
                settle();
                assertThat(closer.other.ended).as("%s / %s", left, right).isEqualTo(1);
                assertThat(closer.endsTold).isEqualTo(1);
                for (int i = random.nextInt(10); i > 0; i--) {
                    send(closer.other, random.nextInt(largest + 1));
                }
                closer.other.connection.flush();
                settle();
                assertThat(closer.received).as("%s / %s", left, right).isEqualTo(closer.other.sent);
            }
        }

        private void end() {
            settle();
            if (random.nextBoolean()) {
                left.connection.close();
            } else {
                right.connection.abort(null);
            }
            settle();
            left.setReading(true);
            right.setReading(true);
            settle();
            tick(11_000_000_000L);
            settle();
            tick(11_000_000_000L);
            settle();
            left.connection.abort(null);
            right.connection.abort(null);
            settle();
            regionsOfPeers.forEach(RegisteredMemory::close);
        }
    }
}
