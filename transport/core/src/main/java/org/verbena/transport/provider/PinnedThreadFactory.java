package org.verbena.transport.provider;

import io.netty.util.concurrent.DefaultThreadFactory;
import java.util.BitSet;
import java.util.List;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.ffm.CpuAffinity;
import org.verbena.transport.ffm.Errno;

/**
 * Makes threads that each run on one processor of a list: the first thread on the first, the second on the second, and
 * so on, from the start again if there are more. For the threads of event loops that spin, so that the scheduler does
 * not move them:
 *
 * <pre>{@code
 * ProviderChoice choice = ProviderChoice.choose("auto", null);
 * new RdmaEventLoopGroup(choice, 2, new PinnedThreadFactory("verbena", List.of(2, 3)), CompletionLoopOptions.DEFAULTS);
 * }</pre>
 *
 * <p>Linux only. Any thread. Source: sched_setaffinity(2)
 */
public final class PinnedThreadFactory implements ThreadFactory {
    /** The highest number of a processor; more than any kernel is built for. */
    public static final int HIGHEST_PROCESSOR = CpuAffinity.HIGHEST_CPU;

    private final List<Integer> processors;
    private final ThreadFactory unbound;
    private final AtomicInteger made = new AtomicInteger();

    /**
     * Makes a factory, and tries each processor.
     *
     * @param name the prefix of the threads' names
     * @param processors their numbers, 0 to {@link #HIGHEST_PROCESSOR}; one or more
     * @throws IllegalArgumentException there is no such processor, or this process may not use it
     * @throws UnsupportedOperationException this is not Linux
     */
    public PinnedThreadFactory(String name, List<Integer> processors) {
        this.processors = List.copyOf(processors);
        if (this.processors.isEmpty()) {
            throw new IllegalArgumentException("no processor to run on");
        }
        for (int processor : this.processors) {
            if (processor < 0 || processor > HIGHEST_PROCESSOR) {
                throw new IllegalArgumentException(
                        "processor " + processor + " is not within 0 to " + HIGHEST_PROCESSOR);
            }
        }
        if (!System.getProperty("os.name").equals("Linux")) {
            throw new UnsupportedOperationException(
                    "binding threads to processors needs Linux, and this is " + System.getProperty("os.name"));
        }
        unbound = new DefaultThreadFactory(name);
        tryEach();
    }

    /** On a temporary thread, so that the caller's is not moved. */
    private void tryEach() {
        AtomicReference<@Nullable IllegalArgumentException> failure = new AtomicReference<>();
        Thread trial = Thread.ofPlatform().name("verbena-processors").unstarted(() -> {
            try {
                processors.forEach(PinnedThreadFactory::pin);
            } catch (IllegalArgumentException refused) {
                failure.set(refused);
            }
        });
        trial.start();
        boolean isInterrupted = false;
        while (trial.isAlive()) {
            try {
                trial.join();
            } catch (InterruptedException interrupted) {
                isInterrupted = true; // it takes no longer than a few system calls
            }
        }
        if (isInterrupted) {
            Thread.currentThread().interrupt();
        }
        IllegalArgumentException refused = failure.get();
        if (refused != null) {
            throw refused;
        }
    }

    private static void pin(int processor) {
        BitSet one = new BitSet();
        one.set(processor);
        int errno = CpuAffinity.set(one);
        if (errno != 0) {
            throw new IllegalArgumentException(
                    errno == Errno.EINVAL
                            ? "this process has no processor " + processor + " (sched_setaffinity: EINVAL)"
                            : "sched_setaffinity(processor " + processor + "): " + Errno.describe(errno));
        }
    }

    /**
     * Makes a thread.
     *
     * @param task what it runs. If its processor is gone by then, the thread fails with IllegalArgumentException and
     *     the task does not run
     * @return not started
     */
    @Override
    public Thread newThread(Runnable task) {
        int processor = processors.get(Math.floorMod(made.getAndIncrement(), processors.size()));
        return unbound.newThread(() -> {
            pin(processor);
            task.run();
        });
    }
}
