package org.verbena.jgroups;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufAllocator;
import io.netty.buffer.ByteBufInputStream;
import io.netty.buffer.ByteBufOutputStream;
import io.netty.buffer.Unpooled;
import io.netty.channel.Channel;
import io.netty.channel.ChannelFuture;
import io.netty.channel.ChannelFutureListener;
import io.netty.channel.ChannelHandler;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.util.concurrent.Future;
import java.io.DataInputStream;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.ClosedChannelException;
import java.util.Arrays;
import java.util.Objects;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.Lock;
import java.util.concurrent.locks.ReentrantLock;
import org.jgroups.Address;
import org.jgroups.Version;
import org.jgroups.blocks.cs.Connection;
import org.jgroups.stack.IpAddress;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.ConnectionException;

/**
 * A connection with a peer. Its first message, from the end that connects, is a hello; an empty one says that its
 * sender closes, which is no reason to suspect it; any other is what JGroups has put into one buffer.
 *
 * <pre>{@code
 * hello: 4 bytes "bela", 2 bytes JGroups' version, IpAddress.writeTo
 *
 * made here: CONNECTING --active: hello sent--> CONNECTED --close, peer's close, lost--> CLOSED
 *                |  failed: dropped what waited                                             ^
 *                +--------------------------------------------------------------------------+
 * accepted: the same, and CONNECTED when the peer's hello has come
 * }</pre>
 *
 * <p>What waits in one that another replaces goes to that one, and so does what is still sent by it.
 */
final class PeerConnection extends Connection {
    /** What a message that waits takes beside its bytes: a buffer object and a node of the queue. */
    private static final int OVERHEAD_BYTES = 256;

    private final PeerServer owner;
    private final boolean madeHere;
    private final Traffic traffic = new Traffic();
    private final Runnable write = this::write0;
    private final ChannelFutureListener onWritten = this::onWritten0;

    private final Queue<ByteBuf> waiting = new ConcurrentLinkedQueue<>();
    private final AtomicLong waitingBytes = new AtomicLong();

    private final Lock room = new ReentrantLock();
    private final Condition roomMade = room.newCondition();

    /** Threads that wait for room. */
    private final AtomicInteger waitingForRoom = new AtomicInteger();

    /** The peer took nothing for as long as a send waits, and has taken nothing since. */
    private volatile boolean stalled;

    /** A write is about to happen on the event loop. */
    private final AtomicBoolean writing = new AtomicBoolean();

    /** Something was dropped, and reported, since the queue was empty. */
    private final AtomicBoolean dropping = new AtomicBoolean();

    /** Null until it is connected. Written by the event loop. */
    private volatile @Nullable Channel channel;

    private volatile @Nullable Future<?> connecting;

    /** The peer has sent something by it. Written by the event loop. */
    private volatile boolean heard;

    private volatile boolean closing;

    /** The connection that has replaced this one; null while none has. Written under the lock of the peer. */
    private volatile @Nullable PeerConnection successor;

    /** What waits is not sent any more. */
    private volatile boolean cut;

    /** Nothing can be sent or received any more. */
    private volatile boolean gone;

    /** Confined to the event loop. */
    private boolean closed;

    /** Makes one to connect with. */
    PeerConnection(PeerServer owner, IpAddress peer) {
        this.owner = owner;
        server = owner;
        madeHere = true;
        peer_addr = peer;
        last_access = getTimestamp();
    }

    /** Makes one for a peer that has connected. */
    PeerConnection(PeerServer owner) {
        this.owner = owner;
        server = owner;
        madeHere = false;
        last_access = getTimestamp();
    }

    /** The handler of its channel. */
    ChannelHandler traffic() {
        return traffic;
    }

    /** Whether this end connects and has no sign yet that the peer has accepted it. */
    boolean isUnknownToItsPeer() {
        return madeHere && !heard;
    }

    // ---- JGroups', on any thread
    // ----------------------------------------------------------------------------------------------------------------

    @Override
    public void connect(Address dest) {
        Future<?> attempt;
        try {
            attempt = owner.connect((IpAddress) dest, this);
        } catch (Throwable failure) {
            notConnected(dest, failure);
            throw failure;
        }
        connecting = attempt;
        attempt.addListener(done -> {
            if (!done.isSuccess()) {
                notConnected(dest, done.cause());
            }
        });
    }

    /** The next message to this peer tries again. */
    private void notConnected(Address dest, Throwable cause) {
        owner.log().debug("%s: cannot connect to %s: %s", owner.localAddress(), dest, cause);
        closing = true;
        end();
        owner.removeConnectionIfPresent(dest, this);
    }

    /** Connecting has begun already. */
    @Override
    public void start() {}

    @Override
    public boolean isConnected() {
        return channel != null && !isClosed();
    }

    @Override
    public boolean isConnectionPending() {
        return channel == null && !isClosed();
    }

    @Override
    public boolean isClosed() {
        return closing || gone;
    }

    @Override
    public @Nullable Address localAddress() {
        Channel to = channel;
        return to != null && to.localAddress() instanceof InetSocketAddress local ? new IpAddress(local) : null;
    }

