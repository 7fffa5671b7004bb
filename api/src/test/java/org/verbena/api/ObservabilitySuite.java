package org.verbena.api;

import static org.assertj.core.api.Assertions.assertThat;

import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.Logger;
import ch.qos.logback.classic.spi.ILoggingEvent;
import ch.qos.logback.core.AppenderBase;
import io.netty.bootstrap.Bootstrap;
import io.netty.bootstrap.ServerBootstrap;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.ChannelFuture;
import io.netty.channel.ChannelHandler;
import io.netty.channel.ChannelOption;
import io.netty.util.concurrent.Future;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.stream.Collectors;
import jdk.jfr.Recording;
import jdk.jfr.consumer.RecordedEvent;
import jdk.jfr.consumer.RecordingFile;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.slf4j.LoggerFactory;
import org.verbena.transport.MemoryDomain.Access;
import org.verbena.transport.MessageStatistics;
import org.verbena.transport.RegisteredMemory;
import org.verbena.transport.RemoteMemory;
import org.verbena.transport.spi.Patience;

/** What a channel and its provider report about themselves. */
public abstract class ObservabilitySuite extends ApiSuite {
    private static final int LARGE_BYTES = 2 << 20;

    @TempDir
    Path folder;

    /** The status that a refused read completes with, where the device tells; else null. */
    protected String refusalStatus() {
        return "REMOTE_ACCESS_ERROR";
    }

    /** A client whose large messages the peer reads, whatever suits the device. */
    private Bootstrap reading(ChannelHandler... handlers) {
        return bootstrap(handlers).option(RdmaChannelOption.RENDEZVOUS_THRESHOLD_BYTES, LARGE_BYTES - 1);
    }

    @Test
    void aChannelCountsItsMessages() {
        try (Server server = listen()) {
            RdmaChannel client = connect(reading(), server);
            RdmaChannel peer = server.next();
            ProviderStatistics before = group.providerStatistics();
            for (int i = 0; i < 10; i++) {
                done("sending", client.writeAndFlush(pattern(client, 1000, i)));
            }
            done("sending", client.writeAndFlush(Unpooled.directBuffer(100).writeZero(100)));
            done("sending", client.writeAndFlush(pattern(client, LARGE_BYTES, 3)));
            for (int i = 0; i < 12; i++) {
                inbox(peer).next();
            }
            // What is there now is counted at the end of the loop's work, behind the last future.
            Patience.until("nothing is queued", () -> client.statistics().queuedBytes() == 0);
            done("the peer's work", peer.eventLoop().submit(() -> {}));
            done("the client's work", client.eventLoop().submit(() -> {}));
            MessageStatistics sent = client.statistics();
            assertThat(sent.messagesSent()).isEqualTo(12);
            assertThat(sent.bytesSent()).isEqualTo(10 * 1000 + 100 + LARGE_BYTES);
            assertThat(sent.rendezvousSent()).isEqualTo(1);
            assertThat(sent.copiedBytes()).isEqualTo(100);
            assertThat(sent.framesSent()).isGreaterThanOrEqualTo(13); // HELLO as well
            assertThat(sent.queuedBytes()).isZero();
            assertThat(sent.credits()).isPositive();
            MessageStatistics received = peer.statistics();
            assertThat(received.messagesReceived()).isEqualTo(12);
            assertThat(received.bytesReceived()).isEqualTo(10 * 1000 + 100 + LARGE_BYTES);
            assertThat(received.rendezvousReceived()).isEqualTo(1);
            assertThat(received.creditsGranted()).isPositive();

            ProviderStatistics after = group.providerStatistics();
            assertThat(after.provider()).isEqualTo(provider());
            assertThat(after.openConnections()).isGreaterThanOrEqualTo(2);
            assertThat(after.messages().messagesSent() - before.messages().messagesSent())
                    .isEqualTo(12);
            assertThat(after.messages().messagesReceived() - before.messages().messagesReceived())
                    .isEqualTo(12);
            assertThat(after.loops().completions() - before.loops().completions())
                    .isGreaterThanOrEqualTo(24);
            assertThat(after.loops().polls()).isGreaterThan(before.loops().polls());
            assertThat(after.loops().completionsPerPoll()).isGreaterThanOrEqualTo(1);
            assertThat(after.loops().largestPoll()).isPositive();
            assertThat(after.loops().registeredBytes())
                    .isGreaterThanOrEqualTo(after.sendBuffers().registeredBytes()
                            + after.receiveBuffers().registeredBytes());
            assertThat(after.receiveBuffers().usedBytes()).isPositive();

            done("closing", client.close());
            done("the peer closing", peer.closeFuture());
            // What has ended still counts.
            assertThat(client.statistics().messagesSent()).isEqualTo(12);
            ProviderStatistics ended = group.providerStatistics();
            assertThat(ended.messages().messagesSent())
                    .isEqualTo(after.messages().messagesSent());
            assertThat(ended.openConnections()).isEqualTo(after.openConnections() - 2);
            assertThat(ended.lostConnections()).isEqualTo(before.lostConnections());
            assertThat(ended.messages().creditsGranted())
                    .isEqualTo(after.messages().creditsGranted() - received.creditsGranted() - sent.creditsGranted());
        }
    }

