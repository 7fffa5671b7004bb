package org.verbena.transport.verbs;

import static org.assertj.core.api.Assertions.assertThat;

import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.Logger;
import ch.qos.logback.classic.spi.ILoggingEvent;
import ch.qos.logback.classic.spi.IThrowableProxy;
import ch.qos.logback.core.AppenderBase;
import io.netty.channel.IoEventLoop;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import java.lang.foreign.Arena;
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.BeforeParameterizedClassInvocation;
import org.junit.jupiter.params.Parameter;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.slf4j.LoggerFactory;
import org.verbena.transport.CompletionLoopOptions;
import org.verbena.transport.MemoryDomain.Access;
import org.verbena.transport.RegisteredMemory;
import org.verbena.transport.spi.Endpoint;
import org.verbena.transport.spi.EndpointOptions;
import org.verbena.transport.spi.IncomingConnection;
import org.verbena.transport.spi.ListenOptions;
import org.verbena.transport.spi.Listener;
import org.verbena.transport.spi.Patience;
import org.verbena.transport.spi.RecordingEndpointHandler;
import org.verbena.transport.spi.RecordingListenerHandler;
import org.verbena.transport.spi.ScatterGatherList;
import org.verbena.transport.spi.SharedReceiveQueue;
import org.verbena.transport.spi.WorkRequest;
import org.verbena.verbs.ffm.Errno;

/**
 * Each native call fails in its turn, while connections are made, used and closed on devices in memory. Every waiter is
 * notified, an exception or the log names the call, and everything that was created is destroyed.
 */
@Timeout(240)
@Families.Suite
class FailureInjectionTest {
    @Parameter
    String family;

    @BeforeParameterizedClassInvocation
    static void play(String family) throws Exception {
        Families.play(family);
        CALLS.clear();
    }

    /** How many calls of one function fail, each in a run of its own: the first ones, since later ones repeat them. */
    private static final int MAX_PLACES = 8;

    /** Only made where receives are shared: the only event of a device is that of the last receive. */
    private static final Set<String> SHARED =
            Set.of("ibv_create_srq", "ibv_destroy_srq", "post_srq_recv", "ibv_get_async_event");

    private static final Map<String, Integer> CALLS = new HashMap<>();
    private static final ConcurrentLinkedQueue<String> TOLD = new ConcurrentLinkedQueue<>();
    private static final Logger LOGGER = (Logger) LoggerFactory.getLogger("org.verbena");
    private static final AppenderBase<ILoggingEvent> LISTENER = new AppenderBase<>() {
        @Override
        protected void append(ILoggingEvent event) {
            StringBuilder text = new StringBuilder(event.getFormattedMessage());
            for (IThrowableProxy cause = event.getThrowableProxy(); cause != null; cause = cause.getCause()) {
                text.append(" <- ").append(cause.getMessage());
            }
            TOLD.add(text.toString());
        }
    };

    @BeforeAll
    static void listen() throws Exception {
        StubDevice.install();
        LISTENER.start();
        LOGGER.setAdditive(false);
        LOGGER.setLevel(Level.DEBUG);
        LOGGER.addAppender(LISTENER);
    }

    @AfterAll
    static void stop() {
        LOGGER.detachAppender(LISTENER);
        LOGGER.setLevel(null);
        LOGGER.setAdditive(true);
    }

    /**
     * How often a run without failures calls a function. What has to be called need not be in each: a loop that polls
     * in time takes no event.
     */
    private static int calls(String function, boolean isExpected) throws Exception {
        int runs = isExpected ? 20 : 1;
        for (int i = 0; i < runs && !CALLS.containsKey(function); i++) {
            StubDevice.install();
            Play play = new Play();
            play.run();
            assertThat(play.failures).isEmpty();
            play.calls.forEach(CALLS::putIfAbsent);
        }
        return CALLS.getOrDefault(function, 0);
    }

