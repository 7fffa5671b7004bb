package org.verbena.verbs.packet;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.foreign.Arena;
import java.util.EnumSet;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.verbs.CompletionQueue;
import org.verbena.verbs.CompletionReader;
import org.verbena.verbs.Context;
import org.verbena.verbs.MemoryRegion;
import org.verbena.verbs.ProtectionDomain;
import org.verbena.verbs.Stub;
import org.verbena.verbs.Verbs;
import org.verbena.verbs.VerbsException;
import org.verbena.verbs.ffm.Errno;
import org.verbena.verbs.memory.AccessFlag;
import org.verbena.verbs.work.CompletionField;
import org.verbena.verbs.work.WorkCompletionOpcode;

/** Shared receive queues that match tags, and the operations on their lists. */
@Timeout(240)
class TagListTest {
    private Arena arena;
    private Context context;
    private ProtectionDomain domain;
    private CompletionQueue completions;
    private MemoryRegion region;
    private TagList list;

    @BeforeEach
    void open() throws Exception {
        Stub.install();
        arena = Arena.ofShared();
        context = Verbs.device("stub0").open();
        domain = context.allocateProtectionDomain();
        completions = context.createCompletionQueue(8);
        region = domain.registerMemory(arena.allocate(64, 8), EnumSet.of(AccessFlag.LOCAL_WRITE));
        list = TagList.create(domain, 4, 1, 16, 3, completions);
    }

    @AfterEach
    void close() {
        list.close();
        region.close();
        completions.close();
        domain.close();
        context.close();
        arena.close();
        assertThat(Stub.live()).isZero();
    }

    private String at(long offsetBytes, int lengthBytes) {
        return Long.toHexString(region.address() + offsetBytes) + "+" + lengthBytes + "/"
                + Integer.toHexString(region.localKey());
    }

    @Test
    void aQueueIsCreatedForTagsAndTakesReceivesToo() {
        assertThat(Stub.text("stub_called")).isEqualTo("stub_create_srq_ex");
        // TYPE, PD, CQ and TM; IBV_SRQT_TM; no XRC domain.
        assertThat(Stub.number("stub_argument", 0)).isEqualTo(1 | 1 << 1 | 1 << 3 | 1 << 4);
        assertThat(Stub.number("stub_argument", 1)).isEqualTo(2);
        assertThat(Stub.number("stub_argument", 2)).isZero();
        assertThat(Stub.number("stub_argument", 3)).isEqualTo(completions.nativeAddress());
        assertThat(list.capacityWrs()).isEqualTo(3);
        assertThat(list.maxSges()).isEqualTo(2);
        list.queue().receiveQueue().receive(1).sge(region, 0, 8);
        list.queue().receiveQueue().flush();
        assertThat(Stub.postedCount()).isEqualTo(1);
        assertThatIllegalStateException().isThrownBy(completions::close).withMessageContaining("SharedReceiveQueue");
        assertThatIllegalArgumentException().isThrownBy(() -> TagList.create(domain, 1, 1, 0, 1, completions));
        assertThatIllegalArgumentException().isThrownBy(() -> TagList.create(domain, 1, 1, 1, 0, completions));
        Stub.failNext("stub_create_srq_ex", Errno.EOPNOTSUPP);
        assertThatThrownBy(() -> TagList.create(domain, 1, 1, 1, 1, completions))
                .hasMessageContaining("tag matching")
                .hasMessageContaining("maxTags");
    }

    @Test
    void operationsArriveAsGivenAndGiveHandles() {
        int first = list.add(1, true, 42, 0x1234, -1)
                .sge(region, 8, 16)
                .sge(region, 32, 4)
                .slot();
        int second = list.add(2, false, 43, 0x8000000000000000L, 0xff00000000000000L)
                .processed(-1)
                .slot();
        assertThatIllegalStateException().isThrownBy(() -> list.handle(first)).withMessageContaining("flush first");
        list.synchronize(3, true, 5);
        int third = list.slot();
        list.flush();
        assertThat(Stub.text("stub_text"))
                .isEqualTo("[id=1 op=0 flags=1 unexpected=0 receive=42 tag=1234 mask=ffffffffffffffff " + at(8, 16)
                        + " " + at(32, 4) + "]"
                        + "[id=2 op=0 flags=2 unexpected=4294967295 receive=43 tag=8000000000000000"
                        + " mask=ff00000000000000]"
                        + "[id=3 op=2 flags=3 unexpected=5]");
        assertThat(list.handle(first)).isEqualTo(7);
        assertThat(list.handle(second)).isEqualTo(8);
        assertThatIllegalStateException().isThrownBy(() -> list.handle(third));
        assertThatThrownBy(() -> list.handle(3)).isInstanceOf(IndexOutOfBoundsException.class);
        assertThatThrownBy(() -> list.handle(-1)).isInstanceOf(IndexOutOfBoundsException.class);
        Stub.call("stub_tag_ops_done", list.queue().nativeAddress());
        list.remove(4, true, 8);
        // Its slot is in use again.
        assertThatIllegalStateException().isThrownBy(() -> list.handle(first));
        assertThat(list.handle(second)).isEqualTo(8);
        list.flush();
        assertThat(Stub.text("stub_text")).isEqualTo("[id=4 op=1 flags=1 unexpected=0 handle=8]");
    }

