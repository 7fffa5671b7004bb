package org.verbena.verbs;

import java.lang.foreign.MemorySegment;
import java.util.Objects;
import org.verbena.verbs.ffm.Errno;
import org.verbena.verbs.internal.Seam;

/**
 * An object of libibverbs that the module {@code org.verbena.verbs.packet} binds. It behaves as every other: it keeps
 * its parents open, and every call keeps it open. No other module can extend this class.
 */
public abstract non-sealed class PacketObject extends VerbsObject {
    /**
     * Wraps a C object.
     *
     * @param seam shows that the module may do so
     * @param address of the C object
     * @param parents what it lies on; the first of them leads to its context
     */
    @SuppressWarnings("exports") // other modules are not to see the type
    protected PacketObject(Seam seam, long address, VerbsObject... parents) {
        super(address, parents);
        Objects.requireNonNull(seam);
    }

    /**
     * The context that it belongs to.
     *
     * @return the context
     */
    public final Context context() {
        return root();
    }

    /**
     * Refuses an object of another device, whose pointer C would take for one of this device.
     *
     * @param context of the device
     * @param object to be used with another
     * @param its the context of the object
     * @param with the other, which is of the device
     * @throws IllegalArgumentException the object is of another device
     */
    protected static void checkOwns(Context context, Object object, Context its, Object with) {
        context.checkOwns(object, its, with);
    }

    /**
     * Looks up a function of {@code verbs_context}.
     *
     * @param context of the device
     * @param function C's name of it
     * @param offset in {@code verbs_context}
     * @return the pointer
     * @throws VerbsException the provider does not have it
     */
    protected static MemorySegment operation(Context context, String function, long offset) {
        return context.extendedOperation(function, offset);
    }

    /** A call that takes a segment for errno and returns NULL if it fails. */
    @FunctionalInterface
    protected interface Creation {
        /**
         * Calls.
         *
         * @param errno receives errno
         * @return what C returned
         */
        long call(MemorySegment errno);
    }

    /**
     * Makes a call that returns NULL and sets errno if it fails.
     *
     * @param function C's name of it
     * @param arguments that matter
     * @param creation the call
     * @return the address of what was made
     * @throws VerbsException it failed
     */
    protected static long create(String function, String arguments, Creation creation) {
        return Calls.create(function, arguments, creation::call);
    }

    /**
     * Throws if a call that returns errno failed.
     *
     * @param function C's name of it
     * @param arguments that matter
     * @param result what it returned
     * @throws VerbsException it failed
     */
    protected static void check(String function, String arguments, int result) {
        Calls.check(function, arguments, result);
    }

    /**
     * Creates the exception for a function that the provider lacks.
     *
     * @param function C's name of it
     * @param context of the device
     * @return the exception
     */
    protected static VerbsException unsupported(String function, Context context) {
        return Failures.failure(function, context.device().name(), Errno.EOPNOTSUPP);
    }

    /**
     * Checks a field of something that was just made, by which a library of another ABI is known.
     *
     * @param field C's name of it
     * @param expected what it must hold
     * @param found what it holds
     * @throws UnsupportedOperationException it holds something else
     */
    protected static void expect(String field, long expected, long found) {
        AbiCheck.expect(field, expected, found);
    }

    /**
     * Makes the queue that this object's receives are posted to. {@link #free} frees it.
     *
     * @param domain of their memory
     * @param postFunction C's function, of the signature of ibv_post_wq_recv
     * @param depthWrs how many receives it holds
     * @param maxSges how many elements a receive may have
     * @return the queue
     */
    protected final ReceiveQueue newReceiveQueue(
            ProtectionDomain domain, MemorySegment postFunction, int depthWrs, int maxSges) {
        return new ReceiveQueue(this, domain, "ibv_post_wq_recv", postFunction, depthWrs, maxSges);
    }

    /**
     * Frees the native memory of a queue, after the C object is gone.
     *
     * @param queue from {@link #newReceiveQueue}
     */
    protected static void free(ReceiveQueue queue) {
        queue.free();
    }
}
