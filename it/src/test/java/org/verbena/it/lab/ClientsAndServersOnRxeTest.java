package org.verbena.it.lab;

import io.netty.util.ResourceLeakDetector;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.Timeout;
import org.verbena.api.CancellationSuite;
import org.verbena.api.InterceptorSuite;
import org.verbena.api.KilledServersSuite;
import org.verbena.api.LeavingServersSuite;
import org.verbena.api.MessageStreamSuite;
import org.verbena.api.MetadataSuite;
import org.verbena.api.MethodsSuite;
import org.verbena.api.PushSuite;
import org.verbena.api.RdmaClient;
import org.verbena.api.RdmaServer;
import org.verbena.api.ReconnectSuite;
import org.verbena.api.RequestFailureSuite;
import org.verbena.api.RollingUpdateSuite;
import org.verbena.api.SeveralServersSuite;
import org.verbena.api.ShutdownSuite;
import org.verbena.api.client.Target;
import org.verbena.transport.spi.Patience;

/** How clients and servers of the short form live and end, on verbs over soft RoCE. */
@Tag("lab")
@Tag("lab-long")
@Tag("lab-full")
@TestInstance(TestInstance.Lifecycle.PER_CLASS) // so that the device is known before all tests
class ClientsAndServersOnRxeTest {
    /** Where the host has some hundred: both ends are in the guest. */
    private static final int MANY_CLIENTS = 40;

    /** Times of some ten milliseconds become a second: a class that is loaded meanwhile takes as long. */
    private static final int SLOWNESS = 20;

    /** In seconds, for tests that start several JVMs or whole groups of servers. */
    private static final int LIMIT_OF_PROCESSES = 1200;

    {
        // Recording every access to every buffer is too slow for the guest.
        ResourceLeakDetector.setLevel(ResourceLeakDetector.Level.SIMPLE);
    }

    /** On which device. */
    LabDevice device() {
        return LabDevice.RXE;
    }

    /**
     * The classes of a JVM that is new in the guest come so slowly that its first connection may take longer than siw
     * gives one, ten seconds, and than a connect timeout. A client that starts tries again.
     */
    @BeforeAll
    @Timeout(240)
    void connectOnce() {
        try (RdmaServer server = RdmaServer.builder()
                        .provider("verbs")
                        .bind(device().address(), 0, (exchange, message) -> exchange.reply(message.retain()));
                RdmaClient client = RdmaClient.builder()
                        .provider("verbs")
                        .target(Target.of(device().address(), server.port()))
                        .start()) {
            Patience.await("it is ready", client.whenReady());
            Patience.await("a reply", client.request(new byte[1], Patience.LIMIT));
        }
    }

    @Nested
    @Timeout(LIMIT_OF_PROCESSES)
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
            return 12; // who come back fifteen times within the time of a test
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
    @Timeout(LIMIT_OF_PROCESSES)
    class KilledServers extends KilledServersSuite {
        @Override
        protected String provider() {
            return "verbs";
        }

        @Override
        protected String host() {
            return device().address();
        }

        @Override
        protected int slowness() {
            return SLOWNESS;
        }

        @Override
        protected int clients() {
            return 1;
        }

        @Override
        protected int manyKills() {
            return 2;
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

        @Override
        protected int slowness() {
            return SLOWNESS;
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

        @Override
        protected int slowness() {
            return SLOWNESS;
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

        @Override
        protected int slowness() {
            return SLOWNESS;
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

        @Override
        protected int slowness() {
            return SLOWNESS;
        }
    }
}
