package org.verbena.transport.verbs;

import org.jspecify.annotations.Nullable;
import org.verbena.transport.WorkStatus;
import org.verbena.verbs.WorkCompletions;

/**
 * A queue pair's owner as its loop and its device see it: where completions and the device's events go. Confined to the
 * loop's thread, unless noted otherwise.
 */
interface LoopEndpoint {

    /** Receives the outcomes of work requests, in the order in which the device reports them. */
    interface Reports {
        /** A slot of the send queue was done. */
        void onSendDone(int slot);

        /** A slot of the send queue failed. */
        void onSendFailed(int slot, WorkStatus status, int vendorError);

        /** The first part of a slot of the send queue failed; the second is still to come. */
        void onFirstPartFailed(int slot, WorkStatus status, int vendorError);

        /**
         * A receive has a message.
         *
         * @param kind of {@link WorkRequestId}
         * @param slot of that kind
         * @param completions what was polled; valid during the call
         * @param i the message's place in it
         */
        void onReceiveDone(int kind, int slot, WorkCompletions completions, int i);

        /** A receive failed or was flushed. */
        void onReceiveFailed(int kind, int slot, WorkStatus status, int vendorError);
    }

    /** Where its completions go. */
    Reports reports();

    /** A completion of it arrived; returns whether it had one in this batch before. */
    boolean touch();

    /** A batch with completions of it was handled. */
    void onBatchEnd();

    /** Ends it; the first cause counts. Null in good order. */
    void drain(@Nullable Throwable failure);

    /**
     * Watches its end.
     *
     * @param now System.nanoTime()
     * @return false if there is nothing more to watch
     */
    boolean drainTick(long now);

    /** Whether its work completes on a queue. */
    boolean completesOn(LoopDevice.LoopQueue queue);

    /** The device reports that the queue pair, or all of the device, is lost. Any thread. */
    void onDeviceFailure(String what);

    /** The device is gone. Any thread. */
    void onDeviceRemoval();

    /** The device has given back all that the queue pair took of the shared receive queue. Any thread. */
    default void onLastReceiveTaken() {}

    /** A message came before the connection manager had established the connection. Any thread. */
    default void onCommunicationEstablished() {}
}
