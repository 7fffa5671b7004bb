package org.verbena.api.internal.request;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.HashSet;
import java.util.Set;
import java.util.function.LongUnaryOperator;
import org.junit.jupiter.api.Test;

/** Peers choose the numbers of their requests: whichever they choose, they must not meet in one place of the map. */
class CorrelationMapTest {
    private static final int COUNT = 1 << 12;

    /** 2^64 divided by the golden ratio: what one takes to spread numbers in a row. */
    private static final long GOLDEN = 0x9e37_79b9_7f4a_7c15L;

    @Test
    void numbersInARowAreSpread() {
        assertSpread("in a row", i -> i);
    }

    @Test
    void numbersThatDifferInFewBitsAreSpread() {
        for (int shift = 1; shift <= 44; shift++) {
            int bits = shift;
            assertSpread("multiples of 2^" + bits, i -> i << bits);
        }
    }

    /** A multiplier that everyone knows can be inverted. */
    @Test
    void numbersMadeForAKnownMultiplierAreSpread() {
        long inverse = GOLDEN; // Newton's method: each step doubles the bits that are right
        for (int i = 0; i < 6; i++) {
            inverse *= 2 - GOLDEN * inverse;
        }
        assertThat(inverse * GOLDEN).isEqualTo(1);
        long[] numbers = new long[COUNT];
        int found = 0;
        for (long half = 1; found < COUNT; half++) {
            long number = (half << 32 | half) * inverse;
            if ((number & Frames.CORRELATION_MASK) == number) {
                numbers[found++] = number;
            }
        }
        assertSpread("made for a multiplier", i -> numbers[(int) i]);
    }

    /** Of random keys, nearly nine in ten have a place of their own if there are four times as many places. */
    private static void assertSpread(String which, LongUnaryOperator numbers) {
        CorrelationMap<Long> all = new CorrelationMap<>();
        Set<Integer> places = new HashSet<>();
        for (int i = 0; i < COUNT; i++) {
            long key = all.key(numbers.applyAsLong(i));
            places.add((int) (key ^ key >>> 32) & (4 * COUNT - 1)); // as the map has them
        }
        assertThat(places).as(which).hasSizeGreaterThan(COUNT * 3 / 4);
    }

    @Test
    void findsWhatItHas() {
        CorrelationMap<Long> all = new CorrelationMap<>();
        for (long number = 0; number < COUNT; number++) {
            all.put(number << 40, number);
        }
        assertThat(all.size()).isEqualTo(COUNT);
        for (long number = 0; number < COUNT; number++) {
            assertThat(all.get(number << 40)).isEqualTo(number);
            all.remove(number << 40);
        }
        assertThat(all.isEmpty()).isTrue();
    }
}
