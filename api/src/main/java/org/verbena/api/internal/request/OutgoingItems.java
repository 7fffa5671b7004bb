package org.verbena.api.internal.request;

import io.netty.buffer.ByteBuf;
import io.netty.util.ReferenceCountUtil;
import io.netty.util.concurrent.Future;
import io.netty.util.concurrent.Promise;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.SendLimitException;

/**
 * What an end of a stream sends: it waits until the peer gives credit. Since that is little, streams that have much to
 * send take turns on their connection.
 */
final class OutgoingItems {
    /** What may wait: enough for a peer that takes it quickly, and little for many streams. */
    private static final SendLimit.Bounds BOUNDS = new SendLimit.Bounds(256, 1 << 20);

    /** The most credit that an end may have, in messages and in bytes. */
    static final long MOST_CREDIT = Integer.MAX_VALUE;

    private record Item(ByteBuf message, int bytes, Promise<Void> sent) {}

    private final ItemStream stream;
    private final SendLimit limit = new SendLimit(BOUNDS);
    private final Queue<Item> waiting = new ConcurrentLinkedQueue<>();

    /** Whether the program sends nothing more. */
    private volatile boolean ending;

    /** Guarded by this object. */
    private final List<Promise<Void>> writers = new ArrayList<>(0);

    private volatile boolean awaited;

    OutgoingItems(ItemStream stream) {
        this.stream = stream;
    }

    /** Takes ownership of the message. One that is expected is sent in any case. Any thread. */
    Future<Void> send(@Nullable ByteBuf message, boolean expected) {
        ByteBuf usable;
        try {
            usable = Messenger.checkUsable(message);
        } catch (RuntimeException cause) {
            return stream.notifier().newFailedFuture(cause);
        }
        int bytes = usable.readableBytes();
        if (stream.isOver() || ending) {
            usable.release();
            return stream.notifier().newFailedFuture(refusal());
        }
        if (expected) {
            limit.take(bytes);
        } else if (!limit.tryTake(bytes)) {
            usable.release();
            int messages = limit.messages();
            long most = limit.bytes();
            return stream.notifier()
                    .newFailedFuture(new SendLimitException(
                            "send to a stream: " + messages + " messages with " + most
                                    + " bytes wait until the other end takes them, and this one has " + bytes
                                    + ": wait for the future of an earlier one, or for whenWritable()",
                            messages,
                            most));
        }
        Promise<Void> sent = stream.notifier().newPromise();
        waiting.add(new Item(usable, bytes, sent));
        stream.wake();
        return sent;
    }

    private Throwable refusal() {
        return stream.isOver() ? stream.refusal() : new IllegalStateException("this end has ended the stream");
    }

    void end() {
        ending = true;
    }

    boolean isEnding() {
        return ending;
    }

    boolean isWritable() {
        return !ending && !stream.isOver() && !limit.isHalfFull();
    }

    /** Completes it when there is room, which the next turn will see. Any thread. */
    void await(Promise<Void> writable) {
        synchronized (this) {
            writers.add(writable);
        }
        awaited = true;
    }

    /** Returns whether there can be so much. */
    static boolean credit0(ItemStream.Place here, long messages, long bytes) {
        here.creditMessages += messages;
        here.creditBytes += bytes;
        return here.creditMessages <= MOST_CREDIT && here.creditBytes <= MOST_CREDIT;
    }

    void turn0(ItemStream.@Nullable Place here, boolean isOver) {
        boolean wrote = false;
        for (Item next = waiting.peek(); next != null; next = waiting.peek()) {
            if (isOver || (here != null && (here.ended || here.broken))) {
                waiting.remove();
                drop(next);
            } else if (here != null && here.creditMessages > 0 && here.creditBytes > 0) {
                waiting.remove();
                here.creditMessages--;
                here.creditBytes -= next.bytes;
                write0(here, next);
                wrote = true;
            } else {
                break;
            }
        }
        if (wrote && here != null) {
            here.messenger().outgoing().flush();
        }
        if (here != null && !isOver && ending && waiting.isEmpty() && here.hasSentAll()) {
            here.ended = true;
            here.owner().end0();
        }
        if (awaited && (isOver || ending || !limit.isHalfFull())) {
            endWaits(isOver || ending);
        }
    }

    private void write0(ItemStream.Place here, Item item) {
        here.unsent++;
        here.write0(Frames.ITEM, item.message).addListener((Future<Void> done) -> {
            if (--here.unsent == 0 && ending) {
                stream.wake();
            }
            giveBack(item.bytes);
            if (done.isSuccess()) {
                item.sent.trySuccess(null);
            } else {
                item.sent.tryFailure(done.cause());
            }
        });
    }

    private void drop(Item item) {
        ReferenceCountUtil.safeRelease(item.message); // which its program may have released, too
        giveBack(item.bytes);
        item.sent.tryFailure(refusal());
    }

    private void giveBack(int bytes) {
        limit.giveBack(bytes);
        if (awaited) {
            stream.wake();
        }
    }

    private void endWaits(boolean failed) {
        List<Promise<Void>> all;
        synchronized (this) {
            awaited = false;
            all = List.copyOf(writers);
            writers.clear();
        }
        for (Promise<Void> each : all) {
            if (failed) {
                each.tryFailure(refusal());
            } else {
                each.trySuccess(null);
            }
        }
    }
}
