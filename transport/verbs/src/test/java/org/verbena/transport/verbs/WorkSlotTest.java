package org.verbena.transport.verbs;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.foreign.Arena;
import java.util.Set;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.verbena.transport.RegisteredMemory;
import org.verbena.transport.spi.ScatterGatherList;

@Tag("no-stub")
class WorkSlotTest {
    private final WorkSlot slot = new WorkSlot();
    private final WorkSlot other = new WorkSlot();

    /** A region that tells when it is gone. */
    private static final class Region extends RegisteredMemory {
        private boolean gone;

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
        protected void deregister() {
            gone = true;
        }
    }

    @Test
    void holdsRegionsUntilTheirSlotIsReleased() {
        Region one = new Region();
        Region two = new Region();
        slot.hold(new ScatterGatherList(2).add(one, 0, 8).add(two, 0, 8));
        other.hold(new ScatterGatherList(1).add(one, 8, 8));
        one.close();
        two.close();
        assertThat(one.gone || two.gone).isFalse();
        slot.release();
        assertThat(two.gone).isTrue();
        assertThat(one.gone).isFalse();
        slot.release();
        assertThat(one.gone).isFalse();
        other.release();
        assertThat(one.gone).isTrue();
    }

    @Test
    void holdsAllOrNone() {
        Region one = new Region();
        Region gone = new Region();
        gone.close();
        ScatterGatherList list = new ScatterGatherList(2).add(one, 0, 8).add(gone, 0, 8);
        assertThatThrownBy(() -> slot.hold(list))
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("closed");
        one.close();
        assertThat(one.gone).isTrue();
    }

    @Test
    void leavesToThePosterWhatThePosterKeepsOpen() {
        Region mine = new Region();
        slot.hold(new ScatterGatherList(2).addHeld(mine, 0, 8));
        mine.close();
        assertThat(mine.gone).isTrue();
        slot.release();
        assertThatThrownBy(() -> slot.hold(new ScatterGatherList(2).addHeld(mine, 0, 8)))
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("closed");
        slot.release();
    }

    @Test
    void holdsAllIfThePosterDoesNotKeepEachOfThemOpen() {
        Region mine = new Region();
        Region other = new Region();
        slot.hold(new ScatterGatherList(2).addHeld(mine, 0, 8).add(other, 0, 8));
        mine.close();
        other.close();
        assertThat(mine.gone || other.gone).isFalse();
        slot.release();
        assertThat(mine.gone && other.gone).isTrue();
    }

    @Test
    void keepsForGoodWhatTheDeviceMayStillUse() {
        Region mine = new Region();
        slot.hold(new ScatterGatherList(2).addHeld(mine, 0, 8));
        slot.forget();
        mine.close();
        slot.release();
        assertThat(mine.gone).isFalse();
    }

    @Test
    void forgetsWithoutReleasing() {
        Region one = new Region();
        slot.hold(new ScatterGatherList(1).add(one, 0, 8));
        one.close();
        slot.forget();
        slot.release();
        assertThat(one.gone).isFalse();
    }
}
