package org.verbena.tools.interop.pingpong;

import org.verbena.cm.QueuePairPath;
import org.verbena.tools.interop.pingpong.PingPong.Kind;

/**
 * What a {@link PingPongSession} is to do.
 *
 * @param kind of the queue pairs
 * @param path over which path
 * @param sizeBytes of a message
 * @param queuePairs how many
 * @param receiveDepth receives to keep posted
 * @param count messages each way, of all queue pairs together
 * @param events whether to sleep until completions arrive
 * @param validating whether the server checks what it received
 * @param features further features to use
 */
record PingPongPlan(
        Kind kind,
        QueuePairPath path,
        int sizeBytes,
        int queuePairs,
        int receiveDepth,
        int count,
        boolean events,
        boolean validating,
        PingPongFeatures features) {

    PingPongPlan withQueuePairs(int number) {
        return new PingPongPlan(kind, path, sizeBytes, number, receiveDepth, count, events, validating, features);
    }
}
