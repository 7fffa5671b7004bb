package org.verbena.api.ring;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import io.netty.bootstrap.Bootstrap;
import io.netty.bootstrap.ServerBootstrap;
import io.netty.buffer.ByteBuf;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.util.concurrent.Future;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.channels.ClosedChannelException;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.api.RdmaChannel;
import org.verbena.api.RdmaEventLoopGroup;
import org.verbena.api.RdmaServerChannel;
import org.verbena.transport.MemoryDomain.Access;
import org.verbena.transport.RemoteMemory;
import org.verbena.transport.spi.Patience;

/** Two ends of a ring: nothing is lost or overwritten. A subclass names the provider. */
@Timeout(120)
public abstract class RecordRingSuite {
    private static final int CAPACITY = 1000;

    private RdmaEventLoopGroup group;
    private final AtomicInteger read = new AtomicInteger();
    private final AtomicReference<String> wrong = new AtomicReference<>();
    private RdmaChannel client;
    private RdmaChannel server;
    private RecordRing writer;
    private RecordRing reader;

    /** Which provider. */
    protected abstract String provider();

    @BeforeEach
    void connect() throws Exception {
        group = new RdmaEventLoopGroup(provider(), 2);
        CompletableFuture<RdmaChannel> accepted = new CompletableFuture<>();
        Channel listening = new ServerBootstrap()
                .group(group)
                .channel(RdmaServerChannel.class)
                .childHandler(new ChannelInboundHandlerAdapter() {
                    @Override
                    public void channelActive(ChannelHandlerContext context) {
                        accepted.complete((RdmaChannel) context.channel());
                    }
                })
                .bind("127.0.0.1", 0)
                .sync()
                .channel();
        client = (RdmaChannel) new Bootstrap()
                .group(group)
                .channel(RdmaChannel.class)
                .handler(new ChannelInboundHandlerAdapter())
                .connect(listening.localAddress())
                .sync()
                .channel();
        server = accepted.get(60, TimeUnit.SECONDS);
        writer = on(client, () -> new RecordRing(client, CAPACITY, 1 << 20, record -> {}));
        reader = on(server, () -> new RecordRing(server, CAPACITY, 0, this::check));
        client.pipeline().addLast(writer);
        server.pipeline().addLast(reader);
        on(client, () -> begin(writer, reader.token()));
        on(server, () -> begin(reader, writer.token()));
    }

    @AfterEach
    void close() {
        group.close();
    }

    private static boolean begin(RecordRing ring, RemoteMemory token) {
        ring.begin(token);
        return true;
    }

    private static <T> T on(Channel channel, Callable<T> what) throws Exception {
        return channel.eventLoop().submit(what).get(60, TimeUnit.SECONDS);
    }

    private static byte pattern(int number, int index) {
        return (byte) (number * 31 + index * 7 + (index >>> 8));
    }

    private void check(MemorySegment record) {
        int number = read.get();
        for (int i = 0; i < record.byteSize(); i++) {
            if (record.get(ValueLayout.JAVA_BYTE, i) != pattern(number, i)) {
                wrong.compareAndSet(null, "byte " + i + " of record " + number);
            }
        }
        read.incrementAndGet();
    }

    private Future<Void> send(int number, int bytes) {
        ByteBuf record = client.alloc().buffer(bytes, bytes);
        for (int i = 0; i < bytes; i++) {
            record.writeByte(pattern(number, i));
        }
        return writer.send(record);
    }

    private List<Future<Void>> send(int first, int count, Random random) throws Exception {
        return on(client, () -> {
            List<Future<Void>> sent = new ArrayList<>();
            for (int i = 0; i < count; i++) {
                sent.add(send(first + i, 1 + random.nextInt(writer.mostRecordBytes())));
            }
            return sent;
        });
    }

    private void awaitRead(int count) {
        Patience.until("all records have been read", () -> read.get() >= count);
    }

