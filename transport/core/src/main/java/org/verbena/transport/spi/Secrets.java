package org.verbena.transport.spi;

import java.security.NoSuchAlgorithmException;
import java.security.SecureRandom;
import org.jspecify.annotations.Nullable;

/**
 * Bits that nobody can guess, for keys and nonces that loops draw. The system may take its time for random bits, and
 * loading its generator does. So it is asked once, for a seed, by {@link #prepare} on a thread that may wait; what
 * loops draw comes from the JDK's generator DRBG with that seed. Any thread.
 *
 * <p>Source: NIST SP 800-90A.
 */
public final class Secrets {
    /** More than the strength of the generator, which is 256 bits at most. */
    private static final int SEED_BYTES = 64;

    /** Guarded by the class. */
    private static @Nullable SecureRandom generator;

    private Secrets() {}

    /** Asks the system, if nobody has yet. Call it on another thread before loops draw from this. */
    public static void prepare() {
        nextLong();
    }

    /**
     * Draws bits.
     *
     * @param into filled with them
     */
    public static void nextBytes(byte[] into) {
        generator().nextBytes(into);
    }

    /**
     * Draws a number.
     *
     * @return any
     */
    public static long nextLong() {
        return generator().nextLong();
    }

    private static synchronized SecureRandom generator() {
        SecureRandom known = generator;
        if (known == null) {
            byte[] seed = new byte[SEED_BYTES];
            new SecureRandom().nextBytes(seed);
            try {
                known = SecureRandom.getInstance("DRBG");
            } catch (NoSuchAlgorithmException missing) {
                throw new IllegalStateException("every JDK has DRBG", missing);
            }
            known.setSeed(seed);
            generator = known;
        }
        return known;
    }
}
