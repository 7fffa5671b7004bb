package org.verbena.transport.verbs;

import io.netty.util.concurrent.FastThreadLocalThread;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.Collections;
import java.util.EnumSet;
import java.util.IdentityHashMap;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.transport.MemoryDomain;
import org.verbena.transport.RegisteredMemory;
import org.verbena.transport.WorkStatus;
import org.verbena.verbs.MemoryRegion;
import org.verbena.verbs.MemoryWindow;
import org.verbena.verbs.NativeRdmaException;
import org.verbena.verbs.ffm.Errno;
import org.verbena.verbs.memory.AccessFlag;
import org.verbena.verbs.memory.WindowType;

/**
 * Memory for the peer of one connection. The key of a region opens nothing: the peer gets the key of a type 2 window
 * into the region, which is bound to the connection's queue pair and ends with it.
 *
 * <pre>{@code
 * register (any thread) --hop--> waits --the send queue takes it--> binding --completion--> bound
 * }</pre>
 *
 * <p>Whatever is posted on the queue pair after {@code register} has returned is posted behind the binding, so a peer
 * that receives the key then finds the region open.
 *
 * <p>What is registered for one operation in the memory of a pool needs no region: the window is bound into the pool's,
 * whose own key opens nothing. If the device can bind behind other work, the window of an operation is not deallocated
 * either, but invalidated behind that work, and bound again for a later one, with another key: so a message costs no
 * command to the firmware.
 *
 * <pre>{@code
 * bound --close--> retiring --the send queue takes it--> invalidating --completion--> spare --> bound ...
 * }</pre>
 *
 * <p>A region is held while its window is being bound, as a window may not be deallocated then. If the device allows, a
 * binding is posted behind all outstanding work; a region that is closed meanwhile stays registered until the peer has
 * acknowledged what went before. Otherwise it is posted when the send queue is empty, and other work waits for it: when
 * soft RoCE retransmits, it repeats the bindings behind the oldest work request that is not acknowledged (Linux 6.1,
 * {@code req_retry}), which fails and ends the connection.
 *
 * <p>Source: ibv_alloc_mw(3), ibv_bind_mw(3)
 */
final class ConnectionWindows implements MemoryDomain {
    private static final Logger LOG = LoggerFactory.getLogger(ConnectionWindows.class);

    /**
     * Bindings and invalidations under way at a time, for which the queue pair has room: as many as messages go by
     * rendezvous by default.
     */
    static final int MAX_BINDINGS = 16;

    /**
     * How long registering waits for the binding: a turn of the loop and some work of the adapter, if nothing is wrong.
     */
    private static final long BINDING_MILLIS = 1000;

    private final VerbsMemoryDomain domain;
    private final VerbsEndpoint endpoint;
    private final AtomicLong registeredBytes = new AtomicLong();

    /** Whether windows of operations are bound again. */
    private final boolean reuses;

    /** Windows that are not bound. Guarded by this. */
    private final ArrayDeque<MemoryWindow> spare = new ArrayDeque<>(0);

    /** Regions with a window. Guarded by this. */
    private final Set<Bound> open = Collections.newSetFromMap(new IdentityHashMap<>());

    /** The window that {@link #prove} has bound. Guarded by this. */
    private @Nullable MemoryWindow probe;

    /** The queue pair is being destroyed, or is destroyed. Guarded by this. */
    private boolean isOver;

    /** The loop posts nothing more. Guarded by this. */
    private boolean isAbandoned;

    // Confined to the loop's thread: regions in the order in which they were registered, or closed.
    private final ArrayDeque<Bound> waiting = new ArrayDeque<>();
    private final ArrayDeque<Bound> retiring = new ArrayDeque<>(0);

    /** Windows of which a binding or an invalidation is out, in the order of posting. */
    private final ArrayDeque<Bound> posted = new ArrayDeque<>();

    ConnectionWindows(VerbsMemoryDomain domain, VerbsEndpoint endpoint, boolean reuses) {
        this.domain = domain;
        this.endpoint = endpoint;
        this.reuses = reuses;
    }

    /** The region and its memory window; the window is absent if the connection ended first. */
    final class Bound extends VerbsMemoryDomain.Region {
        private final @Nullable MemoryWindow window;
        private final int key;

        /** What the window is bound into is this region of a pool, which is held; null for a region of its own. */
        private final VerbsMemoryDomain.@Nullable Region pooled;

        /** Whether it is for one operation, so that its window is bound again for another one, or closed. */
        private final boolean isForOperation;

        // Confined to the loop's thread.
        private boolean isPosted;
        private boolean isInvalidating;

        /** Set before it retires: to be run when the peer has no access any more. */
        private @Nullable Runnable whenClosed;

        /** Open once it is bound, or never will be. */
        private final CountDownLatch settled = new CountDownLatch(1);

