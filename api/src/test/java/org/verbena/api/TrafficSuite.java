package org.verbena.api;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.bootstrap.Bootstrap;
import io.netty.bootstrap.ServerBootstrap;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.CompositeByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.Channel;
import io.netty.channel.ChannelFuture;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.ChannelInitializer;
import io.netty.util.internal.PlatformDependent;
import java.io.IOException;
import java.lang.management.BufferPoolMXBean;
import java.lang.management.ManagementFactory;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.ClosedChannelException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.SplittableRandom;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.Stream;
import java.util.zip.CRC32C;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.api.internal.memory.ChannelBuffers;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.RdmaException;
import org.verbena.transport.spi.Patience;

/**
 * Random traffic: several connections, both directions, all sizes, with cancelled writes, closes in good order and
 * abrupt ones, slow readers, and a peer in another process that is killed. Every message arrives once and in order with
 * the bytes it was sent with, or its future fails with a cause; each future is told once; and in the end all memory and
 * descriptors are back.
 *
 * <p>Properties: {@code verbena.traffic.seed} to have the same again (as far as threads allow),
 * {@code verbena.traffic.seconds} to run longer.
 */
public abstract class TrafficSuite extends ApiSuite {
    private static final int LINKS = 5;

    /** Links to the other process. */
    private static final int REMOTE_LINKS = 2;

    /** What may be under way at once on all links, so that the machine's memory suffices. */
    private static final long BUDGET_BYTES = 192L << 20;

    /** What Netty's and the JDK's own caches may keep. */
    private static final long TOLERATED_DIRECT_BYTES = 256 << 10;

    /** Content is cut out of this. */
    private static final byte[] BLOCK = new byte[1 << 20];

    private final Queue<String> violations = new ConcurrentLinkedQueue<>();

    /** A turn for each end of a link that has closed. */
    private final Semaphore ended = new Semaphore(0);

    private final AtomicLong bytesUnderWay = new AtomicLong();
    private final Totals totals = new Totals();
    private volatile boolean stopping;

    /** How long traffic goes on, in seconds. */
    protected int seconds() {
        return Integer.getInteger("verbena.traffic.seconds", 6);
    }

    /** The largest message. */
    protected int largestBytes() {
        return 64 << 20;
    }

    /** Sends, and receives, that each connection has room for. */
    protected int depth() {
        return 64;
    }

    /** How often the other process is killed, at the least, the last time at the end; each time costs its start. */
    protected int kills() {
        return 2;
    }

    private static final class Totals {
        final AtomicLong links = new AtomicLong();
        final AtomicLong delivered = new AtomicLong();
        final AtomicLong deliveredBytes = new AtomicLong();
        final AtomicLong written = new AtomicLong();
        final AtomicLong succeeded = new AtomicLong();
        final AtomicLong failed = new AtomicLong();
        final AtomicLong cancelled = new AtomicLong();
        final AtomicLong closes = new AtomicLong();
        final AtomicLong abruptCloses = new AtomicLong();
        final AtomicLong kills = new AtomicLong();
        final AtomicLong pauses = new AtomicLong();

        @Override
        public String toString() {
            return links + " links, " + written + " messages written: " + succeeded + " succeeded, " + failed
                    + " failed, "
                    + cancelled + " cancelled; " + delivered + " delivered with " + deliveredBytes + " bytes; " + closes
                    + " closes, " + abruptCloses + " abrupt ones, " + kills + " kills, " + pauses + " slow readers";
        }
    }

    /** A message from its write to its outcome. */
    private static final class Written {
        final int bytes;
        final int hash;
        ChannelFuture future;
        int told;

        Written(int bytes, int hash) {
            this.bytes = bytes;
            this.hash = hash;
        }
    }

    /** One way of a link: what was written at one end and has to come at the other. */
    private final class Direction {
        final String name;
        final Queue<Written> expected = new ConcurrentLinkedQueue<>();
        final Queue<Written> written = new ConcurrentLinkedQueue<>();
        final AtomicLong delivered = new AtomicLong();
        /** Whether its sender has closed the link in good order. */
        volatile boolean closedBySender;

        /** Whether either end has closed the link abruptly, perhaps while the other was closing in good order. */
        volatile boolean cut;

        /** What its ends were told, for the message of a violation. */
        final Queue<Throwable> failures = new ConcurrentLinkedQueue<>();

        Direction(String name) {
            this.name = name;
        }

