package org.verbena.transport.shm;

import io.netty.channel.IoEventLoop;
import io.netty.util.concurrent.ScheduledFuture;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.net.ConnectException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.SocketException;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.shm.ffm.ProcessFiles;
import org.verbena.transport.shm.ffm.SharedFile;
import org.verbena.transport.shm.ffm.UnixSockets;
import org.verbena.transport.software.LoopSocket;
import org.verbena.transport.spi.EndpointOptions;
import org.verbena.transport.spi.Secrets;

/**
 * Brings an endpoint up: finds the peer's socket, shares the file, and reads or sends the answer.
 *
 * <p>The peer sends the numbers of a descriptor and of its process. Neither is trusted. The connecting side writes a
 * secret into its file and sends it over the socket: the accepting side takes a file only with that secret, and only
 * from the process that made it. The accepting side keeps the file open and names the descriptor: the connecting side
 * takes the process as its peer only if the kernel finds that very file there, and that the process has opened it and
 * not made it. So a process cannot pass off a file that a client shares with it as its own.
 */
final class ShmSetup {
    private static final Logger LOG = LoggerFactory.getLogger(ShmSetup.class);

    /** How soon a server whose backlog is full is tried again: at first, and at last. */
    private static final long FIRST_RETRY_MILLIS = 2;

    private static final long LAST_RETRY_MILLIS = 64;

    private final ShmEndpoint endpoint;
    private final IoEventLoop loop;
    private final ShmContext context;
    private final ShmOptions shmOptions;
    private final EndpointOptions options;
    private final InetSocketAddress remoteAddress;

    private @Nullable ScheduledFuture<?> timeout;
    private @Nullable ScheduledFuture<?> retry;
    private long retryMillis = FIRST_RETRY_MILLIS;

    /** On the loop and not connected: what a loop that ends finds of an endpoint that waits for its next attempt. */
    private @Nullable ControlSocket next;

    private Handshake.@Nullable Reader reply;

    /** The connecting side's. */
    private @Nullable SharedFile file;

    /** The ring, until it is the endpoint's. */
    private @Nullable MemorySegment memory;

    /** The accepting side's: it is open until the peer has seen it. */
    private @Nullable SharedFile shown;

    private @Nullable ShmBinding binding;
    private boolean accepting;
    private boolean cannotShare;
    private boolean ended;

    ShmSetup(
            ShmEndpoint endpoint,
            IoEventLoop loop,
            ShmContext context,
            EndpointOptions options,
            InetSocketAddress remoteAddress) {
        this.endpoint = endpoint;
        this.loop = loop;
        this.context = context;
        this.options = options;
        this.remoteAddress = remoteAddress;
        shmOptions = context.options();
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
        ControlSocket made;
        try {
            made = next == null ? newSocket() : next;
            next = null;
            SocketDirectory directory = SocketDirectory.open(shmOptions.directory());
            Path path = directory.find(remoteAddress);
            UnixSockets.Answer answer = path == null ? UnixSockets.Answer.NO_NAME : connect(made.channel(), path);
            switch (answer) {
                case LISTENS -> made.begin();
                case IS_FULL -> {
                    made.closeNow();
                    next = newSocket();
                    retry = loop.schedule(this::tryConnect, retryMillis, TimeUnit.MILLISECONDS);
                    retryMillis = Math.min(LAST_RETRY_MILLIS, 2 * retryMillis);
                    return;
                }
                case NOBODY, NO_NAME -> {
                    endpoint.endNow(nobodyListens(directory));
                    return;
                }
            }
        } catch (Throwable e) {
            endpoint.endNow(endpoint.setupFailure(e));
            return;
        }
        endpoint.beginTurn();
        try {
            if (endpoint.prepare(localAddress())) {
                request(made.channel());
            }
        } catch (RuntimeException | Error e) {
            endpoint.fail(e);
        }
        endpoint.leaveTurn();
    }

    /** A socket on the loop, which is the endpoint's from now on. */
    private ControlSocket newSocket() throws IOException {
        SocketChannel channel = LoopSocket.open(() -> SocketChannel.open(StandardProtocolFamily.UNIX));
        try {
            channel.configureBlocking(false);
            ControlSocket made = new ControlSocket(loop, channel, endpoint);
            made.register();
            endpoint.setSocket(made);
            return made;
        } catch (IOException | RuntimeException | Error e) {
            LoopSocket.closeQuietly(channel);
            throw e;
        }
    }

