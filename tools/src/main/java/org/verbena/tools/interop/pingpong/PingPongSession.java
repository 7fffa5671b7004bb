package org.verbena.tools.interop.pingpong;

import java.io.IOException;
import java.io.PrintWriter;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.verbena.cm.Descriptors;
import org.verbena.cm.QueuePairAddress;
import org.verbena.cm.QueuePairPath;
import org.verbena.cm.TcpQueuePairExchange;
import org.verbena.samples.command.CommandFailure;
import org.verbena.tools.interop.pingpong.PingPong.Kind;
import org.verbena.verbs.CompletionChannel;
import org.verbena.verbs.CompletionQueue;
import org.verbena.verbs.CompletionReader;
import org.verbena.verbs.Context;
import org.verbena.verbs.ProtectionDomain;
import org.verbena.verbs.QueuePair;
import org.verbena.verbs.QueuePairCapabilities;
import org.verbena.verbs.QueuePairExtension;
import org.verbena.verbs.QueuePairOptions;
import org.verbena.verbs.ReceiveQueue;
import org.verbena.verbs.SharedReceiveQueue;
import org.verbena.verbs.VerbsException;
import org.verbena.verbs.WorkCompletions;
import org.verbena.verbs.WorkRequestBuilder;
import org.verbena.verbs.address.Gid;
import org.verbena.verbs.device.OnDemandOperation;
import org.verbena.verbs.work.CompletionField;
import org.verbena.verbs.work.CompletionStatus;
import org.verbena.verbs.work.SendFlags;
import org.verbena.verbs.work.SendOperation;

/**
 * One side of a {@link PingPongPlan}. Each queue pair sends again when its last send has completed and the peer's
 * answer has arrived; one buffer serves all sends and receives, as in C. It belongs to one thread.
 */
final class PingPongSession implements AutoCloseable {
    /** As in C: the shared-receive-queue program always sends the addresses of this many queue pairs. */
    static final int MAX_QUEUE_PAIRS = 256;

    /** As in C, for datagrams. */
    private static final int QUEUE_KEY = 0x11111111;

    /** The bytes in front of a datagram's message in a receive: room for a global route header. */
    private static final int GLOBAL_ROUTE_BYTES = 40;

    /** As in errno(3). */
    private static final int EOPNOTSUPP = 95;

    private static final int RECEIVE = 1;
    private static final int SEND = 2;

    /** Completions taken with one call. */
    private static final int BATCH = 16;

    /** How long to sleep before checking whether the thread was interrupted. */
    private static final int SLEEP_MILLIS = 500;

    private final Kind kind;
    private final PingPongPlan plan;
    private final QueuePairPath path;
    private final PrintWriter out;

    private final Deque<AutoCloseable> resources = new ArrayDeque<>();
    private final ProtectionDomain domain;
    private final @Nullable CompletionChannel channel;
    private final CompletionQueue completions;
    private final WorkCompletions polled = new WorkCompletions(BATCH);

    /** Null unless completions have timestamps. */
    private final @Nullable ReceiveClock clock;

    private final PingPongMemory memory;
    private final List<QueuePair> queuePairs = new ArrayList<>();
    private final List<QueuePairAddress> addresses = new ArrayList<>();
    private final ReceiveQueue receives;
    private final int sendFlags;

    /** What each queue pair waits for, bits of {@link #RECEIVE} and {@link #SEND}; by its index. */
    private final int[] pending;

    /** A shared receive belongs to no queue pair: its completion names one. */
    private final Map<Integer, Integer> indexByNumber = new HashMap<>();

    private int posted;
    private int sent;
    private int received;
    private @Nullable PingPongFigures figures;

    PingPongSession(PingPongPlan plan, Context device, PrintWriter out, PrintWriter err) {
        this.kind = plan.kind();
        this.plan = plan;
        this.path = plan.path();
        this.out = out;
        this.pending = new int[plan.queuePairs()];
        resources.push(polled);
        try {
            Context context = own(device);
            requireFeatures(context);
            if (kind == Kind.UD) {
                requireOnePacket(context);
            }
            channel = plan.events() ? own(context.createCompletionChannel()) : null;
            domain = own(context.allocateProtectionDomain());
            int headerBytes = kind == Kind.UD ? GLOBAL_ROUTE_BYTES : 0;
            memory = own(new PingPongMemory(domain, headerBytes, plan.sizeBytes(), plan.features(), err));
            clock = plan.features().timestamps()
                    ? new ReceiveClock(context.queryDeviceExtended().completionTimestampMask())
                    : null;
            completions = own(createCompletionQueue(context, plan.receiveDepth() + plan.queuePairs()));
            QueuePairOptions options = QueuePairOptions.reliable(
                            completions, new QueuePairCapabilities(1, plan.receiveDepth(), 1, 1, 0))
                    .withType(kind.type);
            SharedReceiveQueue shared = null;
            if (kind == Kind.SRQ) {
                shared = own(domain.createSharedReceiveQueue(plan.receiveDepth(), 1));
                options = options.withSharedReceives(shared);
            }
            for (int i = 0; i < plan.queuePairs(); i++) {
                QueuePair queuePair = own(createQueuePair(options));
                if (kind == Kind.UD) {
                    path.initializeDatagrams(queuePair, QUEUE_KEY);
                } else {
                    path.initialize(queuePair);
                }
                addresses.add(addressOf(path, queuePair));
                indexByNumber.put(queuePair.number(), i);
                queuePairs.add(queuePair);
            }
            QueuePair first = queuePairs.getFirst();
            receives = shared == null ? first.receiveQueue() : shared.receiveQueue();
            int maxInlineBytes = first.options().capabilities().maxInlineBytes();
            boolean inline = memory.isHere() && maxInlineBytes >= plan.sizeBytes();
            sendFlags = SendFlags.SIGNALED | (inline ? SendFlags.INLINE : 0);
        } catch (RuntimeException refused) {
            close();
            throw refused;
        }
    }