        private Bound(
                MemorySegment segment,
                Set<Access> access,
                MemoryRegion region,
                VerbsMemoryDomain.@Nullable Region pooled,
                @Nullable MemoryWindow window,
                boolean isForOperation) {
            super(segment, access, region, domain);
            this.pooled = pooled;
            this.window = window;
            this.isForOperation = isForOperation;
            key = window == null ? region.remoteKey() : MemoryWindow.nextKey(window.remoteKey());
        }

        long offsetBytes() {
            return address() - region().address();
        }

        MemoryWindow window() {
            return VerbsEndpoint.required(window);
        }

        EnumSet<AccessFlag> rights() {
            return VerbsMemoryDomain.windowRights(access());
        }

        /**
         * Waits until the peer can use the key, however it learns of it. Not on threads of Netty, which may be what the
         * binding waits for.
         */
        private void awaitBinding() {
            try {
                if (!settled.await(BINDING_MILLIS, TimeUnit.MILLISECONDS)) {
                    LOG.debug("A memory window of {} is not bound yet", endpoint.connection());
                }
            } catch (InterruptedException interrupted) {
                Thread.currentThread().interrupt();
            }
        }

        /**
         * It is bound, or never will be. Those that wait for that may close it, and must find that nothing else holds
         * it.
         */
        private void settle() {
            try {
                release();
            } finally {
                settled.countDown();
            }
        }

        @Override
        public int remoteKey() {
            return key;
        }

        /** The peer has no access any more. One thread at a time: a region must not go before its window is gone. */
        synchronized void closeWindow() {
            MemoryWindow known = window;
            if (known != null) {
                try {
                    known.close();
                } catch (NativeRdmaException refused) {
                    throw NativeFailures.of(refused);
                }
            }
        }

        @Override
        protected void deregister() {
            boolean isReused;
            synchronized (ConnectionWindows.this) {
                isReused = reuses && isForOperation && !isOver && !isAbandoned && open.contains(this);
                if (!isReused) {
                    open.remove(this);
                }
            }
            if (isReused) {
                whenClosed = delayGone();
                endpoint.onLoop(() -> retire0(this));
            } else {
                closeWindow();
                giveBack();
            }
        }

        /** The window is gone, or bound to nothing. */
        private void giveBack() {
            if (pooled == null) {
                super.deregister();
            } else {
                pooled.release();
            }
            registeredBytes.addAndGet(-lengthBytes());
        }

        /** It was retiring, and its window is as good as gone. */
        private void end(boolean isSpare) {
            try {
                boolean isKept;
                synchronized (ConnectionWindows.this) {
                    isKept = open.remove(this) && isSpare && spare.size() < MAX_BINDINGS;
                    if (isKept) {
                        spare.push(window());
                    }
                }
                if (!isKept) {
                    closeWindow();
                }
                giveBack();
            } catch (RuntimeException refused) {
                // The device may still use the memory, which is never freed.
                LOG.warn("A memory window of {} could not be given back", endpoint.connection(), refused);
                return;
            }
            VerbsEndpoint.required(whenClosed).run();
        }
    }

    @Override
    public RegisteredMemory register(MemorySegment segment, Set<Access> access) {
        return register(segment, null, access, false);
    }

    @Override
    public RegisteredMemory registerForOperation(
            MemorySegment segment, @Nullable RegisteredMemory within, Set<Access> access) {
        return register(segment, within, access, true);
    }

    private RegisteredMemory register(
            MemorySegment segment, @Nullable RegisteredMemory within, Set<Access> access, boolean isForOperation) {
        if (VerbsMemoryDomain.windowRights(access).isEmpty()) {
            return domain.register(segment, access); // there is nothing to open
        }
        VerbsMemoryDomain.Region pooled = domain.holdForWindow(within, access);
        MemoryRegion region = pooled == null ? domain.registerForWindow(segment, access) : pooled.region();
        Bound memory;
        boolean isBinding;
        try {
            synchronized (this) {
                isBinding = !isOver;
                MemoryWindow window = isOver ? null : takeWindow(isForOperation);
                memory = new Bound(segment, access, region, pooled, window, isForOperation);
                if (isBinding) {
                    open.add(memory);
                }
            }
        } catch (RuntimeException refused) {
            if (pooled == null) {
                domain.deregister(region);
            } else {
                pooled.release();
            }
            throw refused instanceof NativeRdmaException failure ? NativeFailures.of(failure) : refused;
        }
        registeredBytes.addAndGet(segment.byteSize());
        if (isBinding) {
            memory.retain();
            endpoint.onLoop(() -> bind0(memory));
            if (!(Thread.currentThread() instanceof FastThreadLocalThread)) {
                memory.awaitBinding();
            }
        }
        return memory;
    }

    /** {@inheritDoc} Counts only this connection's. */
    @Override
    public long registeredBytes() {
        return registeredBytes.get();
    }

