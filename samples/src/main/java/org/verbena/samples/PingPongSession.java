package org.verbena.samples;

import java.io.IOException;
import java.io.PrintWriter;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
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
import org.verbena.samples.PingPong.Kind;
import org.verbena.verbs.AccessFlag;
import org.verbena.verbs.CompletionChannel;
import org.verbena.verbs.CompletionQueue;
import org.verbena.verbs.Context;
import org.verbena.verbs.Gid;
import org.verbena.verbs.MemoryRegion;
import org.verbena.verbs.ProtectionDomain;
import org.verbena.verbs.QueuePair;
import org.verbena.verbs.QueuePairCapabilities;
import org.verbena.verbs.QueuePairOptions;
import org.verbena.verbs.QueuePairType;
import org.verbena.verbs.ReceiveQueue;
import org.verbena.verbs.SendFlags;
import org.verbena.verbs.SharedReceiveQueue;
import org.verbena.verbs.WorkCompletions;

/**
 * One side of a {@link PingPong}. Each queue pair sends again when both its last send has completed and the peer's answer has come; one
 * buffer serves all sends and receives, as in C. It belongs to one thread.
 */
final class PingPongSession implements AutoCloseable {
    /** As in C: the shared-receive-queue program always tells of this many queue pairs. */
    static final int MAX_QUEUE_PAIRS = 256;

    /** As in C, for datagrams. */
    private static final int QUEUE_KEY = 0x11111111;

    /** What a datagram's receive has in front of the message: room for a global route header. */
    private static final int GLOBAL_ROUTE_BYTES = 40;

    private static final int PAGE_BYTES = 4096;

    /** As in C: what the buffer holds before anything is received. */
    private static final byte FILLER = 0x7b;

    private static final int RECEIVE = 1;
    private static final int SEND = 2;

    /** Completions taken with one call. */
    private static final int BATCH = 16;

    /** How long to sleep before looking whether the thread was interrupted. */
    private static final int SLEEP_MILLIS = 500;

    private final Kind kind;
    private final QueuePairPath path;
    private final int sizeBytes;
    private final int messageOffset;
    private final int receiveDepth;
    private final int count;
    private final boolean validating;
    private final PrintWriter out;

    private final Deque<AutoCloseable> resources = new ArrayDeque<>();
    private final ProtectionDomain domain;
    private final @Nullable CompletionChannel channel;
    private final CompletionQueue completions;
    private final WorkCompletions polled = new WorkCompletions(BATCH);
    private final MemoryRegion region;
    private final List<QueuePair> queuePairs = new ArrayList<>();
    private final List<QueuePairAddress> addresses = new ArrayList<>();
    private final ReceiveQueue receives;
    private final int sendFlags;

    /** What each queue pair waits for, bits of {@link #RECEIVE} and {@link #SEND}; by its index. */
    private final int[] pending;

    /** Work request ids have the queue pair's index above the two bits; shared receives do not know it. */
    private final Map<Integer, Integer> indexByNumber = new HashMap<>();

    private int posted;

    PingPongSession(
            Kind kind,
            Context device,
            QueuePairPath path,
            int sizeBytes,
            int queuePairCount,
            int receiveDepth,
            int count,
            boolean events,
            boolean validating,
            PrintWriter out) {
        this.kind = kind;
        this.path = path;
        this.sizeBytes = sizeBytes;
        this.messageOffset = kind == Kind.UD ? GLOBAL_ROUTE_BYTES : 0;
        this.receiveDepth = receiveDepth;
        this.count = count;
        this.validating = validating;
        this.out = out;
        this.pending = new int[queuePairCount];
        resources.push(polled);
        try {
            Context context = own(device);
            if (kind == Kind.UD) {
                requireOnePacket(context);
            }
            channel = events ? own(context.createCompletionChannel()) : null;
            domain = own(context.allocateProtectionDomain());
            Arena arena = own(Arena.ofShared());
            MemorySegment buffer = arena.allocate(messageOffset + Math.max(1, sizeBytes), PAGE_BYTES);
            buffer.fill(FILLER);
            region = own(domain.registerMemory(buffer, Set.of(AccessFlag.LOCAL_WRITE)));
            int entries = receiveDepth + queuePairCount;
            completions = own(
                    channel == null
                            ? context.createCompletionQueue(entries)
                            : context.createCompletionQueue(entries, channel, 0));
            QueuePairOptions options = QueuePairOptions.reliable(
                            completions, new QueuePairCapabilities(1, receiveDepth, 1, 1, 0))
                    .withType(
                            kind == Kind.UC ? QueuePairType.UC : kind == Kind.UD ? QueuePairType.UD : QueuePairType.RC);
            SharedReceiveQueue shared = null;
            if (kind == Kind.SRQ) {
                shared = own(domain.createSharedReceiveQueue(receiveDepth, 1));
                options = options.withSharedReceives(shared);
            }
            for (int i = 0; i < queuePairCount; i++) {
                QueuePair queuePair = own(domain.createQueuePair(options));
                if (kind == Kind.UD) {
                    path.initializeDatagrams(queuePair, QUEUE_KEY);
                } else {
                    path.initialize(queuePair);
                }
                addresses.add(addressOf(path, queuePair));
                indexByNumber.put(queuePair.number(), i);
                queuePairs.add(queuePair);
            }
            receives = shared == null ? queuePairs.getFirst().receiveQueue() : shared.receiveQueue();
            int inline = queuePairs.getFirst().sendQueue().maxInlineBytes() >= sizeBytes ? SendFlags.INLINE : 0;
            sendFlags = SendFlags.SIGNALED | inline;
        } catch (RuntimeException refused) {
            close();
            throw refused;
        }
    }

