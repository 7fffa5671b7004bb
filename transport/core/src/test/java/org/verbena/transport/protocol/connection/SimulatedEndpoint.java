package org.verbena.transport.protocol.connection;

import io.netty.buffer.ByteBuf;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Deque;
import java.util.List;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.EndpointCapabilities;
import org.verbena.transport.MemoryDomain;
import org.verbena.transport.RegisteredMemory;
import org.verbena.transport.WorkStatus;
import org.verbena.transport.spi.Endpoint;
import org.verbena.transport.spi.EndpointHandler;
import org.verbena.transport.spi.ScatterGatherList;
import org.verbena.transport.spi.SharedReceiveQueue;
import org.verbena.transport.spi.WorkRequest;

/**
 * An endpoint in memory, as strict as a device: bounded queues, bytes that move when the schedule says so, completions
 * in the order of each queue and in any order between queues, no delivery without a receive. With iWARP a send
 * completes before it arrives, and closing over unread data loses what is under way.
 */
final class SimulatedEndpoint implements Endpoint {
    private static final ValueLayout.OfLong LONG = ValueLayout.JAVA_LONG_UNALIGNED;

    /** Whether the peer may use memory. */
    boolean isRemoteAccessAllowed = true;

    final SimulatedNetwork network;
    final SimulatedNetwork.Device device;
    final SimulatedDomain domain;
    SimulatedEndpoint peer;
    InetSocketAddress address;
    private final EndpointCapabilities capabilities;
    private EndpointHandler handler;
    private byte[] peerData = {};

    private boolean connected;
    private boolean draining;
    private boolean closed;
    private boolean sawPeerEnd;
    private @Nullable Throwable cause;
    private boolean inHandler;
    /** What the loop was asked to do. */
    final Deque<Runnable> tasks = new ArrayDeque<>();

    private final Deque<Work> stagedSends = new ArrayDeque<>();
    private final Deque<Work> sends = new ArrayDeque<>();
    private final Deque<Work> executing = new ArrayDeque<>();
    private final Deque<Work> wire = new ArrayDeque<>();
    private final Deque<Work> responses = new ArrayDeque<>();
    private final Deque<Receive> stagedReceives = new ArrayDeque<>();
    private final Deque<Receive> receives = new ArrayDeque<>();
    private final Deque<Runnable> sendCompletions = new ArrayDeque<>();
    private final Deque<Runnable> unsignalled = new ArrayDeque<>();
    private final Deque<Runnable> receiveCompletions = new ArrayDeque<>();
    private int sendsOut;
    int receivesOut;
    private final @Nullable Shared shared;

    // What tests count and order.
    int flushes;
    int slotQueries;
    long payloadBytesSent;

    /** Work requests that name memory which the protocol does not hold itself. */
    int worksToHold;

    @Nullable WorkStatus failNextSend;

    /** The number of posts that are refused from now on, as by a full queue. */
    int refusals;

    /** It copies messages at once, without work requests, as the software providers do. */
    boolean copies;

    /** Messages that it has copied. */
    int copied;

    /** Now and then it keeps copies at a flush, as a TCP that takes no more. */
    boolean keepsCopies;

    /** What was copied has not gone. */
    boolean copiesKept;

    /** It does not go by itself either. */
    boolean copiesHeld;

    /** It offers messages where they lie, as the software providers do. */
    boolean inPlace;

    /** Messages that were taken there. */
    int taken;

    /** Messages that came in receives. */
    int completed;

    /** Receives that were posted. */
    int receivesPosted;

    private boolean takesAnyReceive;

    /** Given each work request before it is accepted; may be null. */
    Consumer<WorkRequest> onPost = request -> {};

    /** The peer answers reads and atomics only when {@link #respond()} is called. */
    boolean responsesHeld;

    /** The endpoint's explanation of that send's failure. */
    @Nullable Throwable explanation;

