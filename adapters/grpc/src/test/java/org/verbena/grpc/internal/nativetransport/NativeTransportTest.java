package org.verbena.grpc.internal.nativetransport;

import static org.assertj.core.api.Assertions.assertThat;
import static org.verbena.grpc.internal.nativetransport.NativeTransportHarness.METHOD;
import static org.verbena.grpc.internal.nativetransport.NativeTransportHarness.await;
import static org.verbena.grpc.internal.nativetransport.NativeTransportHarness.message;
import static org.verbena.grpc.internal.nativetransport.NativeTransportHarness.open;

import io.grpc.CallOptions;
import io.grpc.ClientStreamTracer;
import io.grpc.Grpc;
import io.grpc.InternalChannelz.SocketStats;
import io.grpc.Metadata;
import io.grpc.Status;
import io.grpc.internal.ClientStream;
import io.grpc.internal.ClientStreamListener.RpcProgress;
import io.grpc.internal.ClientTransport;
import io.grpc.internal.GrpcUtil;
import java.net.InetSocketAddress;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.grpc.internal.nativetransport.Recorders.OfCall;
import org.verbena.grpc.internal.nativetransport.Recorders.OfConnection;
import org.verbena.grpc.internal.nativetransport.Recorders.OfServed;
import org.verbena.grpc.internal.nativetransport.Recorders.OfTransport;
import org.verbena.transport.spi.Patience;

/** What gRPC wants of any transport: the cases that its own transports pass, by their names there. */
@Timeout(120)
class NativeTransportTest {
    private static final Metadata.Key<String> ASCII = Metadata.Key.of("ascii-key", Metadata.ASCII_STRING_MARSHALLER);
    private static final Metadata.Key<byte[]> BINARY = Metadata.Key.of("key-bin", Metadata.BINARY_BYTE_MARSHALLER);
    private static final int MAX_FIELDS_BYTES = 2000;
    private static final Status OVER = Status.UNAVAILABLE.withDescription("over");

    private final OfTransport listener = new OfTransport();
    private NativeTransportHarness harness;

    @BeforeEach
    void openHarness() throws Exception {
        harness = new NativeTransportHarness("soft", settings -> settings.maxFieldsBytes = MAX_FIELDS_BYTES);
    }

    @AfterEach
    void closeHarness() throws Exception {
        harness.close();
    }

    private static Status.Code code(Status status) {
        return status.getCode();
    }

    private static void write(ClientStream stream, String text) {
        stream.writeMessage(message(text.getBytes(java.nio.charset.StandardCharsets.UTF_8)));
        stream.flush();
    }

    private static void write(OfServed call, byte[] bytes) {
        call.stream.writeMessage(message(bytes));
        call.stream.flush();
    }

    @Test
    void frameAfterRstStreamShouldNotBreakClientChannel() throws Exception {
        NativeClientTransport client = harness.connected(listener);
        OfConnection connection = harness.connection();
        OfCall first = new OfCall();
        ClientStream stream = open(client, first, new Metadata());
        OfServed served = connection.call();
        stream.cancel(Status.CANCELLED);
        served.stream.writeHeaders(new Metadata(), true);
        write(served, new byte[3]);
        assertThat(first.closedWith()).isEqualTo(Status.Code.CANCELLED);
        OfCall second = new OfCall();
        open(client, second, new Metadata());
        connection.call().stream.writeHeaders(new Metadata(), true);
        Patience.take("headers of the second call", second.headers);
    }

    @Test
    void serverNotListening() throws Exception {
        harness.connect(new InetSocketAddress("127.0.0.1", 1), listener, settings -> {});
        assertThat(code(Patience.take("the reason", listener.shutdown))).isEqualTo(Status.Code.UNAVAILABLE);
        await("it is terminated", listener.terminated);
        assertThat(listener.ready.getCount()).isEqualTo(1);
    }

    @Test
    void clientStartStop() throws Exception {
        NativeClientTransport client = harness.connect(harness.address, listener, settings -> {});
        client.shutdown(OVER);
        assertThat(Patience.take("the reason", listener.shutdown)).isSameAs(OVER);
        await("it is terminated", listener.terminated);
    }

