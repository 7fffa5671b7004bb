package org.verbena.it.lab;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.bootstrap.Bootstrap;
import io.netty.bootstrap.ServerBootstrap;
import io.netty.channel.ChannelFuture;
import io.netty.channel.ChannelOption;
import io.netty.channel.WriteBufferWaterMark;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.verbena.api.ApiSuite;
import org.verbena.api.ProviderStatistics;
import org.verbena.api.RdmaChannel;
import org.verbena.api.RdmaChannelOption;
import org.verbena.transport.Framing;
import org.verbena.transport.spi.Patience;

/** A receiver that does not read stops its sender by credits: the device never has to say "receiver not ready". */
@Tag("lab")
class BackpressureTest extends ApiSuite {
    private static final int MESSAGE_BYTES = 10_000;

    @Override
    protected String provider() {
        return "verbs";
    }

    @Override
    protected String host() {
        return LabDevice.RXE.address();
    }

    /** How often the device has said or heard "receiver not ready". */
    private static long receiverNotReady() throws IOException {
        Path counters = Path.of("/sys/class/infiniband", LabDevice.RXE.deviceName(), "ports/1/hw_counters");
        try (Stream<Path> all = Files.list(counters)) {
            List<Path> rnr = all.filter(
                            counter -> counter.getFileName().toString().contains("rnr"))
                    .toList();
            assertThat(rnr).as("counters of RNR in %s", counters).isNotEmpty();
            long sum = 0;
            for (Path counter : rnr) {
                sum += Long.parseLong(Files.readString(counter).strip());
            }
            return sum;
        }
    }

    private long bufferedBytes() {
        ProviderStatistics now = group.providerStatistics();
        return now.sendBuffers().usedBytes() + now.receiveBuffers().usedBytes();
    }

    @Test
    void theSenderIsStoppedByCreditsAlone() throws Exception {
        long before = receiverNotReady();
        ServerBootstrap serving = new ServerBootstrap()
                .childOption(ChannelOption.AUTO_READ, false)
                .childOption(RdmaChannelOption.RECEIVE_DEPTH, 16);
        try (Server server = new Server(serving)) {
            Bootstrap sending = bootstrap()
                    .option(ChannelOption.WRITE_BUFFER_WATER_MARK, new WriteBufferWaterMark(64 << 10, 256 << 10));
            RdmaChannel client = connect(sending, server);
            RdmaChannel peer = server.next();
            long idleBytes = bufferedBytes();
            List<ChannelFuture> writes = new ArrayList<>();
            while (client.isWritable()) {
                writes.add(client.writeAndFlush(pattern(client, MESSAGE_BYTES, writes.size())));
                assertThat(writes).hasSizeLessThan(10_000);
            }
            Patience.until("the credits are used up", () -> client.statistics().credits() == 0);
            Patience.turns(client.eventLoop(), peer.eventLoop());
            assertThat(client.isWritable()).isFalse();
            assertThat(inbox(peer).messages).isEmpty();
            assertThat(client.statistics().creditStalls()).isPositive();
            // What the water mark lets in, and the receives of both ends.
            assertThat(bufferedBytes() - idleBytes).isLessThan(4 << 20);
            assertThat(receiverNotReady()).isEqualTo(before);

            peer.config().setAutoRead(true);
            for (int i = 0; i < writes.size(); i++) {
                assertThat(inbox(peer).next()).as("message %d", i).isEqualTo(patternBytes(MESSAGE_BYTES, i));
            }
            for (ChannelFuture write : writes) {
                done("a write", write);
            }
            Patience.until("the sender may go on", client::isWritable);
            done("closing", client.close());
        }
        assertThat(receiverNotReady()).isEqualTo(before);
    }

    /** The counters do count: without credits, the same receiver is not ready. */
    @Test
    void withoutCreditsTheCountersGrow() throws Exception {
        long before = receiverNotReady();
        ServerBootstrap serving = new ServerBootstrap()
                .childOption(ChannelOption.AUTO_READ, false)
                .childOption(RdmaChannelOption.FRAMING, Framing.RAW)
                .childOption(RdmaChannelOption.RECEIVE_DEPTH, 2);
        try (Server server = new Server(serving)) {
            RdmaChannel client = connect(bootstrap().option(RdmaChannelOption.FRAMING, Framing.RAW), server);
            RdmaChannel peer = server.next();
            for (int i = 0; i < 8; i++) {
                client.writeAndFlush(pattern(client, 100, i));
            }
            Patience.until("a receiver is not ready", () -> {
                try {
                    return receiverNotReady() > before;
                } catch (IOException e) {
                    throw new AssertionError(e);
                }
            });
            peer.config().setAutoRead(true);
            for (int i = 0; i < 8; i++) {
                assertThat(inbox(peer).next()).isEqualTo(patternBytes(100, i));
            }
            done("closing", client.close());
        }
    }
}
