package com.ibm.disni.verbs.impl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.ibm.disni.util.MemoryUtils;
import com.ibm.disni.util.NativeAffinity;
import com.ibm.disni.verbs.IbvSendWR;
import com.ibm.disni.verbs.IbvWC;
import com.sun.management.ThreadMXBean;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.net.JarURLConnection;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.FutureTask;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.cm.CmEventType;
import org.verbena.disni.StubLibrary;
import org.verbena.transport.spi.Patience;
import org.verbena.verbs.ffm.IbvRecvWr;
import org.verbena.verbs.ffm.IbvSendWr;
import org.verbena.verbs.ffm.IbvSge;
import org.verbena.verbs.ffm.IbvWc;

/** The methods themselves: what DiSNI's classes keep from happening is tried here. */
@Timeout(240)
class NativeDispatcherTest {
    private static final short TCP = 0x106;
    private static final int ALL_ACCESS = 7;
    private static final int RC = 2;
    private static final int NEXT_AT = (int) IbvSendWr.NEXT;
    private static final int ELEMENTS_AT = (int) IbvSendWr.NUM_SGE;

    private NativeDispatcher calls;

    @BeforeEach
    void installStub() throws Exception {
        StubLibrary.install();
        calls = new NativeDispatcher();
    }

    @AfterEach
    void nothingIsLeft() {
        assertThat(StubLibrary.leaks()).isEmpty();
    }

    /** Memory as DiSNI allocates it. */
    private static ByteBuffer memory(int bytes) {
        return ByteBuffer.allocateDirect(bytes).order(ByteOrder.nativeOrder());
    }

    private static long at(ByteBuffer buffer) {
        return MemoryUtils.getAddress(buffer);
    }

    private static ByteBuffer address(int lastByte, int port) {
        ByteBuffer address = memory(16);
        address.putShort((short) 2);
        address.order(ByteOrder.BIG_ENDIAN).putShort((short) port);
        address.put(new byte[] {10, 0, 0, (byte) lastByte});
        return address;
    }

    /** Two connected queue pairs on the stub. */
    private final class Connected {
        final long serverEvents = calls._createEventChannel();
        final long clientEvents = calls._createEventChannel();
        final long listener = calls._createId(serverEvents, TCP);
        final long client = calls._createId(clientEvents, TCP);
        final long context;
        final long domain;
        final long channel;
        final long queue;
        final long clientPair;
        final long server;
        final long serverPair;
        private final ByteBuffer ids = memory(16);

        Connected(int port) throws IOException {
            ByteBuffer address = address(1, port);
            calls._bindAddr(listener, at(address));
            calls._listen(listener, 5);
            calls._resolveAddr(client, 0, at(address), 1000);
            expect(clientEvents, CmEventType.ADDR_RESOLVED);
            calls._resolveRoute(client, 1000);
            expect(clientEvents, CmEventType.ROUTE_RESOLVED);
            context = calls._getContext(client);
            domain = calls._allocPd(context);
            channel = calls._createCompChannel(context);
            queue = calls._createCQ(context, channel, 64, 0);
            clientPair = pair(client);
            calls._connect(client, 300, 7, 0, (byte) 0);
            expect(serverEvents, CmEventType.CONNECT_REQUEST);
            assertThat(ids.getLong(0)).isEqualTo(listener);
            server = ids.getLong(8);
            assertThat(calls._getContext(server)).isEqualTo(context);
            serverPair = pair(server);
            calls._accept(server, 7, 7);
            expect(serverEvents, CmEventType.ESTABLISHED);
            assertThat(ids.getLong(0)).isEqualTo(-1);
            assertThat(ids.getLong(8)).isEqualTo(server);
            expect(clientEvents, CmEventType.ESTABLISHED);
        }

        private long pair(long id) throws IOException {
            return calls._createQP(id, domain, queue, queue, RC, 4, 4, 0);
        }

        private void expect(long events, CmEventType type) throws IOException {
            assertThat(calls._getCmEvent(events, at(ids), at(ids) + 8, -1)).isEqualTo(type.value());
        }

        void close() throws IOException {
            calls._disconnect(client);
            for (long id : new long[] {client, server}) {
                calls._destroyQP(id);
                calls._destroyCmId(id);
            }
            closeOthers();
        }

        void closeOthers() throws IOException {
            calls._destroyCmId(listener);
            calls._destroyCQ(queue);
            calls._destroyCompChannel(channel);
            calls._deallocPd(domain);
            calls._destroyEventChannel(clientEvents);
            calls._destroyEventChannel(serverEvents);
        }
    }

