package org.verbena.transport.soft;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.SplittableRandom;
import java.util.TreeMap;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.transport.MemoryDomain.Access;
import org.verbena.transport.RegisteredMemory;
import org.verbena.transport.software.ConnectionMemory;
import org.verbena.transport.software.InboundReads;
import org.verbena.transport.software.Placement;
import org.verbena.transport.software.SendRing;
import org.verbena.transport.software.SoftwareDomain;
import org.verbena.transport.software.SoftwareMemory;

/**
 * A peer without a token, but with all that a peer can learn and more: keys that it was given itself, keys that were
 * closed, keys of memory that it may not use, registered before, between and after those that it wants; and the
 * addresses of all of them. It tries reads, writes, atomics and invalidations with keys near those, in the order of
 * those, and at random, each on a connection of its own.
 */
@Timeout(value = 10, unit = TimeUnit.MINUTES)
class KeyAttackTest {
    private static final int GUESSES = Integer.getInteger("verbena.soft.guesses", 1_000_000);
    private static final int VICTIMS = 64;
    private static final int BYTES = 64;

    private final SoftwareDomain domain = new SoftwareDomain();
    private final ConnectionMemory own = new ConnectionMemory(domain);
    private final ConnectionMemory anothers = new ConnectionMemory(domain);

    private final ByteBuffer bytes = ByteBuffer.allocateDirect(80);
    private final MemorySegment segment = MemorySegment.ofBuffer(bytes);

    /** What the attacker was answered, and how often. */
    private final TreeMap<String, Integer> answers = new TreeMap<>();

    private int opened;

    @Test
    void aPeerWithoutATokenOpensNothing() {
        long seed =
                Long.getLong("verbena.test.seed", ThreadLocalRandom.current().nextLong());
        System.out.println("aPeerWithoutATokenOpensNothing: -Dverbena.test.seed=" + seed);
        SplittableRandom random = new SplittableRandom(seed);
        Set<Access> all = Set.of(Access.values());
        try (Arena arena = Arena.ofShared()) {
            List<RegisteredMemory> regions = new ArrayList<>();
            List<RegisteredMemory> shared = new ArrayList<>();
            List<RegisteredMemory> bound = new ArrayList<>();
            List<Integer> samples = new ArrayList<>();
            for (int i = 0; i < VICTIMS; i++) {
                RegisteredMemory given = own.register(arena.allocate(BYTES, 8), all);
                RegisteredMemory local = domain.register(arena.allocate(BYTES, 8), Set.of(Access.LOCAL_WRITE));
                RegisteredMemory closed = domain.register(arena.allocate(BYTES, 8), all);
                closed.close();
                shared.add(domain.register(arena.allocate(BYTES, 8), all));
                bound.add(anothers.register(arena.allocate(BYTES, 8), all));
                samples.addAll(List.of(given.remoteKey(), local.remoteKey(), closed.remoteKey()));
                regions.add(given);
                regions.add(local);
            }
            regions.addAll(shared);
            regions.addAll(bound);
            for (int i = 0; i < GUESSES; i++) {
                RegisteredMemory target = (i % 2 == 0 ? shared : bound).get(random.nextInt(VICTIMS));
                guess(guessedKey(random, samples), target.address(), i);
            }
            // By chance the 64 shared ones are met by 1 of 67 million guesses: three times in a run mean something
            // else.
            assertThat(opened).as("guesses that opened something").isLessThan(3);
            answers.remove("opened");
            assertThat(answers.keySet())
                    .as("what the attacker was told")
                    .containsExactlyInAnyOrder("DDP_INVALID_STAG", "RDMAP_INVALID_STAG", "RDMAP_CANNOT_INVALIDATE");
            // And with the keys themselves, what was given to another peer stays shut.
            int before = opened;
            for (RegisteredMemory target : bound) {
                for (int kind = 0; kind < 4; kind++) {
                    guess(target.remoteKey(), target.address(), kind);
                }
                assertThat(target.segment().mismatch(MemorySegment.ofArray(new byte[BYTES])))
                        .isEqualTo(-1);
                assertThat(((SoftwareMemory) target).isOpenToPeers()).isTrue();
            }
            assertThat(opened).isEqualTo(before);
            regions.forEach(RegisteredMemory::close);
        }
    }

