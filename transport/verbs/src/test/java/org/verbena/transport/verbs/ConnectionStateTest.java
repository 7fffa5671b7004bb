package org.verbena.transport.verbs;

import static org.assertj.core.api.Assertions.assertThat;

import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.Logger;
import ch.qos.logback.classic.spi.ILoggingEvent;
import ch.qos.logback.core.AppenderBase;
import io.netty.channel.IoEventLoop;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import java.net.InetSocketAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.slf4j.LoggerFactory;
import org.verbena.cm.CmEvent;
import org.verbena.cm.CmEventType;
import org.verbena.cm.ConnectionParameters;
import org.verbena.transport.CompletionLoopOptions;
import org.verbena.transport.RdmaException;
import org.verbena.transport.spi.ListenOptions;
import org.verbena.transport.spi.Patience;
import org.verbena.transport.spi.RecordingEndpointHandler;
import org.verbena.transport.spi.RecordingListenerHandler;
import org.verbena.transport.verbs.ConnectionState.Event;
import org.verbena.verbs.ffm.Errno;

/**
 * Each event of rdma_cm, and each step out of turn, in each state of a connection: what the table does not have is
 * refused and logged, every attempt ends once, with a cause of its type, and nothing is left.
 */
@Timeout(240)
class ConnectionStateTest {
    private static final InetSocketAddress SILENT_ROUTE = new InetSocketAddress("10.0.0.251", 7471);

    /** What can be asked of a {@link ConnectionSetup}, besides its end, which each walk has. */
    enum Step {
        BEGIN,
        CONNECT,
        NOTIFY,
        DESTROY
    }

    private static volatile @Nullable ConnectionState state;
    private static final AtomicInteger HANDLED = new AtomicInteger();
    private static final AtomicInteger REFUSED = new AtomicInteger();

    private static final Logger LOGGER = (Logger) LoggerFactory.getLogger(ConnectionSetup.class);
    private static final AppenderBase<ILoggingEvent> LISTENER = new AppenderBase<>() {
        @Override
        protected void append(ILoggingEvent event) {
            Object[] arguments = event.getArgumentArray();
            if (arguments != null && arguments[arguments.length - 1] instanceof ConnectionState to) {
                state = to;
                HANDLED.incrementAndGet();
            } else if (event.getLevel().isGreaterOrEqual(Level.WARN)) {
                REFUSED.incrementAndGet();
                HANDLED.incrementAndGet();
            }
        }
    };

    private VerbsProvider provider;
    private MultiThreadIoEventLoopGroup group;
    private IoEventLoop loop;
    private RecordingEndpointHandler handler;
    private volatile VerbsEndpoint endpoint;
    private int device;
    private CountDownLatch busy = new CountDownLatch(0);

    @BeforeAll
    static void listen() {
        LISTENER.start();
        LOGGER.setAdditive(false);
        LOGGER.setLevel(Level.TRACE);
        LOGGER.addAppender(LISTENER);
    }

    @AfterAll
    static void stop() {
        LOGGER.detachAppender(LISTENER);
        LOGGER.setLevel(null);
        LOGGER.setAdditive(true);
    }

    @BeforeEach
    void start() throws Exception {
        StubDevice.install();
        provider = new VerbsProvider();
        group = new MultiThreadIoEventLoopGroup(1, provider.newIoHandlerFactory(CompletionLoopOptions.DEFAULTS));
        loop = group.next();
    }

    @AfterEach
    void end() {
        busy.countDown();
        StubDevice.call("stub_unblock");
        StubDevice.call("stub_hold_events", -1);
        Patience.await("the loop ended", group.shutdownGracefully(0, 5, TimeUnit.SECONDS));
        StubDevice.close(provider);
        assertThat(StubDevice.leaks()).isEmpty();
    }

