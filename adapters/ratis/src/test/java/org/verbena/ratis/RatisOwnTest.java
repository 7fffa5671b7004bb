package org.verbena.ratis;

import org.apache.ratis.InstallSnapshotFromLeaderTests;
import org.apache.ratis.LinearizableReadTests;
import org.apache.ratis.LogAppenderTests;
import org.apache.ratis.MessageStreamApiTests;
import org.apache.ratis.OutputStreamBaseTest;
import org.apache.ratis.RaftAsyncExceptionTests;
import org.apache.ratis.RaftAsyncTests;
import org.apache.ratis.RaftBasicTests;
import org.apache.ratis.RaftExceptionBaseTest;
import org.apache.ratis.RaftLogTruncateTests;
import org.apache.ratis.ReadOnlyRequestTests;
import org.apache.ratis.ReadOnlyRequestWithLongTimeoutTests;
import org.apache.ratis.RequestLimitAsyncBaseTest;
import org.apache.ratis.RetryCacheTests;
import org.apache.ratis.WatchRequestTests;
import org.apache.ratis.server.RaftServerConfigKeys.Read.ReadIndex.Type;
import org.apache.ratis.server.ServerRestartTests;
import org.apache.ratis.server.impl.BlockRequestHandlingInjection;
import org.apache.ratis.server.impl.GroupInfoBaseTest;
import org.apache.ratis.server.impl.GroupManagementBaseTest;
import org.apache.ratis.server.impl.LeaderElectionTests;
import org.apache.ratis.server.impl.LogMetadataTests;
import org.apache.ratis.server.impl.MiniRaftCluster;
import org.apache.ratis.server.impl.PreAppendLeaderStepDownTest;
import org.apache.ratis.server.impl.RaftReconfigurationBaseTest;
import org.apache.ratis.server.impl.RaftStateMachineExceptionTests;
import org.apache.ratis.server.impl.ServerPauseResumeTest;
import org.apache.ratis.server.impl.StateMachineShutdownTests;
import org.apache.ratis.statemachine.RaftSnapshotBaseTest;
import org.apache.ratis.statemachine.SnapshotManagementTest;
import org.apache.ratis.util.ExitUtils;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Ratis' own tests of a type of RPC, from its test jars, with one to nine servers in this JVM: minutes, since they wait
 * for timeouts to pass. Left out are those of data streams, which are not carried, of snapshots that are only notified,
 * which of Ratis' own types gRPC's alone has, and the three that Ratis tags as flaky (RATIS-2108, RATIS-2251 and
 * RATIS-2262).
 */
@Tag("full")
@Timeout(300)
class RatisOwnTest {
    @AfterEach
    void leaveNothingBehind() {
        BlockRequestHandlingInjection.getInstance().unblockAll();
        MiniRdmaCluster.clearDelays();
        ExitUtils.clear(); // else Ratis skips all that follow
    }

    @Nested
    class Basic extends RaftBasicTests<MiniRdmaCluster> implements MiniRdmaCluster.FactoryGet {}

    @Nested
    class Elections extends LeaderElectionTests<MiniRdmaCluster> implements MiniRdmaCluster.FactoryGet {
        /** Ratis annotates it in the classes of its types, and those of {@link Installs}. */
        @Override
        @Test
        protected void testDisconnectLeader() throws Exception {
            super.testDisconnectLeader();
        }
    }

    @Nested
    class Async extends RaftAsyncTests<MiniRdmaCluster> implements MiniRdmaCluster.FactoryGet {
        /** Makes a client of Ratis' default type, gRPC's. */
        @Override
        public void testAsyncConfiguration() {}
    }

    @Nested
    class AsyncExceptions extends RaftAsyncExceptionTests<MiniRdmaCluster> implements MiniRdmaCluster.FactoryGet {}

    @Nested
    class LinearizableReads extends LinearizableReadTests<MiniRdmaCluster> implements MiniRdmaCluster.FactoryGet {
        @Override
        public boolean isLeaderLeaseEnabled() {
            return false;
        }

        @Override
        public Type readIndexType() {
            return Type.COMMIT_INDEX;
        }
    }

