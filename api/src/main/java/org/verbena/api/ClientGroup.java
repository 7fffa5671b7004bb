package org.verbena.api;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufAllocator;
import io.netty.buffer.Unpooled;
import io.netty.util.concurrent.Future;
import io.netty.util.concurrent.GenericFutureListener;
import io.netty.util.concurrent.Promise;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.LongAdder;
import org.verbena.api.internal.loop.LoopFuture;
import org.verbena.api.internal.loop.VirtualNotifier;
import org.verbena.api.internal.request.Messenger;
import org.verbena.api.internal.request.SendLimit;
import org.verbena.transport.SendLimitException;

/**
 * Clients of one server or of several that get the same messages. A client whose connection ends leaves by itself. All
 * methods may be called on any thread; iterating sees the clients as they come and go.
 *
 * <pre>{@code
 * ClientGroup room = new ClientGroup();
 * MessageHandler handler = (exchange, message) -> {
 *     room.add(exchange.client());
 *     room.broadcast(message.retain());
 * };
 * }</pre>
 *
 * <p><b>Memory.</b> All clients of a device are sent one buffer. It is the program's own if that was allocated by
 * {@code alloc()} of a client's {@link ConnectedClient#channel channel} and has more than 2 KiB; else its bytes are
 * copied once. It is released when the last client has it. What waits to be sent has a bound for each client of the
 * group: a client that accepts nothing holds up no other, and keeps no more than that, also if it leaves the group and
 * joins again.
 */
public final class ClientGroup implements Iterable<ConnectedClient> {
    /** What becomes of a client when a message is broadcast that exceeds the bound of what waits to be sent to it. */
    public enum SlowClients {
        /** The client misses that message, and stays. */
        SKIP,
        /** The client misses that message, and leaves the group. */
        REMOVE,
        /**
         * It leaves the group, and its connection is closed when it has accepted what waits, or after some seconds: so
         * it learns that it has missed something.
         */
        CLOSE
    }

    private static final SendLimit.Bounds BOUNDS = new SendLimit.Bounds(1024, 16L << 20);

    private final SlowClients slow;
    private final SendLimit.Bounds bounds;
    private final ConcurrentHashMap<ConnectedClient, SendLimit> members = new ConcurrentHashMap<>();
    private final LongAdder missed = new LongAdder();

    /**
     * Creates an empty group, in which at most 1,024 messages, and at most 16 MiB of them, wait for each client; one
     * that falls behind {@linkplain SlowClients#SKIP misses messages}.
     */
    public ClientGroup() {
        this(SlowClients.SKIP, BOUNDS);
    }

    /**
     * Creates an empty group.
     *
     * @param slow what becomes of a client that falls behind
     * @param maxMessages how many of this group's messages may wait for each client, 1 to 4,194,304
     * @param maxBytes how many bytes these may have together, 1 to 512 GiB; a longer message is sent to a client for
     *     which no other waits
     */
    public ClientGroup(SlowClients slow, int maxMessages, long maxBytes) {
        this(Objects.requireNonNull(slow, "slow is null"), new SendLimit.Bounds(maxMessages, maxBytes));
    }

    private ClientGroup(SlowClients slow, SendLimit.Bounds bounds) {
        this.slow = slow;
        this.bounds = bounds;
    }

    /**
     * Adds a client, which gets the messages that are broadcast from now on.
     *
     * @param client of any server; one whose connection has ended is not added
     * @return whether it was not in the group before
     */
    public boolean add(ConnectedClient client) {
        boolean isNew = members.putIfAbsent(client, client.limitOf(this, bounds)) == null;
        client.joined(this);
        return isNew;
    }

    /**
     * Removes a client. Messages that wait are still sent to it.
     *
     * @param client whose connection stays as it is
     * @return whether it was in the group
     */
    public boolean remove(ConnectedClient client) {
        boolean wasIn = members.remove(client) != null;
        client.left(this);
        if (members.containsKey(client)) { // another thread has added it meanwhile
            client.joined(this);
        }
        return wasIn;
    }

    /**
     * Tells whether a client is in the group.
     *
     * @param client any
     * @return false when its connection has ended
     */
    public boolean contains(ConnectedClient client) {
        return members.containsKey(client);
    }

    /**
     * Returns how many clients there are.
     *
     * @return a snapshot
     */
    public int size() {
        return members.size();
    }

