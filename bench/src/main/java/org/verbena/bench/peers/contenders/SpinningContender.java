package org.verbena.bench.peers.contenders;

import java.io.EOFException;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.file.Path;
import org.verbena.bench.peers.Contender;
import org.verbena.bench.peers.Load;
import org.verbena.bench.peers.Place;
import org.verbena.bench.peers.contenders.BlockingContender.Frames;

/**
 * A non-blocking SocketChannel on TCP that polls instead of sleeping: what the kernel's TCP gives to someone who pays
 * a core for it, as users of polling transports do. One thread on either side; it yields when there is nothing.
 */
@SuppressWarnings({"NullAway", "CatchAndPrintStackTrace"}) // a measured program: what it prints goes to its log
public final class SpinningContender implements Contender {
    private static final int SPINS = 20; // each is a system call

    @Override
    public Server startServer(Path scratch) throws IOException {
        ServerSocketChannel server = ServerSocketChannel.open().bind(Place.address(0));
        Thread.ofPlatform().daemon().name("echo").start(() -> {
            try {
                echo(server.accept());
            } catch (IOException e) {
                e.printStackTrace();
            }
        });
        String address = Integer.toString(((InetSocketAddress) server.getLocalAddress()).getPort());
        return new Server() {
            @Override
            public String address() {
                return address;
            }

            @Override
            public void close() throws IOException {
                server.close();
            }
        };
    }

    private static void echo(SocketChannel channel) throws IOException {
        Frames.noDelay(channel);
        channel.configureBlocking(false);
        ByteBuffer buffer = ByteBuffer.allocateDirect(Frames.BUFFER);
        int idle = 0;
        for (int read; (read = channel.read(buffer)) >= 0; ) {
            if (read == 0) {
                idle = idle(idle);
                continue;
            }
            idle = 0;
            int whole = Frames.wholeFrames(buffer);
            if (whole > 0) {
                int end = buffer.position();
                buffer.position(0).limit(whole);
                while (buffer.hasRemaining()) {
                    idle = channel.write(buffer) == 0 ? idle(idle) : 0;
                }
                buffer.limit(end).position(whole);
                buffer.compact();
            }
        }
        channel.close();
    }

    private static int idle(int idle) {
        if (idle < SPINS) {
            Thread.onSpinWait();
            return idle + 1;
        }
        Thread.yield();
        return idle;
    }

    @Override
    public Client connect(String address) throws IOException {
        SocketChannel channel = SocketChannel.open(Place.address(Integer.parseInt(address)));
        Frames.noDelay(channel);
        channel.configureBlocking(false);
        ByteBuffer in = ByteBuffer.allocateDirect(Frames.BUFFER);
        ByteBuffer out = ByteBuffer.allocateDirect(Frames.BUFFER);
        return new Client() {
            @Override
            public void run(Load load) throws IOException {
                int idle = 0;
                while (!load.finished()) {
                    boolean progress = false;
                    while (out.remaining() >= 4 + load.size) {
                        long sequence = load.next();
                        if (sequence < 0) {
                            break;
                        }
                        Frames.put(out, load, sequence);
                    }
                    if (out.position() > 0) {
                        out.flip();
                        progress = channel.write(out) > 0;
                        out.compact();
                    }
                    int read = channel.read(in);
                    if (read < 0) {
                        throw new EOFException();
                    }
                    if (read > 0) {
                        Frames.take(in, load);
                        progress = true;
                    }
                    idle = progress ? 0 : idle(idle);
                }
            }

            @Override
            public void close() throws IOException {
                channel.close();
            }
        };
    }
}
