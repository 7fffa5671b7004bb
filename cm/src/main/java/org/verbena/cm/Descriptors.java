package org.verbena.cm;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import org.verbena.verbs.ffm.Errno;
import org.verbena.verbs.ffm.FileDescriptors;

/**
 * Waits for file descriptors, for programs without an event loop: those of event channels, completion channels and
 * asynchronous events.
 *
 * <p>Source: poll(2)
 */
public final class Descriptors {
    /** The result has one bit for each. */
    private static final int MAX_DESCRIPTORS = 32;

    private Descriptors() {}

    /**
     * Waits until one of the descriptors is readable or broken. A signal ends the wait early.
     *
     * @param timeoutMillis how long to wait; negative waits forever
     * @param descriptors 1 to 32 of them
     * @return one bit for each that is ready, the lowest for the first; 0 if none became ready in time
     * @throws CmException poll(2) refused
     */
    public static int awaitReadable(int timeoutMillis, int... descriptors) {
        if (descriptors.length < 1 || descriptors.length > MAX_DESCRIPTORS) {
            throw new IllegalArgumentException(descriptors.length + " descriptors, but 1 to 32 can be waited for");
        }
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment errno = Errno.newCapture(arena);
            MemorySegment pollfds = FileDescriptors.newPollfds(arena, descriptors);
            int result = FileDescriptors.poll(errno, pollfds, timeoutMillis);
            if (result == -Errno.EINTR) {
                return 0;
            }
            if (result < 0) {
                throw new CmException("poll(" + Arrays.toString(descriptors) + ")", -result);
            }
            int ready = 0;
            for (int i = 0; i < descriptors.length; i++) {
                if (FileDescriptors.isReady(pollfds, i)) {
                    ready |= 1 << i;
                }
            }
            return ready;
        }
    }
}
