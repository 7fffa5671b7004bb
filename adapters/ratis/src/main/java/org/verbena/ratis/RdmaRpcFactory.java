package org.verbena.ratis;

import org.apache.ratis.client.ClientFactory;
import org.apache.ratis.client.RaftClientRpc;
import org.apache.ratis.conf.Parameters;
import org.apache.ratis.conf.RaftProperties;
import org.apache.ratis.protocol.ClientId;
import org.apache.ratis.rpc.RpcType;
import org.apache.ratis.server.RaftServer;
import org.apache.ratis.server.RaftServerRpc;
import org.apache.ratis.server.ServerFactory;
import org.jspecify.annotations.Nullable;

/** Makes both ends. */
class RdmaRpcFactory implements ServerFactory, ClientFactory {
    private final RpcType type;
    private final @Nullable Parameters parameters;

    RdmaRpcFactory(RpcType type, @Nullable Parameters parameters) {
        this.type = type;
        this.parameters = parameters;
    }

    @Override
    public RpcType getRpcType() {
        return type;
    }

    @Override
    public RaftServerRpc newRaftServerRpc(RaftServer server) {
        return new RdmaServerRpc(type, server, parameters);
    }

    @Override
    public RaftClientRpc newRaftClientRpc(ClientId clientId, RaftProperties properties) {
        return new RdmaClientRpc(clientId, properties, parameters);
    }
}
