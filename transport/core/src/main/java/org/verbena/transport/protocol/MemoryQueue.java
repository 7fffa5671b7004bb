package org.verbena.transport.protocol;

import java.util.Iterator;
import java.util.LinkedHashSet;
import java.util.Set;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.buffer.RegisteredBufferPool;

/**
 * The waiters for memory of one pool, in the order in which they began to wait: one queue for receives, one for whole
 * messages. When memory comes back, the first of each is notified; it stays the first until it has what it waits for
 * and leaves, and then the next is notified. Any thread.
 */
final class MemoryQueue {
    private final RegisteredBufferPool pool;
    private final ReentrantLock lock = new ReentrantLock();

    // Guarded by the lock.
    private final Set<MessageBuffers.Waiter> receives = new LinkedHashSet<>();
    private final Set<MessageBuffers.Waiter> messages = new LinkedHashSet<>();

    MemoryQueue(RegisteredBufferPool pool) {
        this.pool = pool;
        pool.onFreed(this::freed);
    }

    void addForReceives(MessageBuffers.Waiter waiter) {
        add(receives, waiter);
    }

    void addForMessage(MessageBuffers.Waiter waiter) {
        add(messages, waiter);
    }

    private void add(Set<MessageBuffers.Waiter> queue, MessageBuffers.Waiter waiter) {
        lock.lock();
        try {
            queue.add(waiter);
            pool.watch(true);
        } finally {
            lock.unlock();
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
        tell(leave(receives, waiter));
    }

    void leaveMessages(MessageBuffers.Waiter waiter) {
        tell(leave(messages, waiter));
    }

    /** Returns the new first waiter if the one that leaves was the first: there may be memory left for it. */
    private MessageBuffers.@Nullable Waiter leave(Set<MessageBuffers.Waiter> queue, MessageBuffers.Waiter waiter) {
        lock.lock();
        try {
            boolean wasFirst = waiter.equals(first(queue));
            if (!queue.remove(waiter)) {
                return null;
            }
            pool.watch(!receives.isEmpty() || !messages.isEmpty());
            return wasFirst ? first(queue) : null;
        } finally {
            lock.unlock();
        }
    }

    /** Memory has come back. */
    void freed() {
        MessageBuffers.Waiter receiver;
        MessageBuffers.Waiter message;
        lock.lock();
        try {
            receiver = first(receives);
            message = first(messages);
        } finally {
            lock.unlock();
        }
        tell(receiver);
        tell(message);
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
