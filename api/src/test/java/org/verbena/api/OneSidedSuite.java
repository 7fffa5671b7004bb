package org.verbena.api;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;
import static org.assertj.core.api.Assumptions.assumeThat;

import com.sun.management.ThreadMXBean;
import io.netty.bootstrap.ServerBootstrap;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.ChannelFuture;
import io.netty.channel.ChannelOption;
import io.netty.util.IllegalReferenceCountException;
import io.netty.util.concurrent.BlockingOperationException;
import io.netty.util.concurrent.Future;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.management.ManagementFactory;
import java.nio.ByteOrder;
import java.nio.channels.ClosedChannelException;
import java.nio.channels.NotYetConnectedException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.verbena.transport.CompletionLoopOptions;
import org.verbena.transport.MemoryDomain.Access;
import org.verbena.transport.RegisteredMemory;
import org.verbena.transport.RegisteredMemoryExhaustedException;
import org.verbena.transport.RemoteMemory;
import org.verbena.transport.buffer.RdmaByteBufAllocator;
import org.verbena.transport.buffer.RegisteredBufferPool;
import org.verbena.transport.buffer.RegisteredByteBuf;
import org.verbena.transport.provider.ProviderChoice;
import org.verbena.transport.spi.Patience;

/** Reads, writes and atomics on the peer's memory. */
public abstract class OneSidedSuite extends ApiSuite {
    private static final int TABLE_BYTES = 1 << 20;

    private Server server;
    private RdmaChannel client;
    private RdmaChannel peer;
    private Arena arena;
    private MemorySegment table;
    private RegisteredMemory region;
    private RemoteMemory token;

    @BeforeEach
    void exposeATable() {
        server = listen();
        client = connect(bootstrap().option(RdmaChannelOption.READ_DEPTH, 4), server);
        peer = server.next();
        arena = Arena.ofShared();
        table = arena.allocate(TABLE_BYTES, 4096);
        region = peer.memory()
                .register(table, Access.LOCAL_WRITE, Access.REMOTE_READ, Access.REMOTE_WRITE, remoteAtomicIfCapable());
        token = RemoteMemory.decode(region.remote().encode());
    }

    private Access remoteAtomicIfCapable() {
        return client.capabilities().atomics() ? Access.REMOTE_ATOMIC : Access.REMOTE_READ;
    }

    @AfterEach
    void closeEverything() {
        if (client != null) {
            done("closing", client.close());
        }
        if (server != null) {
            server.close();
        }
        if (region != null) {
            region.whenGone(arena::close);
            region.close();
        }
        Patience.until(
                "the table is free", () -> arena == null || !arena.scope().isAlive());
    }

    private void fillTable() {
        for (int i = 0; i < TABLE_BYTES; i++) {
            table.set(ValueLayout.JAVA_BYTE, i, patternByte(i, 5));
        }
    }

    @Test
    void readsIntoBuffersOfTheChannelsAllocator() {
        fillTable();
        ByteBuf into = client.alloc().buffer(1000, 1000);
        done("the read", client.read(token, 100, into));
        assertThat(into.readableBytes()).isEqualTo(1000);
        for (int i = 0; i < 1000; i++) {
            assertThat(into.getByte(i)).isEqualTo(patternByte(i + 100, 5));
        }
        assertThat(into.refCnt()).isEqualTo(1);
        into.release();
    }

    @Test
    void readsIntoForeignBuffers() {
        fillTable();
        for (ByteBuf into : List.of(Unpooled.buffer(777, 777), Unpooled.directBuffer(777, 777))) {
            into.writeByte(9);
            done("the read", client.read(token, 3, into));
            assertThat(into.readableBytes()).isEqualTo(777);
            assertThat(into.readByte()).isEqualTo((byte) 9);
            for (int i = 0; i < 776; i++) {
                assertThat(into.readByte()).isEqualTo(patternByte(i + 3, 5));
            }
            into.release();
        }
    }

