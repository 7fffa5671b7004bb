package org.verbena.cm.sync;

import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.verbena.cm.CmId;
import org.verbena.cm.DatagramParameters;
import org.verbena.cm.Descriptors;
import org.verbena.cm.PortSpace;
import org.verbena.verbs.AddressHandle;
import org.verbena.verbs.CompletionChannel;
import org.verbena.verbs.CompletionQueue;
import org.verbena.verbs.Context;
import org.verbena.verbs.MemoryRegion;
import org.verbena.verbs.ProtectionDomain;
import org.verbena.verbs.QueuePair;
import org.verbena.verbs.QueuePairCapabilities;
import org.verbena.verbs.QueuePairOptions;
import org.verbena.verbs.SharedReceiveQueue;
import org.verbena.verbs.WorkCompletions;
import org.verbena.verbs.memory.AccessFlag;
import org.verbena.verbs.queue.QueuePairType;

/**
 * An id with a queue pair and everything that it needs, with simple calls like those of rdma/rdma_verbs.h in C. For
 * tools, tests and learning: each call posts one work request, and waiting blocks the thread. Other programs should use
 * {@link QueuePair} directly.
 *
 * <pre>{@code
 * try (SynchronousId id = SynchronousId.of(address);
 *         CmEndpoint endpoint = CmEndpoint.create(id.id(), 4, 4)) {
 *     MemoryRegion region = endpoint.registerMessages(segment);
 *     endpoint.postReceive(1, region, 0, 64);
 *     id.connect(ConnectionParameters.DEFAULT);
 *     endpoint.postSend(2, region, 64, 64, SendFlags.SIGNALED);
 *     endpoint.awaitSend(1000);
 *     endpoint.awaitReceive(1000);
 * }
 * }</pre>
 *
 * <p>Not thread-safe. Source: rdma_create_ep(3), rdma_post_send(3), rdma_post_recv(3), rdma_get_send_comp(3),
 * rdma_reg_msgs(3)
 */
public final class CmEndpoint implements AutoCloseable {
    private final CmId id;
    private final Deque<AutoCloseable> resources = new ArrayDeque<>();
    private final ProtectionDomain domain;
    private final Completions sends;
    private final Completions receives;
    private final QueuePair queuePair;

    /** A completion queue to wait on, and its last completion. */
    private static final class Completions {
        final CompletionChannel channel;
        final CompletionQueue queue;
        final WorkCompletions polled = new WorkCompletions(1);

        Completions(Deque<AutoCloseable> resources, Context device, int entries) {
            resources.push(polled);
            channel = device.createCompletionChannel();
            resources.push(channel);
            queue = device.createCompletionQueue(Math.max(1, entries), channel, 0);
            resources.push(queue);
        }

        @Nullable WorkCompletions await(int timeoutMillis) {
            long deadlineNanos = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(timeoutMillis);
            while (true) {
                if (queue.poll(polled) > 0) {
                    return polled;
                }
                queue.requestNotify(false);
                // A completion may have arrived before the queue was armed.
                if (queue.poll(polled) > 0) {
                    return polled;
                }
                long leftNanos = deadlineNanos - System.nanoTime();
                if (timeoutMillis >= 0 && leftNanos <= 0) {
                    return null;
                }
                int leftMillis = timeoutMillis < 0 ? -1 : (int) TimeUnit.NANOSECONDS.toMillis(leftNanos + 999_999);
                Descriptors.awaitReadable(leftMillis, channel.fd());
                while (channel.tryGetEvent() != null) {
                    // The event is this queue's.
                }
            }
        }
    }

