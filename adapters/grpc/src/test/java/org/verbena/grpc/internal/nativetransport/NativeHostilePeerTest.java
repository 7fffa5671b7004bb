package org.verbena.grpc.internal.nativetransport;

import static org.assertj.core.api.Assertions.assertThat;
import static org.verbena.grpc.internal.nativetransport.NativeTransportHarness.await;
import static org.verbena.grpc.internal.nativetransport.NativeTransportHarness.open;

import io.grpc.Metadata;
import io.grpc.Status;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BiConsumer;
import java.util.function.Consumer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.grpc.internal.nativetransport.NativeTransportHarness.Peer;
import org.verbena.grpc.internal.nativetransport.NativeTransportHarness.Served;
import org.verbena.grpc.internal.nativetransport.Recorders.OfCall;
import org.verbena.grpc.internal.nativetransport.Recorders.OfConnection;
import org.verbena.grpc.internal.nativetransport.Recorders.OfServed;
import org.verbena.grpc.internal.nativetransport.Recorders.OfTransport;
import org.verbena.grpc.internal.wire.FieldWriter;
import org.verbena.grpc.internal.wire.Fields;
import org.verbena.grpc.internal.wire.FrameListener;
import org.verbena.grpc.internal.wire.FrameReader;
import org.verbena.grpc.internal.wire.Frames;
import org.verbena.grpc.internal.wire.GoAwayReason;
import org.verbena.grpc.internal.wire.ProtocolViolation;
import org.verbena.grpc.internal.wire.Settings;
import org.verbena.transport.spi.Patience;

/** Peers that break the rules lose their connection, and nothing else. */
@Timeout(120)
class NativeHostilePeerTest {
    private static final int WINDOW_BYTES = 10_000;
    private static final int MAX_STREAMS = 20;
    private static final Settings SETTINGS = new Settings(1, 1, 1 << 20, 100);

    private NativeTransportHarness harness;
    private FieldWriter fieldWriter = new FieldWriter(); // of a connection

    /** The last connection that {@link #begun} made, at the server. */
    private OfConnection last;

    @BeforeEach
    void openHarness() throws Exception {
        harness = new NativeTransportHarness("soft", settings -> {
            settings.windowBytes = WINDOW_BYTES;
            settings.maxStreams = MAX_STREAMS;
            settings.goAwayNanos = TimeUnit.MILLISECONDS.toNanos(50);
        });
    }

    /** A server with the usual limit of calls: a client may cancel more than it may leave answers unread. */
    private void openHarnessOfManyCalls() throws Exception {
        harness.close();
        harness = new NativeTransportHarness("soft", settings -> settings.maxStreams = 100_000);
    }

    /** Others are served whatever a peer has done. */
    @AfterEach
    void servesOthers() throws Exception {
        try {
            OfTransport listener = new OfTransport();
            NativeClientTransport client = harness.connected(listener);
            OfCall call = new OfCall();
            open(client, call, new Metadata());
            OfConnection connection = harness.connection(); // tests have taken their own
            connection.call().stream.close(Status.OK, new Metadata());
            assertThat(call.closedWith()).isEqualTo(Status.Code.OK);
        } finally {
            harness.close();
        }
    }

