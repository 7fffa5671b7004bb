package org.verbena.api;

import io.netty.buffer.ByteBuf;
import io.netty.util.AttributeKey;
import io.netty.util.concurrent.Future;
import java.nio.ByteBuffer;
import java.util.Map;
import java.util.Set;
import java.util.WeakHashMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.LongAdder;
import org.jspecify.annotations.Nullable;
import org.verbena.api.internal.request.Messenger;
import org.verbena.api.internal.request.SendLimit;
import org.verbena.api.internal.stat.ConnectionStat;
import org.verbena.transport.SendLimitException;

/**
 * A client as its server sees it, for as long as its connection lasts: a client that connects again is another one.
 * What it is sent reaches {@link RdmaClient.Builder#onMessage}. All methods may be called on any thread.
 *
 * @see RdmaServer#clients()
 * @see ClientGroup
 */
public final class ConnectedClient {
    private static final AttributeKey<ConnectedClient> KEY = AttributeKey.valueOf(ConnectedClient.class, "CLIENT");

    private final RdmaChannel channel;
    private final Messenger messenger;
    private final LongAdder missed = new LongAdder();
    private final Set<ClientGroup> groups = ConcurrentHashMap.newKeySet(1);

    /**
     * What waits of each group's messages, which do not leave with the client: it goes on counting when the client
     * joins again. As long as there is the group. Guarded by itself.
     */
    private final Map<ClientGroup, SendLimit> limits = new WeakHashMap<>(2);

    private ConnectedClient(RdmaChannel channel, Messenger messenger) {
        this.channel = channel;
        this.messenger = messenger;
    }

    /** Makes the client of a connection that a server has accepted. */
    static ConnectedClient accepted(RdmaChannel channel, Messenger messenger) {
        ConnectedClient client = new ConnectedClient(channel, messenger);
        channel.attr(KEY).set(client);
        channel.closeFuture().addListener(closed -> client.groups.forEach(group -> group.remove(client)));
        return client;
    }

    /** Null for a connection of a client. */
    static @Nullable ConnectedClient find(RdmaChannel channel) {
        return channel.attr(KEY).get();
    }

    /**
     * Returns the client at the other end of a connection.
     *
     * @param channel as {@link RdmaServer.Builder#onConnect} gets it
     * @return always the same for one channel
     * @throws IllegalArgumentException no {@link RdmaServer} has accepted it
     */
    public static ConnectedClient of(RdmaChannel channel) {
        ConnectedClient client = find(channel);
        if (client == null) {
            throw new IllegalArgumentException(channel + " is not a connection that an RdmaServer has accepted");
        }
        return client;
    }

    /**
     * Sends it a message.
     *
     * @param message its ownership is taken
     * @return done when the send has completed. Fails with {@link SendLimitException} if too much {@linkplain
     *     RdmaServer.Builder#maxPending waits to be sent} to this client
     */
    public Future<Void> send(ByteBuf message) {
        return messenger.send(message);
    }

    /**
     * Sends it a message, as {@link #send(ByteBuf)} does.
     *
     * @param message copied before this returns
     * @return done, on the event loop, when the send has completed; see {@link RdmaClient} on its stages
     */
    public CompletableFuture<Void> send(byte[] message) {
        return messenger.send(message);
    }

    /**
     * Sends it a message, as {@link #send(ByteBuf)} does.
     *
     * @param message its remaining bytes are copied before this returns; its position stays
     * @return done, on the event loop, when the send has completed; see {@link RdmaClient} on its stages
     */
    public CompletableFuture<Void> send(ByteBuffer message) {
        return messenger.send(message);
    }

    /**
     * Returns the connection, for its addresses, one-sided operations and everything else. Its {@code closeFuture()} is
     * done when the client is gone.
     *
     * @return the channel
     */
    public RdmaChannel channel() {
        return channel;
    }

    /**
     * Returns how many messages to its {@linkplain ClientGroup groups} it has missed, because too much waited to be
     * sent to it.
     *
     * @return a count
     */
    public long missed() {
        return missed.sum();
    }

    void countMissed() {
        missed.increment();
        ConnectionStat stat = messenger.stat();
        if (stat != null) {
            stat.missed();
        }
    }

    Messenger messenger() {
        return messenger;
    }

    /** Removes the client from a group when its connection ends, which may be now. */
    void joined(ClientGroup group) {
        groups.add(group);
        if (!channel.isOpen()) {
            group.remove(this);
        }
    }

    /** Counts what waits of a group's messages. */
    SendLimit limitOf(ClientGroup group, SendLimit.Bounds bounds) {
        synchronized (limits) {
            return limits.computeIfAbsent(group, first -> new SendLimit(bounds));
        }
    }

    void left(ClientGroup group) {
        groups.remove(group);
    }

    @Override
    public String toString() {
        return "client " + channel;
    }
}