    @Override
    public Iterator<ConnectedClient> iterator() {
        Iterator<ConnectedClient> all = members.keySet().iterator();
        return new Iterator<>() {
            @Override
            public boolean hasNext() {
                return all.hasNext();
            }

            @Override
            public ConnectedClient next() {
                return all.next();
            }
        };
    }

    /**
     * Returns how often a client has missed a message because too much waited to be sent to it. {@link
     * ConnectedClient#missed()} has the count of each.
     *
     * @return a count
     */
    public long missed() {
        return missed.sum();
    }

    /**
     * Sends a message to all clients. What one thread broadcasts arrives at each client in that order.
     *
     * @param message its ownership is taken
     * @return to how many clients it has been sent, when each send has completed or failed: not before a client that
     *     accepts nothing has been given up. Fails, and nothing is sent, if there is no memory for the message.
     *     Cancelling it stops nothing
     */
    public Future<Integer> broadcast(ByteBuf message) {
        Messenger.checkUsable(message);
        Promise<Integer> outcome = VirtualNotifier.INSTANCE.newPromise();
        List<Map.Entry<ConnectedClient, SendLimit>> all = new ArrayList<>(members.entrySet());
        Map<ByteBufAllocator, ByteBuf> frames = new HashMap<>(2);
        try {
            for (Map.Entry<ConnectedClient, SendLimit> each : all) {
                ByteBufAllocator device = each.getKey().channel().alloc();
                if (!frames.containsKey(device)) {
                    frames.put(device, Messenger.frameOf(device, message));
                }
            }
            Broadcast broadcast = new Broadcast(outcome, all.size());
            for (Map.Entry<ConnectedClient, SendLimit> each : all) {
                ByteBuf frame = frames.get(each.getKey().channel().alloc());
                broadcast.send(each.getKey(), each.getValue(), Objects.requireNonNull(frame));
            }
            broadcast.ended(false);
        } catch (RuntimeException | Error noMemory) {
            outcome.tryFailure(noMemory);
        } finally {
            frames.values().forEach(ByteBuf::release);
            message.release();
        }
        return outcome;
    }

    /**
     * Sends a message to all clients, as {@link #broadcast(ByteBuf)} does.
     *
     * @param message copied before this returns
     * @return to how many clients it has been sent. Its stages run on a virtual thread
     */
    public CompletableFuture<Integer> broadcast(byte[] message) {
        return LoopFuture.of(broadcast(Unpooled.wrappedBuffer(message)));
    }

    /**
     * Sends a message to all clients, as {@link #broadcast(ByteBuf)} does.
     *
     * @param message its remaining bytes are copied before this returns; its position stays
     * @return to how many clients it has been sent. Its stages run on a virtual thread
     */
    public CompletableFuture<Integer> broadcast(ByteBuffer message) {
        return LoopFuture.of(broadcast(Unpooled.wrappedBuffer(message.duplicate())));
    }

    private void missed(ConnectedClient client) {
        missed.increment();
        client.countMissed();
        switch (slow) {
            case SKIP -> {}
            case REMOVE -> remove(client);
            case CLOSE -> {
                remove(client);
                client.channel().close();
            }
        }
    }

    /** One message on its way to all. Any thread. */
    private final class Broadcast {
        private final Promise<Integer> outcome;

        /** How many sends have not ended; one more while they are being begun. */
        private final AtomicInteger left;

        private final AtomicInteger sent = new AtomicInteger();

        Broadcast(Promise<Integer> outcome, int clients) {
            this.outcome = outcome;
            left = new AtomicInteger(clients + 1);
        }

        void send(ConnectedClient client, SendLimit limit, ByteBuf frame) {
            int bytes = frame.readableBytes();
            if (!limit.tryTake(bytes)) {
                missed(client);
                ended(false);
                return;
            }
            GenericFutureListener<Future<Void>> whenDone = done -> {
                limit.giveBack(bytes);
                if (done.cause() instanceof SendLimitException) {
                    missed(client);
                }
                ended(done.isSuccess());
            };
            client.messenger().sendFrame(frame.retainedDuplicate()).addListener(whenDone);
        }

        void ended(boolean succeeded) {
            if (succeeded) {
                sent.incrementAndGet();
            }
            if (left.decrementAndGet() == 0) {
                outcome.trySuccess(sent.get());
            }
        }
    }
}
