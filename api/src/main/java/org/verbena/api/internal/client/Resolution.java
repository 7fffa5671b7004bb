package org.verbena.api.internal.client;

import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.api.client.Target;
import org.verbena.api.client.TargetResolver;
import org.verbena.api.internal.loop.Threads;
import org.verbena.api.internal.request.NameLookup;
import org.verbena.transport.ConnectionException;

/** Follows the addresses of a client's target. Control thread only. */
final class Resolution {
    private static final Logger LOG = LoggerFactory.getLogger(Resolution.class);

    private final Control control;
    private final Target target;
    private final NameLookup names;
    private final long everyNanos;
    private final Consumer<List<InetSocketAddress>> found;
    private final Consumer<Throwable> notFound;

    private boolean looking;

    /** Whether there is an address, as far as is known. */
    private boolean hasFound;

    /** Whether the time for the first connection is over, and there was none. */
    private boolean late;

    private long limitNanos;
    private boolean connected;
    private boolean resting;
    private boolean closed;
    private @Nullable Future<?> timer;
    private @Nullable Future<?> limit;
    private @Nullable AutoCloseable following;

    /** Begins to follow the addresses; null when that is done. */
    private @Nullable Thread beginning;

    /**
     * Prepares it.
     *
     * @param control where it runs
     * @param everyNanos how often a name is looked up again
     * @param found gets all addresses that are good now
     * @param notFound gets the reason why there is nothing new; {@link #refresh0} tries again
     */
    Resolution(
            Control control,
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
     * @param limitNanos how long there may be no address before the first connection; 0 for no limit
     */
    void begin0(long limitNanos) {
        this.limitNanos = limitNanos;
        refresh0();
        if (limitNanos > 0) {
            limit = control.schedule(
                    () -> {
                        late = true;
                        failIfLate0();
                    },
                    limitNanos);
        }
    }

    /** There is a connection: from now on the client waits for addresses as long as it takes. */
    void connected0() {
        connected = true;
        stop(limit);
    }

    private void failIfLate0() {
        if (late && !hasFound && !connected && !closed) {
            notFound.accept(new ConnectionException.TimedOut("connect to " + target + ": "
                    + (target instanceof Target.Name ? "looking up the name" : "finding an address")
                    + " has taken longer than the " + TimeUnit.NANOSECONDS.toMillis(limitNanos)
                    + " ms of the connect timeout: see that the name servers answer"));
        }
    }

    private void found0(List<InetSocketAddress> addresses) {
        hasFound = !addresses.isEmpty();
        found.accept(addresses);
        failIfLate0();
    }

    /** The addresses are not needed: looks no name up until {@link #wake0}. */
    void rest0() {
        resting = true;
        stop(timer);
        timer = null;
    }

    /** They are needed: those that were found last, and those that there are now. */
    void wake0() {
        resting = false;
        refresh0();
    }

    /** Looks again, unless it does. */
    void refresh0() {
        if (looking || resting || closed) {
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
        CompletableFuture<List<InetAddress>> answer;
        try {
            answer = names.lookUp(name.host());
        } catch (Throwable noThread) {
            answer = CompletableFuture.failedFuture(noThread);
        }
        answer.whenComplete((addresses, failure) -> control.submit(() -> lookedUp0(name, addresses, failure)));
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
        if (!resting) {
            timer = control.schedule(this::refresh0, everyNanos);
        }
        found0(addresses.stream()
                .map(address -> new InetSocketAddress(address, name.port()))
                .toList());
    }

    private void follow0(TargetResolver resolver) {
        looking = true;
        try {
            Thread resolving = control.clock().newVirtualThread("verbena-resolver", () -> resolve(resolver));
            beginning = resolving;
            resolving.start();
        } catch (Throwable noThread) {
            notFollowing0(noThread);
        }
    }

    private void resolve(TargetResolver resolver) {
        AutoCloseable begun;
        try {
            begun = Objects.requireNonNull(
                    resolver.resolve(addresses -> update(List.copyOf(addresses))), "the resolver returned null");
        } catch (Throwable thrown) {
            control.submit(() -> notFollowing0(thrown));
            return;
        }
        control.submit(() -> following0(begun));
    }

    /** Any thread. */
    private void update(List<InetSocketAddress> addresses) {
        List<InetSocketAddress> resolved =
                addresses.stream().filter(address -> !address.isUnresolved()).toList();
        if (resolved.size() < addresses.size()) {
            LOG.warn("{}: ignores the addresses among {} that are not resolved", target, addresses);
        }
        control.submit(() -> {
            if (!closed && resolved.isEmpty() && !addresses.isEmpty()) {
                notFound.accept(new ConnectionException.Unreachable("connect to " + target + ": none of the "
                        + addresses.size() + " addresses of the resolver is resolved: look their names up there"));
            } else if (!closed) {
                found0(resolved);
            }
        });
    }

    private void following0(AutoCloseable begun) {
        looking = false;
        beginning = null;
        following = begun;
        if (closed) {
            end(begun);
        }
    }

    private void notFollowing0(Throwable thrown) {
        looking = false;
        beginning = null;
        if (!closed) {
            notFound.accept(
                    new ConnectionException("connect to " + target + ": the resolver has failed: " + thrown, thrown));
        }
    }

    void close0() {
        closed = true;
        stop(timer);
        stop(limit);
        Thread resolving = beginning;
        if (resolving != null) {
            resolving.interrupt();
        }
        AutoCloseable begun = following;
        if (begun != null) {
            following = null; // this may be called again
            end(begun);
        }
    }

    private void end(AutoCloseable begun) {
        Threads.start(control.clock(), "verbena-resolver", () -> {
            try {
                begun.close();
            } catch (Throwable failure) {
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
