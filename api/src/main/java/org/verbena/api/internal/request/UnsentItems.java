package org.verbena.api.internal.request;

import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.SendLimitException;

/**
 * What all streams of a connection wait to send, or those of a client that have no connection yet; and the streams that
 * wait for room. Its bounds are those of what else waits there, which counts by itself.
 *
 * <p>The last quarter is for streams of which nothing else waits: so those whose other ends have stopped leave room for
 * the others. Any thread.
 */
public final class UnsentItems {
    private final SendLimit limit;

    /** Below this bound there is room for any stream. */
    private final SendLimit.Bounds shared;

    /** Beyond this bound streams of which something waits are not writable. */
    private final SendLimit.Bounds half;

    /** The bytes of messages that were written to the channel and have no outcome yet. */
    private final AtomicLong writtenBytes = new AtomicLong();

    /** Streams of which something waits; they are writable when less than half of the bounds waits. */
    private final Set<ItemStream> others = ConcurrentHashMap.newKeySet(1);

    /** Streams of which nothing waits; they are writable when there is any room. */
    private final Set<ItemStream> first = ConcurrentHashMap.newKeySet(1);

    public UnsentItems(SendLimit.Bounds bounds) {
        limit = new SendLimit(bounds);
        shared = bounds.quarters(3);
        half = bounds.quarters(2);
    }

    /**
     * Counts a message if there is room for it.
     *
     * @param isFirst whether nothing else of its stream waits
     */
    boolean tryTake(int bytes, boolean isFirst) {
        return isFirst ? limit.tryTake(bytes) : limit.tryTake(bytes, shared);
    }

    /** Counts a message that has counted elsewhere, even beyond the bound. */
    void take(int bytes) {
        limit.take(bytes);
    }

    /** Returns why there is no room for a message. */
    SendLimitException refusal(@Nullable Object peer, int bytes) {
        return limit.refusal("send to a stream", peer, bytes);
    }

    /** Counts a message that goes to the channel, or with a negative number one that has come back. */
    void written(int bytes) {
        writtenBytes.addAndGet(bytes);
    }

    /** How many bytes wait here, and not in the channel. */
    public long waitingBytes() {
        return Math.max(0, limit.bytes() - writtenBytes.get());
    }

    /** The message has been sent, or will not be. */
    void giveBack(int bytes) {
        limit.giveBack(bytes);
        wake(others, half);
        wake(first, shared);
    }

    /**
     * Whether a stream is writable as far as this goes.
     *
     * @param isFirst whether nothing of it waits
     */
    boolean isWritable(boolean isFirst) {
        return !limit.reaches(isFirst ? shared : half);
    }

    /** Wakes a stream once it is writable, which may be now. */
    void await(ItemStream stream, boolean isFirst) {
        Set<ItemStream> waiting = isFirst ? first : others;
        waiting.add(stream);
        wake(waiting, isFirst ? shared : half); // room may have come before the stream was added
    }

    /** Removes a stream, which waits no more. */
    void forget(ItemStream stream) {
        others.remove(stream);
        first.remove(stream);
    }

    private void wake(Set<ItemStream> waiting, SendLimit.Bounds level) {
        if (waiting.isEmpty() || limit.reaches(level)) {
            return;
        }
        for (ItemStream each : List.copyOf(waiting)) {
            if (waiting.remove(each)) {
                each.wake();
            }
        }
    }
}
