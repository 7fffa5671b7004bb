package org.verbena.api.internal.ladder;

import io.netty.buffer.ByteBuf;
import io.netty.channel.Channel;
import io.netty.channel.ChannelOutboundBuffer;
import io.netty.channel.ChannelProgressiveFuture;
import io.netty.channel.ChannelProgressiveFutureListener;
import io.netty.channel.DefaultChannelProgressivePromise;
import io.netty.channel.EventLoop;
import io.netty.channel.FileRegion;
import io.netty.util.ReferenceCountUtil;
import io.netty.util.concurrent.Future;
import io.netty.util.concurrent.GenericFutureListener;
import java.util.ArrayDeque;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import org.verbena.api.LadderSocketChannel;
import org.verbena.api.internal.channel.OutboundBridge;

/**
 * Hands what was flushed into a {@link LadderSocketChannel} to its rung, as long as the rung is writable. A message
 * stays in the channel's outbound buffer, and counts for its writability, until the rung has sent it; its promise then
 * has the rung's outcome. Event loop of the channel only.
 */
public final class LadderOutbound {

    /** The channel, as far as this needs it. */
    public interface Host {
        /** Netty's outbound buffer, or null once there is no output. */
        @Nullable ChannelOutboundBuffer outboundBuffer();

        EventLoop eventLoop();

        /** Writes what is flushed, as {@code flush} does. */
        void flushAgain0();
    }

    /** A message that the rung has. Its listeners run on the loop of the channel above, whatever the rung's is. */
    private static final class Sent extends DefaultChannelProgressivePromise {
        final long totalBytes;
        long toldBytes;

        Sent(Channel rung, EventLoop loop, long bytes) {
            super(rung, loop);
            totalBytes = bytes;
        }
    }

    private final Host host;
    private final GenericFutureListener<Future<Void>> onSent = sent -> settle0();
    private final ChannelOutboundBuffer.MessageProcessor handOver = this::handOver0;
    private final ArrayDeque<Sent> handed = new ArrayDeque<>();

    /** Set during a walk through the outbound buffer. */
    private @Nullable Channel receiver;

    /** How many of those that were handed over the walk still has to skip. */
    private int skip;

    private boolean regardless;

    /** Run once the rung has sent everything that it has. */
    private final ArrayDeque<Runnable> endings = new ArrayDeque<>(0);

    public LadderOutbound(Host host) {
        this.host = host;
    }

    /** Hands over as much as the rung takes now. */
    public void handOverFlushed(ChannelOutboundBuffer outbound, Channel rung) {
        while (endings.isEmpty() && walk(outbound, rung)) {
            rung.flush(); // after which the rung may take more
        }
    }

    /** Hands over all that is flushed, whether the rung is writable or not. */
    public void handOverAll(Channel rung) {
        ChannelOutboundBuffer outbound = host.outboundBuffer();
        if (outbound != null) {
            regardless = true;
            walk(outbound, rung);
            regardless = false;
            rung.flush();
        }
    }

    /**
     * Runs an action once the rung has sent, or failed to send, everything that was handed over; hands over nothing
     * more.
     */
    public void afterSent(Runnable ending) {
        endings.add(ending);
        settle0();
    }

    /** Returns whether anything was handed over. */
    private boolean walk(ChannelOutboundBuffer outbound, Channel rung) {
        int before = handed.size();
        if (receiver != null || outbound.size() == before) {
            return false;
        }
        skip = before;
        receiver = rung;
        try {
            outbound.forEachFlushedMessage(handOver);
        } catch (Exception impossible) {
            throw new AssertionError(impossible); // handOver0 throws no checked exception
        } finally {
            receiver = null;
        }
        boolean any = handed.size() > before;
        settle0(); // what the rung refused at once
        return any;
    }

    private boolean handOver0(Object message) {
        if (skip > 0) {
            skip--;
            return true;
        }
        Channel rung = Objects.requireNonNull(receiver);
        if (!regardless && !rung.isWritable()) {
            return false;
        }
        boolean isFile = message instanceof FileRegion;
        Sent sent = new Sent(
                rung, host.eventLoop(), isFile ? ((FileRegion) message).count() : ((ByteBuf) message).readableBytes());
        if (isFile) {
            sent.addListener(new FileProgress());
        }
        handed.add(sent);
        sent.addListener(onSent);
        // The outbound buffer releases its reference when the promise is done, or when the channel is closed; this one
        // is the rung's.
        rung.write(ReferenceCountUtil.retain(message), sent);
        return true;
    }

    /** Reports how much of a file has been sent. */
    private final class FileProgress implements ChannelProgressiveFutureListener {
        @Override
        public void operationProgressed(ChannelProgressiveFuture future, long progress, long total) {
            Sent file = (Sent) future;
            ChannelOutboundBuffer outbound = host.outboundBuffer();
            if (outbound != null && handed.peek() == file) {
                OutboundBridge.removeCancelled(outbound);
                outbound.progress(progress - file.toldBytes);
                file.toldBytes = progress;
            }
        }

        @Override
        public void operationComplete(ChannelProgressiveFuture future) {
            // onSent has it
        }
    }

    /** Takes the outcomes that have come, in the order of the messages. */
    private void settle0() {
        if (receiver != null) {
            return; // called from within the walk, which comes back here
        }
        Sent first = handed.peek();
        while (first != null && first.isDone()) {
            handed.remove();
            ChannelOutboundBuffer outbound = host.outboundBuffer();
            if (outbound != null) { // else closed: all promises have failed
                OutboundBridge.removeCancelled(outbound);
                if (first.isSuccess()) {
                    outbound.progress(first.totalBytes - first.toldBytes);
                    outbound.remove();
                } else {
                    outbound.remove(first.cause());
                }
            }
            first = handed.peek();
        }
        if (handed.isEmpty()) {
            Runnable ending = endings.poll();
            while (ending != null) {
                ending.run();
                ending = endings.poll();
            }
        }
        ChannelOutboundBuffer outbound = host.outboundBuffer();
        if (outbound != null && outbound.size() > handed.size()) {
            host.flushAgain0(); // if the rung is writable
        }
    }
}
