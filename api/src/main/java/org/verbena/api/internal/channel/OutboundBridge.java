package org.verbena.api.internal.channel;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufAllocator;
import io.netty.buffer.ByteBufHolder;
import io.netty.buffer.EmptyByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.buffer.UnpooledByteBufAllocator;
import io.netty.channel.ChannelOutboundBuffer;
import io.netty.channel.EventLoop;
import io.netty.channel.FileRegion;
import java.net.SocketAddress;
import java.util.ArrayDeque;
import java.util.concurrent.CancellationException;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.protocol.OperationCallback;
import org.verbena.transport.protocol.connection.MessageConnection;

/**
 * Hands flushed messages from Netty's outbound buffer to the connection, and each outcome back to its promise. Buffers
 * are handed over at once, files chunk by chunk ({@link FileSender}). Event loop only.
 *
 * <p>An entry stays in the outbound buffer until its outcome, so that it counts towards writability. The first {@code
 * handedOver} entries that were not cancelled are with the connection, which completes them in order.
 */
public final class OutboundBridge {

    /** The channel, as far as this bridge needs it. */
    public interface Host {
        /** Netty's outbound buffer, or null once the channel is closed. */
        @Nullable ChannelOutboundBuffer outboundBuffer();

        /** Translates a cause into the exception that this kind of channel reports to its handlers. */
        Throwable forHandlers0(Throwable cause);

        /** Writes what is flushed, as {@code flush} does. */
        void flushAgain0();

        /** Ends the connection. */
        void abort0(Throwable cause);

        /** Ends the connection for a local reason that is reported to promises, not to the pipeline as well. */
        void abortLocally0(Throwable cause);

        /** Whether a message answers a request, so that nobody waits until it is sent. */
        boolean isAnswer0(ByteBuf message);

        /** Hands over a message of another kind than bytes and files. */
        void sendRaw0(Object message, MessageConnection open, OperationCallback onSent);

        EventLoop eventLoop();

        ByteBufAllocator alloc();
    }

    /**
     * Stands for a message without bytes. Netty replaces a cancelled message by {@link Unpooled#EMPTY_BUFFER}; this
     * buffer distinguishes an empty message from that.
     */
    public static final ByteBuf EMPTY_MESSAGE = new EmptyByteBuf(UnpooledByteBufAllocator.DEFAULT);

    /** The flag of a {@code ChannelOutboundBuffer} for credits that have run out. */
    public static final int CREDIT_FLAG = 1;

    /** A walk past this many messages costs about as much as a task of the loop. */
    private static final int LONG_WALK = 16;

    /** Behind this many frames without an answer, several messages in a frame cost less than a frame each. */
    private static final int FEW_UNANSWERED = 4;

    private final Host host;
    private final OperationCallback onSent = this::onSent0;
    private final ChannelOutboundBuffer.MessageProcessor handOver = this::handOver0;
    private final FileSender files;

    /** Set during a walk through the outbound buffer. */
    private @Nullable MessageConnection receiver;

    private int handedOver;

    /** Whether what was handed over last is neither a request nor an answer. */
    private boolean isAwaited = true;

    /** How many of those the walk still has to skip. */
    private int skip;

    /** Messages that the connection refused during the walk, by cause. */
    private final ArrayDeque<Throwable> refusals = new ArrayDeque<>(0);

    /** Outcomes so far, parts of files included. */
    private long outcomes;

    /** Actions to run once everything flushed before them has been handed over. */
    private final ArrayDeque<Runnable> endings = new ArrayDeque<>(0);

    /** Messages that may still be handed over. */
    private int left = Integer.MAX_VALUE;

    public OutboundBridge(Host host) {
        this.host = host;
        files = new FileSender(host, this::countOutcome);
    }

    /**
     * Whether what is flushed soon after is better handed over with what is flushed now. A hand-over may have to walk
     * past many messages that have no outcome yet. Those that nobody awaits have theirs early, so their frames are
     * counted: what comes behind several of them shares one.
     */
    public boolean gathers(MessageConnection open) {
        return handedOver >= LONG_WALK || (!isAwaited && open.unansweredFrames() >= FEW_UNANSWERED);
    }

    /** Hands over as much of what was flushed as possible without waiting. */
    public void handOverFlushed(ChannelOutboundBuffer outbound, MessageConnection open) {
        if (outbound.size() != handedOver) {
            skip = handedOver;
            receiver = open;
            try {
                outbound.forEachFlushedMessage(handOver);
            } catch (Exception cause) {
                open.abort(cause); // handOver0 throws no checked exception
            } finally {
                receiver = null;
            }
            while (!refusals.isEmpty()) {
                onSent0(null, refusals.remove());
            }
        }
        if (left == 0) {
            runEndings();
        }
    }

    /**
     * Runs an action once everything flushed so far has been handed over, which may be immediately, or when the
     * connection has ended before that. What is flushed later stays in the outbound buffer.
     */
    public void end(MessageConnection open, Runnable ending) {
        ChannelOutboundBuffer outbound = host.outboundBuffer();
        endings.add(ending);
        if (outbound == null) {
            runEndings();
            return;
        }
        if (left == Integer.MAX_VALUE) {
            left = flushedMessages(outbound) - handedOver;
        }
        handOverFlushed(outbound, open);
    }

