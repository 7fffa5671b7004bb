package org.verbena.grpc.internal.nativetransport;

import static org.assertj.core.api.Assertions.assertThat;
import static org.verbena.grpc.internal.nativetransport.NativeTransportHarness.await;
import static org.verbena.grpc.internal.nativetransport.NativeTransportHarness.message;
import static org.verbena.grpc.internal.nativetransport.NativeTransportHarness.open;

import io.grpc.Metadata;
import io.grpc.Status;
import io.grpc.internal.ClientStream;
import io.grpc.internal.ClientStreamListener.RpcProgress;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.grpc.internal.nativetransport.NativeTransportHarness.Served;
import org.verbena.grpc.internal.nativetransport.Recorders.OfCall;
import org.verbena.grpc.internal.nativetransport.Recorders.OfConnection;
import org.verbena.grpc.internal.nativetransport.Recorders.OfServed;
import org.verbena.grpc.internal.nativetransport.Recorders.OfTransport;
import org.verbena.grpc.internal.wire.Frames;
import org.verbena.grpc.internal.wire.GoAwayReason;
import org.verbena.grpc.internal.wire.Settings;
import org.verbena.transport.spi.Patience;

/** How a client's connection keeps account of its calls. */
@Timeout(120)
class NativeClientCallsTest {
    private final OfTransport listener = new OfTransport();
    private NativeTransportHarness harness;

    @BeforeEach
    void openHarness() throws Exception {
        harness = new NativeTransportHarness("soft", settings -> {
            settings.windowBytes = 10_000;
            settings.maxStreams = 1;
        });
    }

    @AfterEach
    void closeHarness() throws Exception {
        harness.close();
    }

    /** Programs cancel what belongs together when one of it fails. */
    @Test
    void aCallThatIsCancelledAsItsSiblingEndsCountsOnce() throws Exception {
        Served served = harness.serve(listener, new Settings(1, 1, 1 << 20, 10));
        await("the client is ready", listener.ready);
        OfCall stays = new OfCall();
        open(served.client(), stays, new Metadata());
        List<ClientStream> streams = new ArrayList<>();
        List<OfCall> siblings = new ArrayList<>();
        for (int i = 0; i < 2; i++) {
            int other = 1 - i;
            OfCall sibling = new OfCall() {
                @Override
                public void closed(Status status, RpcProgress rpcProgress, Metadata last) {
                    streams.get(other).cancel(Status.CANCELLED);
                    super.closed(status, rpcProgress, last);
                }
            };
            siblings.add(sibling);
            streams.add(open(served.client(), sibling, new Metadata()));
        }
        served.client().loop().submit(() -> {}).get();
        assertThat(Patience.take("the connection is in use", listener.inUse)).isTrue();
        served.server().send(into -> Frames.goAway(into, 1, GoAwayReason.GRACEFUL, ""));
        assertThat(List.of(siblings.get(0).closedWith(), siblings.get(1).closedWith()))
                .containsExactlyInAnyOrder(Status.Code.UNAVAILABLE, Status.Code.CANCELLED);
        served.client().loop().submit(() -> {}).get();
        assertThat(listener.inUse).as("with a call under way").isEmpty();
        assertThat(listener.terminated.getCount()).isEqualTo(1);
        served.server().send(into -> Frames.reset(into, 1, false, Status.Code.ABORTED.value(), ""));
        assertThat(stays.closedWith()).isEqualTo(Status.Code.ABORTED);
        assertThat(Patience.take("it is not in use", listener.inUse)).isFalse();
        await("the client is terminated", listener.terminated);
    }

