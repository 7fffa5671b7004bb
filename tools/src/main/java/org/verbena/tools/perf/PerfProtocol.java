package org.verbena.tools.perf;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelOutboundHandlerAdapter;
import io.netty.util.AttributeKey;
import java.lang.foreign.Arena;
import java.nio.charset.StandardCharsets;
import java.util.EnumSet;
import java.util.concurrent.atomic.AtomicIntegerArray;
import org.verbena.api.Exchange;
import org.verbena.api.RdmaChannel;
import org.verbena.api.ring.RecordRing;
import org.verbena.transport.MemoryDomain.Access;
import org.verbena.transport.RegisteredMemory;
import org.verbena.transport.RemoteMemory;

/**
 * The messages between client and server of {@code perf}. The first byte of a message is its kind; streams have it
 * once, at their beginning.
 */
final class PerfProtocol {
    /** Send it back. */
    static final byte ECHO = 'e';

    /** Count it. */
    static final byte COUNT = 'c';

    /** A request: how many were counted on this connection? */
    static final byte HOW_MANY = 'h';

    /**
     * Send messages as well: their size in bytes, and how many at once (ints); {@link PerfFlow} has the limit. Each
     * begins with {@link #COUNT}. Streams and sends have their own form of it.
     */
    static final byte BOTH = 'b';

    /** A request: send no more. The reply is how many were sent (a long), once all of them are complete. */
    static final byte STOP = 's';

    /** A request for memory to read and to write: its size in bytes (an int); the reply is its token. */
    static final byte MEMORY = 'm';

    /**
     * A request: on which port is that {@link PerfService} (its offset, an int)? The reply is an int, 0 if the service
     * is not listening yet.
     */
    static final byte PORT = 'p';

    /**
     * A request for a {@link RecordRing}: {@link #ECHO} or {@link #COUNT}, its capacity (an int), and the token of the
     * client's ring. The reply is the token of the server's. It replaces the one that the connection had.
     */
    static final byte RING = 'r';

    /**
     * A request: start the server of a {@link PerfTool} for a {@link ToolRun}, its name and that as words. The reply
     * is its port (an int), or 0 and why it does not run.
     */
    static final byte TOOL = 't';

    /** A request: end it. */
    static final byte TOOL_END = 'T';

    /** The most memory that a client gets, for each of its connections. */
    static final int MAX_MEMORY_BYTES = 1 << 30;

    private static final String READING = "reading";

    private static final int PAGE_BYTES = 4096;

    private static final AttributeKey<long[]> COUNTED = AttributeKey.valueOf(PerfProtocol.class, "counted");
    private static final AttributeKey<RegisteredMemory> REGION = AttributeKey.valueOf(PerfProtocol.class, "region");

    private static final AttributeKey<PerfFlow> FLOW = AttributeKey.valueOf(PerfProtocol.class, "flow");

    private final AtomicIntegerArray ports = new AtomicIntegerArray(1 + PerfService.values().length);

    private final ToolServing tools;

    PerfProtocol(ToolServing tools) {
        this.tools = tools;
    }

    /** The port of that service, once it listens. */
    void port(PerfService service, int port) {
        ports.set(service.offset(), port);
    }

    /** Serves one message of a client. */
    void serve(Exchange exchange, ByteBuf message) {
        switch (message.isReadable() ? message.getByte(message.readerIndex()) : ECHO) {
            case ECHO -> echo(exchange, message.retain());
            case COUNT -> counted(exchange.channel())[0]++;
            case HOW_MANY ->
                exchange.reply(exchange.channel().alloc().buffer(Long.BYTES).writeLong(counted(exchange.channel())[0]));
            case BOTH ->
                send(
                        exchange,
                        message.getInt(message.readerIndex() + 1),
                        message.getInt(message.readerIndex() + 1 + Integer.BYTES));
            case STOP -> stop(exchange);
            case PORT -> {
                int port = ports.get(message.getInt(message.readerIndex() + 1));
                exchange.reply(exchange.channel().alloc().buffer(Integer.BYTES).writeInt(port));
            }
            case MEMORY ->
                exchange.reply(memory(exchange.channel(), message.getInt(message.readerIndex() + 1))
                        .encode());
            case RING -> exchange.reply(ring(exchange.channel(), message.skipBytes(1)));
            case TOOL -> startTool(exchange, message);
            case TOOL_END -> tools.end(exchange);
            default -> throw new IllegalArgumentException("a message that no perf client sends");
        }
    }

