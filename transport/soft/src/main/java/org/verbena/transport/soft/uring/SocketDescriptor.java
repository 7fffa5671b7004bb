package org.verbena.transport.soft.uring;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.net.SocketOption;
import java.nio.channels.SocketChannel;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.BitSet;
import java.util.concurrent.ThreadLocalRandom;
import jdk.net.ExtendedSocketOptions;
import org.verbena.transport.ffm.Errno;
import org.verbena.transport.ffm.IoUring;

/**
 * Finds the descriptor of a socket of the JDK, which names it nowhere: it is the one whose options change when the
 * socket's do. Random keepalive times are set through the JDK, twice, and looked for with getsockopt(2); the times that
 * were there come back. A descriptor is a number of the channel only until the channel is closed.
 */
final class SocketDescriptor {
    private static final Path DESCRIPTORS = Path.of("/proc/self/fd");

    /** Descriptors that are tried on either side of the last that was found: the system gives the lowest free one. */
    private static final int NEAR = 64;

    /** The longest time that an option takes, in seconds. Source: tcp(7) */
    private static final int MOST_SECONDS = 32767;

    /** Those that were found and not given up: no other channel has them. Guarded by itself. */
    private static final BitSet KNOWN = new BitSet();

    private static int last; // guarded by KNOWN

    private SocketDescriptor() {}

    /**
     * Finds it.
     *
     * @param channel open, and used by no other thread meanwhile
     * @return its descriptor; {@link #forget} follows
     * @throws IOException it is not to be found
     */
    static int of(SocketChannel channel) throws IOException {
        int idle = channel.getOption(ExtendedSocketOptions.TCP_KEEPIDLE);
        int interval = channel.getOption(ExtendedSocketOptions.TCP_KEEPINTERVAL);
        try (Arena arena = Arena.ofConfined()) {
            Search search = new Search(channel, Errno.newCapture(arena), arena.allocate(8, 4));
            int found = search.find();
            synchronized (KNOWN) {
                KNOWN.set(found);
                last = found;
            }
            return found;
        } finally {
            channel.setOption(ExtendedSocketOptions.TCP_KEEPIDLE, idle);
            channel.setOption(ExtendedSocketOptions.TCP_KEEPINTERVAL, interval);
        }
    }

    /** The channel is going to be closed. */
    static void forget(int descriptor) {
        synchronized (KNOWN) {
            KNOWN.clear(descriptor);
        }
    }

    private static int nextUnknown(int from) {
        synchronized (KNOWN) {
            return KNOWN.nextClearBit(from);
        }
    }

    private static boolean isKnown(int descriptor) {
        synchronized (KNOWN) {
            return KNOWN.get(descriptor);
        }
    }

    private static final class Search {
        private final SocketChannel channel;
        private final MemorySegment errno;
        private final MemorySegment scratch;
        private int idle;
        private int interval;

        Search(SocketChannel channel, MemorySegment errno, MemorySegment scratch) {
            this.channel = channel;
            this.errno = errno;
            this.scratch = scratch;
        }

        int find() throws IOException {
            mark();
            int near;
            int end;
            synchronized (KNOWN) {
                near = last;
                end = KNOWN.length() + NEAR;
            }
            for (int i = 0; i <= NEAR; i++) {
                if (isIt(near + i)) {
                    return near + i;
                }
                if (isIt(near - i)) {
                    return near - i;
                }
            }
            // It may be one that was free among those that are known, of which a list would have all.
            for (int i = nextUnknown(0); i < end; i = nextUnknown(i + 1)) {
                if (isIt(i)) {
                    return i;
                }
            }
            try (DirectoryStream<Path> all = Files.newDirectoryStream(DESCRIPTORS)) {
                for (Path path : all) {
                    int descriptor = Integer.parseInt(path.getFileName().toString());
                    if (isIt(descriptor)) {
                        return descriptor;
                    }
                }
            }
            throw new IOException("the descriptor of " + channel + " is not in " + DESCRIPTORS);
        }

        private boolean isIt(int descriptor) throws IOException {
            if (descriptor < 0 || isKnown(descriptor) || !isMarked(descriptor)) {
                return false;
            }
            mark(); // another socket may have had these times by chance
            return isMarked(descriptor);
        }

        private void mark() throws IOException {
            idle = other(ExtendedSocketOptions.TCP_KEEPIDLE, idle);
            interval = other(ExtendedSocketOptions.TCP_KEEPINTERVAL, interval);
        }

        private int other(SocketOption<Integer> option, int before) throws IOException {
            int value;
            do {
                value = ThreadLocalRandom.current().nextInt(1, MOST_SECONDS + 1);
            } while (value == before);
            channel.setOption(option, value);
            return value;
        }

        private boolean isMarked(int descriptor) {
            return IoUring.tcpOption(errno, descriptor, IoUring.TCP_KEEPINTVL, scratch) == interval
                    && IoUring.tcpOption(errno, descriptor, IoUring.TCP_KEEPIDLE, scratch) == idle;
        }
    }
}
