package org.verbena.transport.soft;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Random;
import org.junit.jupiter.api.Test;

/** The arithmetic of fetch-and-add. */
class FieldAddTest {
    @Test
    void addsFieldsAsThePseudoCodeOfRfc7306() {
        Random random = new Random(7306);
        for (int i = 0; i < 20_000; i++) {
            long value = random.nextLong();
            long add = random.nextLong();
            long mask = random.nextLong() & random.nextLong() & random.nextLong();
            assertThat(FieldAtomics.addFields(value, add, mask)).isEqualTo(bitByBit(value, add, mask));
        }
        assertThat(FieldAtomics.addFields(-1, 1, 0)).isZero();
    }

    /** RFC 7306, 5.1.1, transcribed. */
    private static long bitByBit(long original, long add, long mask) {
        long result = 0;
        long carry = 0;
        for (int bit = 0; bit < 64; bit++) {
            long location = 1L << bit;
            long sum = carry + ((original & location) >>> bit) + ((add & location) >>> bit);
            carry = (sum & 2) >> 1;
            if ((sum & 1) != 0) {
                result |= location;
            }
            carry = carry != 0 && (mask & location) == 0 ? 1 : 0;
        }
        return result;
    }
}