    @Test
    void clientStartAndStopOnceConnected() throws Exception {
        NativeClientTransport client = harness.connected(listener);
        OfConnection connection = harness.connection();
        client.shutdown(OVER);
        await("the client is terminated", listener.terminated);
        await("the server's connection is terminated", connection.terminated);
        assertThat(listener.shutdown).hasSize(1);
        assertThat(listener.terminations.get()).isEqualTo(1);
    }

    @Test
    void checkClientAttributes() throws Exception {
        NativeClientTransport client = harness.connected(listener);
        assertThat(client.getAttributes().get(Grpc.TRANSPORT_ATTR_REMOTE_ADDR)).isEqualTo(harness.address);
        assertThat(client.getAttributes().get(Grpc.TRANSPORT_ATTR_LOCAL_ADDR)).isNotNull();
        assertThat(client.getAttributes().get(NativeAttributes.CARRIER).name()).isEqualTo("soft");
        OfConnection connection = harness.connection();
        assertThat(connection.attributes.get(Grpc.TRANSPORT_ATTR_REMOTE_ADDR)).isNotNull();
    }

    @Test
    void openStreamPreventsTermination() throws Exception {
        NativeClientTransport client = harness.connected(listener);
        OfConnection connection = harness.connection();
        OfCall call = new OfCall();
        ClientStream stream = open(client, call, new Metadata());
        OfServed served = connection.call();
        client.shutdown(OVER);
        connection.transport.shutdown();
        Patience.take("the reason", listener.shutdown);
        served.stream.request(1);
        write(stream, "still");
        assertThat(served.message()).hasSize(5);
        served.stream.writeHeaders(new Metadata(), true);
        Patience.take("headers", call.headers);
        assertThat(listener.terminated.getCount()).isEqualTo(1);
        assertThat(connection.terminated.getCount()).isEqualTo(1);
        served.stream.close(Status.OK, new Metadata());
        assertThat(call.closedWith()).isEqualTo(Status.Code.OK);
        await("the client is terminated", listener.terminated);
        await("the server's connection is terminated", connection.terminated);
    }

    @Test
    void shutdownNowKillsClientStream() throws Exception {
        NativeClientTransport client = harness.connected(listener);
        OfConnection connection = harness.connection();
        OfCall call = new OfCall();
        open(client, call, new Metadata());
        OfServed served = connection.call();
        client.shutdownNow(Status.UNKNOWN.withDescription("now"));
        assertThat(call.closedWith()).isEqualTo(Status.Code.UNKNOWN);
        await("the client is terminated", listener.terminated);
        await("the server's connection is terminated", connection.terminated);
        assertThat(served.closedWith()).isNotEqualTo(Status.Code.OK);
    }

    @Test
    void shutdownNowKillsServerStream() throws Exception {
        NativeClientTransport client = harness.connected(listener);
        OfConnection connection = harness.connection();
        OfCall call = new OfCall();
        open(client, call, new Metadata());
        OfServed served = connection.call();
        connection.transport.shutdownNow(Status.UNKNOWN.withDescription("now"));
        assertThat(call.closedWith()).isEqualTo(Status.Code.UNAVAILABLE);
        assertThat(served.closedWith()).isEqualTo(Status.Code.UNKNOWN);
        await("the client is terminated", listener.terminated);
        await("the server's connection is terminated", connection.terminated);
    }

    private static BlockingQueue<Object> ping(NativeClientTransport client) {
        BlockingQueue<Object> outcome = new LinkedBlockingQueue<>();
        client.ping(
                new ClientTransport.PingCallback() {
                    @Override
                    public void onSuccess(long roundTripNanos) {
                        outcome.add(roundTripNanos);
                    }

                    @Override
                    public void onFailure(Status cause) {
                        outcome.add(cause);
                    }
                },
                Runnable::run);
        return outcome;
    }

    @Test
    void ping() throws Exception {
        NativeClientTransport client = harness.connected(listener);
        assertThat(Patience.take("the answer", ping(client))).isInstanceOf(Long.class);
    }