    @Test
    void recordsOfAllLengthsArriveInOrder() throws Exception {
        Random random = new Random(1);
        for (int i = 0; i < 20; i++) {
            for (Future<Void> sent : send(i * 100, 100, random)) {
                sent.sync();
            }
        }
        awaitRead(2000);
        assertThat(wrong.get()).isNull();
    }

    @Test
    void aReaderThatIsBehindLosesNothing() throws Exception {
        server.config().setAutoRead(false);
        List<Future<Void>> sent = send(0, 200, new Random(2));
        // They fill the ring, and the rest waits at the writer: no more is written than fits.
        sent.getFirst().sync();
        on(client, () -> sent.getLast().isDone());
        assertThat(sent.getLast().isDone()).isFalse();
        int before = read.get();
        server.config().setAutoRead(true);
        for (Future<Void> each : sent) {
            each.sync();
        }
        awaitRead(200);
        assertThat(before).isLessThan(200);
        assertThat(wrong.get()).isNull();
    }

    /** A record that does not fit before the end of the ring lies at its beginning, and those before it stay whole. */
    @Test
    void recordsThatDoNotFitBeforeTheEndLieAtTheBeginning() throws Exception {
        int longest = on(client, writer::mostRecordBytes);
        int sent = 0;
        for (int offset = 1; offset < 40; offset++) {
            int first = sent;
            int bytes = offset;
            for (Future<Void> each : on(
                    client,
                    () -> List.of(
                            send(first, longest), send(first + 1, bytes), send(first + 2, longest - bytes + 1)))) {
                each.sync();
            }
            sent += 3;
        }
        awaitRead(sent);
        assertThat(wrong.get()).isNull();
    }

    /** The peer's token is of no use once the ring is gone. */
    @Test
    void givesItsMemoryBackWhenItIsRemoved() throws Exception {
        on(server, () -> server.pipeline().remove(reader));
        on(client, () -> send(0, 10));
        assertThat(client.closeFuture().await(Patience.LIMIT.toMillis()))
                .as("a write to memory that is gone ends the connection")
                .isTrue();
        assertThat(read).hasValue(0);
    }

    @Test
    void moreThanMayWaitIsRefused() throws Exception {
        RecordRing narrow = on(server, () -> {
            RecordRing ring = new RecordRing(server, CAPACITY, 300, record -> {});
            server.pipeline().addLast(ring);
            ring.begin(writer.token());
            return ring;
        });
        client.config().setAutoRead(false);
        List<Future<Void>> sent = on(server, () -> {
            List<Future<Void>> all = new ArrayList<>();
            for (int i = 0; i < 6; i++) {
                all.add(narrow.send(server.alloc().buffer(250, 250).writeZero(250)));
            }
            return all;
        });
        for (Future<Void> each : sent.subList(0, 4)) {
            each.sync();
        }
        assertThat(sent.get(4).isDone()).isFalse();
        assertThat(sent.get(5).cause())
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("does not read");
    }

    @Test
    void aConnectionThatEndsFailsWhatWaits() throws Exception {
        server.config().setAutoRead(false);
        List<Future<Void>> sent = send(0, 50, new Random(3));
        server.close().sync();
        for (Future<Void> each : sent) {
            each.await();
        }
        assertThat(sent.getLast().cause()).isInstanceOf(ClosedChannelException.class);
    }

    @Test
    void refusesRecordsThatDoNotFitAndPeersThatBreakTheRules() throws Exception {
        assertThat(writer.mostRecordBytes()).isEqualTo(CAPACITY / 4);
        for (int bytes : new int[] {0, CAPACITY / 4 + 1}) {
            assertThat(on(client, () -> send(0, bytes)).cause()).isInstanceOf(IllegalArgumentException.class);
        }
        assertThatIllegalArgumentException().isThrownBy(() -> new RecordRing(client, 3, 0, record -> {}));
        assertThatIllegalArgumentException()
                .isThrownBy(
                        () -> writer.begin(new RemoteMemory(0, 1L << 31, 0, java.util.Set.of(Access.REMOTE_WRITE))));
        // Gives back what it was never given.
        client.writeWithImmediate(reader.token(), 0, 77).sync();
        server.closeFuture().sync();
    }
}