        void arrived(ByteBuf message) {
            Written next = expected.poll();
            while (next != null && next.future.isCancelled()) {
                next = expected.poll();
            }
            int bytes = message.readableBytes();
            if (next == null) {
                violations.add(name + ": a message of " + bytes + " bytes that nobody has sent");
            } else if (next.bytes != bytes || next.hash != hash(message)) {
                violations.add(name + ": message " + delivered + " has " + bytes + " bytes and was sent with "
                        + next.bytes + (next.bytes == bytes ? ", but others" : ""));
            }
            delivered.incrementAndGet();
            totals.delivered.incrementAndGet();
            totals.deliveredBytes.addAndGet(bytes);
        }

        /** Both ends are closed: the books must balance. */
        void verify(boolean mayBeCut) {
            long succeeded = 0;
            for (Written message : written) {
                if (message.told != 1) {
                    violations.add(name + ": the future of a message of " + message.bytes + " bytes was told "
                            + message.told + " times");
                }
                if (message.future.isSuccess()) {
                    succeeded++;
                    totals.succeeded.incrementAndGet();
                } else if (message.future.isCancelled()) {
                    totals.cancelled.incrementAndGet();
                } else {
                    totals.failed.incrementAndGet();
                    Throwable cause = message.future.cause();
                    if (!(cause instanceof RdmaException || cause instanceof ClosedChannelException)) {
                        violations.add(name + ": a message failed with " + cause);
                    }
                }
            }
            if (closedBySender && !cut && !mayBeCut && delivered.get() < succeeded) {
                violations.add(name + ": its sender closed in good order, " + succeeded + " messages were sent and "
                        + delivered + " came; failures " + failures);
            }
        }
    }

    private static int hash(ByteBuf message) {
        CRC32C crc = new CRC32C();
        if (message.isReadable()) {
            for (ByteBuffer part : message.nioBuffers()) {
                crc.update(part);
            }
        }
        return (int) crc.getValue();
    }

    /** One end of a link: sends at random, and checks what comes. */
    private final class End extends ChannelInboundHandlerAdapter {
        private final SplittableRandom random;
        private RdmaChannel channel;
        private Direction out;
        private Direction in;
        private boolean mayClose;
        private boolean active;
        private final List<ChannelFuture> unflushed = new ArrayList<>();

        End(SplittableRandom random) {
            this.random = random;
        }

        /** Knows what to expect, from before the other end starts. */
        void prepare(Direction outbound, Direction inbound, boolean closes) {
            done("preparing", channel.eventLoop().submit(() -> {
                out = outbound;
                in = inbound;
                mayClose = closes;
            }));
        }

        void start() {
            channel.eventLoop().execute(() -> {
                active = true;
                step();
            });
        }

        @Override
        public void handlerAdded(ChannelHandlerContext context) {
            channel = (RdmaChannel) context.channel();
        }

        @Override
        public void channelRead(ChannelHandlerContext context, Object message) {
            ByteBuf buffer = (ByteBuf) message;
            try {
                in.arrived(buffer);
            } finally {
                buffer.release();
            }
        }

        @Override
        public void exceptionCaught(ChannelHandlerContext context, Throwable cause) {
            if (!(cause instanceof RdmaException)) {
                violations.add(channel + ": " + cause);
            }
            if (out != null && in != null) {
                out.failures.add(cause);
                in.failures.add(cause);
            }
            channel.close();
        }

        /** Ends the traffic of this end: what is written is sent. */
        private void settle() {
            active = false;
            channel.flush();
            unflushed.clear();
            channel.config().setAutoRead(true);
        }

        private void step() {
            if (!channel.isActive() || !active) {
                return;
            }
            if (stopping) {
                settle();
                return;
            }
            int dice = random.nextInt(1000);
            if (dice < 700) {
                send();
            } else if (dice < 780) {
                cancel();
            } else if (dice < 820) {
                pause();
            } else if (dice < 822 && mayClose) {
                close();
                return;
            }
            later(this::step, random.nextInt(4) == 0 ? random.nextInt(3000) : 0);
        }

        private void later(Runnable what, int micros) {
            try {
                channel.eventLoop().schedule(what, micros, TimeUnit.MICROSECONDS);
            } catch (RejectedExecutionException ending) {
                violations.add("the loop ended before its traffic");
            }
        }