    private void requireFeatures(Context context) {
        OnDemandOperation receive = kind == Kind.SRQ ? OnDemandOperation.SRQ_RECV : OnDemandOperation.RECV;
        plan.features().require(context, kind.type, receive, plan.sizeBytes());
    }

    private CompletionQueue createCompletionQueue(Context context, int entries) {
        if (clock != null) {
            return context.createExtendedCompletionQueue(
                    entries, channel, 0, Set.of(CompletionField.COMPLETION_TIMESTAMP));
        }
        return channel == null
                ? context.createCompletionQueue(entries)
                : context.createCompletionQueue(entries, channel, 0);
    }

    private QueuePair createQueuePair(QueuePairOptions options) {
        if (!plan.features().newSend()) {
            return domain.createQueuePair(options);
        }
        try {
            return domain.createQueuePair(options, QueuePairExtension.building(Set.of(SendOperation.SEND)));
        } catch (VerbsException refused) {
            // No attribute of a device shows this in advance.
            if (refused.errno() != EOPNOTSUPP) {
                throw refused;
            }
            throw new CommandFailure(
                    "-N (--new_send) needs work request builders (ibv_wr_*), which "
                            + domain.context().device().name() + " does not have",
                    refused);
        }
    }

    /** A queue pair's address; fails with the option that is missing if there is none. */
    static QueuePairAddress addressOf(QueuePairPath path, QueuePair queuePair) {
        try {
            return path.addressOf(queuePair);
        } catch (IllegalArgumentException withoutGid) {
            throw new CommandFailure(withoutGid.getMessage() + " (-g)");
        }
    }

    /** A datagram that is longer than the port's MTU would never arrive. */
    private void requireOnePacket(Context context) {
        int mtuBytes = context.queryPort(path.port()).activeMtu().bytes();
        if (plan.sizeBytes() > mtuBytes) {
            throw new CommandFailure("a datagram of " + plan.sizeBytes() + " bytes does not fit into the " + mtuBytes
                    + " bytes of the port's MTU: give -s " + mtuBytes + " or less, on both sides");
        }
    }

    private <T extends AutoCloseable> T own(T resource) {
        resources.push(resource);
        return resource;
    }

    /** Connects and exchanges all messages. */
    void run(TcpQueuePairExchange exchange) throws IOException {
        postReceives();
        if (channel != null) {
            completions.requestNotify(false);
        }
        for (QueuePairAddress address : addresses) {
            print("local address: ", address);
        }
        List<QueuePairAddress> exchanged = new ArrayList<>(addresses);
        while (kind == Kind.SRQ && exchanged.size() < MAX_QUEUE_PAIRS) {
            exchanged.add(new QueuePairAddress(0, 0, 0, Gid.ZERO));
        }
        exchange.addresses(exchanged, this::connect);

        boolean client = !exchange.isServer();
        Arrays.fill(pending, RECEIVE);
        if (client) {
            memory.prepare(plan.validating());
        }
        long begin = System.nanoTime();
        if (client) {
            for (int i = 0; i < queuePairs.size(); i++) {
                send(i);
            }
        }
        exchangeMessages();
        report(System.nanoTime() - begin);
        if (plan.validating() && !client) {
            memory.validate();
        }
    }

    private void connect(List<QueuePairAddress> remote) {
        for (int i = 0; i < queuePairs.size(); i++) {
            print("remote address:", remote.get(i));
            if (kind == Kind.UD) {
                path.enableDatagrams(queuePairs.get(i), addresses.get(i));
                destination = new Destination(
                        own(domain.createAddressHandle(path.vectorTo(remote.get(i)))),
                        remote.get(i).queuePairNumber());
            } else {
                path.connect(queuePairs.get(i), addresses.get(i), remote.get(i), 1);
            }
        }
    }

    private void exchangeMessages() {
        while (sent < plan.count() || received < plan.count()) {
            if (channel != null) {
                awaitEvent(channel);
            }
            if (clock == null) {
                takeCompletions();
            } else {
                takeCompletions(completions.reader(), clock);
            }
            if (Thread.interrupted()) {
                throw new CommandFailure("interrupted after " + sent + " sends and " + received + " receives");
            }
        }
    }

