package org.verbena.it.shm;

import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.api.CancellationSuite;
import org.verbena.api.ChannelSuite;
import org.verbena.api.ClaimsSuite;
import org.verbena.api.CopiesSuite;
import org.verbena.api.HandlerSuite;
import org.verbena.api.IdleSuite;
import org.verbena.api.InterceptorSuite;
import org.verbena.api.KilledServersSuite;
import org.verbena.api.LeavingServersSuite;
import org.verbena.api.LifecycleSuite;
import org.verbena.api.ManyChannelsSuite;
import org.verbena.api.MessageStreamSuite;
import org.verbena.api.MetadataSuite;
import org.verbena.api.MethodsSuite;
import org.verbena.api.ObservabilitySuite;
import org.verbena.api.OneSidedSuite;
import org.verbena.api.PreSharedKeysSuite;
import org.verbena.api.PushSuite;
import org.verbena.api.RawSuite;
import org.verbena.api.ReconnectSuite;
import org.verbena.api.RequestFailureSuite;
import org.verbena.api.RequestWindowSuite;
import org.verbena.api.RollingUpdateSuite;
import org.verbena.api.SecretsSuite;
import org.verbena.api.ServerMemorySuite;
import org.verbena.api.SeveralServersSuite;
import org.verbena.api.ShortFormLimitsSuite;
import org.verbena.api.ShortFormSuite;
import org.verbena.api.ShutdownSuite;
import org.verbena.api.StoppedPeerSuite;
import org.verbena.api.TrafficSuite;
import org.verbena.api.ring.RecordRingSuite;
import org.verbena.grpc.GrpcSuite;
import org.verbena.grpc.NativeGrpcSuite;
import org.verbena.grpc.NativeKillSuite;
import org.verbena.grpc.NativeRollingUpdateSuite;

/**
 * What every provider must carry, through shared memory: channels, the short form, gRPC with TLS, and native. Every day
 * what meets rings, doorbells and memory of another process runs; the short form and gRPC above them run on soft, which
 * copies messages as this does.
 */
class ShmChannelsTest {

    @Nested
    class Channels extends ChannelSuite {
        @Override
        protected String provider() {
            return "shm";
        }
    }

    @Nested
    class OneSidedOperations extends OneSidedSuite {
        @Override
        protected String provider() {
            return "shm";
        }
    }

    @Nested
    class MemoryOfServers extends ServerMemorySuite {
        @Override
        protected String provider() {
            return "shm";
        }
    }

    @Nested
    class Rings extends RecordRingSuite {
        @Override
        protected String provider() {
            return "shm";
        }
    }

    @Nested
    @Tag("full")
    class Windows extends RequestWindowSuite {
        @Override
        protected String provider() {
            return "shm";
        }
    }

    @Nested
    @Tag("full")
    class ShortForms extends ShortFormSuite {
        @Override
        protected String provider() {
            return "shm";
        }
    }

    @Nested
    @Tag("full")
    class MetadataOfRequests extends MetadataSuite {
        @Override
        protected String provider() {
            return "shm";
        }
    }

    @Nested
    @Tag("full")
    class Interceptors extends InterceptorSuite {
        @Override
        protected String provider() {
            return "shm";
        }
    }

    @Nested
    @Tag("full")
    class MethodCalls extends MethodsSuite {
        @Override
        protected String provider() {
            return "shm";
        }
    }

    @Nested
    @Tag("full")
    class ShortFormLimits extends ShortFormLimitsSuite {
        @Override
        protected String provider() {
            return "shm";
        }
    }

    @Nested
    @Tag("full")
    class MessageStreams extends MessageStreamSuite {
        @Override
        protected String provider() {
            return "shm";
        }
    }

    @Nested
    @Tag("full")
    class Pushes extends PushSuite {
        @Override
        protected String provider() {
            return "shm";
        }
    }