    @Test
    void ping_duringShutdown() throws Exception {
        NativeClientTransport client = harness.connected(listener);
        open(client, new OfCall(), new Metadata());
        client.shutdown(OVER);
        assertThat(Patience.take("the answer", ping(client))).isInstanceOf(Long.class);
    }

    @Test
    void ping_afterTermination() throws Exception {
        NativeClientTransport client = harness.connected(listener);
        client.shutdown(OVER);
        await("it is terminated", listener.terminated);
        assertThat(Patience.take("the answer", ping(client))).isSameAs(OVER);
    }

    @Test
    void newStream_duringShutdown() throws Exception {
        NativeClientTransport client = harness.connected(listener);
        OfConnection connection = harness.connection();
        OfCall first = new OfCall();
        open(client, first, new Metadata());
        OfServed served = connection.call();
        client.shutdown(OVER);
        Patience.take("the reason", listener.shutdown);
        OfCall second = new OfCall();
        open(client, second, new Metadata());
        assertThat(second.closedWith()).isEqualTo(OVER.getCode());
        assertThat(second.progress.take()).isEqualTo(RpcProgress.MISCARRIED);
        served.stream.close(Status.OK, new Metadata());
        assertThat(first.closedWith()).isEqualTo(Status.Code.OK);
    }

    @Test
    void newStream_afterTermination() throws Exception {
        NativeClientTransport client = harness.connected(listener);
        client.shutdown(OVER);
        await("it is terminated", listener.terminated);
        OfCall call = new OfCall();
        open(client, call, new Metadata());
        assertThat(call.closedWith()).isEqualTo(OVER.getCode());
        assertThat(call.progress.take()).isEqualTo(RpcProgress.MISCARRIED);
    }

    @Test
    void transportInUse_balancerRpcsNotCounted() throws Exception {
        NativeClientTransport client = harness.connected(listener);
        OfConnection connection = harness.connection();
        OfCall balancer = new OfCall();
        client.newStream(
                        METHOD,
                        new Metadata(),
                        CallOptions.DEFAULT.withOption(GrpcUtil.CALL_OPTIONS_RPC_OWNED_BY_BALANCER, true),
                        new ClientStreamTracer[] {new ClientStreamTracer() {}})
                .start(balancer);
        connection.call();
        OfCall usual = new OfCall();
        open(client, usual, new Metadata()).cancel(Status.CANCELLED);
        assertThat(Patience.take("in use", listener.inUse)).isTrue();
        assertThat(Patience.take("no longer in use", listener.inUse)).isFalse();
        assertThat(listener.inUse).isEmpty();
    }

    @Test
    void transportInUse_normalClose() throws Exception {
        NativeClientTransport client = harness.connected(listener);
        OfConnection connection = harness.connection();
        OfCall call = new OfCall();
        open(client, call, new Metadata()).halfClose();
        assertThat(Patience.take("in use", listener.inUse)).isTrue();
        connection.call().stream.close(Status.OK, new Metadata());
        assertThat(call.closedWith()).isEqualTo(Status.Code.OK);
        assertThat(Patience.take("no longer in use", listener.inUse)).isFalse();
    }