    /** Java has one exception for a full backlog and other reasons, so the kernel is asked again. */
    private static UnixSockets.Answer connect(SocketChannel channel, Path path) throws IOException {
        try {
            if (channel.connect(UnixDomainSocketAddress.of(path))) {
                return UnixSockets.Answer.LISTENS;
            }
        } catch (ConnectException refused) {
            return UnixSockets.Answer.NOBODY;
        } catch (SocketException unknown) {
            LOG.trace("connecting to {}", path, unknown);
        }
        UnixSockets.Answer now = UnixSockets.ask(path);
        return now == UnixSockets.Answer.LISTENS ? UnixSockets.Answer.IS_FULL : now;
    }

    private InetSocketAddress localAddress() {
        if (binding != null) {
            return binding.localAddress();
        }
        InetAddress to = remoteAddress.getAddress();
        return new InetSocketAddress(
                to.isAnyLocalAddress() ? InetAddress.getLoopbackAddress() : to, SocketDirectory.anyPort());
    }

    private ConnectionException nobodyListens(SocketDirectory directory) {
        return new ConnectionException.Rejected(
                "connecting to " + remoteAddress + ": nobody listens there: no server has a socket of that port in "
                        + directory + "; check that the server is up, runs as this user on this host, and uses the shm"
                        + " provider. Both sides need the same directory, which depends on XDG_RUNTIME_DIR and"
                        + " java.io.tmpdir unless both set -Dorg.verbena.shm.directory, and nothing may clean it up",
                new byte[0]);
    }

