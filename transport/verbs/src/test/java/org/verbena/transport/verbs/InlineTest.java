package org.verbena.transport.verbs;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.verbena.transport.MemoryDomain.Access;
import org.verbena.transport.RegisteredMemory;
import org.verbena.transport.WorkStatus;
import org.verbena.transport.spi.RecordingEndpointHandler;
import org.verbena.transport.spi.WorkRequest;

/** What is posted inline arrives as it was then, also where a driver's library does not always look at the flag. */
@Timeout(120)
class InlineTest extends LinkedPair {
    /** What libcxgb4 looks for. */
    private static final int SEND_BYTES = 16;

    private RegisteredMemory memory(RecordingEndpointHandler side) {
        MemorySegment segment = Arena.global().allocate(256, 8);
        RegisteredMemory region = side.call(
                endpoint -> endpoint.memoryDomain().register(segment, Set.of(Access.LOCAL_WRITE, Access.REMOTE_WRITE)));
        regions.add(region);
        return region;
    }

    /** A write and a message in one flush. Both are inline if that is possible, as the protocol's frames are. */
    @ParameterizedTest
    @ValueSource(strings = {"mlx5", "mana-rc", "cxgb4"})
    void aWriteAndAMessageArrive(String family) {
        connect(family);
        RegisteredMemory source = memory(client);
        RegisteredMemory target = memory(server);
        RegisteredMemory inbox = memory(server);
        server.receive(1, inbox, 0, 64);
        source.segment().set(ValueLayout.JAVA_LONG, 0, 42);
        client.run(endpoint -> {
            int flags = endpoint.capabilities().maxInlineBytes() >= SEND_BYTES ? WorkRequest.INLINE : 0;
            WorkRequest write = new WorkRequest(1).asWrite(1, flags, target.address(), target.remoteKey());
            write.buffers().add(source, 0, Long.BYTES);
            assertThat(client.post(endpoint, write)).isTrue();
            WorkRequest send = new WorkRequest(1).asSend(2, flags);
            send.buffers().add(source, 0, SEND_BYTES);
            assertThat(client.post(endpoint, send)).isTrue();
            endpoint.flush();
        });
        assertThat(client.awaitSends(2))
                .extracting(RecordingEndpointHandler.Completion::status)
                .containsOnly(WorkStatus.SUCCESS);
        assertThat(server.awaitReceive().lengthBytes()).isEqualTo(SEND_BYTES);
        assertThat(target.segment().get(ValueLayout.JAVA_LONG, 0)).isEqualTo(42);
        assertThat(inbox.segment().get(ValueLayout.JAVA_LONG, 0)).isEqualTo(42);
    }

    /** A write that is too long to be inline goes with the message, by one doorbell. */
    @Test
    void libcxgb4MakesOneRequestOfAWriteAndAMessage() {
        connect("cxgb4");
        RegisteredMemory source = memory(client);
        RegisteredMemory target = memory(server);
        RegisteredMemory inbox = memory(server);
        server.receive(1, inbox, 0, 64);
        source.segment().set(ValueLayout.JAVA_LONG, 0, 43);
        int posts = StubDevice.call("stub_send_posts");
        int joined = StubDevice.call("stub_joined");
        client.run(endpoint -> {
            WorkRequest write = new WorkRequest(1).asWrite(1, 0, target.address(), target.remoteKey());
            write.buffers().add(source, 0, 256);
            assertThat(client.post(endpoint, write)).isTrue();
            WorkRequest send = new WorkRequest(1).asSend(2, WorkRequest.INLINE);
            send.buffers().add(source, 0, SEND_BYTES);
            assertThat(client.post(endpoint, send)).isTrue();
            endpoint.flush();
            assertThat(StubDevice.call("stub_send_posts")).isEqualTo(posts + 1);
        });
        assertThat(StubDevice.call("stub_joined")).isEqualTo(joined + 1);
        assertThat(client.awaitSends(2))
                .extracting(RecordingEndpointHandler.Completion::status)
                .containsOnly(WorkStatus.SUCCESS);
        assertThat(server.awaitReceive().lengthBytes()).isEqualTo(SEND_BYTES);
        assertThat(target.segment().get(ValueLayout.JAVA_LONG, 0)).isEqualTo(43);
    }
}
