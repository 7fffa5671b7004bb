package org.verbena.ratis;

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
import org.verbena.api.Methods;
import org.verbena.api.service.Method;

/**
 * What a server answers. The handlers of a connection run one after another, which gives a client's requests their
 * order, so none may wait: client requests are handed to Ratis and answered later, and what another server asks for, of
 * any group, runs on a virtual thread of its own.
 */
final class RaftService {
    private static final Executor VIRTUAL =
            task -> Thread.ofVirtual().name("verbena-ratis").start(task);

    private final RaftServer server;
    private Methods methods = Methods.NONE;

    private RaftService(RaftServer server) {
        this.server = server;
    }

    static Methods of(RaftServer server) {
        return new RaftService(server).methods();
    }

    private Methods methods() {
        waiting(RaftMethods.VOTE, server::requestVote);
        waiting(RaftMethods.INSTALL, server::installSnapshot);
        waiting(RaftMethods.ELECT, server::startLeaderElection);
        add(RaftMethods.APPEND, it -> onThread(() -> server.appendEntriesAsync(it)));
        add(RaftMethods.READ_INDEX, it -> onThread(() -> server.readIndexAsync(it)));

        client(RaftMethods.REQUEST, ClientProtoUtils::toRaftClientRequest, server::submitClientRequestAsync);
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
                it -> server.getGroupListAsync(ClientProtoUtils.toGroupListRequest(it))
                        .thenApply(ClientProtoUtils::toGroupListReplyProto));
        add(
                RaftMethods.GROUP_INFO,
                it -> server.getGroupInfoAsync(ClientProtoUtils.toGroupInfoRequest(it))
                        .thenApply(ClientProtoUtils::toGroupInfoReplyProto));
        return methods;
    }

    /** Adds a method whose future may fail with any exception of Ratis, or that throws it. */
    private <Q, R> void add(Method<Q, R> method, CheckedFunction<Q, CompletableFuture<R>, Exception> answering) {
        methods = methods.withAsync(method, (exchange, request) -> {
            CompletableFuture<R> answer;
            try {
                answer = answering.apply(request);
            } catch (Exception thrown) {
                answer = CompletableFuture.failedFuture(thrown);
            }
            return answer.exceptionallyCompose(failure -> CompletableFuture.failedFuture(Failures.answer(failure)));
        });
    }

    private <Q, R> void waiting(Method<Q, R> method, CheckedFunction<Q, R, Exception> answering) {
        add(method, request -> onThread(() -> CompletableFuture.completedFuture(answering.apply(request))));
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
        add(method, proto -> {
            C request = reading.apply(proto);
            return answering
                    .apply(request)
                    .exceptionallyCompose(failure -> replyOf(request, failure))
                    .thenApply(ClientProtoUtils::toRaftClientReplyProto);
        });
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
