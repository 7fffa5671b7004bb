package org.verbena.api.internal.memory;

import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.transport.MemoryDomain;
import org.verbena.transport.MemoryDomain.Access;
import org.verbena.transport.RdmaException;
import org.verbena.transport.RegisteredMemory;
import org.verbena.transport.RemoteMemory;

/**
 * Memory that servers' clients use: its region for each server and device, registered when the first client asks for a
 * token. Any thread.
 */
public final class ServerRegions {
    private static final Logger LOG = LoggerFactory.getLogger(ServerRegions.class);

    /**
     * What has a region of its own.
     *
     * @param server whose clients may use it
     * @param device that it is registered with
     * @param atomics whether it is registered for atomics, which not every device takes
     */
    private record Key(ServerPeers server, MemoryDomain device, boolean atomics) {}

    private final MemorySegment segment;
    private final Set<Access> access;
    private final CompletableFuture<Void> gone = new CompletableFuture<>();

    /** What {@link #gone} waits for: the regions that are registered, and one until this is closed. */
    private final AtomicInteger holders = new AtomicInteger(1);

    /** Changed under the lock. */
    private final ConcurrentMap<Key, RegisteredMemory> regions = new ConcurrentHashMap<>();

    // Guarded by this.
    private final Set<ServerPeers> servers = new HashSet<>();

    /** Done when the last action that was given has run. */
    private CompletableFuture<Void> lastAction = gone;

    private boolean isClosed;

    /**
     * Without a region.
     *
     * @param segment that can be registered
     * @param access one right for peers at least
     */
    public ServerRegions(MemorySegment segment, Set<Access> access) {
        this.segment = segment;
        this.access = access;
    }

    /**
     * The token for a client.
     *
     * @param server that it is connected to
     * @param device that carries its connection
     * @param domain where that device registers the memory of this server
     * @param atomics whether the connection has them
     */
    public RemoteMemory token(ServerPeers server, MemoryDomain device, MemoryDomain domain, boolean atomics) {
        Set<Access> rights = EnumSet.copyOf(access);
        if (!atomics) {
            rights.remove(Access.REMOTE_ATOMIC);
            if (rights.isEmpty() || rights.equals(Set.of(Access.LOCAL_WRITE))) {
                throw new UnsupportedOperationException(
                        "the memory is for atomics only, and this connection has none: give it another right as well");
            }
        }
        Key key = new Key(server, device, rights.contains(Access.REMOTE_ATOMIC));
        RegisteredMemory region = regions.get(key);
        if (region == null) {
            region = register(key, domain, rights);
        }
        return region.remote();
    }

    private synchronized RegisteredMemory register(Key key, MemoryDomain domain, Set<Access> rights) {
        if (isClosed) {
            throw new IllegalStateException("the server's memory is closed");
        }
        RegisteredMemory known = regions.get(key);
        if (known != null) {
            return known;
        }
        if (!key.server.use(this)) {
            throw new IllegalStateException("the server and its connections are closed");
        }
        servers.add(key.server);
        RegisteredMemory made = domain.register(segment, rights);
        holders.incrementAndGet();
        made.whenGone(this::release);
        regions.put(key, made);
        LossWatch.add(key.device, this);
        return made;
    }

    /** The server is closed, and the last of its connections. */
    void onEnd(ServerPeers server) {
        List<RegisteredMemory> ended = take(key -> key.server.equals(server));
        synchronized (this) {
            servers.remove(server);
        }
        closeAndLog(ended);
    }

    /** The device is lost, and nobody is connected over it. */
    void onLost(MemoryDomain device) {
        closeAndLog(take(key -> key.device.equals(device)));
    }

    private synchronized List<RegisteredMemory> take(Predicate<Key> which) {
        List<RegisteredMemory> taken = new ArrayList<>();
        for (Map.Entry<Key, RegisteredMemory> each : regions.entrySet()) {
            if (which.test(each.getKey())) {
                taken.add(each.getValue());
            }
        }
        regions.keySet().removeIf(which);
        return taken;
    }

    private static void closeAndLog(List<RegisteredMemory> ended) {
        RdmaException refusal = close(ended);
        if (refusal != null) {
            LOG.warn("A server's memory could not be deregistered", refusal);
        }
    }

    /** Closes all of them, also if the device refuses one. */
    private static @Nullable RdmaException close(List<RegisteredMemory> ended) {
        RdmaException first = null;
        for (RegisteredMemory region : ended) {
            try {
                region.close();
            } catch (RdmaException refused) {
                if (first == null) {
                    first = refused;
                } else {
                    first.addSuppressed(refused);
                }
            }
        }
        return first;
    }

    /** Closes all regions, and lets no further one be made. Idempotent. */
    public void close() {
        Set<MemoryDomain> devices = new HashSet<>();
        List<ServerPeers> users;
        List<RegisteredMemory> ended;
        synchronized (this) {
            if (isClosed) {
                return;
            }
            isClosed = true;
            regions.keySet().forEach(key -> devices.add(key.device));
            users = List.copyOf(servers);
            servers.clear();
            ended = take(key -> true);
        }
        users.forEach(server -> server.forget(this));
        devices.forEach(device -> LossWatch.remove(device, this));
        try {
            RdmaException refusal = close(ended);
            if (refusal != null) {
                throw refusal;
            }
        } finally {
            release();
        }
    }

    private void release() {
        if (holders.decrementAndGet() == 0) {
            gone.complete(null);
        }
    }

    /** Runs an action when this is closed and no region is registered any more, and after the actions before it. */
    public void whenGone(Runnable action) {
        CompletableFuture<Void> before;
        CompletableFuture<Void> after = new CompletableFuture<>();
        synchronized (this) {
            before = lastAction;
            lastAction = after;
        }
        before.whenComplete((done, failure) -> {
            try {
                action.run();
            } finally {
                after.complete(null);
            }
        });
    }
}