        private void send() {
            int count = 1 + random.nextInt(8);
            for (int i = 0; i < count && channel.isWritable(); i++) {
                ChannelFuture future = write();
                if (future == null) {
                    break;
                }
                unflushed.add(future);
            }
            if (random.nextInt(4) != 0) {
                channel.flush();
                unflushed.clear();
            }
        }

        /**
         * Some of what has not been flushed, and so must never arrive; and one that has been, whose future cannot be
         * cancelled.
         */
        private void cancel() {
            ChannelFuture waiting = channel.isWritable() ? write() : null;
            if (waiting != null) {
                unflushed.add(waiting); // few steps leave something unflushed, too few for a short run in the guest
            }
            for (ChannelFuture future : unflushed) {
                if (random.nextBoolean() && !future.isDone() && !future.cancel(false)) {
                    violations.add(out.name + ": a write that was not flushed cannot be cancelled");
                }
            }
            ChannelFuture flushed = channel.isWritable() ? write() : null;
            channel.flush();
            unflushed.clear();
            if (flushed != null) {
                flushed.cancel(false);
            }
        }

        private ChannelFuture write() {
            int bytes = size();
            if (bytesUnderWay.addAndGet(bytes) > BUDGET_BYTES) {
                bytesUnderWay.addAndGet(-bytes);
                return null;
            }
            ByteBuf message = message(bytes);
            Written record = new Written(bytes, hash(message));
            record.future = channel.newPromise();
            out.written.add(record);
            out.expected.add(record);
            totals.written.incrementAndGet();
            record.future.addListener(told -> {
                record.told++;
                bytesUnderWay.addAndGet(-bytes);
            });
            return channel.write(message, (io.netty.channel.ChannelPromise) record.future);
        }

        /** Each power of two is as likely as the next, but for the largest, which take all the time. */
        private int size() {
            int bits = random.nextInt(1, 32 - Integer.numberOfLeadingZeros(largestBytes()));
            if (bits > 18 && random.nextInt(20) != 0) {
                bits = random.nextInt(16);
            }
            return switch (random.nextInt(20)) {
                case 0 -> 0;
                case 1 -> 1 << bits;
                default -> random.nextInt(Math.min(largestBytes(), 1 << bits));
            };
        }

        private ByteBuf message(int bytes) {
            if (bytes == 0) {
                return Unpooled.EMPTY_BUFFER;
            }
            switch (random.nextInt(10)) {
                case 0 -> {
                    return fill(Unpooled.buffer(bytes), bytes);
                }
                case 1 -> {
                    return fill(Unpooled.directBuffer(bytes), bytes);
                }
                case 2 -> {
                    CompositeByteBuf whole = channel.alloc().compositeDirectBuffer(16);
                    int left = bytes;
                    int parts = random.nextInt(1, 6);
                    for (int i = 1; i <= parts && left > 0; i++) {
                        int part = i == parts ? left : random.nextInt(1, left + 1);
                        whole.addComponent(true, fill(channel.alloc().directBuffer(part), part));
                        left -= part;
                    }
                    return whole;
                }
                case 3 -> {
                    ByteBuf larger = fill(channel.alloc().directBuffer(bytes + 100), bytes + 100);
                    ByteBuf slice = larger.retainedSlice(50, bytes);
                    larger.release();
                    return slice;
                }
                default -> {
                    return fill(channel.alloc().directBuffer(bytes), bytes);
                }
            }
        }

        private ByteBuf fill(ByteBuf buffer, int bytes) {
            int left = bytes;
            while (left > 0) {
                int from = random.nextInt(BLOCK.length);
                int part = Math.min(left, BLOCK.length - from);
                buffer.writeBytes(BLOCK, from, part);
                left -= part;
            }
            return buffer;
        }

        private void pause() {
            totals.pauses.incrementAndGet();
            channel.config().setAutoRead(false);
            later(() -> channel.config().setAutoRead(true), random.nextInt(60_000));
        }

        private void close() {
            active = false;
            if (random.nextInt(4) == 0) {
                totals.abruptCloses.incrementAndGet();
                out.cut = true;
                in.cut = true;
                channel.deregister();
            } else {
                totals.closes.incrementAndGet();
                out.closedBySender = true;
                channel.close();
            }
        }
    }

    /** Two ends, or one whose other sends everything back. */
    private final class Link {
        final End client;
        final End server;
        final Direction there;
        final Direction back;

