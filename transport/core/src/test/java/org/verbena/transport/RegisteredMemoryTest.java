package org.verbena.transport;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.foreign.Arena;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Test;

/** When registered memory is deregistered, and who is notified. */
class RegisteredMemoryTest {
    private final List<String> heard = new ArrayList<>();

    private final class Region extends RegisteredMemory {
        private final boolean refuses;

        Region(Arena arena, boolean refuses) {
            super(arena.allocate(64), Set.of());
            this.refuses = refuses;
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
            if (refuses) {
                throw new IllegalStateException("busy");
            }
            heard.add("deregistered");
        }
    }

    @Test
    void isDeregisteredOnceItsOwnerAndAllWorkHaveReleasedIt() {
        try (Arena arena = Arena.ofConfined()) {
            Region region = new Region(arena, false);
            region.whenGone(() -> heard.add("first"));
            region.whenGone(() -> heard.add("second"));
            region.retain();
            region.close();
            region.close();
            assertThat(region.isClosed()).isTrue();
            assertThat(heard).isEmpty();
            region.release();
            assertThat(heard).containsExactly("deregistered", "first", "second");
            region.whenGone(() -> heard.add("late"));
            assertThat(heard).endsWith("second", "late").hasSize(4);
            assertThat(region.tryRetain()).isFalse();
            assertThatThrownBy(region::retain).isInstanceOf(IllegalStateException.class);
            assertThatThrownBy(region::release).isInstanceOf(IllegalStateException.class);
        }
    }

    @Test
    void hasNoTokenWithoutARightForPeers() {
        try (Arena arena = Arena.ofConfined()) {
            Region region = new Region(arena, false);
            assertThatThrownBy(region::remote)
                    .isInstanceOf(IllegalStateException.class)
                    .hasMessageContaining("gives peers no right: register it with REMOTE_READ");
            region.close();
            assertThatThrownBy(region::remote).hasMessageContaining("is closed");
        }
    }

    @Test
    void staysRegisteredIfTheDeviceRefuses() {
        try (Arena arena = Arena.ofConfined()) {
            Region region = new Region(arena, true);
            region.whenGone(() -> heard.add("gone"));
            assertThatThrownBy(region::close).isInstanceOf(IllegalStateException.class);
            assertThat(heard).isEmpty();
        }
    }
}
