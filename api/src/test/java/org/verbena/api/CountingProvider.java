package org.verbena.api;

import io.netty.buffer.ByteBuf;
import io.netty.channel.IoEventLoop;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.CopyOnWriteArrayList;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.EndpointCapabilities;
import org.verbena.transport.MemoryDomain;
import org.verbena.transport.RegisteredMemory;
import org.verbena.transport.RegisteredMemoryExhaustedException;
import org.verbena.transport.WorkStatus;
import org.verbena.transport.spi.Endpoint;
import org.verbena.transport.spi.EndpointHandler;
import org.verbena.transport.spi.EndpointOptions;
import org.verbena.transport.spi.IncomingConnection;
import org.verbena.transport.spi.ListenOptions;
import org.verbena.transport.spi.Listener;
import org.verbena.transport.spi.ListenerHandler;
import org.verbena.transport.spi.LocalBinding;
import org.verbena.transport.spi.PeerGroup;
import org.verbena.transport.spi.RdmaProvider;
import org.verbena.transport.spi.ScatterGatherList;
import org.verbena.transport.spi.SharedReceiveQueue;
import org.verbena.transport.spi.WorkRequest;

/** Another provider, with a record of which memory its devices are told to read and to fill. */
final class CountingProvider extends DelegatingProvider {
    /** What sends were told to take their bytes from, and where reads were told to find theirs at the peer. */
    final List<Stretch> sources = new CopyOnWriteArrayList<>();

    /** What receives and reads were told to fill. */
    final List<Stretch> sinks = new CopyOnWriteArrayList<>();

    /** What was registered for the peers of a server. */
    final List<RegisteredMemory> ofServers = new CopyOnWriteArrayList<>();

    /** While it is set, the devices register no memory, if they {@linkplain #mayRefuse may}. */
    volatile boolean refusesMemory;

    /** Those that may refuse, which have pools of their own. */
    private @Nullable ConcurrentMap<MemoryDomain, MemoryDomain> domains;

    CountingProvider(RdmaProvider inner) {
        super(inner);
    }

    /** Before it is used. */
    CountingProvider mayRefuse() {
        domains = new ConcurrentHashMap<>();
        return this;
    }

    private final class RefusingDomain implements MemoryDomain {
        private final MemoryDomain inner;

        RefusingDomain(MemoryDomain inner) {
            this.inner = inner;
        }

        private void refuseIfSo() {
            if (refusesMemory) {
                throw new RegisteredMemoryExhaustedException("none for a test");
            }
        }

        @Override
        public RegisteredMemory register(MemorySegment segment, Set<Access> access) {
            refuseIfSo();
            return inner.register(segment, access);
        }

        @Override
        public RegisteredMemory registerForOperation(
                MemorySegment segment, RegisteredMemory within, Set<Access> access) {
            refuseIfSo();
            return inner.registerForOperation(segment, within, access);
        }

        @Override
        public MemorySegment allocate(Arena arena, long lengthBytes, Set<Access> access) {
            return inner.allocate(arena, lengthBytes, access);
        }

        @Override
        public long registeredBytes() {
            return inner.registeredBytes();
        }

        @Override
        public void whenLost(Runnable listener) {
            inner.whenLost(listener);
        }
    }

    /** A stretch of memory, and what named it. */
    record Stretch(long address, long lengthBytes, WorkRequest.Opcode by) {
        long overlap(long otherAddress, long otherBytes) {
            long from = Math.max(address, otherAddress);
            long to = Math.min(address + lengthBytes, otherAddress + otherBytes);
            return Math.max(0, to - from);
        }
    }

    private void note(List<Stretch> where, ScatterGatherList list, WorkRequest.Opcode by) {
        for (int i = 0; i < list.count(); i++) {
            where.add(new Stretch(list.address(i), list.length(i), by));
        }
    }

    @Override
    public Endpoint connect(
            IoEventLoop loop, InetSocketAddress remoteAddress, EndpointOptions options, EndpointHandler handler) {
        CountingHandler counting = new CountingHandler(handler);
        return counting.of(super.connect(loop, remoteAddress, options, counting));
    }

    @Override
    public LocalBinding bind(InetSocketAddress localAddress) {
        throw new UnsupportedOperationException("no test connects from an address of its own");
    }

    @Override
    public Listener listen(
            IoEventLoop loop, InetSocketAddress localAddress, ListenOptions options, ListenerHandler handler) {
        return super.listen(loop, localAddress, options, new ListenerHandler() {
            @Override
            public void onListening(Listener listener) {
                handler.onListening(listener);
            }

            @Override
            public void onConnectRequest(Listener listener, IncomingConnection connection) {
                handler.onConnectRequest(listener, new CountingRequest(connection));
            }

            @Override
            public void onClosed(Listener listener, Throwable cause) {
                handler.onClosed(listener, cause);
            }
        });
    }

    private final class CountingRequest implements IncomingConnection {
        private final IncomingConnection inner;

        CountingRequest(IncomingConnection inner) {
            this.inner = inner;
        }

        @Override
        public InetSocketAddress localAddress() {
            return inner.localAddress();
        }

        @Override
        public InetSocketAddress remoteAddress() {
            return inner.remoteAddress();
        }

