package org.verbena.ratis;

import java.io.IOException;
import java.net.SocketException;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Function;
import org.apache.ratis.client.RaftClientConfigKeys;
import org.apache.ratis.client.impl.ClientProtoUtils;
import org.apache.ratis.client.impl.RaftClientRpcWithProxy;
import org.apache.ratis.conf.Parameters;
import org.apache.ratis.conf.RaftProperties;
import org.apache.ratis.proto.RaftProtos.RaftClientReplyProto;
import org.apache.ratis.proto.RaftProtos.RaftClientRequestProto.TypeCase;
import org.apache.ratis.protocol.ClientId;
import org.apache.ratis.protocol.GroupInfoRequest;
import org.apache.ratis.protocol.GroupListRequest;
import org.apache.ratis.protocol.GroupManagementRequest;
import org.apache.ratis.protocol.LeaderElectionManagementRequest;
import org.apache.ratis.protocol.RaftClientReply;
import org.apache.ratis.protocol.RaftClientRequest;
import org.apache.ratis.protocol.RaftPeerId;
import org.apache.ratis.protocol.SetConfigurationRequest;
import org.apache.ratis.protocol.SnapshotManagementRequest;
import org.apache.ratis.protocol.TransferLeadershipRequest;
import org.apache.ratis.protocol.exceptions.LeaderNotReadyException;
import org.apache.ratis.protocol.exceptions.NotLeaderException;
import org.apache.ratis.util.JavaUtils;
import org.jspecify.annotations.Nullable;
import org.verbena.api.service.Method;

/** A client's calls of servers. A connection's requests arrive in the order in which they were sent. */
final class RdmaClientRpc extends RaftClientRpcWithProxy<PeerConnection> {
    /** Beside the names of servers, of which none is empty. */
    private static final String LEADER = "";

    /** For the leader and for each server, since Ratis numbers the requests of each separately. */
    private final Map<String, SentInOrder> numbered = new ConcurrentHashMap<>();

    private final Duration requestTimeout;
    private final Duration watchTimeout;

    RdmaClientRpc(ClientId clientId, RaftProperties properties, @Nullable Parameters parameters) {
        super(PeerConnection.all(
                clientId.toString(),
                parameters,
                PeerConnection.duration(RaftClientConfigKeys.Rpc.requestTimeout(properties))));
        requestTimeout = PeerConnection.duration(RaftClientConfigKeys.Rpc.requestTimeout(properties));
        watchTimeout = PeerConnection.duration(RaftClientConfigKeys.Rpc.watchRequestTimeout(properties));
    }

    /** A method with a request for it, and how its reply is read. */
    private record Call<Q, R>(Method<Q, R> method, Q request, Function<R, RaftClientReply> reading) {
        RaftClientReply await(PeerConnection server, Duration timeout) throws IOException {
            return reading.apply(server.await(method, request, timeout));
        }

        CompletableFuture<RaftClientReply> start(PeerConnection server, Duration timeout) {
            return server.call(method, request, timeout).handleAsync((reply, failure) -> {
                if (failure != null) {
                    throw Failures.completion(failure);
                }
                return reading.apply(reply);
            });
        }
    }

    private static <Q> Call<Q, RaftClientReplyProto> call(Method<Q, RaftClientReplyProto> method, Q request) {
        return new Call<>(method, request, ClientProtoUtils::toRaftClientReply);
    }

    private static Call<?, ?> callOf(RaftClientRequest request) {
        return switch (request) {
            case GroupManagementRequest it ->
                call(RaftMethods.MANAGE_GROUPS, ClientProtoUtils.toGroupManagementRequestProto(it));
            case SetConfigurationRequest it ->
                call(RaftMethods.SET_CONFIGURATION, ClientProtoUtils.toSetConfigurationRequestProto(it));
            case TransferLeadershipRequest it ->
                call(RaftMethods.TRANSFER_LEADERSHIP, ClientProtoUtils.toTransferLeadershipRequestProto(it));
            case SnapshotManagementRequest it ->
                call(RaftMethods.MANAGE_SNAPSHOTS, ClientProtoUtils.toSnapshotManagementRequestProto(it));
            case LeaderElectionManagementRequest it ->
                call(RaftMethods.MANAGE_ELECTIONS, ClientProtoUtils.toLeaderElectionManagementRequestProto(it));
            case GroupListRequest it ->
                new Call<>(
                        RaftMethods.LIST_GROUPS,
                        ClientProtoUtils.toGroupListRequestProto(it),
                        ClientProtoUtils::toGroupListReply);
            case GroupInfoRequest it ->
                new Call<>(
                        RaftMethods.GROUP_INFO,
                        ClientProtoUtils.toGroupInfoRequestProto(it),
                        ClientProtoUtils::toGroupInfoReply);
            default -> call(RaftMethods.REQUEST, ClientProtoUtils.toRaftClientRequestProto(request));
        };
    }

    /** A request of an administrator says how long its server may take for it, which comes on top. */
    private Duration timeoutOf(RaftClientRequest request) {
        return (request.is(TypeCase.WATCH) ? watchTimeout : requestTimeout).plusMillis(request.getTimeoutMs());
    }

    @Override
    public RaftClientReply sendRequest(RaftClientRequest request) throws IOException {
        PeerConnection server = getProxies().getProxy(request.getServerId());
        return callOf(request).await(server, timeoutOf(request));
    }

    /** Completes on a virtual thread, as what the program does then may block. */
    @Override
    public CompletableFuture<RaftClientReply> sendRequestAsync(RaftClientRequest request) {
        try {
            PeerConnection server = getProxies().getProxy(request.getServerId());
            return Failures.bare(
                    request.getSlidingWindowEntry() == null ? start(request, server) : startNumbered(request, server));
        } catch (IOException | RuntimeException failure) {
            return JavaUtils.completeExceptionally(failure);
        }
    }

    private CompletableFuture<RaftClientReply> start(RaftClientRequest request, PeerConnection server) {
        return callOf(request).start(server, timeoutOf(request)).thenCompose(RdmaClientRpc::unlessOtherLeader);
    }

    private CompletableFuture<RaftClientReply> startNumbered(RaftClientRequest request, PeerConnection server) {
        String target = request.isToLeader() ? LEADER : request.getServerId().toString();
        SentInOrder sent = numbered.computeIfAbsent(target, absent -> new SentInOrder());
        return start(sent.sent(request, server), server).thenApply(reply -> {
            sent.replied(request);
            return reply;
        });
    }

    @Override
    public CompletableFuture<RaftClientReply> sendRequestAsyncUnordered(RaftClientRequest request) {
        return sendRequestAsync(request);
    }

    /** Ratis tries again what fails so, and takes the reply as it is from a call that waits. */
    private static CompletableFuture<RaftClientReply> unlessOtherLeader(RaftClientReply reply) {
        NotLeaderException other = reply.getNotLeaderException();
        if (other != null) {
            return JavaUtils.completeExceptionally(other);
        }
        LeaderNotReadyException soon = reply.getLeaderNotReadyException();
        return soon != null ? JavaUtils.completeExceptionally(soon) : CompletableFuture.completedFuture(reply);
    }

    /** When a lost connection has failed several requests, only the first of them makes another connection. */
    @Override
    public boolean handleException(RaftPeerId server, Throwable failure, boolean reconnect) {
        try {
            if (failure instanceof SocketException
                    && !getProxies().getProxy(server).isOver()) {
                return true;
            }
        } catch (IOException none) {
            return super.handleException(server, none, true);
        }
        return super.handleException(server, failure, reconnect);
    }
}