    @Override
    public void send(ByteBuffer buffer) {
        byte[] bytes = new byte[buffer.remaining()];
        buffer.duplicate().get(bytes);
        send(bytes, 0, bytes.length);
    }

    /**
     * Copies the bytes, which JGroups uses again, into memory that is sent from. Drops them if there is no room.
     * JGroups may have looked this connection up before another one took its place: then that one sends them.
     */
    @Override
    public void send(byte[] bytes, int offset, int length) {
        PeerConnection next = successor();
        if (next == null && !isClosed()) {
            if (tryEnqueue(bytes, offset, length)) {
                return;
            }
            next = successor();
            if (next == null) {
                drop();
            }
        }
        if (next != null) {
            next.send(bytes, offset, length);
        }
    }

    /** The one to use in place of this one; null for this one, or if it is closed and there is no other. */
    private @Nullable PeerConnection successor() {
        PeerConnection next = successor;
        Address peer = peer_addr;
        return next == null && peer != null && isClosed() ? owner.openTo(peer) : next;
    }

    private boolean tryEnqueue(byte[] bytes, int offset, int length) {
        long cost = cost(length);
        if (!tryReserve(cost) && !awaitRoom(cost)) {
            return false;
        }
        Channel to = channel;
        ByteBufAllocator memory = to == null ? ByteBufAllocator.DEFAULT : to.alloc();
        waiting.add(memory.buffer(length, Math.max(1, length)).writeBytes(bytes, offset, length));
        updateLastAccessed();
        flush();
        return true;
    }

    private static long cost(int length) {
        return (long) length + OVERHEAD_BYTES;
    }

    /** A message over the queue limit is accepted when the queue is empty. */
    private boolean tryReserve(long cost) {
        long before;
        do {
            before = waitingBytes.get();
            if (before > 0 && before + cost > owner.maxQueuedBytes()) {
                return false;
            }
        } while (!waitingBytes.compareAndSet(before, before + cost));
        return true;
    }

    /**
     * Waits while the peer takes messages. One that takes none for the time that a send waits holds up a bundler, which
     * sends to other peers as well, only once: until it takes some, everything is dropped at once. So is what is sent
     * to a peer that is not connected yet, and on an event loop, which must not wait.
     */
    private boolean awaitRoom(long cost) {
        if (stalled || channel == null || owner.maxBlockMillis() == 0 || owner.inEventLoop()) {
            return false;
        }
        room.lock();
        try {
            waitingForRoom
                    .incrementAndGet(); // before the look at the room, which the event loop makes before it looks here
            while (!tryReserve(cost)) {
                if (stalled || isClosed()) {
                    return false;
                }
                if (!roomMade.await(owner.maxBlockMillis(), TimeUnit.MILLISECONDS)) {
                    stalled = !tryReserve(cost);
                    return !stalled;
                }
            }
            return true;
        } catch (InterruptedException interruption) {
            Thread.currentThread().interrupt();
            return false;
        } finally {
            waitingForRoom.decrementAndGet();
            room.unlock();
        }
    }

    private void signalRoom() {
        if (waitingForRoom.get() > 0) {
            room.lock();
            try {
                roomMade.signalAll();
            } finally {
                room.unlock();
            }
        }
    }

    private void drop() {
        owner.onDropped();
        if (dropping.compareAndSet(false, true)) {
            owner.log()
                    .warn(
                            "%s: dropping messages to %s, which does not take them: %d bytes wait",
                            owner.localAddress(), peer_addr, waitingBytes.get());
        }
    }

    @Override
    public void flush() {
        Channel to = channel; // read after the message was added, as are the others: see begin0, end and replaceBy
        if (gone || successor != null) {
            handOver();
        }
        if (!gone && to != null && writing.compareAndSet(false, true)) {
            try {
                to.eventLoop().execute(write);
            } catch (RejectedExecutionException ended) {
                handOver(); // the loop has closed the channel
            } catch (Throwable failure) {
                writing.set(false); // the next message tries again
                throw failure;
            }
        }
    }

    @Override
    public void close() {
        close(true);
    }

    /**
     * Closes it.
     *
     * @param graceful sends what waits, also once it is connected, and that this end closes
     */
    @Override
    public void close(boolean graceful) {
        if (graceful) {
            if (!isClosed()) {
                closed_gracefully = true; // and so its end here makes nobody suspect the peer
            }
        } else {
            cut = true;
            Future<?> attempt = connecting;
            if (attempt != null) {
                attempt.cancel(true);
            }
        }
        closing = true;
        signalRoom();
        flush();
    }

    @Override
    public String status() {
        if (isClosed()) {
            return closed_gracefully ? "closed gracefully" : "closed";
        }
        return channel == null ? "connecting" : "connected";
    }

    @Override
    public String toString() {
        return String.format(
                "%s %s %s, %s, %d bytes waiting",
                owner.localAddress(), madeHere ? "-->" : "<--", peer_addr, status(), waitingBytes.get());
    }

    private void end() {
        gone = true;
        handOver();
        signalRoom();
    }

