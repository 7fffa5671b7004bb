package org.verbena.api;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.channels.NotYetConnectedException;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;
import org.verbena.api.internal.memory.ServerRegions;
import org.verbena.transport.EndpointCapabilities;
import org.verbena.transport.MemoryDomain.Access;
import org.verbena.transport.RegisteredMemory;
import org.verbena.transport.RemoteMemory;

/**
 * Memory of a server that its clients use by one-sided operations, such as a table that they read. It is made before
 * any client is connected, and registered once for each device that carries a client which asks for it, however many
 * clients there are. Each client gets the token that fits its device. All methods may be called on any thread.
 *
 * <pre>{@code
 * ServerMemory table = ServerMemory.allocate(1 << 20, Access.REMOTE_READ);
 * RdmaServer server = RdmaServer.builder()
 *         .provider("all")
 *         .bind("0.0.0.0", 7471, (exchange, message) -> exchange.reply(exchange.token(table).encode()));
 * }</pre>
 *
 * <p>A token opens this memory, with its rights, to the clients of the server that gave it out, over all their
 * connections by the same device, and to nobody else. On devices that cannot bind memory to a server's connections
 * ({@link EndpointCapabilities#groupMemory()} is false, as with verbs) it opens the memory to every peer of the device
 * that has the token. Several servers of a process may use the same memory: each has regions and tokens of its own.
 *
 * <p>The regions of a server are closed when it and all its connections are, and all of them with {@link #close()}. An
 * operation that uses a token after that fails with {@link RemoteAccessException}, and its connection ends.
 */
public final class ServerMemory implements AutoCloseable {
    /** A thread that never runs: memory that it may access belongs to no single thread. */
    private static final Thread NOBODY = Thread.ofPlatform().unstarted(() -> {});

    /** Where memory begins: adapters pin whole pages. */
    private static final long PAGE_BYTES = 4096;

    private final MemorySegment segment;
    private final Set<Access> access;
    private final ServerRegions regions;

    private ServerMemory(MemorySegment segment, Access... access) {
        EnumSet<Access> rights = EnumSet.noneOf(Access.class);
        rights.addAll(List.of(access));
        if (rights.isEmpty() || rights.equals(EnumSet.of(Access.LOCAL_WRITE))) {
            throw new IllegalArgumentException("memory for clients needs REMOTE_READ, REMOTE_WRITE or REMOTE_ATOMIC");
        }
        if (!segment.isNative() || segment.byteSize() == 0) {
            throw new IllegalArgumentException("only native memory of 1 byte or more can be registered, not " + segment
                    + ": allocate it from Arena.ofShared() or Arena.global()");
        }
        if (!segment.isAccessibleBy(NOBODY)) {
            throw new IllegalArgumentException(
                    "memory of a confined arena cannot be registered: allocate it from Arena.ofShared()");
        }
        if (segment.isReadOnly() && !rights.equals(EnumSet.of(Access.REMOTE_READ))) {
            throw new IllegalArgumentException("a read-only segment cannot be registered with " + rights);
        }
        this.segment = segment;
        this.access = Set.copyOf(rights);
        regions = new ServerRegions(segment, this.access);
    }

    /**
     * Takes memory of the program. Nothing is registered yet.
     *
     * @param segment native memory whose arena is shared or global; it must stay alive until {@link #whenGone}
     * @param access what clients may do, one right at least; writes and atomics imply LOCAL_WRITE
     * @return the memory, to be closed
     * @throws IllegalArgumentException no right for clients; or heap memory, an empty segment, a segment that is
     *     confined to one thread, or a read-only one that clients may change
     */
    public static ServerMemory of(MemorySegment segment, Access... access) {
        return new ServerMemory(segment, access);
    }

    /**
     * Allocates memory, which is freed after {@link #close()}. Nothing is registered yet.
     *
     * @param lengthBytes how much, 1 or more
     * @param access what clients may do, one right at least; writes and atomics imply LOCAL_WRITE
     * @return the memory, zeroed, to be closed
     * @throws IllegalArgumentException no right for clients, or no length
     * @throws OutOfMemoryError there is not as much
     */
    public static ServerMemory allocate(long lengthBytes, Access... access) {
        Arena arena = Arena.ofShared();
        try {
            ServerMemory memory = new ServerMemory(arena.allocate(lengthBytes, PAGE_BYTES), access);
            memory.whenGone(arena::close);
            return memory;
        } catch (Throwable failure) {
            arena.close();
            throw failure;
        }
    }

    /**
     * The memory.
     *
     * @return what clients see
     */
    public MemorySegment segment() {
        return segment;
    }

    /**
     * What clients may do with it.
     *
     * @return an immutable set
     */
    public Set<Access> access() {
        return access;
    }

    /**
     * Returns a client's token, to be sent to it over any connection. The first call for a device registers the memory
     * there, which pins its pages on an adapter and takes time for much memory, and calls for the same memory wait
     * meanwhile: then make that call on a virtual thread. The token lacks REMOTE_ATOMIC if the connection has no
     * atomics; a device that carries connections with and without gets a region for each kind.
     *
     * @param channel accepted by the server: {@code exchange.channel()}, or the channel of its pipeline
     * @return the token that fits the device which carries the channel; the same for all channels of this server and
     *     device
     * @throws NotYetConnectedException before the channel is active
     * @throws IllegalArgumentException the channel was not accepted by a server
     * @throws IllegalStateException the memory, or the server with all its connections, is closed
     * @throws UnsupportedOperationException the memory is for atomics only, and the connection has none
     * @throws org.verbena.transport.RdmaException the device does not register it; the message says why and what to do
     */
    public RemoteMemory tokenFor(AbstractRdmaChannel channel) {
        return channel.connection().token(regions);
    }

    /**
     * Runs an action when the memory may be freed: when it is closed and no device has it any more. That is when {@link
     * #close()} returns, except where a peer is just writing it by itself and {@code close()} was called on an event
     * loop. If a device refuses to deregister it, the action never runs.
     *
     * @param action runs at once if that is so already, else on any thread; must not throw
     */
    public void whenGone(Runnable action) {
        regions.whenGone(action);
    }

    /**
     * Ends the access of all clients: deregisters the memory with all devices, as {@link RegisteredMemory#close()}
     * does. Idempotent.
     *
     * @throws org.verbena.transport.RdmaException a device refuses to deregister it; the others have done so
     */
    @Override
    public void close() {
        regions.close();
    }
}