    @Test
    void aChannelCountsOneSidedOperations() {
        try (Server server = listen();
                Arena arena = Arena.ofShared()) {
            RdmaChannel client = connect(server);
            RdmaChannel peer = server.next();
            RegisteredMemory table = peer.memory()
                    .register(
                            arena.allocate(4096), Set.of(Access.LOCAL_WRITE, Access.REMOTE_READ, Access.REMOTE_WRITE));
            ByteBuf row = pattern(client, 64, 1);
            done("writing", client.write(table.remote(), 0, row));
            row.clear();
            done("reading", client.read(table.remote(), 0, row));
            row.release();
            assertThat(client.statistics().oneSidedOperations()).isEqualTo(2);
            assertThat(client.statistics().messagesSent()).isZero();
            done("closing", client.close());
            table.close();
        }
    }

    @Test
    void stallsAreCountedAndTimed() {
        ServerBootstrap slow = new ServerBootstrap()
                .childOption(ChannelOption.AUTO_READ, false)
                .childOption(RdmaChannelOption.RECEIVE_DEPTH, 16);
        try (Server server = new Server(slow)) {
            RdmaChannel client = connect(server);
            RdmaChannel peer = server.next();
            List<ChannelFuture> writes = new ArrayList<>();
            for (int i = 0; i < 50; i++) {
                writes.add(client.writeAndFlush(pattern(client, 100, i)));
            }
            Patience.until("the sender is stopped", () -> client.statistics().creditStalls() == 1);
            long beganNanos = System.nanoTime();
            Patience.until("no credits are left", () -> client.statistics().credits() == 0);
            Patience.until("messages wait", () -> client.statistics().queuedBytes() > 0);
            assertThat(client.statistics().creditStallNanos()).isZero();
            Patience.until("the receiver notices", () -> peer.statistics().receiveQueueLow() > 0);
            long stalledNanos = System.nanoTime() - beganNanos;
            peer.config().setAutoRead(true);
            for (ChannelFuture write : writes) {
                done("a write", write);
            }
            Patience.until("the stall is over", () -> client.statistics().creditStallNanos() > 0);
            assertThat(client.statistics().creditStallNanos()).isGreaterThanOrEqualTo(stalledNanos);
            done("closing", client.close());
        }
    }

