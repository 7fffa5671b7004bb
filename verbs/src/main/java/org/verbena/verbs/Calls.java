package org.verbena.verbs;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.verbena.verbs.device.DriverFamily;
import org.verbena.verbs.ffm.Errno;
import org.verbena.verbs.ffm.FileDescriptors;
import org.verbena.verbs.ffm.Siw;

/** The conventions by which libibverbs reports a failed call. */
final class Calls {
    private static final long NANOS_A_MILLI = 1_000_000;

    private Calls() {}

    /** A call that takes a segment for errno and returns NULL if it fails. */
    interface Creation {
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
     */
    static long create(String function, String arguments, Creation creation) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment errno = Errno.newCapture(arena);
            long made = creation.call(errno);
            if (made == 0) {
                throw Failures.failure(function, arguments, Errno.get(errno));
            }
            return made;
        }
    }

    /**
     * Makes a call that creates a queue, which on soft iWARP may be refused without a reason.
     *
     * @param context the device
     * @param function C's name of it
     * @param arguments that matter
     * @param creation the call
     * @return the address of what was made
     */
    static long createQueue(Context context, String function, String arguments, Creation creation) {
        try {
            return create(function, arguments, creation);
        } catch (VerbsException refused) {
            String remark = Siw.remark(context.driverFamily() == DriverFamily.SOFT_IWARP, refused.errno());
            if (remark.isEmpty()) {
                throw refused;
            }
            throw new VerbsException(
                    function + "(" + arguments + ")",
                    refused.errno(),
                    Failures.joined(Failures.hint(function, refused.errno()), remark));
        }
    }

    /**
     * Throws if a call that returns errno, or -1 and sets it, failed.
     *
     * @param function C's name of it
     * @param arguments that matter
     * @param result what it returned
     * @param errno what it captured
     */
    static void check(String function, String arguments, int result, MemorySegment errno) {
        if (result != 0) {
            throw Failures.failure(function, arguments, result == -1 ? Errno.get(errno) : Math.abs(result));
        }
    }

    /**
     * Throws if a call that returns errno failed.
     *
     * @param function C's name of it
     * @param arguments that matter
     * @param result what it returned
     */
    static void check(String function, String arguments, int result) {
        if (result != 0) {
            throw Failures.failure(function, arguments, Math.abs(result));
        }
    }

    /**
     * Chooses what a read of a descriptor of libibverbs does where there is nothing to read.
     *
     * @param errno receives errno
     * @param descriptor an open descriptor
     * @param blocking true to wait, false to return at once with EAGAIN
     */
    static void setBlocking(MemorySegment errno, int descriptor, boolean blocking) {
        int result = FileDescriptors.setBlocking(errno, descriptor, blocking);
        if (result < 0) {
            throw new IllegalStateException("fcntl(" + descriptor + ", O_NONBLOCK) failed with " + Errno.name(-result));
        }
    }

    /**
     * Waits until there is something to read, or for some time. May return early: the caller checks its clock.
     *
     * @param errno receives errno
     * @param pollfds from {@link FileDescriptors#newPollfds}
     * @param timeoutNanos the longest wait
     */
    static void awaitReadable(MemorySegment errno, MemorySegment pollfds, long timeoutNanos) {
        long millis = Math.min(Integer.MAX_VALUE, (timeoutNanos + NANOS_A_MILLI - 1) / NANOS_A_MILLI);
        FileDescriptors.poll(errno, pollfds, (int) Math.max(0, millis));
    }
}