    private void request(SocketChannel channel) {
        int ringBytes = shmOptions.ringBytes();
        try {
            PeerMappings.ALL.addRing();
            SharedFile shared;
            try {
                shared = SharedFile.create("verbena", Ring.fileBytes(ringBytes), false);
            } catch (IOException | RuntimeException | Error e) {
                PeerMappings.ALL.forgetRing();
                throw e;
            }
            file = shared;
            memory = shared.memory();
            long high = Secrets.nextLong();
            long low = Secrets.nextLong();
            Ring.putSecret(shared.memory(), high, low);
            ByteBuffer request = new Handshake.Request(
                            ShmContext.PID,
                            ProcessFiles.pidNamespace(),
                            shared.descriptor(),
                            high,
                            low,
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
            endpoint.fail(endpoint.setupFailure(e));
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
            endpoint.fail(endpoint.setupFailure(e));
        } catch (RuntimeException | Error e) {
            endpoint.fail(e);
        }
        endpoint.leaveTurn();
    }

    private void onReply(Handshake.Reply answer) {
        if (answer.verdict() != Handshake.Verdict.ACCEPTED) {
            endpoint.fail(new ConnectionException.Rejected(
                    "connecting to " + remoteAddress + ": the peer rejected the connection" + reason(answer),
                    answer.privateData()));
            return;
        }
        SharedFile shared = file;
        if (shared == null) {
            throw new IllegalStateException("nothing was asked for");
        }
        up(peer(answer, shared), shmOptions.ringBytes(), answer.readDepth(), answer.privateData());
    }

    private static String reason(Handshake.Reply answer) {
        if (answer.verdict() == Handshake.Verdict.CANNOT_SHARE) {
            return isForeign(answer.namespace())
                    ? ", since it is in another PID namespace (" + namespaces(answer.namespace())
                            + "): containers of a pod need shareProcessNamespace; or use another provider"
                    : ", since it cannot map this process's memory: both must be of one user, in one PID namespace, and"
                            + " dumpable; its log says more. Or use another provider";
        }
        return answer.privateData().length == 0
                ? ""
                : " with " + answer.privateData().length + " bytes of private data";
    }

    private static boolean isForeign(long namespace) {
        long own = ProcessFiles.pidNamespace();
        return namespace != 0 && own != 0 && namespace != own;
    }

    private static String namespaces(long peer) {
        return "its is " + peer + ", this process's " + ProcessFiles.pidNamespace();
    }

    /** The process that has the file open; null if there is none that this one can look into. */
    private @Nullable PeerProcess peer(Handshake.Reply answer, SharedFile shared) {
        String why;
        try {
            PeerProcess named = context.processes().find(answer.pid());
            try {
                if (named.files().hasOpened(answer.descriptor(), shared.identity())) {
                    return named.retain();
                }
                why = "the process " + answer.pid() + " has not opened this connection's file";
            } finally {
                named.leave();
            }
        } catch (IOException e) {
            why = String.valueOf(e.getMessage());
        }
        context.local()
                .warn("the server " + remoteAddress + " does not let this process map its memory, so what could be read"
                        + " directly is copied through the ring: " + why);
        return null;
    }

    /** The peer need not keep the file open any longer. */
    void showThatPeerIsKnown(ControlSocket socket) {
        try {
            if (!Control.wakePeer(socket)) {
                LOG.trace("other words show the peer {} that it is known", remoteAddress);
            }
        } catch (IOException gone) {
            LOG.trace("the peer {} is gone, which reading shows", remoteAddress, gone);
        }
    }

    private void up(@Nullable PeerProcess peer, int ringBytes, int peerDepth, byte[] privateData) {
        MemorySegment ring = memory;
        if (ring == null) {
            throw new IllegalStateException("nothing is mapped");
        }
        memory = null; // the endpoint's
        end();
        endpoint.becomeConnected(ring, peer, ringBytes, Math.min(options.readDepth(), peerDepth), privateData);
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
                made.register();
                made.begin();
            } else {
                made.setOwner(endpoint);
            }
        } catch (Throwable e) {
            LoopSocket.closeQuietly(channel);
            endpoint.endNow(endpoint.setupFailure(e));
            return;
        }
        endpoint.setSocket(made);
        accepting = true;
        endpoint.beginTurn();
        try {
            if (endpoint.prepare(from.to())) {
                answer(made, from);
            }
        } catch (RuntimeException | Error e) {
            endpoint.fail(e);
        }
        endpoint.leaveTurn();
    }

    private void answer(ControlSocket to, Handshake.Request from) {
        PeerProcess peer = null;
        try {
            peer = open(from);
            SharedFile now = shown;
            if (now == null) {
                throw new IllegalStateException("nothing was opened");
            }
            to.send(Handshake.Reply.accepted(options.readDepth(), now.descriptor(), options.privateData())
                    .encode());
            accepting = false;
            PeerProcess taken = peer;
            peer = null; // the endpoint's
            up(taken, from.ringBytes(), from.readDepth(), from.privateData());
        } catch (IOException e) {
            String why = "accepting from " + remoteAddress + ": its memory cannot be shared: " + e.getMessage()
                    + " (both processes must be of one user, in one PID namespace, and dumpable)";
            cannotShare = true;
            context.local().warn(why);
            endpoint.fail(new ConnectionException(why, e));
        } finally {
            if (peer != null) {
                peer.leave();
            }
        }
    }

    /** Maps the peer's file, if it is the peer's; gives its process. */
    private PeerProcess open(Handshake.Request from) throws IOException {
        if (isForeign(from.namespace())) {
            throw new IOException("it is in another PID namespace (" + namespaces(from.namespace()) + ")");
        }
        PeerMappings.ALL.addRing();
        PeerProcess peer = null;
        boolean isOpen = false;
        try {
            peer = context.processes().find(from.pid());
            SharedFile opened = peer.files().open(from.descriptor(), Ring.fileBytes(from.ringBytes()), true);
            memory = opened.memory();
            isOpen = true; // end() takes care of it
            shown = opened;
            if (!Ring.hasSecret(opened.memory(), from.secretHigh(), from.secretLow())
                    || !peer.files().hasMade(from.descriptor(), opened.identity())) {
                throw new IOException("the process " + from.pid() + " has another file than the peer's as "
                        + from.descriptor() + ": it is not the peer");
            }
            PeerProcess taken = peer;
            peer = null;
            return taken;
        } finally {
            if (!isOpen) {
                PeerMappings.ALL.forgetRing();
            }
            if (peer != null) {
                peer.leave();
            }
        }
    }

    /** The peer has sent something: it has seen the file, or does not want to. */
    void onPeerSpeaks() {
        SharedFile open = shown;
        if (open != null) {
            shown = null;
            open.close();
        }
    }

    /** Whether a request was accepted that has not been answered. */
    boolean isAccepting() {
        return accepting;
    }

    /** The rejection of a peer that was accepted, and cannot be served. */
    ByteBuffer rejection(byte[] reason) {
        return (cannotShare
                        ? Handshake.Reply.refused(Handshake.Verdict.CANNOT_SHARE, new byte[0])
                        : Handshake.Reply.refused(Handshake.Verdict.REJECTED, reason))
                .encode();
    }

    /** The error does not name the time: it may be what earlier attempts have left of the user's. */
    private void startTimeout(String step) {
        timeout = loop.schedule(
                () -> {
                    if (endpoint.isComingUp()) {
                        endpoint.endNow(new ConnectionException.TimedOut(step + " with " + remoteAddress
                                + ": not established within the connect timeout"
                                + (next == null ? "" : "; the server has let its backlog fill up")));
                    }
                },
                options.connectTimeoutMillis(),
                TimeUnit.MILLISECONDS);
    }

    /**
     * The outcome is decided, or the connection has ended: releases everything that is not the endpoint's. Idempotent.
     */
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
        MemorySegment unused = memory;
        if (unused != null) {
            memory = null;
            PeerMappings.ALL.removeRing(unused);
        }
    }

    /** The connection has ended: its local address is free again. */
    void unbind() {
        onPeerSpeaks();
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