    @Test
    void refusedOperationsStayStaged() {
        list.add(1, true, 1, 1, -1);
        list.flush();
        int taken = list.add(2, true, 2, 2, -1).slot();
        list.add(3, true, 3, 3, -1);
        int refused = list.add(4, true, 4, 4, -1).slot();
        assertThat(list.isFull()).isTrue();
        assertThatIllegalStateException().isThrownBy(() -> list.synchronize(5, true, 0));
        assertThatThrownBy(list::flush)
                .hasMessageContaining("ibv_post_srq_ops")
                .hasMessageContaining("1 not taken")
                .hasMessageContaining("is full");
        assertThat(list.stagedWrs()).isEqualTo(1);
        assertThat(list.handle(taken)).isEqualTo(8);
        assertThatIllegalStateException().isThrownBy(() -> list.handle(refused));
        assertThat(list.tryFlush()).isEqualTo(Errno.ENOMEM);
        Stub.call("stub_tag_ops_done", list.queue().nativeAddress());
        list.flush();
        assertThat(Stub.text("stub_text")).startsWith("[id=4 ");
        assertThat(list.handle(refused)).isEqualTo(7);
        Stub.failNext("stub_post_srq_ops", Errno.EINVAL);
        list.synchronize(6, true, 1);
        assertThatThrownBy(list::flush).hasMessageContaining("maxTagSges");
        list.discard();
        assertThat(list.stagedWrs()).isZero();
    }

    @Test
    void whatWouldHarmTheDeviceIsRefused() {
        // Devices look handles up in a table without looking at its end.
        assertThatIllegalArgumentException()
                .isThrownBy(() -> list.remove(1, true, 0))
                .withMessageContaining("has the handle 0");
        list.add(1, true, 1, 1, -1);
        list.flush();
        assertThatIllegalArgumentException().isThrownBy(() -> list.remove(1, true, 8));
        assertThatIllegalArgumentException()
                .isThrownBy(() -> list.remove(1, true, -1))
                .withMessageContaining("4294967295");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> list.add(1, true, 1, 3, 1))
                .withMessageContaining("outside of the mask");
        assertThat(list.stagedWrs()).isZero();
        list.remove(1, true, 7);
        assertThatIllegalStateException()
                .isThrownBy(() -> list.sge(region, 0, 8))
                .withMessageContaining("adds a tag");
        list.discard();
        assertThatIllegalStateException().isThrownBy(() -> list.sge(region, 0, 8));
        assertThatIllegalStateException().isThrownBy(list::slot);
        assertThatIllegalStateException().isThrownBy(() -> list.processed(1));
        list.add(2, true, 2, 2, -1);
        assertThatThrownBy(() -> list.sge(region, 60, 8)).isInstanceOf(IndexOutOfBoundsException.class);
        list.add(2, true, 2, 2, -1).sge(region, 0, 1).sge(region, 0, 1);
        assertThatIllegalArgumentException()
                .isThrownBy(() -> list.sge(region, 0, 1))
                .withMessageContaining("more than 2");
        assertThat(list.stagedWrs()).isZero();
        TagList gone = TagList.create(domain, 1, 1, 1, 1, completions);
        gone.add(1, true, 1, 1, -1);
        gone.flush();
        gone.close();
        assertThatIllegalStateException().isThrownBy(() -> gone.add(1, true, 1, 1, -1));
        assertThatIllegalStateException().isThrownBy(() -> gone.remove(1, true, 7));
        assertThatIllegalStateException().isThrownBy(gone::flush);
        assertThatIllegalStateException().isThrownBy(() -> gone.handle(0));
    }

    @Test
    void completionsReportTags() {
        try (CompletionQueue extended =
                context.createExtendedCompletionQueue(8, null, 0, EnumSet.of(CompletionField.TM_INFO))) {
            CompletionReader reader = extended.reader();
            // The stub's completions have the flag of immediate data alone.
            Stub.call("stub_complete_ex", extended.nativeAddress(), 1L, 0, 133, 0, 0);
            assertThat(reader.tryNext()).isTrue();
            assertThat(reader.opcode()).isEqualTo(WorkCompletionOpcode.TM_RECV);
            assertThat(reader.tag()).isEqualTo(77);
            assertThat(reader.isTagMatched()).isFalse();
            assertThat(reader.isTagDataValid()).isFalse();
            assertThat(reader.isTagSynchronizationRequested()).isFalse();
            for (int flag : new int[] {1 << 4, 1 << 5, 1 << 6}) {
                Stub.call("stub_complete_flags", extended.nativeAddress(), flag);
                Stub.call("stub_complete_ex", extended.nativeAddress(), 1L, 0, 133, 0, 0);
                assertThat(reader.tryNext()).isTrue();
                assertThat(reader.isTagSynchronizationRequested()).isEqualTo(flag == 1 << 4);
                assertThat(reader.isTagMatched()).isEqualTo(flag == 1 << 5);
                assertThat(reader.isTagDataValid()).isEqualTo(flag == 1 << 6);
            }
        }
    }

    @Test
    void olderProvidersAreSupported() {
        Stub.call("stub_without_later", 1);
        try (Context older = Verbs.device("stub0").open();
                ProtectionDomain olderDomain = older.allocateProtectionDomain();
                CompletionQueue olderCompletions = older.createCompletionQueue(8)) {
            assertThatThrownBy(() -> TagList.create(olderDomain, 1, 1, 1, 1, olderCompletions))
                    .isInstanceOf(VerbsException.class)
                    .hasMessageContaining("ibv_create_srq_ex")
                    .hasMessageContaining("EOPNOTSUPP");
            assertThatIllegalArgumentException()
                    .isThrownBy(() -> TagList.create(domain, 1, 1, 1, 1, olderCompletions))
                    .withMessageContaining("another context");
        }
    }
}
