package org.verbena.api.datagram;

import org.verbena.api.internal.datagram.DatagramCounters;

/**
 * The counters of an {@link RdmaDatagramChannel} since it was opened. Datagrams that the network lost, or that arrived
 * while no receive was posted, are not counted: devices do not count them for each queue pair.
 *
 * @param sent datagrams that have left
 * @param sentBytes their bytes
 * @param failed writes that failed
 * @param received datagrams that arrived and were not dropped
 * @param receivedBytes their bytes
 * @param malformed datagrams that were dropped because their header names no sender
 * @param filtered datagrams that were dropped because they are not from the peer that the channel is connected to, or
 *     are from a source that its group's filters exclude
 * @param starved how often there was no memory for a receive, so that datagrams were lost
 */
public record DatagramStatistics(
        long sent,
        long sentBytes,
        long failed,
        long received,
        long receivedBytes,
        long malformed,
        long filtered,
        long starved) {

    static DatagramStatistics of(DatagramCounters counters) {
        return new DatagramStatistics(
                counters.get(DatagramCounters.SENT),
                counters.get(DatagramCounters.SENT_BYTES),
                counters.get(DatagramCounters.FAILED),
                counters.get(DatagramCounters.RECEIVED),
                counters.get(DatagramCounters.RECEIVED_BYTES),
                counters.get(DatagramCounters.MALFORMED),
                counters.get(DatagramCounters.FILTERED),
                counters.get(DatagramCounters.STARVED));
    }
}
