package org.verbena.tools.interop.tutorial;

import java.io.PrintWriter;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;
import org.verbena.cm.CmEvent;
import org.verbena.cm.CmId;
import org.verbena.cm.EventChannel;
import org.verbena.samples.command.CommandFailure;
import org.verbena.verbs.CompletionChannel;
import org.verbena.verbs.CompletionQueue;
import org.verbena.verbs.Context;
import org.verbena.verbs.ProtectionDomain;
import org.verbena.verbs.QueuePair;
import org.verbena.verbs.QueuePairCapabilities;
import org.verbena.verbs.QueuePairOptions;
import org.verbena.verbs.WorkCompletions;

/**
 * The objects that the connections of a process share, made for the device of the first: protection domain, completion
 * channel, completion queue, and a thread that sleeps on the channel and takes completions.
 */
final class TutorialContext implements AutoCloseable {
    /** The depth of each queue; a connection has one receive and one send. */
    private static final int QUEUE_WRS = 10;

    /** How long either thread sleeps before it checks whether it is to end. */
    private static final int SLEEP_MILLIS = 250;

    private static final Duration SLEEP = Duration.ofMillis(SLEEP_MILLIS);

    private final int maxConnections;
    private final boolean active;
    private final PrintWriter out;

    /** By the number of the queue pair, which every completion has. Written by the event thread, read by both. */
    private final Map<Integer, TutorialConnection> connections = new ConcurrentHashMap<>();

    private @Nullable Shared shared;

    /** Why the completion thread ended; that thread writes it, the other reads it. */
    private volatile @Nullable RuntimeException failure;

    private volatile boolean ending;

    private record Shared(
            Context device,
            ProtectionDomain domain,
            CompletionQueue completions,
            Deque<AutoCloseable> lastMadeFirst,
            Thread poller) {}

    /**
     * Allocates nothing yet.
     *
     * @param maxConnections at a time: the completion queue has room for the work of this many
     * @param active whether this side connects
     * @param out where connections print
     */
    TutorialContext(int maxConnections, boolean active, PrintWriter out) {
        this.maxConnections = maxConnections;
        this.active = active;
        this.out = out;
    }

    boolean isFull() {
        return connections.size() == maxConnections;
    }

    /** Makes the queue pair of an id that has a device, and posts its receive. */
    TutorialConnection connection(CmId id) {
        Context device = Objects.requireNonNull(id.device(), "the id is not bound to a device");
        Shared own = shared == null ? share(device) : shared;
        if (own.device() != device) {
            throw new CommandFailure("a connection on " + device.device().name() + ", but the others are on "
                    + own.device().device().name() + ": listen on the address of one device");
        }
        QueuePair queuePair = id.createQueuePair(
                own.domain(),
                QueuePairOptions.reliable(own.completions(), new QueuePairCapabilities(QUEUE_WRS, QUEUE_WRS, 1, 1, 0)));
        TutorialConnection made = new TutorialConnection(id, queuePair, active, out);
        connections.put(queuePair.number(), made);
        id.attach(made);
        made.postReceive();
        return made;
    }

    private Shared share(Context device) {
        Deque<AutoCloseable> made = new ArrayDeque<>();
        try {
            ProtectionDomain domain = device.allocateProtectionDomain();
            made.push(domain);
            CompletionChannel channel = device.createCompletionChannel();
            made.push(channel);
            CompletionQueue completions = device.createCompletionQueue(maxConnections * 2, channel, 0);
            made.push(completions);
            completions.requestNotify(false);
            Thread poller = Thread.ofPlatform().name("completions").start(() -> takeCompletions(channel));
            shared = new Shared(device, domain, completions, made, poller);
            return shared;
        } catch (RuntimeException refused) {
            closeAll(made);
            throw refused;
        }
    }

    private static void closeAll(Deque<AutoCloseable> lastMadeFirst) {
        while (!lastMadeFirst.isEmpty()) {
            try {
                lastMadeFirst.pop().close();
            } catch (Exception refused) {
                throw new CommandFailure("close", refused);
            }
        }
    }

    /** The completion thread: sleeps until there are completions, arms for the next, then takes all of them. */
    private void takeCompletions(CompletionChannel channel) {
        try (WorkCompletions polled = new WorkCompletions(QUEUE_WRS)) {
            while (!ending) {
                CompletionQueue queue = channel.awaitEvent(SLEEP);
                if (queue == null) {
                    continue;
                }
                queue.requestNotify(false);
                while (queue.poll(polled) > 0) {
                    for (int i = 0; i < polled.count(); i++) {
                        TutorialConnection connection = connections.get(polled.queuePairNumber(i));
                        if (connection != null) {
                            connection.onCompletion(polled, i);
                        }
                    }
                }
            }
        } catch (RuntimeException broken) {
            failure = broken;
        }
    }

    /** Waits for the next event, as long as it takes. */
    CmEvent nextEvent(EventChannel events) {
        while (true) {
            CmEvent event = events.get(SLEEP_MILLIS);
            if (event != null) {
                return event;
            }
            RuntimeException broken = failure;
            if (broken != null) {
                throw broken;
            }
            if (Thread.interrupted()) {
                throw new CommandFailure("interrupted while waiting for an event");
            }
        }
    }

    /**
     * Waits for the rest of an ended connection's work, and closes it.
     *
     * @throws CommandFailure if it ended before a message had gone each way
     */
    void end(TutorialConnection connection) throws InterruptedException {
        try {
            connection.finish();
        } finally {
            close(connection);
        }
    }

    /** Closes a connection, even with work posted. */
    void close(TutorialConnection connection) {
        connections.values().remove(connection);
        connection.close();
    }

    /** Ends the thread, then closes what it and the connections used. */
    @Override
    public void close() {
        Shared own = shared;
        if (own == null) {
            return;
        }
        ending = true;
        boolean interrupted = false;
        while (own.poller().isAlive()) {
            try {
                own.poller().join();
            } catch (InterruptedException again) {
                interrupted = true;
            }
        }
        new ArrayList<>(connections.values()).forEach(this::close);
        closeAll(own.lastMadeFirst());
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
    }
}
