package org.verbena.transport.verbs;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.IoEventLoop;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.verbena.transport.CompletionLoopOptions;
import org.verbena.transport.MemoryDomain;
import org.verbena.transport.MemoryDomain.Access;
import org.verbena.transport.ProviderException;
import org.verbena.transport.RegisteredMemory;
import org.verbena.transport.WorkCompletionException;
import org.verbena.transport.buffer.BufferPoolOptions;
import org.verbena.transport.buffer.OperationRegistration;
import org.verbena.transport.buffer.RegisteredBufferPool;
import org.verbena.transport.spi.EndpointOptions;
import org.verbena.transport.spi.Patience;
import org.verbena.transport.spi.RecordingEndpointHandler;

/** What the keys of messages by rendezvous cost, and what they open. */
@Timeout(120)
class OperationWindowsTest {
    private static final int MESSAGE_BYTES = 100_000;

    private final List<ByteBuf> buffers = new ArrayList<>();
    private VerbsProvider provider;
    private MultiThreadIoEventLoopGroup group;
    private RecordingEndpointHandler client;
    private @Nullable RegisteredBufferPool pool;

    @BeforeEach
    void resetStub() throws Exception {
        StubDevice.install();
    }

    private void connect(String family) {
        StubDevice.become(family);
        provider = new VerbsProvider();
        group = new MultiThreadIoEventLoopGroup(1, provider.newIoHandlerFactory(CompletionLoopOptions.DEFAULTS));
        IoEventLoop loop = group.next();
        client = new RecordingEndpointHandler("client", loop);
        provider.connect(loop, StubDevice.ROCE, EndpointOptions.DEFAULTS, client);
        client.awaitConnected();
    }

    @AfterEach
    void endLoop() {
        buffers.forEach(buffer -> Patience.until("nothing holds " + buffer, () -> buffer.refCnt() == 1));
        buffers.forEach(ByteBuf::release);
        if (pool != null) {
            pool.close();
        }
        Patience.await("the loop ended", group.shutdownGracefully(0, 5, TimeUnit.SECONDS));
        client.assertNoViolations();
        StubDevice.close(provider);
        Patience.until("all is given back", () -> !StubDevice.leaks().contains("ibv_m"));
    }

    private ByteBuf pooled() {
        RegisteredBufferPool known = pool;
        if (known == null) {
            MemoryDomain domain = client.call(endpoint -> endpoint.memoryDomain());
            known = new RegisteredBufferPool(domain, BufferPoolOptions.DEFAULTS);
            pool = known;
        }
        return keep(known.allocate(MESSAGE_BYTES, MESSAGE_BYTES));
    }

    private ByteBuf foreign() {
        return keep(Unpooled.directBuffer(MESSAGE_BYTES));
    }

    private ByteBuf keep(ByteBuf buffer) {
        buffers.add(buffer);
        return buffer;
    }

    /** As a message by rendezvous does it when it is advertised. */
    private RegisteredMemory open(ByteBuf message, int from, int bytes) {
        RegisteredMemory opened = client.call(endpoint -> OperationRegistration.register(
                message, from, bytes, endpoint.connectionMemory(), Set.of(Access.REMOTE_READ)));
        assertThat(opened).isNotNull();
        return opened;
    }

    private static void awaitOpen(RegisteredMemory memory) {
        Patience.until(
                "the key opens the message and nothing else",
                () -> StubDevice.opened(memory.remoteKey()).equals(memory.address() + " " + memory.lengthBytes()));
    }

    /** As it does when the peer has read it. */
    private void close(RegisteredMemory memory, ByteBuf message) {
        client.run(endpoint -> memory.close());
        Patience.until("the message is released", () -> message.refCnt() == 1);
        assertThat(StubDevice.opened(memory.remoteKey()))
                .as("what the key opens when the message is released")
                .isEmpty();
    }

    private static int count(String function) {
        List<String> calls = Arrays.asList(StubDevice.allCalls().split(" "));
        int at = calls.indexOf(function);
        return at < 0 ? 0 : Integer.parseInt(calls.get(at + 1));
    }

    private static List<Integer> commands() {
        return List.of(
                count("ibv_reg_mr"),
                count("ibv_dereg_mr"),
                count("stub_alloc_mw"),
                count("stub_dealloc_mw"),
                StubDevice.call("stub_binds"),
                StubDevice.call("stub_invalidations"));
    }

    /** Calls of ibv_reg_mr, ibv_dereg_mr, ibv_alloc_mw and ibv_dealloc_mw, then work requests, for each message. */
    @ParameterizedTest
    @CsvSource({
        "mlx5, true, 300, 0, 0, 1, 1", // more than a key has values
        "mlx5, false, 20, 1, 0, 1, 1",
        "mlx4, true, 20, 0, 0, 1, 1",
        "ionic, true, 20, 0, 1, 1, 0",
        "ionic, false, 20, 1, 1, 1, 0",
        "bnxt_re, true, 20, 1, 0, 0, 0",
        "irdma-roce, true, 20, 1, 0, 0, 0",
    })
    void costsFewCommandsAMessage(
            String family, boolean isPooled, int messages, int regions, int windows, int binds, int invalidations) {
        connect(family);
        ByteBuf message = isPooled ? pooled() : foreign();
        boolean hasWindows = binds > 0;
        List<Integer> before = List.of();
        for (int i = 0; i <= messages; i++) {
            RegisteredMemory memory = open(message, i, MESSAGE_BYTES - 2 * i);
            if (hasWindows) {
                awaitOpen(memory);
            }
            close(memory, message);
            if (i == 0) {
                before = commands();
            }
        }
        List<Integer> each = new ArrayList<>();
        List<Integer> after = commands();
        for (int i = 0; i < before.size(); i++) {
            assertThat((after.get(i) - before.get(i)) % messages).isZero();
            each.add((after.get(i) - before.get(i)) / messages);
        }
        assertThat(each).containsExactly(regions, regions, windows, windows, binds, invalidations);
    }

