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
import org.verbena.api.internal.stat.ConnectionStat;
import org.verbena.transport.SendLimitException;

/**
 * What an end of a stream sends: it waits until the peer gives credit. Since that is little, streams that have much to
 * send take turns on their connection.
 */
final class OutgoingItems {
    /** What may wait: enough for a peer that takes it quickly, and little for many streams. */
    private static final SendLimit.Bounds BOUNDS = new SendLimit.Bounds(256, 1 << 20);

    /** The most credit that an end may have, in messages and in bytes. */
    static final long MAX_CREDIT = Integer.MAX_VALUE;

    private static final class Item {
        private final ByteBuf message;
        private final int bytes;
        private final Promise<Void> sent;

        /** Which bound it counts against besides its stream's. Used in turns once it waits. */
        private UnsentItems countedBy;

        Item(ByteBuf message, int bytes, Promise<Void> sent, UnsentItems countedBy) {
            this.message = message;
            this.bytes = bytes;
            this.sent = sent;
            this.countedBy = countedBy;
        }
    }

    private final ItemStream stream;
    private final SendLimit limit = new SendLimit(BOUNDS);
    private final Queue<Item> waiting = new ConcurrentLinkedQueue<>();

    /** Whether the program sends nothing more. */
    private volatile boolean ending;

    /** Guarded by this object. */
    private final List<Promise<Void>> writers = new ArrayList<>(0);

    private volatile boolean awaited;

    /** The bound of all streams of the connection, against which messages count from now on. Written in turns. */
    private volatile UnsentItems all;

    /** The place on that connection. Used in turns. */
    private ItemStream.@Nullable Place settled;

    /** Whether it may be among the streams that wait for room there. Used in turns. */
    private boolean waitsForRoom;

    OutgoingItems(ItemStream stream, UnsentItems all) {
        this.stream = stream;
        this.all = all;
    }

    /**
     * Takes ownership of the message. Any thread.
     *
     * @param expected whether it was requested, so that only the bound of the connection can refuse it
     */
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
        UnsentItems counting = all;
        SendLimitException noRoom = take(bytes, expected, counting);
        if (noRoom != null) {
            usable.release();
            return stream.notifier().newFailedFuture(noRoom);
        }
        Promise<Void> sent = stream.notifier().newPromise();
        stream.sending();
        waiting.add(new Item(usable, bytes, sent, counting));
        stream.wake();
        return sent;
    }

    /** Counts a message. Returns why there is no room for it, or null. */
    private @Nullable SendLimitException take(int bytes, boolean expected, UnsentItems counting) {
        if (expected) {
            limit.take(bytes);
        } else if (!limit.tryTake(bytes)) {
            int messages = limit.messages();
            long max = limit.bytes();
            return new SendLimitException(
                    "send to a stream: " + messages + " messages with " + max
                            + " bytes wait until the other end takes them, and this one has " + bytes
                            + ": wait for the future of an earlier one, or for whenWritable()",
                    messages,
                    max);
        }
        if (counting.tryTake(bytes, limit.messages() == 1)) {
            return null;
        }
        limit.giveBack(bytes);
        wakeWriters();
        return counting.refusal(stream.peer(), bytes);
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
        return !ending && !stream.isOver() && hasRoom();
    }

    private boolean hasRoom() {
        return !limit.isHalfFull() && all.isWritable(limit.messages() == 0);
    }

    /** Completes a promise when the next turn sees that there is room. Any thread. */
    void await(Promise<Void> writable) {
        synchronized (this) {
            writers.add(writable);
        }
        awaited = true;
    }

    /** Adds to a credit. Returns false if the sum is more than a credit can be. */
    static boolean credit0(ItemStream.Place here, long messages, long bytes) {
        here.creditMessages += messages;
        here.creditBytes += bytes;
        return here.creditMessages <= MAX_CREDIT && here.creditBytes <= MAX_CREDIT;
    }

    void turn0(ItemStream.@Nullable Place here, boolean isOver) {
        if (here != null && !here.equals(settled)) {
            settle0(here);
        }
        boolean wrote = false;
        for (Item next = waiting.peek(); next != null; next = waiting.peek()) {
            if (isOver || (here != null && (here.ended || here.broken))) {
                waiting.remove();
                drop(next);
            } else if (here != null && here.creditMessages > 0 && here.creditBytes > 0) {
                if (!here.writeHeaders0()) {
                    continue;
                }
                waiting.remove();
                here.creditMessages--;
                here.creditBytes -= next.bytes;
                write0(here, next);
                wrote = true;
            } else {
                showWaiting0(here);
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
        if (awaited) {
            if (isOver || ending || hasRoom()) {
                endWaits(isOver || ending);
            } else if (!limit.isHalfFull()) {
                waitsForRoom = true;
                all.await(stream, limit.messages() == 0);
            }
        }
        if (isOver) {
            waitNoMore();
        }
    }

    private static void showWaiting0(ItemStream.@Nullable Place here) {
        ConnectionStat stat = here == null ? null : here.messenger().stat();
        if (stat != null) {
            stat.active0();
        }
    }

    /** Counts what waits against the connection's bound from now on, even beyond it, since it was accepted. */
    private void settle0(ItemStream.Place here) {
        settled = here;
        UnsentItems now = here.messenger().streams().unsent();
        waitNoMore();
        all = now;
        for (Item item : waiting) {
            UnsentItems before = item.countedBy;
            if (!before.equals(now)) {
                now.take(item.bytes);
                item.countedBy = now;
                before.giveBack(item.bytes);
            }
        }
    }

    private void waitNoMore() {
        if (waitsForRoom) {
            waitsForRoom = false;
            all.forget(stream);
        }
    }

    private void write0(ItemStream.Place here, Item item) {
        here.unsent++;
        item.countedBy.written(item.bytes);
        here.write0(Frames.ITEM, item.message).addListener((Future<Void> done) -> {
            if (--here.unsent == 0 && ending) {
                stream.wake();
            }
            item.countedBy.written(-item.bytes);
            giveBack(item);
            if (done.isSuccess()) {
                item.sent.trySuccess(null);
            } else {
                item.sent.tryFailure(done.cause());
            }
        });
    }

    private void drop(Item item) {
        ReferenceCountUtil.safeRelease(item.message); // the program may have released it by mistake
        giveBack(item);
        item.sent.tryFailure(refusal());
    }

    private void giveBack(Item item) {
        limit.giveBack(item.bytes);
        item.countedBy.giveBack(item.bytes);
        wakeWriters();
    }

    private void wakeWriters() {
        if (awaited) {
            stream.wake();
        }
    }

    private void endWaits(boolean failed) {
        List<Promise<Void>> ended;
        synchronized (this) {
            awaited = false;
            ended = List.copyOf(writers);
            writers.clear();
        }
        for (Promise<Void> each : ended) {
            if (failed) {
                each.tryFailure(refusal());
            } else {
                each.trySuccess(null);
            }
        }
    }
}