    /** An empty receive, in C's layout. */
    private static ByteBuffer emptyReceive(long id) {
        return memory(NativeDispatcher.RECV_WR_BYTES).putLong(0, id);
    }

    /** DiSNI's methods, all of them native, by name and types. */
    @Test
    void hasTheMethodsOfDisni() throws Exception {
        List<URL> jars = Collections.list(
                getClass().getClassLoader().getResources("com/ibm/disni/verbs/impl/NativeDispatcher.class"));
        URL original = jars.stream()
                .filter(url -> url.toString().contains("disni-2.1.jar"))
                .findFirst()
                .orElseThrow();
        URL jar = ((JarURLConnection) original.openConnection()).getJarFileURL();
        try (URLClassLoader loader = new URLClassLoader(new URL[] {jar}, ClassLoader.getPlatformClassLoader()) {
            @Override
            protected Class<?> findClass(String name) throws ClassNotFoundException {
                return name.startsWith("org.slf4j") ? Class.forName(name) : super.findClass(name);
            }
        }) {
            List<String> natives = methods(loader.loadClass(NativeDispatcher.class.getName()), Modifier.NATIVE);
            assertThat(natives).hasSizeGreaterThan(40);
            assertThat(methods(NativeDispatcher.class, Modifier.PUBLIC)).isEqualTo(natives);
            for (Class<?> shadow : List.of(MemoryUtils.class, NativeAffinity.class, NatPollCqCall.class)) {
                assertThat(methods(shadow, Modifier.PUBLIC))
                        .isEqualTo(methods(loader.loadClass(shadow.getName()), Modifier.PUBLIC));
            }
        }
    }

    private static List<String> methods(Class<?> type, int modifier) {
        return Arrays.stream(type.getDeclaredMethods())
                .filter(method -> (method.getModifiers() & modifier) != 0 && !method.isSynthetic())
                .map(method -> Modifier.isStatic(method.getModifiers()) + " " + method.getReturnType() + " "
                        + method.getName() + Arrays.toString(method.getParameterTypes()))
                .sorted()
                .toList();
    }

    @Test
    void sizesAreThoseOfTheHeaders() {
        assertThat(NatIbvRecvWR.CSIZE).isEqualTo((int) IbvRecvWr.SIZE);
        assertThat(NatIbvSendWR.CSIZE).isEqualTo((int) IbvSendWr.SIZE);
        assertThat(NatIbvSge.CSIZE).isEqualTo((int) IbvSge.SIZE);
        assertThat(IbvWC.CSIZE).isEqualTo((int) IbvWc.SIZE);
        assertThat(NatIbvSendWR.REMOTEADDR_OFFSET).isEqualTo((int) IbvSendWr.WR_RDMA_REMOTE_ADDR);
        assertThat(NatIbvSendWR.RKEY_OFFSET).isEqualTo((int) IbvSendWr.WR_RDMA_RKEY);
        assertThat(SockAddrIn.CSIZE).isEqualTo(16);
        assertThat(calls._getVersion()).isEqualTo(32);
    }

