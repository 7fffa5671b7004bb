package org.verbena.api.internal.datagram;

import io.netty.buffer.ByteBuf;
import io.netty.channel.EventLoop;
import io.netty.channel.socket.DatagramPacket;
import java.net.InetSocketAddress;
import java.util.ArrayDeque;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.DatagramPeer;
import org.verbena.transport.RdmaException;
import org.verbena.transport.RegisteredMemoryExhaustedException;
import org.verbena.transport.buffer.RegisteredByteBuf;
import org.verbena.transport.buffer.ReleaseHook;
import org.verbena.transport.protocol.memory.MessageBuffers;
import org.verbena.transport.spi.DatagramArrival;
import org.verbena.transport.spi.DatagramEndpoint;
import org.verbena.transport.spi.ScatterGatherList;

/**
 * The receives of a datagram channel and the datagrams in them. A datagram is delivered in the buffer that the device
 * has filled, and another buffer takes its place, as long as channel and program hold no more than {@value
 * #BUFFERS_PER_RECEIVE} for each receive. Beyond that receives wait until the program releases buffers, and datagrams
 * that arrive before are lost. Event loop only, except the release of buffers.
 */
public final class DatagramInbound {
    /** One posted and one with the program. */
    static final int BUFFERS_PER_RECEIVE = 2;

    /**
     * The delay before the next attempt if the pool had no memory although it was reserved: other channels hold it
     * briefly.
     */
    private static final long RETRY_MILLIS = 20;

    /** The channel, as far as this needs it. */
    public interface Host {
        /** Whether to deliver a datagram to the program. */
        boolean accepts0(DatagramPeer sender, long destinationHigh, long destinationLow);

        /** The address of a sender. */
        InetSocketAddress addressOf0(DatagramPeer sender);

        DatagramPacket packet0(ByteBuf content, InetSocketAddress sender, boolean hasImmediateData, int immediateData);
    }

    private final Host host;
    private final EventLoop loop;
    private final DatagramEndpoint endpoint;
    private final MessageBuffers buffers;
    private final DatagramCounters counters;
    private final int receives;
    private final int receiveBytes;
    private final ScatterGatherList sge = new ScatterGatherList(1);
    private final GlobalRouteHeader header = new GlobalRouteHeader();
    private final ArrayDeque<ByteBuf> posted = new ArrayDeque<>();
    private final ArrayDeque<DatagramPacket> arrived = new ArrayDeque<>();

    /** Buffers that are posted, wait to be read, or are the program's. */
    private final AtomicInteger outstanding = new AtomicInteger();

    /** Receives are missing: the next release posts one. */
    private final AtomicBoolean isHungry = new AtomicBoolean();

    private final ReleaseHook onReleased = this::onReleased;
    private final Runnable replenish = this::replenish0;

    /** The last sender, since most datagrams come from the same one as the one before. */
    private @Nullable DatagramPeer lastSender;

    private @Nullable InetSocketAddress lastAddress;

    private boolean isRetryScheduled;
    private boolean isClosed;

    /**
     * Reserves the memory.
     *
     * @throws RegisteredMemoryExhaustedException there is not enough
     */
    public DatagramInbound(
            Host host, EventLoop loop, DatagramEndpoint endpoint, MessageBuffers buffers, DatagramCounters counters) {
        this.host = host;
        this.loop = loop;
        this.endpoint = endpoint;
        this.buffers = buffers;
        this.counters = counters;
        receives = endpoint.capabilities().receiveDepth();
        receiveBytes = endpoint.capabilities().receiveBytes();
        if (!buffers.reserveReceives(BUFFERS_PER_RECEIVE * receives, receiveBytes, false)) {
            throw new RegisteredMemoryExhaustedException("no registered memory is left for " + receives
                    + " receives of datagrams: lower RECEIVE_DEPTH, or raise org.verbena.buffers.maxRegisteredBytes");
        }
    }

    /** Posts missing receives. */
    public void replenish0() {
        if (isClosed) {
            return;
        }
        boolean isAny = false;
        while (posted.size() < receives) {
            if (outstanding.get() >= BUFFERS_PER_RECEIVE * receives) {
                isHungry.set(true);
                if (outstanding.get() >= BUFFERS_PER_RECEIVE * receives) {
                    break; // the next release calls this
                }
            }
            if (!post0()) {
                break;
            }
            isAny = true;
        }
        if (isAny) {
            endpoint.flush();
        }
    }