    @Test
    void framesAreLoggedReadably() {
        Logger logger = (Logger) LoggerFactory.getLogger("frames-of-" + provider());
        logger.setLevel(Level.DEBUG);
        logger.setAdditive(false);
        List<String> lines = new CopyOnWriteArrayList<>();
        AppenderBase<ILoggingEvent> appender = new AppenderBase<>() {
            @Override
            protected void append(ILoggingEvent event) {
                lines.add(event.getFormattedMessage());
            }
        };
        appender.setContext(logger.getLoggerContext());
        appender.start();
        logger.addAppender(appender);
        try (Server server = listen()) {
            RdmaChannel client = connect(reading(new FrameLogger(logger, 4)), server);
            RdmaChannel peer = server.next();
            client.writeAndFlush(client.alloc().buffer(5).writeBytes("hello".getBytes(StandardCharsets.US_ASCII)));
            client.writeAndFlush(pattern(client, LARGE_BYTES, 1));
            inbox(peer).next();
            inbox(peer).next();
            done("answering", peer.writeAndFlush(pattern(peer, 3, 1)));
            inbox(client).next();
            done("closing", client.close());
            Patience.until("the end is logged", () -> lines.stream().anyMatch(line -> line.contains("] inactive")));
            String id = "\\[0x" + client.id().asShortText() + "] ";
            assertThat(lines)
                    .anyMatch(line -> line.matches(id
                            + "> HELLO, version 1-1, framing 1, features 0x\\p{XDigit}+, "
                            + "receives of \\d+(?: to \\d+)? bytes, .*"))
                    .anyMatch(line -> line.matches(id + "< HELLO_ACK, .*\\[grant \\d+, control 0, rendezvous 0]"))
                    .anyMatch(line -> line.matches(id + "active, .* to .*"))
                    .anyMatch(line -> line.matches(id + "> message of 5 bytes: 68 65 6c 6c \\|hell\\|\\.\\.\\."))
                    .anyMatch(line -> line.matches(id + "> MESSAGE 5 of 5 bytes \\[grant .*"))
                    .anyMatch(line -> line.matches(id + "> RENDEZVOUS " + LARGE_BYTES + " bytes, \\d+ pieces \\[.*"))
                    .anyMatch(line -> line.matches(id + "< MESSAGE 3 of 3 bytes \\[.*"))
                    .anyMatch(line -> line.matches(id + "> CLOSE \\[.*"))
                    .anyMatch(line -> line.matches(id + "< CLOSE \\[.*"))
                    .anyMatch(line -> line.matches(id + "inactive; MessageStatistics\\[messagesSent=2, .*"));
        } finally {
            logger.detachAppender(appender);
        }
    }

