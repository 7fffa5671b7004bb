package org.verbena.transport.shm;

import io.netty.channel.IoEventLoop;
import io.netty.util.concurrent.ScheduledFuture;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.shm.ffm.SharedFile;
import org.verbena.transport.software.LoopSocket;
import org.verbena.transport.spi.ConnectionException;
import org.verbena.transport.spi.EndpointOptions;

/** Brings an endpoint up: finds the peer's socket, checks its user, shares the file, and hears or gives the answer. */
final class ShmSetup {
    /** How soon a server whose backlog is full is tried again. */
    private static final long RETRY_MILLIS = 2;

    private final ShmEndpoint endpoint;
    private final IoEventLoop loop;
    private final ShmOptions shmOptions;
    private final EndpointOptions options;
    private final InetSocketAddress remoteAddress;

    private @Nullable ScheduledFuture<?> timeout;
    private @Nullable ScheduledFuture<?> retry;
    private Handshake.@Nullable Reader reply;
    private @Nullable SharedFile file;
    private @Nullable Arena arena;
    private @Nullable ShmBinding binding;
    private boolean accepting;
    private boolean ended;

    ShmSetup(
            ShmEndpoint endpoint,
            IoEventLoop loop,
            ShmOptions shmOptions,
            EndpointOptions options,
            InetSocketAddress remoteAddress) {
        this.endpoint = endpoint;
        this.loop = loop;
        this.shmOptions = shmOptions;
        this.options = options;
        this.remoteAddress = remoteAddress;
    }

    // Connecting.

    /**
     * Begins to connect; on the loop.
     *
     * @param bound keeps the local address, or null for any
     */
    void connect(@Nullable ShmBinding bound) {
        binding = bound;
        if (!endpoint.isComingUp()) {
            endpoint.turn();
            return;
        }
        startTimeout("connecting");
        tryConnect();
    }

    private void tryConnect() {
        retry = null;
        if (!endpoint.isComingUp()) {
            return;
        }
        SocketChannel channel = null;
        try {
            SocketDirectory directory = SocketDirectory.open(shmOptions.directory());
            Path path = directory.find(remoteAddress);
            if (path == null) {
                throw new IOException("Connection refused: no socket of this user in " + directory);
            }
            channel = SocketChannel.open(StandardProtocolFamily.UNIX);
            channel.configureBlocking(false);
            if (!channel.connect(UnixDomainSocketAddress.of(path))) {
                channel.close();
                retry = loop.schedule(this::tryConnect, RETRY_MILLIS, TimeUnit.MILLISECONDS);
                return;
            }
            directory.checkUser(channel);
            ControlSocket made = new ControlSocket(loop, channel, endpoint);
            made.begin();
            endpoint.setSocket(made);
        } catch (IOException | RuntimeException e) {
            if (channel != null) {
                LoopSocket.closeQuietly(channel);
            }
            endpoint.endNow(failure(e));
            return;
        }
        endpoint.beginTurn();
        if (endpoint.prepare(localAddress())) {
            request(channel);
        }
        endpoint.leaveTurn();
    }

    private InetSocketAddress localAddress() {
        if (binding != null) {
            return binding.localAddress();
        }
        InetAddress to = remoteAddress.getAddress();
        return new InetSocketAddress(
                to.isAnyLocalAddress() ? InetAddress.getLoopbackAddress() : to, SocketDirectory.anyPort());
    }

    private ConnectionException failure(Exception e) {
        String what = "connecting to " + remoteAddress + ": " + e.getMessage();
        if (String.valueOf(e.getMessage()).contains("refused")) {
            return new ConnectionException.Rejected(
                    what + "; nobody listens there: check that the server is up, runs as this user on this host, and"
                            + " uses the shm provider",
                    new byte[0]);
        }
        return new ConnectionException(what, e);
    }

    private void request(SocketChannel channel) {
        Arena made = Arena.ofShared();
        arena = made;
        int ringBytes = shmOptions.ringBytes();
        try {
            SharedFile shared = SharedFile.create("verbena", Ring.fileBytes(ringBytes), false, made);
            file = shared;
            ByteBuffer request = new Handshake.Request(
                            ShmContext.PID,
                            shared.descriptor(),
                            ringBytes,
                            options.readDepth(),
                            endpoint.localAddress(),
                            remoteAddress,
                            options.privateData())
                    .encode();
            channel.write(request);
            if (request.hasRemaining()) {
                throw new IOException("the socket did not accept " + request.limit() + " bytes at once");
            }
            reply = new Handshake.Reader();
        } catch (IOException e) {
            endpoint.fail(new ConnectionException("connecting to " + remoteAddress + ": " + e.getMessage(), e));
        }
    }

