package org.verbena.grpc.internal.nativetransport;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.verbena.grpc.internal.nativetransport.NativeTransportHarness.await;
import static org.verbena.grpc.internal.nativetransport.NativeTransportHarness.open;

import io.grpc.Drainable;
import io.grpc.HasByteBuffer;
import io.grpc.KnownLength;
import io.grpc.Metadata;
import io.grpc.Status;
import io.grpc.internal.ClientStream;
import io.grpc.internal.Stream;
import io.grpc.internal.WritableBuffer;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.CompositeByteBuf;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelOutboundHandlerAdapter;
import io.netty.channel.ChannelPromise;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.lang.reflect.Proxy;
import java.nio.ByteBuffer;
import java.util.Random;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.zip.CRC32C;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.verbena.grpc.internal.nativetransport.Recorders.OfCall;
import org.verbena.grpc.internal.nativetransport.Recorders.OfConnection;
import org.verbena.grpc.internal.nativetransport.Recorders.OfServed;
import org.verbena.grpc.internal.nativetransport.Recorders.OfTransport;
import org.verbena.transport.buffer.RegisteredByteBuf;
import org.verbena.transport.spi.Patience;

/** How often large messages are copied, from the program's serializer to its deserializer. */
@Timeout(120)
class NativeLargeMessagesTest {
    private static final int LARGE_BYTES = 64 << 10;

    private final BlockingQueue<Received> received = new LinkedBlockingQueue<>();
    private final AtomicLong drained = new AtomicLong();
    private final AtomicLong registered = new AtomicLong();
    private final AtomicLong elsewhere = new AtomicLong();
    private NativeTransportHarness harness;

    @BeforeEach
    void openHarness() throws Exception {
        harness = new NativeTransportHarness("soft", settings -> settings.maxMessageBytes = 32 << 20);
        harness.server.onCall = call -> call.parser = this::parse;
    }

    @AfterEach
    void closeHarness() throws Exception {
        harness.close();
    }

    /** A message at its deserializer: how much lies where the channel received it, on the heap, and out of sight. */
    private record Received(long inPlace, long onHeap, long unseen, long checksum) {}

    private byte[] parse(InputStream message) {
        HasByteBuffer buffers = (HasByteBuffer) message;
        CRC32C checksum = new CRC32C();
        long inPlace = 0;
        long onHeap = 0;
        try {
            while (message.available() > 0 && buffers.byteBufferSupported()) {
                ByteBuffer next = buffers.getByteBuffer();
                int bytes = next.remaining();
                inPlace += next.isDirect() ? bytes : 0;
                onHeap += next.isDirect() ? 0 : bytes;
                checksum.update(next);
                assertThat(message.skip(bytes)).isEqualTo(bytes);
            }
            received.add(new Received(inPlace, onHeap, message.available(), checksum.getValue()));
        } catch (IOException impossible) {
            throw new UncheckedIOException(impossible);
        }
        return new byte[0];
    }

    /** A message that writes itself where gRPC wants it. */
    private final class Message extends ByteArrayInputStream implements KnownLength, Drainable {
        Message(byte[] content) {
            super(content);
        }

        @Override
        public int drainTo(OutputStream to) throws IOException {
            int bytes = available();
            to.write(buf, pos, bytes);
            pos += bytes;
            drained.addAndGet(bytes);
            return bytes;
        }
    }

    /** Looks at what a channel gets to send: of what is large, all must lie in its own memory. */
    private void watch(Channel sender) {
        sender.pipeline().addFirst(new ChannelOutboundHandlerAdapter() {
            @Override
            public void write(ChannelHandlerContext context, Object message, ChannelPromise promise) {
                add((ByteBuf) message);
                context.write(message, promise);
            }
        });
    }

    private void add(ByteBuf sent) {
        if (sent instanceof CompositeByteBuf parts) {
            for (int i = 0; i < parts.numComponents(); i++) {
                add(parts.component(i));
            }
        } else if (sent.readableBytes() >= LARGE_BYTES) {
            ByteBuf memory = sent;
            while (memory.unwrap() != null && !(memory instanceof RegisteredByteBuf)) {
                memory = memory.unwrap();
            }
            (memory instanceof RegisteredByteBuf ? registered : elsewhere).addAndGet(sent.readableBytes());
        }
    }

    /** Sends and looks at it three times, since what is held of the channel's memory must come back. */
    private void pass(Stream from, Stream to, int bytes, int inPlace) {
        byte[] content = new byte[bytes];
        new Random(bytes).nextBytes(content);
        CRC32C checksum = new CRC32C();
        checksum.update(content);
        for (int i = 1; i <= 3; i++) {
            from.writeMessage(new Message(content));
            from.flush();
            to.request(1);
            Received message = Patience.take("message " + i, received);
            assertThat(message.checksum()).isEqualTo(checksum.getValue());
            assertThat(message.unseen()).as("bytes that are in no ByteBuffer").isZero();
            assertThat(message.inPlace()).as("bytes where they were received").isGreaterThanOrEqualTo(inPlace);
            assertThat(message.onHeap()).as("bytes on the heap").isEqualTo(bytes - message.inPlace());
            assertThat(drained.getAndSet(0)).as("bytes that the message wrote").isEqualTo(bytes);
            assertThat(elsewhere.get())
                    .as("bytes that were sent from other memory")
                    .isZero();
            assertThat(registered.getAndSet(0))
                    .as("bytes that were sent from where they were written")
                    .isBetween((long) bytes - LARGE_BYTES, (long) bytes + LARGE_BYTES);
        }
    }

    /** 4 MiB of a connection's messages stay where they were received, in whole DATA. */
    @ParameterizedTest
    @CsvSource({"1048576, 1048576", "16777216, 3145728"})
    void toServers(int bytes, int inPlace) throws Exception {
        NativeClientTransport client = harness.connected(new OfTransport());
        OfConnection connection = harness.connection();
        watch(client.channel());
        ClientStream stream = open(client, new OfCall(), new Metadata());
        OfServed served = connection.call();
        pass(stream, served.stream, bytes, inPlace);
        served.stream.close(Status.OK, new Metadata());
    }

    @ParameterizedTest
    @CsvSource({"1048576, 1048576", "16777216, 3145728"})
    void toClients(int bytes, int inPlace) throws Exception {
        OfTransport listener = new OfTransport();
        NativeClientTransport client =
                harness.connect(harness.address, listener, settings -> settings.maxMessageBytes = 32 << 20);
        await("the client is ready", listener.ready);
        OfConnection connection = harness.connection();
        OfCall call = new OfCall();
        call.parser = this::parse;
        ClientStream stream = open(client, call, new Metadata());
        OfServed served = connection.call();
        served.stream.writeHeaders(new Metadata(), true);
        watch(((NativeServerTransport) connection.transport).channel());
        pass(served.stream, stream, bytes, inPlace);
        served.stream.close(Status.OK, new Metadata());
    }

    /** Libraries that look inside gRPC give its framer buffers of its HTTP/2. */
    @Test
    void buffersOfOtherTransportsAreRefused() {
        AtomicBoolean released = new AtomicBoolean();
        WritableBuffer foreign = (WritableBuffer) Proxy.newProxyInstance(
                WritableBuffer.class.getClassLoader(), new Class<?>[] {WritableBuffer.class}, (proxy, method, args) -> {
                    released.set(method.getName().equals("release"));
                    return null;
                });
        assertThatThrownBy(() -> OutboundBuffer.of(foreign)).isInstanceOf(UnsupportedOperationException.class);
        assertThat(released).isTrue();
    }
}
