package org.verbena.transport.shm;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.Arena;
import org.junit.jupiter.api.Test;

class RegionTableTest {
    private static final int KEY = 0x1234_5678;

    private final RegionTable table =
            new RegionTable(Arena.ofAuto().allocate(RegionTable.BYTES + 64, 64), 0, RegionTable.BYTES);

    private int add(int key) {
        return table.add(key, 1, 0x1000, 4096, 0, RegionTable.WRITE);
    }

    @Test
    void findsWhatWasAddedUntilItIsRemoved() {
        int entry = add(KEY);
        long at = table.find(KEY);
        assertThat(at).isNotNegative();
        assertThat(table.address(at)).isEqualTo(0x1000);
        assertThat(table.lengthBytes(at)).isEqualTo(4096);
        assertThat(table.isStill(at, KEY)).isTrue();
        table.remove(entry);
        assertThat(table.find(KEY)).isNegative();
        assertThat(table.isStill(at, KEY)).isFalse();
        assertThat(table.enter(at, KEY)).isFalse();
    }

    @Test
    void takesNoMoreThanThereIsRoomForInReach() {
        int room = 0;
        while (room < 1000 && add(KEY + (room << 8)) >= 0) {
            room++;
        }
        assertThat(room).isBetween(1, 100);
        assertThat(table.find(KEY + (room << 8))).isNegative();
    }

    @Test
    void showsAWriterUntilItLeaves() {
        int entry = add(KEY);
        assertThat(table.isVisited(KEY)).isFalse();
        assertThat(table.enter(table.find(KEY), KEY)).isTrue();
        table.remove(entry);
        assertThat(table.isVisited(KEY)).isTrue();
        table.exit();
        assertThat(table.isVisited(KEY)).isFalse();
    }
}
