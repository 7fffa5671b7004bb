package org.verbena.transport.soft;

import io.netty.channel.IoEventLoop;
import io.netty.channel.nio.NioIoOps;
import io.netty.util.concurrent.ScheduledFuture;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.software.LoopSocket;
import org.verbena.transport.spi.EndpointOptions;

/**
 * Sets an endpoint up: TCP, then MPA's request and reply, then the peer's first segment. Not thread-safe; confined to
 * the loop's thread.
 *
 * <pre>{@code
 * connecting:  TCP --up--> request sent --reply--> connected
 * accepting:   request read --> reply sent --first segment of the peer--> connected, and this side may send
 * }</pre>
 *
 * <p>If the two ends do not agree on which speaks first, an accepting endpoint is connected for its users as soon as
 * the reply is sent, and what it sends waits for the first segment.
 */
final class SoftSetup {
    private final SoftEndpoint endpoint;
    private final IoEventLoop loop;
    private final SoftOptions softOptions;
    private final EndpointOptions options;
    private final InetSocketAddress remoteAddress;

    private @Nullable ScheduledFuture<?> timeout;

    /** When TCP was asked to connect. */
    private long beganNanos;

    /** Connecting side: once the request is sent. */
    private @Nullable MpaFrameReader replyReader;

    /** Accepting side: the request, until the connection is up. */
    private @Nullable MpaFrame request;

    /** Accepting side: whether the first FPDU of the peer is still to come. */
    private boolean awaitsFirstSegment;

    SoftSetup(
            SoftEndpoint endpoint,
            IoEventLoop loop,
            SoftOptions softOptions,
            EndpointOptions options,
            InetSocketAddress remoteAddress) {
        this.endpoint = endpoint;
        this.loop = loop;
        this.softOptions = softOptions;
        this.options = options;
        this.remoteAddress = remoteAddress;
    }

    // Connecting.

    /**
     * Begins to connect.
     *
     * @param bound the channel to connect with, or null for a new one
     */
    void connect(@Nullable SocketChannel bound) {
        SoftSocket made = null;
        SocketChannel channel = bound;
        try {
            if (channel == null) {
                channel = LoopSocket.open(SocketChannel::open);
            }
            TcpChannels.configure(channel, softOptions.stallTimeoutMillis(), options.trafficClass());
            SoftSocket registering = new SoftSocket(loop, channel, endpoint);
            registering.register();
            made = registering;
            endpoint.setSocket(made);
            startTimeout("connecting");
            if (tryConnect(channel)) {
                onTcpConnected(made);
            } else if (endpoint.isComingUp()) {
                made.await(NioIoOps.CONNECT);
            }
        } catch (Throwable e) {
            if (made == null && channel != null) {
                LoopSocket.closeQuietly(channel);
            }
            endpoint.endNow(endpoint.setupFailure(e));
        }
    }

    /** False if the answer is to be waited for, or connecting has failed and the endpoint with it. */
    private boolean tryConnect(SocketChannel channel) {
        beganNanos = System.nanoTime();
        try {
            return channel.connect(remoteAddress);
        } catch (IOException e) {
            connectFailed(e);
            return false;
        }
    }

    private void connectFailed(IOException e) {
        endpoint.endNow(TcpChannels.connectFailure(remoteAddress, e, System.nanoTime() - beganNanos));
    }

    /** The error does not name the time: it may be what earlier attempts have left of the user's. */
    private void startTimeout(String step) {
        timeout = loop.schedule(
                () -> {
                    if (endpoint.isComingUp()) {
                        endpoint.endNow(new ConnectionException.TimedOut(step + " with " + remoteAddress
                                + ": not established within the connect timeout ("
                                + (endpoint.isTcpConnected()
                                        ? "TCP is connected, MPA setup is not done"
                                        : "no TCP connection")
                                + ")"));
                    }
                },
                options.connectTimeoutMillis(),
                TimeUnit.MILLISECONDS);
    }

    /** The outcome of the setup is decided. */
    void cancelTimeout() {
        ScheduledFuture<?> waiting = timeout;
        if (waiting != null) {
            timeout = null;
            waiting.cancel(false);
        }
    }

    /** The socket can be written while TCP is not connected yet. */
    void onWritable(SoftSocket socket) {
        try {
            if (!socket.channel().finishConnect()) {
                return;
            }
        } catch (IOException e) {
            connectFailed(e);
            return;
        }
        try {
            onTcpConnected(socket);
        } catch (IOException e) {
            endpoint.endNow(endpoint.setupFailure(e));
        }
    }

    private void onTcpConnected(SoftSocket socket) throws IOException {
        endpoint.beginTurn();
        if (endpoint.prepare(socket)) {
            writeFrame(socket, MpaNegotiation.request(softOptions, options));
            replyReader = new MpaFrameReader(true);
            socket.await(NioIoOps.READ);
        }
        endpoint.leaveTurn();
    }

