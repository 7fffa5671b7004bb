package org.verbena.transport.protocol.memory;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.buffer.RegisteredBufferPool;
import org.verbena.transport.spi.PeerAddress;

/**
 * The waiters for memory of one pool, in the order in which they began to wait: a queue for receives for each event
 * loop, and one for whole messages. When memory comes back, the first of each queue is notified; it stays the first
 * until it has what it waits for and leaves, and then the next is notified. Receives are taken without a turn, so a
 * loop that is busy delays those of no other loop; whole messages have their turn over all loops, or small ones would
 * starve a large one. Any thread; a waiter enters the queue of the loop that it is called on.
 *
 * <p>Those that wait for messages have a queue for each address, and the addresses a round, which one leaves when it
 * has its share and joins again when something of it comes back. So no call looks at more waiters the more there are.
 */
final class MemoryQueue {
    private final RegisteredBufferPool pool;
    private final Admission admission;
    private final ReentrantLock lock = new ReentrantLock();

    // Guarded by the lock.
    private final Map<Thread, Set<MessageBuffers.Waiter>> receives = new LinkedHashMap<>();

    /** Of each address, with the number of bytes that each waits for. */
    private final Map<Long, LinkedHashMap<MessageBuffers.Waiter, Integer>> messages = new HashMap<>();

    /** The addresses whose first waiter may have what it waits for; the first of them has its turn. */
    private final Set<Long> round = new LinkedHashSet<>();

    /** Decides which addresses must wait for releases of their own. */
    @FunctionalInterface
    interface Admission {
        /** Whether the address may have so many bytes more. Called under the queue's lock. */
        boolean admits(long network, long bytes);
    }

    MemoryQueue(RegisteredBufferPool pool, Admission admission) {
        this.pool = pool;
        this.admission = admission;
        pool.onFreed(() -> freed(PeerAddress.UNKNOWN));
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
            messages.computeIfAbsent(waiter.network(), network -> new LinkedHashMap<>())
                    .put(waiter, bytes);
            round.add(waiter.network());
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
        for (Iterator<Long> addresses = round.iterator(); addresses.hasNext(); ) {
            Long network = addresses.next();
            LinkedHashMap<MessageBuffers.Waiter, Integer> queue = messages.get(network);
            Map.Entry<MessageBuffers.Waiter, Integer> first = queue == null ? null : queue.firstEntry();
            if (first != null && admission.admits(network, first.getValue())) {
                return first.getKey();
            }
            addresses.remove(); // until something of it comes back
        }
        return null;
    }

    /** Whether the waiter is the first in a queue: it waits for memory, not for others. */
    boolean isFirst(MessageBuffers.Waiter waiter) {
        lock.lock();
        try {
            Set<MessageBuffers.Waiter> queue = receives.get(Thread.currentThread());
            return (queue != null && waiter.equals(first(queue))) || waiter.equals(firstForMessage());
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
        wake(next);
    }

    void leaveMessages(MessageBuffers.Waiter waiter) {
        MessageBuffers.Waiter next = null;
        lock.lock();
        try {
            Long network = waiter.network();
            Map<MessageBuffers.Waiter, Integer> queue = messages.get(network);
            if (queue != null && queue.remove(waiter) != null) {
                round.remove(network);
                if (queue.isEmpty()) {
                    messages.remove(network);
                } else {
                    round.add(network); // behind the others
                }
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
            rejoin(from.network());
            first = firstForMessage();
        } finally {
            lock.unlock();
        }
        if (first != null && !first.equals(from)) {
            wake(first);
        }
    }

    /** An address has less than before, so its first waiter may have what it waits for. */
    private void rejoin(long network) {
        if (messages.containsKey(network)) {
            round.add(network);
        }
    }

    /** Memory has come back, of a message of this address or other. */
    void freed(long network) {
        List<MessageBuffers.Waiter> firsts;
        lock.lock();
        try {
            if (isEmpty()) {
                return;
            }
            rejoin(network);
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
