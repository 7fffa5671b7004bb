package org.verbena.transport.stat;

/**
 * A connection that ended with an error, or did not come up.
 *
 * @param atMillis when, since 1970
 * @param local its address at the process; empty if unknown
 * @param peer the other address; empty if unknown
 * @param provider its provider
 * @param why the error
 */
public record EndedReading(long atMillis, String local, String peer, String provider, String why) {}
