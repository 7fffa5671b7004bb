package org.verbena.transport.protocol;

import java.util.ArrayList;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.buffer.RegisteredBufferPool;

/**
 * The waiters for memory of one pool, in the order in which they began to wait: a queue for receives for each event
 * loop, and one for whole messages. When memory comes back, the first of each queue is notified; it stays the first
 * until it has what it waits for and leaves, and then the next is notified. Receives are taken without a turn, so a loop
 * that is busy delays those of no other loop; whole messages keep their order over all loops, or small ones would starve
 * a large one. Any thread; a waiter enters the queue of the loop that it is called on.
 */
final class MemoryQueue {
    private final RegisteredBufferPool pool;
    private final ReentrantLock lock = new ReentrantLock();

    // Guarded by the lock.
    private final Map<Thread, Set<MessageBuffers.Waiter>> receives = new LinkedHashMap<>();

    private final Set<MessageBuffers.Waiter> messages = new LinkedHashSet<>();

    MemoryQueue(RegisteredBufferPool pool) {
        this.pool = pool;
        pool.onFreed(this::freed);
    }

    void addForReceives(MessageBuffers.Waiter waiter) {
        boolean begins;
        lock.lock();
        try {
            begins = isEmpty();
            receives.computeIfAbsent(Thread.currentThread(), loop -> new LinkedHashSet<>())
                    .add(waiter);
            pool.watch(true);
        } finally {
            lock.unlock();
        }
        recall(begins);
    }

    void addForMessage(MessageBuffers.Waiter waiter) {
        boolean begins;
        lock.lock();
        try {
            begins = isEmpty();
            messages.add(waiter);
            pool.watch(true);
        } finally {
            lock.unlock();
        }
        recall(begins);
    }

    private boolean isEmpty() {
        return receives.isEmpty() && messages.isEmpty();
    }

    /** What was released before the pool was watched lies in the caches of loops. */
    private void recall(boolean begins) {
        if (begins) {
            pool.recall();
        }
    }

    /** Whether this is the first that waits for a message's memory. */
    boolean isTurnOf(MessageBuffers.Waiter waiter) {
        lock.lock();
        try {
            MessageBuffers.Waiter first = first(messages);
            return first == null || first.equals(waiter);
        } finally {
            lock.unlock();
        }
    }

    boolean isMessageAwaited() {
        lock.lock();
        try {
            return !messages.isEmpty();
        } finally {
            lock.unlock();
        }
    }

    void leaveReceives(MessageBuffers.Waiter waiter) {
        MessageBuffers.Waiter next = null;
        lock.lock();
        try {
            Thread loop = Thread.currentThread();
            Set<MessageBuffers.Waiter> queue = receives.get(loop);
            if (queue != null && queue.contains(waiter)) {
                next = leave(queue, waiter);
                if (queue.isEmpty()) {
                    receives.remove(loop);
                }
                pool.watch(!isEmpty());
            }
        } finally {
            lock.unlock();
        }
        tell(next);
    }

    void leaveMessages(MessageBuffers.Waiter waiter) {
        MessageBuffers.Waiter next;
        lock.lock();
        try {
            next = leave(messages, waiter);
            pool.watch(!isEmpty());
        } finally {
            lock.unlock();
        }
        tell(next);
    }

    /** Returns the new first waiter if the one that leaves was the first: there may be memory left for it. */
    private static MessageBuffers.@Nullable Waiter leave(
            Set<MessageBuffers.Waiter> queue, MessageBuffers.Waiter waiter) {
        boolean wasFirst = waiter.equals(first(queue));
        return queue.remove(waiter) && wasFirst ? first(queue) : null;
    }

    /** Memory has come back. */
    void freed() {
        List<MessageBuffers.Waiter> firsts = new ArrayList<>();
        lock.lock();
        try {
            receives.values().forEach(queue -> firsts.add(queue.iterator().next()));
            MessageBuffers.Waiter message = first(messages);
            if (message != null) {
                firsts.add(message);
            }
        } finally {
            lock.unlock();
        }
        firsts.forEach(MemoryQueue::tell);
    }

    private static void tell(MessageBuffers.@Nullable Waiter waiter) {
        if (waiter != null) {
            waiter.onMemoryFreed();
        }
    }

    private static MessageBuffers.@Nullable Waiter first(Set<MessageBuffers.Waiter> queue) {
        Iterator<MessageBuffers.Waiter> all = queue.iterator();
        return all.hasNext() ? all.next() : null;
    }
}
