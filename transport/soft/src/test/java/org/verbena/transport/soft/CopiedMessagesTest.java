package org.verbena.transport.soft;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.util.IllegalReferenceCountException;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.transport.MemoryDomain.Access;
import org.verbena.transport.RegisteredMemory;
import org.verbena.transport.spi.Endpoint;
import org.verbena.transport.spi.EndpointOptions;
import org.verbena.transport.spi.Patience;
import org.verbena.transport.spi.RecordingEndpointHandler;
import org.verbena.transport.spi.WorkRequest;

/** Messages that are copied into the socket's batch at once. */
@Timeout(240)
class CopiedMessagesTest {
    private static final int REST_BYTES = 16 << 10;
    private static final int MESSAGE_BYTES = 2 * Long.BYTES + REST_BYTES;

    private final ByteBuf rest = Unpooled.buffer(REST_BYTES).writeZero(REST_BYTES);
    private SoftFixture fixture;

    @BeforeEach
    void open() {
        fixture = new SoftFixture(SoftOptions.ofSystemProperties());
    }

    @AfterEach
    void close() {
        fixture.close();
        rest.release();
    }

    private static void greet(RecordingEndpointHandler from) {
        from.send(new WorkRequest(1).asSend(0, 0));
        from.awaitSend();
    }

    /** What TCP does not take counts as sent once it has taken it, and the handler learns of that. */
    @Test
    void whatTcpDoesNotTakeIsReportedOnceItDoes() throws IOException {
        try (RawPeer peer = RawPeer.connect(fixture.address).introduceAsOurs(false)) {
            RecordingEndpointHandler victim = fixture.awaitAccepted();
            victim.awaitConnected();
            greet(victim);
            int sent = victim.call(endpoint -> {
                int count = 0;
                do {
                    assertThat(endpoint.trySend(count, 0, rest, 0, REST_BYTES)).isTrue();
                    count++;
                    endpoint.flush();
                } while (endpoint.hasSentCopies());
                assertThat(endpoint.trySend(count, 0, rest, 0, REST_BYTES))
                        .as("behind bytes that wait")
                        .isFalse();
                return count;
            });
            int batchEnds = victim.batchEnds();
            assertThat(peer.readSegment().control()).isEqualTo(RawPeer.SEND);
            for (int i = 0; i < sent; i++) {
                RawPeer.Segment segment = peer.readSegment();
                assertThat(segment.ulpdu()).hasSize(18 + MESSAGE_BYTES);
                assertThat(segment.header().getInt(10)).as("message number").isEqualTo(2 + i);
                assertThat(segment.header().getLong(18)).isEqualTo(i);
            }
            Patience.until("the handler is called", () -> victim.batchEnds() > batchEnds);
            assertThat(victim.call(Endpoint::hasSentCopies)).isTrue();
            victim.awaitPrepared().disconnect();
        }
    }

    @Test
    void aMessageThatCannotBeReadKeepsNoBatch() {
        RecordingEndpointHandler first = fixture.connect(EndpointOptions.DEFAULTS);
        fixture.awaitAccepted();
        RecordingEndpointHandler second = fixture.connect(EndpointOptions.DEFAULTS);
        RecordingEndpointHandler server = fixture.awaitAccepted();
        first.awaitConnected();
        second.awaitConnected();
        RegisteredMemory sink = fixture.region(MESSAGE_BYTES, Access.LOCAL_WRITE);
        server.receive(0, sink, 0, MESSAGE_BYTES);
        greet(second); // the loop has a batch now
        server.awaitReceive();
        ByteBuf released = Unpooled.buffer(8).writeZero(8);
        released.release();
        boolean taken = first.call(endpoint -> {
            assertThatThrownBy(() -> endpoint.trySend(0, 0, released, 0, 8))
                    .isInstanceOf(IllegalReferenceCountException.class);
            return second.awaitPrepared().trySend(0, 0, rest, 0, 8);
        });
        assertThat(taken).as("the batch is there").isTrue();
        first.awaitPrepared().disconnect();
        second.awaitPrepared().disconnect();
    }

    @Test
    void whatWasNotFlushedIsNotSentAtTheEnd() throws IOException {
        try (RawPeer peer = RawPeer.connect(fixture.address).introduceAsOurs(false)) {
            RecordingEndpointHandler victim = fixture.awaitAccepted();
            victim.awaitConnected();
            greet(victim);
            assertThat(peer.readSegment().control()).isEqualTo(RawPeer.SEND);
            boolean taken = victim.call(endpoint -> {
                boolean copied = endpoint.trySend(1, 0, rest, 0, REST_BYTES);
                endpoint.disconnect();
                return copied;
            });
            assertThat(taken).isTrue();
            assertThat(peer.isEnded()).isTrue();
        }
    }

    /** Connections that flush make batches, and return them: those that do not flush get no more for it. */
    @Test
    void whatIsNotFlushedTakesNoMemory() {
        int connections = SoftIoHandler.MAX_IDLE_BATCHES + 4;
        RegisteredMemory sink = fixture.region((long) MESSAGE_BYTES * connections, Access.LOCAL_WRITE);
        List<RecordingEndpointHandler> clients = new ArrayList<>();
        List<RecordingEndpointHandler> servers = new ArrayList<>();
        for (int i = 0; i < connections; i++) {
            RecordingEndpointHandler client = fixture.connect(EndpointOptions.DEFAULTS);
            RecordingEndpointHandler server = fixture.awaitAccepted();
            client.awaitConnected();
            server.awaitConnected();
            server.receive(0, sink, (long) MESSAGE_BYTES * i, MESSAGE_BYTES);
            greet(client);
            server.awaitReceive();
            server.receive(1, sink, (long) MESSAGE_BYTES * i, MESSAGE_BYTES);
            clients.add(client);
            servers.add(server);
        }
        RecordingEndpointHandler flushing = fixture.connect(EndpointOptions.DEFAULTS);
        RecordingEndpointHandler flushingPeer = fixture.awaitAccepted();
        flushing.awaitConnected();
        flushingPeer.awaitConnected();
        for (int i = 0; i < connections; i++) {
            flushingPeer.receive(2 + i, sink, 0, MESSAGE_BYTES);
        }
        List<Integer> taken = new ArrayList<>();
        clients.getFirst()
                .run(
                        first -> { // all are of its loop
                            for (int i = 0; i < connections; i++) {
                                Endpoint other = flushing.awaitPrepared();
                                flushing.post(other, new WorkRequest(1).asSend(0, 0));
                                other.flush();
                                if (clients.get(i).awaitPrepared().trySend(i, 0, rest, 0, REST_BYTES)) {
                                    taken.add(i);
                                }
                            }
                            for (RecordingEndpointHandler client : clients) {
                                client.awaitPrepared().flush();
                            }
                        });
        assertThat(taken).hasSizeBetween(1, SoftIoHandler.MAX_IDLE_BATCHES);
        for (int i : taken) {
            assertThat(servers.get(i).awaitReceive().lengthBytes()).isEqualTo(MESSAGE_BYTES);
        }
        // All have come back.
        boolean again = clients.getFirst().call(endpoint -> endpoint.trySend(0, 0, rest, 0, REST_BYTES));
        assertThat(again).isTrue();
        clients.forEach(client -> client.awaitPrepared().disconnect());
        flushing.awaitPrepared().disconnect();
    }
}
