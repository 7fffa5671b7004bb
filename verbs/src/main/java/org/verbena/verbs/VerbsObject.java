package org.verbena.verbs;

import java.lang.foreign.Arena;
import java.util.Arrays;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.Iterator;
import java.util.Set;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.function.LongConsumer;
import java.util.function.LongFunction;
import org.jspecify.annotations.Nullable;

/**
 * An object of libibverbs that must be closed: a context, a protection domain, a queue pair ...
 *
 * <p>Objects form a tree (a queue pair depends on a protection domain and on completion queues, and these on a
 * context). {@link #close()} is idempotent and refuses, naming them, while children are open; any later call throws
 * {@link IllegalStateException}. Creating, querying, changing and closing may happen on any thread: {@link #close()}
 * refuses while such a call is under way. Polling and posting belong to one thread at a time, and so does closing the
 * queue: nothing here locks on the data path.
 */
public abstract sealed class VerbsObject implements AutoCloseable
        permits Context,
                ProtectionDomain,
                ThreadDomain,
                XrcDomain,
                MemoryRegion,
                MemoryWindow,
                DeviceMemory,
                CompletionChannel,
                CompletionQueue,
                SharedReceiveQueue,
                QueuePair,
                XrcTarget,
                AddressHandle,
                PacketObject {

    /** How many open children an error message names before it only counts. */
    private static final int NAMED_CHILDREN = 5;

    /** Grows by {@link #addParent}, while closing is prevented; {@link #close()} reads it after that. */
    private volatile VerbsObject[] parents;

    private final Set<VerbsObject> children = Collections.newSetFromMap(new IdentityHashMap<>()); // guarded by this
    /** Calls of C under way about this object, and children being made on it. Guarded by this. */
    private int holds;

    /** The C object; 0 from the moment closing begins. Written under this object's lock, read by every thread. */
    private volatile long address;

    /**
     * Wraps a C object; {@link #own} calls this.
     *
     * @param address of it
     * @param parents what it lies on, and what therefore outlives it; {@link #make} keeps each open until {@code own}
     *     returns
     */
    VerbsObject(long address, VerbsObject... parents) {
        this.address = address;
        this.parents = parents;
    }

    /**
     * Takes over what C has just made: the new object lies on its parents, or, if it cannot be made, the C object is
     * destroyed and its parents are unaffected.
     *
     * @param <T> the kind of object
     * @param made address of the C object
     * @param constructor wraps it
     * @param undo destroys the C object if wrapping it fails
     * @return what the constructor made
     */
    protected static <T extends VerbsObject> T own(long made, LongFunction<T> constructor, LongConsumer undo) {
        VerbsObject entered = null;
        try {
            T object = constructor.apply(made);
            entered = object;
            for (VerbsObject parent : entered.parents) {
                parent.adopt(object);
            }
            if (entered.raisesEvents()) {
                entered.root().events().add(made, entered);
            }
            return object;
        } catch (Throwable failure) {
            if (entered != null) {
                for (VerbsObject parent : entered.parents) {
                    parent.disown(entered);
                }
            }
            try {
                undo.accept(made);
            } catch (RuntimeException refused) {
                failure.addSuppressed(refused);
            }
            throw failure;
        }
    }

    /**
     * The C object, for bindings of libraries that build on libibverbs.
     *
     * @return its address, as C's pointer
     * @throws IllegalStateException after {@link #close()}
     */
    public final long nativeAddress() {
        long current = address;
        if (current == 0) {
            throw closedException();
        }
        return current;
    }

    /**
     * Whether it can be used.
     *
     * @return false from the moment that closing begins
     */
    public final boolean isOpen() {
        return address != 0;
    }

    /**
     * Destroys the C object. Does nothing if that has been done.
     *
     * @throws IllegalStateException children are open, or another thread makes one or is in a call about this: the
     *     message says which
     * @throws VerbsException the system refused; the object stays open
     */
    @Override
    public final void close() {
        long closing;
        synchronized (this) {
            closing = address;
            if (closing == 0) {
                return;
            }
            if (!children.isEmpty() || holds > 0) {
                throw new IllegalStateException(this + " cannot be closed: still open are " + nameChildren()
                        + ". Close what depends on it first.");
            }
            address = 0;
        }
        try {
            destroy(closing);
        } catch (RuntimeException refused) {
            synchronized (this) {
                address = closing;
            }
            throw refused;
        }
        if (raisesEvents()) {
            root().events().remove(closing, this);
        }
        for (VerbsObject parent : parents) {
            parent.disown(this);
        }
        freeMemory();
    }

    /** Frees the native memory that went with the C object, which is gone now. */
    protected void freeMemory() {}

    /**
     * Destroys the C object. What it throws leaves the object open, so it must do nothing that may fail after the C
     * object is gone.
     *
     * @param closing its address
     */
    protected abstract void destroy(long closing);

    /**
     * Makes an object on one other.
     *
     * @param <T> the kind of object
     * @param parent what the object will lie on
     * @param making as for {@link #make(VerbsObject[], Function)}
     * @return what it returned
     */
    protected static <T extends VerbsObject> T make(VerbsObject parent, Function<Arena, T> making) {
        return make(new VerbsObject[] {parent}, making);
    }

    /**
     * Makes an object on others, which {@link #close()} refuses to close meanwhile. All of them are open, or nothing
     * happens.
     *
     * @param <T> the kind of object
     * @param parents what the object will lie on
     * @param making calls C, with memory that is freed when it is done, and returns what {@link #own} returned
     * @return what it returned
     * @throws IllegalStateException one of the parents is closed
     */
    protected static <T extends VerbsObject> T make(VerbsObject[] parents, Function<Arena, T> making) {
        int held = 0;
        try (Arena arena = Arena.ofConfined()) {
            for (VerbsObject parent : parents) {
                parent.hold();
                held++;
            }
            return making.apply(arena);
        } finally {
            for (int i = 0; i < held; i++) {
                parents[i].release();
            }
        }
    }

    /** Keeps this from being closed until {@link #release()}; allocates nothing. */
    final synchronized void hold() {
        if (address == 0) {
            throw closedException();
        }
        holds++;
    }

    /**
     * Calls C about this object, which {@link #close()} refuses to close meanwhile. Every call that is allowed on any
     * thread is made through this; posting and polling are not, as they belong to the thread that closes.
     *
     * @param <T> what the call returns
     * @param call what to do, with memory that is freed when it is done
     * @return what it returned
     * @throws IllegalStateException this is closed
     */
    protected final <T extends @Nullable Object> T whileOpen(Function<Arena, T> call) {
        hold();
        try (Arena arena = Arena.ofConfined()) {
            return call.apply(arena);
        } finally {
            release();
        }
    }

    /**
     * As {@link #whileOpen}, for a call without a result.
     *
     * @param call what to do
     */
    protected final void runWhileOpen(Consumer<Arena> call) {
        whileOpen(arena -> {
            call.accept(arena);
            return this;
        });
    }

    /**
     * Makes an open object lie on one more parent. A call keeps both open meanwhile.
     *
     * @param parent what shall outlive this
     */
    protected final void addParent(VerbsObject parent) {
        synchronized (this) {
            if (Arrays.asList(parents).contains(parent)) {
                return;
            }
            VerbsObject[] more = Arrays.copyOf(parents, parents.length + 1);
            more[parents.length] = parent;
            parents = more;
        }
        parent.adopt(this);
    }

    /** Undoes {@link #hold()}. */
    final synchronized void release() {
        holds--;
    }

    private synchronized void adopt(VerbsObject child) {
        children.add(child);
    }

    private synchronized void disown(VerbsObject child) {
        children.remove(child);
    }

    /** The context under everything: the first parent of an object leads there. */
    final Context root() {
        return this instanceof Context context ? context : parents[0].root();
    }

    /**
     * Whether the device's asynchronous events may name it.
     *
     * @return false unless it is a queue
     */
    protected boolean raisesEvents() {
        return false;
    }

    private String nameChildren() {
        StringBuilder names = new StringBuilder();
        Iterator<VerbsObject> open = children.iterator();
        for (int i = 0; i < NAMED_CHILDREN && open.hasNext(); i++) {
            names.append(i == 0 ? "" : ", ").append(open.next());
        }
        int more = Math.max(0, children.size() - NAMED_CHILDREN) + holds;
        if (more > 0) {
            names.append(names.isEmpty() ? "" : " and ")
                    .append(more)
                    .append(children.isEmpty() ? " in use by calls of other threads" : " more");
        }
        return names.toString();
    }

    private IllegalStateException closedException() {
        return new IllegalStateException(this + " is closed");
    }
}
