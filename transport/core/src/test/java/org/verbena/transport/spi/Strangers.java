package org.verbena.transport.spi;

import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.Logger;
import ch.qos.logback.classic.spi.ILoggingEvent;
import ch.qos.logback.core.read.ListAppender;
import io.netty.channel.IoEventLoop;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.TimeUnit;
import org.slf4j.LoggerFactory;
import org.verbena.transport.CompletionLoopOptions;
import org.verbena.transport.Framing;
import org.verbena.transport.protocol.MessageOptions;
import org.verbena.transport.protocol.PrivateData;
import org.verbena.transport.provider.ProviderChoice;

/**
 * Who reaches the port of a server on soft and is no client of its program: bytes that are no protocol, frames without
 * their end, and connections that come up and say nothing. The server serves others meanwhile, ends all of them by its
 * deadlines, and logs little.
 */
public final class Strangers implements AutoCloseable {
    private static final String MPA = "MPA ID Req Frame";

    /** Each kind of line has a limit of its own: no request, half of one, a rejected one, an unreadable message. */
    private static final int KINDS = 4;

    private final InetSocketAddress server;
    private final RdmaProvider provider;
    private final MultiThreadIoEventLoopGroup group;
    private final List<Socket> sockets = new ArrayList<>();
    private final List<RecordingEndpointHandler> silent = new ArrayList<>();
    private final ListAppender<ILoggingEvent> log = new ListAppender<>();
    private final Logger logger = (Logger) LoggerFactory.getLogger("org.verbena");
    private final long beganNanos = System.nanoTime();

    /**
     * Begins to watch the log.
     *
     * @param server on soft
     */
    public Strangers(InetSocketAddress server) {
        this.server = server;
        provider = ProviderChoice.choose("soft", server).provider();
        group = new MultiThreadIoEventLoopGroup(1, provider.newIoHandlerFactory(CompletionLoopOptions.DEFAULTS));
        log.start();
        logger.addAppender(log);
    }

    /** Frames of the startup phase, whole or not. */
    private static byte[] frame(int flags, int lengthField, int bytes) {
        return ByteBuffer.allocate(20 + bytes)
                .put(MPA.getBytes(StandardCharsets.US_ASCII))
                .putShort((short) flags)
                .putShort((short) lengthField)
                .array();
    }

    /**
     * Sends, each on connections of its own, what no client sends, and leaves the connections open or half closed.
     *
     * @param times how often
     * @throws IOException the server cannot be reached
     */
    public void sendNoise(int times) throws IOException {
        SplittableRandom random = new SplittableRandom(59);
        for (int i = 0; i < times; i++) {
            byte[] noise = new byte[1 + random.nextInt(5_000)];
            random.nextBytes(noise);
            List<byte[]> all = List.of(
                    noise,
                    "GET / HTTP/1.1\r\n\r\n".getBytes(StandardCharsets.US_ASCII),
                    MPA.substring(0, 9).getBytes(StandardCharsets.US_ASCII),
                    frame(0x1002, 4, 0),
                    frame(0x1002, 0xffff, 4),
                    frame(0x1002, 4, 4),
                    ByteBuffer.allocate(4).putInt(Integer.MAX_VALUE).array());
            for (byte[] each : all) {
                Socket socket = new Socket(server.getAddress(), server.getPort());
                sockets.add(socket);
                socket.setSoTimeout((int) Patience.LIMIT.toMillis());
                socket.getOutputStream().write(each);
                if (i % 2 == 1) {
                    socket.shutdownOutput();
                }
            }
        }
    }

    /**
     * Connects as clients of Verbena do, up to the handshake of its protocol, and then says nothing.
     *
     * @param count of connections, which are up when this returns
     * @param framing of the server
     */
    public void connectSilently(int count, Framing framing) {
        byte[] privateData = PrivateData.of(MessageOptions.DEFAULTS.withFraming(framing));
        EndpointOptions options = EndpointOptions.DEFAULTS.with(o -> o.privateData = privateData);
        for (int i = 0; i < count; i++) {
            IoEventLoop loop = group.next();
            RecordingEndpointHandler handler = new RecordingEndpointHandler("stranger " + i, loop);
            silent.add(handler);
            Endpoint unused = provider.connect(loop, server, options, handler);
        }
        silent.forEach(RecordingEndpointHandler::awaitConnected);
    }

    /**
     * Waits until the server has ended all, and checks what it has logged meanwhile.
     *
     * @throws IOException a connection does not end in time
     */
    public void awaitEnd() throws IOException {
        for (Socket socket : sockets) {
            try {
                while (socket.getInputStream().read() >= 0) {
                    continue; // what it says to a frame, such as a rejection
                }
            } catch (java.net.SocketException reset) {
                continue; // which is an end as well
            }
        }
        silent.forEach(RecordingEndpointHandler::awaitDisconnected);
        long periods = 1 + (System.nanoTime() - beganNanos) / RateLimitedLog.PERIOD_NANOS;
        List<ILoggingEvent> lines;
        synchronized (log) {
            lines = log.list.stream()
                    .filter(line -> line.getLevel().isGreaterOrEqual(Level.WARN))
                    .toList();
        }
        if (lines.size() > KINDS * periods * RateLimitedLog.LINES_PER_PERIOD) {
            throw new AssertionError(lines.size() + " lines in the log: " + lines);
        }
    }

    @Override
    public void close() throws IOException {
        logger.detachAppender(log);
        for (Socket socket : sockets) {
            socket.close();
        }
        Patience.await("the loop ended", group.shutdownGracefully(0, 5, TimeUnit.SECONDS));
    }
}