    /** With the lock held. */
    private MemoryWindow takeWindow(boolean isForOperation) {
        MemoryWindow window = isForOperation ? spare.poll() : null;
        return window == null ? domain.protectionDomain().allocateMemoryWindow(WindowType.TYPE_2) : window;
    }

    private void bind0(Bound memory) {
        waiting.add(memory);
        bindWaiting0();
    }

    private void retire0(Bound memory) {
        if (memory.isPosted) {
            retiring.add(memory);
            bindWaiting0();
        } else {
            memory.end(true); // it was never bound
        }
    }

    /** Posts bindings that wait for the connection, for an empty send queue, or for others to be done. */
    void bindWaiting0() {
        if (endpoint.isEnding()) {
            releaseAll(waiting);
            endAll(retiring);
            return;
        }
        while (!retiring.isEmpty() && endpoint.canBind() && posted.size() < MAX_BINDINGS) {
            Bound memory = retiring.remove();
            memory.isInvalidating = true;
            posted.add(memory);
            endpoint.postInvalidation0(memory);
        }
        while (!waiting.isEmpty() && endpoint.canBind() && posted.size() < MAX_BINDINGS) {
            Bound memory = waiting.remove();
            if (memory.isClosed()) {
                memory.settle();
            } else {
                memory.isPosted = true;
                posted.add(memory);
                endpoint.postBinding0(memory);
            }
        }
    }

    /** Whether what is posted now would overtake a binding. */
    boolean hasWaiting() {
        return !waiting.isEmpty();
    }

    /**
     * Binds a window that is not used, while nothing is outstanding, to see whether the device can.
     *
     * @return false if it refused: this connection does without windows, and so does the device unless it refused for
     *     want of something that may be there later
     */
    boolean prove(VerbsDevice device, SendPath sends) {
        MemoryWindow window = null;
        try {
            window = domain.protectionDomain().allocateMemoryWindow(WindowType.TYPE_2);
            int errno = sends.tryBind(
                    window,
                    MemoryWindow.nextKey(window.remoteKey()),
                    device.resources().nothing(),
                    0,
                    device.resources().nothing().lengthBytes(),
                    EnumSet.of(AccessFlag.REMOTE_READ));
            if (errno == 0) {
                synchronized (this) {
                    probe = window;
                }
                return true;
            }
            device.resources().forgoWindows(errno, "ibv_post_send: " + Errno.name(errno));
        } catch (NativeRdmaException refused) {
            device.resources().forgoWindows(refused.errno(), refused.toString());
        }
        if (window != null) {
            window.close();
        }
        return false;
    }

    /** The oldest binding or invalidation has completed; the first of a device shows whether it binds at all. */
    void onBound0(VerbsDevice device, WorkStatus status) {
        if (closeProbe()) {
            if (status == WorkStatus.SUCCESS) {
                device.resources().windowsWork();
            } else if (status != WorkStatus.FLUSHED) {
                device.resources().forgoWindows(0, status.toString());
            }
            return;
        }
        Bound memory = posted.poll();
        if (memory != null && memory.isInvalidating) {
            memory.end(status == WorkStatus.SUCCESS);
        } else if (memory != null) {
            memory.settle();
        }
    }

    /** Nothing is bound any more: releases what waits. */
    void abandon0() {
        synchronized (this) {
            isAbandoned = true;
        }
        releaseAll(posted);
        releaseAll(waiting);
        endAll(retiring);
    }

    private static void endAll(ArrayDeque<Bound> memories) {
        Bound memory;
        while ((memory = memories.poll()) != null) {
            memory.end(false);
        }
    }

    private static void releaseAll(ArrayDeque<Bound> memories) {
        Bound memory;
        while ((memory = memories.poll()) != null) {
            if (memory.isInvalidating) {
                memory.end(false);
            } else {
                memory.settle();
            }
        }
    }

    /** Gives the probe back; returns false if there was none. */
    private boolean closeProbe() {
        MemoryWindow bound;
        synchronized (this) {
            bound = probe;
            probe = null;
        }
        if (bound != null) {
            giveBack(bound);
        }
        return bound != null;
    }

    /** The queue pair is about to be destroyed: no window may be bound to it any more. Any thread. */
    void end() {
        closeProbe();
        Bound[] left;
        MemoryWindow[] spares;
        synchronized (this) {
            isOver = true;
            spares = spare.toArray(MemoryWindow[]::new);
            spare.clear();
            left = open.toArray(Bound[]::new);
            open.clear();
        }
        for (Bound memory : left) {
            try {
                memory.closeWindow();
            } catch (RuntimeException refused) {
                LOG.warn("A memory window of {} could not be given back", endpoint.connection(), refused);
            }
        }
        for (MemoryWindow window : spares) {
            giveBack(window);
        }
    }

    private void giveBack(MemoryWindow window) {
        try {
            window.close();
        } catch (NativeRdmaException refused) {
            LOG.warn("A memory window of {} could not be given back", endpoint.connection(), refused);
        }
    }
}