    @Test
    void theTableIsTheDrawing() throws Exception {
        String source = Files.readString(Path.of("src/main/java/org/verbena/transport/verbs/ConnectionState.java"));
        ConnectionState[] states = ConnectionState.values();
        String letters = "";
        for (ConnectionState each : states) {
            String before = source.substring(0, source.indexOf("  " + each + " "));
            letters += before.charAt(before.length() - 1);
        }
        for (Event event : Event.values()) {
            int at = source.indexOf(" *   " + event + " ") + 5;
            String row = source.substring(at, source.indexOf('\n', at))
                    .replace(event.name(), "")
                    .replace(" ", "");
            for (int i = 0; i < states.length; i++) {
                char to = row.charAt(i);
                assertThat(states[i].after(event))
                        .as("%s in %s", event, states[i])
                        .isEqualTo(to == '!' ? null : to == '.' ? states[i] : states[letters.indexOf(to)]);
            }
            assertThat(row).hasSize(states.length);
        }
    }

    /** One of each kind: those that are left out are handled as one of these. */
    private static final Set<CmEventType> KINDS = EnumSet.of(
            CmEventType.ADDR_RESOLVED,
            CmEventType.ROUTE_RESOLVED,
            CmEventType.REJECTED,
            CmEventType.ESTABLISHED,
            CmEventType.DISCONNECTED,
            CmEventType.DEVICE_REMOVAL,
            CmEventType.ADDR_CHANGE,
            CmEventType.TIMEWAIT_EXIT,
            CmEventType.MULTICAST_JOIN);

    static Stream<Arguments> reports() {
        return Arrays.stream(ConnectionState.values())
                .flatMap(each -> KINDS.stream().map(type -> Arguments.of(each, type)));
    }

    @ParameterizedTest
    @MethodSource("reports")
    void everyReportHasItsPlaceInEveryState(ConnectionState in, CmEventType type) {
        enter(in);
        int before = REFUSED.get();
        report(in, type);
        boolean isDelayed = in.isInCall();
        release(in);
        if (isDelayed) {
            Patience.until("the call has returned", () -> state != in);
        }
        endsOnce();
        Event event = eventOf(type);
        if (!isDelayed) {
            assertThat(REFUSED.get() > before).as("it is refused").isEqualTo(event == null || in.after(event) == null);
        }
    }

    @ParameterizedTest
    @EnumSource(ConnectionState.class)
    void aStepOutOfTurnIsRefusedInEveryState(ConnectionState in) throws Exception {
        for (Step step : Step.values()) {
            if (in.after(Event.valueOf(step.name())) == null) {
                enter(in);
                int before = REFUSED.get();
                ConnectionSetup setup = (ConnectionSetup) endpoint.cmEventSink();
                CountDownLatch taken = new CountDownLatch(1);
                setup.execute(() -> {
                    try {
                        take(step, setup);
                    } finally {
                        taken.countDown();
                    }
                });
                if (in == ConnectionState.PARTING || in == ConnectionState.ENDING) {
                    StubDevice.call("stub_unblock");
                }
                Patience.until("the step is taken", () -> taken.getCount() == 0);
                release(in);
                endsOnce();
                boolean isLeftOut = step == Step.BEGIN || step == Step.CONNECT;
                assertThat(REFUSED.get() > before || (isLeftOut && in.compareTo(ConnectionState.LEAVING) >= 0))
                        .as("%s is refused", step)
                        .isTrue();
                end();
                start();
            }
        }
    }

    private static void take(Step step, ConnectionSetup setup) {
        switch (step) {
            case BEGIN -> setup.begin();
            case CONNECT -> setup.connectOrAccept(ConnectionParameters.DEFAULT);
            case NOTIFY -> setup.notifyPeer(new byte[0]);
            case DESTROY -> setup.destroy();
        }
    }

