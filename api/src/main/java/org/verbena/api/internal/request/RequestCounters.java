package org.verbena.api.internal.request;

import java.util.concurrent.atomic.LongAdder;
import org.verbena.api.internal.stat.ProviderAccount;
import org.verbena.transport.spi.RdmaProvider;

/**
 * Counts requests that did not reach their handler, for one server or client and in its provider's statistics. Any
 * thread.
 */
public final class RequestCounters {
    private final ProviderAccount account;
    private final LongAdder expired;
    private final LongAdder overloaded;
    private final LongAdder abandoned;

    public RequestCounters(RdmaProvider provider) {
        this(ProviderAccount.of(provider), new LongAdder(), new LongAdder(), new LongAdder());
    }

    private RequestCounters(ProviderAccount account, LongAdder expired, LongAdder overloaded, LongAdder abandoned) {
        this.account = account;
        this.expired = expired;
        this.overloaded = overloaded;
        this.abandoned = abandoned;
    }

    /** Returns the counters of this server with the statistics of another of its providers. */
    public RequestCounters in(RdmaProvider provider) {
        ProviderAccount other = ProviderAccount.of(provider);
        return other == account ? this : new RequestCounters(other, expired, overloaded, abandoned);
    }

    void countExpired() {
        expired.increment();
        account.requestExpired();
    }

    void countOverloaded() {
        overloaded.increment();
        account.requestOverloaded();
    }

    void countAbandoned() {
        abandoned.increment();
        account.requestAbandoned();
    }

    void countWaiting(int more) {
        account.requestsWait(more);
    }

    public long abandoned() {
        return abandoned.sum();
    }

    public long overloaded() {
        return overloaded.sum();
    }

    public long expired() {
        return expired.sum();
    }
}