    @Test
    void aRecordingOfAFailingRunTellsWhatHappenedAndWhy() throws Exception {
        Path file = folder.resolve("failing.jfr");
        InetSocketAddress peerAddress;
        InetSocketAddress clientAddress;
        try (Recording recording = new Recording()) {
            for (String name : List.of("Connect", "Disconnect", "CompletionError", "CreditStall", "Rendezvous")) {
                recording.enable("org.verbena." + name).withoutThreshold();
            }
            recording.start();
            ServerBootstrap slow = new ServerBootstrap()
                    .childOption(ChannelOption.AUTO_READ, false)
                    .childOption(RdmaChannelOption.RECEIVE_DEPTH, 16);
            try (Server server = new Server(slow);
                    Arena arena = Arena.ofShared()) {
                peerAddress = server.address();
                RdmaChannel client = connect(reading(), server);
                clientAddress = client.localAddress();
                RdmaChannel peer = server.next();
                // A slow reader stops the sender for a while.
                List<ChannelFuture> writes = new ArrayList<>();
                for (int i = 0; i < 50; i++) {
                    writes.add(client.writeAndFlush(pattern(client, 100, i)));
                }
                Patience.until(
                        "the sender is stopped", () -> client.statistics().creditStalls() > 0);
                Patience.until("messages wait", () -> client.statistics().queuedBytes() > 0);
                peer.config().setAutoRead(true);
                for (ChannelFuture write : writes) {
                    done("a write", write);
                }
                done("a large message", client.writeAndFlush(pattern(client, LARGE_BYTES, 1)));
                // Then the peer takes its memory back, and somebody reads it all the same.
                RegisteredMemory table =
                        peer.memory().register(arena.allocate(4096), Set.of(Access.LOCAL_WRITE, Access.REMOTE_READ));
                RemoteMemory token = table.remote();
                table.close();
                ByteBuf into = client.alloc().buffer(64, 64);
                Future<Void> refused = client.read(token, 0, into);
                failure("the read", refused);
                into.release();
                done("the connection ends", client.closeFuture());
                done("the peer's end", peer.closeFuture());
            }
            // And nobody listens any more.
            failure("connecting", bootstrap().connect(peerAddress));
            recording.stop();
            recording.dump(file);
        }

        List<RecordedEvent> events = RecordingFile.readAllEvents(file);
        RecordedEvent up = one(events, "Connect", clientAddress, peerAddress);
        assertThat(up.getBoolean("succeeded")).isTrue();
        assertThat(up.getString("role")).isEqualTo("INITIATOR");
        assertThat(up.getInt("peerWindow")).isEqualTo(14);
        assertThat(up.getDuration()).isPositive();
        assertThat(one(events, "Connect", peerAddress, clientAddress).getString("role"))
                .isEqualTo("ACCEPTOR");

        // While it catches up the sender may run out of credits again, for a moment.
        List<RecordedEvent> stalls = all(events, "CreditStall", clientAddress, peerAddress);
        assertThat(stalls).isNotEmpty();
        RecordedEvent stall = stalls.get(0);
        assertThat(stall.getDuration()).isPositive();
        assertThat(stall.getString("endedBy")).isEqualTo("credits");
        assertThat(stall.getLong("queuedBytes")).isPositive();

        RecordedEvent large = one(events, "Rendezvous", clientAddress, peerAddress);
        assertThat(large.getString("direction")).isEqualTo("sent");
        assertThat(large.getLong("lengthBytes")).isEqualTo(LARGE_BYTES);
        assertThat(one(events, "Rendezvous", peerAddress, clientAddress).getString("direction"))
                .isEqualTo("received");

        RecordedEvent down = one(events, "Disconnect", clientAddress, peerAddress);
        assertThat(down.getBoolean("inGoodOrder")).isFalse();
        assertThat(down.getInt("failedOperations")).isEqualTo(1);
        assertThat(down.getLong("messagesSent")).isEqualTo(51);
        assertThat(down.getLong("bytesSent")).isEqualTo(50 * 100 + LARGE_BYTES);
        assertThat(down.getLong("creditStalls")).isEqualTo(stalls.size());
        assertThat(down.getString("cause")).isNotBlank();
        if (refusalStatus() != null) {
            RecordedEvent error = one(events, "CompletionError", clientAddress, peerAddress);
            assertThat(error.getString("status")).isEqualTo(refusalStatus());
            assertThat(error.getString("work")).startsWith("READ at 0x");
            assertThat(error.getString("explanation")).contains("refused access");
            assertThat(down.getString("cause")).contains("READ at 0x").contains(refusalStatus());
        }

        RecordedEvent failed = events.stream()
                .filter(event -> event.getEventType().getName().equals("org.verbena.Connect"))
                .filter(event -> !event.getBoolean("succeeded"))
                .findFirst()
                .orElseThrow(() -> new AssertionError("no failed connect in " + events));
        assertThat(failed.getString("remoteAddress")).isEqualTo(format(peerAddress));
        assertThat(failed.getString("cause")).contains("ConnectionException").contains("connect");

        String printed = jfrPrint(file);
        assertThat(printed)
                .contains("org.verbena.Connect {")
                .contains("org.verbena.CreditStall {")
                .contains("org.verbena.Disconnect {")
                .contains("inGoodOrder = false");
    }

    private static String format(InetSocketAddress address) {
        return address.getAddress().getHostAddress() + ":" + address.getPort();
    }

    private static RecordedEvent one(
            List<RecordedEvent> events, String name, InetSocketAddress local, InetSocketAddress remote) {
        List<RecordedEvent> found = all(events, name, local, remote);
        assertThat(found)
                .as("%s from %s to %s in %s", name, local, remote, events)
                .hasSize(1);
        return found.get(0);
    }

    private static List<RecordedEvent> all(
            List<RecordedEvent> events, String name, InetSocketAddress local, InetSocketAddress remote) {
        return events.stream()
                .filter(event -> event.getEventType().getName().equals("org.verbena." + name))
                .filter(event -> format(local).equals(event.getString("localAddress"))
                        && format(remote).equals(event.getString("remoteAddress")))
                .sorted(Comparator.comparing(RecordedEvent::getStartTime))
                .toList();
    }

    /**
     * What {@code jfr print} writes of our events: it prints them as their toString does, and a process of it takes
     * long to start in the lab.
     */
    private static String jfrPrint(Path file) throws IOException {
        return RecordingFile.readAllEvents(file).stream()
                .filter(event -> event.getEventType().getName().startsWith("org.verbena."))
                .map(RecordedEvent::toString)
                .collect(Collectors.joining("\n"));
    }
}