    @Test
    void scattersAndGathers() {
        fillTable();
        List<ByteBuf> parts = new ArrayList<>();
        for (int i = 0; i < 40; i++) {
            parts.add(client.alloc().buffer(100 + i, 100 + i));
        }
        done("the read", client.read(token, 0, parts.toArray(ByteBuf[]::new)));
        int at = 0;
        for (ByteBuf part : parts) {
            assertThat(part.isWritable()).isFalse();
            for (int i = 0; i < part.readableBytes(); i++) {
                assertThat(part.getByte(i)).isEqualTo(patternByte(at++, 5));
            }
        }
        done("the write", client.flushingWrite(token, 500_000, parts.toArray(ByteBuf[]::new)));
        assertThat(table.asSlice(500_000, at).mismatch(table.asSlice(0, at))).isEqualTo(-1);
        parts.forEach(ByteBuf::release);
    }

    @Test
    void readsAndWritesBetweenRegions() {
        fillTable();
        try (Arena own = Arena.ofShared()) {
            MemorySegment mine = own.allocate(TABLE_BYTES, 4096);
            RegisteredMemory local =
                    client.memory().register(mine, Access.LOCAL_WRITE, Access.REMOTE_WRITE, Access.REMOTE_READ);
            done("a large read", client.read(token, 0, local, 0, TABLE_BYTES));
            assertThat(mine.mismatch(table)).isEqualTo(-1);
            mine.asSlice(1000, 5000).fill((byte) 77);
            done("a write", client.write(token, 2000, local, 1000, 5000));
            ByteBuf check = client.alloc().buffer(5000, 5000);
            done("reading it back", client.read(token, 2000, check));
            assertThat(check.getByte(0)).isEqualTo((byte) 77);
            assertThat(check.getByte(4999)).isEqualTo((byte) 77);
            assertThat(table.get(ValueLayout.JAVA_BYTE, 1999)).isEqualTo(patternByte(1999, 5));
            assertThat(table.get(ValueLayout.JAVA_BYTE, 7000)).isEqualTo(patternByte(7000, 5));
            check.release();
            local.close();
        }
    }

    @Test
    void aFlushingWriteIsThereWhenItSucceeds() {
        for (int i = 1; i < 200; i++) {
            ByteBuf from = pattern(client, i * 50, i);
            done("the write", client.flushingWrite(token, i, from));
            assertThat(table.get(ValueLayout.JAVA_BYTE, i)).isEqualTo(patternByte(0, i));
            assertThat(table.get(ValueLayout.JAVA_BYTE, i + i * 50 - 1)).isEqualTo(patternByte(i * 50 - 1, i));
            assertThat(from.refCnt()).isEqualTo(1);
            from.release();
        }
        ByteBuf foreign = Unpooled.wrappedBuffer(patternBytes(3000, 8));
        done("a write of foreign memory", client.flushingWrite(token, 0, foreign));
        assertThat(table.get(ValueLayout.JAVA_BYTE, 2999)).isEqualTo(patternByte(2999, 8));
        foreign.release();
    }

    @Test
    void aMessageArrivesAfterTheWritesBeforeIt() {
        for (int i = 0; i < 100; i++) {
            ByteBuf from = pattern(client, 10_000, i);
            client.write(token, 0, from);
            client.writeAndFlush(pattern(client, 1, i));
            inbox(peer).next();
            assertThat(table.get(ValueLayout.JAVA_BYTE, 0)).isEqualTo(patternByte(0, i));
            assertThat(table.get(ValueLayout.JAVA_BYTE, 9999)).isEqualTo(patternByte(9999, i));
            from.release();
        }
    }

