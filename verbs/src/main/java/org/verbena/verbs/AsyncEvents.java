package org.verbena.verbs;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;
import org.verbena.verbs.ffm.Errno;
import org.verbena.verbs.ffm.FileDescriptors;
import org.verbena.verbs.ffm.IbvAsyncEvent;
import org.verbena.verbs.ffm.LibIbverbs;

/**
 * The asynchronous events of a context, and the objects that they name. One thread at a time takes events; any thread
 * adds and removes objects.
 */
final class AsyncEvents {
    private final Context context;
    private final int descriptor;

    /** Whether the descriptor has been made so. Of the thread that takes events. */
    private boolean nonBlocking;

    /** What events may name, by the address of the C object: a device that is lost names each of its queue pairs. */
    private final Map<Long, VerbsObject> sources = new ConcurrentHashMap<>();

    AsyncEvents(Context context, int descriptor) {
        this.context = context;
        this.descriptor = descriptor;
    }

    int descriptor() {
        return descriptor;
    }

    /**
     * Takes an event if there is one, and acknowledges it.
     *
     * @param arena of this call
     * @return the event, or null if none is there
     */
    @Nullable AsyncEvent tryTake(Arena arena) {
        MemorySegment errno = Errno.newCapture(arena);
        if (!nonBlocking) {
            Calls.setBlocking(errno, descriptor, false);
            nonBlocking = true;
        }
        MemorySegment event = arena.allocate(IbvAsyncEvent.LAYOUT);
        if (LibIbverbs.getAsyncEvent(errno, context.nativeAddress(), event.address()) != 0) {
            int cause = Errno.get(errno);
            if (cause == Errno.EAGAIN || cause == Errno.EINTR) {
                return null;
            }
            throw Failures.failure("ibv_get_async_event", context.device().name(), cause);
        }
        try {
            return AsyncEvent.read(this, event);
        } finally {
            LibIbverbs.ackAsyncEvent(event.address());
        }
    }

    /**
     * Waits until there may be an event.
     *
     * @param timeoutNanos the longest wait
     */
    void await(long timeoutNanos) {
        try (Arena arena = Arena.ofConfined()) {
            Calls.awaitReadable(Errno.newCapture(arena), FileDescriptors.newPollfds(arena, descriptor), timeoutNanos);
        }
    }

    /**
     * Adds an object that events may name.
     *
     * @param made address of the C object
     * @param object that wraps it
     */
    void add(long made, VerbsObject object) {
        sources.put(made, object);
    }

    /**
     * Removes an object after the C object is gone, whose address may be that of another one by now.
     *
     * @param gone address of the C object
     * @param object that wrapped it
     */
    void remove(long gone, VerbsObject object) {
        sources.remove(gone, object);
    }

    /**
     * Finds what an event names.
     *
     * @param address of a C object
     * @return the open object of this context, or null
     */
    @Nullable VerbsObject source(long address) {
        VerbsObject found = sources.get(address);
        return found != null && found.isOpen() ? found : null;
    }
}
