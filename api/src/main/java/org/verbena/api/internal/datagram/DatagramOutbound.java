package org.verbena.api.internal.datagram;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.ChannelOutboundBuffer;
import java.util.ArrayDeque;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.RegisteredMemoryExhaustedException;
import org.verbena.transport.WorkStatus;
import org.verbena.transport.buffer.RegisteredByteBuf;
import org.verbena.transport.protocol.memory.MessageBuffers;
import org.verbena.transport.spi.DatagramDestination;
import org.verbena.transport.spi.DatagramEndpoint;
import org.verbena.transport.spi.ScatterGatherList;

/**
 * Hands flushed datagrams from Netty's outbound buffer to the device, and each outcome back to its promise. Event loop
 * only.
 *
 * <p>An entry stays in the outbound buffer until its outcome, so that it counts towards writability; the first ones,
 * apart from those that were cancelled, are {@code out}: with the device, or done behind one that still is.
 */
public final class DatagramOutbound {
    private final DatagramEndpoint endpoint;
    private final MessageBuffers buffers;
    private final DatagramCounters counters;
    private final ScatterGatherList sges;
    private final ChannelOutboundBuffer.MessageProcessor handOver = this::handOver0;
    private final ArrayDeque<Outgoing> out = new ArrayDeque<>();

    /** How many of the outbound buffer the walk still has to skip. */
    private int skip;

    private boolean isStopped;

    public DatagramOutbound(DatagramEndpoint endpoint, MessageBuffers buffers, DatagramCounters counters) {
        this.endpoint = endpoint;
        this.buffers = buffers;
        this.counters = counters;
        sges = new ScatterGatherList(endpoint.capabilities().maxSges());
    }

    /** Hands over as much of what was flushed as the device takes. */
    public void handOverFlushed(ChannelOutboundBuffer outbound) {
        if (outbound.size() == out.size() || isStopped) {
            return;
        }
        skip = out.size();
        try {
            outbound.forEachFlushedMessage(handOver);
        } catch (Exception impossible) {
            throw new IllegalStateException(impossible); // handOver0 throws nothing that is checked
        }
        endpoint.flush();
        completeDone(outbound);
    }

    private boolean handOver0(Object message) {
        if (skip > 0) {
            skip--;
            return true;
        }
        if (endpoint.freeSendSlots() == 0) {
            return false;
        }
        Outgoing datagram = (Outgoing) message;
        try {
            if (!post(datagram)) {
                return false;
            }
        } catch (RuntimeException refused) {
            datagram.done(refused);
        }
        out.add(datagram);
        return true;
    }

    private boolean post(Outgoing datagram) {
        DatagramDestination to = datagram.recipient().ready();
        if (to == null) {
            throw new ConnectionException.Lost("what was known of "
                    + datagram.recipient().address() + " has been forgotten since the write: write again");
        }
        ByteBuf memory = memoryOf(datagram.content());
        boolean isPosted = false;
        try {
            isPosted = endpoint.post(0, sges, to, datagram.hasImmediateData(), datagram.immediateData());
        } finally {
            sges.clear();
            if (isPosted) {
                datagram.posted(memory);
            } else {
                memory.release();
            }
        }
        return isPosted;
    }

    /** Fills the SGEs. What lies outside registered memory is copied: a datagram is short. */
    private ByteBuf memoryOf(ByteBuf content) {
        int bytes = content.readableBytes();
        int count = RegisteredByteBuf.countSges(content, content.readerIndex(), bytes, endpoint.memoryDomain());
        if (count >= 0
                && count <= endpoint.capabilities().maxSges()
                && RegisteredByteBuf.gather(content, endpoint.memoryDomain(), sges)) {
            return content.retain();
        }
        ByteBuf copy = buffers.tryAllocateSend(bytes);
        if (copy == null) {
            throw new RegisteredMemoryExhaustedException("no registered memory is left to send a datagram of " + bytes
                    + " bytes from: release buffers, or raise org.verbena.buffers.maxRegisteredBytes");
        }
        copy.writeBytes(content, content.readerIndex(), bytes);
        RegisteredByteBuf.gather(copy, endpoint.memoryDomain(), sges);
        return copy;
    }

    /**
     * The device has sent a datagram or failed to, in order. The cause is known when the endpoint ends: see {@link
     * #failRest}.
     *
     * @param outbound null once the channel is closed: then all promises have failed
     */
    public void onSent(WorkStatus status, @Nullable ChannelOutboundBuffer outbound) {
        Outgoing sent = null;
        for (Outgoing datagram : out) {
            if (datagram.isPosted()) {
                sent = datagram;
                break;
            }
        }
        if (sent == null) {
            return;
        }
        if (status == WorkStatus.SUCCESS) {
            counters.add(DatagramCounters.SENT, 1);
            counters.add(DatagramCounters.SENT_BYTES, sent.lengthBytes());
            sent.done(null);
            completeDone(outbound);
        } else {
            sent.giveBack();
        }
    }

    /** Fails the remaining writes, since the endpoint has ended. */
    public void failRest(ChannelOutboundBuffer outbound, Throwable cause) {
        isStopped = true;
        Outgoing datagram;
        while ((datagram = out.poll()) != null) {
            datagram.giveBack();
            counters.add(DatagramCounters.FAILED, 1);
            removeCancelled(outbound);
            outbound.remove(datagram.failure() == null ? cause : datagram.failure());
        }
        while (outbound.current() != null) {
            counters.add(DatagramCounters.FAILED, 1);
            outbound.remove(cause);
        }
    }

    private void completeDone(@Nullable ChannelOutboundBuffer outbound) {
        Outgoing first;
        while ((first = out.peek()) != null && first.isDone()) {
            out.remove();
            Throwable failure = first.failure();
            if (failure != null) {
                counters.add(DatagramCounters.FAILED, 1);
            }
            if (outbound == null) {
                continue;
            }
            removeCancelled(outbound);
            if (failure == null) {
                outbound.progress(first.lengthBytes());
                outbound.remove();
            } else {
                outbound.remove(failure);
            }
        }
    }

    @SuppressWarnings(
            "ReferenceEquality") // this very buffer, which Netty puts in place of a message that was cancelled
    private static void removeCancelled(ChannelOutboundBuffer outbound) {
        while (outbound.current() == Unpooled.EMPTY_BUFFER) {
            outbound.remove();
        }
    }

    /** Whether the device has datagrams of this channel. */
    public boolean isIdle() {
        return out.isEmpty();
    }

    /** Nothing more is handed over. */
    public void stop() {
        isStopped = true;
    }
}
