package org.verbena.transport.spi;

import java.nio.ByteBuffer;
import java.security.GeneralSecurityException;
import java.security.SecureRandom;
import java.util.Arrays;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;
import org.jspecify.annotations.Nullable;

/**
 * Bits that nobody can guess, for keys and nonces that loops draw. The system may take its time for random bits, and
 * loading its generator does. So it is asked once, for a key, by {@link #prepare} on a thread that may wait; what loops
 * draw is computed from that: HMAC-SHA-256 of a counter. Any thread.
 *
 * <p>Source: NIST SP 800-108, 4.1.
 */
public final class Secrets {
    private static final String ALGORITHM = "HmacSHA256";
    private static final int KEY_BYTES = 32;

    // Guarded by the class.
    private static @Nullable Mac mac;
    private static long counter;
    private static byte[] drawn = {};
    private static int used;

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
    public static synchronized void nextBytes(byte[] into) {
        for (int at = 0; at < into.length; ) {
            if (used == drawn.length) {
                drawn = keyed().doFinal(ByteBuffer.allocate(Long.BYTES)
                        .putLong(counter++)
                        .array());
                used = 0;
            }
            int bytes = Math.min(into.length - at, drawn.length - used);
            System.arraycopy(drawn, used, into, at, bytes);
            Arrays.fill(drawn, used, used + bytes, (byte) 0);
            used += bytes;
            at += bytes;
        }
    }

    /**
     * Draws a number.
     *
     * @return any
     */
    public static long nextLong() {
        byte[] bytes = new byte[Long.BYTES];
        nextBytes(bytes);
        return ByteBuffer.wrap(bytes).getLong();
    }

    private static Mac keyed() {
        Mac known = mac;
        if (known == null) {
            byte[] key = new byte[KEY_BYTES];
            new SecureRandom().nextBytes(key);
            try {
                known = Mac.getInstance(ALGORITHM);
                known.init(new SecretKeySpec(key, ALGORITHM));
            } catch (GeneralSecurityException missing) {
                throw new IllegalStateException("every JVM has " + ALGORITHM, missing);
            }
            mac = known;
        }
        return known;
    }
}
