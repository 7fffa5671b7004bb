package org.verbena.bench.latency;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import org.HdrHistogram.Histogram;
import org.jspecify.annotations.Nullable;
import org.verbena.cm.CmEvent;
import org.verbena.cm.CmEventType;
import org.verbena.cm.CmId;
import org.verbena.cm.ConnectionParameters;
import org.verbena.cm.EventChannel;
import org.verbena.cm.PortSpace;
import org.verbena.verbs.CompletionChannel;
import org.verbena.verbs.CompletionQueue;
import org.verbena.verbs.Context;
import org.verbena.verbs.MemoryRegion;
import org.verbena.verbs.ProtectionDomain;
import org.verbena.verbs.QueuePair;
import org.verbena.verbs.QueuePairCapabilities;
import org.verbena.verbs.QueuePairOptions;
import org.verbena.verbs.ReceiveQueue;
import org.verbena.verbs.SendQueue;
import org.verbena.verbs.WorkCompletions;
import org.verbena.verbs.memory.AccessFlag;
import org.verbena.verbs.work.SendFlags;

/**
 * What perftest's {@code ib_send_lat -R} and {@code ib_read_lat -R} measure, on Verbena's {@code cm} and {@code verbs}:
 * the half round trip of a send that is answered by a send, and the whole of a read. The lab's job {@code latency} runs
 * both side by side.
 *
 * <pre>{@code
 * VerbsLatency server ADDRESS PORT
 * VerbsLatency client ADDRESS PORT ITERATIONS TEST...     a test is send:64:poll, read:4096:event ...
 * }</pre>
 *
 * <p>Each test is a connection of its own; the client says in its private data what it wants. One line a test goes to
 * standard output: name, then least, median and 99 % in microseconds.
 */
public final class VerbsLatency {
    private static final int WAIT_MILLIS = 10_000;

    /** As perftest's: enough that a receive is always posted, few enough to stay in the cache. */
    private static final int DEPTH = 64;

    private static final int SIGNAL_EVERY = DEPTH / 2;

    /** perftest's own limit for sends of a latency test. */
    private static final int INLINE_BYTES = 236;

    private VerbsLatency() {}

    private record Test(boolean read, int sizeBytes, boolean events, int iterations) {
        static Test parse(String text, int iterations) {
            String[] parts = text.split(":");
            return new Test(parts[0].equals("read"), Integer.parseInt(parts[1]), parts[2].equals("event"), iterations);
        }

        byte[] toPrivateData() {
            return ByteBuffer.allocate(16)
                    .putInt(read ? 1 : 0)
                    .putInt(sizeBytes)
                    .putInt(events ? 1 : 0)
                    .putInt(iterations)
                    .array();
        }

        static Test of(byte[] privateData) {
            ByteBuffer in = ByteBuffer.wrap(privateData);
            return new Test(in.getInt() == 1, in.getInt(), in.getInt() == 1, in.getInt());
        }

        /** Untimed, so that both JVMs have compiled the loop. */
        int warmup() {
            return 20_000;
        }

        String label() {
            return (read ? "read:" : "send:") + sizeBytes + (events ? ":event" : ":poll");
        }
    }

    /**
     * Runs one side.
     *
     * @param args see the class
     */
    public static void main(String[] args) {
        InetSocketAddress address = new InetSocketAddress(args[1], Integer.parseInt(args[2]));
        if (args[0].equals("server")) {
            serve(address);
        } else {
            for (int i = 4; i < args.length; i++) {
                measure(address, Test.parse(args[i], Integer.parseInt(args[3])));
            }
        }
    }

    private static CmEvent await(EventChannel events, CmEventType expected) {
        CmEvent event = events.get(WAIT_MILLIS);
        if (event == null) {
            throw new IllegalStateException("no " + expected + " within " + WAIT_MILLIS + " ms");
        }
        if (event.type() != expected) {
            throw event.toException("waiting for " + expected);
        }
        return event;
    }

