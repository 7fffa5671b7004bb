package org.verbena.transport.soft;

import org.verbena.transport.software.SoftwareDomain;

/**
 * The parts that all listeners and endpoints of a provider share.
 *
 * @param options how it behaves
 * @param domain the keys
 * @param guesses slows down peers that guess keys
 * @param incidents logs what goes wrong
 */
record SoftContext(SoftOptions options, SoftwareDomain domain, KeyGuesses guesses, PeerErrorLog incidents) {

    /**
     * Creates the parts of a new provider.
     *
     * @param options how it behaves
     * @return with an empty domain
     */
    static SoftContext of(SoftOptions options) {
        // Half of the time for a handshake, so that the other half is left after the wait.
        long maxWaitNanos = options.handshakeTimeoutMillis() * 500_000L;
        return new SoftContext(
                options,
                new SoftwareDomain(),
                new KeyGuesses(options.wrongKeysPerSecond(), maxWaitNanos),
                new PeerErrorLog());
    }
}