    /** Another one is about to take its place, and gets what waits before anybody finds it there. */
    void replaceBy(PeerConnection next) {
        successor = next;
        handOver();
    }

    /** What waits here goes behind what waits in this one's place; without one it is dropped. Any thread. */
    private void handOver() {
        PeerConnection next = cut ? null : successor();
        room.lock(); // several threads at once would change the order
        try {
            for (ByteBuf message = waiting.poll(); message != null; message = waiting.poll()) {
                long cost = cost(message.readableBytes());
                waitingBytes.addAndGet(-cost);
                if (next != null && next.tryReserve(cost)) {
                    next.waiting.add(message);
                    continue;
                }
                message.release();
                if (next != null) {
                    next.drop();
                }
            }
        } finally {
            room.unlock();
        }
        if (next != null) {
            next.flush();
        }
    }

    // ---- the event loop's
    // ----------------------------------------------------------------------------------------------------------------

    /** What other threads have added before they could see the channel is sent here. */
    private void begin0(Channel connected) {
        channel = connected;
        write0();
    }

    private void write0() {
        writing.set(false);
        Channel to = Objects.requireNonNull(channel);
        if (closed || successor != null) {
            handOver();
        }
        if (closed) {
            return;
        }
        boolean last = closing;
        boolean took = false;
        while (!cut && (last || to.isWritable())) {
            ByteBuf message = waiting.poll();
            if (message == null) {
                dropping.set(false);
                break;
            }
            waitingBytes.addAndGet(-cost(message.readableBytes()));
            to.write(message).addListener(onWritten);
            took = true;
        }
        if (took) {
            stalled = false;
            signalRoom();
        }
        if (last) {
            closed = true;
            if (!cut) {
                to.write(Unpooled.EMPTY_BUFFER);
            }
            to.flush();
            to.close();
        } else {
            to.flush();
        }
    }

    private void onWritten0(ChannelFuture written) {
        Throwable cause = written.cause();
        if (cause == null || isClosed()) {
            return;
        }
        if (cause instanceof ConnectionException || cause instanceof ClosedChannelException) {
            owner.log().debug("%s: a message to %s was lost: %s", owner.localAddress(), peer_addr, cause);
        } else {
            owner.log().warn("%s: a message to %s was not sent: %s", owner.localAddress(), peer_addr, cause);
        }
    }

    private ByteBuf hello(ByteBufAllocator memory) throws IOException {
        try (ByteBufOutputStream out = new ByteBufOutputStream(memory.buffer())) {
            out.write(cookie);
            out.writeShort(Version.version);
            owner.localAddress().writeTo(out);
            return out.buffer();
        }
    }

    private void onHello0(Channel from, ByteBuf message) throws IOException, ClassNotFoundException {
        IpAddress peer = new IpAddress();
        try (DataInputStream in = new DataInputStream(new ByteBufInputStream(message))) {
            byte[] found = new byte[cookie.length];
            in.readFully(found);
            short version = in.readShort();
            if (!Arrays.equals(found, cookie) || !Version.isBinaryCompatible(version)) {
                throw new IOException("not a member of JGroups " + Version.printVersion() + ": its version is "
                        + Version.print(version));
            }
            peer.readFrom(in);
        }
        peer_addr = peer;
        channel = from;
        owner.handleIncomingConnection(peer, this);
    }

    private final class Traffic extends ChannelInboundHandlerAdapter {
        private @Nullable Future<?> helloTimeout;

        @Override
        public void channelActive(ChannelHandlerContext context) throws IOException {
            if (madeHere && closing && waiting.isEmpty()) { // a hello would replace what has replaced this one
                context.close();
            } else if (madeHere) {
                context.write(hello(context.alloc()));
                begin0(context.channel());
            } else {
                helloTimeout = context.executor()
                        .schedule(() -> context.close(), owner.helloTimeoutMillis(), TimeUnit.MILLISECONDS);
            }
        }

        @Override
        public void channelRead(ChannelHandlerContext context, Object received) throws Exception {
            ByteBuf message = (ByteBuf) received;
            try {
                heard = true;
                if (helloTimeout != null) {
                    helloTimeout.cancel(false);
                    helloTimeout = null;
                    onHello0(context.channel(), message);
                } else if (message.isReadable()) {
                    updateLastAccessed();
                    owner.receive(peer_addr, new ByteBufInputStream(message), message.readableBytes());
                } else {
                    closed_gracefully = true;
                    closing = true;
                    context.close();
                }
            } finally {
                message.release();
            }
        }

        @Override
        public void channelWritabilityChanged(ChannelHandlerContext context) {
            if (channel != null && context.channel().isWritable()) {
                write0();
            }
        }

        @Override
        public void exceptionCaught(ChannelHandlerContext context, Throwable cause) {
            if (owner.logDetails()) {
                owner.log().debug(owner.localAddress() + ": the connection with " + peer_addr + " has failed", cause);
            }
            context.close();
        }

        @Override
        public void channelInactive(ChannelHandlerContext context) {
            closing = true;
            end();
            if (peer_addr != null) {
                owner.notifyConnectionClosed(PeerConnection.this);
            }
        }
    }
}
