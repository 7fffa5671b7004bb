package org.verbena.bench.stack;

import java.lang.foreign.MemorySegment;
import java.net.InetSocketAddress;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.EndpointCapabilities;
import org.verbena.transport.MemoryDomain;
import org.verbena.transport.RegisteredMemory;
import org.verbena.transport.WorkStatus;
import org.verbena.transport.spi.Endpoint;
import org.verbena.transport.spi.EndpointHandler;
import org.verbena.transport.spi.ScatterGatherList;
import org.verbena.transport.spi.SharedReceiveQueue;
import org.verbena.transport.spi.WorkRequest;

/** Moves a send's bytes into the peer's receive when it is posted; completions wait in arrays. One thread. */
@SuppressWarnings("NullAway.Init") // made in pairs
final class MemoryEndpoint implements Endpoint {
    private static final int DEPTH = 128;
    private static final EndpointCapabilities CAPABILITIES = EndpointCapabilities.MINIMAL.with(o -> {
        o.sendDepth = DEPTH;
        o.receiveDepth = DEPTH;
        o.maxSges = 4;
        o.maxReceiveSges = 4;
        o.maxReadSges = 4;
        o.readDepth = 4;
        o.maxMessageBytes = 1 << 20;
    });

    private final EndpointHandler handler;
    private final MemoryDomain domain;
    private MemoryEndpoint peer;
    private final long[] receiveIds = new long[DEPTH];
    private final RegisteredMemory[] receiveRegions = new RegisteredMemory[DEPTH];
    private final long[] receiveOffsets = new long[DEPTH];
    private final int[] receivedBytes = new int[DEPTH];
    private int receiveHead;
    private int receivedTail;
    private int receiveTail;
    private final long[] sendIds = new long[DEPTH];
    private int sendHead;
    private int sendTail;

    private MemoryEndpoint(EndpointHandler handler, MemoryDomain domain) {
        this.handler = handler;
        this.domain = domain;
    }

    /** Two endpoints; returns the first one's. */
    static MemoryEndpoint pair(EndpointHandler one, EndpointHandler other) {
        MemoryDomain domain = new Memory();
        MemoryEndpoint first = new MemoryEndpoint(one, domain);
        first.peer = new MemoryEndpoint(other, domain);
        first.peer.peer = first;
        return first;
    }

    void connect(byte[] privateData) {
        handler.onPrepared(this);
        peer.handler.onPrepared(peer);
        peer.handler.onConnected(peer, privateData);
        handler.onConnected(this, privateData);
    }

    /** Delivers until neither end has anything. */
    void settle() {
        boolean found;
        do {
            found = poll();
            found |= peer.poll();
        } while (found);
    }

    private boolean poll() {
        boolean found = sendHead != sendTail || receiveHead != receivedTail;
        while (sendHead != sendTail) {
            handler.onSendCompletion(this, sendIds[sendHead++ % DEPTH], WorkStatus.SUCCESS, 0);
        }
        while (receiveHead != receivedTail) {
            int at = receiveHead++ % DEPTH;
            handler.onReceiveCompletion(this, receiveIds[at], WorkStatus.SUCCESS, receivedBytes[at], 0, 0);
        }
        if (found) {
            handler.onCompletionsHandled(this);
        }
        return found;
    }

    @Override
    public boolean postReceive(long workId, ScatterGatherList list) {
        int at = receiveTail++ % DEPTH;
        receiveIds[at] = workId;
        receiveRegions[at] = list.region(0);
        receiveOffsets[at] = list.address(0) - list.region(0).address();
        return true;
    }

    @Override
    public boolean post(WorkRequest request) {
        if (peer.receivedTail - peer.receiveTail >= 0) {
            throw new IllegalStateException("receiver not ready");
        }
        int at = peer.receivedTail++ % DEPTH;
        ScatterGatherList list = request.buffers();
        long to = peer.receiveOffsets[at];
        for (int i = 0; i < list.count(); i++) {
            MemorySegment.copy(
                    list.region(i).segment(),
                    list.address(i) - list.region(i).address(),
                    peer.receiveRegions[at].segment(),
                    to,
                    list.length(i));
            to += list.length(i);
        }
        peer.receivedBytes[at] = (int) list.totalBytes();
        sendIds[sendTail++ % DEPTH] = request.workId();
        return true;
    }

    @Override
    public int freeSendSlots() {
        return DEPTH - (sendTail - sendHead);
    }

    @Override
    public void flush() {
        // Everything completes at once.
    }

    @Override
    public void disconnect() {
        handler.onDisconnected(this, null);
    }

    @Override
    public EndpointCapabilities capabilities() {
        return CAPABILITIES;
    }

    @Override
    public int rendezvousBytes(int peerReceiveBytes) {
        return 64 << 10;
    }

    @Override
    public MemoryDomain memoryDomain() {
        return domain;
    }

    @Override
    public InetSocketAddress localAddress() {
        return InetSocketAddress.createUnresolved("memory", 1);
    }

    @Override
    public InetSocketAddress remoteAddress() {
        return InetSocketAddress.createUnresolved("memory", 2);
    }

    @Override
    public @Nullable SharedReceiveQueue sharedReceiveQueue() {
        return null;
    }

    /** Does nothing: no device has to know registered memory. */
    private static final class Memory implements MemoryDomain {
        @Override
        public RegisteredMemory register(MemorySegment segment, Set<Access> access) {
            return new RegisteredMemory(segment, access) {
                @Override
                public int localKey() {
                    return 1;
                }

                @Override
                public int remoteKey() {
                    return 1;
                }

                @Override
                protected void deregister() {}
            };
        }

        @Override
        public long registeredBytes() {
            return 0;
        }
    }
}
