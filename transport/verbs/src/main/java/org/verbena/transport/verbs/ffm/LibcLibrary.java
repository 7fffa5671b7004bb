package org.verbena.transport.verbs.ffm;

import java.io.IOException;
import java.io.UncheckedIOException;
import org.verbena.verbs.ffm.Errno;
import org.verbena.verbs.ffm.NativeLibrary;

/** Where the C library is. */
public final class LibcLibrary {
    /** The library; another file is loaded if the property {@code org.verbena.transport.verbs.libc} names one. */
    public static final NativeLibrary LIBRARY = NativeLibrary.load(
            System.getProperty("org.verbena.transport.verbs.libc", "libc.so.6"),
            "The verbs provider runs on Linux with the GNU C library; elsewhere use the provider soft.");

    /** Whether it has epoll_pwait2, as from glibc 2.35 on; the kernel has it from Linux 5.11 on. */
    public static final boolean HAS_EPOLL_PWAIT2 = LIBRARY.find("epoll_pwait2").isPresent();

    private LibcLibrary() {}

    /**
     * Creates the exception for a call that failed.
     *
     * @param call with its arguments
     * @param errno why
     * @return the exception
     */
    public static UncheckedIOException failure(String call, int errno) {
        String hint = errno == Errno.EMFILE ? ": the process has too many open descriptors, raise `ulimit -n`" : "";
        return new UncheckedIOException(new IOException(call + " failed with " + Errno.name(errno) + hint));
    }
}