        @Override
        public byte[] privateData() {
            return inner.privateData();
        }

        @Override
        public boolean isPending() {
            return inner.isPending();
        }

        @Override
        public Endpoint accept(IoEventLoop loop, EndpointOptions options, EndpointHandler handler) {
            CountingHandler counting = new CountingHandler(handler);
            return counting.of(inner.accept(loop, options, counting));
        }

        @Override
        public void reject(byte[] privateData) {
            inner.reject(privateData);
        }
    }

    private final class CountingHandler implements EndpointHandler {
        private final EndpointHandler inner;
        private final ConcurrentMap<Endpoint, Endpoint> counted = new ConcurrentHashMap<>();

        CountingHandler(EndpointHandler inner) {
            this.inner = inner;
        }

        Endpoint of(Endpoint endpoint) {
            return counted.computeIfAbsent(endpoint, CountingEndpoint::new);
        }

        @Override
        public void onPrepared(Endpoint endpoint) {
            inner.onPrepared(of(endpoint));
        }

        @Override
        public void onConnected(Endpoint endpoint, byte[] privateData) {
            inner.onConnected(of(endpoint), privateData);
        }

        @Override
        public void onSendCompletion(Endpoint endpoint, long workId, WorkStatus status, int lengthBytes) {
            inner.onSendCompletion(of(endpoint), workId, status, lengthBytes);
        }

        @Override
        public void onReceiveCompletion(
                Endpoint endpoint, long workId, WorkStatus status, int lengthBytes, int flags, int immediateData) {
            inner.onReceiveCompletion(of(endpoint), workId, status, lengthBytes, flags, immediateData);
        }

        @Override
        public void onCompletionsHandled(Endpoint endpoint) {
            inner.onCompletionsHandled(of(endpoint));
        }

        @Override
        public void onDisconnected(Endpoint endpoint, Throwable cause) {
            inner.onDisconnected(of(endpoint), cause);
        }
    }

    private final class CountingEndpoint implements Endpoint {
        private final Endpoint inner;

        CountingEndpoint(Endpoint inner) {
            this.inner = inner;
        }

        @Override
        public EndpointCapabilities capabilities() {
            return inner.capabilities();
        }

        @Override
        public int rendezvousBytes(int peerReceiveBytes) {
            return inner.rendezvousBytes(peerReceiveBytes);
        }

        @Override
        public MemoryDomain memoryDomain() {
            return domains == null
                    ? inner.memoryDomain()
                    : domains.computeIfAbsent(inner.memoryDomain(), RefusingDomain::new);
        }

        @Override
        public MemoryDomain connectionMemory() {
            return inner.connectionMemory();
        }

        @Override
        public MemoryDomain join(PeerGroup group) {
            MemoryDomain joined = inner.join(group);
            return new MemoryDomain() {
                @Override
                public RegisteredMemory register(MemorySegment segment, Set<Access> access) {
                    RegisteredMemory made = joined.register(segment, access);
                    ofServers.add(made);
                    return made;
                }

                @Override
                public long registeredBytes() {
                    return joined.registeredBytes();
                }
            };
        }

        @Override
        public void allowRemoteAccess(boolean allowed) {
            inner.allowRemoteAccess(allowed);
        }

        @Override
        public InetSocketAddress localAddress() {
            return inner.localAddress();
        }

        @Override
        public InetSocketAddress remoteAddress() {
            return inner.remoteAddress();
        }

        @Override
        public SharedReceiveQueue sharedReceiveQueue() {
            return inner.sharedReceiveQueue();
        }

        @Override
        public boolean postReceive(long workId, ScatterGatherList buffers) {
            note(sinks, buffers, WorkRequest.Opcode.SEND);
            return inner.postReceive(workId, buffers);
        }

        @Override
        public void takeReceivesInAnyOrder() {
            inner.takeReceivesInAnyOrder();
        }

        @Override
        public boolean hasSentCopies() {
            return inner.hasSentCopies();
        }

        @Override
        public boolean post(WorkRequest request) {
            if (request.opcode() == WorkRequest.Opcode.READ) {
                note(sinks, request.buffers(), WorkRequest.Opcode.READ);
                sources.add(
                        new Stretch(request.remoteAddress(), request.buffers().totalBytes(), WorkRequest.Opcode.READ));
            } else {
                note(sources, request.buffers(), request.opcode());
            }
            return inner.post(request);
        }

        @Override
        public boolean trySend(long first, long second, ByteBuf rest, int index, int restBytes) {
            boolean taken = inner.trySend(first, second, rest, index, restBytes);
            if (taken && restBytes > 0) {
                for (ByteBuffer part : rest.nioBuffers(index, restBytes)) {
                    if (part.isDirect()) {
                        long address = MemorySegment.ofBuffer(part).address();
                        sources.add(new Stretch(address, part.remaining(), WorkRequest.Opcode.SEND));
                    }
                }
            }
            return taken;
        }

        @Override
        public int freeSendSlots() {
            return inner.freeSendSlots();
        }

        @Override
        public void flush() {
            inner.flush();
        }

        @Override
        public void push() {
            inner.push();
        }

        @Override
        public void disconnect() {
            inner.disconnect();
        }
    }
}