    /** Parts of a composite message, of which one is in the pool. */
    @Test
    void opensPartsOfACompositeInTheirRegions() {
        connect("mlx5");
        ByteBuf first = pooled();
        ByteBuf second = foreign();
        ByteBuf both = Unpooled.wrappedBuffer(
                first.retainedSlice(10, 1000).writerIndex(1000),
                second.retainedSlice(20, 1000).writerIndex(1000));
        int before = count("ibv_reg_mr");
        List<RegisteredMemory> parts = client.call(endpoint -> OperationRegistration.registerSges(
                both, 0, 2000, 4, endpoint.connectionMemory(), Set.of(Access.REMOTE_READ)));
        assertThat(count("ibv_reg_mr") - before).isOne();
        assertThat(parts).hasSize(2);
        assertThat(parts.get(0).address()).isEqualTo(first.memoryAddress() + 10);
        parts.forEach(OperationWindowsTest::awaitOpen);
        client.run(endpoint -> parts.forEach(RegisteredMemory::close));
        Patience.until("the message is released", () -> both.refCnt() == 1);
        both.release();
    }

    /** Many at once: the send queue has room for 16 bindings and invalidations. */
    @Test
    void keepsManyApart() {
        connect("mlx5");
        List<RegisteredMemory> all = new ArrayList<>();
        ByteBuf message = pooled();
        for (int round = 0; round < 3; round++) {
            for (int i = 0; i < 50; i++) {
                all.add(open(message, i * 100, 100));
            }
            all.forEach(OperationWindowsTest::awaitOpen);
            assertThat(all).extracting(RegisteredMemory::remoteKey).doesNotHaveDuplicates();
            client.run(endpoint -> all.forEach(RegisteredMemory::close));
            Patience.until("the message is released", () -> message.refCnt() == 1);
            all.clear();
        }
        assertThat(count("stub_dealloc_mw")).isPositive(); // no more than 16 are kept
    }

    /** A key is not used any more when its message is released, though the adapter is slow. */
    @Test
    void holdsTheMessageUntilItsKeyIsInvalid() {
        connect("mlx5");
        int number = StubDevice.lastNumber();
        ByteBuf message = pooled();
        RegisteredMemory memory = open(message, 0, 100);
        awaitOpen(memory);
        Patience.until("it is bound", () -> message.refCnt() == 2);
        StubDevice.call("stub_hold_sends", 1);
        client.run(endpoint -> memory.close());
        assertThat(StubDevice.call("stub_invalidations")).isOne();
        assertThat(message.refCnt()).isEqualTo(2);
        assertThat(client.<Boolean>call(endpoint -> memory.isGone())).isTrue();
        RegisteredMemory next = open(message, 200, 100);
        assertThat(next.remoteKey() >> 8).as("another window").isNotEqualTo(memory.remoteKey() >> 8);
        StubDevice.call("stub_hold_sends", 0);
        StubDevice.call("stub_complete", number, 0, 0);
        StubDevice.call("stub_complete", number, 0, 0);
        awaitOpen(next);
        close(next, message);
    }

    /** Closed before, while and after the connection ends, and where the adapter refuses to invalidate: all is back. */
    @ParameterizedTest
    @ValueSource(strings = {"before", "while", "after", "refused", "failed"})
    void givesEverythingBackWhenTheConnectionEnds(String when) {
        connect("mlx5");
        int number = StubDevice.lastNumber();
        ByteBuf message = pooled();
        ByteBuf other = foreign();
        List<RegisteredMemory> all = new ArrayList<>();
        for (int i = 0; i < 20; i++) {
            all.add(open(i % 2 == 0 ? message : other, i, 100));
        }
        all.forEach(OperationWindowsTest::awaitOpen);
        client.run(endpoint -> all.removeLast().close()); // so that one is spare
        switch (when) {
            case "refused" -> StubDevice.fail("local_inv", 12, 1);
            case "while", "failed" -> StubDevice.call("stub_hold_sends", 1);
            default -> {}
        }
        if (!when.equals("after")) {
            client.run(endpoint -> all.forEach(RegisteredMemory::close));
        }
        if (when.equals("failed")) {
            StubDevice.call("stub_complete", number, 10, 0); // IBV_WC_REM_ACCESS_ERR, whatever that would mean
        }
        if (when.equals("refused") || when.equals("failed")) {
            assertThat(client.awaitDisconnected())
                    .isInstanceOf(when.equals("failed") ? WorkCompletionException.class : ProviderException.class);
        } else {
            client.awaitPrepared().disconnect();
            assertThat(client.awaitDisconnected()).isNull();
        }
        all.forEach(RegisteredMemory::close);
        StubDevice.call("stub_hold_sends", 0);
        Patience.until("the messages are released", () -> message.refCnt() == 1 && other.refCnt() == 1);
    }

    /** Memory that a program registers is closed to the peer when close returns, as it says. */
    @Test
    void closesMemoryOfTheProgramAtOnce() {
        connect("mlx5");
        ByteBuf message = foreign();
        RegisteredMemory memory = client.call(endpoint -> endpoint.connectionMemory()
                .register(MemorySegment.ofBuffer(message.nioBuffer(0, 100)), Set.of(Access.REMOTE_READ)));
        awaitOpen(memory);
        memory.close();
        Patience.until("it is closed", memory::isGone);
        assertThat(StubDevice.opened(memory.remoteKey())).isEmpty();
        assertThat(StubDevice.call("stub_invalidations")).isZero();
    }
}