    @Test
    void basicStream() throws Exception {
        NativeClientTransport client = harness.connected(listener);
        OfConnection connection = harness.connection();
        Metadata headers = new Metadata();
        headers.put(ASCII, "client");
        headers.put(ASCII, "dupvalue");
        headers.put(ASCII, "dupvalue");
        headers.put(BINARY, new byte[] {0, -1, ','});
        OfCall call = new OfCall();
        ClientStream stream = open(client, call, headers);
        OfServed served = connection.call();
        assertThat(served.method).isEqualTo(METHOD.getFullMethodName());
        assertThat(served.headers.getAll(ASCII)).containsExactly("client", "dupvalue", "dupvalue");
        assertThat(served.headers.get(BINARY)).containsExactly(0, -1, ',');
        assertThat(served.headers.get(GrpcUtil.USER_AGENT_KEY)).startsWith("agent grpc-java-verbena");
        assertThat(served.stream.getAttributes().get(Grpc.TRANSPORT_ATTR_REMOTE_ADDR))
                .isNotNull();
        served.stream.request(1);
        Patience.until("the call is ready", () -> call.readies.get() > 0);
        assertThat(stream.isReady()).isTrue();
        write(stream, "Hello!");
        assertThat(served.message()).asString().isEqualTo("Hello!");
        stream.halfClose();
        await("the client's half has ended", served.halfClosed);
        Metadata answer = new Metadata();
        answer.put(ASCII, "server");
        answer.put(BINARY, new byte[] {5});
        served.stream.writeHeaders(answer, true);
        Metadata read = Patience.take("headers", call.headers);
        assertThat(read.get(ASCII)).isEqualTo("server");
        assertThat(read.get(BINARY)).containsExactly(5);
        stream.request(1);
        Patience.until("the server's call is ready", () -> served.readies.get() > 0);
        write(served, new byte[] {1, 2, 3});
        assertThat(call.message()).containsExactly(1, 2, 3);
        Metadata trailers = new Metadata();
        trailers.put(ASCII, "trailers");
        served.stream.close(Status.OK.withDescription("That was normal"), trailers);
        assertThat(served.closedWith()).isEqualTo(Status.Code.OK);
        Status end = Patience.take("the end", call.closed);
        assertThat(end.getCode()).isEqualTo(Status.Code.OK);
        assertThat(end.getDescription()).isEqualTo("That was normal");
        assertThat(call.trailers.take().getAll(ASCII)).containsExactly("trailers");
    }

    @Test
    void authorityPropagation() throws Exception {
        NativeClientTransport client = harness.connected(listener);
        ClientStream stream = client.newStream(
                METHOD, new Metadata(), CallOptions.DEFAULT, new ClientStreamTracer[] {new ClientStreamTracer() {}});
        stream.setAuthority("another-authority");
        stream.start(new OfCall());
        OfConnection connection = harness.connection();
        assertThat(connection.call().stream.getAuthority()).isEqualTo("another-authority");
        open(client, new OfCall(), new Metadata());
        assertThat(connection.call().stream.getAuthority()).isEqualTo("authority");
    }

    @Test
    void zeroMessageStream() throws Exception {
        NativeClientTransport client = harness.connected(listener);
        OfCall call = new OfCall();
        open(client, call, new Metadata()).halfClose();
        OfServed served = harness.connection().call();
        await("the client's half has ended", served.halfClosed);
        served.stream.writeHeaders(new Metadata(), true);
        Patience.take("headers", call.headers);
        served.stream.close(Status.OK.withDescription("Nice talking to you"), new Metadata());
        assertThat(call.closedWith()).isEqualTo(Status.Code.OK);
        assertThat(served.closedWith()).isEqualTo(Status.Code.OK);
    }

    @Test
    void earlyServerClose_withServerHeaders() throws Exception {
        NativeClientTransport client = harness.connected(listener);
        OfCall call = new OfCall();
        open(client, call, new Metadata());
        OfServed served = harness.connection().call();
        served.stream.writeHeaders(new Metadata(), true);
        Patience.take("headers", call.headers);
        Status strange = Status.OK.withDescription("Hello. Goodbye.").withCause(new Exception());
        served.stream.close(strange, new Metadata());
        assertThat(served.closedWith()).isEqualTo(Status.Code.OK);
        Status end = Patience.take("the end", call.closed);
        assertThat(end.getCode()).isEqualTo(Status.Code.OK);
        assertThat(end.getCause()).as("a cause stays at its end").isNull();
    }

    @Test
    void earlyServerClose_noServerHeaders() throws Exception {
        NativeClientTransport client = harness.connected(listener);
        OfCall call = new OfCall();
        open(client, call, new Metadata());
        OfServed served = harness.connection().call();
        Metadata trailers = new Metadata();
        trailers.put(ASCII, "trailers");
        served.stream.close(Status.OK.withDescription("Hellogoodbye"), trailers);
        assertThat(call.closedWith()).isEqualTo(Status.Code.OK);
        assertThat(call.trailers.take().get(ASCII)).isEqualTo("trailers");
        assertThat(call.headers).isEmpty();
    }

