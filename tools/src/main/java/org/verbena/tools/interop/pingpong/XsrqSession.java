package org.verbena.tools.interop.pingpong;

import java.io.IOException;
import java.io.PrintWriter;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.verbena.cm.Descriptors;
import org.verbena.cm.QueuePairPath;
import org.verbena.samples.command.CommandFailure;
import org.verbena.verbs.CompletionChannel;
import org.verbena.verbs.CompletionQueue;
import org.verbena.verbs.Context;
import org.verbena.verbs.ProtectionDomain;
import org.verbena.verbs.QueuePair;
import org.verbena.verbs.QueuePairCapabilities;
import org.verbena.verbs.QueuePairExtension;
import org.verbena.verbs.QueuePairOptions;
import org.verbena.verbs.SharedReceiveQueue;
import org.verbena.verbs.VerbsException;
import org.verbena.verbs.WorkCompletions;
import org.verbena.verbs.XrcDomain;
import org.verbena.verbs.device.DeviceCapability;
import org.verbena.verbs.device.OnDemandOperation;
import org.verbena.verbs.memory.AccessFlag;
import org.verbena.verbs.queue.QueuePairType;
import org.verbena.verbs.work.SendFlags;

/**
 * One side of {@link XsrqPingPong}, in one thread.
 *
 * <pre>
 *   server                                  each client
 *     |  &lt;-- its address ------------- TCP --  |   two queue pairs each: one takes messages, one sends them
 *     |  --- the server's address ----------&gt;  |
 *   all clients are there
 *     |  === message ============ XRC =====&gt;   |   into the client's shared receive queue
 *     |  &lt;== message =======================  |   into the server's; num_tests times each way
 *     |  &lt;-- "END" ------------------- TCP --  |   a client by whose queue pair messages for others come
 *     |  --- "END" -------------------------&gt;  |   stays until all have all
 * </pre>
 *
 * <p>The server sends the n-th message for client i by the queue pair of client (i + n) modulo the clients. So it
 * arrives at another client's queue pair, but in client i's shared receive queue. That is the purpose of XRC, and the
 * reason why the clients share an XRC domain by a file.
 */
final class XsrqSession implements AutoCloseable {
    /** C's name for it, so that its programs and this one find each other. */
    private static final Path DOMAIN_FILE = Path.of("/tmp/xrc_domain");

    /** The final message of both sides, with C's zero byte. */
    private static final byte[] END = {'E', 'N', 'D', 0};

    /** How long the client waits for the server's address. */
    private static final int ANSWER_MILLIS = 60_000;

    /** How long to sleep before checking whether the thread was interrupted. */
    private static final int SLEEP_MILLIS = 500;

    /** Completions taken with one call. */
    private static final int BATCH = 16;

    private final QueuePairPath path;
    private final int sizeBytes;
    private final int count;
    private final PrintWriter out;

    private final Deque<AutoCloseable> resources = new ArrayDeque<>();
    private final WorkCompletions polled = new WorkCompletions(BATCH);
    private final @Nullable CompletionChannel channel;
    private final CompletionQueue sent;
    private final CompletionQueue received;
    private final PingPongMemory memory;
    private final SharedReceiveQueue shared;

    /** One for each client, in the order in which they connected. */
    private final List<Peer> peers = new ArrayList<>();

    /** By the number of the queue pair through which its messages arrive. */
    private final Map<Integer, Peer> peerByReceiver = new HashMap<>();

    /** Sends that may be outstanding at once, in all. */
    private final int sendDepth;

    private int sendsOut;

    /** The peer of messages, in both directions. */
    private static final class Peer {
        final int index;
        final QueuePair receiver;
        final QueuePair sender;
        final XsrqAddress local;
        int sharedNumber;
        int sends;

        Peer(int index, QueuePair receiver, QueuePair sender, XsrqAddress local) {
            this.index = index;
            this.receiver = receiver;
            this.sender = sender;
            this.local = local;
        }
    }