    /** Credits have come back or run out. */
    public void onCredits(boolean writable) {
        ChannelOutboundBuffer outbound = host.outboundBuffer();
        if (outbound != null) {
            outbound.setUserDefinedWritability(CREDIT_FLAG, writable);
            if (writable) {
                host.flushAgain0();
            }
        }
    }

    /** The connection has ended: nothing more is handed over. */
    public void abandon() {
        left = 0;
        runEndings();
    }

    /** Whether an action waits for flushed messages to be handed over. */
    public boolean isEnding() {
        return !endings.isEmpty();
    }

    /**
     * Ends the connection if the peer accepts nothing for the given time while flushed messages remain. A long file is
     * sent as long as the peer keeps accepting some of it.
     *
     * @param millis the time without progress
     * @param peer its address, for the message
     */
    public void limitEnding(int millis, @Nullable SocketAddress peer) {
        long before = outcomes;
        host.eventLoop()
                .schedule(
                        () -> {
                            if (!isEnding()) {
                                return;
                            }
                            if (outcomes == before) {
                                host.abort0(new ConnectionException.TimedOut(peer + " has taken nothing for " + millis
                                        + " ms of what was flushed before close"));
                            } else {
                                limitEnding(millis, peer);
                            }
                        },
                        millis,
                        TimeUnit.MILLISECONDS);
    }

    private void runEndings() {
        Runnable ending = endings.poll();
        while (ending != null) {
            ending.run();
            ending = endings.poll();
        }
    }

    /** Entries that were cancelled before the flush do not count. */
    private static int flushedMessages(ChannelOutboundBuffer outbound) {
        int[] count = {0};
        try {
            outbound.forEachFlushedMessage(message -> {
                count[0]++;
                return true;
            });
        } catch (Exception impossible) {
            throw new AssertionError(impossible);
        }
        return count[0];
    }

    private boolean handOver0(Object message) {
        MessageConnection open = receiver;
        if (skip > 0) {
            skip--;
            return true;
        }
        if (left == 0 || open == null) {
            return false;
        }
        if (message instanceof ByteBuf buffer) {
            // The outbound buffer releases its reference when the promise is done, or when the channel is closed; this
            // one is the connection's.
            isAwaited = !host.isAnswer0(buffer);
            if (isAwaited) {
                open.send(buffer.retain(), onSent, null);
            } else {
                open.sendUnawaited(buffer.retain(), onSent, null);
            }
        } else if (message instanceof DeferredMessage request) {
            isAwaited = false;
            sendDeferred(request, open);
        } else if (message instanceof FileRegion file) {
            if (!files.send(file, open, onSent)) {
                return false;
            }
        } else {
            host.sendRaw0(message, open, onSent);
        }
        handedOver++;
        if (left != Integer.MAX_VALUE) {
            left--;
        }
        return true;
    }

    /** One that nobody wants, or that cannot be made, fails in its turn. */
    private void sendDeferred(DeferredMessage deferred, MessageConnection open) {
        ByteBuf made;
        try {
            made = deferred.make0(host.alloc());
        } catch (Throwable cause) { // for want of memory
            open.fail(cause, onSent, null);
            return;
        }
        if (made == null) {
            open.fail(new CancellationException("given up before it was sent"), onSent, null);
        } else {
            open.sendUnawaited(made, onSent, null);
        }
    }

    private void onSent0(@Nullable Object context, @Nullable Throwable cause) {
        if (receiver != null && cause != null) {
            refusals.add(cause); // called from within send, while the outbound buffer is being walked
            return;
        }
        handedOver--;
        outcomes++;
        ChannelOutboundBuffer outbound = host.outboundBuffer();
        if (outbound == null) {
            return; // closed: all promises have failed
        }
        removeCancelled(outbound);
        if (cause != null) {
            outbound.remove(host.forHandlers0(cause));
        } else {
            outbound.progress(context instanceof Integer bytes ? bytes : readableBytes(outbound.current()));
            outbound.remove();
        }
    }

    /** A part of a file has completed or failed. */
    private void countOutcome(int bytes) {
        outcomes++;
        ChannelOutboundBuffer outbound = host.outboundBuffer();
        if (outbound != null) {
            removeCancelled(outbound);
            outbound.progress(bytes);
        }
    }

    private static int readableBytes(@Nullable Object message) {
        if (message instanceof ByteBuf buffer) {
            return buffer.readableBytes();
        }
        return message instanceof ByteBufHolder raw ? raw.content().readableBytes() : 0;
    }

    /** Removes messages that were cancelled before they were flushed, up to the first that was not. */
    @SuppressWarnings(
            "ReferenceEquality") // this very buffer, which Netty puts in place of a message that was cancelled
    public static void removeCancelled(ChannelOutboundBuffer outbound) {
        while (outbound.current() == Unpooled.EMPTY_BUFFER) {
            outbound.remove();
        }
    }
}