    @Test
    void earlyServerClose_serverFailure() throws Exception {
        NativeClientTransport client = harness.connected(listener);
        OfCall call = new OfCall();
        open(client, call, new Metadata());
        OfServed served = harness.connection().call();
        served.stream.close(Status.INTERNAL.withDescription("I'm not listening"), new Metadata());
        Status end = Patience.take("the end", call.closed);
        assertThat(end.getCode()).isEqualTo(Status.Code.INTERNAL);
        assertThat(end.getDescription()).isEqualTo("I'm not listening");
        assertThat(served.closedWith()).isEqualTo(Status.Code.OK);
    }

    @Test
    void earlyServerClose_serverFailure_withClientCancelOnListenerClosed() throws Exception {
        NativeClientTransport client = harness.connected(listener);
        ClientStream[] stream = new ClientStream[1];
        OfCall call = new OfCall() {
            @Override
            public void closed(Status status, RpcProgress rpcProgress, Metadata last) {
                super.closed(status, rpcProgress, last);
                stream[0].cancel(status);
            }
        };
        stream[0] = open(client, call, new Metadata());
        OfServed served = harness.connection().call();
        served.stream.close(Status.INTERNAL, new Metadata());
        assertThat(call.closedWith()).isEqualTo(Status.Code.INTERNAL);
        assertThat(call.closed).isEmpty();
    }

    @Test
    void clientCancel() throws Exception {
        NativeClientTransport client = harness.connected(listener);
        OfCall call = new OfCall();
        ClientStream stream = open(client, call, new Metadata());
        OfServed served = harness.connection().call();
        stream.cancel(Status.CANCELLED.withDescription("Nevermind"));
        assertThat(call.closedWith()).isEqualTo(Status.Code.CANCELLED);
        assertThat(served.closedWith()).isNotEqualTo(Status.Code.OK);
    }

    @Test
    void clientCancelFromWithinMessageRead() throws Exception {
        NativeClientTransport client = harness.connected(listener);
        ClientStream[] stream = new ClientStream[1];
        OfCall call = new OfCall() {
            @Override
            public void messagesAvailable(MessageProducer producer) {
                super.messagesAvailable(producer);
                stream[0].cancel(Status.CANCELLED);
            }
        };
        stream[0] = open(client, call, new Metadata());
        stream[0].request(1);
        OfServed served = harness.connection().call();
        served.stream.writeHeaders(new Metadata(), true);
        write(served, new byte[] {1});
        assertThat(call.message()).containsExactly(1);
        assertThat(call.closedWith()).isEqualTo(Status.Code.CANCELLED);
        assertThat(served.closedWith()).isNotEqualTo(Status.Code.OK);
    }

    @Test
    void serverCancel() throws Exception {
        NativeClientTransport client = harness.connected(listener);
        OfCall call = new OfCall();
        open(client, call, new Metadata());
        OfServed served = harness.connection().call();
        served.stream.cancel(Status.DEADLINE_EXCEEDED.withDescription("It was bound to happen"));
        assertThat(served.closedWith()).isEqualTo(Status.Code.DEADLINE_EXCEEDED);
        assertThat(call.closedWith()).isNotEqualTo(Status.Code.OK);
    }

    @Test
    void flowControlPushBack() throws Exception {
        int window = 64 << 10;
        NativeClientTransport client =
                harness.connect(harness.address, listener, settings -> settings.windowBytes = window);
        await("the client is ready", listener.ready);
        OfConnection connection = harness.connection();
        OfCall slow = new OfCall();
        ClientStream stream = open(client, slow, new Metadata());
        OfServed served = connection.call();
        served.stream.writeHeaders(new Metadata(), true);
        byte[] kilobyte = new byte[1000];
        int sent = 0;
        while (served.stream.isReady() || sent < 100) {
            write(served, kilobyte);
            sent++;
            if (sent % 50 == 0) {
                Patience.take("an answer behind what was sent", ping(client));
            }
            assertThat(sent).as("messages until the server's call is not ready").isLessThan(1000);
        }
        OfCall other = new OfCall();
        open(client, other, new Metadata());
        connection.call().stream.close(Status.OK, new Metadata());
        assertThat(other.closedWith()).as("another call is not held up").isEqualTo(Status.Code.OK);
        assertThat(slow.messages).isEmpty();
        int readies = served.readies.get();
        stream.request(sent);
        for (int i = 0; i < sent; i++) {
            assertThat(slow.message()).hasSize(1000);
        }
        Patience.until("the server's call is ready again", () -> served.readies.get() > readies);
        assertThat(served.stream.isReady()).isTrue();
    }