    @SuppressWarnings("InfiniteLoopStatement")
    private static void serve(InetSocketAddress address) {
        try (EventChannel events = EventChannel.open();
                CmId listener = CmId.create(events, PortSpace.TCP)) {
            listener.bind(address);
            listener.listen(8);
            System.out.println("listening on " + address);
            while (true) {
                CmEvent request = events.get(-1);
                if (request == null || request.type() != CmEventType.CONNECT_REQUEST) {
                    continue;
                }
                Test test = Test.of(request.privateData());
                try (CmId id = request.id();
                        Peer peer = new Peer(id, test)) {
                    byte[] token = ByteBuffer.allocate(12)
                            .putLong(peer.region.address())
                            .putInt(peer.region.remoteKey())
                            .array();
                    id.accept(ConnectionParameters.DEFAULT.withPrivateData(token));
                    await(events, CmEventType.ESTABLISHED);
                    if (!test.read()) {
                        for (int i = 0; i < test.warmup() + test.iterations(); i++) {
                            peer.awaitReceive();
                            peer.send();
                            peer.postReceive();
                        }
                    }
                    await(events, CmEventType.DISCONNECTED);
                    id.disconnect();
                }
            }
        }
    }

    private static void measure(InetSocketAddress address, Test test) {
        Histogram nanos = new Histogram(10_000_000_000L, 3);
        try (EventChannel events = EventChannel.open();
                CmId id = CmId.create(events, PortSpace.TCP)) {
            id.resolveAddress(null, address, WAIT_MILLIS);
            await(events, CmEventType.ADDR_RESOLVED);
            id.resolveRoute(WAIT_MILLIS);
            await(events, CmEventType.ROUTE_RESOLVED);
            try (Peer peer = new Peer(id, test)) {
                id.connect(ConnectionParameters.DEFAULT.withPrivateData(test.toPrivateData()));
                ByteBuffer token =
                        ByteBuffer.wrap(await(events, CmEventType.ESTABLISHED).privateData());
                long remoteAddress = token.getLong();
                int remoteKey = token.getInt();
                if (!test.read()) {
                    peer.pingPong(test.warmup(), null);
                    peer.pingPong(test.iterations(), nanos);
                } else {
                    peer.reads(test.warmup(), remoteAddress, remoteKey, null);
                    peer.reads(test.iterations(), remoteAddress, remoteKey, nanos);
                }
                id.disconnect();
                await(events, CmEventType.DISCONNECTED);
            }
        }
        double factor = !test.read() ? 2e3 : 1e3; // half round trips, in microseconds
        System.out.printf(
                "%s %.2f %.2f %.2f%n",
                test.label(),
                nanos.getMinValue() / factor,
                nanos.getValueAtPercentile(50) / factor,
                nanos.getValueAtPercentile(99) / factor);
    }

    /** One end of a test's connection. */
    private static final class Peer implements AutoCloseable {
        private final List<AutoCloseable> owned = new ArrayList<>();
        private final boolean events;
        private final int sizeBytes;
        private final int sendFlags;
        private final CompletionChannel channel;
        private final CompletionQueue sends;
        private final CompletionQueue receives;
        private final WorkCompletions completions;
        private final MemoryRegion region;
        private final SendQueue sendQueue;
        private final ReceiveQueue receiveQueue;
        private int sent;