    @Test
    void queuesReadsBeyondTheDepth() {
        fillTable();
        int count = 500;
        List<ByteBuf> buffers = new ArrayList<>();
        List<Future<Void>> reads = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            ByteBuf into = client.alloc().buffer(200, 200);
            buffers.add(into);
            reads.add(client.read(token, i, into));
        }
        for (int i = 0; i < count; i++) {
            done("a read", reads.get(i));
            assertThat(buffers.get(i).getByte(0)).isEqualTo(patternByte(i, 5));
            assertThat(buffers.get(i).getByte(199)).isEqualTo(patternByte(i + 199, 5));
            buffers.get(i).release();
        }
    }

    @Test
    void addsAndSwapsAtomically() {
        assumeThat(client.capabilities().atomics())
                .as("the provider has atomics")
                .isTrue();
        table.set(ValueLayout.JAVA_LONG, 64, 40);
        assertThat(done("adding", client.fetchAndAdd(token, 64, 2)).getNow()).isEqualTo(40);
        assertThat(done("swapping", client.compareAndSwap(token, 64, 42, -7)).getNow())
                .isEqualTo(42);
        assertThat(done("not swapping", client.compareAndSwap(token, 64, 42, 99))
                        .getNow())
                .isEqualTo(-7);
        assertThat(done("wrapping", client.fetchAndAdd(token, 64, Long.MIN_VALUE))
                        .getNow())
                .isEqualTo(-7);
        ByteBuf back = client.alloc().buffer(8, 8);
        done("reading it", client.read(token, 64, back));
        long value = ByteOrder.nativeOrder() == ByteOrder.LITTLE_ENDIAN ? back.readLongLE() : back.readLong();
        assertThat(value).isEqualTo(-7 + Long.MIN_VALUE);
        back.release();
        List<Future<Long>> adds = new ArrayList<>();
        for (int i = 0; i < 300; i++) {
            adds.add(client.fetchAndAdd(token, 128, 1));
        }
        for (int i = 0; i < 300; i++) {
            assertThat(done("adding", adds.get(i)).getNow()).isEqualTo(i);
        }
    }

    /** The pool has no block left for it, and the device registers no more: that atomic fails, and nothing else. */
    @Test
    void anAtomicFailsForWhoseResultThereIsNoMemory() throws Exception {
        if (!client.capabilities().atomics()) {
            return;
        }
        CountingProvider device =
                new CountingProvider(ProviderChoice.choose(provider(), null).provider()).mayRefuse();
        try (RdmaEventLoopGroup loops = new RdmaEventLoopGroup(
                new ProviderChoice(device, "refuses"), 1, null, CompletionLoopOptions.DEFAULTS)) {
            RdmaChannel adding = connect(bootstrap().clone(loops).option(RdmaChannelOption.READ_DEPTH, 4), server);
            RegisteredMemory counters = server.next().memory().register(table, Access.REMOTE_ATOMIC);
            RemoteMemory at = RemoteMemory.decode(counters.remote().encode());
            device.refusesMemory = true;
            List<ByteBuf> all = done("taking the pool", adding.eventLoop().submit(() -> takePool(adding)))
                    .getNow();
            table.set(ValueLayout.JAVA_LONG, 0, 40);
            assertThat(failure("adding", adding.fetchAndAdd(at, 0, 2)))
                    .isInstanceOf(RegisteredMemoryExhaustedException.class);
            assertThat(table.get(ValueLayout.JAVA_LONG, 0)).isEqualTo(40);
            assertThat(adding.isActive()).isTrue();
            device.refusesMemory = false;
            assertThat(done("adding", adding.fetchAndAdd(at, 0, 2)).getNow()).isEqualTo(40);
            all.forEach(ByteBuf::release);
            done("closing", adding.close());
            counters.close();
        }
    }

    /** All blocks of all sizes, on the channel's loop, which keeps some for itself. */
    private static List<ByteBuf> takePool(RdmaChannel channel) {
        RegisteredBufferPool pool = ((RdmaByteBufAllocator) channel.alloc()).pool();
        List<ByteBuf> all = new ArrayList<>();
        for (int bytes = 1 << 20; bytes >= 8; ) {
            try {
                all.add(pool.allocate(bytes, bytes));
            } catch (RegisteredMemoryExhaustedException none) {
                bytes /= 2;
            }
        }
        return all;
    }

    @Test
    void refusesAtomicsThatTheDeviceDoesNotHave() {
        assumeThat(client.capabilities().atomics())
                .as("the provider has atomics")
                .isFalse();
        RemoteMemory claimed =
                new RemoteMemory(token.address(), 64, token.key(), java.util.Set.of(Access.REMOTE_ATOMIC));
        assertThat(failure("adding", client.fetchAndAdd(claimed, 0, 1)))
                .isInstanceOf(UnsupportedOperationException.class);
        assertThat(failure("swapping", client.compareAndSwap(claimed, 0, 1, 2)))
                .isInstanceOf(UnsupportedOperationException.class);
        assertThat(client.isActive()).isTrue();
    }

    @Test
    void immediateDataReachesThePeersPipelineInOrder() {
        if (!client.capabilities().immediateData()) {
            ByteBuf from = pattern(client, 10, 1);
            assertThat(failure("immediate data", client.writeWithImmediate(token, 0, 1, from)))
                    .isInstanceOf(UnsupportedOperationException.class);
            assertThat(client.isActive()).isTrue();
            from.release();
            return;
        }
        for (int i = 0; i < 300; i++) {
            ByteBuf from = pattern(client, 100, i);
            Future<Void> write = client.writeWithImmediate(token, 0, i - 150, from);
            assertThat(Patience.take("the event", inbox(peer).events)).isEqualTo(new ImmediateDataEvent(i - 150, 100));
            assertThat(table.get(ValueLayout.JAVA_BYTE, 99)).isEqualTo(patternByte(99, i));
            done("the write", write);
            from.release();
        }
        done("immediate data alone", client.writeWithImmediate(token, 0, 7));
        assertThat(Patience.take("the event", inbox(peer).events)).isEqualTo(new ImmediateDataEvent(7, 0));
    }

    @Tag("lab-full")
    @Test
    void checksBoundsAndRightsBeforeTheDeviceDoes() {
        ByteBuf buffer = client.alloc().buffer(100, 100);
        assertThat(failure("beyond the end", client.read(token, TABLE_BYTES - 99, buffer)))
                .isInstanceOf(IndexOutOfBoundsException.class);
        assertThat(failure("before the start", client.read(token, -1, buffer)))
                .isInstanceOf(IndexOutOfBoundsException.class);
        buffer.writeZero(100);
        assertThat(failure("a write beyond the end", client.write(token, TABLE_BYTES - 99, buffer)))
                .isInstanceOf(IndexOutOfBoundsException.class);
        RemoteMemory readOnly =
                new RemoteMemory(token.address(), TABLE_BYTES, token.key(), java.util.Set.of(Access.REMOTE_READ));
        assertThat(failure("writing without the right", client.write(readOnly, 0, buffer)))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("REMOTE_WRITE");
        RemoteMemory writeOnly =
                new RemoteMemory(token.address(), TABLE_BYTES, token.key(), java.util.Set.of(Access.REMOTE_WRITE));
        buffer.clear();
        assertThat(failure("reading without the right", client.read(writeOnly, 0, buffer)))
                .hasMessageContaining("REMOTE_READ");
        assertThat(failure("an atomic without the right", client.fetchAndAdd(readOnly, 0, 1)))
                .hasMessageContaining("REMOTE_ATOMIC");
        RemoteMemory atomic =
                new RemoteMemory(token.address(), TABLE_BYTES, token.key(), java.util.Set.of(Access.REMOTE_ATOMIC));
        assertThat(failure("an atomic across words", client.fetchAndAdd(atomic, 4, 1)))
                .hasMessageContaining("multiple of 8");
        assertThat(failure("an atomic beyond the end", client.fetchAndAdd(atomic, TABLE_BYTES, 1)))
                .isInstanceOf(IndexOutOfBoundsException.class);
        assertThat(client.isActive()).isTrue();
        assertThat(buffer.refCnt()).isEqualTo(1);
        buffer.release();
        try (Arena own = Arena.ofShared()) {
            RegisteredMemory local = client.memory().register(own.allocate(64), Access.LOCAL_WRITE);
            assertThat(failure("outside the region", client.read(token, 0, local, 1, 64)))
                    .isInstanceOf(IndexOutOfBoundsException.class);
            local.close();
            assertThat(failure("a closed region", client.read(token, 0, local, 0, 64)))
                    .isInstanceOf(IllegalStateException.class);
        }
    }

    /**
     * What an operation fails with that the peer's adapter refuses.
     *
     * @return RemoteAccessException, unless the device does not tell
     */
    protected Class<? extends Throwable> refusal() {
        return RemoteAccessException.class;
    }

    @Test
    void aRefusalByThePeerEndsTheConnectionWithThatCause() {
        Inbox inbox = inbox(client);
        RemoteMemory wrongKey = new RemoteMemory(token.address(), TABLE_BYTES, token.key() ^ 0x5a5a00, token.access());
        ByteBuf into = client.alloc().buffer(100, 100);
        ByteBuf behind = client.alloc().buffer(100, 100);
        Future<Void> refused = client.read(wrongKey, 0, into);
        Future<Void> after = client.read(token, 0, behind);
        assertThat(failure("the read", refused)).isInstanceOf(refusal());
        done("the connection ends", client.closeFuture());
        assertThat(after.awaitUninterruptibly(Patience.LIMIT.toMillis())).isTrue();
        Patience.until("the cause is told", () -> !inbox.failures.isEmpty());
        assertThat(inbox.failures.get(0)).isInstanceOf(refusal());
        assertThat(into.refCnt()).isEqualTo(1);
        assertThat(failure("a read of a closed channel", client.read(token, 0, into)))
                .isInstanceOf(ClosedChannelException.class);
        into.release();
        behind.release();
    }

    @Test
    void aClosedRegionIsRefused() {
        region.close();
        assertThatThrownBy(region::remote)
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("closed");
        ByteBuf into = client.alloc().buffer(100, 100);
        assertThat(failure("reading closed memory", client.read(token, 0, into)))
                .isInstanceOf(refusal());
        into.release();
    }

    @Test
    void aCancelledReadKeepsItsBuffersUntilTheOutcome() {
        fillTable();
        List<ByteBuf> buffers = new ArrayList<>();
        for (int i = 0; i < 200; i++) {
            ByteBuf into = client.alloc().buffer(1000, 1000);
            buffers.add(into);
            Future<Void> read = client.read(token, 0, into);
            read.cancel(false);
        }
        ByteBuf last = client.alloc().buffer(10, 10);
        done("a read behind them", client.read(token, 0, last));
        Patience.until("all have let go", () -> buffers.stream().allMatch(buffer -> buffer.refCnt() == 1));
        buffers.forEach(ByteBuf::release);
        last.release();
    }

    @Test
    void goOutBehindTheMessagesFlushedBefore() {
        List<String> order = new CopyOnWriteArrayList<>();
        done("on the loop", client.eventLoop().submit(() -> {
            for (int i = 0; i < 5; i++) {
                client.writeAndFlush(pattern(client, 100, i)).addListener(sent -> order.add("message"));
            }
            ByteBuf into = client.alloc().buffer(8, 8);
            client.read(token, 0, into).addListener(read -> {
                order.add("read");
                into.release();
            });
        }));
        Patience.until("all are done", () -> order.size() == 6);
        assertThat(order.subList(0, 5)).containsOnly("message");
    }

    @Test
    void workWhileMessagesAreStopped() {
        try (Server silent = new Server(new ServerBootstrap()
                .childOption(ChannelOption.AUTO_READ, false)
                .childOption(RdmaChannelOption.RECEIVE_DEPTH, 4))) {
            RdmaChannel sender = connect(silent);
            RdmaChannel stopped = silent.next();
            RegisteredMemory exposed = stopped.memory().register(table, Access.REMOTE_READ);
            List<ChannelFuture> writes = new ArrayList<>();
            for (int i = 0; i < 20; i++) {
                writes.add(sender.write(pattern(sender, 2000, i)));
            }
            sender.flush();
            Patience.until("credits have run out", () -> !sender.isWritable());
            stopped.config().setAutoRead(true);
            ByteBuf into = sender.alloc().buffer(100, 100);
            done("the read", sender.read(exposed.remote(), 0, into));
            for (ChannelFuture write : writes) {
                done("a write", write);
            }
            into.release();
            done("closing", sender.close());
            exposed.close();
        }
    }

    @Test
    void everyFutureCompletesThoughAListenerClosesTheChannelAsItIsLost() {
        RdmaEventLoopGroup others = new RdmaEventLoopGroup(provider(), 1);
        ServerBootstrap serving = new ServerBootstrap()
                .childOption(ChannelOption.AUTO_READ, false)
                .childOption(RdmaChannelOption.RECEIVE_DEPTH, 4);
        try (Server silent = new Server(serving, others)) {
            RdmaChannel sender = connect(silent);
            RdmaChannel stopped = silent.next();
            RegisteredMemory exposed = stopped.memory().register(table, Access.REMOTE_READ);
            RemoteMemory there = exposed.remote();
            CompletableFuture<Boolean> asked = new CompletableFuture<>();
            stopped.eventLoop().execute(() -> {
                Patience.await("all is asked for", asked);
                stopped.deregister();
            });
            ByteBuf into = sender.alloc().buffer(8, 8);
            ByteBuf more = sender.alloc().buffer(8, 8);
            List<Future<?>> futures = new ArrayList<>();
            sender.eventLoop().execute(() -> {
                Future<?> read = sender.read(there, 0, into);
                read.addListener(done -> sender.close());
                futures.add(read);
                for (int i = 0; i < 10; i++) {
                    futures.add(sender.write(pattern(sender, 2000, i)));
                }
                sender.flush();
                futures.add(sender.read(there, 8, more));
                for (int i = 0; i < 10; i++) {
                    futures.add(sender.write(pattern(sender, 2000, i)));
                }
                sender.flush();
                asked.complete(true);
            });
            done("the channel closing", sender.closeFuture());
            assertThat(futures).hasSize(22);
            for (Future<?> future : futures) {
                assertThat(future.awaitUninterruptibly(Patience.LIMIT.toMillis()))
                        .isTrue();
            }
            into.release();
            more.release();
            exposed.close();
        } finally {
            others.close();
        }
    }

    @Tag("lab-full")
    @Test
    void aBadBufferFailsTheFutureAndLeaksNothing() {
        ByteBuf good = client.alloc().buffer(10, 10).writeZero(10);
        ByteBuf released = client.alloc().buffer(10, 10).writeZero(10);
        released.release();
        assertThat(failure("a write", client.write(token, 0, good, released)))
                .isInstanceOf(IllegalReferenceCountException.class);
        assertThat(failure("a flushing write", client.flushingWrite(token, 0, good, released)))
                .isInstanceOf(IllegalReferenceCountException.class);
        assertThat(failure("immediate data", client.writeWithImmediate(token, 0, 1, good, released)))
                .isInstanceOf(IllegalReferenceCountException.class);
        good.clear();
        assertThat(failure("a read", client.read(token, 0, good, released)))
                .isInstanceOf(IllegalReferenceCountException.class);
        ByteBuf[] hasNull = {good, null};
        assertThat(failure("a null buffer", client.read(token, 0, hasNull))).isInstanceOf(NullPointerException.class);
        assertThat(failure("a null token", client.read(null, 0, good))).isInstanceOf(NullPointerException.class);
        assertThat(failure("no region", client.write(token, 0, (RegisteredMemory) null, 0, 1)))
                .isInstanceOf(NullPointerException.class);
        assertThat(failure("an atomic nowhere", client.fetchAndAdd(null, 0, 1)))
                .isInstanceOf(NullPointerException.class);
        assertThat(good.refCnt()).isEqualTo(1);
        good.release();
        assertThat(client.isActive()).isTrue();
    }

    @Tag("lab-full")
    @Test
    void changesAfterTheCallHaveNoEffect() throws Exception {
        fillTable();
        ByteBuf[] into = {client.alloc().buffer(100, 100), client.alloc().buffer(100, 100)};
        ByteBuf[] given = into.clone();
        CompletableFuture<Void> go = new CompletableFuture<>();
        client.eventLoop().execute(() -> Patience.await("the caller", go));
        Future<Void> read = client.read(token, TABLE_BYTES - 200, given);
        given[0] = null;
        into[0].writeByte(1);
        go.complete(null);
        done("the read", read);
        for (int i = 0; i < 200; i++) {
            assertThat(into[i / 100].getByte(i % 100)).isEqualTo(patternByte(TABLE_BYTES - 200 + i, 5));
        }
        for (ByteBuf buffer : into) {
            assertThat(buffer.readableBytes()).isEqualTo(100);
            assertThat(buffer.refCnt()).isEqualTo(1);
            buffer.release();
        }
    }

    @Tag("lab-full")
    @Test
    void mustNotBeWaitedForOnTheLoop() {
        ByteBuf into = client.alloc().buffer(8, 8);
        Throwable refusal = done(
                        "on the loop",
                        client.eventLoop()
                                .submit(() -> catchThrowable(
                                        () -> client.read(token, 0, into).get())))
                .getNow();
        assertThat(refusal)
                .isInstanceOf(BlockingOperationException.class)
                .hasMessageContaining("do not wait on the event loop");
        Patience.until("the read is over", () -> into.refCnt() == 1);
        into.release();
    }

    @Tag("lab-full")
    @Test
    void failBeforeTheChannelIsRegistered() {
        RdmaChannel unregistered = new RdmaChannel();
        ByteBuf into = Unpooled.buffer(10, 10);
        assertThat(failure("reading", unregistered.read(token, 0, into))).isInstanceOf(NotYetConnectedException.class);
        assertThat(failure("adding", unregistered.fetchAndAdd(token, 0, 1)))
                .isInstanceOf(NotYetConnectedException.class);
        assertThat(into.refCnt()).isEqualTo(1);
        into.release();
        unregistered.unsafe().closeForcibly();
    }

    @Tag("lab-full")
    @Test
    void allocateNoMoreThanTheirFuture() throws Exception {
        RegisteredMemory local = client.memory().register(arena.allocate(4096, 4096), Access.LOCAL_WRITE);
        ByteBuf watched = client.alloc().buffer(64, 64).writeZero(64);
        // Without the leak detector, which takes notes of the buffers that it wraps.
        ByteBuf[] array = {watched instanceof RegisteredByteBuf ? watched : watched.unwrap()};
        assertThat(array[0]).isInstanceOf(RegisteredByteBuf.class);
        int count = 20;
        ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
        long min = Long.MAX_VALUE;
        for (int round = 0; round < 200; round++) {
            List<Future<Void>> lasts = new CopyOnWriteArrayList<>();
            long bytes = done("on the loop", client.eventLoop().submit(() -> {
                        long before = threads.getCurrentThreadAllocatedBytes();
                        for (int i = 1; i < count; i++) {
                            client.write(token, 0, local, 0, 64);
                            client.write(token, 0, array);
                        }
                        long after = threads.getCurrentThreadAllocatedBytes();
                        lasts.add(client.write(token, 0, array));
                        return after - before;
                    }))
                    .getNow();
            min = Math.min(min, bytes);
            done("the last write", lasts.getFirst());
        }
        watched.release();
        local.close();
        // A promise of Netty's with the fields of an operation.
        assertThat(min / (2.0 * (count - 1))).as("bytes an operation").isLessThan(130);
    }

    @Tag("lab-full")
    @Test
    void areRefusedBeforeTheConnectionIsUp() {
        RdmaChannel channel =
                (RdmaChannel) done("registering", bootstrap().register()).channel();
        ByteBuf into = Unpooled.buffer(10, 10);
        assertThat(failure("reading", channel.read(token, 0, into))).isInstanceOf(NotYetConnectedException.class);
        assertThat(into.refCnt()).isEqualTo(1);
        into.release();
        done("closing", channel.close());
        assertThatThrownBy(channel::memory).isInstanceOf(NotYetConnectedException.class);
    }
}