    XsrqSession(
            Context device,
            QueuePairPath path,
            int sizeBytes,
            int clients,
            int count,
            boolean events,
            PingPongFeatures features,
            PrintWriter out,
            PrintWriter err) {
        this.path = path;
        this.sizeBytes = sizeBytes;
        this.count = count;
        this.out = out;
        // A client's next message may be due before the last one to it is acknowledged.
        this.sendDepth = 2 * clients;
        resources.push(polled);
        try {
            Context context = own(device);
            requireXrc(context);
            features.require(context, QueuePairType.XRC_RECV, OnDemandOperation.SRQ_RECV, sizeBytes);
            channel = events ? own(context.createCompletionChannel()) : null;
            ProtectionDomain domain = own(context.allocateProtectionDomain());
            memory = own(new PingPongMemory(domain, 0, sizeBytes, features, err));
            XrcDomain xrc = own(openDomain(context, err));
            received = own(
                    channel == null
                            ? context.createCompletionQueue(clients)
                            : context.createCompletionQueue(clients, channel, 0));
            sent = own(context.createCompletionQueue(sendDepth));
            shared = own(domain.createXrcSharedReceiveQueue(clients, 1, xrc, received));
            QueuePairOptions receiving = QueuePairOptions.reliable(received, new QueuePairCapabilities(0, 0, 0, 0, 0))
                    .withType(QueuePairType.XRC_RECV);
            QueuePairOptions sending = QueuePairOptions.reliable(sent, new QueuePairCapabilities(sendDepth, 0, 1, 0, 0))
                    .withType(QueuePairType.XRC_SEND);
            for (int i = 0; i < clients; i++) {
                QueuePair receiver = own(domain.createQueuePair(receiving, QueuePairExtension.xrc(xrc)));
                path.initialize(receiver, AccessFlag.REMOTE_READ, AccessFlag.REMOTE_WRITE);
                QueuePair sender = own(domain.createQueuePair(sending, QueuePairExtension.building(Set.of())));
                path.initialize(sender);
                XsrqAddress local =
                        new XsrqAddress(PingPongSession.addressOf(path, receiver), sender.number(), shared.number());
                Peer peer = new Peer(i, receiver, sender, local);
                peers.add(peer);
                peerByReceiver.put(receiver.number(), peer);
            }
        } catch (RuntimeException refused) {
            close();
            throw refused;
        }
    }

    private static void requireXrc(Context context) {
        if (!context.queryDevice().has(DeviceCapability.XRC)) {
            throw new CommandFailure("xsrq needs extended reliable connections (XRC), which "
                    + context.device().name() + " does not have: use srq");
        }
    }

    /** Without the file only this process has it, which is enough unless it is one of several clients. */
    private static XrcDomain openDomain(Context context, PrintWriter err) {
        try {
            return context.openXrcDomain(DOMAIN_FILE);
        } catch (VerbsException refused) {
            if (!refused.call().startsWith("open(")) {
                throw refused;
            }
            err.println("pingpong xsrq: this XRC domain is not shared, so only one client is possible: "
                    + refused.getMessage());
            return context.openXrcDomain();
        }
    }

    private <T extends AutoCloseable> T own(T resource) {
        resources.push(resource);
        return resource;
    }

    /**
     * Connects to the other side and exchanges all messages.
     *
     * @param host the server; null to be the server
     */
    void run(@Nullable String host, int tcpPort) throws IOException {
        for (int i = 0; i < peers.size(); i++) {
            postReceive();
        }
        if (channel != null) {
            received.requestNotify(false);
        }
        List<Socket> sockets = new ArrayList<>();
        try {
            if (host == null) {
                acceptAll(tcpPort, sockets);
                for (Peer peer : peers) {
                    send(peer);
                }
            } else {
                sockets.add(connect(host, tcpPort));
            }
            exchangeMessages();
            while (sendsOut > 0) {
                takeSent();
            }
            end(host == null, sockets);
        } finally {
            for (Socket socket : sockets) {
                socket.close();
            }
        }
        out.println("success");
    }

    // ---- over TCP

    private void acceptAll(int tcpPort, List<Socket> sockets) throws IOException {
        try (ServerSocket listener = new ServerSocket(tcpPort, peers.size())) {
            for (Peer peer : peers) {
                Socket socket = listener.accept();
                sockets.add(socket);
                connect(peer, readAddress(socket));
                sendAddress(socket, peer);
            }
        }
    }

    private Socket connect(String host, int tcpPort) throws IOException {
        Socket socket = new Socket();
        try {
            try {
                socket.connect(new InetSocketAddress(host, tcpPort), ANSWER_MILLIS);
            } catch (IOException unreachable) {
                throw new IOException(
                        "cannot exchange addresses with " + host + ":" + tcpPort + ": " + unreachable.getMessage(),
                        unreachable);
            }
            Peer server = peers.getFirst();
            sendAddress(socket, server);
            socket.setSoTimeout(ANSWER_MILLIS);
            connect(server, readAddress(socket));
            // The server sends END when all clients have, however long they take.
            socket.setSoTimeout(0);
            return socket;
        } catch (IOException | RuntimeException failure) {
            socket.close();
            throw failure;
        }
    }

