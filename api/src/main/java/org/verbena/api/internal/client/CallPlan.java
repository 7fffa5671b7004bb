package org.verbena.api.internal.client;

import java.time.Duration;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.verbena.api.client.RequestOptions;

/**
 * On which connections an operation is attempted, and when again.
 *
 * @param idempotent whether it may be handled more than once
 * @param hedgeNanos after which time it is attempted a second time if it is idempotent; {@link #NO_HEDGE} for never,
 *     {@link #USUAL_HEDGE} when it takes longer than most
 * @param mostRefusals how often it is attempted again after the server was overloaded
 * @param keyed whether the server is chosen by a key
 * @param keyHash stands for that key
 */
public record CallPlan(boolean idempotent, long hedgeNanos, int mostRefusals, boolean keyed, long keyHash) {
    public static final long NO_HEDGE = -1;
    public static final long USUAL_HEDGE = 0;

    /** Once, anywhere. */
    public static final CallPlan ONCE = new CallPlan(false, NO_HEDGE, 0, false, 0);

    /** Whether it may be attempted a second time while the first attempt is under way. */
    boolean hedges() {
        return idempotent && hedgeNanos != NO_HEDGE;
    }

    /** Whether a connection that accepts it needs to know no more of it than the message. */
    boolean isPlain() {
        return !idempotent && mostRefusals == 0 && !keyed;
    }

    /** This one, for what may be begun once only. */
    CallPlan once() {
        return new CallPlan(false, NO_HEDGE, mostRefusals, keyed, keyHash);
    }

    /** This one, as the options of a request change it. */
    CallPlan with(RequestOptions options) {
        Boolean repeatable = options.idempotent();
        Duration delay = options.hedgeAfter();
        @Nullable Long hash = options.keyHash();
        boolean harmless = repeatable == null ? idempotent : repeatable;
        long hedge = delay != null ? TimeUnit.NANOSECONDS.convert(delay) : hedgeNanos;
        return new CallPlan(harmless, hedge, mostRefusals, hash != null, hash == null ? 0 : hash);
    }
}
