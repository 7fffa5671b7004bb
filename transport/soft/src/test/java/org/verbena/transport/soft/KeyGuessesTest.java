package org.verbena.transport.soft;

import static org.assertj.core.api.Assertions.assertThat;

import java.net.InetAddress;
import java.net.UnknownHostException;
import org.junit.jupiter.api.Test;

/** Peers that try keys are slowed down, by address; the test controls the time. */
class KeyGuessesTest {
    private static final long SECOND = 1_000_000_000L;

    private final KeyGuesses guesses = new KeyGuesses(4, 2 * SECOND);

    private static InetAddress address(String text) {
        try {
            return InetAddress.getByName(text);
        } catch (UnknownHostException e) {
            throw new IllegalArgumentException(e);
        }
    }

    @Test
    void leavesTheFirstOnesAlone() {
        InetAddress one = address("192.0.2.1");
        for (int i = 0; i < KeyGuesses.FREE; i++) {
            guesses.refused(one, 0);
            assertThat(guesses.waitNanos(one, 0)).isZero();
        }
        guesses.refused(one, 0);
        assertThat(guesses.waitNanos(one, 0)).isEqualTo(SECOND / 4);
        assertThat(guesses.waitNanos(address("192.0.2.2"), 0))
                .as("another address")
                .isZero();
    }

    @Test
    void letsOneThroughAtATime() {
        InetAddress one = address("192.0.2.1");
        for (int i = 0; i < KeyGuesses.FREE; i++) {
            guesses.refused(one, 0);
        }
        guesses.refused(one, 0);
        for (int i = 1; i <= 8; i++) {
            assertThat(guesses.waitNanos(one, 0)).isEqualTo(i * SECOND / 4);
        }
        assertThat(guesses.waitNanos(one, 0)).as("longer than anybody waits").isEqualTo(-1);
        assertThat(guesses.waitNanos(one, SECOND)).as("a second later").isEqualTo(2 * SECOND - 3 * SECOND / 4);
    }

    @Test
    void neverLetsGuessesThroughFasterThanItSays() {
        InetAddress one = address("192.0.2.1");
        int tried = 0;
        long[] ready = new long[100_000];
        int waiting = 0;
        long end = 100 * SECOND;
        // A rejected peer comes back at once, and names a wrong key as soon as it may.
        for (long now = 0; now < end; now += SECOND / 1000) {
            long wait = guesses.waitNanos(one, now);
            if (wait >= 0) {
                ready[waiting++] = now + wait;
            }
            for (int i = 0; i < waiting; i++) {
                if (ready[i] <= now) {
                    guesses.refused(one, now);
                    tried++;
                    ready[i--] = ready[--waiting];
                }
            }
        }
        assertThat(tried).isBetween(KeyGuesses.FREE, KeyGuesses.FREE + 100 * 4 + 10);
    }

    @Test
    void forgets() {
        InetAddress one = address("192.0.2.1");
        for (int i = 0; i < 1_000; i++) {
            guesses.refused(one, 0);
        }
        assertThat(guesses.waitNanos(one, 0)).isEqualTo(-1);
        assertThat(guesses.waitNanos(one, 19 * SECOND)).isZero();
        guesses.refused(one, 40 * SECOND);
        assertThat(guesses.waitNanos(one, 40 * SECOND)).isZero();
    }

    @Test
    void countsAnIpv6HostByItsNetwork() {
        for (int i = 0; i < 2 * KeyGuesses.FREE; i++) {
            guesses.refused(address("2001:db8:0:1::" + Integer.toHexString(i)), 0);
        }
        assertThat(guesses.waitNanos(address("2001:db8:0:1:ffff::1"), 0)).isNotZero();
        assertThat(guesses.waitNanos(address("2001:db8:0:2::1"), 0)).isZero();
    }

    @Test
    void remembersNoMoreThanItsLimit() {
        for (int i = 0; i < 4 * KeyGuesses.MAX_ADDRESSES; i++) {
            guesses.refused(address("10." + (i >> 16) + "." + (i >> 8 & 0xff) + "." + (i & 0xff)), 0);
        }
        assertThat(guesses.addresses()).isEqualTo(KeyGuesses.MAX_ADDRESSES);
    }

    @Test
    void canBeSwitchedOff() {
        KeyGuesses off = new KeyGuesses(0, SECOND);
        InetAddress one = address("192.0.2.1");
        for (int i = 0; i < 1_000; i++) {
            off.refused(one, 0);
        }
        assertThat(off.waitNanos(one, 0)).isZero();
    }
}