    @Nested
    class LeasedReads extends LinearizableReadTests<MiniRdmaCluster> implements MiniRdmaCluster.FactoryGet {
        @Override
        public boolean isLeaderLeaseEnabled() {
            return true;
        }

        @Override
        public Type readIndexType() {
            return Type.APPLIED_INDEX;
        }
    }

    @Nested
    class Snapshots extends RaftSnapshotBaseTest<MiniRdmaCluster> implements MiniRdmaCluster.FactoryGet {}

    @Nested
    class Installs extends InstallSnapshotFromLeaderTests<MiniRdmaCluster> implements MiniRdmaCluster.FactoryGet {
        @Override
        @Test
        public void testMultiFileInstallSnapshot() throws Exception {
            super.testMultiFileInstallSnapshot();
        }

        @Override
        @Test
        public void testSeparateSnapshotInstallPath() throws Exception {
            super.testSeparateSnapshotInstallPath();
        }

        @Override
        @Test
        public void testInstallSnapshotLeaderSwitch() throws Exception {
            super.testInstallSnapshotLeaderSwitch();
        }
    }

    @Nested
    class SnapshotManagement extends SnapshotManagementTest<MiniRdmaCluster> implements MiniRdmaCluster.FactoryGet {}

    @Nested
    class Restarts extends ServerRestartTests<MiniRdmaCluster> implements MiniRdmaCluster.FactoryGet {}

    @Nested
    class Pauses extends ServerPauseResumeTest<MiniRdmaCluster> implements MiniRdmaCluster.FactoryGet {}

    @Nested
    class Reconfiguration extends RaftReconfigurationBaseTest<MiniRdmaCluster> implements MiniRdmaCluster.FactoryGet {}

    @Nested
    class Groups extends GroupManagementBaseTest {
        @Override
        public MiniRaftCluster.Factory<? extends MiniRaftCluster> getClusterFactory() {
            return new MiniRdmaCluster.OverRdma();
        }
    }

    @Nested
    class Appenders extends LogAppenderTests<MiniRdmaCluster> implements MiniRdmaCluster.FactoryGet {}

    @Nested
    class Retries extends RetryCacheTests<MiniRdmaCluster> implements MiniRdmaCluster.FactoryGet {}

    @Nested
    class Watches extends WatchRequestTests<MiniRdmaCluster> implements MiniRdmaCluster.FactoryGet {}

    @Nested
    class StateMachineExceptions extends RaftStateMachineExceptionTests<MiniRdmaCluster>
            implements MiniRdmaCluster.FactoryGet {}

    @Nested
    class Exceptions extends RaftExceptionBaseTest<MiniRdmaCluster> implements MiniRdmaCluster.FactoryGet {}

    @Nested
    class ReadOnly extends ReadOnlyRequestTests<MiniRdmaCluster> implements MiniRdmaCluster.FactoryGet {}

    @Nested
    class ReadOnlyWithLongTimeout extends ReadOnlyRequestWithLongTimeoutTests<MiniRdmaCluster>
            implements MiniRdmaCluster.FactoryGet {}

    @Nested
    class OutputStreams extends OutputStreamBaseTest<MiniRdmaCluster> implements MiniRdmaCluster.FactoryGet {}

    @Nested
    class MessageStreams extends MessageStreamApiTests<MiniRdmaCluster> implements MiniRdmaCluster.FactoryGet {}

    @Nested
    class RequestLimits extends RequestLimitAsyncBaseTest<MiniRdmaCluster> implements MiniRdmaCluster.FactoryGet {}

    @Nested
    class GroupInfos extends GroupInfoBaseTest<MiniRdmaCluster> implements MiniRdmaCluster.FactoryGet {}

    @Nested
    class LogMetadata extends LogMetadataTests<MiniRdmaCluster> implements MiniRdmaCluster.FactoryGet {}

    @Nested
    class LeaderStepsDown extends PreAppendLeaderStepDownTest<MiniRdmaCluster> implements MiniRdmaCluster.FactoryGet {}

    @Nested
    class StateMachineShutdown extends StateMachineShutdownTests<MiniRdmaCluster>
            implements MiniRdmaCluster.FactoryGet {}

    @Nested
    class LogTruncation extends RaftLogTruncateTests<MiniRdmaCluster> implements MiniRdmaCluster.FactoryGet {}
}
