package org.verbena.transport.protocol.connection;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.management.ThreadMXBean;
import io.netty.buffer.ByteBuf;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.management.ManagementFactory;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.verbena.transport.EndpointCapabilities;
import org.verbena.transport.MemoryDomain;
import org.verbena.transport.MessageClaims;
import org.verbena.transport.RegisteredMemory;
import org.verbena.transport.WorkStatus;
import org.verbena.transport.buffer.BufferPoolOptions;
import org.verbena.transport.buffer.RegisteredBufferPool;
import org.verbena.transport.protocol.MessageOptions;
import org.verbena.transport.protocol.Negotiated;
import org.verbena.transport.protocol.OperationCallback;
import org.verbena.transport.protocol.PrivateData;
import org.verbena.transport.protocol.Role;
import org.verbena.transport.protocol.memory.MessageBuffers;
import org.verbena.transport.spi.Endpoint;
import org.verbena.transport.spi.EndpointHandler;
import org.verbena.transport.spi.ScatterGatherList;
import org.verbena.transport.spi.SharedReceiveQueue;
import org.verbena.transport.spi.WorkRequest;

/** Once everything is warm, a message allocates no object, over endpoints that allocate none themselves. */
class MessageConnectionAllocationTest {
    private static final int MESSAGES = 50_000;
    /** What the compiler itself may allocate on this thread, spread over the messages. */
    private static final double NOISE_BYTES = 1.0;

    private final SimulatedDomain domain = new SimulatedDomain();
    private final RegisteredBufferPool sendPool = new RegisteredBufferPool(domain, BufferPoolOptions.DEFAULTS);
    private final RegisteredBufferPool receivePool = new RegisteredBufferPool(domain, BufferPoolOptions.DEFAULTS);
    private final MessageBuffers buffers = new MessageBuffers(sendPool, receivePool);
    private final Loopback left = new Loopback();
    private final Loopback right = new Loopback();
    private int echoes;
    private int outcomes;

    /** One at a time, and several that share frames. */
    @ParameterizedTest
    @CsvSource({
        "1, false, false",
        "4, false, false",
        "40, false, false",
        "1, false, true",
        "4, false, true",
        "200, false, true",
        "1, true, false",
        "4, true, false",
        "40, true, false",
        "40, true, true"
    })
    @Timeout(240)
    void anEchoedMessageAllocatesNothing(int together, boolean copies, boolean claims) {
        left.peer = right;
        right.peer = left;
        left.copies = copies;
        right.copies = copies;
        MessageOptions options = MessageOptions.DEFAULTS.withReceives(32, 1024);
        OperationCallback outcome = (context, cause) -> {
            assert cause == null;
            outcomes++;
        };
        MessageConnection client = new MessageConnection(Role.INITIATOR, options, any -> buffers, new Listener() {
            @Override
            public void onMessage(MessageConnection connection, ByteBuf message) {
                message.release();
                echoes++;
            }
        });
        MessageConnection server = new MessageConnection(Role.ACCEPTOR, options, any -> buffers, new Listener() {
            @Override
            public void onMessage(MessageConnection connection, ByteBuf message) {
                if (claims) {
                    claim(connection, message);
                    message.release();
                } else {
                    connection.send(message, outcome, null);
                }
            }
        });
        left.handler = client;
        right.handler = server;
        byte[] data = PrivateData.of(options);
        client.onPrepared(left);
        server.onPrepared(right);
        server.onConnected(right, data);
        client.onConnected(left, data);
        settle();
        ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
        double perMessage = Double.MAX_VALUE;
        for (int round = 0; round < 20 && perMessage > NOISE_BYTES; round++) {
            long before = threads.getCurrentThreadAllocatedBytes();
            echo(client, claims ? null : outcome, MESSAGES, together);
            perMessage = (double) (threads.getCurrentThreadAllocatedBytes() - before) / MESSAGES;
        }
        assertThat(echoes).isPositive();
        assertThat(outcomes).isEqualTo(claims ? 0 : 2 * echoes);
        assertThat(client.statistics().framesSent()).as("frames").isLessThan(together == 1 ? 2L * echoes : echoes / 2);
        assertThat(perMessage).isLessThanOrEqualTo(NOISE_BYTES);
        if (copies) {
            assertThat(left.posted)
                    .as("work requests: HELLO, and those for grants")
                    .isLessThan(echoes / 1000);
        }
    }

    private static void claim(MessageConnection connection, ByteBuf message) {
        MessageClaims claims = connection.claims();
        assertThatItIs(claims.tryClaim(message.readableBytes()) == MessageClaims.Outcome.CLAIMED);
        claims.buffer().writeBytes(message);
        assertThatItIs(claims.commit());
    }

    /** Allocates nothing. */
    private static void assertThatItIs(boolean so) {
        if (!so) {
            throw new AssertionError("there must be room");
        }
    }

    /** Without an outcome it claims room for messages. */
    private void echo(MessageConnection client, @Nullable OperationCallback outcome, int messages, int together) {
        int target = echoes + messages;
        while (echoes < target) {
            for (int i = 0; i < together; i++) {
                if (outcome == null) {
                    assertThatItIs(client.claims().tryClaim(64) == MessageClaims.Outcome.CLAIMED);
                    client.claims().buffer().writeZero(64);
                    assertThatItIs(client.claims().commit());
                    continue;
                }
                ByteBuf message = sendPool.allocate(64);
                message.writerIndex(64);
                client.send(message, outcome, null);
            }
            client.flush();
            settle();
        }
    }

    private void settle() {
        while (left.poll() | right.poll()) {
            // both, until neither has anything
        }
    }