        Link(int number, End client, End server) {
            this.client = client;
            this.server = server;
            client.channel.closeFuture().addListener(closed -> ended.release());
            if (server != null) {
                server.channel.closeFuture().addListener(closed -> ended.release());
            }
            String name = "link " + number + " of " + client.channel.localAddress();
            there = new Direction(name + " there");
            back = server == null ? there : new Direction(name + " back");
            client.prepare(there, back, server != null);
            if (server != null) {
                server.prepare(back, there, true);
                server.start();
            }
            client.start();
            totals.links.incrementAndGet();
        }

        boolean isOver() {
            return !client.channel.isOpen() && (server == null || !server.channel.isOpen());
        }

        void awaitEnd() {
            done("the end of " + there.name, client.channel.closeFuture());
            if (server != null) {
                done("the end of " + back.name, server.channel.closeFuture());
            }
            // The listeners of the last futures, and the last messages, are behind the close on the loops.
            for (End end : server == null ? List.of(client) : List.of(client, server)) {
                done("a turn of the loop", end.channel.eventLoop().submit(() -> {}));
            }
        }

        /** Nobody writes any more at either end: waits until all that was written is accounted for. */
        void drain() {
            for (End end : List.of(client, server)) {
                done("the last step", end.channel.eventLoop().submit(() -> {
                    if (end.channel.isActive()) {
                        end.settle();
                    }
                }));
            }
            for (Direction direction : List.of(there, back)) {
                for (Written message : direction.written) {
                    assertThat(message.future.awaitUninterruptibly(Patience.LIMIT.toMillis() * 3))
                            .as("%s: a future of %s", direction.name, message.bytes)
                            .isTrue();
                }
            }
        }

        void verify() {
            there.verify(server == null || back.closedBySender || !there.closedBySender);
            if (server != null) {
                back.verify(there.closedBySender || !back.closedBySender);
            }
        }
    }

    @Test
    @Timeout(900)
    void everyMessageArrivesOnceAndInOrderOrFailsWithACause() throws Exception {
        long seed = Long.getLong("verbena.traffic.seed", System.nanoTime());
        try {
            carryRandomTraffic(seed);
        } catch (Throwable failure) {
            throw new AssertionError(
                    "on " + provider() + " at " + host() + " with -Dverbena.traffic.seed=" + seed + ": " + totals,
                    failure);
        }
        if (Integer.getInteger("verbena.traffic.seconds") != null) {
            System.out.println("traffic on " + provider() + ": " + totals);
        }
    }

    private void carryRandomTraffic(long seed) throws Exception {
        SplittableRandom random = new SplittableRandom(seed);
        random.nextBytes(BLOCK);
        long descriptorsBefore = descriptors();
        long directBefore = directBytes();
        long registeredBefore = registeredBeyondPools();
        long usedBefore = ChannelBuffers.usedBytes();
        traffic(random);
        assertThat(violations).isEmpty();
        assertThat(totals.succeeded.get() + totals.failed.get() + totals.cancelled.get())
                .isEqualTo(totals.written.get());
        assertThat(totals.delivered).hasPositiveValue();
        assertThat(totals.cancelled).hasPositiveValue();
        assertThat(bytesUnderWay).hasValue(0);

        group.close();
        Patience.until("all registered buffers are home", () -> ChannelBuffers.usedBytes() <= usedBefore);
        Patience.until("nothing else is registered", () -> registeredBeyondPools() <= registeredBefore);
        Patience.until("descriptors are closed", () -> descriptors() <= descriptorsBefore);
        // What a loop has for itself goes with it.
        group = new RdmaEventLoopGroup(provider(), 1);
        AtomicLong direct = new AtomicLong();
        try {
            Patience.until("direct memory is free", () -> {
                System.gc();
                direct.set(directBytes());
                return direct.get() <= directBefore + TOLERATED_DIRECT_BYTES;
            });
        } catch (AssertionError kept) {
            throw new AssertionError("direct memory: " + directBefore + " bytes before, " + direct + " after", kept);
        }
    }