    @ParameterizedTest
    @EnumSource(
            value = ConnectionState.class,
            names = {"PREPARING", "CONNECTING", "UP"})
    void anAcceptedRequestEndsOnceAsWell(ConnectionState in) {
        for (CmEventType type : List.of(CmEventType.REJECTED, CmEventType.DISCONNECTED, CmEventType.ADDR_CHANGE)) {
            StubDevice.call("stub_hold_events", in == ConnectionState.CONNECTING ? 9 : -1);
            handler = new RecordingEndpointHandler("server", loop);
            device = 0;
            state = null;
            endpoint = null;
            RecordingListenerHandler listening = new RecordingListenerHandler(loop).whenRequested(request -> {
                endpoint = (VerbsEndpoint) request.accept(loop, StubDevice.options(false, 60_000), handler);
                if (in == ConnectionState.PREPARING) {
                    reportDirectly(type); // before anything else is done
                }
            });
            provider.listen(loop, StubDevice.ROCE, ListenOptions.DEFAULTS, listening);
            var listener = listening.awaitListening();
            StubDevice.call("stub_request", StubDevice.ROCE.getPort());
            if (in != ConnectionState.PREPARING) {
                await(in);
                reportDirectly(type);
            }
            Patience.until("it is accepted", () -> endpoint != null);
            listener.close();
            listening.awaitClosed();
            endsOnce();
        }
    }

    // ---- the way to each state

    private void enter(ConnectionState in) {
        state = null;
        handler = new RecordingEndpointHandler("client", loop);
        switch (in) {
            case NEW -> {
                occupy(() -> {});
                connect(StubDevice.ROCE, null);
            }
            case ADDRESS -> connectTo(in, StubDevice.ROCE, CmEventType.ADDR_RESOLVED);
            case ROUTE -> connectTo(in, StubDevice.IWARP, CmEventType.ROUTE_RESOLVED);
            case ROUTE_CALL -> blockIn(in, SILENT_ROUTE);
            case PREPARING -> {
                connectTo(ConnectionState.ROUTE, StubDevice.IWARP, CmEventType.ROUTE_RESOLVED);
                occupy(() -> {});
                send(CmEventType.ROUTE_RESOLVED);
                await(in);
            }
            case CONNECTING -> connectTo(in, StubDevice.ROCE, CmEventType.ESTABLISHED);
            case CONNECT_CALL -> blockIn(in, StubDevice.SILENT);
            case CALLED -> connectTo(in, StubDevice.IWARP, CmEventType.ESTABLISHED);
            case UP -> connected(StubDevice.ROCE);
            case LEAVING -> {
                connected(StubDevice.ROCE);
                StubDevice.call("stub_hold_events", CmEventType.DISCONNECTED.value());
                occupy(endpoint::disconnect);
                await(in);
            }
            case DOWN -> {
                enter(ConnectionState.CONNECTING);
                occupy(endpoint::disconnect);
                await(in);
            }
            case ROUTE_ORPHAN -> leaveIn(ConnectionState.ROUTE_CALL, in);
            case CONNECT_ORPHAN -> leaveIn(ConnectionState.CONNECT_CALL, in);
            case ORPHAN -> leaveIn(ConnectionState.CALLED, in);
            case PARTING -> {
                connected(StubDevice.ROCE);
                StubDevice.call("stub_hold_events", CmEventType.DISCONNECTED.value());
                destroySlowly();
                await(in);
            }
            case ENDING -> {
                enter(ConnectionState.CONNECTING);
                destroySlowly();
                await(in);
            }
            case LINGERING -> {
                connected(StubDevice.ROCE);
                StubDevice.call("stub_hold_events", CmEventType.DISCONNECTED.value());
                leaveIn(ConnectionState.UP, in);
            }
            case GONE -> leaveIn(ConnectionState.CONNECTING, in);
        }
    }

    private void connect(InetSocketAddress to, @Nullable CmEventType lost) {
        device = to.getAddress().getAddress()[2];
        StubDevice.call("stub_hold_events", lost == null ? -1 : lost.value());
        endpoint = (VerbsEndpoint) provider.connect(loop, to, StubDevice.options(false, 60_000), handler);
    }

    private void connectTo(ConnectionState in, InetSocketAddress to, CmEventType lost) {
        connect(to, lost);
        await(in);
        provider.awaitConnectionLoops();
    }