    @ParameterizedTest
    @CsvSource({
        "rdma_create_event_channel, rdma_create_event_channel",
        "rdma_create_id, rdma_create_id",
        "rdma_set_option, rdma_set_option",
        "rdma_bind_addr, rdma_bind_addr",
        "rdma_listen, rdma_listen",
        "rdma_resolve_addr, rdma_resolve_addr",
        "rdma_resolve_route, rdma_resolve_route",
        "rdma_migrate_id, rdma_migrate_id",
        "rdma_connect, rdma_connect",
        "rdma_accept, rdma_accept",
        "rdma_reject, rdma_reject",
        "rdma_disconnect, rdma_disconnect",
        "rdma_get_cm_event, rdma_get_cm_event",
        "rdma_get_devices, rdma_get_devices",
        "ibv_query_device, ibv_query_device",
        "ibv_query_port, ibv_query_port",
        "ibv_alloc_pd, ibv_alloc_pd",
        "ibv_reg_mr, ibv_reg_mr",
        "stub_alloc_mw, ibv_alloc_mw",
        "bind_mw, ibv_post_send",
        "ibv_create_comp_channel, ibv_create_comp_channel",
        "ibv_create_cq, ibv_create_cq",
        "ibv_create_srq, ibv_create_srq",
        "ibv_create_qp, create_qp", // ibv_create_qp where the device's limits are found
        "ibv_modify_qp, ibv_modify_qp",
        "modify_init, rdma_create_qp", // and three more by librdmacm
        "modify_accept, rdma_accept",
        "modify_reply, CONNECT_ERROR",
        "modify_end, rdma_disconnect",
        "ibv_get_async_event, ibv_get_async_event",
        "ibv_get_cq_event, ibv_get_cq_event",
        "req_notify_cq, ibv_req_notify_cq",
        "poll_cq, ibv_poll_cq",
        "post_send, ibv_post_send",
        "post_recv, ibv_post_recv",
        "post_srq_recv, ibv_post_srq_recv",
        "ibv_destroy_srq, ibv_destroy_srq",
        "ibv_destroy_cq, ibv_destroy_cq",
        "ibv_destroy_comp_channel, ibv_destroy_comp_channel",
        "epoll_create1, epoll_create1",
        "eventfd, eventfd",
        "socket, socket",
        "bind, bind",
        "epoll_ctl, epoll_ctl",
        "epoll_wait, epoll_wait",
    })
    void aFailedCallIsReportedAndLeaksNothing(String function, String name) throws Exception {
        // A loop whose wait fails rests for a second.
        boolean rests = function.equals("epoll_wait") || function.equals("rdma_get_cm_event");
        boolean isExpected = function.endsWith("_mw")
                ? Families.hasWindows()
                : function.equals("modify_reply")
                        ? !Families.isIwarp()
                        : !SHARED.contains(function) || Families.hasSharedReceives();
        int places = Math.min(calls(function, isExpected), rests ? 2 : MAX_PLACES);
        assertThat(places > 0).as("calls of " + function).isEqualTo(isExpected);
        List<String> wrong = new ArrayList<>();
        for (int skip = 0; skip < places; skip++) {
            String outcome = playWith(function, name, skip, "");
            if (outcome != null) {
                wrong.add("call " + (skip + 1) + " of " + places + ": " + outcome);
            }
        }
        assertThat(wrong).isEmpty();
    }

    /** What the system refuses to destroy leaks, but nothing else does, and nobody waits for it. */
    @ParameterizedTest
    @CsvSource({"rdma_destroy_id, rdma_destroy_id, rdma_cm_id 1", "ibv_dereg_mr, ibv_dereg_mr, ibv_mr 1 stub_pd 1"})
    void aFailedDestructionIsReportedAndLeaksNothingElse(String function, String name, String lost) throws Exception {
        int places = Math.min(calls(function, true), MAX_PLACES);
        assertThat(places).isPositive();
        List<String> wrong = new ArrayList<>();
        for (int skip = 0; skip < places; skip++) {
            String outcome = playWith(function, name, skip, lost);
            if (outcome != null) {
                wrong.add("call " + (skip + 1) + " of " + places + ": " + outcome);
            }
        }
        assertThat(wrong).isEmpty();
    }

