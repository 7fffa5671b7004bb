package org.verbena.ratis;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.function.Consumer;
import org.apache.ratis.conf.Parameters;
import org.apache.ratis.proto.RaftProtos.AppendEntriesReplyProto;
import org.apache.ratis.proto.RaftProtos.AppendEntriesRequestProto;
import org.apache.ratis.proto.RaftProtos.InstallSnapshotReplyProto;
import org.apache.ratis.proto.RaftProtos.InstallSnapshotRequestProto;
import org.apache.ratis.proto.RaftProtos.RaftRpcRequestProto;
import org.apache.ratis.proto.RaftProtos.ReadIndexReplyProto;
import org.apache.ratis.proto.RaftProtos.ReadIndexRequestProto;
import org.apache.ratis.proto.RaftProtos.RequestVoteReplyProto;
import org.apache.ratis.proto.RaftProtos.RequestVoteRequestProto;
import org.apache.ratis.proto.RaftProtos.StartLeaderElectionReplyProto;
import org.apache.ratis.proto.RaftProtos.StartLeaderElectionRequestProto;
import org.apache.ratis.protocol.RaftPeerId;
import org.apache.ratis.rpc.RpcType;
import org.apache.ratis.server.RaftServer;
import org.apache.ratis.server.RaftServerConfigKeys;
import org.apache.ratis.server.RaftServerRpcWithProxy;
import org.apache.ratis.server.protocol.RaftServerAsynchronousProtocol;
import org.apache.ratis.util.PeerProxyMap;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.api.Methods;
import org.verbena.api.RdmaServer;
import org.verbena.api.service.Method;
import org.verbena.transport.RdmaException;

/** A server's port, and its calls of other servers. */
class RdmaServerRpc extends RaftServerRpcWithProxy<PeerConnection, PeerProxyMap<PeerConnection>>
        implements RaftServerAsynchronousProtocol {
    private static final Logger LOG = LoggerFactory.getLogger(RdmaServerRpc.class);

    private final RpcType type;
    private final String host;
    private final int port;
    private final Duration requestTimeout;
    private final Methods methods;
    private final Consumer<? super RdmaServer.Builder> customizer;

    /** Null until it is started. */
    private volatile @Nullable RdmaServer listening;

    RdmaServerRpc(RpcType type, RaftServer server, @Nullable Parameters parameters) {
        super(server::getId, id -> PeerConnection.all(id.toString(), parameters, timeoutOf(server)));
        this.type = type;
        host = RdmaConfigKeys.Server.host(server.getProperties());
        port = RdmaConfigKeys.Server.port(server.getProperties());
        requestTimeout = timeoutOf(server);
        methods = RaftService.of(server);
        customizer = RdmaConfigKeys.Server.customizer(parameters);
    }

    private static Duration timeoutOf(RaftServer server) {
        return PeerConnection.duration(RaftServerConfigKeys.Rpc.requestTimeout(server.getProperties()));
    }

    @Override
    public RpcType getRpcType() {
        return type;
    }

    @Override
    public InetSocketAddress getInetSocketAddress() {
        RdmaServer server = listening;
        return server == null ? new InetSocketAddress(host, port) : server.localAddress();
    }

    @Override
    protected void startImpl() throws IOException {
        RdmaServer.Builder builder = RdmaServer.builder();
        customizer.accept(builder);
        try {
            listening = builder.virtualThreads(true).orderedHandlers(true).bind(host, port, methods);
        } catch (RdmaException failure) {
            throw new IOException(getId() + ": " + failure.getMessage(), failure);
        }
    }

    @Override
    public void closeImpl() throws IOException {
        try {
            super.closeImpl();
        } finally {
            RdmaServer server = listening;
            if (server != null) {
                server.close();
            }
        }
    }

    /** Calls that have failed with their connection have left it already: see {@link #call}. */
    @Override
    public void handleException(RaftPeerId server, Exception failure, boolean reconnect) {
        if (reconnect) {
            super.handleException(server, failure, true);
        }
    }

    private <Q, R> R call(Method<Q, R> method, Q request, RaftRpcRequestProto header) throws IOException {
        RaftPeerId peer = RaftPeerId.valueOf(header.getReplyId());
        PeerConnection connection = getProxies().getProxy(peer);
        try {
            return connection.await(method, request, requestTimeout);
        } finally {
            leaveIfOver(peer, connection);
        }
    }

    private <Q, R> CompletableFuture<R> callAsync(Method<Q, R> method, Q request, RaftRpcRequestProto header)
            throws IOException {
        RaftPeerId peer = RaftPeerId.valueOf(header.getReplyId());
        PeerConnection connection = getProxies().getProxy(peer);
        return Failures.bare(connection.call(method, request, requestTimeout).handleAsync((reply, failure) -> {
            if (failure != null) {
                leaveIfOver(peer, connection);
                throw Failures.completion(failure);
            }
            return reply;
        }));
    }

    /** Another connection stays that an earlier call has made instead of this one. */
    private void leaveIfOver(RaftPeerId peer, PeerConnection connection) {
        try {
            if (connection.isOver() && getProxies().getProxy(peer) == connection) {
                getProxies().resetProxy(peer);
            }
        } catch (IOException closed) {
            LOG.trace("{}: the connections are closed", getId(), closed);
        }
    }

    @Override
    public RequestVoteReplyProto requestVote(RequestVoteRequestProto request) throws IOException {
        return call(RaftMethods.VOTE, request, request.getServerRequest());
    }

    @Override
    public AppendEntriesReplyProto appendEntries(AppendEntriesRequestProto request) throws IOException {
        return call(RaftMethods.APPEND, request, request.getServerRequest());
    }

    @Override
    public InstallSnapshotReplyProto installSnapshot(InstallSnapshotRequestProto request) throws IOException {
        return call(RaftMethods.INSTALL, request, request.getServerRequest());
    }

    @Override
    public StartLeaderElectionReplyProto startLeaderElection(StartLeaderElectionRequestProto request)
            throws IOException {
        return call(RaftMethods.ELECT, request, request.getServerRequest());
    }

    @Override
    public RaftServerAsynchronousProtocol async() {
        return this;
    }

    @Override
    public CompletableFuture<AppendEntriesReplyProto> appendEntriesAsync(AppendEntriesRequestProto request)
            throws IOException {
        return callAsync(RaftMethods.APPEND, request, request.getServerRequest());
    }

    @Override
    public CompletableFuture<ReadIndexReplyProto> readIndexAsync(ReadIndexRequestProto request) throws IOException {
        return callAsync(RaftMethods.READ_INDEX, request, request.getServerRequest());
    }
}
