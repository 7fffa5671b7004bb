package org.verbena.api;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.bootstrap.Bootstrap;
import io.netty.bootstrap.ServerBootstrap;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.CompositeByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import java.io.BufferedReader;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.function.Function;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.verbena.transport.CompletionLoopOptions;
import org.verbena.transport.MessageStatistics;
import org.verbena.transport.protocol.MessageOptions;
import org.verbena.transport.provider.ProviderChoice;
import org.verbena.transport.spi.Patience;
import org.verbena.transport.spi.WorkRequest;

/**
 * How often a message's bytes are copied on their way, found by comparing addresses: what the device is told to take
 * must be the memory that the sender wrote into, and what the receiver's handler gets must be the memory that the
 * device was told to fill. What a device does between the two is its own matter.
 */
public abstract class CopiesSuite extends ApiSuite {
    /** Headers, and what a frame without a message consists of. */
    private static final int HEADER_BYTES = 16;

    private static final int RECEIVE_BYTES = 16384;

    private CountingProvider counting;
    private RdmaEventLoopGroup countingGroup;

    @BeforeEach
    void openCountingGroup() {
        counting = new CountingProvider(ProviderChoice.choose(provider(), null).provider());
        countingGroup =
                new RdmaEventLoopGroup(new ProviderChoice(counting, "counts"), 2, null, CompletionLoopOptions.DEFAULTS);
    }

    @AfterEach
    void closeCountingGroup() {
        countingGroup.close();
    }

    /** A message as its receiver's handler had it. */
    private record Delivered(byte[] content, long placedBytes) {}

    /** The outcome of one message. */
    private record Passage(
            long bytes,
            long takenBytes,
            long placedBytes,
            MessageStatistics sender,
            MessageStatistics receiver,
            int sends,
            int reads) {
        /** Bytes that the device did not take from where the sender had them. */
        long copiedOnTheWayOut() {
            return bytes - takenBytes;
        }

        /** Bytes that the receiver's handler did not get where the device put them. */
        long copiedOnTheWayIn() {
            return bytes - placedBytes;
        }
    }

    /** Sends one message and looks at where its bytes were. */
    private Passage pass(int rendezvousThresholdBytes, Function<RdmaChannel, ByteBuf> message) {
        BlockingQueue<Delivered> delivered = new LinkedBlockingQueue<>();
        ServerBootstrap serving = new ServerBootstrap();
        serving.childOption(RdmaChannelOption.RENDEZVOUS_THRESHOLD_BYTES, rendezvousThresholdBytes);
        serving.childOption(RdmaChannelOption.RECEIVE_BUFFER_BYTES, RECEIVE_BYTES);
        RdmaServerChannel server = (RdmaServerChannel) done(
                        "listening",
                        serving.group(countingGroup)
                                .channel(RdmaServerChannel.class)
                                .childHandler(new ChannelInboundHandlerAdapter() {
                                    @Override
                                    public boolean isSharable() {
                                        return true;
                                    }

                                    @Override
                                    public void channelRead(ChannelHandlerContext context, Object came) {
                                        delivered.add(inspect((ByteBuf) came));
                                    }
                                })
                                .bind(host(), 0))
                .channel();
        RdmaChannel client = (RdmaChannel) done(
                        "connecting",
                        new Bootstrap()
                                .group(countingGroup)
                                .channel(RdmaChannel.class)
                                .option(RdmaChannelOption.RENDEZVOUS_THRESHOLD_BYTES, rendezvousThresholdBytes)
                                .handler(new ChannelInboundHandlerAdapter())
                                .connect(server.localAddress()))
                .channel();
        // The handshake is over; receives stay noted.
        counting.sources.clear();
        ByteBuf outgoing = message.apply(client);
        byte[] content = ByteBufUtil.getBytes(outgoing);
        List<long[]> memory = memoryOf(outgoing);
        done("sending", client.writeAndFlush(outgoing));
        Delivered came = Patience.take("the message", delivered);
        assertThat(came.content()).isEqualTo(content);
        long taken = 0;
        int sends = 0;
        int reads = 0;
        for (CountingProvider.Stretch source : counting.sources) {
            long mine = overlap(memory, source);
            taken += mine;
            sends += mine > 0 && source.by() == WorkRequest.Opcode.SEND ? 1 : 0;
            reads += mine > 0 && source.by() == WorkRequest.Opcode.READ ? 1 : 0;
        }
        MessageStatistics statistics = client.statistics();
        done("closing", client.close());
        MessageStatistics receiver = countingGroup.providerStatistics().messages();
        done("the server closing", server.close());
        return new Passage(content.length, taken, came.placedBytes(), statistics, receiver, sends, reads);
    }