    private CmEndpoint(
            CmId id, int maxSends, int maxReceives, int maxInlineBytes, @Nullable SharedReceiveQueue shared) {
        this.id = id;
        try {
            Context device = id.device();
            if (device == null) {
                throw new IllegalStateException(id + " has no device yet: resolve or bind its address first");
            }
            if (shared == null) {
                domain = device.allocateProtectionDomain();
                resources.push(domain);
            } else {
                domain = shared.domain();
            }
            sends = new Completions(resources, device, maxSends);
            receives = new Completions(resources, device, maxReceives);
            queuePair = id.createQueuePair(
                    domain,
                    new QueuePairOptions(
                            id.isDatagram() ? QueuePairType.UD : QueuePairType.RC,
                            sends.queue,
                            receives.queue,
                            shared,
                            new QueuePairCapabilities(maxSends, maxReceives, 1, 1, maxInlineBytes),
                            false));
            resources.push(queuePair);
        } catch (RuntimeException refused) {
            close();
            throw refused;
        }
    }

    /**
     * Creates protection domain, completion queues and queue pair.
     *
     * @param id bound to a device; the caller closes it, after this
     * @param maxSends the depth of the send queue; its completion queue has as many entries
     * @param maxReceives the depth of the receive queue
     * @return to be closed by the caller
     */
    public static CmEndpoint create(CmId id, int maxSends, int maxReceives) {
        return new CmEndpoint(id, maxSends, maxReceives, 0, null);
    }

    /**
     * The same with inline sends.
     *
     * @param id bound to a device; the caller closes it, after this
     * @param maxSends the depth of the send queue
     * @param maxReceives the depth of the receive queue
     * @param maxInlineBytes payload that may be copied into a work request
     * @return to be closed by the caller
     */
    public static CmEndpoint create(CmId id, int maxSends, int maxReceives, int maxInlineBytes) {
        return new CmEndpoint(id, maxSends, maxReceives, maxInlineBytes, null);
    }

    /**
     * The same with receives from a shared queue, on that queue's protection domain.
     *
     * @param id bound to the queue's device; the caller closes it, after this
     * @param maxSends the depth of the send queue
     * @param maxReceives completions of receives that may wait
     * @param shared the shared receive queue; the caller closes it
     * @return to be closed by the caller
     */
    public static CmEndpoint create(CmId id, int maxSends, int maxReceives, SharedReceiveQueue shared) {
        return new CmEndpoint(id, maxSends, maxReceives, 0, Objects.requireNonNull(shared));
    }

    /**
     * The id.
     *
     * @return as given
     */
    public CmId id() {
        return id;
    }

    /**
     * The queue pair, for operations that this class lacks.
     *
     * @return this endpoint's
     */
    public QueuePair queuePair() {
        return queuePair;
    }

    /**
     * The protection domain.
     *
     * @return this endpoint's, or the shared receive queue's
     */
    public ProtectionDomain domain() {
        return domain;
    }

    /**
     * Registers memory to send from and receive into. Close it before the endpoint.
     *
     * @param segment native
     * @return the region
     */
    public MemoryRegion registerMessages(MemorySegment segment) {
        return domain.registerMemory(segment, Set.of(AccessFlag.LOCAL_WRITE));
    }

    /**
     * Registers memory that the peer may read. Close it before the endpoint.
     *
     * @param segment native
     * @return the region
     */
    public MemoryRegion registerForRead(MemorySegment segment) {
        return domain.registerMemory(segment, Set.of(AccessFlag.LOCAL_WRITE, AccessFlag.REMOTE_READ));
    }

    /**
     * Registers memory that the peer may write. Close it before the endpoint.
     *
     * @param segment native
     * @return the region
     */
    public MemoryRegion registerForWrite(MemorySegment segment) {
        return domain.registerMemory(segment, Set.of(AccessFlag.LOCAL_WRITE, AccessFlag.REMOTE_WRITE));
    }

    /**
     * Posts a receive, to the shared queue if there is one.
     *
     * @param workRequestId returned in the completion
     * @param region the memory to receive into
     * @param offsetBytes the offset in the region
     * @param lengthBytes at most
     */
    public void postReceive(long workRequestId, MemoryRegion region, long offsetBytes, int lengthBytes) {
        SharedReceiveQueue shared = queuePair.options().sharedReceives();
        (shared == null ? queuePair.receiveQueue() : shared.receiveQueue())
                .receive(workRequestId)
                .sge(region, offsetBytes, lengthBytes)
                .flush();
    }