    private void headers(ByteBuf into, int stream, boolean end) {
        int begin = Frames.beginFields(into, false, stream, end);
        fieldWriter.write(into, bytes(Fields.PATH), bytes("/verbena.Test/method"));
        Frames.endFields(into, begin);
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.US_ASCII);
    }

    private Peer begun() throws Exception {
        Peer peer = harness.peer();
        peer.send(into -> Frames.settings(into, SETTINGS));
        last = harness.connection();
        return peer;
    }

    /** What is no message of gRPC: a flag that does not exist. */
    private static void malformedData(ByteBuf into, int stream) {
        Frames.data(into, stream, false, 5);
        into.writeByte(0xff).writeInt(0);
    }

    private static void awaitFrame(Peer peer, String frame) {
        Patience.until(frame, () -> isAnswered(peer, frame));
    }

    private void isCutOff(Consumer<ByteBuf> frames) throws Exception {
        Peer peer = begun();
        peer.send(frames);
        peer.awaitClosed();
    }

    /** What a peer got, as text. */
    private static List<String> frames(BlockingQueue<byte[]> received) throws ProtocolViolation {
        List<String> frames = new ArrayList<>();
        FrameReader reader = new FrameReader(8192);
        for (byte[] message : received) {
            reader.read(Unpooled.wrappedBuffer(message), new FrameListener() {
                @Override
                public void onSettings(Settings settings) {
                    frames.add("SETTINGS");
                }

                @Override
                public void onHeaders(int stream, boolean end, Fields fields) {
                    frames.add("HEADERS " + stream);
                }

                @Override
                public void onData(int stream, boolean end, ByteBuf from, int lengthBytes) {
                    frames.add("DATA " + stream);
                }

                @Override
                public void onTrailers(int stream, Fields fields) {
                    frames.add("TRAILERS " + stream);
                }

                @Override
                public void onReset(int stream, boolean notProcessed, int status, String text) {
                    boolean isCancelled = status == Status.Code.CANCELLED.value() && text.isEmpty();
                    frames.add("RESET " + stream + (isCancelled ? " cancelled" : "")
                            + (notProcessed ? " not processed" : ""));
                }

                @Override
                public void onWindow(int stream, int bytes) {
                    frames.add("WINDOW " + stream);
                }

                @Override
                public void onGoAway(int lastStream, GoAwayReason reason, String text) {
                    frames.add("GOAWAY " + reason + (lastStream == Integer.MAX_VALUE ? "" : " at " + lastStream));
                }

                @Override
                public void onPing(boolean ack, long nonce) {
                    frames.add("PING " + nonce);
                }
            });
        }
        return frames;
    }

    @Test
    void aPeerOfAnotherProtocolIsCutOff() throws Exception {
        Peer peer = harness.peer();
        Patience.take("the connection", harness.server.connections);
        peer.send(into -> into.writeBytes(bytes("hello, is this a server of short messages?")));
        peer.awaitClosed();
    }

    @Test
    void dataOfACallThatWasNotOpened() throws Exception {
        isCutOff(into -> {
            Frames.data(into, 1, false, 5);
            into.writeZero(5);
        });
    }

    @Test
    void callsThatGoBackwards() throws Exception {
        isCutOff(into -> {
            headers(into, 7, false);
            headers(into, 6, false);
        });
    }

    @Test
    void dataBehindTheEnd() throws Exception {
        isCutOff(into -> {
            headers(into, 1, true);
            Frames.data(into, 1, true, 0);
        });
    }

    @Test
    void trailersOfAClient() throws Exception {
        isCutOff(into -> {
            headers(into, 1, false);
            Frames.endFields(into, Frames.beginFields(into, true, 1, true));
        });
    }

    @Test
    void moreDataThanCredit() throws Exception {
        isCutOff(into -> {
            headers(into, 1, false);
            Frames.data(into, 1, false, WINDOW_BYTES + 1);
            into.writeZero(WINDOW_BYTES + 1);
        });
    }

    @Test
    void moreCreditThanThereCanBe() throws Exception {
        isCutOff(into -> {
            headers(into, 1, false);
            Frames.window(into, 1, Integer.MAX_VALUE);
        });
        isCutOff(into -> Frames.window(into, 0, 5));
    }

    @Test
    void creditOfACallThatWasNotOpened() throws Exception {
        isCutOff(into -> Frames.window(into, 3, 5));
    }

    @Test
    void aCallBehindGoAway() throws Exception {
        isCutOff(into -> {
            headers(into, 1, false);
            Frames.goAway(into, 0, GoAwayReason.GRACEFUL, "");
            headers(into, 2, false);
        });
    }

    @Test
    void aFloodOfPings() throws Exception {
        Peer peer = begun();
        for (int i = 0; i < 20; i++) {
            peer.send(into -> Frames.ping(into, false, 1));
        }
        peer.awaitClosed();
        assertThat(frames(peer.received)).contains("GOAWAY TOO_MANY_PINGS at 0");
    }

    /** Calls that are opened and cancelled at once, as fast as possible. */
    @Test
    void aFloodOfResets() throws Exception {
        Peer peer = begun();
        int stream = 1;
        for (int round = 0; round < 100 && peer.channel.isActive(); round++) {
            int from = stream;
            peer.send(into -> {
                for (int i = 0; i < 10; i++) {
                    headers(into, from + i, false);
                    Frames.reset(into, from + i, false, Status.Code.CANCELLED.value(), "");
                }
            });
            stream += 10;
        }
        peer.awaitClosed();
        assertThat(frames(peer.received)).anyMatch(frame -> frame.startsWith("GOAWAY TOO_MANY_RESETS"));
    }

    /** Calls that the server has to end cost it the same. */
    @Test
    void aFloodOfCallsThatFail() throws Exception {
        harness.server.onCall = call -> call.stream.request(1);
        Peer peer = begun();
        int stream = 1;
        for (int round = 0; round < 100 && peer.channel.isActive(); round++) {
            int from = stream;
            peer.send(into -> {
                for (int i = 0; i < 10; i++) {
                    headers(into, from + i, false);
                    malformedData(into, from + i);
                }
            });
            stream += 10;
        }
        int sent = stream - 1;
        Patience.until("it is cut off, or all was read", () -> !peer.channel.isActive() || last.calls.size() == sent);
        assertThat(last.calls.size()).isLessThan(sent);
        peer.awaitClosed();
        assertThat(frames(peer.received)).anyMatch(frame -> frame.startsWith("GOAWAY TOO_MANY_RESETS"));
    }

    /** Neither what was answered already nor what is made up for by answers is a flood. */
    @Test
    void resetsOfABusyClientAreNoFlood() throws Exception {
        AtomicInteger calls = new AtomicInteger();
        harness.server.onCall = call -> {
            if (calls.incrementAndGet() % 2 == 0) {
                call.stream.close(Status.OK, new Metadata());
            }
        };
        Peer peer = begun();
        int stream = 1;
        for (int round = 0; round < 60 && peer.channel.isActive(); round++) {
            int from = stream;
            peer.send(into -> {
                for (int i = 0; i < 10; i++) {
                    headers(into, from + i, false);
                }
            });
            stream += 10;
            int max = stream - 1;
            Patience.until("they have begun", () -> last.calls.size() == max || !peer.channel.isActive());
            peer.send(into -> {
                for (int i = 0; i < 10; i++) {
                    Frames.reset(into, from + i, false, Status.Code.CANCELLED.value(), "");
                }
            });
        }
        peer.send(into -> Frames.ping(into, false, 5));
        Patience.until("it answers, or ends", () -> isAnswered(peer, "PING 5") || !peer.channel.isActive());
        assertThat(frames(peer.received)).contains("PING 5").noneMatch(frame -> frame.startsWith("GOAWAY"));
        peer.channel.close().sync();
    }

    /** A call that is not read costs the receiver memory for each DATA. */
    @Test
    void aFloodOfShortData() throws Exception {
        Peer peer = begun();
        peer.send(into -> headers(into, 1, false));
        int allowed = (WINDOW_BYTES + 63) / 64;
        peer.send(into -> {
            for (int i = 0; i < allowed; i++) {
                Frames.data(into, 1, false, 1);
                into.writeByte(0);
            }
            Frames.ping(into, false, 5);
        });
        awaitFrame(peer, "PING 5");
        peer.send(into -> {
            Frames.data(into, 1, false, 1);
            into.writeByte(0);
            Frames.ping(into, false, 7);
        });
        Patience.until("it answers, or ends", () -> isAnswered(peer, "PING 7") || !peer.channel.isActive());
        assertThat(frames(peer.received)).contains("GOAWAY VIOLATION at 1");
        peer.awaitClosed();
    }

    private static boolean isAnswered(Peer peer, String frame) {
        try {
            return frames(peer.received).contains(frame);
        } catch (ProtocolViolation violation) {
            throw new AssertionError(violation);
        }
    }

    /** Calls that are answered by the transport, or by the program, to a peer that does not read. */
    private void isCutOffWithoutReading(BiConsumer<ByteBuf, Integer> callThatEnds) throws Exception {
        Peer peer = begun();
        peer.channel.config().setAutoRead(false);
        NativeServerTransport transport = (NativeServerTransport) last.transport;
        // Fewer than it may cancel, and more than sockets' buffers hold the answers of: 4 MiB in most systems, and a
        // window.
        int max = 190_000;
        for (int from = 1; from < max && !isEnded(transport); from += 100) {
            int first = from;
            peer.send(into -> {
                for (int i = 0; i < 100; i++) {
                    headers(into, first + i, false);
                    callThatEnds.accept(into, first + i);
                }
            });
        }
        Patience.until("it is cut off, or all was read", () -> isEnded(transport) || last.calls.size() == max);
        assertThat(last.calls.size()).as("calls that were begun").isLessThan(max);
        peer.channel.close();
        await("its connection ends", last.terminated);
    }

    private static boolean isEnded(NativeServerTransport transport) {
        return Patience.await("the server's loop", transport.loop().submit(transport::isEnded0));
    }

    @Test
    void failuresThatAreNotRead() throws Exception {
        openHarnessOfManyCalls();
        harness.server.onCall = call -> call.stream.request(1);
        isCutOffWithoutReading(NativeHostilePeerTest::malformedData);
    }

    @Test
    void headersOfCancelledCallsThatAreNotRead() throws Exception {
        openHarnessOfManyCalls();
        Metadata.Key<String> key = Metadata.Key.of("key", Metadata.ASCII_STRING_MARSHALLER);
        AtomicInteger calls = new AtomicInteger();
        harness.server.onCall = call -> {
            Metadata headers = new Metadata();
            headers.put(key, calls.incrementAndGet() + "x".repeat(200));
            call.stream.writeHeaders(headers, true);
        };
        isCutOffWithoutReading((into, stream) -> Frames.reset(into, stream, false, 1, ""));
    }

    /** Answers to calls that were cancelled do not wait for the channel. */
    @Test
    void cancelledCallsLeaveTheTurns() throws Exception {
        Peer peer = harness.peer();
        peer.channel.config().setAutoRead(false);
        peer.send(into -> Frames.settings(into, new Settings(1, 1, 1 << 30, 100)));
        OfConnection connection = harness.connection();
        NativeServerTransport transport = (NativeServerTransport) connection.transport;
        peer.send(into -> headers(into, 1, true));
        OfServed first = connection.call();
        first.stream.writeHeaders(new Metadata(), false);
        do { // until the channel takes no more
            first.stream.writeMessage(NativeTransportHarness.message(new byte[100_000]));
            first.stream.flush();
        } while (transport.loop().submit(transport.turns::waiting0).get() == 0);
        for (int stream = 2; stream <= 100; stream++) {
            int now = stream;
            peer.send(into -> headers(into, now, true));
            OfServed call = connection.call();
            call.stream.writeHeaders(new Metadata(), false);
            call.stream.writeMessage(NativeTransportHarness.message(new byte[2000]));
            call.stream.flush();
            peer.send(into -> Frames.reset(into, now, false, Status.Code.CANCELLED.value(), ""));
            assertThat(call.closedWith()).isEqualTo(Status.Code.CANCELLED);
        }
        assertThat(transport.loop().submit(transport.turns::waiting0).get()).isEqualTo(1);
        peer.channel.close().sync();
    }

    /** A client that asks for much and gives no credit costs the server no more than its bound. */
    @Test
    void answersThatAreNotReadAreBounded() throws Exception {
        harness.close();
        int bound = 4 << 20;
        int answer = 100_000;
        harness = new NativeTransportHarness("soft", settings -> settings.maxUnsentBytes = bound);
        harness.server.onCall = call -> {
            call.stream.writeHeaders(new Metadata(), false);
            call.stream.writeMessage(NativeTransportHarness.message(new byte[answer]));
            call.stream.flush();
            call.stream.close(Status.OK, new Metadata());
        };
        assertThat(NativeServerTransport.ALL_UNSENT_BYTES).hasValue(0);
        List<Peer> hostile = new ArrayList<>();
        for (int i = 0; i < 3; i++) {
            Peer peer = harness.peer();
            fieldWriter = new FieldWriter();
            hostile.add(peer);
            peer.send(into -> Frames.settings(into, new Settings(1, 1, 1024, 100)));
            harness.connection();
            int calls = 200;
            for (int stream = 1; stream <= calls; stream++) {
                int now = stream;
                peer.send(into -> headers(into, now, true));
            }
            awaitFrame(peer, "RESET " + calls + " not processed");
            assertThat(NativeServerTransport.ALL_UNSENT_BYTES.get()).isBetween((long) answer, bound - (long) answer);
        }
        fieldWriter = new FieldWriter();
        Peer reader = begun(); // the others leave it its share, without which the first answer would be the last
        for (int stream = 1; stream <= 200; stream++) {
            int now = stream;
            reader.send(into -> headers(into, now, true));
            awaitFrame(reader, "TRAILERS " + stream);
        }
        Peer again = hostile.getLast(); // nothing has changed since its first refused call but what it reads now
        again.send(into -> Frames.window(into, 1, 1 << 20));
        awaitFrame(again, "TRAILERS 1");
        again.send(into -> headers(into, 201, true));
        awaitFrame(again, "HEADERS 201");
        hostile.forEach(peer -> peer.channel.close());
        Patience.until("nothing waits", () -> NativeServerTransport.ALL_UNSENT_BYTES.get() == 0);
        harness.server.onCall = call -> {};
        reader.channel.close().sync();
    }

    /** A call that sends on although its client gives no credit ends. */
    @Test
    void aStreamThatIsNotReadIsBounded() throws Exception {
        harness.close();
        int bound = 4 << 20;
        harness = new NativeTransportHarness("soft", settings -> settings.maxUnsentBytes = bound);
        Peer peer = harness.peer();
        peer.send(into -> Frames.settings(into, new Settings(1, 1, 1024, 100)));
        peer.send(into -> headers(into, 1, true));
        OfServed call = harness.connection().call();
        call.stream.writeHeaders(new Metadata(), false);
        while (call.closed.isEmpty()) {
            call.stream.writeMessage(NativeTransportHarness.message(new byte[100_000]));
            call.stream.flush();
            assertThat(NativeServerTransport.ALL_UNSENT_BYTES.get()).isLessThan(bound);
        }
        assertThat(call.closedWith()).isEqualTo(Status.Code.RESOURCE_EXHAUSTED);
        awaitFrame(peer, "TRAILERS 1");
        peer.channel.close().sync();
        Patience.until("nothing waits", () -> NativeServerTransport.ALL_UNSENT_BYTES.get() == 0);
    }

    @Test
    void aMalformedTimeoutEndsItsCallOnly() throws Exception {
        for (String timeout : List.of("x", "", "5x", "123456789S")) {
            Peer peer = begun();
            FieldWriter fields = new FieldWriter();
            peer.send(into -> {
                int begin = Frames.beginFields(into, false, 1, false);
                fields.write(into, bytes(Fields.PATH), bytes("/verbena.Test/method"));
                Frames.endFields(into, begin);
                begin = Frames.beginFields(into, false, 2, true);
                fields.write(into, bytes(Fields.PATH), bytes("/verbena.Test/method"));
                fields.write(into, bytes("grpc-timeout"), bytes(timeout));
                Frames.endFields(into, begin);
            });
            awaitFrame(peer, "RESET 2");
            last.call().stream.close(Status.OK, new Metadata());
            awaitFrame(peer, "TRAILERS 1");
            assertThat(last.calls).isEmpty();
            peer.channel.close().sync();
        }
    }

    /** Its words would reach the program in place of gRPC's own about the client's deadline. */
    @Test
    void aCallThatIsLateIsCancelledWithoutWords() throws Exception {
        Peer peer = begun();
        peer.send(into -> headers(into, 1, false));
        last.call().stream.cancel(Status.DEADLINE_EXCEEDED.withDescription("context timed out"));
        awaitFrame(peer, "RESET 1 cancelled");
        peer.channel.close().sync();
    }

    /** A client that stood still while the server gave up waiting for its GOAWAY has broken no rule. */
    @Test
    void callsOfAClientThatReadsGoAwayLateAreRefusedAsNotProcessed() throws Exception {
        Peer peer = begun();
        peer.send(into -> headers(into, 1, false));
        OfServed first = last.call();
        last.transport.shutdown();
        awaitFrame(peer, "GOAWAY GRACEFUL");
        awaitFrame(peer, "GOAWAY GRACEFUL at 1");
        peer.send(into -> {
            headers(into, 2, false);
            Frames.data(into, 2, true, 4);
            into.writeZero(4);
        });
        awaitFrame(peer, "RESET 2 not processed");
        first.stream.close(Status.OK, new Metadata());
        awaitFrame(peer, "TRAILERS 1");
        assertThat(frames(peer.received)).containsOnlyOnce("GOAWAY GRACEFUL", "GOAWAY GRACEFUL at 1");
        peer.awaitClosed();
        assertThat(last.calls).isEmpty();
    }

    /** The last GOAWAY names the last call, so that a client knows which may be made again. */
    @Test
    void aClientThatDoesNotAnswerGoAwayLearnsWhichCallsWereBegun() throws Exception {
        Peer peer = begun();
        last.transport.shutdown();
        peer.awaitClosed();
        assertThat(frames(peer.received)).containsOnlyOnce("GOAWAY GRACEFUL", "GOAWAY GRACEFUL at 0");
    }

    @Test
    void moreCallsAtOnceThanAnnouncedAreRefusedAsNotProcessed() throws Exception {
        Peer peer = begun();
        peer.send(into -> {
            for (int stream = 1; stream <= MAX_STREAMS + 2; stream++) {
                headers(into, stream, false);
            }
        });
        Patience.until("two are refused", () -> {
            try {
                return frames(peer.received)
                        .containsAll(List.of(
                                "RESET " + (MAX_STREAMS + 1) + " not processed",
                                "RESET " + (MAX_STREAMS + 2) + " not processed"));
            } catch (ProtocolViolation violation) {
                throw new AssertionError(violation);
            }
        });
        assertThat(peer.channel.isActive()).isTrue();
        peer.channel.close().sync();
    }

    @Test
    void aCallWithoutAMethodIsRefused() throws Exception {
        Peer peer = begun();
        peer.send(into -> Frames.endFields(into, Frames.beginFields(into, false, 1, true)));
        Patience.until("it is refused", () -> peer.received.size() >= 2);
        assertThat(frames(peer.received)).contains("RESET 1");
        peer.channel.close().sync();
    }

    /** Frames that each are in order, at random: the server lives, and the connection ends or not. */
    @Test
    void anyOrderOfFrames() throws Exception {
        long seed = new Random().nextLong();
        System.out.println("seed " + seed);
        Random random = new Random(seed);
        for (int round = 0; round < 40; round++) {
            Peer peer = begun();
            for (int i = 0; i < 30 && peer.channel.isActive(); i++) {
                int stream = 1 + random.nextInt(8);
                int kind = random.nextInt(7);
                peer.send(into -> {
                    switch (kind) {
                        case 0, 1, 2 -> headers(into, stream, random.nextBoolean());
                        case 3 -> {
                            Frames.data(into, stream, random.nextBoolean(), 4);
                            into.writeZero(4);
                        }
                        case 4 -> Frames.reset(into, stream, false, 1, "");
                        case 5 -> Frames.window(into, stream, 10);
                        default -> Frames.ping(into, true, 4);
                    }
                });
            }
            peer.channel.close().sync();
        }
    }

    /** A server that answers with what a test writes. */
    private Peer serve(OfTransport listener, Consumer<ByteBuf> answer, boolean waits) throws Exception {
        Served served = harness.serve(listener, SETTINGS);
        Peer peer = served.server();
        if (waits) {
            await("the client is ready", listener.ready);
            OfCall call = new OfCall();
            open(served.client(), call, new Metadata());
            Patience.take("its call", peer.received);
            peer.send(answer);
            assertThat(call.closedWith()).isNotEqualTo(Status.Code.OK);
        } else {
            peer.send(answer);
        }
        await("the client is terminated", listener.terminated);
        assertThat(listener.shutdown).hasSize(1);
        return peer;
    }

    @Test
    void aServerThatBreaksTheRulesLosesItsClient() throws Exception {
        serve(new OfTransport(), into -> into.writeBytes(bytes("what is a frame?")), false);
        serve(
                new OfTransport(),
                into -> {
                    Frames.data(into, 1, false, 1); // before HEADERS
                    into.writeZero(1);
                },
                true);
        serve(new OfTransport(), into -> Frames.endFields(into, Frames.beginFields(into, true, 9, true)), true);
        serve(new OfTransport(), into -> Frames.window(into, 1, Integer.MAX_VALUE), true);
        serve(
                new OfTransport(),
                into -> {
                    Frames.endFields(into, Frames.beginFields(into, false, 1, false));
                    Frames.endFields(into, Frames.beginFields(into, false, 1, false));
                },
                true);
    }

    @Test
    void callsOfALostServerEndOnce() throws Exception {
        OfTransport listener = new OfTransport();
        NativeClientTransport client = harness.connected(listener);
        OfConnection connection = harness.connection();
        List<OfCall> calls = new ArrayList<>();
        for (int i = 0; i < 64; i++) {
            OfCall call = new OfCall();
            open(client, call, new Metadata()).request(1);
            calls.add(call);
        }
        for (int i = 0; i < MAX_STREAMS; i++) {
            connection.call();
        }
        NativeServerTransport transport = (NativeServerTransport) connection.transport;
        transport.channel().deregister(); // ends it at once
        for (OfCall call : calls) {
            assertThat(call.closedWith()).isEqualTo(Status.Code.UNAVAILABLE);
            assertThat(call.closed).isEmpty();
        }
        await("the client is terminated", listener.terminated);
        await("the server's connection is terminated", connection.terminated);
        assertThat(listener.terminations.get()).isEqualTo(1);
    }
}