    private Delivered inspect(ByteBuf message) {
        try {
            List<long[]> memory = memoryOf(message);
            long placed = 0;
            for (long[] part : memory) {
                // Receive buffers are posted again and again: each is counted once.
                placed += counting.sinks.stream()
                        .mapToLong(sink -> sink.overlap(part[0], part[1]))
                        .max()
                        .orElse(0);
            }
            long read = 0;
            for (CountingProvider.Stretch sink : counting.sinks) {
                read += sink.by() == WorkRequest.Opcode.READ ? overlap(memory, sink) : 0;
            }
            return new Delivered(ByteBufUtil.getBytes(message), Math.max(placed, read));
        } finally {
            message.release();
        }
    }

    private static long overlap(List<long[]> memory, CountingProvider.Stretch stretch) {
        long sum = 0;
        for (long[] part : memory) {
            sum += stretch.overlap(part[0], part[1]);
        }
        return sum;
    }

    /** Where a buffer's bytes are: address and length of each part; nothing for what is on the heap. */
    private static List<long[]> memoryOf(ByteBuf buffer) {
        List<long[]> parts = new ArrayList<>();
        if (buffer.isReadable()) {
            for (ByteBuffer part : buffer.nioBuffers()) {
                if (part.isDirect() && part.hasRemaining()) {
                    parts.add(new long[] {MemorySegment.ofBuffer(part).address(), part.remaining()});
                }
            }
        }
        return parts;
    }

