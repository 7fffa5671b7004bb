package org.verbena.transport.spi;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

class ShrinkerTest {
    @Test
    void leavesWhatItTakesToFail() {
        List<Integer> numbers = IntStream.range(0, 200).boxed().toList();
        assertThat(Shrinker.shrink(numbers, list -> list.containsAll(List.of(17, 120, 199)), 1_000))
                .containsExactly(17, 120, 199);
        assertThat(Shrinker.shrink(numbers, list -> true, 1_000)).isEmpty();
        assertThat(Shrinker.shrink(numbers, list -> list.size() == 200, 1_000)).isEqualTo(numbers);
    }

    @Test
    void stopsWhenItsAttemptsAreSpent() {
        List<Integer> numbers = IntStream.range(0, 200).boxed().toList();
        int[] asked = {0};
        List<Integer> shorter = Shrinker.shrink(
                numbers,
                list -> {
                    asked[0]++;
                    return list.contains(150);
                },
                3);
        assertThat(asked[0]).isEqualTo(3);
        assertThat(shorter).contains(150).hasSizeLessThan(200);
    }
}