    /** Returns what was wrong with the handling of a failure; null if nothing was. */
    private static @Nullable String playWith(String function, String name, int skip, String lost) throws Exception {
        StubDevice.install();
        Map<String, Integer> before = live();
        TOLD.clear();
        StubDevice.failOnce(function, Errno.EIO, skip);
        Play play = new Play();
        try {
            play.run();
        } catch (AssertionError | RuntimeException hangsOrThrows) {
            return hangsOrThrows.toString();
        } finally {
            StubDevice.call("stub_reset");
        }
        if (!play.failures.isEmpty()) {
            return play.failures.toString();
        }
        if (play.failed > 0 && TOLD.stream().noneMatch(line -> line.contains(name))) {
            return "nothing reports " + name + "; reported were only " + TOLD;
        }
        Map<String, Integer> allowed = new HashMap<>(before);
        if (play.failed > 0 && !lost.isEmpty()) {
            counts(lost).forEach((kind, count) -> allowed.merge(kind, count, Integer::sum));
        }
        return live().equals(allowed) ? null : "left " + live() + " where there were " + before;
    }

    /** What was created and not destroyed. */
    private static Map<String, Integer> live() {
        return counts(StubDevice.leaks());
    }

    private static Map<String, Integer> counts(String text) {
        Map<String, Integer> counts = new HashMap<>();
        if (!text.isEmpty()) {
            String[] words = text.split(" ");
            for (int i = 0; i < words.length; i += 2) {
                counts.put(words[i], Integer.parseInt(words[i + 1]));
            }
        }
        return counts;
    }

    private static void tell(@Nullable Throwable thrown) {
        StringBuilder text = new StringBuilder();
        for (Throwable cause = thrown; cause != null; cause = cause.getCause()) {
            text.append(" <- ").append(cause.getMessage());
        }
        TOLD.add(text.toString());
    }

    /**
     * The life of a provider: it listens, rejects, accepts, connects in both ways, carries messages, and everything is
     * closed.
     */
    private static final class Play {
        private final List<String> failures = new ArrayList<>();
        private final List<RecordingEndpointHandler> endpoints = new ArrayList<>();
        private final List<RegisteredMemory> regions = new ArrayList<>();
        private final AtomicInteger requests = new AtomicInteger();
        private Map<String, Integer> calls = Map.of();
        private int failed;

        void run() {
            VerbsProvider provider = new VerbsProvider();
            Map<String, Integer> before = live();
            tell(provider.unavailabilityCause());
            TOLD.add(provider.description());
            try {
                MultiThreadIoEventLoopGroup group = new MultiThreadIoEventLoopGroup(
                        1, provider.newIoHandlerFactory(CompletionLoopOptions.DEFAULTS));
                try {
                    use(provider, group.next());
                } finally {
                    Patience.await("the loop ended", group.shutdownGracefully(0, 5, TimeUnit.SECONDS));
                }
            } catch (IllegalStateException noLoop) {
                tell(noLoop);
            }
            for (RegisteredMemory region : regions) {
                try {
                    region.close();
                } catch (RuntimeException refused) {
                    tell(refused);
                }
            }
            for (RecordingEndpointHandler endpoint : endpoints) {
                failures.addAll(endpoint.violations());
            }
            calls = counts(StubDevice.allCalls());
            // Queues that were not given back at once are tried again.
            awaitGone(before, "ibv_cq", "stub_cq", "stub_channel", "stub_srq", "stub_qp");
            failed = StubDevice.call("stub_failed");
            provider.close();
        }

        private void awaitGone(Map<String, Integer> before, String... kinds) {
            for (String kind : kinds) {
                Patience.until(kind + " as before", () -> live().getOrDefault(kind, 0) <= before.getOrDefault(kind, 0));
            }
        }