    private static void assertNoCopies(Passage passage) {
        assertThat(passage.copiedOnTheWayOut())
                .as("bytes copied on the way out: %s", passage)
                .isZero();
        assertThat(passage.copiedOnTheWayIn())
                .as("bytes copied on the way in: %s", passage)
                .isZero();
        assertThat(passage.sender().copiedBytes()).isZero();
        assertThat(passage.sender().registrations()).isZero();
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 64, 1000, RECEIVE_BYTES - HEADER_BYTES})
    void anEagerMessageIsNotCopied(int bytes) {
        Passage passage = pass(65536, channel -> pattern(channel, bytes, 7));
        assertNoCopies(passage);
        assertThat(passage.sends()).isEqualTo(1);
        assertThat(passage.reads()).isZero();
    }

    @ParameterizedTest
    @ValueSource(ints = {RECEIVE_BYTES - HEADER_BYTES + 1, 100_000, 1 << 20})
    void aFragmentedMessageIsCopiedOnceByItsReceiver(int bytes) {
        Passage passage = pass(Integer.MAX_VALUE, channel -> pattern(channel, bytes, 7));
        assertThat(passage.copiedOnTheWayOut()).isZero();
        assertThat(passage.copiedOnTheWayIn()).isEqualTo(bytes);
        assertThat(passage.sender().copiedBytes()).isZero();
        assertThat(passage.sender().registrations()).isZero();
        assertThat(passage.sends()).isGreaterThan(1);
        assertThat(passage.reads()).isZero();
    }

    @ParameterizedTest
    @ValueSource(ints = {65537, 1 << 20, 16 << 20})
    void aMessageByRendezvousIsNotCopied(int bytes) {
        Passage passage = pass(65536, channel -> pattern(channel, bytes, 7));
        assertThat(passage.copiedOnTheWayOut()).isZero();
        assertThat(passage.copiedOnTheWayIn()).isZero();
        assertThat(passage.sender().copiedBytes()).isZero();
        assertThat(passage.sends()).isZero();
        assertThat(passage.reads()).isPositive();
        assertThat(passage.sender().rendezvousSent()).isEqualTo(1);
    }

    @ParameterizedTest
    @ValueSource(ints = {3000, 200_000})
    void aCompositeIsNotCopied(int bytes) {
        Passage passage = pass(65536, channel -> {
            CompositeByteBuf whole = channel.alloc().compositeDirectBuffer(3);
            return whole.addComponents(
                    true,
                    pattern(channel, bytes / 3, 1),
                    pattern(channel, bytes / 3, 2),
                    pattern(channel, bytes - 2 * (bytes / 3), 3));
        });
        assertThat(passage.copiedOnTheWayOut()).as("%s", passage).isZero();
        assertThat(passage.copiedOnTheWayIn()).as("%s", passage).isZero();
        assertThat(passage.sender().copiedBytes()).isZero();
        assertThat(passage.sender().rendezvousSent()).isEqualTo(bytes > 65536 ? 1 : 0);
    }

    /** What a receiver copies: the fragments of a message, into one buffer. */
    private static long assembled(Passage passage) {
        return passage.reads() == 0 && passage.bytes() > RECEIVE_BYTES - HEADER_BYTES ? passage.bytes() : 0;
    }

    @ParameterizedTest
    @ValueSource(ints = {3000, 200_000})
    void aSliceIsNotCopied(int bytes) {
        Passage passage = pass(65536, channel -> {
            ByteBuf whole = pattern(channel, bytes + 500, 1);
            ByteBuf slice = whole.retainedSlice(250, bytes);
            whole.release();
            return slice;
        });
        assertThat(passage.copiedOnTheWayOut()).as("%s", passage).isZero();
        assertThat(passage.copiedOnTheWayIn()).as("%s", passage).isZero();
        assertThat(passage.sender().copiedBytes()).isZero();
    }

    @Test
    void aMessageThatIsSentOnIsNotCopied() {
        BlockingQueue<Long> taken = new LinkedBlockingQueue<>();
        ServerBootstrap serving = new ServerBootstrap();
        RdmaServerChannel server = (RdmaServerChannel) done(
                        "listening",
                        serving.group(countingGroup)
                                .channel(RdmaServerChannel.class)
                                .childHandler(new ChannelInboundHandlerAdapter() {
                                    @Override
                                    public void channelRead(ChannelHandlerContext context, Object came) {
                                        List<long[]> memory = memoryOf((ByteBuf) came);
                                        counting.sources.clear();
                                        context.writeAndFlush(came)
                                                .addListener(sent -> taken.add(counting.sources.stream()
                                                        .mapToLong(source -> overlap(memory, source))
                                                        .sum()));
                                    }
                                })
                                .bind(host(), 0))
                .channel();
        Inbox inbox = new Inbox(channel -> {});
        RdmaChannel client = (RdmaChannel) done(
                        "connecting",
                        new Bootstrap()
                                .group(countingGroup)
                                .channel(RdmaChannel.class)
                                .handler(inbox)
                                .connect(server.localAddress()))
                .channel();
        done("sending", client.writeAndFlush(pattern(client, 5000, 1)));
        assertThat(Patience.take("the echo", taken)).isEqualTo(5000);
        assertThat(inbox.next()).isEqualTo(patternBytes(5000, 1));
        done("closing", client.close());
        done("the server closing", server.close());
    }

    @Test
    void aSmallForeignBufferIsCopiedOnce() {
        for (ByteBuf foreign : List.of(Unpooled.directBuffer(), Unpooled.buffer())) {
            foreign.writeBytes(patternBytes(5000, 1));
            Passage passage = pass(65536, channel -> foreign);
            assertThat(passage.copiedOnTheWayOut()).isEqualTo(5000);
            assertThat(passage.copiedOnTheWayIn()).isZero();
            assertThat(passage.sender().copiedBytes()).isEqualTo(5000);
            assertThat(passage.sender().registrations()).isZero();
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {65536, Integer.MAX_VALUE})
    void aLargeForeignBufferIsRegistered(int rendezvousThresholdBytes) {
        int bytes = MessageOptions.DEFAULTS.registerThresholdBytes() + 1000;
        Passage passage = pass(
                rendezvousThresholdBytes,
                channel -> Unpooled.directBuffer(bytes).writeBytes(patternBytes(bytes, 1)));
        assertThat(passage.copiedOnTheWayOut()).as("%s", passage).isZero();
        assertThat(passage.copiedOnTheWayIn()).as("%s", passage).isEqualTo(assembled(passage));
        assertThat(passage.sender().copiedBytes()).isZero();
        assertThat(passage.sender().registrations()).isEqualTo(1);
    }

    @Test
    void aRendezvousTakesAKeyOfItsOwn() throws Exception {
        assertThat(OneMessage.send(provider(), host(), 200_000, true))
                .matches("sent (200000 bytes with \\p{XDigit}+), came \\1, keys .*")
                .endsWith(", keys of the sender 1, rendezvous 1");
    }

    @Tag("lab-full")
    @Test
    protected void aRendezvousTakesNoKeyOfItsOwnWherePeersAreTrusted() throws Exception {
        Process process = TrafficPeer.java(
                List.of("-Dorg.verbena.buffers.trustedPeers=true"),
                OneMessage.class,
                provider(),
                host(),
                "200000",
                "true");
        try (BufferedReader output = process.inputReader()) {
            String line = output.lines()
                    .filter(each -> each.startsWith("sent "))
                    .findFirst()
                    .orElse("the process ended");
            assertThat(line)
                    .matches("sent (200000 bytes with \\p{XDigit}+), came \\1, keys .*")
                    .endsWith(", keys of the receiver 0, keys of the sender 0, rendezvous 1");
        } finally {
            process.destroyForcibly();
        }
    }
}
