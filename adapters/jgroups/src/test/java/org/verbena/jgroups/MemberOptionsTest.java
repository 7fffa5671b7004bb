package org.verbena.jgroups;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import org.jgroups.BytesMessage;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.api.RdmaChannelOption;
import org.verbena.transport.PreSharedKeys;

/** Members that prove a key, and members on different providers. */
@Timeout(120)
class MemberOptionsTest {
    private static final byte[] HELLO = {1, 2, 3};

    private final List<Member> open = new ArrayList<>();

    private Member join(Member.Place place, int number, Consumer<VERBENA> options) throws Exception {
        Member member = Member.join(place, number, options);
        open.add(member);
        return member;
    }

    @AfterEach
    void closeAll() {
        open.reversed().forEach(Member::close);
    }

    private static void tellAll(Member from, Member... to) throws Exception {
        from.channel().send(new BytesMessage(null, HELLO));
        for (Member member : to) {
            assertThat(member.take().<byte[]>getPayload()).isEqualTo(HELLO);
        }
    }

    @Test
    void onlyMembersWithTheKeyFindEachOther() throws Exception {
        Member.Place place = Member.Place.of("soft", "127.0.0.1", 3).withJoinMillis(1_000);
        Consumer<VERBENA> keyed = transport -> transport.option(
                RdmaChannelOption.PRE_SHARED_KEYS,
                PreSharedKeys.of("members", new byte[PreSharedKeys.MIN_SECRET_BYTES]));
        Member first = join(place, 0, keyed);
        Member second = join(place, 1, keyed);
        Member.awaitView(first, second);
        Member stranger = join(place, 2, transport -> {});
        Member.awaitView(stranger);
        tellAll(second, first, second);
        Member.awaitView(first, second);
        assertThat(stranger.hasMessages()).isFalse();
    }

    /** Two take shared memory, and the third, which has none, the software provider. */
    @Test
    void membersOnALadderMeetWhatEachOtherHas() throws Exception {
        Member.Place ladder = Member.Place.of("ladder", "127.0.0.1", 3);
        Member first = join(ladder, 0, transport -> {});
        Member second = join(ladder, 1, transport -> {});
        Member third = join(ladder.withProvider("soft"), 2, transport -> {});
        Member.awaitView(first, second, third);
        tellAll(first, first, second, third);
        tellAll(third, first, second, third);
    }
}
