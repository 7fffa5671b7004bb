package org.verbena.transport.soft;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.ValueLayout;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.transport.MemoryDomain.Access;
import org.verbena.transport.RegisteredMemory;
import org.verbena.transport.WorkStatus;
import org.verbena.transport.spi.EndpointOptions;
import org.verbena.transport.spi.RecordingEndpointHandler;
import org.verbena.transport.spi.WorkRequest;

/**
 * Large payload is read from the socket into its destination; only what shares a system call with a header is copied.
 */
@Timeout(240)
class DirectPlacementTest {
    private static final int BYTES = 8 << 20;

    /** 4 KiB of each FPDU of nearly 64 KiB come with its header. */
    private static final int MAX_COPIED = BYTES / 12;

    /** The first of several messages is not predicted. */
    private static final int FIRST_BYTES = 256 << 10;

    @Test
    void readsLargeReadResponsesInPlace() {
        try (SoftFixture fixture =
                new SoftFixture(SoftOptions.ofSystemProperties().with(o -> o.crc = false))) {
            RegisteredMemory memory = filled(fixture);
            RecordingEndpointHandler client = fixture.connect(EndpointOptions.DEFAULTS);
            fixture.awaitAccepted().awaitConnected();
            client.awaitConnected();
            client.send(
                    over(new WorkRequest(1).asRead(1, 0, memory.address(), memory.remoteKey()), memory, BYTES, BYTES));
            assertThat(client.awaitSend().status()).isEqualTo(WorkStatus.SUCCESS);
            checkSecondHalf(memory);
            assertThat(copiedBytes(client)).isBetween(1L, (long) MAX_COPIED);
        }
    }

    @Test
    void readsLargeWritesInPlaceOnceTheyKeepComing() {
        try (SoftFixture fixture =
                new SoftFixture(SoftOptions.ofSystemProperties().with(o -> o.crc = false))) {
            RegisteredMemory memory = filled(fixture);
            RecordingEndpointHandler client = fixture.connect(EndpointOptions.DEFAULTS);
            RecordingEndpointHandler server = fixture.awaitAccepted();
            server.awaitConnected();
            client.awaitConnected();
            client.send(over(
                    new WorkRequest(1).asWrite(1, 0, memory.address() + BYTES, memory.remoteKey()), memory, 0, BYTES));
            // Its response says that the write before it is in place.
            client.send(over(new WorkRequest(1).asRead(2, 0, memory.address(), memory.remoteKey()), memory, 0, 8));
            client.awaitSends(2).forEach(done -> assertThat(done.status()).isEqualTo(WorkStatus.SUCCESS));
            checkSecondHalf(memory);
            assertThat(copiedBytes(server)).isBetween(1L, (long) MAX_COPIED + FIRST_BYTES);
        }
    }

    @Test
    void readsLargeSendsInPlaceOnceTheyKeepComing() {
        int size = 63 << 10;
        int count = BYTES / size;
        try (SoftFixture fixture =
                new SoftFixture(SoftOptions.ofSystemProperties().with(o -> o.crc = false))) {
            RegisteredMemory memory = filled(fixture);
            RecordingEndpointHandler client = fixture.connect(EndpointOptions.DEFAULTS);
            RecordingEndpointHandler server = fixture.awaitAccepted();
            server.awaitConnected();
            client.awaitConnected();
            for (int i = 0; i < count; i++) {
                server.receive(i, memory, BYTES + (long) i * size, size);
                client.send(over(new WorkRequest(1).asSend(i, 0), memory, (long) i * size, size));
                client.awaitSend();
                assertThat(server.awaitReceive().lengthBytes()).isEqualTo(size);
            }
            assertThat(memory.segment()
                            .asSlice(0, (long) count * size)
                            .mismatch(memory.segment().asSlice(BYTES, (long) count * size)))
                    .isEqualTo(-1);
            assertThat(copiedBytes(server)).isBetween(1L, (long) MAX_COPIED + size);
        }
    }

    private static RegisteredMemory filled(SoftFixture fixture) {
        RegisteredMemory memory =
                fixture.region(2L * BYTES, Access.LOCAL_WRITE, Access.REMOTE_WRITE, Access.REMOTE_READ);
        for (long i = 0; i < BYTES; i += 4) {
            memory.segment().set(ValueLayout.JAVA_INT, i, (int) i * 0x01010107);
        }
        return memory;
    }

    private static void checkSecondHalf(RegisteredMemory memory) {
        assertThat(memory.segment().asSlice(0, BYTES).mismatch(memory.segment().asSlice(BYTES)))
                .isEqualTo(-1);
    }

    private static WorkRequest over(WorkRequest request, RegisteredMemory memory, long offset, int length) {
        request.buffers().add(memory, offset, length);
        return request;
    }

    private static long copiedBytes(RecordingEndpointHandler of) {
        return of.call(endpoint -> ((SoftEndpoint) endpoint).copiedBytes());
    }
}
