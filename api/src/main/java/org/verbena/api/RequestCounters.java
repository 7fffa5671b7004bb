package org.verbena.api;

import java.util.concurrent.atomic.LongAdder;
import org.verbena.transport.spi.RdmaProvider;

/** The requests that did not reach their handler, of one server or client and in its provider's figures. Any thread. */
final class RequestCounters {
    private final ProviderAccount account;
    private final LongAdder expired = new LongAdder();
    private final LongAdder overloaded = new LongAdder();

    RequestCounters(RdmaProvider provider) {
        account = ProviderAccount.of(provider);
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
