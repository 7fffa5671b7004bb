package org.verbena.api;

import java.util.concurrent.atomic.LongAdder;
import org.verbena.transport.spi.RdmaProvider;

/** The requests that did not reach their handler, of one server or client and in its provider's figures. Any thread. */
final class RequestCounters {
    private final ProviderAccount account;
    private final LongAdder expired;
    private final LongAdder overloaded;

    RequestCounters(RdmaProvider provider) {
        this(ProviderAccount.of(provider), new LongAdder(), new LongAdder());
    }

    private RequestCounters(ProviderAccount account, LongAdder expired, LongAdder overloaded) {
        this.account = account;
        this.expired = expired;
        this.overloaded = overloaded;
    }

    /** The same of this server, in the figures of another of its providers. */
    RequestCounters in(RdmaProvider provider) {
        ProviderAccount other = ProviderAccount.of(provider);
        return other == account ? this : new RequestCounters(other, expired, overloaded);
    }

    void countExpired() {
        expired.increment();
        account.requestExpired();
    }

    void countOverloaded() {
        overloaded.increment();
        account.requestOverloaded();
    }

    long overloaded() {
        return overloaded.sum();
    }

    long expired() {
        return expired.sum();
    }
}