    /** Each method with each kind of number that it may get for its first argument, but the right one. */
    @Test
    void numbersOfNothingAreRefused() throws Exception {
        Connected connected = new Connected(7490);
        long stale = calls._allocPd(connected.context);
        calls._deallocPd(stale);
        List<Long> wrong =
                new ArrayList<>(List.of(0L, -1L, 1L, Long.MAX_VALUE, Long.MIN_VALUE, stale, 0x7f0000001000L));
        Map<String, List<Long>> numbers = new TreeMap<>();
        numbers.put("channel", List.of(connected.serverEvents));
        numbers.put("id", List.of(connected.client));
        numbers.put("context", List.of(connected.context));
        numbers.put("pd", List.of(connected.domain));
        numbers.put("compChannel", List.of(connected.channel));
        numbers.put("cq", List.of(connected.queue));
        numbers.put("qp", List.of(connected.clientPair));
        Map<String, String> kinds = Map.ofEntries(
                Map.entry("_createId", "channel"),
                Map.entry("_getCmEvent", "channel"),
                Map.entry("_destroyEventChannel", "channel"),
                Map.entry("_allocPd", "context"),
                Map.entry("_createCompChannel", "context"),
                Map.entry("_createCQ", "context"),
                Map.entry("_queryOdpSupport", "context"),
                Map.entry("_getContextFd", "context"),
                Map.entry("_getContextNumCompVectors", "context"),
                Map.entry("_regMr", "pd"),
                Map.entry("_deallocPd", "pd"),
                Map.entry("_getPdHandle", "pd"),
                Map.entry("_getCqEvent", "compChannel"),
                Map.entry("_destroyCompChannel", "compChannel"),
                Map.entry("_pollCQ", "cq"),
                Map.entry("_reqNotifyCQ", "cq"),
                Map.entry("_ackCqEvent", "cq"),
                Map.entry("_destroyCQ", "cq"),
                Map.entry("_postSend", "qp"),
                Map.entry("_postRecv", "qp"),
                Map.entry("_modifyQP", "qp"),
                Map.entry("_getQpNum", "qp"),
                Map.entry("_deregMr", "mr"),
                Map.entry("_expPrefetchMr", "mr"));
        ByteBuffer room = memory(256);
        int tried = 0;
        for (Method method : NativeDispatcher.class.getDeclaredMethods()) {
            if (method.getParameterCount() == 0
                    || method.getParameterTypes()[0] != long.class
                    || method.isSynthetic()) {
                continue;
            }
            String kind = kinds.getOrDefault(method.getName(), "id");
            List<Long> others = Stream.concat(
                            wrong.stream(),
                            numbers.entrySet().stream()
                                    .filter(entry -> !entry.getKey().equals(kind))
                                    .flatMap(entry -> entry.getValue().stream()))
                    .toList();
            for (long number : others) {
                Object[] arguments = new Object[method.getParameterCount()];
                for (int i = 0; i < arguments.length; i++) {
                    Class<?> type = method.getParameterTypes()[i];
                    arguments[i] = type == long.class
                            ? i == 0 ? number : at(room)
                            : type == int.class ? 1 : type == short.class ? (Object) (short) 1 : (byte) 1;
                }
                assertThatThrownBy(() -> {
                            try {
                                method.invoke(calls, arguments);
                            } catch (InvocationTargetException thrown) {
                                throw thrown.getCause();
                            }
                        })
                        .as("%s of 0x%x", method.getName(), number)
                        .matches(thrown -> thrown instanceof IOException || thrown.getCause() instanceof IOException);
                tried++;
            }
        }
        assertThat(tried).isGreaterThan(300);
        // And behind the first argument.
        assertThatThrownBy(() -> calls._createCQ(connected.context, connected.queue, 4, 0))
                .isInstanceOf(IOException.class);
        for (int position = 0; position < 3; position++) {
            long[] three = {connected.domain, connected.queue, connected.queue};
            three[position] = stale;
            assertThatThrownBy(() -> calls._createQP(connected.client, three[0], three[1], three[2], RC, 1, 1, 0))
                    .isInstanceOf(IOException.class);
        }
        connected.close();
    }

    @Test
    void badArgumentsAreRefused() throws Exception {
        Connected connected = new Connected(7491);
        ByteBuffer room = memory(64);
        for (int access : new int[] {1 << 30, 2}) { // unknown; REMOTE_WRITE without LOCAL_WRITE
            assertThatThrownBy(() ->
                            calls._regMr(connected.domain, at(room), 8, access, at(room), at(room) + 4, at(room) + 8))
                    .isInstanceOf(IOException.class);
        }
        assertThatThrownBy(() -> calls._regMr(connected.domain, 0, 8, ALL_ACCESS, at(room), at(room), at(room)))
                .isInstanceOf(IOException.class);
        assertThatThrownBy(() -> calls._regMr(connected.domain, at(room), -8, ALL_ACCESS, at(room), at(room), at(room)))
                .isInstanceOf(IOException.class);
        assertThatThrownBy(() -> calls._regMr(connected.domain, 0, -1, ALL_ACCESS, at(room), at(room), at(room)))
                .isInstanceOf(IOException.class);
        assertThatThrownBy(() -> calls._regMr(connected.domain, at(room), 8, ALL_ACCESS, 0, at(room), at(room)))
                .isInstanceOf(IOException.class);
        assertThatThrownBy(() -> calls._postSend(connected.clientPair, 0)).isInstanceOf(IOException.class);
        assertThatThrownBy(() -> calls._postRecv(connected.clientPair, 0)).isInstanceOf(IOException.class);
        for (int elements : new int[] {-1, Integer.MIN_VALUE, 100, Integer.MAX_VALUE}) {
            ByteBuffer first = memory(NativeDispatcher.SEND_WR_BYTES);
            ByteBuffer second = memory(NativeDispatcher.SEND_WR_BYTES).putInt(ELEMENTS_AT, elements);
            first.putLong(NEXT_AT, at(second));
            assertThatThrownBy(() -> calls._postSend(connected.clientPair, at(first)))
                    .isInstanceOf(IOException.class);
            assertThatThrownBy(() -> calls._postRecv(connected.clientPair, at(second)))
                    .isInstanceOf(IOException.class);
        }
        assertThatThrownBy(() -> calls._pollCQ(connected.queue, 1, 0)).isInstanceOf(IOException.class);
        assertThatThrownBy(() -> calls._pollCQ(connected.queue, -1, at(room))).isInstanceOf(IOException.class);
        assertThatThrownBy(() -> calls._modifyQP(connected.clientPair, 0)).isInstanceOf(IOException.class);
        assertThatThrownBy(() -> calls._getCmEvent(connected.clientEvents, 0, at(room), 0))
                .isInstanceOf(IOException.class);
        assertThatThrownBy(() -> calls._getCmEvent(connected.clientEvents, at(room), 0, 0))
                .isInstanceOf(IOException.class);
        assertThatThrownBy(() -> calls._connect(connected.client, 1, 1, 0, (byte) 4))
                .isInstanceOf(IOException.class);
        assertThatThrownBy(() -> calls._bindAddr(connected.client, at(memory(16))))
                .isInstanceOf(IOException.class);
        assertThatThrownBy(() -> calls._createQP(
                        connected.client, connected.domain, connected.queue, connected.queue, 99, 1, 1, 0))
                .isInstanceOf(IOException.class);
        assertThatThrownBy(() -> MemoryUtils.getAddress(ByteBuffer.allocate(8))).isInstanceOf(ClassCastException.class);
        connected.close();
    }