    /** The socket can be read while the connection is not up. */
    void onReadable(ControlSocket socket) {
        Handshake.Reader reader = reply;
        if (reader == null) {
            return;
        }
        endpoint.beginTurn();
        try {
            ByteBuffer frame = reader.read(socket.channel());
            if (frame != null) {
                reply = null;
                onReply(Handshake.Reply.decode(frame));
            } else if (reader.isEnded()) {
                throw new IOException("the peer closed the connection without an answer");
            }
        } catch (IOException e) {
            endpoint.fail(new ConnectionException("connecting to " + remoteAddress + ": " + e.getMessage(), e));
        }
        endpoint.leaveTurn();
    }

    private void onReply(Handshake.Reply answer) {
        if (!answer.accepted()) {
            endpoint.fail(new ConnectionException.Rejected(
                    "connecting to " + remoteAddress + ": the peer rejected the connection"
                            + (answer.privateData().length == 0
                                    ? ""
                                    : " with " + answer.privateData().length + " bytes of private data"),
                    answer.privateData()));
            return;
        }
        SharedFile shared = file;
        if (shared == null) {
            throw new IllegalStateException("nothing was asked for");
        }
        up(shared.memory(), answer.pid(), shmOptions.ringBytes(), answer.readDepth(), answer.privateData());
    }

    private void up(MemorySegment memory, long pid, int ringBytes, int peerDepth, byte[] privateData) {
        Arena of = arena;
        if (of == null) {
            throw new IllegalStateException("nothing is mapped");
        }
        arena = null; // the endpoint's
        end();
        endpoint.becomeConnected(of, memory, pid, ringBytes, Math.min(options.readDepth(), peerDepth), privateData);
    }

    // Accepting.

    /**
     * Takes a connection over whose request was read; on the loop.
     *
     * @param channel connected; null if it is gone
     * @param inPlace the channel's socket if it is on this loop already
     * @param from the request
     */
    void accept(@Nullable SocketChannel channel, @Nullable ControlSocket inPlace, Handshake.Request from) {
        if (channel == null || !endpoint.isComingUp()) {
            if (inPlace != null) {
                inPlace.closeNow();
            } else if (channel != null) {
                LoopSocket.closeQuietly(channel);
            }
            endpoint.fail(new ConnectionException(
                    "accepting from " + remoteAddress + ": the peer disconnected before it was accepted"));
            endpoint.turn();
            return;
        }
        ControlSocket made = inPlace;
        try {
            if (made == null) {
                made = new ControlSocket(loop, channel, endpoint);
                made.begin();
            } else {
                made.setOwner(endpoint);
            }
        } catch (IOException | RuntimeException e) {
            LoopSocket.closeQuietly(channel);
            endpoint.endNow(new ConnectionException("accepting from " + remoteAddress + ": " + e.getMessage(), e));
            return;
        }
        endpoint.setSocket(made);
        accepting = true;
        endpoint.beginTurn();
        if (endpoint.prepare(from.to())) {
            answer(made, from);
        }
        endpoint.leaveTurn();
    }

    private void answer(ControlSocket to, Handshake.Request from) {
        Arena made = Arena.ofShared();
        arena = made;
        try {
            MemorySegment memory =
                    SharedFile.map(from.pid(), from.descriptor(), Ring.fileBytes(from.ringBytes()), true, made);
            to.send(new Handshake.Reply(true, options.readDepth(), ShmContext.PID, options.privateData()).encode());
            accepting = false;
            up(memory, from.pid(), from.ringBytes(), from.readDepth(), from.privateData());
        } catch (IOException e) {
            endpoint.fail(new ConnectionException(
                    "accepting from " + remoteAddress + ": its memory cannot be shared: " + e.getMessage()
                            + " (both processes must be of one user, in one PID namespace, and dumpable)",
                    e));
        }
    }

    /** Whether a request was accepted that has not been answered. */
    boolean isAccepting() {
        return accepting;
    }

    ByteBuffer rejection(byte[] reason) {
        return new Handshake.Reply(false, 0, ShmContext.PID, reason).encode();
    }

    private void startTimeout(String step) {
        timeout = loop.schedule(
                () -> {
                    if (endpoint.isComingUp()) {
                        endpoint.endNow(new ConnectionException.TimedOut(step + " with " + remoteAddress
                                + ": not established after " + options.connectTimeoutMillis() + " ms"));
                    }
                },
                options.connectTimeoutMillis(),
                TimeUnit.MILLISECONDS);
    }

    /** The outcome is decided, or the connection has ended: lets go of everything that is not the endpoint's. Idempotent. */
    void end() {
        if (ended) {
            return;
        }
        ended = true;
        cancel(timeout);
        cancel(retry);
        SharedFile shared = file;
        if (shared != null) {
            shared.close();
        }
        Arena unused = arena;
        if (unused != null) {
            arena = null;
            unused.close();
        }
    }

    /** The connection has ended: its local address is free again. */
    void unbind() {
        if (binding != null) {
            binding.release();
        }
    }

    private static void cancel(@Nullable ScheduledFuture<?> task) {
        if (task != null) {
            task.cancel(false);
        }
    }
}
