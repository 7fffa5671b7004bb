package org.verbena.transport.protocol.state;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.function.LongUnaryOperator;
import org.verbena.transport.MessageStatistics;
import org.verbena.transport.protocol.wire.Credits;

/**
 * The counters and current figures of one connection. Its loop writes them; any thread may read them, with a slight
 * delay. Writing costs a plain store.
 */
public final class ConnectionCounters {
    private static final VarHandle ELEMENT = MethodHandles.arrayElementVarHandle(long[].class);

    private static final int MESSAGES_SENT = 0;
    private static final int BYTES_SENT = 1;
    private static final int MESSAGES_RECEIVED = 2;
    private static final int BYTES_RECEIVED = 3;
    private static final int FRAMES_SENT = 4;
    private static final int FRAMES_RECEIVED = 5;
    private static final int CONTROL_FRAMES_SENT = 6;
    private static final int RENDEZVOUS_SENT = 7;
    private static final int RENDEZVOUS_RECEIVED = 8;
    private static final int COPIED_BYTES = 9;
    private static final int REGISTRATIONS = 10;
    private static final int ONE_SIDED_OPERATIONS = 11;
    private static final int CREDIT_STALLS = 12;
    private static final int CREDIT_STALL_NANOS = 13;
    private static final int SLOT_STALLS = 14;
    private static final int MEMORY_STALLS = 15;
    private static final int TRANSFER_STALLS = 16;
    private static final int RECEIVE_QUEUE_LOW = 17;
    private static final int CREDITS = 18;
    private static final int CREDITS_GRANTED = 19;
    private static final int QUEUED_BYTES = 20;
    private static final int COUNT = 21;

    /** Not a counter, and not in {@link MessageStatistics}: when the stall in progress began, or 0. */
    private static final int STALLED_SINCE = COUNT;

    private final long[] values = new long[COUNT + 1];
    private final Credits credits;
    private volatile LongUnaryOperator queue = LongUnaryOperator.identity();
    /** Written by the loop, read by any thread: nothing is granted any more. */
    private volatile boolean over;

    public ConnectionCounters(Credits credits) {
        this.credits = credits;
    }

    private void add(int counter, long amount) {
        ELEMENT.setOpaque(values, counter, values[counter] + amount);
    }

    private long get(int counter) {
        return (long) ELEMENT.getOpaque(values, counter);
    }

    public void messagesSent(int messages, int bytes) {
        add(MESSAGES_SENT, messages);
        add(BYTES_SENT, bytes);
    }

    public void messageReceived(int bytes) {
        add(MESSAGES_RECEIVED, 1);
        add(BYTES_RECEIVED, bytes);
    }

    public void frameSent() {
        add(FRAMES_SENT, 1);
    }

    public void frameReceived() {
        add(FRAMES_RECEIVED, 1);
    }

    public void controlFrameSent() {
        add(CONTROL_FRAMES_SENT, 1);
    }

    public void rendezvousSent() {
        add(RENDEZVOUS_SENT, 1);
    }

    public void rendezvousReceived() {
        add(RENDEZVOUS_RECEIVED, 1);
    }

    public void copied(int bytes) {
        add(COPIED_BYTES, bytes);
    }

    public void registered() {
        add(REGISTRATIONS, 1);
    }

    public void oneSidedDone() {
        add(ONE_SIDED_OPERATIONS, 1);
    }

    public void creditStallBegan(long nowNanos) {
        add(CREDIT_STALLS, 1);
        ELEMENT.setOpaque(values, STALLED_SINCE, nowNanos == 0 ? 1 : nowNanos);
    }

    public void creditStallEnded(long nanos) {
        add(CREDIT_STALL_NANOS, nanos);
        ELEMENT.setOpaque(values, STALLED_SINCE, 0L);
    }

    public void slotStallBegan() {
        add(SLOT_STALLS, 1);
    }

    public void memoryStallBegan() {
        add(MEMORY_STALLS, 1);
    }

    public void transferStallBegan() {
        add(TRANSFER_STALLS, 1);
    }

    public void receiveQueueLow() {
        add(RECEIVE_QUEUE_LOW, 1);
    }

    /** The connection has ended. */
    public void over() {
        over = true;
    }

    /** A current figure, not a total. */
    public void queued(long queuedBytes) {
        ELEMENT.setOpaque(values, QUEUED_BYTES, queuedBytes);
    }

    /** What is queued above the connection counts as well: gets the bytes queued here, returns all. Any thread. */
    public void queue(LongUnaryOperator all) {
        queue = all;
    }

    /** In the order of {@link MessageStatistics}. Returns when the stall in progress began, or 0. */
    public long copyTo(long[] into) {
        for (int i = 0; i < COUNT; i++) {
            into[i] = get(i);
        }
        if (!over) { // as they are now: no message has to note them
            into[CREDITS] = Math.max(0, credits.available());
            into[CREDITS_GRANTED] = credits.outstandingGrant();
        }
        into[QUEUED_BYTES] = queue.applyAsLong(into[QUEUED_BYTES]);
        return get(STALLED_SINCE);
    }

    public MessageStatistics snapshot() {
        long[] all = new long[COUNT];
        copyTo(all);
        return MessageStatistics.of(all);
    }
}
