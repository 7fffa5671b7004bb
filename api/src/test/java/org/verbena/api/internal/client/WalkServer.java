package org.verbena.api.internal.client;

import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.RequestException;

/** A server of {@link ClientWalkTest}, which remembers what it has begun. */
final class WalkServer {
    static final int WELL = 0;
    private static final int BUSY = 1;
    private static final int REFUSES = 2;
    private static final int FAILS = 3;
    private static final int SILENT = 4;
    private static final int LEAVES = 5;
    private static final int SLOW = 6;
    static final int MOODS = 10; // the others are as WELL

    private static final long MILLI = TimeUnit.MILLISECONDS.toNanos(1);

    final InetSocketAddress address;
    private final StepClock clock;
    private final Random random;
    private final Map<Long, Integer> begun = new HashMap<>();
    boolean isUp;
    int mood;

    /** How many operations its connections could not begin, and their client has taken back. */
    int moved;

    WalkServer(InetSocketAddress address, StepClock clock, Random random) {
        this.address = address;
        this.clock = clock;
        this.random = random;
    }

    /** How often it has begun a call. */
    int begun(long number) {
        return begun.getOrDefault(number, 0);
    }

    void begin(long number) {
        begun.merge(number, 1, Integer::sum);
    }

    /** A request was sent, and arrives some time later. */
    void send(WalkTransport.Request<?> request) {
        long delayNanos = mood == SLOW ? random.nextLong(2000 * MILLI) : random.nextLong(5 * MILLI);
        clock.schedule(() -> arrived(request), delayNanos);
    }

    private void arrived(WalkTransport.Request<?> request) {
        if (!request.isThere() && random.nextBoolean()) {
            return; // it was lost with its connection
        }
        switch (mood) {
            case BUSY ->
                request.fail(new RequestException.Overloaded("busy", Duration.ofNanos(random.nextLong(20 * MILLI))));
            case REFUSES ->
                request.fail(new RequestException.Refused("unknown", RequestException.Refused.Reason.UNKNOWN));
            case FAILS -> {
                begin(request.number());
                request.fail(new RequestException.Failed("failed"));
            }
            case SILENT -> {
                if (random.nextBoolean()) {
                    begin(request.number());
                }
                request.isSilent = true;
            }
            case LEAVES -> {
                request.transport().serverLeaves(0);
                request.fail(new ConnectionException.Unavailable("the server is leaving, and has not begun with it"));
            }
            default -> {
                begin(request.number());
                clock.schedule(request::reply, random.nextLong(5 * MILLI));
            }
        }
    }
}
