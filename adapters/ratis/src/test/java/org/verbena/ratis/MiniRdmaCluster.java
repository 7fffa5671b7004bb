package org.verbena.ratis;

import java.io.IOException;
import org.apache.ratis.RaftConfigKeys;
import org.apache.ratis.RaftTestUtil;
import org.apache.ratis.conf.Parameters;
import org.apache.ratis.conf.RaftProperties;
import org.apache.ratis.proto.RaftProtos.AppendEntriesReplyProto;
import org.apache.ratis.proto.RaftProtos.AppendEntriesRequestProto;
import org.apache.ratis.proto.RaftProtos.InstallSnapshotReplyProto;
import org.apache.ratis.proto.RaftProtos.InstallSnapshotRequestProto;
import org.apache.ratis.proto.RaftProtos.RequestVoteReplyProto;
import org.apache.ratis.proto.RaftProtos.RequestVoteRequestProto;
import org.apache.ratis.proto.RaftProtos.StartLeaderElectionReplyProto;
import org.apache.ratis.proto.RaftProtos.StartLeaderElectionRequestProto;
import org.apache.ratis.protocol.RaftGroup;
import org.apache.ratis.protocol.RaftPeerId;
import org.apache.ratis.rpc.RpcFactory;
import org.apache.ratis.rpc.RpcType;
import org.apache.ratis.server.RaftServer;
import org.apache.ratis.server.RaftServerRpc;
import org.apache.ratis.server.impl.DelayLocalExecutionInjection;
import org.apache.ratis.server.impl.MiniRaftCluster;
import org.apache.ratis.util.CodeInjectionForTesting;

/** Ratis' own cluster for tests, over Verbena. */
final class MiniRdmaCluster extends MiniRaftCluster.RpcBase {
    private static final String SEND = "RdmaServerRpc.send";
    private static final DelayLocalExecutionInjection DELAYS = new DelayLocalExecutionInjection(SEND);

    /** Makes them, and keeps one that several tests of a class have. */
    static final class OverRdma extends Factory<MiniRdmaCluster> {
        @Override
        public MiniRdmaCluster newCluster(String[] ids, String[] listenerIds, RaftProperties properties) {
            RaftConfigKeys.Rpc.setType(properties, new DelayedRpcType());
            return new MiniRdmaCluster(ids, listenerIds, properties);
        }
    }

    /** What Ratis' tests make their clusters by. Ratis runs each class in a JVM of its own, where all share both. */
    interface FactoryGet extends Factory.Get<MiniRdmaCluster> {
        /** The tests change them. */
        ClassValue<RaftProperties> PROPERTIES = new ClassValue<>() {
            @Override
            protected RaftProperties computeValue(Class<?> tests) {
                RaftProperties properties = new RaftProperties();
                RaftConfigKeys.Rpc.setType(properties, new DelayedRpcType());
                return properties;
            }
        };

        ClassValue<OverRdma> FACTORIES = new ClassValue<>() {
            @Override
            protected OverRdma computeValue(Class<?> tests) {
                return new OverRdma();
            }
        };

        @Override
        default Factory<MiniRdmaCluster> getFactory() {
            return FACTORIES.get(getClass());
        }

        @Override
        default RaftProperties getProperties() {
            return PROPERTIES.get(getClass());
        }
    }

    private MiniRdmaCluster(String[] ids, String[] listenerIds, RaftProperties properties) {
        super(ids, listenerIds, properties, onSoft());
    }

    private static Parameters onSoft() {
        Parameters parameters = new Parameters();
        RdmaConfigKeys.Server.setCustomizer(parameters, builder -> builder.provider("soft"));
        RdmaConfigKeys.Client.setCustomizer(parameters, builder -> builder.provider("soft"));
        return parameters;
    }

    @Override
    protected Parameters setPropertiesAndInitParameters(RaftPeerId id, RaftGroup group, RaftProperties properties) {
        RdmaConfigKeys.Server.setPort(properties, getPort(id, group));
        return onSoft();
    }

    @Override
    protected void blockQueueAndSetDelay(String leader, int delayMillis) throws InterruptedException {
        RaftTestUtil.blockQueueAndSetDelay(getServers(), DELAYS, leader, delayMillis, getTimeoutMax());
    }

    static void clearDelays() {
        DELAYS.clear();
    }

    /** A type whose servers can be delayed where they call others. */
    public static final class DelayedRpcType implements RpcType {
        /** As Ratis makes it, by its name. */
        public DelayedRpcType() {}

        @Override
        public String name() {
            return getClass().getName();
        }

        @Override
        public RpcFactory newFactory(Parameters parameters) {
            return new RdmaRpcFactory(this, parameters) {
                @Override
                public RaftServerRpc newRaftServerRpc(RaftServer server) {
                    return new Delayed(DelayedRpcType.this, server, parameters);
                }
            };
        }
    }

    private static final class Delayed extends RdmaServerRpc {
        Delayed(RpcType type, RaftServer server, Parameters parameters) {
            super(type, server, parameters);
        }

        private void delay(Object request) {
            CodeInjectionForTesting.execute(SEND, getId(), null, request);
        }

        @Override
        public RequestVoteReplyProto requestVote(RequestVoteRequestProto request) throws IOException {
            delay(request);
            return super.requestVote(request);
        }

        @Override
        public AppendEntriesReplyProto appendEntries(AppendEntriesRequestProto request) throws IOException {
            delay(request);
            return super.appendEntries(request);
        }

        @Override
        public InstallSnapshotReplyProto installSnapshot(InstallSnapshotRequestProto request) throws IOException {
            delay(request);
            return super.installSnapshot(request);
        }

        @Override
        public StartLeaderElectionReplyProto startLeaderElection(StartLeaderElectionRequestProto request)
                throws IOException {
            delay(request);
            return super.startLeaderElection(request);
        }
    }
}