    private void traffic(SplittableRandom random) throws Exception {
        BlockingQueue<End> accepted = new LinkedBlockingQueue<>();
        RdmaServerChannel server = (RdmaServerChannel) done(
                        "listening",
                        new ServerBootstrap()
                                .group(group)
                                .channel(RdmaServerChannel.class)
                                .childOption(RdmaChannelOption.RECEIVE_DEPTH, depth())
                                .childOption(RdmaChannelOption.SEND_DEPTH, depth())
                                .childHandler(new ChannelInitializer<>() {
                                    @Override
                                    protected void initChannel(Channel accepting) {
                                        End end = new End(random.split());
                                        accepting.pipeline().addLast(end);
                                        accepted.add(end);
                                    }
                                })
                                .bind(host(), 0))
                .channel();
        TrafficPeer peer = TrafficPeer.start(provider(), host());
        try {
            List<Link> links = new ArrayList<>();
            List<Link> remoteLinks = new ArrayList<>();
            int number = 0;
            long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(seconds());
            long nextKill = nextKill(random);
            while (violations.isEmpty() && (System.nanoTime() - deadline < 0 || totals.kills.get() < kills() - 1)) {
                for (int i = links.size() - 1; i >= 0; i--) {
                    if (links.get(i).isOver()) {
                        end(links.remove(i));
                    }
                }
                while (links.size() < LINKS) {
                    End client = connect(random, server.localAddress());
                    End other = Patience.take("the other end", accepted);
                    links.add(new Link(number++, client, other));
                }
                while (remoteLinks.size() < REMOTE_LINKS) {
                    remoteLinks.add(new Link(number++, connect(random, peer.address()), null));
                }
                if (kills() > 1 && System.nanoTime() - nextKill > 0) {
                    kill(peer, remoteLinks);
                    peer = TrafficPeer.start(provider(), host());
                    nextKill = nextKill(random);
                }
                ended.tryAcquire(5, TimeUnit.MILLISECONDS);
            }
            assertThat(violations).isEmpty();
            kill(peer, remoteLinks);
            stopping = true;
            links.forEach(Link::drain);
            for (Link link : links) {
                if (!link.isOver()) {
                    link.there.closedBySender |= link.client.channel.isActive() && link.server.channel.isActive();
                    link.client.channel.close();
                }
            }
            links.forEach(this::end);
        } finally {
            stopping = true;
            peer.kill();
        }
        done("the server closing", server.close());
    }

    private void kill(TrafficPeer peer, List<Link> itsLinks) {
        peer.kill();
        totals.kills.incrementAndGet();
        itsLinks.forEach(this::end);
        itsLinks.clear();
    }

    private long nextKill(SplittableRandom random) {
        return System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(random.nextInt(500, 2000));
    }

    /**
     * Tries again when the device gives up: kernels do so after seconds, within which a slow machine may not have
     * reached the peer.
     */
    private End connect(SplittableRandom random, InetSocketAddress address) {
        long deadline = System.nanoTime() + Patience.LIMIT.toNanos();
        while (true) {
            End end = new End(random.split());
            ChannelFuture connecting = new Bootstrap()
                    .group(group)
                    .channel(RdmaChannel.class)
                    .option(RdmaChannelOption.RECEIVE_DEPTH, depth())
                    .option(RdmaChannelOption.SEND_DEPTH, depth())
                    .handler(end)
                    .connect(address)
                    .awaitUninterruptibly();
            if (!(connecting.cause() instanceof ConnectionException) || System.nanoTime() - deadline > 0) {
                done("connecting", connecting);
                return end;
            }
        }
    }

    private void end(Link link) {
        link.awaitEnd();
        link.verify();
    }

    /** Those of the memory of pools, which stays, do not count. */
    private static long descriptors() {
        try (Stream<Path> open = Files.list(Path.of("/proc/self/fd"))) {
            return open.filter(descriptor -> !isPools(descriptor)).count();
        } catch (IOException noProc) {
            throw new AssertionError(noProc);
        }
    }

    private static boolean isPools(Path descriptor) {
        try {
            return Files.readSymbolicLink(descriptor).toString().startsWith("/memfd:verbena-buffers");
        } catch (IOException closed) {
            return false;
        }
    }

    /** The JDK's direct buffers, and Netty's, which the JDK does not know. */
    private static long directBytes() {
        long nettys = Math.max(0, PlatformDependent.usedDirectMemory());
        return nettys
                + ManagementFactory.getPlatformMXBeans(BufferPoolMXBean.class).stream()
                        .filter(pool -> pool.getName().equals("direct"))
                        .mapToLong(BufferPoolMXBean::getMemoryUsed)
                        .sum();
    }

    /** What is registered and not in the pools, which keep what is free for some time. */
    private long registeredBeyondPools() {
        ProviderStatistics now = group.providerStatistics();
        return now.loops().registeredBytes()
                - now.sendBuffers().registeredBytes()
                - now.receiveBuffers().registeredBytes();
    }
}