    @Test
    void whatCRefusesIsAnIoException() throws Exception {
        Connected connected = new Connected(7492);
        StubLibrary.fail("ibv_alloc_pd", 12);
        assertThatThrownBy(() -> calls._allocPd(connected.context)).isInstanceOf(IOException.class);
        StubLibrary.fail("ibv_create_cq", 22);
        assertThatThrownBy(() -> calls._createCQ(connected.context, connected.channel, 4, 0))
                .isInstanceOf(IOException.class);
        StubLibrary.fail("rdma_create_id", 12);
        assertThatThrownBy(() -> calls._createId(connected.clientEvents, TCP)).isInstanceOf(IOException.class);
        // A queue pair takes four receives.
        for (int i = 0; i < 4; i++) {
            calls._postRecv(connected.serverPair, at(emptyReceive(i)));
        }
        StubLibrary.fail("post_recv", 12);
        assertThatThrownBy(() -> calls._postRecv(connected.serverPair, at(emptyReceive(4))))
                .isInstanceOf(IOException.class);
        StubLibrary.fail("rdma_disconnect", 22);
        assertThat(calls._disconnect(connected.client)).isEqualTo(-1);
        connected.close();
    }

    @Test
    void aBufferIsNamedFromItsStart() {
        ByteBuffer whole = memory(64);
        long start = at(whole);
        whole.position(16).limit(32);
        assertThat(at(whole)).isEqualTo(start);
        assertThat(at(whole.slice())).isEqualTo(start + 16);
        assertThat(at(whole.asReadOnlyBuffer())).isEqualTo(start);
        assertThat(at(memory(0))).isNotZero();
    }

    @Test
    void addressesAreWrittenAsCDoes() throws Exception {
        Connected connected = new Connected(7493);
        ByteBuffer local = memory(16);
        calls._getDstAddr(connected.client, at(local));
        assertThat(local).isEqualTo(address(1, 7493).clear());
        long unbound = calls._createId(connected.clientEvents, TCP);
        calls._getSrcAddr(unbound, at(local));
        assertThat(local).isEqualTo(memory(16));
        assertThat(calls._getContext(unbound)).isEqualTo(-1);
        assertThat(calls._destroyQP(unbound)).isEqualTo(-1);
        assertThat(calls._destroyEp(unbound)).isZero();
        connected.close();
    }

    /** DiSNI's own classes destroy a completion channel before its queue, and forget about both. */
    @Test
    void anyOrderOfClosingLeavesNothing() throws Exception {
        Connected connected = new Connected(7494);
        ByteBuffer room = memory(64);
        long region = calls._regMr(connected.domain, at(room), 8, ALL_ACCESS, at(room), at(room) + 4, at(room) + 8);
        assertThat(room.getInt(0)).isNotZero();
        calls._destroyEventChannel(connected.clientEvents);
        calls._destroyEventChannel(connected.serverEvents);
        calls._deallocPd(connected.domain);
        calls._destroyCompChannel(connected.channel);
        calls._destroyCQ(connected.queue);
        assertThat(StubLibrary.leaks()).isNotEmpty();
        assertThatThrownBy(() -> calls._pollCQ(connected.queue, 1, at(room))).isInstanceOf(IOException.class);
        calls._deregMr(region);
        calls._destroyEp(connected.client);
        calls._destroyCmId(connected.server); // with its queue pair
        calls._destroyCmId(connected.listener);
    }