    /**
     * If there is a sibling, one more endpoint of its device and loop: it shares the memory domain and the shared
     * receive queue.
     */
    SimulatedEndpoint(
            SimulatedNetwork network, SimulatedNetwork.Device device, int port, @Nullable SimulatedEndpoint sibling) {
        this.network = network;
        this.device = device;
        domain = sibling == null ? new SimulatedDomain() : sibling.domain;
        address = new InetSocketAddress(InetAddress.getLoopbackAddress(), port);
        if (sibling != null) {
            shared = sibling.shared;
        } else {
            shared = device.sharedDepth() > 0 ? new Shared(device.sharedDepth(), domain) : null;
        }
        capabilities = EndpointCapabilities.MINIMAL.with(o -> {
            o.sendDepth = device.sendDepth();
            o.receiveDepth = device.receiveDepth();
            o.maxSges = device.maxSges();
            o.maxReceiveSges = device.maxSges();
            o.maxReadSges = device.maxReadSges();
            o.maxInlineBytes = device.maxInlineBytes();
            o.readDepth = device.readDepth();
            o.maxMessageBytes = 1L << 31;
            o.atomics = !device.iwarp();
            o.immediateData = !device.iwarp();
            o.sendWithInvalidate = true;
            o.readSinkNeedsRemoteWrite = device.iwarp();
            o.receiveBufferBytes = device.receiveBytes();
            o.firstReceiveBytes = device.firstReceiveBytes();
        });
    }

    private final class Work {
        final WorkRequest.Opcode opcode;
        final long workId;
        final long remoteAddress;
        final int remoteKey;
        final int immediateData;
        final long compareOrAdd;
        final long swap;
        final List<RegisteredMemory> regions = new ArrayList<>();
        final List<Long> addresses = new ArrayList<>();
        final List<Integer> lengths = new ArrayList<>();
        final boolean heldByPoster;
        final boolean isUnsignalled;
        /** It is no work request: it has neither a slot nor a completion. */
        final boolean isCopied;

        int total;
        byte @Nullable [] bytes;
        boolean done;
        WorkStatus status = WorkStatus.SUCCESS;

        Work(byte[] copy) {
            opcode = WorkRequest.Opcode.SEND;
            workId = 0;
            remoteAddress = 0;
            remoteKey = 0;
            immediateData = 0;
            compareOrAdd = 0;
            swap = 0;
            heldByPoster = true;
            isUnsignalled = true;
            isCopied = true;
            total = copy.length;
            bytes = copy;
        }

        Work(WorkRequest request) {
            isCopied = false;
            opcode = request.opcode();
            workId = request.workId();
            remoteAddress = request.remoteAddress();
            remoteKey = request.remoteKey();
            immediateData = request.immediateData();
            compareOrAdd = request.compareOrAdd();
            swap = request.swap();
            ScatterGatherList list = request.buffers();
            heldByPoster = list.isHeldByPoster();
            isUnsignalled = (request.flags() & WorkRequest.UNSIGNALLED) != 0;
            worksToHold += heldByPoster ? 0 : 1;
            for (int i = 0; i < list.count(); i++) {
                hold(list.region(i), heldByPoster);
                regions.add(list.region(i));
                addresses.add(list.address(i));
                lengths.add(list.length(i));
                total += list.length(i);
            }
            if ((request.flags() & WorkRequest.INLINE) != 0) {
                if (total > device.maxInlineBytes()) {
                    throw new IllegalArgumentException("inline of " + total + " bytes");
                }
                bytes = gather();
                release(); // the memory is the poster's again
            }
        }

        byte[] gather() {
            byte[] all = new byte[total];
            int at = 0;
            for (int i = 0; i < regions.size(); i++) {
                RegisteredMemory region = regions.get(i);
                MemorySegment.copy(
                        region.segment(),
                        ValueLayout.JAVA_BYTE,
                        addresses.get(i) - region.address(),
                        all,
                        at,
                        lengths.get(i));
                at += lengths.get(i);
            }
            return all;
        }

        void scatter(byte[] from) {
            int at = 0;
            for (int i = 0; i < regions.size() && at < from.length; i++) {
                RegisteredMemory region = regions.get(i);
                int length = Math.min(lengths.get(i), from.length - at);
                MemorySegment.copy(
                        from, at, region.segment(), ValueLayout.JAVA_BYTE, addresses.get(i) - region.address(), length);
                at += length;
            }
        }

        void release() {
            regions.forEach(region -> letGo(region, heldByPoster));
            regions.clear();
        }

        boolean reads() {
            return opcode == WorkRequest.Opcode.READ
                    || opcode == WorkRequest.Opcode.COMPARE_AND_SWAP
                    || opcode == WorkRequest.Opcode.FETCH_AND_ADD;
        }
    }

