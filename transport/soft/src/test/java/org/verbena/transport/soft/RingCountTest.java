package org.verbena.transport.soft;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;

import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.transport.MemoryDomain.Access;
import org.verbena.transport.RegisteredMemory;
import org.verbena.transport.soft.uring.RingLoop;
import org.verbena.transport.soft.uring.SocketIo;
import org.verbena.transport.spi.Endpoint;
import org.verbena.transport.spi.EndpointOptions;
import org.verbena.transport.spi.Patience;
import org.verbena.transport.spi.RecordingEndpointHandler;
import org.verbena.transport.spi.WorkRequest;

/** With many connections one system call carries the messages of many. */
@Timeout(240)
class RingCountTest {
    private static final int CONNECTIONS = 1_000;
    private static final int ROUNDS = 20;
    private static final int BYTES = 64;

    /** Of both ends together; NIO makes two at each. */
    private static final double MAX_CALLS_AN_ECHO = 0.2;

    @Test
    void thousandConnectionsShareTheirSystemCalls() {
        assumeThat(SocketIo.unavailabilityCause()).isNull();
        try (SoftFixture fixture =
                new SoftFixture(SoftOptions.ofSystemProperties().with(o -> o.io = SoftOptions.Io.IO_URING))) {
            RingLoop ring = Objects.requireNonNull(fixture.ring());
            RegisteredMemory memory = fixture.region(BYTES, Access.LOCAL_WRITE);
            List<RecordingEndpointHandler> clients = new ArrayList<>();
            List<RecordingEndpointHandler> servers = new ArrayList<>();
            for (int i = 0; i < CONNECTIONS; i++) {
                RecordingEndpointHandler client = fixture.connect(EndpointOptions.DEFAULTS);
                servers.add(fixture.awaitAccepted());
                client.awaitConnected();
                servers.getLast().awaitConnected();
                clients.add(client);
            }
            long calls = 0;
            for (int round = 0; round < ROUNDS; round++) {
                calls += exchange(fixture, ring, memory, clients, servers);
                calls += exchange(fixture, ring, memory, servers, clients);
            }
            double each = (double) calls / (ROUNDS * CONNECTIONS);
            System.out.println(each + " system calls an echo");
            assertThat(each).isLessThanOrEqualTo(MAX_CALLS_AN_ECHO);
        }
    }

    /** A message over each connection; returns the system calls from the first send to the last arrival. */
    private static long exchange(
            SoftFixture fixture,
            RingLoop ring,
            RegisteredMemory memory,
            List<RecordingEndpointHandler> from,
            List<RecordingEndpointHandler> to) {
        to.forEach(handler -> handler.receive(1, memory, 0, BYTES));
        long before = ring.enters();
        Patience.await(
                "sends",
                fixture.loop.submit(() -> from.forEach(handler -> {
                    Endpoint endpoint = handler.awaitPrepared();
                    WorkRequest work = new WorkRequest(1).asSend(1, 0);
                    work.buffers().add(memory, 0, BYTES);
                    assertThat(handler.post(endpoint, work)).isTrue();
                    endpoint.flush();
                })));
        to.forEach(RecordingEndpointHandler::awaitReceive);
        long calls = ring.enters() - before;
        from.forEach(RecordingEndpointHandler::awaitSend);
        return calls;
    }
}
