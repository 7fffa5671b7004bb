package org.verbena.transport.verbs;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.transport.ProviderException;
import org.verbena.verbs.NativeRdmaException;
import org.verbena.verbs.ffm.Errno;

/** Maps the bindings' exceptions to those of the SPI. */
final class NativeFailures {
    private static final Logger LOG = LoggerFactory.getLogger(NativeFailures.class);

    private NativeFailures() {}

    /** The SPI's exception for a failed native call: the same message, with the native failure as its cause. */
    static ProviderException of(NativeRdmaException failure) {
        return new ProviderException(String.valueOf(failure.getMessage()), failure);
    }

    /** Whether the system may do later what it refuses now: an object, memory or a descriptor is missing. */
    static boolean isForNow(int errno) {
        return errno == Errno.ENOMEM || errno == Errno.EAGAIN || errno == Errno.EMFILE;
    }

    /**
     * Makes a call, and once more if it is refused: a limit is refused each time, and what was refused once was a
     * moment without memory or without room on the device.
     *
     * @throws NativeRdmaException it was refused twice
     */
    static void tryTwice(Runnable call) {
        try {
            call.run();
        } catch (NativeRdmaException refused) {
            LOG.debug("Tried once more", refused);
            call.run();
        }
    }

    /** An Error as an exception that fails what it stopped: a class that cannot be initialized, no thread, no heap. */
    static RuntimeException unchecked(Throwable thrown) {
        return thrown instanceof RuntimeException known ? known : new ProviderException(thrown.toString(), thrown);
    }
}