    private void blockIn(ConnectionState in, InetSocketAddress to) {
        connect(to, null);
        Patience.until("the call blocks", () -> StubDevice.call("stub_blocked") == 1);
        await(in);
    }

    private void connected(InetSocketAddress to) {
        connect(to, null);
        handler.awaitConnected();
        await(ConnectionState.UP);
    }

    private void leaveIn(ConnectionState from, ConnectionState to) {
        if (state == null) {
            enter(from);
        }
        endpoint.disconnect();
        await(to);
    }

    /** The queue pair is busy, which the loop finds out when it is let go on; then it tries again a while later. */
    private void destroySlowly() {
        StubDevice.fail("ibv_destroy_qp", Errno.EBUSY, 1);
        StubDevice.call("stub_block", "ibv_destroy_qp:stub0");
        endpoint.disconnect();
        Patience.until("it is being destroyed", () -> StubDevice.call("stub_blocked") == 1);
    }

    /** Occupies the endpoint's loop until {@link #release}. */
    private void occupy(Runnable first) {
        CountDownLatch until = new CountDownLatch(1);
        CountDownLatch isBusy = new CountDownLatch(1);
        busy = until;
        loop.execute(() -> {
            first.run();
            isBusy.countDown();
            Patience.until("it is released", () -> until.getCount() == 0);
        });
        Patience.until("the loop is busy", () -> isBusy.getCount() == 0);
    }

    private static void await(ConnectionState which) {
        Patience.until("it is " + which + ", and not " + state, () -> state == which);
    }

    // ---- what happens there

    /** Reports an event, and waits until it is handled where it is at once. */
    private void report(ConnectionState in, CmEventType type) {
        int before = HANDLED.get();
        StubDevice.call("stub_hold_events", -1);
        if (in == ConnectionState.NEW || in == ConnectionState.GONE) {
            // There is no id, of which rdma_cm could report anything.
            reportDirectly(type);
        } else {
            send(type);
        }
        if (in == ConnectionState.PARTING || in == ConnectionState.ENDING) {
            StubDevice.call("stub_unblock");
        }
        if (!in.isInCall()) {
            Patience.until(type + " is handled", () -> HANDLED.get() > before);
        }
    }

    private void reportDirectly(CmEventType type) {
        endpoint.cmEventSink().onCmEvent(new CmEvent(type, 0, null, null, null, null, null, null));
    }

    private void send(CmEventType type) {
        StubDevice.call("stub_hold_events", -1);
        StubDevice.call("stub_cm_device", device, type.value());
    }

    private void release(ConnectionState in) {
        busy.countDown();
        StubDevice.call("stub_hold_events", -1);
        StubDevice.call("stub_unblock");
    }

    private void endsOnce() {
        endpoint.disconnect();
        Throwable cause = handler.awaitDisconnected();
        assertThat(cause == null || cause instanceof RdmaException)
                .as("%s", cause)
                .isTrue();
        Set<ConnectionState> last = EnumSet.of(ConnectionState.LINGERING, ConnectionState.ORPHAN, ConnectionState.GONE);
        Patience.until("it has no more to do", () -> last.contains(state));
        if (state != ConnectionState.GONE) {
            send(CmEventType.DISCONNECTED);
        }
        await(ConnectionState.GONE);
        handler.assertNoViolations();
    }

    private static @Nullable Event eventOf(CmEventType type) {
        return switch (type) {
            case ADDR_RESOLVED -> Event.ADDR_RESOLVED;
            case ROUTE_RESOLVED -> Event.ROUTE_RESOLVED;
            case ESTABLISHED -> Event.ESTABLISHED;
            case TIMEWAIT_EXIT -> Event.TIMEWAIT_EXIT;
            case ADDR_CHANGE, CONNECT_REQUEST, MULTICAST_JOIN, MULTICAST_ERROR, UNKNOWN -> null;
            default -> Event.OVER;
        };
    }
}
