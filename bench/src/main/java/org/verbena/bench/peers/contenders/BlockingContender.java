package org.verbena.bench.peers.contenders;

import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.SocketAddress;
import java.net.StandardProtocolFamily;
import java.net.StandardSocketOptions;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.file.Path;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.locks.LockSupport;
import org.verbena.api.RdmaEventLoopGroup;
import org.verbena.bench.peers.Contender;
import org.verbena.bench.peers.Load;
import org.verbena.bench.peers.Place;
import org.verbena.sockets.RdmaServerSocketFactory;
import org.verbena.sockets.RdmaSocketFactory;

/**
 * Only the JDK, blocking: java.net.Socket with buffered streams, of the JDK's or Verbena's, or a SocketChannel with
 * direct buffers over TCP or a Unix domain socket. With one message outstanding, one client thread writes and reads;
 * with more, one thread writes and another reads, as blocking I/O needs. Frames are a 4-byte length and the message.
 */
@SuppressWarnings({"NullAway", "CatchAndPrintStackTrace"}) // a measured program: what it prints goes to its log
public final class BlockingContender implements Contender {

    public enum Io {
        STREAMS,
        /** Streams over Verbena. */
        RDMA_STREAMS,
        CHANNEL,
        UNIX_CHANNEL
    }

    private final Io io;

    public BlockingContender(Io io) {
        this.io = io;
    }

    @Override
    public Server startServer(Path scratch) throws IOException {
        InetSocketAddress any = Place.address(0);
        if (io == Io.STREAMS || io == Io.RDMA_STREAMS) {
            ServerSocket server = io == Io.STREAMS
                    ? new ServerSocket()
                    : new RdmaServerSocketFactory(verbenaLoop()).createServerSocket();
            server.bind(any);
            return serve(Integer.toString(server.getLocalPort()), server, () -> echo(server.accept()));
        }
        ServerSocketChannel server;
        String address;
        if (io == Io.CHANNEL) {
            server = ServerSocketChannel.open().bind(any);
            address = Integer.toString(((InetSocketAddress) server.getLocalAddress()).getPort());
        } else {
            Place.refuseHost("a Unix domain socket");
            address = scratch.resolve("echo.sock").toString();
            server = ServerSocketChannel.open(StandardProtocolFamily.UNIX).bind(UnixDomainSocketAddress.of(address));
        }
        return serve(address, server, () -> echo(server.accept()));
    }

    private static RdmaEventLoopGroup verbenaLoop() {
        return new RdmaEventLoopGroup(Place.provider(), 1);
    }

    private interface Body {
        void run() throws IOException;
    }

    private static Server serve(String address, AutoCloseable listener, Body body) {
        Thread.ofPlatform().daemon().name("echo").start(() -> {
            try {
                body.run();
            } catch (IOException e) {
                e.printStackTrace();
            }
        });
        return new Server() {
            @Override
            public String address() {
                return address;
            }

            @Override
            public void close() throws Exception {
                listener.close();
            }
        };
    }

    private static void echo(Socket socket) throws IOException {
        socket.setTcpNoDelay(true);
        DataInputStream in =
                new DataInputStream(new BufferedInputStream(socket.getInputStream(), Frames.STREAM_BUFFER));
        BufferedOutputStream buffered = new BufferedOutputStream(socket.getOutputStream(), Frames.STREAM_BUFFER);
        DataOutputStream out = new DataOutputStream(buffered);
        byte[] message = new byte[Frames.MAX_MESSAGE];
        try {
            while (true) {
                int length = in.readInt();
                in.readFully(message, 0, length);
                out.writeInt(length);
                out.write(message, 0, length);
                if (in.available() == 0) {
                    out.flush();
                }
            }
        } catch (EOFException end) {
            socket.close();
        }
    }

    private static void echo(SocketChannel channel) throws IOException {
        Frames.noDelay(channel);
        ByteBuffer buffer = ByteBuffer.allocateDirect(Frames.BUFFER);
        while (channel.read(buffer) >= 0) {
            int whole = Frames.wholeFrames(buffer);
            if (whole > 0) { // send all whole frames back as they are, and keep the rest
                int end = buffer.position();
                buffer.position(0).limit(whole);
                while (buffer.hasRemaining()) {
                    channel.write(buffer);
                }
                buffer.limit(end).position(whole);
                buffer.compact();
            }
        }
        channel.close();
    }

    @Override
    public Client connect(String address) throws IOException {
        Connection connection = switch (io) {
            case STREAMS -> new Streams(new Socket(), Integer.parseInt(address));
            case RDMA_STREAMS ->
                new Streams(new RdmaSocketFactory(verbenaLoop()).createSocket(), Integer.parseInt(address));
            case CHANNEL -> new Channel(Place.address(Integer.parseInt(address)));
            case UNIX_CHANNEL -> new Channel(UnixDomainSocketAddress.of(address));
        };
        return new Client() {
            @Override
            public void run(Load load) throws Exception {
                if (load.window == 1) {
                    pingPong(connection, load);
                } else {
                    windowed(connection, load);
                }
            }

            @Override
            public void close() throws Exception {
                connection.close();
            }
        };
    }

