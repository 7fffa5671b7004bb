package org.verbena.it.lab;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.net.InetSocketAddress;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import org.verbena.cm.TcpQueuePairExchange.End;
import org.verbena.transport.MemoryDomain;
import org.verbena.transport.MemoryDomain.Access;
import org.verbena.transport.QueuePairEnd;
import org.verbena.transport.RegisteredMemory;
import org.verbena.transport.RemoteMemory;

/**
 * As RDMA_RC_example of the RDMA Aware Networks Programming manual: each end's buffer and queue pair; then bytes at
 * which both ends wait for each other.
 */
final class RcExampleExchange extends CProgramExchange {
    private static final int MTU_BYTES = 256;

    /** Where both programs have connected their queue pairs. */
    private static final char CONNECTED = 'Q';

    /** What the peer may read and write; null for nothing. */
    private final MemorySegment segment;

    private volatile RegisteredMemory shared;
    private volatile End peer;

    RcExampleExchange(InetSocketAddress server) {
        super(MTU_BYTES, server);
        segment = null;
    }

    RcExampleExchange(MemorySegment segment) throws IOException {
        super(MTU_BYTES);
        this.segment = segment;
    }

    @Override
    public QueuePairEnd adapt(QueuePairEnd proposed) {
        return super.adapt(proposed).withPacketSequenceNumber(0);
    }

    @Override
    public CompletionStage<QueuePairEnd> exchange(QueuePairEnd own, MemoryDomain memory) {
        if (segment != null) {
            shared = memory.register(segment, Set.of(Access.LOCAL_WRITE, Access.REMOTE_READ, Access.REMOTE_WRITE));
        }
        RegisteredMemory told = shared;
        End mine = new End(addressOf(own), told == null ? 0 : told.address(), told == null ? 0 : told.remoteKey());
        return onThread(() -> {
            peer = wire().ends(mine);
            return endOf(peer.queuePair());
        });
    }

    @Override
    public CompletionStage<Void> ready() {
        return synchronize(CONNECTED);
    }

    /** Waits until the peer is at the same point. */
    CompletableFuture<Void> synchronize(char point) {
        return onThread(() -> {
            wire().synchronize(point);
            return null;
        });
    }

    /** The peer's buffer, whose length the format does not tell. */
    RemoteMemory peerMemory(long lengthBytes) {
        return new RemoteMemory(
                peer.bufferAddress(), lengthBytes, peer.remoteKey(), Set.of(Access.REMOTE_READ, Access.REMOTE_WRITE));
    }

    @Override
    public void close() {
        super.close();
        RegisteredMemory registered = shared;
        if (registered != null) {
            registered.close();
        }
    }
}
