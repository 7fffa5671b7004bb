package org.verbena.tools.perf;

import io.netty.bootstrap.Bootstrap;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.channel.Channel;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import org.verbena.api.RdmaClient;
import org.verbena.api.RdmaEventLoopGroup;
import org.verbena.api.RdmaSocketChannel;
import org.verbena.samples.command.CommandFailure;
import org.verbena.transport.RemoteMemory;

/** One connection of a client, with the subjects that are measured beside it. */
final class PerfConnection implements AutoCloseable {
    private final RdmaEventLoopGroup group;
    private final String host;
    private final RdmaClient client;
    private final Echoes echoes;
    private final List<PerfSubject> subjects = new ArrayList<>();

    /** Messages that the server has sent without a request. Written by the event loop. */
    private final AtomicLong received = new AtomicLong();

    /** The length of each. Written before the server sends any. */
    private volatile int receivedBytes;

    PerfConnection(RdmaEventLoopGroup group, String host, int port) throws InterruptedException {
        this.group = group;
        this.host = host;
        client = RdmaClient.builder()
                .group(group)
                .reconnect(false)
                .onMessage((exchange, message) -> arrived0(message))
                .connect(host, port);
        echoes = new Echoes(client.channel().eventLoop());
        client.channel().closeFuture().addListener(closed -> echoes.fail("the server closed the connection"));
        counted(); // fails if it is another server
    }

    private void arrived0(ByteBuf message) {
        if (message.getByte(message.readerIndex()) != PerfProtocol.COUNT) {
            echoes.arrived();
        } else if (message.readableBytes() == receivedBytes) {
            received.incrementAndGet();
        }
    }

    RdmaClient client() {
        return client;
    }

    /** Messages on this connection that are to come back. */
    Echoes echoes() {
        return echoes;
    }

    /** The subject of that test on this connection; closed with it. */
    PerfSubject subject(PerfTest test) throws InterruptedException {
        PerfSubject subject = switch (test) {
            case MESSAGE, REQUEST -> new PerfMessages(this);
            case STREAM ->
                new PerfStream(
                        new Bootstrap().group(group).channel(RdmaSocketChannel.class), host, port(PerfService.STREAMS));
            case SEND -> new PerfSends(group, host, port(PerfService.SENDS));
            case GRPC -> new PerfCalls(group, host, port(PerfService.CALLS));
            case RING -> new PerfRing(this);
            case READ, WRITE, ATOMIC -> new PerfOneSided(this);
        };
        subjects.add(subject);
        return subject;
    }

    /** The address of that service. */
    private int port(PerfService service) throws InterruptedException {
        ByteBuf reply = request(PerfProtocol.PORT, service.offset());
        try {
            return reply.readInt();
        } finally {
            reply.release();
        }
    }

    /** How many messages the server has counted on this connection. */
    long counted() throws InterruptedException {
        ByteBuf reply = request(PerfProtocol.HOW_MANY, 0);
        try {
            if (reply.readableBytes() != Long.BYTES) {
                throw new CommandFailure("the server's reply is not what a perf server says; is it one?");
            }
            return reply.readLong();
        } finally {
            reply.release();
        }
    }

    /** Makes the server send messages of that size, so many at once. */
    void beginReturn(int bytes, int window) throws InterruptedException {
        received.set(0);
        receivedBytes = bytes;
        client.send(client.channel()
                        .alloc()
                        .buffer(1 + 2 * Integer.BYTES)
                        .writeByte(PerfProtocol.BOTH)
                        .writeInt(bytes)
                        .writeInt(window))
                .sync();
    }

    /** How many of them have arrived. */
    long received() {
        return received.get();
    }

    /** Ends them, and returns how many the server has sent. */
    long endReturn() throws InterruptedException {
        ByteBuf reply = request(PerfProtocol.STOP, 0);
        try {
            return reply.readLong();
        } finally {
            reply.release();
        }
    }

    /**
     * Makes the server start its end of a C program; returns the port of that.
     *
     * @throws CommandFailure it does not; the message says why
     */
    int startTool(PerfTool tool, ToolRun run) throws InterruptedException {
        ByteBuf message = client.channel().alloc().buffer().writeByte(PerfProtocol.TOOL);
        ByteBufUtil.writeAscii(message, tool.name() + " " + run.encode());
        ByteBuf reply = client.request(message).sync().getNow();
        try {
            int port = reply.readInt();
            if (port == 0) {
                throw new CommandFailure(reply.toString(StandardCharsets.UTF_8));
            }
            return port;
        } finally {
            reply.release();
        }
    }

    /** Ends it. */
    void endTool() throws InterruptedException {
        request(PerfProtocol.TOOL_END, 0).release();
    }

    /**
     * Makes the server create a ring, instead of the one that it had.
     *
     * @param mode {@link PerfProtocol#ECHO} or {@link PerfProtocol#COUNT}
     * @param mine where the server writes
     * @return where to write
     */
    RemoteMemory ring(byte mode, int capacityBytes, RemoteMemory mine) throws InterruptedException {
        return PerfProtocol.token(client.request(client.channel()
                        .alloc()
                        .buffer()
                        .writeByte(PerfProtocol.RING)
                        .writeByte(mode)
                        .writeInt(capacityBytes)
                        .writeBytes(mine.encode()))
                .sync()
                .getNow());
    }

    /** Requests memory of the server, only for this connection, which replaces the last one. */
    RemoteMemory memory(int bytes) throws InterruptedException {
        return PerfProtocol.token(request(PerfProtocol.MEMORY, bytes));
    }

    private ByteBuf request(byte what, int argument) throws InterruptedException {
        return client.request(client.channel()
                        .alloc()
                        .buffer(1 + Integer.BYTES)
                        .writeByte(what)
                        .writeInt(argument))
                .sync()
                .getNow();
    }

    /** A message of this many bytes, with any content. */
    static ByteBuf filled(Channel channel, int bytes) {
        return channel.alloc().buffer(bytes, bytes).writerIndex(bytes);
    }

    @Override
    public void close() {
        subjects.forEach(PerfSubject::close);
        client.close();
    }
}
