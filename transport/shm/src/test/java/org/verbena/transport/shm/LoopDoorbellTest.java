package org.verbena.transport.shm;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.Arrays;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.transport.ffm.MappedMemory;
import org.verbena.transport.shm.ffm.ProcessFiles;
import org.verbena.transport.shm.ffm.SharedFile;

/** The members of one doorbell: who learns of the page, and whose bit is handled. */
@Timeout(240)
class LoopDoorbellTest {
    private static final class Member implements LoopDoorbell.Member {
        private final @Nullable RuntimeException failure;
        private @Nullable SharedFile page;
        private int announced;
        private int polled;
        private int looked;
        private boolean isDue;

        Member(@Nullable RuntimeException failure) {
            this.failure = failure;
        }

        @Override
        public void announceDoorbell(SharedFile made, int slot) {
            page = made;
            announced++;
        }

        @Override
        public int pollRung() {
            polled++;
            if (failure != null) {
                throw failure;
            }
            return 1;
        }

        @Override
        public int look() {
            looked++;
            return 0;
        }

        @Override
        public boolean awaitRing() {
            return !isDue;
        }
    }

    /** Room for one page. */
    private final PeerMappings mappings = new PeerMappings(16, 1);

    /** Runs one task of a loop, between whose polls nothing else looks at the doorbell. */
    private void onLoop(Function<LoopDoorbell, Void> action) throws IOException {
        PeerProcess process = new PeerProcesses(mappings).find(ShmContext.PID);
        try (ShmFixture fixture = new ShmFixture(ShmOptions.DEFAULTS)) {
            fixture.onLoop(fixture.serverLoop(), io -> action.apply(new LoopDoorbell(io, process)));
        } finally {
            process.leave();
        }
    }

    private void takeRoom() {
        try {
            mappings.addRing();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    @Test
    void aPageThatCouldNotBeMadeIsMadeForALaterMember() throws IOException {
        onLoop(doorbell -> {
            takeRoom();
            Member[] members = {new Member(null), new Member(null), new Member(null), new Member(null)};
            for (int i = 0; i < 2; i++) {
                int slot = doorbell.join(members[i]);
                assertThat(doorbell.announce(members[i], slot)).isFalse();
            }
            mappings.forgetRing();
            for (int i = 2; i < 4; i++) {
                int slot = doorbell.join(members[i]);
                assertThat(doorbell.announce(members[i], slot)).isTrue();
            }
            assertThat(members).extracting(member -> member.announced).containsOnly(1);
            for (int i = 0; i < members.length; i++) {
                doorbell.leave(i);
            }
            takeRoom(); // the page is gone
            return null;
        });
    }

    @Test
    void bitsOutlastAMemberThatFails() throws IOException {
        onLoop(doorbell -> {
            RuntimeException failure = new IllegalStateException("expected");
            Member[] members = {new Member(null), new Member(failure), new Member(null)};
            for (Member member : members) {
                boolean unused = doorbell.announce(member, doorbell.join(member));
            }
            ring(members[0].page, members.length);
            assertThatThrownBy(doorbell::poll).isSameAs(failure);
            assertThat(doorbell.poll()).isEqualTo(1);
            assertThat(members).extracting(member -> member.polled).containsOnly(1);
            for (int i = 0; i < members.length; i++) {
                doorbell.leave(i);
            }
            takeRoom(); // the page is gone
            return null;
        });
    }

    @Test
    void fewMembersAreLookedAtAndManyRing() throws IOException {
        onLoop(doorbell -> {
            Member[] members = new Member[ShmIoHandler.FEW + 1];
            for (int i = 0; i < ShmIoHandler.FEW; i++) {
                members[i] = new Member(null);
                boolean announced = doorbell.announce(members[i], doorbell.join(members[i]));
                assertThat(announced).isEqualTo(i > 0);
            }
            SharedFile page = members[0].page;
            assertThat(isLooking(page)).isTrue();
            assertThat(doorbell.poll()).isZero();
            assertThat(Arrays.stream(members, 0, ShmIoHandler.FEW))
                    .extracting(member -> member.looked)
                    .containsOnly(1);

            members[3].isDue = true;
            assertThat(doorbell.fallAsleep()).as("sleeps over a message").isFalse();
            assertThat(isLooking(page)).isTrue();

            Member last = new Member(null);
            int slot = doorbell.join(last);
            assertThat(doorbell.announce(last, slot)).isTrue();
            assertThat(isLooking(page)).as("with one more").isFalse();
            assertThat(doorbell.poll()).as("what has come before").isEqualTo(1);
            assertThat(members[3].polled).isEqualTo(1);
            assertThat(last.looked).isZero();

            doorbell.leave(slot);
            assertThat(isLooking(page)).as("with one fewer").isTrue();
            members[3].isDue = false;
            assertThat(doorbell.fallAsleep()).isTrue();
            assertThat(isLooking(page)).as("asleep").isFalse();
            for (int i = 0; i < ShmIoHandler.FEW; i++) {
                doorbell.leave(i);
            }
            takeRoom(); // the page is gone
            return null;
        });
    }

    private static boolean isLooking(SharedFile page) {
        return Doorbell.isLooking(page.memory());
    }

    private static void ring(SharedFile page, int slots) {
        try (ProcessFiles files = ProcessFiles.of(ShmContext.PID);
                SharedFile opened = files.open(page.descriptor(), Doorbell.BYTES, true)) {
            for (int i = 0; i < slots; i++) {
                Doorbell.ring(opened.memory(), i);
            }
            MappedMemory.unmap(opened.memory());
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
