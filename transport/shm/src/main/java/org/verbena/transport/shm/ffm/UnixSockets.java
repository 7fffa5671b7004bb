package org.verbena.transport.shm.ffm;

import java.io.IOException;
import java.nio.charset.Charset;
import java.nio.file.Path;
import org.verbena.transport.ffm.Errno;
import org.verbena.transport.ffm.ErrnoException;

/**
 * What the kernel reports about a Unix socket. Java's exceptions have it as text only, in the language of the C
 * library.
 */
public final class UnixSockets {
    /** The answer to a connection that is closed at once. */
    public enum Answer {
        /** A process listens. */
        LISTENS,
        /** A process listens, and its backlog is full. */
        IS_FULL,
        /** The name is there, and nobody listens: its process has ended. */
        NOBODY,
        /** There is no such name. */
        NO_NAME
    }

    private UnixSockets() {}

    /**
     * Connects to a socket and leaves at once. Never waits.
     *
     * @param name of the socket
     * @return the kernel's answer
     * @throws IOException it has another one
     */
    public static Answer ask(Path name) throws IOException {
        int errno = SystemCalls.tryConnect(name.toString()
                .getBytes(Charset.forName(System.getProperty(
                        "sun.jnu.encoding", Charset.defaultCharset().name()))));
        return switch (errno) {
            case 0 -> Answer.LISTENS;
            case Errno.EAGAIN -> Answer.IS_FULL;
            case Errno.ECONNREFUSED -> Answer.NOBODY;
            case Errno.ENOENT -> Answer.NO_NAME;
            default -> throw new ErrnoException("connect(" + name + ")", errno);
        };
    }
}
