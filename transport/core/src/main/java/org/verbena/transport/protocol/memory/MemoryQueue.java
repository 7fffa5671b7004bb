package org.verbena.transport.protocol.memory;

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
 * until it has what it waits for and leaves, and then the next is notified. Receives are taken without a turn, so a
 * loop that is busy delays those of no other loop; whole messages keep their order over all loops, or small ones would
 * starve a large one. Any thread; a waiter enters the queue of the loop that it is called on.
 */
final class MemoryQueue {
    private final RegisteredBufferPool pool;
    private final Admission admission;
    private final ReentrantLock lock = new ReentrantLock();

    // Guarded by the lock.
    private final Map<Thread, Set<MessageBuffers.Waiter>> receives = new LinkedHashMap<>();

    /** With the number of bytes that each waits for. */
    private final Map<MessageBuffers.Waiter, Integer> messages = new LinkedHashMap<>();

    /** Decides which waiters must wait for releases of their own address. */
    @FunctionalInterface
    interface Admission {
        /** Whether the address may have so many bytes more. Called under the queue's lock. */
        boolean admits(long network, long bytes);
    }

    MemoryQueue(RegisteredBufferPool pool, Admission admission) {
        this.pool = pool;
        this.admission = admission;
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

    void addForMessage(MessageBuffers.Waiter waiter, int bytes) {
        boolean begins;
        lock.lock();
        try {
            begins = isEmpty();
            messages.put(waiter, bytes);
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

    /** Whether no other waits for a message's memory before this one, apart from those whose address has its share. */
    boolean isTurnOf(MessageBuffers.Waiter waiter) {
        lock.lock();
        try {
            MessageBuffers.Waiter first = firstForMessage();
            return first == null || first.equals(waiter);
        } finally {
            lock.unlock();
        }
    }

    private MessageBuffers.@Nullable Waiter firstForMessage() {
        for (Map.Entry<MessageBuffers.Waiter, Integer> each : messages.entrySet()) {
            if (admission.admits(each.getKey().network(), each.getValue())) {
                return each.getKey();
            }
        }
        return null;
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
        wake(next);
    }

    void leaveMessages(MessageBuffers.Waiter waiter) {
        MessageBuffers.Waiter next = null;
        lock.lock();
        try {
            if (messages.remove(waiter) != null) {
                next = firstForMessage(); // there may be memory left for it
                pool.watch(!isEmpty());
            }
        } finally {
            lock.unlock();
        }
        wake(next);
    }

    /** Returns the new first waiter if the one that leaves was the first: there may be memory left for it. */
    private static MessageBuffers.@Nullable Waiter leave(
            Set<MessageBuffers.Waiter> queue, MessageBuffers.Waiter waiter) {
        boolean wasFirst = waiter.equals(first(queue));
        return queue.remove(waiter) && wasFirst ? first(queue) : null;
    }

    /** A waiter took a part of the budget for a moment and returned it: another may have been refused meanwhile. */
    void passOn(MessageBuffers.Waiter from) {
        MessageBuffers.Waiter first;
        lock.lock();
        try {
            first = firstForMessage();
        } finally {
            lock.unlock();
        }
        if (first != null && !first.equals(from)) {
            wake(first);
        }
    }

    /** Memory has come back. */
    void freed() {
        List<MessageBuffers.Waiter> firsts;
        lock.lock();
        try {
            if (isEmpty()) {
                return;
            }
            firsts = new ArrayList<>();
            receives.values().forEach(queue -> firsts.add(queue.iterator().next()));
            MessageBuffers.Waiter message = firstForMessage();
            if (message != null) {
                firsts.add(message);
            }
        } finally {
            lock.unlock();
        }
        firsts.forEach(MemoryQueue::wake);
    }

    private static void wake(MessageBuffers.@Nullable Waiter waiter) {
        if (waiter != null) {
            waiter.onMemoryFreed();
        }
    }

    private static MessageBuffers.@Nullable Waiter first(Set<MessageBuffers.Waiter> queue) {
        Iterator<MessageBuffers.Waiter> all = queue.iterator();
        return all.hasNext() ? all.next() : null;
    }
}