    /**
     * Posts a send.
     *
     * @param workRequestId returned in the completion
     * @param region the memory to send from
     * @param offsetBytes the offset in the region
     * @param lengthBytes of the message
     * @param flags of {@link org.verbena.verbs.work.SendFlags}
     */
    public void postSend(long workRequestId, MemoryRegion region, long offsetBytes, int lengthBytes, int flags) {
        queuePair
                .sendQueue()
                .send(workRequestId, flags)
                .sge(region, offsetBytes, lengthBytes)
                .flush();
    }

    /**
     * Posts a datagram; for ids of {@link PortSpace#UDP}.
     *
     * @param workRequestId returned in the completion
     * @param region the memory to send from
     * @param offsetBytes the offset in the region
     * @param lengthBytes of the message, at most one MTU
     * @param flags of {@link org.verbena.verbs.work.SendFlags}
     * @param to an address handle of {@link #domain()}, made of {@link DatagramParameters#address()}
     * @param parameters the peer's or group's queue pair number and key
     */
    public void postDatagram(
            long workRequestId,
            MemoryRegion region,
            long offsetBytes,
            int lengthBytes,
            int flags,
            AddressHandle to,
            DatagramParameters parameters) {
        queuePair
                .sendQueue()
                .send(workRequestId, flags)
                .to(to, parameters.queuePairNumber(), parameters.queueKey())
                .sge(region, offsetBytes, lengthBytes)
                .flush();
    }

    /**
     * Posts a read of the peer's memory.
     *
     * @param workRequestId returned in the completion
     * @param region the memory to read into
     * @param offsetBytes the offset in the region
     * @param lengthBytes to read
     * @param flags of {@link org.verbena.verbs.work.SendFlags}
     * @param remoteAddress in the peer's memory
     * @param remoteKey of the peer's region
     */
    public void postRead(
            long workRequestId,
            MemoryRegion region,
            long offsetBytes,
            int lengthBytes,
            int flags,
            long remoteAddress,
            int remoteKey) {
        queuePair
                .sendQueue()
                .read(workRequestId, flags, remoteAddress, remoteKey)
                .sge(region, offsetBytes, lengthBytes)
                .flush();
    }

    /**
     * Posts a write to the peer's memory.
     *
     * @param workRequestId returned in the completion
     * @param region the memory to write from
     * @param offsetBytes the offset in the region
     * @param lengthBytes to write
     * @param flags of {@link org.verbena.verbs.work.SendFlags}
     * @param remoteAddress in the peer's memory
     * @param remoteKey of the peer's region
     */
    public void postWrite(
            long workRequestId,
            MemoryRegion region,
            long offsetBytes,
            int lengthBytes,
            int flags,
            long remoteAddress,
            int remoteKey) {
        queuePair
                .sendQueue()
                .write(workRequestId, flags, remoteAddress, remoteKey)
                .sge(region, offsetBytes, lengthBytes)
                .flush();
    }

    /**
     * Waits for the next completion of a send, write or read.
     *
     * @param timeoutMillis how long to wait; negative waits forever
     * @return one completion, valid until the next call; null if none arrived in time. Check its status
     */
    public @Nullable WorkCompletions awaitSend(int timeoutMillis) {
        return sends.await(timeoutMillis);
    }

    /**
     * Waits for the next completion of a receive.
     *
     * @param timeoutMillis how long to wait; negative waits forever
     * @return one completion, valid until the next call; null if none arrived in time. Check its status
     */
    public @Nullable WorkCompletions awaitReceive(int timeoutMillis) {
        return receives.await(timeoutMillis);
    }

    /** Closes everything except the id. Close its regions first. */
    @Override
    public void close() {
        while (!resources.isEmpty()) {
            AutoCloseable next = resources.element();
            try {
                next.close();
            } catch (RuntimeException refused) {
                throw refused;
            } catch (Exception impossible) {
                throw new IllegalStateException(impossible);
            }
            resources.remove();
        }
    }
}
