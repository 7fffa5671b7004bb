package org.verbena.transport.system;

import java.io.IOException;
import java.nio.channels.Selector;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.HashSet;
import java.util.Set;
import org.verbena.transport.ffm.IoUring;

/**
 * Finds the epoll descriptor of a selector of the JDK, so that a loop can wait for it with others. The JDK names it
 * nowhere, so it is recognised by what it does: of the process's epoll descriptors it is the one that is readable after
 * each {@link Selector#wakeup()}, and not after each {@link Selector#selectNow()}.
 */
public final class SelectorDescriptor {
    private static final Path DESCRIPTORS = Path.of("/proc/self/fd");
    private static final String EPOLL = "anon_inode:[eventpoll]";

    /** The descriptor of another loop, which comes and goes as that one works, is not in step for so long. */
    private static final int ROUNDS = 32;

    private SelectorDescriptor() {}

    /**
     * Finds the descriptor.
     *
     * @param selector that nobody else uses yet; none of its channels is ready
     * @return the descriptor, which belongs to the selector
     * @throws IOException {@code /proc} cannot be read, or the JDK's selector is not made of epoll
     */
    public static synchronized int of(Selector selector) throws IOException { // two searches would be in step
        Set<Integer> left = epollDescriptors();
        for (int round = 0; round < ROUNDS; round++) {
            selector.wakeup();
            left.removeIf(candidate -> !IoUring.isReadable(candidate));
            selector.selectNow();
            left.removeIf(IoUring::isReadable);
        }
        if (left.size() != 1) {
            throw new IOException(left.size() + " descriptors in " + DESCRIPTORS + " behave as that of " + selector);
        }
        return left.iterator().next();
    }

    private static Set<Integer> epollDescriptors() throws IOException {
        Set<Integer> found = new HashSet<>();
        try (DirectoryStream<Path> descriptors = Files.newDirectoryStream(DESCRIPTORS)) {
            for (Path descriptor : descriptors) {
                try {
                    if (Files.readSymbolicLink(descriptor).toString().equals(EPOLL)) {
                        found.add(Integer.valueOf(descriptor.getFileName().toString()));
                    }
                } catch (NoSuchFileException closed) {
                    // The descriptor belongs to another thread, or to the directory listing itself.
                }
            }
        }
        return found;
    }
}
