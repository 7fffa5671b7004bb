package org.verbena.grpc.internal.wire;

/**
 * What an end announces in its first frame.
 *
 * @param lowestVersion of the wire that it speaks
 * @param highestVersion of the wire that it speaks
 * @param streamWindowBytes how much DATA each of the peer's calls may send before it gets WINDOW
 * @param maxStreams how many calls the peer may have open at once
 */
public record Settings(int lowestVersion, int highestVersion, int streamWindowBytes, int maxStreams) {}
