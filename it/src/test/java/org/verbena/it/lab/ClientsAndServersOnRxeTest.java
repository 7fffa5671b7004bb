package org.verbena.it.lab;

import io.netty.util.ResourceLeakDetector;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Tag;
import org.verbena.api.CancellationSuite;
import org.verbena.api.InterceptorSuite;
import org.verbena.api.KilledServersSuite;
import org.verbena.api.LeavingServersSuite;
import org.verbena.api.MessageStreamSuite;
import org.verbena.api.MetadataSuite;
import org.verbena.api.MethodsSuite;
import org.verbena.api.PushSuite;
import org.verbena.api.ReconnectSuite;
import org.verbena.api.RequestFailureSuite;
import org.verbena.api.RollingUpdateSuite;
import org.verbena.api.SeveralServersSuite;
import org.verbena.api.ShutdownSuite;

/** How clients and servers of the short form live and end, on verbs over soft RoCE. */
@Tag("lab")
@Tag("lab-long")
@Tag("lab-full")
class ClientsAndServersOnRxeTest {
    /** Where the host has some hundred: both ends are in the guest. */
    private static final int MANY_CLIENTS = 40;

    {
        // Recording every access to every buffer is too slow for the guest.
        ResourceLeakDetector.setLevel(ResourceLeakDetector.Level.SIMPLE);
    }

    /** On which device. */
    LabDevice device() {
        return LabDevice.RXE;
    }

    @Nested
    class RollingUpdates extends RollingUpdateSuite {
        @Override
        protected String provider() {
            return "verbs";
        }

        @Override
        protected String host() {
            return device().address();
        }

        @Override
        protected int clients() {
            return 6;
        }

        @Override
        protected int manyClients() {
            return MANY_CLIENTS;
        }
    }

    @Nested
    class LeavingServers extends LeavingServersSuite {
        @Override
        protected String provider() {
            return "verbs";
        }

        @Override
        protected String host() {
            return device().address();
        }
    }

    @Nested
    class KilledServers extends KilledServersSuite {
        @Override
        protected String provider() {
            return "verbs";
        }

        @Override
        protected String host() {
            return device().address();
        }
    }

    @Nested
    class Shutdowns extends ShutdownSuite {
        @Override
        protected String provider() {
            return "verbs";
        }

        @Override
        protected String host() {
            return device().address();
        }
    }

    @Nested
    class Reconnects extends ReconnectSuite {
        @Override
        protected String provider() {
            return "verbs";
        }

        @Override
        protected String host() {
            return device().address();
        }

        @Override
        protected int manyClients() {
            return MANY_CLIENTS;
        }
    }

    @Nested
    class SeveralServers extends SeveralServersSuite {
        @Override
        protected String provider() {
            return "verbs";
        }

        @Override
        protected String host() {
            return device().address();
        }
    }

    @Nested
    class Pushes extends PushSuite {
        @Override
        protected String provider() {
            return "verbs";
        }

        @Override
        protected String host() {
            return device().address();
        }

        @Override
        protected int many() {
            return MANY_CLIENTS;
        }
    }

    @Nested
    class MessageStreams extends MessageStreamSuite {
        @Override
        protected String provider() {
            return "verbs";
        }

        @Override
        protected String host() {
            return device().address();
        }

        @Override
        protected long veryManyBytes() {
            return 256L << 20;
        }
    }

    @Nested
    class RequestFailures extends RequestFailureSuite {
        @Override
        protected String provider() {
            return "verbs";
        }

        @Override
        protected String host() {
            return device().address();
        }
    }

    @Nested
    class Cancellations extends CancellationSuite {
        @Override
        protected String provider() {
            return "verbs";
        }

        @Override
        protected String host() {
            return device().address();
        }
    }

    @Nested
    class MetadataOfRequests extends MetadataSuite {
        @Override
        protected String provider() {
            return "verbs";
        }

        @Override
        protected String host() {
            return device().address();
        }
    }

    @Nested
    class MethodCalls extends MethodsSuite {
        @Override
        protected String provider() {
            return "verbs";
        }

        @Override
        protected String host() {
            return device().address();
        }
    }

    @Nested
    class Interceptors extends InterceptorSuite {
        @Override
        protected String provider() {
            return "verbs";
        }

        @Override
        protected String host() {
            return device().address();
        }
    }
}