    /** Nearly all of the connection's window is with calls that are not read: another passes with the rest of it. */
    @Test
    void flowControlOfCallsThatAreNotRead() throws Exception {
        int window = 64 << 10;
        NativeClientTransport client =
                harness.connect(harness.address, listener, settings -> settings.windowBytes = window);
        await("the client is ready", listener.ready);
        OfConnection connection = harness.connection();
        for (int i = 0; i < 3; i++) {
            open(client, new OfCall(), new Metadata());
            OfServed unread = connection.call();
            unread.stream.writeHeaders(new Metadata(), true);
            write(unread, new byte[2 * window]);
        }
        OfCall call = new OfCall();
        ClientStream stream = open(client, call, new Metadata());
        OfServed served = connection.call();
        served.stream.writeHeaders(new Metadata(), true);
        stream.request(100);
        for (int i = 0; i < 100; i++) {
            write(served, new byte[window / 4]);
            assertThat(call.message()).as("message " + i).hasSize(window / 4);
        }
    }

    @Test
    void flowControlDoesNotDeadlockLargeMessage() throws Exception {
        NativeClientTransport client =
                harness.connect(harness.address, listener, settings -> settings.windowBytes = 5000);
        await("the client is ready", listener.ready);
        OfCall call = new OfCall();
        ClientStream stream = open(client, call, new Metadata());
        stream.request(1);
        OfServed served = harness.connection().call();
        served.stream.writeHeaders(new Metadata(), true);
        byte[] large = new byte[3 << 20];
        large[large.length - 1] = 7;
        write(served, large);
        assertThat(call.message()).isEqualTo(large);
    }

    @Test
    void messageProducerOnlyProducesRequestedMessages() throws Exception {
        NativeClientTransport client = harness.connected(listener);
        OfCall call = new OfCall();
        ClientStream stream = open(client, call, new Metadata());
        OfServed served = harness.connection().call();
        served.stream.request(1);
        write(stream, "first");
        write(stream, "second");
        assertThat(served.message()).hasSize(5);
        Patience.take("an answer behind both", ping(client));
        assertThat(served.messages).isEmpty();
        served.stream.request(1);
        assertThat(served.message()).hasSize(6);
    }

    @Test
    void interactionsAfterServerStreamCloseAreNoops() throws Exception {
        NativeClientTransport client = harness.connected(listener);
        OfCall call = new OfCall();
        open(client, call, new Metadata());
        OfConnection connection = harness.connection();
        OfServed served = connection.call();
        served.stream.close(Status.INTERNAL, new Metadata());
        assertThat(call.closedWith()).isEqualTo(Status.Code.INTERNAL);
        assertThat(served.closedWith()).isEqualTo(Status.Code.OK);
        served.stream.writeMessage(message(new byte[] {1}));
        served.stream.flush();
        served.stream.request(1);
        served.stream.cancel(Status.CANCELLED);
        Patience.take("the connection goes on", ping(client));
        assertThat(served.closed).isEmpty();
    }

    @Test
    void interactionsAfterClientStreamCancelAreNoops() throws Exception {
        NativeClientTransport client = harness.connected(listener);
        OfCall call = new OfCall();
        ClientStream stream = open(client, call, new Metadata());
        OfServed served = harness.connection().call();
        stream.cancel(Status.UNKNOWN);
        assertThat(call.closedWith()).isEqualTo(Status.Code.UNKNOWN);
        stream.writeMessage(message(new byte[] {1}));
        stream.flush();
        stream.halfClose();
        stream.request(1);
        stream.cancel(Status.CANCELLED);
        assertThat(served.closedWith()).isNotEqualTo(Status.Code.OK);
        assertThat(served.messages).isEmpty();
        assertThat(call.closed).isEmpty();
    }

    private static SocketStats stats(io.grpc.InternalInstrumented<SocketStats> of) throws Exception {
        return of.getStats().get(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS);
    }