        Peer(CmId id, Test test) {
            events = test.events();
            sizeBytes = test.sizeBytes();
            Arena arena = own(Arena.ofShared());
            MemorySegment memory = arena.allocate(2L * sizeBytes, 4096);
            Context context = id.device();
            if (context == null) {
                throw new IllegalStateException("no device");
            }
            ProtectionDomain domain = own(context.allocateProtectionDomain());
            region = own(domain.registerMemory(
                    memory, EnumSet.of(AccessFlag.LOCAL_WRITE, AccessFlag.REMOTE_READ, AccessFlag.REMOTE_WRITE)));
            channel = own(context.createCompletionChannel());
            boolean read = test.read();
            sends = own(
                    read && events
                            ? context.createCompletionQueue(DEPTH, channel, 0)
                            : context.createCompletionQueue(DEPTH));
            receives = own(
                    events && !read
                            ? context.createCompletionQueue(DEPTH, channel, 0)
                            : context.createCompletionQueue(DEPTH));
            completions = own(new WorkCompletions(16));
            QueuePair queuePair = own(id.createQueuePair(
                    domain,
                    new QueuePairOptions(
                            org.verbena.verbs.queue.QueuePairType.RC,
                            sends,
                            receives,
                            null,
                            new QueuePairCapabilities(DEPTH, DEPTH, 1, 1, INLINE_BYTES),
                            false)));
            sendQueue = queuePair.sendQueue();
            receiveQueue = queuePair.receiveQueue();
            sendFlags = sizeBytes <= Math.min(INLINE_BYTES, sendQueue.maxInlineBytes()) ? SendFlags.INLINE : 0;
            for (int i = 0; i < DEPTH; i++) {
                receiveQueue.receive(i).sge(region, sizeBytes, sizeBytes);
            }
            receiveQueue.flush();
        }

        private <T extends AutoCloseable> T own(T resource) {
            owned.add(resource);
            return resource;
        }

        void pingPong(int iterations, @Nullable Histogram nanos) {
            for (int i = 0; i < iterations; i++) {
                long begin = System.nanoTime();
                send();
                awaitReceive();
                if (nanos != null) {
                    nanos.recordValue(System.nanoTime() - begin);
                }
                postReceive();
            }
        }

        void reads(int iterations, long remoteAddress, int remoteKey, @Nullable Histogram nanos) {
            if (events) {
                sends.requestNotify(false);
            }
            for (int i = 0; i < iterations; i++) {
                long begin = System.nanoTime();
                sendQueue.read(i, SendFlags.SIGNALED, remoteAddress, remoteKey).sge(region, 0, sizeBytes);
                sendQueue.flush();
                await(sends);
                if (nanos != null) {
                    nanos.recordValue(System.nanoTime() - begin);
                }
            }
        }

        void send() {
            boolean signalled = ++sent % SIGNAL_EVERY == 0;
            sendQueue
                    .send(sent, signalled ? sendFlags | SendFlags.SIGNALED : sendFlags)
                    .sge(region, 0, sizeBytes);
            sendQueue.flush();
        }

        void awaitReceive() {
            await(receives);
            // The completions of sends, once in a while and off the way from one message to the next.
            if (sent % SIGNAL_EVERY == SIGNAL_EVERY - 1) {
                drain(sends);
            }
        }

        void postReceive() {
            receiveQueue.receive(0).sge(region, sizeBytes, sizeBytes);
            receiveQueue.flush();
        }

        /** One completion: by polling, or by poll, arm, poll again and wait for the event, as long as it takes. */
        private void await(CompletionQueue queue) {
            if (!events) {
                while (!drain(queue)) {
                    Thread.onSpinWait();
                }
                return;
            }
            while (!drain(queue)) {
                queue.requestNotify(false);
                if (drain(queue)) {
                    return;
                }
                channel.takeEvent();
            }
        }

        private boolean drain(CompletionQueue queue) {
            int count = queue.poll(completions);
            for (int i = 0; i < count; i++) {
                if (!completions.isSuccess(i)) {
                    throw new IllegalStateException(completions.describe(i));
                }
            }
            return count > 0;
        }

        @Override
        public void close() {
            for (int i = owned.size() - 1; i >= 0; i--) {
                try {
                    owned.get(i).close();
                } catch (Exception e) {
                    throw new IllegalStateException(e);
                }
            }
        }
    }
}
