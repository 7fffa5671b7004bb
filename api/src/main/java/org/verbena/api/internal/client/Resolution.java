package org.verbena.api.internal.client;

import io.netty.util.concurrent.EventExecutor;
import io.netty.util.concurrent.Future;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.api.client.Target;
import org.verbena.api.client.TargetResolver;
import org.verbena.api.internal.request.NameLookup;
import org.verbena.transport.ConnectionException;

/** Follows the addresses of a client's target. Control thread only. */
final class Resolution {
    private static final Logger LOG = LoggerFactory.getLogger(Resolution.class);

    private final EventExecutor control;
    private final Target target;
    private final NameLookup names;
    private final long everyNanos;
    private final Consumer<List<InetSocketAddress>> found;
    private final Consumer<Throwable> notFound;

    private boolean looking;

    /** Whether there was an address by now. */
    private boolean hasFound;

    private boolean closed;
    private @Nullable Future<?> timer;
    private @Nullable Future<?> limit;
    private @Nullable AutoCloseable following;

    /**
     * Prepares it.
     *
     * @param everyNanos how often a name is looked up again
     * @param found gets all addresses that are good now
     * @param notFound gets the reason why there is nothing new; {@link #refresh0} tries again
     */
    Resolution(
            EventExecutor control,
            Target target,
            NameLookup names,
            long everyNanos,
            Consumer<List<InetSocketAddress>> found,
            Consumer<Throwable> notFound) {
        this.control = control;
        this.target = target;
        this.names = names;
        this.everyNanos = everyNanos;
        this.found = found;
        this.notFound = notFound;
    }

    /**
     * Begins.
     *
     * @param limitNanos how long the first addresses may take; 0 for no limit
     */
    void begin0(long limitNanos) {
        refresh0();
        if (!hasFound && limitNanos > 0) {
            limit = control.schedule(() -> tooLate0(limitNanos), limitNanos, TimeUnit.NANOSECONDS);
        }
    }

    private void tooLate0(long limitNanos) {
        if (!hasFound && !closed) {
            notFound.accept(new ConnectionException.TimedOut("connect to " + target + ": "
                    + (target instanceof Target.Name ? "looking up the name" : "finding an address")
                    + " has taken longer than the " + TimeUnit.NANOSECONDS.toMillis(limitNanos)
                    + " ms of the connect timeout: see that the name servers answer"));
        }
    }

    private void found0(List<InetSocketAddress> addresses) {
        if (!addresses.isEmpty()) {
            hasFound = true;
            stop(limit);
        }
        found.accept(addresses);
    }

    /** Looks again, unless it does. */
    void refresh0() {
        if (looking || closed) {
            return;
        }
        stop(timer);
        timer = null;
        switch (target) {
            case Target.Addresses known -> {
                if (!hasFound) {
                    found0(known.addresses());
                }
            }
            case Target.Name name -> lookUp0(name);
            case Target.Resolved resolved -> {
                if (following == null) {
                    follow0(resolved.resolver());
                }
            }
        }
    }

    private void lookUp0(Target.Name name) {
        List<InetAddress> literal = NameLookup.literal(name.host());
        if (!literal.isEmpty()) {
            if (hasFound) {
                return;
            }
            found0(List.of(new InetSocketAddress(literal.getFirst(), name.port())));
            return;
        }
        looking = true;
        names.lookUp(name.host())
                .whenComplete((addresses, failure) -> control.execute(() -> lookedUp0(name, addresses, failure)));
    }

    private void lookedUp0(Target.Name name, @Nullable List<InetAddress> addresses, @Nullable Throwable failure) {
        looking = false;
        if (closed) {
            return;
        }
        if (addresses == null) {
            Throwable cause = failure == null ? new IllegalStateException("no addresses") : failure;
            notFound.accept(NameLookup.failure("connect to " + name, cause));
            return;
        }
        timer = control.schedule(this::refresh0, everyNanos, TimeUnit.NANOSECONDS);
        found0(addresses.stream()
                .map(address -> new InetSocketAddress(address, name.port()))
                .toList());
    }

    private void follow0(TargetResolver resolver) {
        looking = true;
        Thread.ofVirtual().name("verbena-resolver").start(() -> {
            AutoCloseable begun;
            try {
                begun = resolver.resolve(addresses -> update(List.copyOf(addresses)));
            } catch (Throwable thrown) {
                control.execute(() -> notFollowing0(thrown));
                return;
            }
            control.execute(() -> following0(begun));
        });
    }

    /** Any thread. */
    private void update(List<InetSocketAddress> addresses) {
        List<InetSocketAddress> resolved =
                addresses.stream().filter(address -> !address.isUnresolved()).toList();
        if (resolved.size() < addresses.size()) {
            LOG.warn("{}: ignores the addresses among {} that are not resolved", target, addresses);
        }
        control.execute(() -> {
            if (!closed) {
                found0(resolved);
            }
        });
    }

    private void following0(AutoCloseable begun) {
        looking = false;
        following = begun;
        if (closed) {
            end(begun);
        }
    }

    private void notFollowing0(Throwable thrown) {
        looking = false;
        if (!closed) {
            notFound.accept(
                    new ConnectionException("connect to " + target + ": the resolver has failed: " + thrown, thrown));
        }
    }

    void close0() {
        closed = true;
        stop(timer);
        stop(limit);
        AutoCloseable begun = following;
        if (begun != null) {
            end(begun);
        }
    }

    private static void end(AutoCloseable begun) {
        Thread.ofVirtual().name("verbena-resolver").start(() -> {
            try {
                begun.close();
            } catch (Exception failure) {
                LOG.warn("a resolver could not be closed", failure);
            }
        });
    }

    private static void stop(@Nullable Future<?> scheduled) {
        if (scheduled != null) {
            scheduled.cancel(false);
        }
    }
}