    private void sendAddress(Socket socket, Peer peer) throws IOException {
        out.println("   local: " + peer.local);
        socket.getOutputStream().write((peer.local.toWire() + '\0').getBytes(StandardCharsets.US_ASCII));
    }

    private static XsrqAddress readAddress(Socket socket) throws IOException {
        String text = new String(readExactly(socket, XsrqAddress.WIRE_BYTES), StandardCharsets.US_ASCII);
        return XsrqAddress.ofWire(text.substring(0, XsrqAddress.WIRE_BYTES - 1));
    }

    private static byte[] readExactly(Socket socket, int wanted) throws IOException {
        byte[] bytes = socket.getInputStream().readNBytes(wanted);
        if (bytes.length < wanted) {
            throw new IOException("the peer closed the connection after " + bytes.length + " of " + wanted
                    + " bytes; its own output says why");
        }
        return bytes;
    }

    private void connect(Peer peer, XsrqAddress remote) {
        out.println("  remote: " + remote);
        out.flush();
        path.connect(peer.receiver, peer.local.receiver(), remote.sender(), 0);
        path.connect(peer.sender, peer.local.sender(), remote.receiver(), 0);
        peer.sharedNumber = remote.sharedNumber();
    }

    private static void end(boolean server, List<Socket> sockets) throws IOException {
        for (Socket socket : sockets) {
            if (server) {
                awaitEnd(socket);
            } else {
                socket.getOutputStream().write(END);
            }
        }
        for (Socket socket : sockets) {
            if (server) {
                socket.getOutputStream().write(END);
            } else {
                awaitEnd(socket);
            }
        }
    }

    private static void awaitEnd(Socket socket) throws IOException {
        String text = new String(readExactly(socket, END.length), StandardCharsets.US_ASCII);
        if (!text.equals(new String(END, StandardCharsets.US_ASCII))) {
            throw new IOException("the peer sent '" + text.trim() + "' instead of 'END'");
        }
    }

    // ---- over the device

    private void postReceive() {
        shared.receiveQueue().receive(0).sge(memory.region(), memory.messageOffset(), sizeBytes);
        shared.receiveQueue().flush();
    }

    private void send(Peer to) {
        while (sendsOut == sendDepth) {
            takeSent();
        }
        QueuePair by = peers.get((to.index + to.sends) % peers.size()).sender;
        by.sendQueue()
                .send(to.index, SendFlags.SIGNALED)
                .toSharedReceiveQueue(to.sharedNumber)
                .sge(memory.region(), memory.messageOffset(), sizeBytes)
                .flush();
        to.sends++;
        sendsOut++;
    }

    private void takeSent() {
        sent.poll(polled);
        for (int i = 0; i < polled.count(); i++) {
            requireSuccess(i);
            sendsOut--;
        }
        requireNoInterrupt();
    }

    private void exchangeMessages() {
        long total = (long) peers.size() * count;
        long messages = 0;
        List<Peer> toAnswer = new ArrayList<>();
        while (messages < total) {
            if (channel != null) {
                awaitEvent(channel);
            }
            while (received.poll(polled) > 0) {
                for (int i = 0; i < polled.count(); i++) {
                    requireSuccess(i);
                    toAnswer.add(senderOf(i));
                }
                for (Peer peer : toAnswer) {
                    postReceive();
                    messages++;
                    if (peer.sends < count) {
                        send(peer);
                    }
                }
                toAnswer.clear();
            }
            requireNoInterrupt();
        }
    }

    /** A client has one peer, whose messages may have arrived through another client's queue pair. */
    private Peer senderOf(int index) {
        if (peers.size() == 1) {
            return peers.getFirst();
        }
        Peer peer = peerByReceiver.get(polled.queuePairNumber(index));
        if (peer == null) {
            throw new CommandFailure("a message by a queue pair that is not one of these: " + polled.describe(index));
        }
        return peer;
    }

    private void requireSuccess(int index) {
        if (!polled.isSuccess(index)) {
            throw new CommandFailure(polled.describe(index));
        }
    }

    private static void requireNoInterrupt() {
        if (Thread.interrupted()) {
            throw new CommandFailure("interrupted");
        }
    }

    private void awaitEvent(CompletionChannel events) {
        if (Descriptors.awaitReadable(SLEEP_MILLIS, events.fd()) != 0) {
            while (events.tryGetEvent() != null) {
                // There is only one queue on the channel.
            }
            received.requestNotify(false);
        }
    }

    @Override
    public void close() {
        PingPongSession.closeAll(resources);
    }
}
