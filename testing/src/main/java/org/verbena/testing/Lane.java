package org.verbena.testing;

import java.util.ArrayDeque;
import org.jspecify.annotations.Nullable;

/** What is on its way from one end of a connection to the other, in order. Any thread. */
final class Lane {
    /** What may be under way, before the sender waits: about as much as a socket's buffers hold. */
    private static final int MAX = 256;

    private static final long MAX_BYTES = 4 << 20;

    private final InProcessEndpoint sender;
    private final InProcessEndpoint receiver;

    // All of it guarded by this.
    private final ArrayDeque<Delivery> underWay = new ArrayDeque<>();
    private long bytes;

    /** A task of the receiver's will take what is here. */
    private boolean scheduled;

    private boolean senderWaits;

    /** Nothing more is sent. */
    private boolean ended;

    private boolean silent;
    private int heldBack;

    Lane(InProcessEndpoint sender, InProcessEndpoint receiver) {
        this.sender = sender;
        this.receiver = receiver;
    }

    /** Whether more may be sent; if not, the sender is called when it may. */
    synchronized boolean hasRoom() {
        boolean room = underWay.size() < MAX && bytes < MAX_BYTES;
        senderWaits |= !room;
        return room;
    }

    /** Sends, also beyond the bounds. */
    void send(Delivery delivery) {
        synchronized (this) {
            if (ended) {
                return;
            }
            ended = delivery.isEnd();
            underWay.add(delivery);
            bytes += delivery.bytes().length;
        }
        schedule();
    }

    /** Something has come, or may arrive now. */
    private void schedule() {
        synchronized (this) {
            if (scheduled || !isDue()) {
                return;
            }
            scheduled = true;
        }
        receiver.deliver();
    }

    /** When the sender has ended there is nothing behind which the last could wait. */
    private boolean isDue() {
        return !silent && underWay.size() > (ended ? 0 : heldBack);
    }

    /** The next one that has arrived; null if there is none, and the receiver will be called when there is. */
    @Nullable Delivery next() {
        Delivery next;
        boolean wake;
        synchronized (this) {
            if (!isDue()) {
                scheduled = false;
                return null;
            }
            next = underWay.remove();
            bytes -= next.bytes().length;
            wake = senderWaits && underWay.size() <= MAX / 2 && bytes <= MAX_BYTES / 2;
            senderWaits &= !wake;
        }
        if (wake) {
            sender.roomAgain();
        }
        return next;
    }

    /** Nothing arrives any more. */
    synchronized void cut() {
        ended = true;
        underWay.clear();
        bytes = 0;
    }

    void setFaults(boolean nothingArrives, int deliveriesHeldBack) {
        synchronized (this) {
            silent = nothingArrives;
            heldBack = deliveriesHeldBack;
        }
        schedule();
    }
}
