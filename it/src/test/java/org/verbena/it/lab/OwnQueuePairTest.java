package org.verbena.it.lab;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import java.net.InetSocketAddress;
import java.util.Objects;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.cm.CmEvent;
import org.verbena.cm.CmEventType;
import org.verbena.cm.CmException;
import org.verbena.cm.CmId;
import org.verbena.cm.ConnectionParameters;
import org.verbena.cm.EventChannel;
import org.verbena.cm.PortSpace;
import org.verbena.cm.RejectReason;
import org.verbena.verbs.CompletionQueue;
import org.verbena.verbs.Context;
import org.verbena.verbs.ProtectionDomain;
import org.verbena.verbs.QueuePair;
import org.verbena.verbs.QueuePairCapabilities;
import org.verbena.verbs.QueuePairOptions;
import org.verbena.verbs.device.AsyncEventType;
import org.verbena.verbs.queue.EnhancedConnection;
import org.verbena.verbs.queue.QueuePairState;

/** Connections whose queue pairs are made and moved apart from the id, as C's {@code rping -q} does. */
@Tag("lab")
@Timeout(350)
class OwnQueuePairTest {
    private static final int PORT = 7900;

    /** No maker has it; it only has to arrive. */
    private static final EnhancedConnection OPTIONS = new EnhancedConnection(0x1234, 0x56);

    private static void advance(CmId id, QueuePair queuePair, QueuePairState... states) {
        for (QueuePairState state : states) {
            queuePair.modify(id.queuePairAttributes(state));
        }
    }

    @Test
    void connectsWithAttributesOfTheConnectionManager() {
        InetSocketAddress at = new InetSocketAddress(LabDevice.RXE.address(), PORT);
        try (EventChannel events = EventChannel.open();
                CmId listener = CmId.create(events, PortSpace.TCP);
                CmId client = CmId.create(events, PortSpace.TCP)) {
            listener.bind(at);
            listener.listen(4);
            ConnectedPair.resolve(events, client, at);
            Context device = Objects.requireNonNull(client.device());
            try (ProtectionDomain domain = device.allocateProtectionDomain();
                    CompletionQueue completions = device.createCompletionQueue(16)) {
                QueuePairOptions options =
                        QueuePairOptions.reliable(completions, new QueuePairCapabilities(4, 4, 1, 1, 0));
                try (QueuePair mine = domain.createQueuePair(options);
                        QueuePair theirs = domain.createQueuePair(options)) {
                    advance(client, mine, QueuePairState.INIT);
                    client.setLocalEnhancedConnection(OPTIONS);
                    client.connect(ConnectionParameters.DEFAULT.withReads(1, 1).withQueuePair(mine.number(), false));
                    CmEvent request = ConnectedPair.expect(events, CmEventType.CONNECT_REQUEST);
                    try (CmId server = request.id()) {
                        assertThat(Objects.requireNonNull(request.connection()).queuePairNumber())
                                .isEqualTo(mine.number());
                        assertThat(request.enhancedConnection()).isEqualTo(OPTIONS);
                        advance(server, theirs, QueuePairState.INIT, QueuePairState.RTR, QueuePairState.RTS);
                        server.accept(
                                ConnectionParameters.DEFAULT.withReads(1, 1).withQueuePair(theirs.number(), false));
                        CmEvent answer = ConnectedPair.expect(events, CmEventType.CONNECT_RESPONSE);
                        assertThat(answer.id()).isSameAs(client);
                        assertThat(Objects.requireNonNull(answer.connection()).queuePairNumber())
                                .isEqualTo(theirs.number());
                        advance(client, mine, QueuePairState.INIT, QueuePairState.RTR, QueuePairState.RTS);
                        client.establish();
                        assertThat(ConnectedPair.expect(events, CmEventType.ESTABLISHED)
                                        .id())
                                .isSameAs(server);
                        assertThat(mine.queryState()).isEqualTo(QueuePairState.RTS);
                        assertThat(theirs.queryState()).isEqualTo(QueuePairState.RTS);
                        // It is up already.
                        assertThatExceptionOfType(CmException.class)
                                .isThrownBy(() -> server.notify(AsyncEventType.PORT_ACTIVE))
                                .withMessageContaining("rdma_notify");
                        client.disconnect();
                        assertThat(ConnectedPair.expect(events, CmEventType.DISCONNECTED)
                                        .id())
                                .isSameAs(server);
                    }
                }
            }
        }
    }

    @Test
    void rejectsBecauseOfTheAdaptersOptions() {
        InetSocketAddress at = new InetSocketAddress(LabDevice.RXE.address(), PORT + 1);
        try (EventChannel events = EventChannel.open();
                CmId listener = CmId.create(events, PortSpace.TCP);
                CmId client = CmId.create(events, PortSpace.TCP)) {
            listener.bind(at);
            listener.listen(4);
            ConnectedPair.resolve(events, client, at);
            client.connect(ConnectionParameters.DEFAULT.withReads(1, 1).withQueuePair(17, false));
            try (CmId server =
                    ConnectedPair.expect(events, CmEventType.CONNECT_REQUEST).id()) {
                server.rejectEnhancedConnection(new byte[0]);
            }
            assertThat(ConnectedPair.expect(events, CmEventType.REJECTED).status())
                    .isEqualTo(RejectReason.VENDOR_OPTION_NOT_SUPPORTED.value());
        }
    }
}