    @Test
    void transportTracer_countsStreamsAndMessages() throws Exception {
        NativeClientTransport client = harness.connected(listener);
        OfConnection connection = harness.connection();
        OfCall good = new OfCall();
        ClientStream stream = open(client, good, new Metadata());
        OfServed served = connection.call();
        served.stream.request(1);
        write(stream, "one");
        served.message();
        served.stream.close(Status.OK, new Metadata());
        good.closedWith();
        OfCall bad = new OfCall();
        open(client, bad, new Metadata());
        connection.call().stream.close(Status.UNKNOWN, new Metadata());
        bad.closedWith();
        SocketStats ofClient = stats(client);
        assertThat(ofClient.data.streamsStarted).isEqualTo(2);
        assertThat(ofClient.data.streamsSucceeded).isEqualTo(1);
        assertThat(ofClient.data.streamsFailed).isEqualTo(1);
        assertThat(ofClient.data.messagesSent).isEqualTo(1);
        SocketStats ofServer = stats(connection.transport);
        assertThat(ofServer.data.streamsStarted).isEqualTo(2);
        assertThat(ofServer.data.streamsSucceeded).isEqualTo(1);
        assertThat(ofServer.data.streamsFailed).isEqualTo(1);
        assertThat(ofServer.data.messagesReceived).isEqualTo(1);
    }

    @Test
    void socketStats() throws Exception {
        NativeClientTransport client = harness.connected(listener);
        OfConnection connection = harness.connection();
        SocketStats ofClient = stats(client);
        SocketStats ofServer = stats(connection.transport);
        assertThat(ofClient.remote).isEqualTo(harness.address).isEqualTo(ofServer.local);
        assertThat(ofClient.local).isEqualTo(ofServer.remote);
    }

    private static Metadata large() {
        Metadata metadata = new Metadata();
        metadata.put(ASCII, "x".repeat(MAX_FIELDS_BYTES));
        return metadata;
    }

    @Test
    void serverChecksInboundMetadataSize() throws Exception {
        NativeClientTransport client = harness.connected(listener);
        OfConnection connection = harness.connection();
        OfCall refused = new OfCall();
        open(client, refused, large());
        assertThat(refused.closedWith()).isEqualTo(Status.Code.RESOURCE_EXHAUSTED);
        open(client, new OfCall(), new Metadata());
        assertThat(connection.call().headers.containsKey(ASCII)).isFalse();
        assertThat(connection.calls).isEmpty();
    }

    @Test
    void clientChecksInboundMetadataSize_header() throws Exception {
        NativeClientTransport client =
                harness.connect(harness.address, listener, settings -> settings.maxFieldsBytes = MAX_FIELDS_BYTES);
        OfCall call = new OfCall();
        open(client, call, new Metadata());
        OfServed served = harness.connection().call();
        served.stream.writeHeaders(large(), true);
        assertThat(call.closedWith()).isEqualTo(Status.Code.RESOURCE_EXHAUSTED);
        assertThat(served.closedWith()).isNotEqualTo(Status.Code.OK);
        assertThat(call.headers).isEmpty();
    }

    @Test
    void clientChecksInboundMetadataSize_trailer() throws Exception {
        NativeClientTransport client =
                harness.connect(harness.address, listener, settings -> settings.maxFieldsBytes = MAX_FIELDS_BYTES);
        OfCall call = new OfCall();
        open(client, call, new Metadata());
        OfServed served = harness.connection().call();
        served.stream.writeHeaders(new Metadata(), true);
        served.stream.close(Status.OK, large());
        assertThat(call.closedWith()).isEqualTo(Status.Code.RESOURCE_EXHAUSTED);
    }

    @Test
    void metadataThatCannotBeSentFailsItsCall() throws Exception {
        NativeClientTransport client = harness.connected(listener);
        Metadata tooLong = new Metadata();
        tooLong.put(ASCII, "x".repeat(2 << 20));
        OfCall call = new OfCall();
        open(client, call, tooLong);
        assertThat(call.closedWith()).isEqualTo(Status.Code.RESOURCE_EXHAUSTED);
        Patience.take("the connection goes on", ping(client));
    }
}
