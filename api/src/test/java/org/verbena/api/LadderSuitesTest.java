package org.verbena.api;

import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Tag;
import org.verbena.api.ladder.LadderOptions;
import org.verbena.transport.CompletionLoopOptions;

/** Whatever clients can do, they can do when a ladder has made their connections. */
class LadderSuitesTest {
    private static RdmaEventLoopGroup ladder() {
        return new RdmaEventLoopGroup(
                LadderOptions.DEFAULTS.withRungs("soft"), 3, null, CompletionLoopOptions.DEFAULTS);
    }

    @Nested
    class Methods extends MethodsSuite {
        @Override
        protected String provider() {
            return "soft";
        }

        @Override
        protected RdmaEventLoopGroup newGroup() {
            return ladder();
        }
    }

    @Nested
    class Metadata extends MetadataSuite {
        @Override
        protected String provider() {
            return "soft";
        }

        @Override
        protected RdmaEventLoopGroup newGroup() {
            return ladder();
        }
    }

    @Nested
    class RequestFailure extends RequestFailureSuite {
        @Override
        protected String provider() {
            return "soft";
        }

        @Override
        protected RdmaEventLoopGroup newGroup() {
            return ladder();
        }
    }

    @Nested
    class Interceptor extends InterceptorSuite {
        @Override
        protected String provider() {
            return "soft";
        }

        @Override
        protected RdmaEventLoopGroup newGroup() {
            return ladder();
        }
    }

    @Nested
    @Tag("full")
    class MessageStream extends MessageStreamSuite {
        @Override
        protected String provider() {
            return "soft";
        }

        @Override
        protected RdmaEventLoopGroup newGroup() {
            return ladder();
        }
    }

    @Nested
    @Tag("full")
    class Cancellation extends CancellationSuite {
        @Override
        protected String provider() {
            return "soft";
        }

        @Override
        protected RdmaEventLoopGroup newGroup() {
            return ladder();
        }
    }

    @Nested
    class SeveralServers extends SeveralServersSuite {
        @Override
        protected String provider() {
            return "soft";
        }

        @Override
        protected RdmaEventLoopGroup newGroup() {
            return ladder();
        }
    }

    @Nested
    class Shutdown extends ShutdownSuite {
        @Override
        protected String provider() {
            return "soft";
        }

        @Override
        protected RdmaEventLoopGroup newGroup() {
            return ladder();
        }
    }

    @Nested
    @Tag("full")
    class LeavingServers extends LeavingServersSuite {
        @Override
        protected String provider() {
            return "soft";
        }

        @Override
        protected RdmaEventLoopGroup newGroup() {
            return ladder();
        }
    }

    @Nested
    class RollingUpdate extends RollingUpdateSuite {
        @Override
        protected String provider() {
            return "soft";
        }

        @Override
        protected RdmaEventLoopGroup newGroup() {
            return ladder();
        }
    }

    @Nested
    @Tag("full")
    class ShortForm extends ShortFormSuite {
        @Override
        protected String provider() {
            return "soft";
        }

        @Override
        protected RdmaEventLoopGroup newGroup() {
            return ladder();
        }
    }

    @Nested
    @Tag("full")
    class ShortFormLimits extends ShortFormLimitsSuite {
        @Override
        protected String provider() {
            return "soft";
        }

        @Override
        protected RdmaEventLoopGroup newGroup() {
            return ladder();
        }
    }

    @Nested
    @Tag("full")
    class Push extends PushSuite {
        @Override
        protected String provider() {
            return "soft";
        }

        @Override
        protected RdmaEventLoopGroup newGroup() {
            return ladder();
        }
    }
}
