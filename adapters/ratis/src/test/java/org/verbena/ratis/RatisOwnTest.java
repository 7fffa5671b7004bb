package org.verbena.ratis;

import org.apache.ratis.RaftBasicTests;
import org.apache.ratis.server.impl.BlockRequestHandlingInjection;
import org.apache.ratis.server.impl.LeaderElectionTests;
import org.apache.ratis.util.ExitUtils;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Ratis' own tests of a type of RPC, from its test jars, with three and five servers in this JVM: minutes, since they
 * wait for timeouts to pass. Left out are the two that Ratis itself tags as flaky (RATIS-2262 and RATIS-2108).
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
        /** Ratis annotates it in the classes of its types. */
        @Override
        @Test
        protected void testDisconnectLeader() throws Exception {
            super.testDisconnectLeader();
        }
    }
}
