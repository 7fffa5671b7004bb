package org.verbena.ratis;

import static org.assertj.core.api.Assertions.assertThat;

import org.apache.ratis.protocol.ClientId;
import org.apache.ratis.protocol.RaftClientRequest;
import org.apache.ratis.protocol.RaftGroupId;
import org.apache.ratis.protocol.RaftPeerId;
import org.apache.ratis.util.ProtoUtils;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(10)
class SentInOrderTest {
    private static final ClientId CLIENT = ClientId.randomId();
    private static final RaftGroupId GROUP = RaftGroupId.randomId();

    private final Object connection = new Object();
    private final Object other = new Object();
    private final SentInOrder sent = new SentInOrder();

    private static RaftClientRequest request(long number, boolean first) {
        return RaftClientRequest.newBuilder()
                .setClientId(CLIENT)
                .setLeaderId(RaftPeerId.valueOf("s0"))
                .setGroupId(GROUP)
                .setCallId(number)
                .setType(RaftClientRequest.writeRequestType())
                .setSlidingWindowEntry(ProtoUtils.toSlidingWindowEntry(number, first))
                .build();
    }

    private boolean isFirst(long number, Object on) {
        return sent.sent(request(number, false), on).getSlidingWindowEntry().getIsFirst();
    }

    @Test
    void theFirstOnAnotherConnectionIsMarked() {
        assertThat(isFirst(1, connection)).isTrue();
        sent.replied(request(1, true));
        assertThat(isFirst(2, connection)).isFalse();
        sent.replied(request(2, false));
        assertThat(isFirst(3, other)).isTrue();
        assertThat(isFirst(4, other)).isFalse();
    }

    /** One before it comes later, and is the first. */
    @Test
    void noneIsMarkedBehindOneWithoutAReply() {
        assertThat(isFirst(1, connection)).isTrue();
        assertThat(isFirst(2, connection)).isFalse();
        sent.replied(request(1, true));
        assertThat(isFirst(3, other)).isFalse();
        assertThat(isFirst(2, other)).isTrue();
        assertThat(isFirst(4, other)).isFalse();
    }

    @Test
    void whatRatisMarksStaysSo() {
        RaftClientRequest first = request(1, true);
        assertThat(sent.sent(first, connection)).isSameAs(first);
        sent.replied(first);
        assertThat(isFirst(2, connection)).isFalse();
    }
}
