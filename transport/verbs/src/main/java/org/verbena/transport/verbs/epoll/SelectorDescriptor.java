package org.verbena.transport.verbs.epoll;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.channels.Selector;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/**
 * Finds the epoll descriptor of a JDK selector, so that another epoll instance can wait for it. The JDK names it
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
     * @param selector on the thread that selects with it; none of its channels is ready
     * @return the descriptor, which belongs to the selector
     * @throws IOException {@code /proc} cannot be read, or the JDK's selector is not made of epoll
     */
    public static int of(Selector selector) throws IOException {
        List<Integer> candidates = epollDescriptors();
        Set<Integer> left = new HashSet<>();
        try (Epoll probe = new Epoll(Math.max(1, candidates.size()))) {
            for (int candidate : candidates) {
                try {
                    probe.add(candidate, Epoll.READABLE, candidate);
                    left.add(candidate);
                } catch (UncheckedIOException closed) {
                    // It was another thread's, and is closed now.
                }
            }
            for (int round = 0; round < ROUNDS; round++) {
                selector.wakeup();
                left.retainAll(readable(probe));
                selector.selectNow();
                left.removeAll(readable(probe));
            }
        }
        if (left.size() != 1) {
            throw new IOException("of the " + candidates.size() + " epoll descriptors in " + DESCRIPTORS + ", "
                    + left.size() + " behave as that of " + selector);
        }
        return left.iterator().next();
    }

    private static List<Integer> epollDescriptors() throws IOException {
        List<Integer> found = new ArrayList<>();
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

    private static Set<Integer> readable(Epoll probe) {
        Set<Integer> readable = new HashSet<>();
        int count = probe.await(0);
        for (int i = 0; i < count; i++) {
            readable.add((int) probe.data(i));
        }
        return readable;
    }
}
