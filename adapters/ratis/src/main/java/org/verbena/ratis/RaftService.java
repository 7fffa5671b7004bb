package org.verbena.ratis;

import java.io.IOException;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Executor;
import org.apache.ratis.client.impl.ClientProtoUtils;
import org.apache.ratis.proto.RaftProtos.RaftClientReplyProto;
import org.apache.ratis.protocol.RaftClientReply;
import org.apache.ratis.protocol.RaftClientRequest;
import org.apache.ratis.protocol.exceptions.NotLeaderException;
import org.apache.ratis.protocol.exceptions.RaftException;
import org.apache.ratis.protocol.exceptions.StateMachineException;
import org.apache.ratis.server.RaftServer;
import org.apache.ratis.util.JavaUtils;
import org.apache.ratis.util.function.CheckedFunction;
import org.verbena.api.Exchange;
import org.verbena.api.MethodHandler;
import org.verbena.api.Methods;
import org.verbena.api.service.Method;

/**
 * What a server answers. The handlers of a connection run one after another, in the order in which a client has sent
 * its requests, so none may wait: client requests are handed to Ratis and answered later, those with a number in the
 * {@linkplain RequestOrder order} of their numbers. What another server asks for, of any group, runs on a virtual
 * thread of its own.
 */
final class RaftService {
    private static final Executor VIRTUAL =
            task -> Thread.ofVirtual().name("verbena-ratis").start(task);

    private final RaftServer server;
    private final WaitingLimit waitingLimit;
    private Methods methods = Methods.NONE;

    private RaftService(RaftServer server) {
        this.server = server;
        waitingLimit = WaitingLimit.of(server.getProperties());
    }

    static Methods of(RaftServer server) {
        return new RaftService(server).methods();
    }

    private Methods methods() {
        waiting(RaftMethods.VOTE, server::requestVote);
        waiting(RaftMethods.INSTALL, server::installSnapshot);
        waiting(RaftMethods.ELECT, server::startLeaderElection);
        add(RaftMethods.APPEND, (exchange, it) -> onThread(() -> server.appendEntriesAsync(it)));
        add(RaftMethods.READ_INDEX, (exchange, it) -> onThread(() -> server.readIndexAsync(it)));

        add(
                RaftMethods.REQUEST,
                (exchange, it) -> inOrder(exchange, ClientProtoUtils.toRaftClientRequest(it))
                        .thenApply(ClientProtoUtils::toRaftClientReplyProto));
        client(
                RaftMethods.SET_CONFIGURATION,
                ClientProtoUtils::toSetConfigurationRequest,
                server::setConfigurationAsync);
        client(
                RaftMethods.TRANSFER_LEADERSHIP,
                ClientProtoUtils::toTransferLeadershipRequest,
                server::transferLeadershipAsync);
        client(
                RaftMethods.MANAGE_SNAPSHOTS,
                ClientProtoUtils::toSnapshotManagementRequest,
                server::snapshotManagementAsync);
        client(
                RaftMethods.MANAGE_ELECTIONS,
                ClientProtoUtils::toLeaderElectionManagementRequest,
                server::leaderElectionManagementAsync);
        client(RaftMethods.MANAGE_GROUPS, ClientProtoUtils::toGroupManagementRequest, server::groupManagementAsync);
        add(
                RaftMethods.LIST_GROUPS,
                (exchange, it) -> server.getGroupListAsync(ClientProtoUtils.toGroupListRequest(it))
                        .thenApply(ClientProtoUtils::toGroupListReplyProto));
        add(
                RaftMethods.GROUP_INFO,
                (exchange, it) -> server.getGroupInfoAsync(ClientProtoUtils.toGroupInfoRequest(it))
                        .thenApply(ClientProtoUtils::toGroupInfoReplyProto));
        return methods;
    }

    /** Adds a method whose future may fail with any exception of Ratis, or that throws it. */
    private <Q, R> void add(Method<Q, R> method, MethodHandler<Q, CompletableFuture<R>> answering) {
        methods = methods.withAsync(method, (exchange, request) -> {
            CompletableFuture<R> answer;
            try {
                answer = answering.answer(exchange, request);
            } catch (Exception thrown) {
                answer = CompletableFuture.failedFuture(thrown);
            }
            return answer.exceptionallyCompose(failure -> CompletableFuture.failedFuture(Failures.answer(failure)));
        });
    }

    private <Q, R> void waiting(Method<Q, R> method, CheckedFunction<Q, R, Exception> answering) {
        add(method, (exchange, request) -> onThread(() -> CompletableFuture.completedFuture(answering.apply(request))));
    }

    private static <R> CompletableFuture<R> onThread(Callable<CompletableFuture<R>> answering) {
        return CompletableFuture.supplyAsync(
                        () -> JavaUtils.callAsUnchecked(answering::call, CompletionException::new), VIRTUAL)
                .thenCompose(answer -> answer);
    }

    private <Q, C extends RaftClientRequest> void client(
            Method<Q, RaftClientReplyProto> method,
            CheckedFunction<Q, C, Exception> reading,
            CheckedFunction<C, CompletableFuture<RaftClientReply>, Exception> answering) {
        add(
                method,
                (exchange, proto) ->
                        reply(reading.apply(proto), answering).thenApply(ClientProtoUtils::toRaftClientReplyProto));
    }

    private CompletableFuture<RaftClientReply> inOrder(Exchange exchange, RaftClientRequest request)
            throws IOException {
        if (request.getSlidingWindowEntry() == null) {
            return submit(request);
        }
        return RequestOrder.of(exchange.channel(), request, this::submit, waitingLimit)
                .receive(request, action -> exchange.onCancel(() -> onThreadOrHere(action)));
    }

    /** What waits must end even if no thread can be started for it. */
    private static void onThreadOrHere(Runnable action) {
        try {
            VIRTUAL.execute(action);
        } catch (Error noThread) {
            action.run();
        }
    }

    private CompletableFuture<RaftClientReply> submit(RaftClientRequest request) {
        return reply(request, server::submitClientRequestAsync);
    }

    private static <C extends RaftClientRequest> CompletableFuture<RaftClientReply> reply(
            C request, CheckedFunction<C, CompletableFuture<RaftClientReply>, Exception> answering) {
        try {
            return answering.apply(request).exceptionallyCompose(failure -> replyOf(request, failure));
        } catch (Exception thrown) {
            return CompletableFuture.failedFuture(thrown);
        }
    }

    /** These two are replies, with all that is in them. */
    private static CompletionStage<RaftClientReply> replyOf(RaftClientRequest request, Throwable failure) {
        Throwable cause = JavaUtils.unwrapCompletionException(failure);
        return cause instanceof NotLeaderException || cause instanceof StateMachineException
                ? CompletableFuture.completedFuture(RaftClientReply.newBuilder()
                        .setRequest(request)
                        .setException((RaftException) cause)
                        .build())
                : CompletableFuture.failedFuture(cause);
    }
}
