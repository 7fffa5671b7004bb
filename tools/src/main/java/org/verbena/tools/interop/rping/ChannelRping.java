package org.verbena.tools.interop.rping;

import io.netty.bootstrap.Bootstrap;
import io.netty.bootstrap.ServerBootstrap;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.SimpleChannelInboundHandler;
import java.io.PrintWriter;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.api.RdmaChannel;
import org.verbena.api.RdmaChannelOption;
import org.verbena.api.RdmaEventLoopGroup;
import org.verbena.api.RdmaServerChannel;
import org.verbena.samples.command.CommandFailure;
import org.verbena.transport.Framing;
import org.verbena.transport.MemoryDomain.Access;
import org.verbena.transport.RdmaException;
import org.verbena.transport.RegisteredMemory;
import org.verbena.transport.RemoteMemory;

/**
 * rping on the Channel API with RAW framing: one SEND is one message, as C's program has it. {@link Rping} has the
 * protocol's drawing, and the same on the bare bindings for comparison. Connections run on event loops; each is driven
 * by a thread that waits for futures.
 */
public final class ChannelRping {
    private static final Logger LOG = LoggerFactory.getLogger(ChannelRping.class);

    private static final int ADVERTISEMENT_BYTES = 16;
    private static final int PAGE_BYTES = 4096;

    /** The most that C's program has under way. */
    private static final int RECEIVES = 8;

    /** The ASCII characters that pings are filled with. */
    private static final int FIRST_CHARACTER = 'A';

    private static final int LAST_CHARACTER = 'z';

    /** Marks the end of a connection's queue of messages. */
    private static final byte[] GONE = new byte[0];

    private final String provider;
    private final int sizeBytes;
    private final PrintWriter out;
    private final boolean printing;

    /**
     * Prepares.
     *
     * @param provider auto, verbs or soft
     * @param sizeBytes the size of a ping, on both ends
     * @param out for the pings
     * @param printing whether to print them
     */
    public ChannelRping(String provider, int sizeBytes, PrintWriter out, boolean printing) {
        this.provider = provider;
        this.sizeBytes = sizeBytes;
        this.out = out;
        this.printing = printing;
    }

    /** The inbound messages of one connection, for the thread that drives it. */
    private static class Arrivals extends SimpleChannelInboundHandler<ByteBuf> {
        private final BlockingQueue<byte[]> messages = new LinkedBlockingQueue<>();
        private volatile @Nullable Throwable cause;

        @Override
        protected void channelRead0(ChannelHandlerContext context, ByteBuf message) {
            messages.add(ByteBufUtil.getBytes(message));
        }

        @Override
        public void exceptionCaught(ChannelHandlerContext context, Throwable failure) {
            cause = failure;
            context.close();
        }

        @Override
        public void channelInactive(ChannelHandlerContext context) {
            messages.add(GONE);
        }

        /** The next message, or null when the peer has disconnected. */
        byte @Nullable [] next() throws InterruptedException {
            byte[] message = messages.take();
            if (message.length == 0) {
                Throwable failure = cause;
                if (failure != null) {
                    throw failure instanceof RuntimeException known ? known : new CommandFailure("rping", failure);
                }
                return null;
            }
            if (message.length != ADVERTISEMENT_BYTES) {
                throw new CommandFailure("the peer sent " + message.length + " bytes instead of " + ADVERTISEMENT_BYTES
                        + "; is it rping?");
            }
            return message;
        }
    }

    // ---- server

