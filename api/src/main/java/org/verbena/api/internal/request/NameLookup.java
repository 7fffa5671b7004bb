package org.verbena.api.internal.request;

import java.net.InetAddress;
import java.net.UnknownHostException;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.verbena.transport.ConnectionException;

/**
 * Looks up names of hosts within a time. The system's resolver can neither be limited nor interrupted, so it runs on a
 * separate thread, one for each name even if several callers look it up, and a caller may leave before it has answered.
 */
public final class NameLookup {
    /** The system's. */
    public static final NameLookup SYSTEM = new NameLookup(InetAddress::getAllByName);

    /** Resolves, and blocks for as long as that takes. */
    public interface Resolver {
        InetAddress[] resolve(String host) throws UnknownHostException;
    }

    private final Resolver resolver;
    private final Map<String, CompletableFuture<List<InetAddress>>> pending = new ConcurrentHashMap<>();

    public NameLookup(Resolver resolver) {
        this.resolver = resolver;
    }

    /**
     * Waits for the addresses of a host. An address needs no look-up.
     *
     * @param purpose begins the message of a failure
     * @param limitNanos how long it may take; 0 for no limit
     * @return one or more, in the resolver's order
     * @throws ConnectionException there are none, not in that time, or the thread was interrupted
     */
    public List<InetAddress> addresses(String purpose, String host, long limitNanos) {
        List<InetAddress> literal = literal(host);
        if (!literal.isEmpty()) {
            return literal;
        }
        CompletableFuture<List<InetAddress>> answer = lookUp(host);
        try {
            return limitNanos == 0 ? answer.get() : answer.get(limitNanos, TimeUnit.NANOSECONDS);
        } catch (TimeoutException late) {
            throw new ConnectionException.TimedOut(purpose + ": looking up the name has taken longer than the "
                    + TimeUnit.NANOSECONDS.toMillis(limitNanos)
                    + " ms that were left of the connect timeout: see that the name servers answer");
        } catch (InterruptedException interruption) {
            throw ShortForm.interrupted(purpose + ": looking up the name", interruption);
        } catch (ExecutionException failed) {
            Throwable cause = failed.getCause();
            throw failure(purpose, cause == null ? failed : cause);
        }
    }

    /** The address that a text is; empty if it is a name. */
    public static List<InetAddress> literal(String host) {
        try {
            return List.of(InetAddress.ofLiteral(host));
        } catch (IllegalArgumentException name) {
            return List.of();
        }
    }

    /** Looks a name up without waiting. Completed on the thread of the look-up. */
    public CompletableFuture<List<InetAddress>> lookUp(String host) {
        return pending.computeIfAbsent(host, this::begin);
    }

    /** Why a look-up has failed. */
    public static ConnectionException failure(String purpose, Throwable cause) {
        return cause instanceof UnknownHostException
                ? new ConnectionException.Unreachable(purpose + ": looking up the name failed: no such host", cause)
                : new ConnectionException(purpose + ": looking up the name failed", cause);
    }

    private CompletableFuture<List<InetAddress>> begin(String host) {
        CompletableFuture<List<InetAddress>> answer = new CompletableFuture<>();
        Thread.ofPlatform().daemon().name("verbena-lookup").start(() -> {
            List<InetAddress> addresses = List.of();
            Throwable failure = null;
            try {
                addresses = List.of(resolver.resolve(host));
            } catch (Throwable thrown) {
                failure = thrown;
            }
            pending.remove(host);
            if (failure == null) {
                answer.complete(addresses);
            } else {
                answer.completeExceptionally(failure);
            }
        });
        return answer;
    }
}