    private static void echo(Exchange exchange, ByteBuf message) {
        if (exchange.isRequest()) {
            exchange.reply(message);
        } else {
            exchange.send(message);
        }
    }

    private void startTool(Exchange exchange, ByteBuf message) {
        String words =
                message.toString(message.readerIndex() + 1, message.readableBytes() - 1, StandardCharsets.US_ASCII);
        int space = Math.max(0, words.indexOf(' '));
        tools.start(exchange, PerfTool.valueOf(words.substring(0, space)), ToolRun.decode(words.substring(space + 1)));
    }

    private static void send(Exchange exchange, int bytes, int window) {
        RdmaChannel channel = exchange.channel();
        PerfFlow flow = new PerfFlow(
                bytes,
                window,
                () -> exchange.send(PerfConnection.filled(channel, bytes).setByte(0, COUNT)));
        if (!channel.attr(FLOW).compareAndSet(null, flow)) {
            throw new IllegalArgumentException("the server sends to this client already");
        }
        channel.pipeline().addLast(READING, new Reading());
        channel.read();
        flow.begin0();
    }

    /**
     * Reads on while the peer does not take what is sent to it, which the flow bounds: otherwise a flow that never ends
     * would keep the server from reading. Requests to read pass here first, and bypass the handler that would hold them
     * back.
     */
    private static final class Reading extends ChannelOutboundHandlerAdapter {
        @Override
        public void read(ChannelHandlerContext context) {
            context.pipeline().firstContext().read();
        }
    }

    private static void stop(Exchange exchange) {
        PerfFlow flow = exchange.channel().attr(FLOW).getAndSet(null);
        if (flow == null) {
            throw new IllegalArgumentException("the server sends nothing to this client");
        }
        exchange.channel().pipeline().remove(READING);
        flow.end0(sent ->
                exchange.reply(exchange.channel().alloc().buffer(Long.BYTES).writeLong(sent)));
    }

    private static long[] counted(Channel channel) {
        long[] counted = channel.attr(COUNTED).get();
        if (counted == null) {
            counted = new long[1];
            channel.attr(COUNTED).set(counted);
        }
        return counted;
    }

    /** Memory only for the peer of this channel, until the peer requests other memory or the channel closes. */
    private static RemoteMemory memory(RdmaChannel channel, int bytes) {
        if (bytes < 1 || bytes > MAX_MEMORY_BYTES) {
            throw new IllegalArgumentException(
                    "a client may ask for 1 to " + MAX_MEMORY_BYTES + " bytes, not " + bytes);
        }
        EnumSet<Access> access = EnumSet.of(Access.LOCAL_WRITE, Access.REMOTE_READ, Access.REMOTE_WRITE);
        if (channel.capabilities().atomics()) {
            access.add(Access.REMOTE_ATOMIC);
        }
        RegisteredMemory last = channel.attr(REGION).getAndSet(null);
        if (last != null) {
            last.close();
        }
        RegisteredMemory region = channel.memory().register(Arena.ofAuto().allocate(bytes, PAGE_BYTES), access);
        channel.attr(REGION).set(region);
        return region.remote();
    }

    private static ByteBuf ring(RdmaChannel channel, ByteBuf request) {
        boolean isEcho = request.readByte() == ECHO;
        int capacityBytes = request.readInt();
        if (capacityBytes > PerfRing.MAX_CAPACITY) {
            throw new IllegalArgumentException("no server makes a ring of " + capacityBytes + " bytes");
        }
        RemoteMemory token = RemoteMemory.decode(ByteBufUtil.getBytes(request));
        if (channel.pipeline().get(RecordRing.class) != null) {
            channel.pipeline().remove(RecordRing.class);
        }
        long[] counted = counted(channel);
        RecordRing[] made = new RecordRing[1];
        RecordRing ring = new RecordRing(channel, capacityBytes, capacityBytes, record -> {
            counted[0]++;
            if (isEcho) {
                int bytes = (int) record.byteSize();
                made[0].send(channel.alloc().buffer(bytes, bytes).writeBytes(record.asByteBuffer()));
            }
        });
        made[0] = ring;
        channel.pipeline().addLast(ring);
        ring.begin(token);
        return Unpooled.wrappedBuffer(ring.token().encode());
    }

    /** The token in a server's reply. */
    static RemoteMemory token(ByteBuf reply) {
        try {
            return RemoteMemory.decode(ByteBufUtil.getBytes(reply));
        } finally {
            reply.release();
        }
    }
}