    /**
     * Serves.
     *
     * @param address where to listen
     * @param persistent whether to continue after the first client
     * @throws InterruptedException the thread was interrupted
     */
    public void serve(InetSocketAddress address, boolean persistent) throws InterruptedException {
        BlockingQueue<RdmaChannel> clients = new LinkedBlockingQueue<>();
        try (RdmaEventLoopGroup group = new RdmaEventLoopGroup(provider, 1)) {
            RdmaServerChannel server = (RdmaServerChannel) new ServerBootstrap()
                    .group(group)
                    .channel(RdmaServerChannel.class)
                    .childOption(RdmaChannelOption.FRAMING, Framing.RAW)
                    .childOption(RdmaChannelOption.RECEIVE_DEPTH, RECEIVES)
                    .childOption(RdmaChannelOption.RECEIVE_BUFFER_BYTES, ADVERTISEMENT_BYTES)
                    .childHandler(new ChannelInitializer<RdmaChannel>() {
                        @Override
                        protected void initChannel(RdmaChannel channel) {
                            channel.pipeline().addLast(new Arrivals() {
                                @Override
                                public void channelActive(ChannelHandlerContext context) {
                                    clients.add(channel);
                                }
                            });
                        }
                    })
                    .bind(address)
                    .sync()
                    .channel();
            out.println("rping listens on " + server.localAddress() + " ("
                    + group.provider().name() + ")");
            out.flush();
            do {
                RdmaChannel client = clients.take();
                Thread serving = Thread.ofVirtual().start(() -> serveAlone(client, persistent));
                if (!persistent) {
                    serving.join();
                }
            } while (persistent);
            server.close().sync();
        }
        Throwable failure = lastFailure;
        if (failure instanceof RuntimeException known) {
            throw known;
        }
    }

    private volatile @Nullable Throwable lastFailure;

    private void serveAlone(RdmaChannel client, boolean persistent) {
        try {
            serveOne(client);
        } catch (RdmaException | CommandFailure failure) {
            if (persistent) {
                LOG.warn("a client was lost: {}", failure.getMessage());
            } else {
                lastFailure = failure;
            }
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        } finally {
            client.close().awaitUninterruptibly();
        }
    }

    private void serveOne(RdmaChannel client) throws InterruptedException {
        Arrivals arrivals = Objects.requireNonNull(client.pipeline().get(Arrivals.class));
        ByteBuf data = client.alloc().buffer(sizeBytes, sizeBytes);
        try {
            for (byte[] message = arrivals.next(); message != null; message = arrivals.next()) {
                RemoteMemory source = advertised(message, Access.REMOTE_READ);
                if (source.lengthBytes() > sizeBytes) {
                    throw new CommandFailure("the client's pings have " + source.lengthBytes()
                            + " bytes, and this side's buffer " + sizeBytes + ": give both the same -S");
                }
                ByteBuf into = data.clear().slice(0, (int) source.lengthBytes()).writerIndex(0);
                client.read(source, 0, into).sync();
                int textBytes = Math.max(0, into.bytesBefore((byte) 0));
                if (printing) {
                    out.println("server ping data: " + into.toString(0, textBytes, StandardCharsets.US_ASCII));
                }
                client.send(goAhead(client)).sync();

                byte[] second = arrivals.next();
                if (second == null) {
                    throw new CommandFailure("the client disconnected during a ping");
                }
                RemoteMemory sink = advertised(second, Access.REMOTE_WRITE);
                client.write(sink, 0, into.slice(0, Math.min(textBytes + 1, into.readableBytes())));
                client.send(goAhead(client)).sync(); // behind the write, so the client sees what was written
            }
        } finally {
            data.release();
        }
    }

    // ---- client

    /**
     * Pings.
     *
     * @param source local address; null for the one that the route selects
     * @param server its address
     * @param count how many; 0 for no limit
     * @param validating whether to verify the data that come back
     * @throws InterruptedException the thread was interrupted
     */
    public void ping(@Nullable InetSocketAddress source, InetSocketAddress server, int count, boolean validating)
            throws InterruptedException {
        try (RdmaEventLoopGroup group = new RdmaEventLoopGroup(provider, 1)) {
            Arrivals arrivals = new Arrivals();
            RdmaChannel channel = (RdmaChannel) new Bootstrap()
                    .group(group)
                    .channel(RdmaChannel.class)
                    .option(RdmaChannelOption.FRAMING, Framing.RAW)
                    .option(RdmaChannelOption.RECEIVE_DEPTH, RECEIVES)
                    .option(RdmaChannelOption.RECEIVE_BUFFER_BYTES, ADVERTISEMENT_BYTES)
                    .handler(arrivals)
                    .connect(server, source)
                    .sync()
                    .channel();
            ping(channel, arrivals, count, validating);
            channel.close().sync();
        }
    }