    private record Receive(long workId, RegisteredMemory region, boolean heldByPoster, long offset, int length) {
        void release() {
            letGo(region, heldByPoster);
        }
    }

    private static void hold(RegisteredMemory region, boolean heldByPoster) {
        if (heldByPoster) {
            assertOpen(region);
        } else {
            region.retain();
        }
    }

    private static void letGo(RegisteredMemory region, boolean heldByPoster) {
        if (heldByPoster) {
            assertOpen(region);
        } else {
            region.release();
        }
    }

    private static void assertOpen(RegisteredMemory region) {
        if (region.isGone()) {
            throw new AssertionError(
                    "memory of outstanding work is gone, though its poster said that it keeps it open");
        }
    }

    private static final class Shared implements SharedReceiveQueue {
        private final Deque<Receive> staged = new ArrayDeque<>();
        private final Deque<Receive> posted = new ArrayDeque<>();
        private final int depth;
        private final SimulatedDomain domain;
        private @Nullable Object attachment;

        Shared(int depth, SimulatedDomain domain) {
            this.depth = depth;
            this.domain = domain;
        }

        @Override
        public boolean postReceive(long workId, ScatterGatherList buffers) {
            if (staged.size() + posted.size() == depth) {
                return false;
            }
            staged.add(receive(workId, buffers));
            return true;
        }

        @Override
        public void flush() {
            posted.addAll(staged);
            staged.clear();
        }

        @Override
        public int depth() {
            return depth;
        }

        @Override
        public MemoryDomain memoryDomain() {
            return domain;
        }

        @Override
        public @Nullable Object attachment() {
            return attachment;
        }

        @Override
        public void attach(Object object) {
            attachment = object;
        }
    }

    private static Receive receive(long workId, ScatterGatherList buffers) {
        RegisteredMemory region = buffers.region(0);
        boolean heldByPoster = buffers.isHeldByPoster();
        hold(region, heldByPoster);
        return new Receive(workId, region, heldByPoster, buffers.address(0) - region.address(), buffers.length(0));
    }

    /** Ends the loop: releases what is in the shared queue. */
    void endLoop() throws Exception {
        if (shared != null) {
            shared.posted.forEach(Receive::release);
            shared.posted.clear();
            if (shared.attachment instanceof AutoCloseable closeable) {
                closeable.close();
            }
        }
    }

    void prepare(EndpointHandler newHandler, byte[] newPeerData) {
        handler = newHandler;
        peerData = newPeerData;
        call(() -> handler.onPrepared(this));
    }

    private void call(Runnable callback) {
        if (inHandler) {
            throw new AssertionError("a handler is called within its own call");
        }
        inHandler = true;
        try {
            callback.run();
        } finally {
            inHandler = false;
        }
    }

    boolean idle() {
        return !inHandler;
    }

    boolean isClosed() {
        return closed;
    }

    // What can happen.

    void possible(List<Runnable> into, boolean withHandler) {
        if (!wire.isEmpty() && !peer.draining && (!draining || device.iwarp())) {
            into.add(this::arrive);
            into.add(this::arrive);
        }
        if (withHandler && !tasks.isEmpty()) {
            into.add(() -> call(tasks.remove()));
        }
        if (closed) {
            return;
        }
        if (withHandler && !connected && !draining) {
            into.add(() -> {
                connected = true;
                call(() -> handler.onConnected(this, peerData));
            });
        }
        if (withHandler && (!sendCompletions.isEmpty() || !receiveCompletions.isEmpty())) {
            into.add(this::poll);
            into.add(this::poll);
        }
        if (connected && !draining) {
            if (!sends.isEmpty()) {
                into.add(this::start);
                into.add(this::start);
            }
            if (!responses.isEmpty() && !responsesHeld) {
                into.add(this::respond);
            }
            if (copiesKept && !copiesHeld) {
                into.add(this::sendCopies);
            }
        }
        if (device.iwarp() && !draining && peer.draining && !wire.isEmpty() && !peer.wire.isEmpty()) {
            // TCP answers data for a closed socket with a reset, which discards what has not been read.
            into.add(() -> {
                peer.wire.clear();
                peerEnded(new ConnectionException.Lost("connection reset"));
            });
        }
        if (peer.draining && !draining && (peer.wire.isEmpty() || !device.iwarp())) {
            into.add(() -> peerEnded(null));
        }
        if (withHandler && draining && sendCompletions.isEmpty() && receiveCompletions.isEmpty()) {
            into.add(() -> {
                closed = true;
                call(() -> handler.onDisconnected(this, cause));
            });
        }
    }