    @Test
    void aWaitEndsWithItsChannel() throws Exception {
        Connected connected = new Connected(7495);
        CountDownLatch started = new CountDownLatch(1);
        FutureTask<Integer> waiting = new FutureTask<>(() -> {
            started.countDown();
            return calls._getCqEvent(connected.channel, -1);
        });
        Thread.ofPlatform().daemon().start(waiting);
        Patience.until("started", () -> started.getCount() == 0);
        assertThat(calls._getCqEvent(connected.channel, 0)).isEqualTo(-1);
        connected.close();
        assertThatThrownBy(() -> Patience.await("the wait", waiting)).hasRootCauseInstanceOf(IOException.class);
    }

    /** Exceptions aside: a program that gets no exception makes no garbage. */
    @Test
    void postingAndPollingAllocateNothing() throws Exception {
        Connected connected = new Connected(7496);
        ByteBuffer memory = memory(1024);
        long receive = at(memory);
        long send = receive + 256;
        long completions = receive + 512;
        memory.putInt(256 + 28, IbvSendWR.IBV_WR_SEND).putInt(256 + 32, IbvSendWR.IBV_SEND_SIGNALED);
        ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
        long deadline = System.nanoTime() + Patience.LIMIT.toNanos();
        long allocated;
        do { // the first rounds link the calls
            long before = threads.getCurrentThreadAllocatedBytes();
            for (int i = 0; i < 2000; i++) {
                calls._postRecv(connected.serverPair, receive);
                calls._postSend(connected.clientPair, send);
                int taken = 0;
                while (taken < 2) {
                    taken += calls._pollCQ(connected.queue, 4, completions);
                }
            }
            allocated = threads.getCurrentThreadAllocatedBytes() - before;
        } while (allocated >= 1000 && System.nanoTime() < deadline);
        assertThat(allocated).isLessThan(1000);
        connected.close();
    }

    /** Threads that post and poll find the objects closed under them: an exception, and never a crash. */
    @Test
    void closingUnderThreadsThatPostAndPoll() throws Exception {
        for (int round = 0; round < 20; round++) {
            Connected connected = new Connected(7500 + round);
            ByteBuffer completions = memory(4 * NativeDispatcher.WC_BYTES);
            List<FutureTask<Long>> threads = new ArrayList<>();
            CountDownLatch running = new CountDownLatch(3);
            threads.add(endless(running, () -> {
                try {
                    calls._postRecv(connected.serverPair, at(emptyReceive(1)));
                } catch (IOException refused) {
                    calls._getQpNum(connected.serverPair); // the queue is full, or the queue pair closed
                }
            }));
            threads.add(endless(running, () -> calls._pollCQ(connected.queue, 4, at(completions))));
            threads.add(endless(running, () -> calls._getCqEvent(connected.channel, 1)));
            running.await();
            connected.close();
            for (FutureTask<Long> thread : threads) {
                assertThat(Patience.await("the end of a thread", thread)).isPositive();
            }
        }
    }

    private interface Step {
        void take() throws IOException;
    }

    /** Repeats a step until it is refused. */
    private static FutureTask<Long> endless(CountDownLatch running, Step step) {
        FutureTask<Long> task = new FutureTask<>(() -> {
            long steps = 0;
            while (true) {
                try {
                    step.take();
                } catch (IOException closed) {
                    return steps;
                }
                if (steps++ == 0) {
                    running.countDown();
                }
            }
        });
        Thread.ofPlatform().daemon().start(task);
        return task;
    }

    @Test
    void bindsAThreadToProcessors() throws Exception {
        FutureTask<Long> bound = new FutureTask<>(() -> {
            long all = NativeAffinity.getAffinity();
            long lowest = Long.lowestOneBit(all);
            NativeAffinity.setAffinity(lowest);
            assertThat(NativeAffinity.getAffinity()).isEqualTo(lowest);
            NativeAffinity.setAffinity(0);
            NativeAffinity.setAffinity(1L << 62); // probably no such processor; like DiSNI's C, it reports no error
            return NativeAffinity.getAffinity();
        });
        Thread.ofPlatform().start(bound);
        assertThat(Patience.await("bound", bound)).isNotZero();
    }
}