    private static void pingPong(Connection connection, Load load) throws IOException {
        for (long sequence; (sequence = load.next()) >= 0; ) {
            connection.send(load, sequence);
            connection.flush();
            connection.receive(load);
        }
    }

    private static void windowed(Connection connection, Load load) throws Exception {
        CompletableFuture<Void> sender = new CompletableFuture<>();
        Thread writer = Thread.ofPlatform().name("writer").start(() -> {
            try {
                while (!load.timeUp()) {
                    long sequence = load.next();
                    if (sequence >= 0) {
                        connection.send(load, sequence);
                    } else {
                        connection.flush();
                        LockSupport.parkNanos(1_000_000); // the reader unparks it
                    }
                }
                connection.flush();
                sender.complete(null);
            } catch (IOException e) {
                sender.completeExceptionally(e);
            }
        });
        while (!load.finished()) {
            if (load.outstanding() > 0) {
                connection.receive(load);
                if (load.outstanding() <= load.window / 2) { // not for every message: waking a thread is dear
                    LockSupport.unpark(writer);
                }
            } else {
                Thread.onSpinWait(); // only at the start and at the end
            }
        }
        sender.get();
    }

    /** Sending and receiving may go on in two threads. */
    private interface Connection extends AutoCloseable {
        void send(Load load, long sequence) throws IOException;

        void flush() throws IOException;

        /** Waits for at least one echo. */
        void receive(Load load) throws IOException;
    }

    private static final class Streams implements Connection {
        private final Socket socket;
        private final DataInputStream in;
        private final DataOutputStream out;
        private final byte[] message = new byte[Frames.MAX_MESSAGE];

        Streams(Socket socket, int port) throws IOException {
            this.socket = socket;
            socket.connect(Place.address(port));
            socket.setTcpNoDelay(true);
            in = new DataInputStream(new BufferedInputStream(socket.getInputStream(), Frames.STREAM_BUFFER));
            out = new DataOutputStream(new BufferedOutputStream(socket.getOutputStream(), Frames.STREAM_BUFFER));
        }

        @Override
        public void send(Load load, long sequence) throws IOException {
            out.writeInt(load.size);
            out.writeLong(sequence);
            out.write(load.payload, 8, load.size - 8);
        }

        @Override
        public void flush() throws IOException {
            out.flush();
        }

        @Override
        public void receive(Load load) throws IOException {
            int length = in.readInt();
            in.readFully(message, 0, length);
            load.echoed(ByteBuffer.wrap(message).getLong(), length, message[length - 1]);
        }

        @Override
        public void close() throws IOException {
            socket.close();
        }
    }

    private static final class Channel implements Connection {
        private final SocketChannel channel;
        private final ByteBuffer in = ByteBuffer.allocateDirect(Frames.BUFFER);
        private final ByteBuffer out = ByteBuffer.allocateDirect(Frames.BUFFER);

        Channel(SocketAddress to) throws IOException {
            channel = SocketChannel.open(to);
            Frames.noDelay(channel);
        }

        @Override
        public void send(Load load, long sequence) throws IOException {
            if (out.remaining() < 4 + load.size) {
                flush();
            }
            Frames.put(out, load, sequence);
        }

        @Override
        public void flush() throws IOException {
            out.flip();
            while (out.hasRemaining()) {
                channel.write(out);
            }
            out.clear();
        }

        @Override
        public void receive(Load load) throws IOException {
            do {
                if (channel.read(in) < 0) {
                    throw new EOFException();
                }
            } while (Frames.take(in, load) == 0);
        }

        @Override
        public void close() throws IOException {
            channel.close();
        }
    }

    /** Frames in a ByteBuffer, which is kept ready to be filled. */
    static final class Frames {
        static final int MAX_MESSAGE = 1 << 20;
        static final int BUFFER = 2 * (MAX_MESSAGE + 4);
        static final int STREAM_BUFFER = 64 << 10;

        static void noDelay(SocketChannel channel) throws IOException {
            if (channel.supportedOptions().contains(StandardSocketOptions.TCP_NODELAY)) {
                channel.setOption(StandardSocketOptions.TCP_NODELAY, true);
            }
        }

        static void put(ByteBuffer out, Load load, long sequence) {
            out.putInt(load.size).putLong(sequence).put(load.payload, 8, load.size - 8);
        }

        /** How many bytes at the start of the buffer are whole frames. */
        static int wholeFrames(ByteBuffer in) {
            int end = in.position();
            int whole = 0;
            while (end - whole >= 4 && end - whole >= 4 + in.getInt(whole)) {
                whole += 4 + in.getInt(whole);
            }
            return whole;
        }

        /** Reports the whole frames in the buffer and removes them; returns how many. */
        static int take(ByteBuffer in, Load load) {
            int end = in.position();
            int at = 0;
            int count = 0;
            while (end - at >= 4) {
                int length = in.getInt(at);
                if (end - at < 4 + length) {
                    break;
                }
                load.echoed(in.getLong(at + 4), length, in.get(at + 3 + length));
                at += 4 + length;
                count++;
            }
            if (at > 0) {
                in.limit(end).position(at);
                in.compact();
            }
            return count;
        }
    }
}