        private void use(VerbsProvider provider, IoEventLoop loop) {
            RecordingListenerHandler listening =
                    new RecordingListenerHandler(loop).whenRequested(request -> decide(request, loop));
            Listener listener = provider.listen(loop, StubDevice.ROCE, ListenOptions.DEFAULTS, listening);
            if (isUp(listening::awaitListening, "closed instead of listening")) {
                for (int i = 1; i <= 2; i++) {
                    int count = i;
                    StubDevice.call("stub_request", StubDevice.ROCE.getPort());
                    Patience.until("a decision on request " + i, () -> requests.get() == count);
                }
                if (!endpoints.isEmpty()) {
                    useAndEnd(endpoints.getFirst(), false);
                }
            }
            for (boolean shared : new boolean[] {true, false}) {
                RecordingEndpointHandler client = handler("client", loop);
                if (shared && Families.hasSharedReceives()) {
                    client.sharesReceives();
                }
                InetSocketAddress address = shared ? StubDevice.ROCE : StubDevice.IWARP;
                provider.connect(loop, address, options(shared && Families.hasSharedReceives()), client);
                useAndEnd(client, shared && Families.hasSharedReceives());
            }
            listener.close();
            tell(listening.awaitClosed());
            try {
                listening.assertNoViolations();
            } catch (AssertionError violation) {
                failures.add(violation.getMessage());
            }
        }

        private RecordingEndpointHandler handler(String name, IoEventLoop loop) {
            RecordingEndpointHandler made = new RecordingEndpointHandler(name + " " + endpoints.size(), loop);
            endpoints.add(made);
            return made;
        }

        private static EndpointOptions options(boolean shared) {
            return EndpointOptions.DEFAULTS.with(o -> {
                o.connectTimeoutMillis = 20_000;
                o.sendDepth = 16;
                o.receiveDepth = 4;
                o.maxSges = 2;
                o.maxInlineBytes = 0;
                o.readDepth = 4;
                o.trafficClass = 8;
                o.sharedReceiveQueue = shared;
            });
        }

        /** Rejects the first request and accepts the second. On the loop. */
        private void decide(IncomingConnection request, IoEventLoop loop) {
            try {
                if (requests.get() == 0) {
                    request.reject(new byte[] {1});
                } else {
                    RecordingEndpointHandler server = handler("server", loop);
                    request.accept(loop, options(false), server);
                }
            } finally {
                requests.incrementAndGet();
            }
        }

        /** Whether the connection came up; if not, records why. */
        private static boolean isUp(Runnable wait, String otherwise) {
            try {
                wait.run();
                return true;
            } catch (AssertionError down) {
                if (!String.valueOf(down.getMessage()).endsWith(otherwise)) {
                    throw down;
                }
                tell(down);
                return false;
            }
        }

        private void useAndEnd(RecordingEndpointHandler handler, boolean shared) {
            if (isUp(handler::awaitConnected, "disconnected instead of connected")) {
                try {
                    use(handler, shared, StubDevice.lastNumber());
                } catch (RuntimeException refused) {
                    tell(refused);
                }
                StubDevice.call("stub_hold_sends", 0);
                handler.awaitPrepared().disconnect();
            }
            tell(handler.awaitDisconnected());
        }

        /** A message each way, in memory that is closed while it is in use. */
        private void use(RecordingEndpointHandler handler, boolean shared, int number) {
            RegisteredMemory region = handler.call(endpoint ->
                    endpoint.memoryDomain().register(Arena.global().allocate(256), Set.of(Access.LOCAL_WRITE)));
            regions.add(region);
            StubDevice.call("stub_hold_sends", 1);
            handler.run(endpoint -> {
                receive(handler, endpoint, shared, region);
                WorkRequest work = new WorkRequest(1).asSend(2, 0);
                work.buffers().add(region, 0, 64);
                handler.post(endpoint, work);
                endpoint.flush();
            });
            region.close();
            StubDevice.call("stub_receive", number, 10, 0);
            StubDevice.call("stub_complete", number, 0, 0);
            Patience.until("both completed", () -> handler.unclaimedCompletions() >= 2 || handler.isDisconnected());
        }

        private static void receive(
                RecordingEndpointHandler handler, Endpoint endpoint, boolean shared, RegisteredMemory region) {
            ScatterGatherList list = new ScatterGatherList(1).add(region, 64, 64);
            if (shared) {
                SharedReceiveQueue queue = endpoint.sharedReceiveQueue();
                assertThat(queue).isNotNull();
                queue.postReceive(1, list);
                queue.flush();
            } else {
                handler.postReceive(endpoint, 1, list);
            }
        }
    }
}
