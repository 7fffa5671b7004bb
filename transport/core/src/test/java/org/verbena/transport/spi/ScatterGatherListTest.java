package org.verbena.transport.spi;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.foreign.Arena;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.verbena.transport.RegisteredMemory;

/** Bounds are checked where an element is added, and nowhere after that. */
class ScatterGatherListTest {
    private static final class Region extends RegisteredMemory {
        Region() {
            super(Arena.ofAuto().allocate(64), Set.of());
        }

        @Override
        public int localKey() {
            return 1;
        }

        @Override
        public int remoteKey() {
            return 2;
        }

        @Override
        protected void deregister() {}
    }

    private final Region region = new Region();
    private final ScatterGatherList list = new ScatterGatherList(2);

    private void assertOutside(long offsetBytes, int lengthBytes) {
        assertThatThrownBy(() -> list.add(region, offsetBytes, lengthBytes))
                .isInstanceOf(IndexOutOfBoundsException.class);
        assertThatThrownBy(() -> list.addHeld(region, offsetBytes, lengthBytes))
                .isInstanceOf(IndexOutOfBoundsException.class);
        assertThat(list.count()).isZero();
        assertThat(list.totalBytes()).isZero();
        assertThat(list.isHeldByPoster()).isTrue();
    }

    @Test
    void refusesWhatIsOutsideTheRegion() {
        assertOutside(-1, 1);
        assertOutside(0, -1);
        assertOutside(0, 65);
        assertOutside(64, 1);
        assertOutside(65, 0);
        assertOutside(Long.MAX_VALUE, 8);
        assertOutside(1, Integer.MAX_VALUE);
        assertThat(list.add(region, 64, 0).addHeld(region, 0, 64).totalBytes()).isEqualTo(64);
        assertThat(list.address(0)).isEqualTo(region.address() + 64);
    }

    @Test
    void refusesMoreThanItHolds() {
        list.addHeld(region, 0, 1).addHeld(region, 1, 1);
        assertThatThrownBy(() -> list.add(region, 2, 1)).isInstanceOf(IndexOutOfBoundsException.class);
        assertThat(list.count()).isEqualTo(2);
        assertThat(list.isHeldByPoster()).isTrue();
    }

    @Test
    void isHeldByThePosterIfAllElementsAre() {
        assertThat(list.addHeld(region, 0, 1).isHeldByPoster()).isTrue();
        assertThat(list.add(region, 0, 1).isHeldByPoster()).isFalse();
        assertThat(list.clear().isHeldByPoster()).isTrue();
        assertThat(list.add(region, 0, 1).addHeld(region, 0, 1).isHeldByPoster())
                .isFalse();
    }
}