    private void peerEnded(@Nullable Throwable why) {
        sawPeerEnd = true;
        drain(why);
    }

    /** Executes this side's part of the next work request. */
    private void start() {
        Work work = sends.poll();
        if (work == null) {
            return;
        }
        executing.add(work);
        if (failNextSend != null) {
            work.done = true;
            work.status = failNextSend;
            failNextSend = null;
            emit();
            drain(explanation);
            return;
        }
        if (!work.reads() && work.bytes == null) {
            work.bytes = work.gather();
        }
        if (work.bytes != null) {
            payloadBytesSent += work.bytes.length;
        }
        wire.add(work);
        if (device.iwarp() && !work.reads()) {
            work.done = true;
            emit();
        }
    }

    /** The next transmission reaches the peer. */
    private void arrive() {
        Work work = wire.poll();
        if (work == null) {
            return;
        }
        boolean fits = true;
        switch (work.opcode) {
            case SEND -> fits = peer.take(work.bytes, 0, 0);
            case SEND_WITH_IMMEDIATE ->
                fits = peer.take(work.bytes, EndpointHandler.WITH_IMMEDIATE, work.immediateData);
            case WRITE, WRITE_WITH_IMMEDIATE -> {
                MemorySegment target = peer.domain.open(
                        work.remoteKey, work.remoteAddress, work.total, MemoryDomain.Access.REMOTE_WRITE);
                if (target == null && work.total > 0) {
                    fits = false;
                } else {
                    if (target != null) {
                        MemorySegment.copy(work.bytes, 0, target, ValueLayout.JAVA_BYTE, 0, work.total);
                    }
                    if (work.opcode == WorkRequest.Opcode.WRITE_WITH_IMMEDIATE) {
                        peer.takeImmediate(work.total, work.immediateData);
                    }
                }
            }
            default -> {
                responses.add(work);
                return;
            }
        }
        if (!fits) {
            refuse(work);
        } else if (!device.iwarp()) {
            work.done = true;
            emit();
        }
    }

    private void refuse(Work work) {
        work.done = true;
        work.status = WorkStatus.REMOTE_ACCESS_ERROR;
        emit();
        peer.drain(new ConnectionException.Lost("the peer was refused"));
        drain(null);
    }

    /** The answer to a read or an atomic comes back. */
    void respond() {
        Work work = responses.poll();
        if (work == null) {
            return;
        }
        boolean atomic = work.opcode != WorkRequest.Opcode.READ;
        MemorySegment source = peer.domain.open(
                work.remoteKey,
                work.remoteAddress,
                work.total,
                atomic ? MemoryDomain.Access.REMOTE_ATOMIC : MemoryDomain.Access.REMOTE_READ);
        if (source == null && work.total > 0) {
            refuse(work);
            return;
        }
        if (source != null) {
            work.scatter(source.toArray(ValueLayout.JAVA_BYTE));
            if (work.opcode == WorkRequest.Opcode.FETCH_AND_ADD) {
                source.set(LONG, 0, source.get(LONG, 0) + work.compareOrAdd);
            } else if (work.opcode == WorkRequest.Opcode.COMPARE_AND_SWAP && source.get(LONG, 0) == work.compareOrAdd) {
                source.set(LONG, 0, work.swap);
            }
        }
        work.done = true;
        emit();
    }

    private @Nullable Receive nextReceive() {
        Receive receive = shared != null
                ? shared.posted.poll()
                : takesAnyReceive && copies ? receives.pollLast() : receives.poll();
        if (receive == null) {
            network.receiverNotReady++;
            if (network.endsOnOverrun) {
                return null;
            }
            throw new AssertionError("receiver not ready: " + handler);
        }
        return receive;
    }

    private boolean take(byte[] bytes, int flags, int immediateData) {
        Receive receive = nextReceive();
        if (receive == null) {
            return false;
        }
        if (bytes.length > receive.length && network.endsOnOverrun) {
            receives.addFirst(receive);
            return false;
        }
        if (bytes.length > receive.length) {
            throw new AssertionError("a send of " + bytes.length + " bytes meets a receive of " + receive.length);
        }
        if (inPlace && flags == 0) {
            receiveCompletions.add(() -> offer(receive, bytes));
            return true;
        }
        MemorySegment.copy(bytes, 0, receive.region.segment(), ValueLayout.JAVA_BYTE, receive.offset, bytes.length);
        received(receive, WorkStatus.SUCCESS, bytes.length, flags, immediateData);
        return true;
    }