    private void takeCompletions() {
        while (completions.poll(polled) > 0) {
            for (int i = 0; i < polled.count(); i++) {
                if (!polled.isSuccess(i)) {
                    throw new CommandFailure(polled.describe(i));
                }
                Integer index = indexByNumber.get(polled.queuePairNumber(i));
                if (index == null) {
                    throw new CommandFailure(
                            "a completion of a queue pair that is not one of these: " + polled.describe(i));
                }
                completed((int) polled.workRequestId(i), index);
            }
        }
    }

    /** With timestamps there is one queue pair. */
    private void takeCompletions(CompletionReader reader, ReceiveClock clock) {
        while (reader.tryNext()) {
            int what = (int) reader.workRequestId();
            if (!reader.isSuccess()) {
                CompletionStatus status = reader.status();
                throw new CommandFailure("a " + (what == SEND ? "send" : "receive") + " failed: " + status + ", "
                        + status.meaning() + "; " + status.hint());
            }
            if (what == RECEIVE) {
                clock.received(reader.timestamp());
            }
            completed(what, 0);
        }
    }

    private void completed(int what, int index) {
        if (what == SEND) {
            sent++;
        } else {
            received++;
            if (--posted <= queuePairs.size()) {
                postReceives();
            }
        }
        pending[index] &= ~what;
        if (pending[index] == 0 && sent < plan.count()) {
            send(index);
            pending[index] = RECEIVE | SEND;
        }
    }

    private void awaitEvent(CompletionChannel events) {
        if (Descriptors.awaitReadable(SLEEP_MILLIS, events.fd()) != 0) {
            while (events.tryGetEvent() != null) {
                // There is only one queue on the channel.
            }
            completions.requestNotify(false);
        }
    }

    private void postReceives() {
        while (posted < plan.receiveDepth() && !receives.isFull()) {
            receives.receive(RECEIVE).sge(memory.region(), memory.receiveOffset(), memory.receiveBytes());
            posted++;
        }
        receives.flush();
    }

    /** The destination of datagrams. */
    private record Destination(org.verbena.verbs.AddressHandle handle, int queuePairNumber) {}

    private @Nullable Destination destination;

    private void send(int index) {
        if (plan.features().newSend()) {
            build(queuePairs.get(index).builder());
        } else {
            post(index);
        }
        pending[index] |= SEND;
    }

    private void build(WorkRequestBuilder builder) {
        builder.start();
        try {
            builder.send(SEND, sendFlags);
            if ((sendFlags & SendFlags.INLINE) != 0) {
                builder.inline(memory.message());
            } else {
                builder.sge(memory.region(), memory.messageOffset(), plan.sizeBytes());
            }
        } catch (RuntimeException refused) {
            builder.abort();
            throw refused;
        }
        builder.complete();
    }

    private void post(int index) {
        var queue = queuePairs.get(index).sendQueue().send(SEND, sendFlags);
        if (destination != null) {
            queue.to(destination.handle(), destination.queuePairNumber(), QUEUE_KEY);
        }
        queue.sge(memory.region(), memory.messageOffset(), plan.sizeBytes()).flush();
    }

    private void print(String which, QueuePairAddress address) {
        out.printf(
                Locale.ROOT,
                "  %s LID 0x%04x, QPN 0x%06x, PSN 0x%06x, GID %s%n",
                which,
                address.lid(),
                address.queuePairNumber(),
                address.packetSequenceNumber(),
                address.gid());
        out.flush();
    }

    private void report(long nanos) {
        double micros = nanos / 1000.0;
        int count = plan.count();
        long bytes = 2L * plan.sizeBytes() * count;
        figures = new PingPongFigures(
                bytes, count, micros / 1e6, bytes * 8 / micros, micros / count, clock == null ? null : clock.cycles());
        out.printf(Locale.ROOT, "%d bytes in %.2f seconds = %.2f Mbit/sec%n", bytes, micros / 1e6, bytes * 8 / micros);
        out.printf(Locale.ROOT, "%d iters in %.2f seconds = %.2f usec/iter%n", count, micros / 1e6, micros / count);
        if (clock != null) {
            clock.report(out);
        }
    }

    /** The result; null before {@link #run} has ended. */
    @Nullable PingPongFigures figures() {
        return figures;
    }

    @Override
    public void close() {
        closeAll(resources);
    }

    /** Closes everything, the last taken first, and throws the first failure. */
    static void closeAll(Deque<AutoCloseable> resources) {
        RuntimeException first = null;
        while (!resources.isEmpty()) {
            try {
                resources.pop().close();
            } catch (Exception refused) {
                first = first != null
                        ? first
                        : refused instanceof RuntimeException unchecked
                                ? unchecked
                                : new CommandFailure("close", refused);
            }
        }
        if (first != null) {
            throw first;
        }
    }
}