    private static int guessedKey(SplittableRandom random, List<Integer> samples) {
        int one = samples.get(random.nextInt(samples.size()));
        int other = samples.get(random.nextInt(samples.size()));
        return switch (random.nextInt(6)) {
            case 0 -> (one >>> 8) + random.nextInt(-64, 65) * ((other >>> 8) - (one >>> 8)) << 8 | random.nextInt(256);
            case 1 -> one & ~0xff | 1 + random.nextInt(255);
            case 2 -> one + random.nextInt(-1_000, 1_001);
            case 3 -> one + random.nextInt(-64, 65) * (other - one);
            case 4 -> one ^ 1 << random.nextInt(32);
            default -> random.nextInt();
        };
    }

    /** One connection, one guess. Its own keys, which it has a right to, do not count. */
    private void guess(int key, long address, int kind) {
        SoftwareMemory hit = domain.find(key);
        Stranger stranger = new Stranger();
        bytes.clear();
        switch (kind % 4) {
            case 0 ->
                bytes.putShort((short) 46)
                        .putShort((short) 0x4141)
                        .putInt(0)
                        .putInt(1)
                        .putInt(1)
                        .putInt(0)
                        .putInt(1)
                        .putLong(0)
                        .putInt(8)
                        .putInt(key)
                        .putLong(address)
                        .putInt(0);
            case 1 ->
                bytes.putShort((short) 22)
                        .putShort((short) 0xc140)
                        .putInt(key)
                        .putLong(address)
                        .putLong(-1)
                        .putInt(0);
            case 2 ->
                bytes.putShort((short) 70)
                        .putShort((short) 0x414a)
                        .putInt(0)
                        .putInt(1)
                        .putInt(1)
                        .putInt(0)
                        .putInt(0)
                        .putInt(1)
                        .putInt(key)
                        .putLong(address)
                        .putLong(1)
                        .putLong(0)
                        .putLong(0)
                        .putLong(0)
                        .putInt(0);
            default ->
                bytes.putShort((short) 18)
                        .putShort((short) 0x4144)
                        .putInt(key)
                        .putInt(0)
                        .putInt(1)
                        .putInt(0)
                        .putInt(0);
        }
        int end = bytes.position();
        stranger.parser.parse(bytes.clear(), segment, 0, end);
        String answer = stranger.answer == null ? "opened" : stranger.answer;
        if (hit != null && hit.isOwnOf(own)) {
            return;
        }
        answers.merge(answer, 1, Integer::sum);
        if (stranger.answer == null) {
            opened++;
        }
    }

    /** The server's end of a connection of the attacker. */
    private final class Stranger implements SegmentSink {
        private final SendRing ring = new SendRing(1, 1, 0);
        private final FpduParser parser =
                new FpduParser(this, domain, own, ring, new OutboundReads(ring, 1), new InboundReads(1), null);

        private @Nullable String answer;

        Stranger() {
            parser.setFeatures(PeerFeatures.OURS);
        }

        @Override
        public boolean isOpen() {
            return answer == null;
        }

        @Override
        public boolean onSegment(int opcode, int key, long offset, int payloadBytes) {
            return true;
        }

        @Override
        public boolean takeReceive(Placement into) {
            into.begin(0, 0, 0, false);
            return true;
        }

        @Override
        public boolean onMessage(MemorySegment memory, long at, int bytes) {
            return false;
        }

        @Override
        public void receiveTooSmall() {}

        @Override
        public void onReceived(Placement receive, int bytes, int flags, int word) {
            receive.end();
        }

        @Override
        public void onAnswered() {}

        @Override
        public void onRefused(TerminateReason reason, String what, @Nullable String denial, byte[] message) {
            answer = reason.name();
        }

        @Override
        public void onTerminate(byte[] message) {}
    }
}