    /** Offers a message when its turn comes. If it is taken, the receive that it would have used is the next again. */
    private void offer(Receive receive, byte[] bytes) {
        // Not from the beginning of the memory, and changed as soon as nobody may look at it any more.
        byte[] ring = new byte[bytes.length + 7];
        System.arraycopy(bytes, 0, ring, 7, bytes.length);
        boolean isTaken = !draining && handler.onMessage(this, MemorySegment.ofArray(ring), 7, bytes.length);
        Arrays.fill(ring, (byte) 0xa5);
        if (!isTaken) {
            MemorySegment.copy(bytes, 0, receive.region.segment(), ValueLayout.JAVA_BYTE, receive.offset, bytes.length);
            complete(receive, WorkStatus.SUCCESS, bytes.length, 0, 0);
            return;
        }
        taken++;
        if (shared != null) {
            shared.posted.addFirst(receive);
        } else if (draining) {
            received(receive, WorkStatus.FLUSHED, 0, 0, 0);
        } else {
            receives.addFirst(receive);
        }
    }

    private void takeImmediate(int lengthBytes, int immediateData) {
        received(
                nextReceive(),
                WorkStatus.SUCCESS,
                lengthBytes,
                EndpointHandler.WITH_IMMEDIATE | EndpointHandler.REMOTE_WRITE,
                immediateData);
    }

    private void received(Receive receive, WorkStatus status, int lengthBytes, int flags, int immediateData) {
        receiveCompletions.add(() -> complete(receive, status, lengthBytes, flags, immediateData));
    }

    private void complete(Receive receive, WorkStatus status, int lengthBytes, int flags, int immediateData) {
        receive.release();
        if (shared == null) {
            receivesOut--;
        }
        completed++;
        handler.onReceiveCompletion(this, receive.workId, status, lengthBytes, flags, immediateData);
    }

    /** Completions appear in the order posted, and those that nobody waits for as late as they may. */
    private void emit() {
        while (!executing.isEmpty() && executing.element().done) {
            Work work = executing.remove();
            if (work.isCopied) {
                continue;
            }
            unsignalled.add(() -> {
                work.release();
                sendsOut--;
                handler.onSendCompletion(this, work.workId, work.status, work.total);
            });
            if (!work.isUnsignalled || unsignalled.size() >= device.sendDepth() / 4) {
                emitUnsignalled();
            }
        }
    }

    private void emitUnsignalled() {
        sendCompletions.addAll(unsignalled);
        unsignalled.clear();
    }

    private void poll() {
        call(() -> {
            int most = 1 + network.random.nextInt(8);
            for (int i = 0; i < most; i++) {
                boolean fromSends = network.random.nextBoolean();
                Runnable completion = fromSends ? sendCompletions.poll() : receiveCompletions.poll();
                if (completion == null) {
                    completion = fromSends ? receiveCompletions.poll() : sendCompletions.poll();
                }
                if (completion == null) {
                    break;
                }
                completion.run();
            }
            handler.onCompletionsHandled(this);
        });
    }

    private void drain(@Nullable Throwable why) {
        if (draining) {
            return;
        }
        draining = true;
        cause = why;
        sends.addAll(stagedSends);
        stagedSends.clear();
        executing.addAll(sends);
        sends.clear();
        for (Work work : executing) {
            if (!work.done) {
                work.done = true;
                work.status = WorkStatus.FLUSHED;
            }
        }
        responses.clear();
        emit();
        emitUnsignalled();
        if (!device.iwarp()) {
            wire.clear();
        }
        receives.addAll(stagedReceives);
        stagedReceives.clear();
        for (Receive receive : receives) {
            received(receive, WorkStatus.FLUSHED, 0, 0, 0);
        }
        receives.clear();
        if (!device.iwarp() || sawPeerEnd || peer.closed) {
            return;
        }
        // TCP: what the peer still sends meets a closed socket, and the reset discards what the peer has not read.
        if (!peer.wire.isEmpty() && !peer.draining) {
            peer.wire.clear();
            wire.clear();
            peer.drain(new ConnectionException.Lost("connection reset"));
        }
    }

