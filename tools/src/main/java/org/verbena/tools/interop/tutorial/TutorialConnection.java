package org.verbena.tools.interop.tutorial;

import java.io.PrintWriter;
import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.verbena.cm.CmId;
import org.verbena.samples.command.CommandFailure;
import org.verbena.verbs.MemoryRegion;
import org.verbena.verbs.NativeRdmaException;
import org.verbena.verbs.QueuePair;
import org.verbena.verbs.QueuePairAttributes;
import org.verbena.verbs.WorkCompletions;
import org.verbena.verbs.memory.AccessFlag;
import org.verbena.verbs.queue.QueuePairState;
import org.verbena.verbs.work.CompletionStatus;
import org.verbena.verbs.work.SendFlags;

/**
 * One connection, of either side: its queue pair, a buffer to receive into and one to send from. The event thread
 * makes, uses and ends it; the completion thread calls {@link #onCompletion}. State that both use is guarded by the
 * object's own lock.
 */
final class TutorialConnection implements AutoCloseable {
    /** The size of a message and of each buffer; the text is a C string. */
    static final int BUFFER_BYTES = 1024;

    /** An exchange is complete after one message sent and one received. */
    private static final int COMPLETIONS = 2;

    /** How long a queue pair in its error state may take to return its work; it needs milliseconds. */
    private static final long FLUSH_NANOS = 5_000_000_000L;

    private static final long RECEIVE_ID = 1;
    private static final long SEND_ID = 2;

    private final CmId id;
    private final QueuePair queuePair;
    private final boolean active;
    private final PrintWriter out;
    private final Arena arena = Arena.ofShared();
    private final MemoryRegion received;
    private final MemoryRegion sent;

    /** Posted and not completed: the device may use the buffers. */
    private int outstanding;

    private int completions;
    private @Nullable String failure;

    /**
     * Registers the buffers.
     *
     * @param queuePair of the id; the connection closes both
     * @param active whether this side connects, and so disconnects
     */
    TutorialConnection(CmId id, QueuePair queuePair, boolean active, PrintWriter out) {
        this.id = id;
        this.queuePair = queuePair;
        this.active = active;
        this.out = out;
        MemoryRegion first = null;
        try {
            first = register(AccessFlag.LOCAL_WRITE);
            sent = register();
        } catch (RuntimeException refused) {
            if (first != null) {
                first.close();
            }
            queuePair.close();
            arena.close();
            throw refused;
        }
        received = first;
    }

    private MemoryRegion register(AccessFlag... access) {
        return queuePair.domain().registerMemory(arena.allocate(BUFFER_BYTES), Set.of(access));
    }

    /** Called before connecting or accepting: the receive must be posted before the peer's message arrives. */
    synchronized void postReceive() {
        queuePair
                .receiveQueue()
                .receive(RECEIVE_ID)
                .sge(received, 0, BUFFER_BYTES)
                .flush();
        outstanding++;
    }

    synchronized void send(String text) {
        sent.segment().setString(0, text, StandardCharsets.UTF_8);
        queuePair
                .sendQueue()
                .send(SEND_ID, SendFlags.SIGNALED)
                .sge(sent, 0, BUFFER_BYTES)
                .flush();
        outstanding++;
    }

    /** On the completion thread. */
    synchronized void onCompletion(WorkCompletions polled, int i) {
        outstanding--;
        notifyAll();
        if (!polled.isSuccess(i)) {
            // Flushes follow a cause: an error before them, or the end of the connection.
            if (polled.status(i) != CompletionStatus.WR_FLUSH_ERR) {
                failure = polled.describe(i);
                disconnect();
            }
            return;
        }
        print(
                polled.isReceive(i)
                        ? "received message: " + text(polled.lengthBytes(i))
                        : "send completed successfully.");
        completions++;
        if (completions == COMPLETIONS && active) {
            disconnect();
        }
    }

    private void disconnect() {
        try {
            id.disconnect();
        } catch (NativeRdmaException peerWasFirst) {
            print("the connection is over already.");
        }
    }

    /** The text up to the first zero byte, which a peer might not have sent. */
    private String text(int lengthBytes) {
        byte[] bytes = received.segment()
                .asSlice(0, Math.min(lengthBytes, BUFFER_BYTES))
                .toArray(ValueLayout.JAVA_BYTE);
        int length = 0;
        while (length < bytes.length && bytes[length] != 0) {
            length++;
        }
        return new String(Arrays.copyOf(bytes, length), StandardCharsets.UTF_8);
    }

    /**
     * Waits for the posted work, after the connection has ended.
     *
     * @throws CommandFailure if the exchange was not complete by then
     */
    synchronized void finish() throws InterruptedException {
        if (outstanding > 0) {
            queuePair.modify(QueuePairAttributes.to(QueuePairState.ERR).build());
        }
        long deadline = System.nanoTime() + FLUSH_NANOS;
        for (long left = FLUSH_NANOS; outstanding > 0 && left > 0; left = deadline - System.nanoTime()) {
            wait(TimeUnit.NANOSECONDS.toMillis(left) + 1);
        }
        if (completions < COMPLETIONS) {
            throw new CommandFailure(
                    failure != null ? failure : "the connection ended before a message had gone each way");
        }
    }

    private void print(String line) {
        out.println(line);
        out.flush();
    }

    /** Closes everything: the queue pair before its memory. */
    @Override
    public void close() {
        queuePair.close();
        received.close();
        sent.close();
        arena.close();
        id.close();
    }
}
