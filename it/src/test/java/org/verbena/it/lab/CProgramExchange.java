package org.verbena.it.lab;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.nio.ByteBuffer;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import org.verbena.cm.QueuePairAddress;
import org.verbena.cm.TcpQueuePairExchange;
import org.verbena.transport.QueuePairEnd;
import org.verbena.transport.QueuePairExchange;
import org.verbena.transport.spi.Patience;
import org.verbena.verbs.address.Gid;

/**
 * An exchange by hand with a program in C, which has a format of its own and fixes the size of packets. {@link
 * TcpQueuePairExchange} speaks the format, and blocks: a virtual thread waits for it.
 */
abstract class CProgramExchange implements QueuePairExchange, AutoCloseable {
    private static final int ANSWER_MILLIS = (int) Patience.LIMIT.toMillis();

    private final int mtuBytes;

    /** Of the program; null if this end listens. */
    private final InetSocketAddress server;

    /** Null if this end connects. */
    private final ServerSocket listener;

    private volatile TcpQueuePairExchange wire;

    /** The end that connects. */
    CProgramExchange(int mtuBytes, InetSocketAddress server) {
        this.mtuBytes = mtuBytes;
        this.server = server;
        listener = null;
    }

    /** The end that listens, at any port. */
    CProgramExchange(int mtuBytes) throws IOException {
        this.mtuBytes = mtuBytes;
        server = null;
        listener = new ServerSocket(0, 1, InetAddress.getLoopbackAddress());
        listener.setSoTimeout(ANSWER_MILLIS);
    }

    int port() {
        return listener.getLocalPort();
    }

    @Override
    public boolean answers() {
        return listener != null;
    }

    @Override
    public QueuePairEnd adapt(QueuePairEnd proposed) {
        return proposed.withMtuBytes(mtuBytes);
    }

    /** The TCP connection, made when this is first called. Blocks; one thread at a time. */
    final TcpQueuePairExchange wire() throws IOException {
        if (wire == null) {
            wire = answers()
                    ? TcpQueuePairExchange.accept(listener, ANSWER_MILLIS)
                    : TcpQueuePairExchange.connect(server, ANSWER_MILLIS);
        }
        return wire;
    }

    static <T> CompletableFuture<T> onThread(Callable<T> work) {
        CompletableFuture<T> outcome = new CompletableFuture<>();
        Thread.ofVirtual().start(() -> {
            try {
                outcome.complete(work.call());
            } catch (Throwable failure) {
                outcome.completeExceptionally(failure);
            }
        });
        return outcome;
    }

    static QueuePairAddress addressOf(QueuePairEnd end) {
        return new QueuePairAddress(end.lid(), end.queuePairNumber(), end.packetSequenceNumber(), Gid.of(end.gid()));
    }

    /** A queue pair of these programs serves one read at a time. */
    final QueuePairEnd endOf(QueuePairAddress address) {
        ByteBuffer gid = ByteBuffer.wrap(address.gid().toBytes());
        return new QueuePairEnd(
                address.queuePairNumber(),
                address.packetSequenceNumber(),
                address.lid(),
                gid.getLong(),
                gid.getLong(),
                mtuBytes,
                1,
                new byte[0]);
    }

    @Override
    public void giveUp() {
        close();
    }

    @Override
    public void close() {
        try {
            if (listener != null) {
                listener.close();
            }
            TcpQueuePairExchange open = wire;
            if (open != null) {
                open.close();
            }
        } catch (IOException refused) {
            throw new java.io.UncheckedIOException(refused);
        }
    }
}