    /** The other program is killed, or the path breaks. */
    void loseConnection(Throwable why) {
        if (!closed) {
            wire.clear();
            drain(why);
        }
    }

    // Endpoint.

    @Override
    public EndpointCapabilities capabilities() {
        return capabilities;
    }

    @Override
    public int rendezvousBytes(int peerReceiveBytes) {
        return 10 * peerReceiveBytes;
    }

    @Override
    public MemoryDomain memoryDomain() {
        return domain;
    }

    @Override
    public void allowRemoteAccess(boolean allowed) {
        isRemoteAccessAllowed = allowed;
    }

    @Override
    public InetSocketAddress localAddress() {
        return address;
    }

    @Override
    public InetSocketAddress remoteAddress() {
        return peer.address;
    }

    @Override
    public @Nullable SharedReceiveQueue sharedReceiveQueue() {
        return shared;
    }

    @Override
    public boolean postReceive(long workId, ScatterGatherList buffers) {
        if (draining || receivesOut == device.receiveDepth()) {
            return false;
        }
        receivesOut++;
        receivesPosted++;
        stagedReceives.add(receive(workId, buffers));
        return true;
    }

    @Override
    public boolean post(WorkRequest request) {
        onPost.accept(request);
        if (!connected || draining || sendsOut == device.sendDepth()) {
            return false;
        }
        if (refusals > 0) {
            refusals--;
            return false;
        }
        if (request.opcode() == WorkRequest.Opcode.READ && request.buffers().count() > device.maxReadSges()) {
            throw new IllegalArgumentException("too many pieces for a read");
        }
        if (request.opcode() != WorkRequest.Opcode.READ && request.buffers().count() > device.maxSges()) {
            throw new IllegalArgumentException("too many pieces");
        }
        if (request.opcode() == WorkRequest.Opcode.READ && device.iwarp()) {
            for (int i = 0; i < request.buffers().count(); i++) {
                if (!request.buffers().region(i).access().contains(MemoryDomain.Access.REMOTE_WRITE)) {
                    throw new IllegalArgumentException("a read's sink without REMOTE_WRITE");
                }
            }
        }
        stagedSends.add(new Work(request));
        sendsOut++;
        return true;
    }

    @Override
    public boolean trySend(long first, long second, ByteBuf rest, int index, int restBytes) {
        if (!copies || !connected || draining || stagedSends.stream().anyMatch(work -> !work.isCopied)) {
            return false;
        }
        if (refusals > 0) {
            refusals--;
            return false;
        }
        byte[] all = new byte[2 * Long.BYTES + restBytes];
        ByteBuffer to = ByteBuffer.wrap(all).putLong(first).putLong(second);
        rest.getBytes(index, to);
        stagedSends.add(new Work(all));
        copied++;
        return true;
    }

    @Override
    public void takeReceivesInAnyOrder() {
        takesAnyReceive = true;
    }

    /** What was copied has gone, which the handler learns at the end of a batch. */
    void sendCopies() {
        copiesKept = false;
        sendCompletions.add(() -> {});
    }

    @Override
    public boolean hasSentCopies() {
        return !copiesKept;
    }

    @Override
    public int freeSendSlots() {
        slotQueries++;
        return device.sendDepth() - sendsOut;
    }

    @Override
    public void flush() {
        flushes++;
        if (keepsCopies && !draining && network.random.nextInt(4) == 0) {
            copiesKept = true;
        }
        // The worst order: sends are out before receives.
        sends.addAll(stagedSends);
        stagedSends.clear();
        if (!draining) {
            network.goOnDuringFlushOf(this);
        }
        if (!draining) {
            receives.addAll(stagedReceives);
            stagedReceives.clear();
        }
    }

    @Override
    public void disconnect() {
        drain(null);
    }

    @Override
    public String toString() {
        return "SimulatedEndpoint[" + (draining ? "draining" : connected ? "connected" : "prepared") + ", staged "
                + stagedSends.size() + "/" + stagedReceives.size() + ", sends " + sends.size() + ", executing "
                + executing.size() + ", wire " + wire.size() + ", responses " + responses.size() + ", receives "
                + receives.size() + ", completions " + sendCompletions.size() + "/" + receiveCompletions.size() + "]";
    }
}
