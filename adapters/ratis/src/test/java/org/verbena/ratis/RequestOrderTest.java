package org.verbena.ratis;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import org.apache.ratis.protocol.ClientId;
import org.apache.ratis.protocol.Message;
import org.apache.ratis.protocol.RaftClientReply;
import org.apache.ratis.protocol.RaftClientRequest;
import org.apache.ratis.protocol.RaftGroupId;
import org.apache.ratis.protocol.RaftGroupMemberId;
import org.apache.ratis.protocol.RaftPeerId;
import org.apache.ratis.protocol.exceptions.AlreadyClosedException;
import org.apache.ratis.protocol.exceptions.LeaderNotReadyException;
import org.apache.ratis.protocol.exceptions.RaftException;
import org.apache.ratis.protocol.exceptions.ResourceUnavailableException;
import org.apache.ratis.protocol.exceptions.StateMachineException;
import org.apache.ratis.util.ProtoUtils;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(10)
class RequestOrderTest {
    private static final RaftPeerId SERVER = RaftPeerId.valueOf("s0");
    private static final RaftGroupId GROUP = RaftGroupId.randomId();
    private static final ClientId CLIENT = ClientId.randomId();
    private static final int REQUESTS = 10;
    private static final int BYTES = 1_000;

    private final WaitingLimit limit = new WaitingLimit(REQUESTS, BYTES);
    private final List<Long> submitted = new ArrayList<>();
    private final Map<Long, CompletableFuture<RaftClientReply>> replies = new HashMap<>();
    private final List<Runnable> cancels = new ArrayList<>();
    private final RequestOrder order = new RequestOrder(this::submit, limit);

    private CompletableFuture<RaftClientReply> submit(RaftClientRequest request) {
        long number = request.getSlidingWindowEntry().getSeqNum();
        submitted.add(number);
        return replies.computeIfAbsent(number, absent -> new CompletableFuture<>());
    }

    private static RaftClientRequest request(long number, boolean first, int length) {
        return RaftClientRequest.newBuilder()
                .setClientId(CLIENT)
                .setLeaderId(SERVER)
                .setGroupId(GROUP)
                .setCallId(number)
                .setMessage(Message.valueOf("x".repeat(length)))
                .setType(RaftClientRequest.writeRequestType())
                .setSlidingWindowEntry(ProtoUtils.toSlidingWindowEntry(number, first))
                .build();
    }

    private CompletableFuture<RaftClientReply> first(long number) {
        return order.receive(request(number, true, 1), cancels::add);
    }

    private CompletableFuture<RaftClientReply> later(long number) {
        return order.receive(request(number, false, 1), cancels::add);
    }

    private void succeed(long number) {
        replies.remove(number)
                .complete(RaftClientReply.newBuilder()
                        .setRequest(request(number, false, 1))
                        .setSuccess()
                        .build());
    }

    private void replyWith(long number, RaftException failure) {
        replies.remove(number).complete(replyOf(number, failure));
    }

    private static RaftClientReply replyOf(long number, RaftException failure) {
        return RaftClientReply.newBuilder()
                .setRequest(request(number, false, 1))
                .setException(failure)
                .build();
    }

    private static LeaderNotReadyException notReady() {
        return new LeaderNotReadyException(RaftGroupMemberId.valueOf(SERVER, GROUP));
    }

    /** All that may wait is free. */
    private void assertNothingWaits() {
        for (int count = 0; count < REQUESTS; count++) {
            assertThat(limit.acquire(BYTES / REQUESTS)).isTrue();
        }
    }

    @Test
    void whatComesTooEarlyWaits() {
        first(1);
        CompletableFuture<RaftClientReply> fourth = later(4);
        later(3);
        assertThat(submitted).containsExactly(1L);
        later(2);
        assertThat(submitted).containsExactly(1L, 2L, 3L, 4L);
        assertThat(fourth).isNotDone();
        succeed(4);
        assertThat(fourth).isCompleted();
        assertNothingWaits();
    }

