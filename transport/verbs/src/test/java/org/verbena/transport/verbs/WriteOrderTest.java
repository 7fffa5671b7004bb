package org.verbena.transport.verbs;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Set;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.verbena.transport.MemoryDomain.Access;
import org.verbena.transport.RegisteredMemory;
import org.verbena.transport.spi.Endpoint;
import org.verbena.transport.spi.PeerGroup;
import org.verbena.transport.spi.WorkRequest;

/**
 * Of two writes by a peer, of which the second was posted when the first had completed, memory has the second: on a
 * device that makes use of relaxed ordering, for every kind of region.
 */
@Timeout(120)
class WriteOrderTest extends LinkedPair {
    private static final long FIRST = 1;
    private static final long SECOND = 2;

    private void connect(String family, String setting) {
        System.setProperty(RelaxedOrdering.SETTING, setting);
        try {
            connect(family);
        } finally {
            System.clearProperty(RelaxedOrdering.SETTING);
        }
        StubDevice.call("stub_reorder_writes", 1);
    }

    @AfterEach
    void writesInOrder() {
        StubDevice.call("stub_reorder_writes", 0);
    }

    private RegisteredMemory register(String kind, Endpoint endpoint, MemorySegment memory) {
        Set<Access> access = Set.of(Access.REMOTE_READ, Access.REMOTE_WRITE);
        return switch (kind) {
            case "device" -> endpoint.memoryDomain().register(memory, access);
            case "server" -> endpoint.join(new PeerGroup()).register(memory, access);
            case "connection" -> endpoint.connectionMemory().register(memory, access);
            case "operation" -> endpoint.connectionMemory().registerForOperation(memory, null, access);
            case "pooled" -> {
                RegisteredMemory pool = endpoint.memoryDomain().register(memory, Set.of(Access.LOCAL_WRITE));
                regions.add(pool);
                yield endpoint.connectionMemory().registerForOperation(memory, pool, access);
            }
            default -> throw new IllegalArgumentException(kind);
        };
    }

    /** With {@code all} the program has asked for what it then gets, which shows that the device does it. */
    @ParameterizedTest
    @CsvSource({
        "mlx5, on, device, 2",
        "mlx5, on, server, 2",
        "mlx5, on, connection, 2",
        "mlx5, on, operation, 2",
        "mlx5, on, pooled, 2",
        "bnxt_re, on, device, 2",
        "bnxt_re, on, connection, 2",
        "bnxt_re, on, pooled, 2",
        "erdma, on, connection, 2",
        "mlx5, all, device, 1",
        "mlx5, all, connection, 1",
        "mlx5, all, pooled, 1",
    })
    void theSecondWriteIsSeen(String family, String setting, String kind, long seen) {
        connect(family, setting);
        MemorySegment memory = Arena.global().allocate(Long.BYTES, Long.BYTES);
        RegisteredMemory target = server.call(endpoint -> register(kind, endpoint, memory));
        regions.add(target);
        write(target, FIRST);
        write(target, SECOND);
        assertThat(memory.get(ValueLayout.JAVA_LONG, 0)).isEqualTo(seen);
    }

    private void write(RegisteredMemory target, long value) {
        MemorySegment source = Arena.global().allocate(Long.BYTES, Long.BYTES);
        source.set(ValueLayout.JAVA_LONG, 0, value);
        RegisteredMemory from = client.call(endpoint -> endpoint.memoryDomain().register(source, Set.of()));
        regions.add(from);
        WorkRequest work = new WorkRequest(1).asWrite(value, 0, target.address(), target.remoteKey());
        work.buffers().add(from, 0, Long.BYTES);
        client.send(work);
        client.awaitSend();
    }
}
