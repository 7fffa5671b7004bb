package org.verbena.transport.verbs;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.verbena.transport.MemoryDomain.Access;
import org.verbena.transport.RegisteredMemory;
import org.verbena.transport.WorkStatus;
import org.verbena.transport.spi.RecordingEndpointHandler;
import org.verbena.transport.spi.WorkRequest;

/** Adapters do what is posted behind a read while the read is under way, unless it has a fence. */
@Timeout(120)
class FencesTest extends LinkedPair {
    private static final int BYTES = 1024;
    private static final byte OLD = 1;
    private static final byte READ = 2;

    private RegisteredMemory region(RecordingEndpointHandler owner, byte with, Access... access) {
        MemorySegment memory = Arena.ofAuto().allocate(BYTES, Long.BYTES);
        memory.fill(with);
        RegisteredMemory region =
                owner.call(endpoint -> endpoint.memoryDomain().register(memory, Set.copyOf(Arrays.asList(access))));
        regions.add(region);
        return region;
    }

    private RegisteredMemory sink() {
        return region(client, OLD, Access.LOCAL_WRITE, Access.REMOTE_WRITE);
    }

    private RegisteredMemory table() {
        return region(server, READ, Access.REMOTE_READ);
    }

    private static WorkRequest readOf(RegisteredMemory sink, RegisteredMemory table) {
        WorkRequest read = new WorkRequest(1).asRead(1, 0, table.address(), table.remoteKey());
        read.buffers().add(sink, 0, BYTES);
        return read;
    }

    private void awaitSends(int count) {
        assertThat(client.awaitSends(count)).allMatch(done -> done.status() == WorkStatus.SUCCESS);
    }

    /** Both are in one chain. */
    @ParameterizedTest
    @CsvSource({
        "mlx5, true",
        "mlx5, false",
        "irdma-iwarp, true",
        "irdma-iwarp, false",
        "mana-rc, true",
        "cxgb4, true",
        "cxgb4, false"
    })
    void aSendBehindAReadTakesWhatWasReadIfItHasAFence(String family, boolean isFenced) {
        connect(family);
        RegisteredMemory sink = sink();
        RegisteredMemory table = table();
        RegisteredMemory received = region(server, (byte) 0, Access.LOCAL_WRITE);
        server.receive(9, received, 0, BYTES);
        WorkRequest send = new WorkRequest(1).asSend(2, isFenced ? WorkRequest.FENCE : 0);
        send.buffers().add(sink, 0, BYTES);
        client.run(endpoint -> {
            client.post(endpoint, readOf(sink, table));
            client.post(endpoint, send);
            endpoint.flush();
        });
        awaitSends(2);
        assertThat(server.awaitReceive().status()).isEqualTo(WorkStatus.SUCCESS);
        assertThat(received.segment().get(ValueLayout.JAVA_BYTE, BYTES - 1)).isEqualTo(isFenced ? READ : OLD);
        assertThat(sink.segment().get(ValueLayout.JAVA_BYTE, BYTES - 1)).isEqualTo(READ);
    }

    /** Chelsio's library looks at the fence of sends only, as {@link WorkRequest#FENCE} says. */
    @ParameterizedTest
    @CsvSource({"mlx5, true", "mlx5, false", "bnxt_re, true", "erdma, true", "cxgb4, false"})
    void aWriteBehindAReadTakesWhatWasReadIfItsFenceCounts(String family, boolean counts) {
        connect(family);
        RegisteredMemory sink = sink();
        RegisteredMemory table = table();
        RegisteredMemory written = region(server, (byte) 0, Access.LOCAL_WRITE, Access.REMOTE_WRITE);
        int fence = counts || family.equals("cxgb4") ? WorkRequest.FENCE : 0;
        WorkRequest write = new WorkRequest(1).asWrite(2, fence, written.address(), written.remoteKey());
        write.buffers().add(sink, 0, BYTES);
        client.run(endpoint -> {
            client.post(endpoint, readOf(sink, table));
            client.post(endpoint, write);
            endpoint.flush();
        });
        awaitSends(2);
        assertThat(written.segment().get(ValueLayout.JAVA_BYTE, BYTES - 1)).isEqualTo(counts ? READ : OLD);
    }

    /** Nor at that of a send of 16 bytes which it joins with a write. */
    @ParameterizedTest
    @ValueSource(strings = {"cxgb4", "mlx5"})
    void aFenceBehindAWriteCounts(String family) {
        connect(family);
        for (int i = 0; i < 20; i++) {
            RegisteredMemory sink = sink();
            RegisteredMemory table = table();
            RegisteredMemory written = region(server, (byte) 0, Access.LOCAL_WRITE, Access.REMOTE_WRITE);
            RegisteredMemory received = region(server, (byte) 0, Access.LOCAL_WRITE);
            server.receive(9, received, 0, BYTES);
            WorkRequest write = new WorkRequest(1).asWrite(2, 0, written.address(), written.remoteKey());
            write.buffers().add(table(), 0, BYTES);
            WorkRequest send = new WorkRequest(1).asSend(3, WorkRequest.FENCE);
            send.buffers().add(sink, 0, 16);
            client.run(endpoint -> {
                client.post(endpoint, readOf(sink, table));
                endpoint.flush();
                client.post(endpoint, write);
                client.post(endpoint, send);
                endpoint.flush();
            });
            awaitSends(3);
            assertThat(server.awaitReceive().status()).isEqualTo(WorkStatus.SUCCESS);
            assertThat(received.segment().get(ValueLayout.JAVA_BYTE, 15)).isEqualTo(READ);
        }
    }

    @Test
    void completionsKeepTheirOrder() {
        connect("mlx5");
        RegisteredMemory sink = sink();
        RegisteredMemory table = table();
        RegisteredMemory written = region(server, (byte) 0, Access.LOCAL_WRITE, Access.REMOTE_WRITE);
        client.run(endpoint -> {
            client.post(endpoint, readOf(sink, table));
            WorkRequest write = new WorkRequest(1).asWrite(2, 0, written.address(), written.remoteKey());
            write.buffers().add(sink, 0, BYTES);
            client.post(endpoint, write);
            client.post(endpoint, readOf(sink, table));
            endpoint.flush();
        });
        assertThat(client.awaitSends(3))
                .extracting(RecordingEndpointHandler.Completion::workId)
                .containsExactly(1L, 2L, 1L);
    }
}