    /** A queue pair's address, or what the user has to give for there to be one. */
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
        if (sizeBytes > mtuBytes) {
            throw new CommandFailure("a datagram of " + sizeBytes + " bytes does not fit into the " + mtuBytes
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
        List<QueuePairAddress> told = new ArrayList<>(addresses);
        while (kind == Kind.SRQ && told.size() < MAX_QUEUE_PAIRS) {
            told.add(new QueuePairAddress(0, 0, 0, Gid.ZERO));
        }
        exchange.addresses(told, this::connect);

        boolean client = !exchange.isServer();
        Arrays.fill(pending, RECEIVE);
        if (client && validating) {
            for (int at = 0; at < sizeBytes; at += PAGE_BYTES) {
                region.segment().set(ValueLayout.JAVA_BYTE, messageOffset + at, (byte) 0);
            }
        }
        long begin = System.nanoTime();
        if (client) {
            for (int i = 0; i < queuePairs.size(); i++) {
                send(i);
            }
        }
        exchangeMessages();
        report(System.nanoTime() - begin);
        if (validating && !client) {
            validate();
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
        int sent = 0;
        int received = 0;
        while (sent < count || received < count) {
            if (channel != null) {
                awaitEvent(channel);
            }
            while (completions.poll(polled) > 0) {
                for (int i = 0; i < polled.count(); i++) {
                    if (!polled.isSuccess(i)) {
                        throw new CommandFailure(polled.describe(i));
                    }
                    int what = (int) polled.workRequestId(i) & (RECEIVE | SEND);
                    if (what == SEND) {
                        sent++;
                    } else {
                        received++;
                        if (--posted <= queuePairs.size()) {
                            postReceives();
                        }
                    }
                    Integer index = indexByNumber.get(polled.queuePairNumber(i));
                    if (index == null) {
                        throw new CommandFailure(
                                "a completion of a queue pair that is not one of these: " + polled.describe(i));
                    }
                    pending[index] &= ~what;
                    if (pending[index] == 0 && sent < count) {
                        send(index);
                        pending[index] = RECEIVE | SEND;
                    }
                }
            }
            if (Thread.interrupted()) {
                throw new CommandFailure("interrupted after " + sent + " sends and " + received + " receives");
            }
        }
    }

    private void awaitEvent(CompletionChannel events) {
        if (Descriptors.awaitReadable(SLEEP_MILLIS, events.fd()) != 0) {
            while (events.tryGetEvent() != null) {
                // One queue on the channel: there is nothing to find out.
            }
            completions.requestNotify(false);
        }
    }

    private void postReceives() {
        while (posted < receiveDepth && !receives.isFull()) {
            receives.receive(RECEIVE).piece(region, 0, messageOffset + sizeBytes);
            posted++;
        }
        receives.flush();
    }

    /** Whom datagrams go to. */
    private record Destination(org.verbena.verbs.AddressHandle handle, int queuePairNumber) {}

    private @Nullable Destination destination;

    private void send(int index) {
        var queue = queuePairs.get(index).sendQueue().send(SEND, sendFlags);
        if (destination != null) {
            queue.to(destination.handle(), destination.queuePairNumber(), QUEUE_KEY);
        }
        queue.piece(region, messageOffset, sizeBytes).flush();
        pending[index] |= SEND;
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
        long bytes = 2L * sizeBytes * count;
        out.printf(Locale.ROOT, "%d bytes in %.2f seconds = %.2f Mbit/sec%n", bytes, micros / 1e6, bytes * 8 / micros);
        out.printf(Locale.ROOT, "%d iters in %.2f seconds = %.2f usec/iter%n", count, micros / 1e6, micros / count);
    }

    /** The client has set the first byte of each page to 0, and the server what it sends back is what it got. */
    private void validate() {
        for (int at = 0; at < sizeBytes; at += PAGE_BYTES) {
            if (region.segment().get(ValueLayout.JAVA_BYTE, messageOffset + at) != 0) {
                throw new CommandFailure("invalid data in page " + at / PAGE_BYTES);
            }
        }
    }

    @Override
    public void close() {
        closeAll(resources);
    }

    /** Closes what was taken last first, all of it, and throws what was refused first. */
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