    private void ping(RdmaChannel channel, Arrivals arrivals, int count, boolean validating)
            throws InterruptedException {
        Arena arena = Arena.ofShared();
        MemorySegment memory = arena.allocate(2L * sizeBytes, PAGE_BYTES);
        MemorySegment start = memory.asSlice(0, sizeBytes);
        MemorySegment echo = memory.asSlice(sizeBytes);
        Set<Access> access = Set.of(Access.LOCAL_WRITE, Access.REMOTE_READ, Access.REMOTE_WRITE);
        RegisteredMemory region = channel.memory().register(memory, access);
        region.whenGone(arena::close);
        try {
            RemoteMemory whole = region.remote();
            int firstCharacter = FIRST_CHARACTER;
            for (int ping = 0; count == 0 || ping < count; ping++) {
                fill(start, ping, firstCharacter);
                firstCharacter = following(firstCharacter);
                exchange(channel, arrivals, whole.slice(0, sizeBytes));
                exchange(channel, arrivals, whole.slice(sizeBytes, sizeBytes));
                long mismatch = validating ? start.mismatch(echo) : -1;
                if (mismatch >= 0) {
                    throw new CommandFailure("ping " + ping + " came back changed from byte " + mismatch + " on");
                }
                if (printing) {
                    out.println("ping data: " + echo.getString(0, StandardCharsets.US_ASCII));
                }
            }
        } finally {
            region.close();
        }
    }

    /** Advertises a buffer to the server, and waits until the server is done with it. */
    private static void exchange(Channel channel, Arrivals arrivals, RemoteMemory buffer) throws InterruptedException {
        channel.writeAndFlush(channel.alloc()
                .buffer(ADVERTISEMENT_BYTES)
                .writeLong(buffer.address())
                .writeInt(buffer.key())
                .writeInt((int) buffer.lengthBytes()));
        if (arrivals.next() == null) {
            throw new CommandFailure("the server disconnected during a ping");
        }
    }

    private static ByteBuf goAhead(Channel channel) {
        return channel.alloc().buffer(ADVERTISEMENT_BYTES).writeZero(ADVERTISEMENT_BYTES);
    }

    private static RemoteMemory advertised(byte[] message, Access right) {
        ByteBuffer in = ByteBuffer.wrap(message);
        long address = in.getLong();
        int key = in.getInt();
        int lengthBytes = in.getInt();
        if (lengthBytes < 1) {
            throw new CommandFailure("the peer announced a buffer of " + lengthBytes + " bytes; is it rping?");
        }
        return new RemoteMemory(address, lengthBytes, key, Set.of(right));
    }

    private static int following(int character) {
        return character == LAST_CHARACTER ? FIRST_CHARACTER : character + 1;
    }

    private static void fill(MemorySegment buffer, int ping, int firstCharacter) {
        byte[] text = ("rdma-ping-" + ping + ": ").getBytes(StandardCharsets.US_ASCII);
        MemorySegment.copy(text, 0, buffer, ValueLayout.JAVA_BYTE, 0, text.length);
        int character = firstCharacter;
        for (long i = text.length; i < buffer.byteSize(); i++) {
            buffer.set(ValueLayout.JAVA_BYTE, i, (byte) character);
            character = following(character);
        }
        buffer.set(ValueLayout.JAVA_BYTE, buffer.byteSize() - 1, (byte) 0);
    }
}