    @Nested
    @Tag("full")
    class Reconnects extends ReconnectSuite {
        @Override
        protected String provider() {
            return "shm";
        }
    }

    @Nested
    @Tag("full")
    class IdleClients extends IdleSuite {
        @Override
        protected String provider() {
            return "shm";
        }
    }

    @Nested
    @Tag("full")
    class SeveralServers extends SeveralServersSuite {
        @Override
        protected String provider() {
            return "shm";
        }
    }

    @Nested
    @Tag("full")
    class LeavingServers extends LeavingServersSuite {
        @Override
        protected String provider() {
            return "shm";
        }
    }

    @Nested
    @Tag("full")
    class Shutdowns extends ShutdownSuite {
        @Override
        protected String provider() {
            return "shm";
        }
    }

    @Nested
    @Tag("full")
    class RollingUpdates extends RollingUpdateSuite {
        @Override
        protected String provider() {
            return "shm";
        }
    }

    @Nested
    class KilledServers extends KilledServersSuite {
        @Override
        protected String provider() {
            return "shm";
        }
    }

    @Nested
    @Tag("full")
    class Cancellations extends CancellationSuite {
        @Override
        protected String provider() {
            return "shm";
        }
    }

    @Nested
    @Tag("full")
    class RequestFailures extends RequestFailureSuite {
        @Override
        protected String provider() {
            return "shm";
        }
    }

    @Nested
    class Lifecycles extends LifecycleSuite {
        @Override
        protected String provider() {
            return "shm";
        }
    }

    @Nested
    @Tag("full")
    class Handlers extends HandlerSuite {
        @Override
        protected String provider() {
            return "shm";
        }
    }

    @Nested
    @Tag("full")
    class Keys extends PreSharedKeysSuite {
        @Override
        protected String provider() {
            return "shm";
        }
    }

    @Nested
    @Tag("full")
    class ManyChannels extends ManyChannelsSuite {
        @Override
        protected String provider() {
            return "shm";
        }

        @Test
        @Timeout(1800)
        void tenThousandChannelsEchoWithDefaults() throws Exception {
            echoWithDefaults(10_000);
        }
    }

    @Nested
    class Secrets extends SecretsSuite {
        @Override
        protected String provider() {
            return "shm";
        }
    }

    @Nested
    class Observability extends ObservabilitySuite {
        @Override
        protected String provider() {
            return "shm";
        }
    }

    @Nested
    class StoppedPeers extends StoppedPeerSuite {
        @Override
        protected String provider() {
            return "shm";
        }
    }

    @Nested
    class Traffic extends TrafficSuite {
        @Override
        protected String provider() {
            return "shm";
        }
    }

    @Nested
    class Copies extends CopiesSuite {
        @Override
        protected String provider() {
            return "shm";
        }
    }

    @Nested
    class Claims extends ClaimsSuite {
        @Override
        protected String provider() {
            return "shm";
        }
    }

    @Nested
    class Raw extends RawSuite {
        @Override
        protected String provider() {
            return "shm";
        }

        @Override
        protected boolean repeatsSends() {
            return false;
        }

        @Override
        protected int greatestConnectBytes() {
            return 512;
        }

        @Override
        protected int greatestAcceptBytes() {
            return 512;
        }
    }

    @Nested
    @Tag("full")
    class Grpc extends GrpcSuite {
        @Override
        protected String provider() {
            return "shm";
        }
    }

    @Nested
    @Tag("full")
    class NativeGrpc extends NativeGrpcSuite {
        @Override
        protected String provider() {
            return "shm";
        }
    }

    @Nested
    @Tag("full")
    class KilledNativeGrpc extends NativeKillSuite {
        @Override
        protected String provider() {
            return "shm";
        }
    }

    @Nested
    @Tag("full")
    class UpdatedNativeGrpc extends NativeRollingUpdateSuite {
        @Override
        protected String provider() {
            return "shm";
        }
    }
}