    /** A setup frame is tiny and the socket's buffer is empty: it goes out at once, or something is wrong. */
    private static void writeFrame(SoftSocket to, MpaFrame frame) throws IOException {
        ByteBuffer bytes = ByteBuffer.wrap(frame.encode());
        to.channel().write(bytes);
        if (bytes.hasRemaining()) {
            throw new IOException("the socket did not accept a setup frame of " + bytes.limit() + " bytes at once");
        }
    }

    /**
     * The socket can be read.
     *
     * @return false if no reply is awaited: what there is to read is for the stream
     */
    boolean onReadable(SoftSocket socket) throws IOException {
        MpaFrameReader reader = replyReader;
        if (reader == null) {
            return false;
        }
        MpaFrame reply;
        try {
            reply = reader.read(socket.channel());
        } catch (MpaException e) {
            fail("the reply " + e.getMessage());
            return true;
        }
        if (reply != null) {
            replyReader = null;
            onReply(socket, reply);
        } else if (reader.isEnded()) {
            fail("the peer closed the connection "
                    + (reader.hasBytes() ? "within its reply" : "without an MPA reply; is it an iWARP listener")
                    + (softOptions.mpaRevision() == 2 && !reader.hasBytes()
                            ? ", and does it know revision 2 (else set org.verbena.soft.mpaRevision=1)?"
                            : ""));
        }
        return true;
    }

    private void onReply(SoftSocket socket, MpaFrame reply) throws IOException {
        if (reply.rejected()) {
            endpoint.fail(new ConnectionException.Rejected(
                    "connecting to " + remoteAddress + ": the peer rejected the connection"
                            + (reply.privateData().length == 0
                                    ? ""
                                    : " with " + reply.privateData().length + " bytes of private data"),
                    reply.privateData()));
            return;
        }
        if (reply.markers()) {
            fail("the peer wants MPA markers, which are not supported");
            return;
        }
        MpaNegotiation.Terms terms = MpaNegotiation.accepted(softOptions, options, reply);
        endpoint.setPeerFeatures(terms.peerFeatures());
        FpduSender out = endpoint.startStream(socket, terms.crc(), terms.outboundReads(), terms.inboundReads()).out;
        out.open();
        TerminateReason refusal = terms.refusal();
        if (refusal != null) {
            endpoint.outcome().tellPeer(refusal);
            fail("setup failed: " + refusal.meaning);
            return;
        }
        FpduSender.ReadyMessage ready = terms.ready();
        if (ready != null) {
            out.sayReady(ready);
        }
        becomeConnected(terms.privateData());
    }

    private void fail(String what) {
        endpoint.fail(new ConnectionException("connecting to " + remoteAddress + ": " + what));
    }

    private void becomeConnected(byte[] privateData) {
        cancelTimeout();
        request = null;
        endpoint.becomeConnected(privateData);
    }

    // Accepting.

    /**
     * Takes a connection over whose request was read.
     *
     * @param channel connected
     * @param inPlace the channel's socket if it is on this loop already
     * @param from the request
     */
    void accept(SocketChannel channel, @Nullable SoftSocket inPlace, MpaFrame from) {
        SoftSocket made = null;
        try {
            TcpChannels.configure(channel, softOptions.stallTimeoutMillis(), options.trafficClass());
            if (inPlace == null) {
                SoftSocket registering = new SoftSocket(loop, channel, endpoint);
                registering.register();
                made = registering;
            } else {
                inPlace.setOwner(endpoint);
                made = inPlace;
            }
            endpoint.setSocket(made);
            request = from;
            startTimeout("accepting");
            endpoint.beginTurn();
            if (endpoint.prepare(made)) {
                reply(made, from);
            }
            endpoint.leaveTurn();
        } catch (Throwable e) {
            if (made == null) {
                LoopSocket.closeQuietly(channel);
            }
            if (e instanceof IOException) {
                endpoint.outcome().reset();
            }
            endpoint.endNow(endpoint.setupFailure(e));
        }
    }

    private void reply(SoftSocket to, MpaFrame from) throws IOException {
        MpaNegotiation.Answer answer = MpaNegotiation.answer(softOptions, options, from);
        writeFrame(to, answer.frame());
        endpoint.startStream(to, answer.frame().crc(), answer.outboundReads(), answer.inboundReads());
        awaitsFirstSegment = true;
        to.await(NioIoOps.READ);
        if (!answer.peerToPeer()) {
            // The peer sends nothing before its user does. So the connection is up for this user, and what it sends
            // waits.
            becomeConnected(from.privateData());
        }
    }

    /** The request that was accepted and may not have been answered; null when connecting, and once it is connected. */
    @Nullable MpaFrame request() {
        return request;
    }

    /**
     * The first segment of the peer came: the setup is complete.
     *
     * @return whether it was waited for
     */
    boolean onSegment(FpduSender out, int opcode, int key, long offset, int payloadBytes) {
        if (!awaitsFirstSegment) {
            return false;
        }
        awaitsFirstSegment = false;
        out.open();
        MpaFrame from = request;
        if (endpoint.isComingUp() && from != null) {
            if (opcode == Rdmap.WRITE && payloadBytes == 0) {
                endpoint.setPeerFeatures(PeerFeatures.shared(key, offset));
            }
            becomeConnected(from.privateData());
        }
        return true;
    }
}