    @Test
    void nothingIsHandedOnBeforeTheFirst() {
        later(8);
        later(7);
        assertThat(submitted).isEmpty();
        first(6);
        assertThat(submitted).containsExactly(6L, 7L, 8L);
    }

    /** On one connection: the leader was not ready. */
    @Test
    void whatHasFailedIsExpectedAgain() {
        first(1);
        succeed(1);
        for (long number = 2; number <= 5; number++) {
            later(number);
        }
        replyWith(3, notReady());
        replies.remove(5L).completeExceptionally(new ResourceUnavailableException("full"));
        submitted.clear();
        later(6);
        later(5);
        assertThat(submitted).isEmpty();
        first(3);
        assertThat(submitted).containsExactly(3L, 5L, 6L);
    }

    @Test
    void whatFailsAtOnceHoldsUpTheRest() {
        replies.put(2L, CompletableFuture.completedFuture(replyOf(2, notReady())));
        first(1);
        later(3);
        assertThat(later(2)).isCompleted();
        assertThat(submitted).containsExactly(1L, 2L);
        replies.remove(2L);
        later(2);
        assertThat(submitted).containsExactly(1L, 2L, 2L, 3L);
    }

    /** The client takes it as the reply. */
    @Test
    void anExceptionOfTheStateMachineIsNotExpectedAgain() {
        first(1);
        replyWith(1, new StateMachineException("refused"));
        later(2);
        assertThat(submitted).containsExactly(1L, 2L);
    }

    /** What the client has a reply to does not come any more: another server has answered it. */
    @Test
    void theFirstEndsTheWaitingForThoseBefore() {
        first(1);
        CompletableFuture<RaftClientReply> replied = later(4);
        later(12);
        replies.get(1L).completeExceptionally(new ResourceUnavailableException("full"));
        first(11);
        assertThat(submitted).containsExactly(1L, 11L, 12L);
        assertThatThrownBy(replied::get).hasCauseInstanceOf(AlreadyClosedException.class);
        assertNothingWaits();
    }

    /** Ratis knows it and gives it the reply of the other. */
    @Test
    void whatIsUnderWayIsHandedOnAgain() {
        first(1);
        later(2);
        later(1);
        assertThat(submitted).containsExactly(1L, 2L, 1L);
    }

    @Test
    void oneThatComesTwiceWaitsOnce() {
        CompletableFuture<RaftClientReply> before = later(2);
        CompletableFuture<RaftClientReply> after = later(2);
        assertThatThrownBy(before::get).hasCauseInstanceOf(AlreadyClosedException.class);
        cancels.getFirst().run(); // of the one that is replaced
        first(1);
        assertThat(submitted).containsExactly(1L, 2L);
        succeed(2);
        assertThat(after).isCompleted();
        assertNothingWaits();
    }

    /** As when the connection ends. */
    @Test
    void whatIsCancelledDoesNotWaitAnyMore() {
        CompletableFuture<RaftClientReply> second = later(2);
        CompletableFuture<RaftClientReply> third = later(3);
        cancels.forEach(Runnable::run);
        assertThat(second).isCompletedExceptionally();
        assertThat(third).isCompletedExceptionally();
        assertNothingWaits();
        first(1);
        assertThat(submitted).containsExactly(1L);
    }

    @Test
    void noMoreWaitThanTheLimit() {
        for (long number = 2; number < 2 + REQUESTS; number++) {
            assertThat(later(number)).isNotDone();
        }
        assertThatThrownBy(later(50)::get).hasCauseInstanceOf(ResourceUnavailableException.class);
        first(1);
        assertThat(submitted).hasSize(1 + REQUESTS);
        CompletableFuture<RaftClientReply> longOne = order.receive(request(60, false, BYTES + 1), cancels::add);
        assertThatThrownBy(longOne::get).hasCauseInstanceOf(ResourceUnavailableException.class);
        assertNothingWaits();
    }
}
