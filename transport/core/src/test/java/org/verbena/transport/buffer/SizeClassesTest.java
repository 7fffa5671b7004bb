package org.verbena.transport.buffer;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Random;
import org.junit.jupiter.api.Test;

/** Block sizes, and what they cost. */
class SizeClassesTest {
    private static final int LARGEST_BYTES = 1 << 30;

    @Test
    void givesTheSmallestBlockThatFits() {
        assertThat(SizeClasses.bytesOf(SizeClasses.indexOf(0))).isEqualTo(64);
        int classes = SizeClasses.indexOf(LARGEST_BYTES) + 1;
        int before = 0;
        for (int i = 0; i < classes; i++) {
            int bytes = SizeClasses.bytesOf(i);
            assertThat(bytes).isGreaterThan(before);
            assertThat(bytes % SizeClasses.QUANTUM_BYTES).isZero();
            assertThat(SizeClasses.indexOf(bytes)).isEqualTo(i);
            assertThat(SizeClasses.indexOf(before + 1)).isEqualTo(i);
            before = bytes;
        }
        assertThat(before).isEqualTo(LARGEST_BYTES);
    }

    @Test
    void wastesAQuarterAtTheMostAndATenthOnAverage() {
        long seed = System.nanoTime();
        Random random = new Random(seed);
        long asked = 0;
        long given = 0;
        for (int i = 0; i < 100_000; i++) {
            int bytes = (int) Math.pow(2, 9 + random.nextDouble() * 12) + 1;
            int block = SizeClasses.bytesOf(SizeClasses.indexOf(bytes));
            assertThat(block).as("seed %d, %d bytes", seed, bytes).isGreaterThanOrEqualTo(bytes);
            assertThat(block).as("seed %d, %d bytes", seed, bytes).isLessThanOrEqualTo(bytes + bytes / 4 + 1);
            asked += bytes;
            given += block;
        }
        assertThat((double) (given - asked) / asked).as("seed %d", seed).isLessThan(0.105);
    }

    @Test
    void cutsSlabsWithLittleRemainder() {
        for (int i = 0; i <= SizeClasses.indexOf(2 << 20); i++) {
            int block = SizeClasses.bytesOf(i);
            int slab = Slab.pagesFor(block) * Chunk.PAGE_BYTES;
            int wasted = slab % block;
            assertThat(wasted).as("slab of %d for blocks of %d", slab, block).isLessThanOrEqualTo(slab / 16);
            assertThat(slab / block).isPositive();
        }
    }
}
