package org.verbena.ratis;

import org.apache.ratis.conf.Parameters;
import org.apache.ratis.rpc.RpcFactory;
import org.apache.ratis.rpc.RpcType;

/**
 * Ratis' RPC over Verbena, between servers and from clients to servers.
 *
 * <pre>{@code
 * RaftConfigKeys.Rpc.setType(properties, new RdmaRpcType());
 * RdmaConfigKeys.Server.setPort(properties, 7471);
 * }</pre>
 *
 * <p>In a file of properties, {@code raft.rpc.type} is the name of this class. All servers and clients of a group need
 * the same type. A server listens on one port; clients use the same address as other servers, that of {@code
 * RaftPeer.getAddress()}.
 */
public final class RdmaRpcType implements RpcType {
    /** Creates one, as Ratis does by the name of the class. */
    public RdmaRpcType() {}

    /** The name of the class, by which Ratis finds it. */
    @Override
    public String name() {
        return getClass().getName();
    }

    /**
     * Makes what Ratis makes servers and clients with.
     *
     * @param parameters may have what {@link RdmaConfigKeys} sets; null for none
     * @return a {@code ServerFactory} that is a {@code ClientFactory} as well
     */
    @Override
    public RpcFactory newFactory(Parameters parameters) {
        return new RdmaRpcFactory(this, parameters);
    }
}