    @Test
    void callsForWhichThereIsNoNumberGoElsewhere() throws Exception {
        NativeClientTransport client = harness.connected(listener);
        OfConnection connection = harness.connection();
        OfCall call = new OfCall();
        open(client, call, new Metadata());
        OfServed served = connection.call();
        client.loop().submit(() -> client.lastStream = Integer.MAX_VALUE).get();
        List<OfCall> waiting = List.of(new OfCall(), new OfCall());
        List<NativeClientStream> streams = new ArrayList<>();
        for (OfCall next : waiting) {
            NativeClientStream stream = (NativeClientStream) open(client, next, new Metadata());
            stream.writeMessage(message(new byte[5000]));
            stream.flush();
            streams.add(stream);
        }
        served.stream.close(Status.OK, new Metadata());
        assertThat(call.closedWith()).isEqualTo(Status.Code.OK);
        for (int i = 0; i < 2; i++) {
            assertThat(waiting.get(i).closedWith()).isEqualTo(Status.Code.UNAVAILABLE);
            assertThat(waiting.get(i).progress).containsExactly(RpcProgress.MISCARRIED);
            assertThat(streams.get(i).transportState().flow.pending)
                    .as("its message is released")
                    .isEmpty();
        }
        await("the client is terminated", listener.terminated);
    }

    /** The client's own calls are no answers to what a server asks. */
    @Test
    void aClientMayCancelAnyNumberOfCallsWhileItsServerDoesNotRead() throws Exception {
        Served served = harness.serve(listener, new Settings(1, 1, 1 << 30, 10));
        await("the client is ready", listener.ready);
        served.server().channel.config().setAutoRead(false);
        NativeClientTransport client = served.client();
        ClientStream upload = open(client, new OfCall(), new Metadata());
        AtomicInteger full = new AtomicInteger(); // how often running, since what is under way still leaves
        Patience.until("the channel takes no more", () -> {
            if (Patience.await("the client's loop", client.loop().submit(client.channel()::isWritable))) {
                upload.writeMessage(message(new byte[1 << 20]));
                upload.flush();
                full.set(0);
            }
            return full.incrementAndGet() > 10;
        });
        for (int i = 0; i < 10_100; i++) {
            OfCall call = new OfCall();
            open(client, call, new Metadata()).cancel(Status.CANCELLED);
            assertThat(call.closedWith()).isEqualTo(Status.Code.CANCELLED);
        }
        assertThat(client.channel().isWritable()).isFalse();
        assertThat(listener.shutdown).isEmpty();
    }

    /** DATA shorter than it is charged still all arrives, in any order of sending and reading. */
    @Test
    void shortMessagesAllArrive() throws Exception {
        NativeClientTransport client = harness.connected(listener);
        OfConnection connection = harness.connection();
        ClientStream call = open(client, new OfCall(), new Metadata());
        OfServed served = connection.call();
        int messages = 2000;
        for (int i = 0; i < messages; i++) {
            call.writeMessage(message(new byte[i % 3]));
            call.flush();
        }
        call.halfClose();
        for (int i = 0; i < messages; i++) {
            served.stream.request(1);
            assertThat(served.message()).hasSize(i % 3);
        }
        served.stream.request(1);
        await("the end of the client's half", served.halfClosed);
        served.stream.close(Status.OK, new Metadata());
    }

    /** The last DATA may be charged more than was left, and what needs no credit follows it. */
    @Test
    void theEndOfACallNeedsNoCredit() throws Exception {
        harness.close();
        harness = new NativeTransportHarness("soft", settings -> settings.windowBytes = Frames.MIN_WINDOW_BYTES);
        NativeClientTransport client = harness.connected(listener);
        OfConnection connection = harness.connection();
        ClientStream call = open(client, new OfCall(), new Metadata());
        OfServed served = connection.call();
        int prefix = 5; // what gRPC puts in front of a message
        for (byte[] message : List.of(new byte[Frames.MIN_WINDOW_BYTES - 2 * prefix], new byte[0])) {
            call.writeMessage(message(message));
            call.flush();
        }
        call.halfClose();
        served.stream.request(3);
        assertThat(served.message()).hasSize(Frames.MIN_WINDOW_BYTES - 2 * prefix);
        assertThat(served.message()).isEmpty();
        await("the end of the client's half", served.halfClosed);
        served.stream.close(Status.OK, new Metadata());
    }
}