    private abstract static class Listener implements MessageListener {
        @Override
        public void onActive(MessageConnection connection, Negotiated negotiated) {
            // The test itself knows.
        }

        @Override
        public void onReadComplete(MessageConnection connection) {
            connection.flush();
        }

        @Override
        public void onImmediate(MessageConnection connection, int immediateData, int lengthBytes) {
            throw new AssertionError();
        }

        @Override
        public void onWritabilityChanged(MessageConnection connection, boolean writable) {
            // The message is queued then.
        }

        @Override
        public void onDeadline(MessageConnection connection, long deadlineNanos) {
            // The handshake completes at once.
        }

        @Override
        public void onResumable(MessageConnection connection) {
            throw new AssertionError("memory for all is there");
        }

        @Override
        public void onInactive(MessageConnection connection, @Nullable Throwable cause) {
            throw new AssertionError(cause);
        }
    }

    /** Moves a send's bytes when it is posted; completions wait in arrays. */
    private final class Loopback implements Endpoint {
        private static final int DEPTH = 64;
        private static final ValueLayout.OfLong HEADER =
                ValueLayout.JAVA_LONG_UNALIGNED.withOrder(ByteOrder.BIG_ENDIAN);
        private static final EndpointCapabilities CAPABILITIES = EndpointCapabilities.MINIMAL.with(o -> {
            o.sendDepth = DEPTH;
            o.receiveDepth = DEPTH;
            o.maxSges = 4;
            o.maxReceiveSges = 4;
            o.maxReadSges = 4;
            o.readDepth = 4;
            o.maxMessageBytes = 1 << 20;
        });

        private Loopback peer;
        private EndpointHandler handler;
        private final long[] receiveIds = new long[DEPTH];
        private final RegisteredMemory[] receiveRegions = new RegisteredMemory[DEPTH];
        private final long[] receiveOffsets = new long[DEPTH];
        private final int[] receivedBytes = new int[DEPTH];
        private int receiveHead;
        private int receivedTail;
        private int receiveTail;
        private final long[] sendIds = new long[DEPTH];
        private int sendHead;
        private int sendTail;

        private final ByteBuffer scratch = ByteBuffer.allocateDirect(4096);
        private final MemorySegment scratchSegment = MemorySegment.ofBuffer(scratch);

        /** It copies messages without work requests. */
        private boolean copies;

        /** Work requests. */
        private int posted;

        boolean poll() {
            boolean found = sendHead != sendTail || receiveHead != receivedTail;
            while (sendHead != sendTail) {
                handler.onSendCompletion(this, sendIds[sendHead++ % DEPTH], WorkStatus.SUCCESS, 0);
            }
            while (receiveHead != receivedTail) {
                int at = receiveHead++ % DEPTH;
                handler.onReceiveCompletion(this, receiveIds[at], WorkStatus.SUCCESS, receivedBytes[at], 0, 0);
            }
            if (found) {
                handler.onCompletionsHandled(this);
            }
            return found;
        }

        @Override
        public boolean postReceive(long workId, ScatterGatherList list) {
            int at = receiveTail++ % DEPTH;
            receiveIds[at] = workId;
            receiveRegions[at] = list.region(0);
            receiveOffsets[at] = list.address(0) - list.region(0).address();
            return true;
        }

        @Override
        public boolean post(WorkRequest request) {
            posted++;
            int at = peer.receivedTail++ % DEPTH;
            assertThatThereIsOne();
            ScatterGatherList list = request.buffers();
            long to = peer.receiveOffsets[at];
            for (int i = 0; i < list.count(); i++) {
                MemorySegment.copy(
                        list.region(i).segment(),
                        list.address(i) - list.region(i).address(),
                        peer.receiveRegions[at].segment(),
                        to,
                        list.length(i));
                to += list.length(i);
            }
            peer.receivedBytes[at] = (int) list.totalBytes();
            sendIds[sendTail++ % DEPTH] = request.workId();
            return true;
        }

        private void assertThatThereIsOne() {
            if (peer.receivedTail - peer.receiveTail > 0) {
                throw new AssertionError("receiver not ready");
            }
        }

        @Override
        public boolean trySend(long first, long second, ByteBuf rest, int index, int restBytes) {
            if (!copies) {
                return false;
            }
            int at = peer.receivedTail++ % DEPTH;
            assertThatThereIsOne();
            MemorySegment to = peer.receiveRegions[at].segment();
            long offset = peer.receiveOffsets[at];
            to.set(HEADER, offset, first);
            to.set(HEADER, offset + Long.BYTES, second);
            rest.getBytes(index, scratch.clear().limit(restBytes));
            MemorySegment.copy(scratchSegment, 0, to, offset + 2 * Long.BYTES, restBytes);
            peer.receivedBytes[at] = 2 * Long.BYTES + restBytes;
            return true;
        }

        @Override
        public int freeSendSlots() {
            return DEPTH - (sendTail - sendHead);
        }

        @Override
        public void flush() {
            // Everything completes at once.
        }

        @Override
        public void disconnect() {
            throw new AssertionError("the connection ended");
        }

        @Override
        public EndpointCapabilities capabilities() {
            return CAPABILITIES;
        }

        @Override
        public int rendezvousBytes(int peerReceiveBytes) {
            return 64 << 10;
        }

        @Override
        public MemoryDomain memoryDomain() {
            return domain;
        }

        @Override
        public InetSocketAddress localAddress() {
            return InetSocketAddress.createUnresolved("left", 1);
        }

        @Override
        public InetSocketAddress remoteAddress() {
            return InetSocketAddress.createUnresolved("right", 2);
        }

        @Override
        public @Nullable SharedReceiveQueue sharedReceiveQueue() {
            return null;
        }
    }
}
