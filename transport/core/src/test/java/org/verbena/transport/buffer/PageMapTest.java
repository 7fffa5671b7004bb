package org.verbena.transport.buffer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;

/** The page map compared with a plain bit set. */
class PageMapTest {
    @Test
    void findsTheFirstRunAsAPlainSearchWould() {
        long seed = System.nanoTime();
        Random random = new Random(seed);
        for (int pages : new int[] {1, 63, 64, 65, 200, 512}) {
            PageMap map = new PageMap(pages);
            BitSet model = new BitSet(pages);
            List<int[]> runs = new ArrayList<>();
            for (int step = 0; step < 5_000; step++) {
                if (runs.isEmpty() || random.nextBoolean()) {
                    int count = 1 + random.nextInt(Math.max(1, random.nextInt(pages)));
                    int expected = firstFit(model, pages, count);
                    assertThat(map.take(count))
                            .as("seed %d, %d pages, step %d", seed, pages, step)
                            .isEqualTo(expected);
                    if (expected >= 0) {
                        model.set(expected, expected + count);
                        runs.add(new int[] {expected, count});
                    }
                } else {
                    int[] run = runs.remove(random.nextInt(runs.size()));
                    map.give(run[0], run[1]);
                    model.clear(run[0], run[0] + run[1]);
                }
                assertThat(map.freePages()).as("seed %d", seed).isEqualTo(pages - model.cardinality());
            }
        }
    }

    private static int firstFit(BitSet model, int pages, int count) {
        for (int start = 0; start + count <= pages; start++) {
            int end = model.nextSetBit(start);
            if (end < 0 || end >= start + count) {
                return start;
            }
        }
        return -1;
    }

    @Test
    void rejectsAPageReturnedTwice() {
        PageMap map = new PageMap(8);
        map.take(4);
        map.give(0, 4);
        assertThatThrownBy(() -> map.give(0, 4)).isInstanceOf(IllegalStateException.class);
    }
}