    private boolean post0() {
        ByteBuf buffer;
        try {
            buffer = buffers.tryAllocateReceive(receiveBytes);
        } catch (RdmaException refused) {
            buffer = null;
        }
        if (!(buffer instanceof RegisteredByteBuf memory)) {
            counters.add(DatagramCounters.STARVED, 1);
            retryLater0();
            return false;
        }
        RegisteredByteBuf.gather(memory, 0, receiveBytes, endpoint.memoryDomain(), sge);
        boolean isPosted = endpoint.postReceive(0, sge);
        sge.clear();
        if (!isPosted) {
            memory.release();
            return false;
        }
        outstanding.incrementAndGet();
        memory.chargeTo(onReleased, 1);
        posted.add(memory);
        return true;
    }

    private void retryLater0() {
        if (!isRetryScheduled && !loop.isShuttingDown()) {
            loop.schedule(
                    () -> {
                        isRetryScheduled = false;
                        replenish0();
                    },
                    RETRY_MILLIS,
                    TimeUnit.MILLISECONDS);
            isRetryScheduled = true;
        }
    }

    /** A buffer is back. Any thread. */
    private void onReleased(int units) {
        outstanding.addAndGet(-units);
        if (isHungry.get() && isHungry.compareAndSet(true, false)) {
            try {
                loop.execute(replenish);
            } catch (RejectedExecutionException ended) {
                isHungry.set(false); // the channel has ended with its loop
            } catch (Error noMemory) {
                isHungry.set(true); // the next buffer tries again
                throw noMemory;
            }
        }
    }

    /** A receive was flushed. */
    public void onFlushed0() {
        ByteBuf buffer = posted.poll();
        if (buffer != null) {
            buffer.release();
        }
    }

    /** A receive has a datagram. */
    public void onArrival0(DatagramArrival arrival) {
        ByteBuf buffer = posted.remove();
        int bytes = arrival.lengthBytes();
        if (isClosed || bytes < GlobalRouteHeader.BYTES || bytes > receiveBytes || !readHeader(buffer, arrival)) {
            drop(buffer, DatagramCounters.MALFORMED);
            return;
        }
        DatagramPeer sender = senderOf0(arrival);
        if (!host.accepts0(sender, header.destinationHigh(), header.destinationLow())) {
            drop(buffer, DatagramCounters.FILTERED);
            return;
        }
        counters.add(DatagramCounters.RECEIVED, 1);
        counters.add(DatagramCounters.RECEIVED_BYTES, bytes - GlobalRouteHeader.BYTES);
        buffer.setIndex(GlobalRouteHeader.BYTES, bytes);
        arrived.add(host.packet0(buffer, addressOf0(sender), arrival.hasImmediateData(), arrival.immediateData()));
    }

    private boolean readHeader(ByteBuf buffer, DatagramArrival arrival) {
        if (arrival.hasGlobalRouteHeader()) {
            return header.read(buffer);
        }
        header.clear();
        return arrival.sourceLid() != 0;
    }

    private void drop(ByteBuf buffer, int counter) {
        counters.add(counter, 1);
        buffer.release();
    }

    private DatagramPeer senderOf0(DatagramArrival arrival) {
        DatagramPeer recent = lastSender;
        if (recent != null && isFrom(recent, arrival)) {
            return recent;
        }
        DatagramPeer sender = new DatagramPeer(
                header.sourceHigh(),
                header.sourceLow(),
                arrival.sourceQueuePairNumber(),
                arrival.sourceLid(),
                arrival.serviceLevel());
        lastSender = sender;
        lastAddress = null;
        return sender;
    }

    /** That of the last sender. */
    private InetSocketAddress addressOf0(DatagramPeer sender) {
        InetSocketAddress known = lastAddress;
        if (known == null) {
            known = host.addressOf0(sender);
            lastAddress = known;
        }
        return known;
    }

    private boolean isFrom(DatagramPeer peer, DatagramArrival arrival) {
        return peer.queuePairNumber() == arrival.sourceQueuePairNumber()
                && peer.gidLow() == header.sourceLow()
                && peer.gidHigh() == header.sourceHigh()
                && peer.lid() == arrival.sourceLid();
    }

    /** A look-up has found or forgotten a queue pair's port. */
    public void forgetAddresses0() {
        lastAddress = null;
    }

    /** The next datagram for the program. */
    public @Nullable DatagramPacket poll0() {
        return arrived.poll();
    }

    public boolean isEmpty() {
        return arrived.isEmpty();
    }

    /** The endpoint has closed, and the device has given back every receive. */
    public void close0() {
        isClosed = true;
        DatagramPacket unread;
        while ((unread = arrived.poll()) != null) {
            unread.release();
        }
        ByteBuf buffer;
        while ((buffer = posted.poll()) != null) {
            buffer.release();
        }
        buffers.unreserveReceives(BUFFERS_PER_RECEIVE * receives, receiveBytes);
    }
}
