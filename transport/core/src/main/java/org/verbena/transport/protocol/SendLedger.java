package org.verbena.transport.protocol;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.buffer.OperationRegistration;
import org.verbena.transport.spi.Endpoint;
import org.verbena.transport.spi.EndpointCapabilities;
import org.verbena.transport.spi.RdmaException;
import org.verbena.transport.spi.RegisteredMemory;
import org.verbena.transport.spi.ScatterGatherList;
import org.verbena.transport.spi.WorkRequest;

/**
 * The send queue as the protocol sees it: who owns each work request that is out, in the order posted, and the memory that it uses. A work id is the
 * request's number. Each has a slot of registered memory for a header and a handshake or a short copy.
 */
final class SendLedger {
    /** Work requests are staged from here; each has room for a header and a handshake or a short copy. */
    static final int SLOT_BYTES = 64;

    private final int maxInlineBytes;
    private final ConnectionCounters counters;

    // Set by prepare, before anything that reads them.
    @SuppressWarnings("NullAway.Init")
    private WorkRequest request;

    @SuppressWarnings("NullAway.Init")
    private MessageBuffers buffers;

    private @Nullable Work[] owners = new Work[0];
    private @Nullable ByteBuf[] copies = new ByteBuf[0];
    /** How many messages a frame has bytes of, its owner being the first. */
    private int[] messages = new int[0];

    private int mask;
    private long head;
    private long tail;
    private int inlineBytes;
    private boolean staged;
    private int copiesOut;
    private int takenMessages;
    private int readsOut;
    private @Nullable RegisteredMemory stagedRegistration;
    private @Nullable ByteBuf headers;

    @SuppressWarnings("NullAway.Init")
    private RegisteredMemory headerRegion;

    private long headerOffset;

    SendLedger(int maxInlineBytes, ConnectionCounters counters) {
        this.maxInlineBytes = maxInlineBytes;
        this.counters = counters;
    }

    /** Makes room for what the endpoint takes, with headers if frames have any. */
    void prepare(EndpointCapabilities capabilities, MessageBuffers memory, boolean withHeaders) {
        buffers = memory;
        inlineBytes = Math.min(maxInlineBytes, capabilities.maxInlineBytes());
        request = new WorkRequest(Math.max(capabilities.maxSges(), capabilities.maxReadSges()));
        int ring = Integer.highestOneBit(Math.max(1, capabilities.sendDepth() * 2 - 1));
        owners = new Work[ring];
        copies = new ByteBuf[ring];
        messages = new int[ring];
        mask = ring - 1;
        if (withHeaders) {
            prepareHeaders(ring * SLOT_BYTES);
        }
    }

    private void prepareHeaders(int bytes) {
        ByteBuf memory = buffers.tryAllocateSend(bytes);
        if (memory == null) {
            throw new IllegalStateException("no registered memory for the " + bytes
                    + " bytes of headers of a connection: raise the limit of the send buffers");
        }
        headers = memory;
        ScatterGatherList list = request.buffers();
        if (buffers.gather(memory, 0, bytes, 1, list) != bytes) {
            throw new IllegalStateException(
                    "a send buffer is not one piece of memory registered with this device: " + memory);
        }
        headerRegion = list.region(0);
        headerOffset = list.address(0) - headerRegion.address();
        list.clear();
    }

    /** What is posted next is described here. */
    WorkRequest request() {
        return request;
    }

    /** The next work request's id. */
    long nextId() {
        return tail;
    }

    /** How many may be posted now. */
    int free(Endpoint endpoint) {
        return Math.min(endpoint.freeSendSlots(), owners.length - out());
    }

    int out() {
        return (int) (tail - head);
    }

    boolean isEmpty() {
        return head == tail;
    }

    /** Whether copies are under way, whose end gives memory back. */
    boolean hasCopiesOut() {
        return copiesOut > 0;
    }

    /** Reads and atomics that are out. */
    int readsOut() {
        return readsOut;
    }

    /** What was posted last, or taken last, is a read or an atomic: it is out, or not any more. */
    void countRead(int change) {
        readsOut += change;
    }

    /** Where the next work request's own slot begins in {@link #slots()}. */
    int slotOffset() {
        return ((int) tail & mask) * SLOT_BYTES;
    }

    ByteBuf slots() {
        ByteBuf memory = headers;
        if (memory == null) {
            throw new IllegalStateException("the connection is over");
        }
        return memory;
    }

    /** Adds what the next work request's own slot holds. */
    void gatherSlot(int lengthBytes) {
        request.buffers().addHeld(headerRegion, headerOffset + slotOffset(), lengthBytes);
    }

    int inlineFlag(int lengthBytes) {
        return lengthBytes <= inlineBytes ? WorkRequest.INLINE : 0;
    }

    /**
     * Stages the work request.
     *
     * @param owner given back by {@link #take()}; null for a control frame
     * @param copy released with the work, or at once if it is refused
     * @return false if the endpoint did not take it
     */
    boolean post(Endpoint endpoint, @Nullable Work owner, @Nullable ByteBuf copy) {
        boolean taken = false;
        try {
            taken = endpoint.post(request);
        } finally {
            if (stagedRegistration != null) {
                // The endpoint holds it until the work is done.
                stagedRegistration.close();
                stagedRegistration = null;
            }
            if (!taken && copy != null) {
                copy.release();
            }
        }
        if (taken) {
            copiesOut += copy == null ? 0 : 1;
            int index = (int) tail & mask;
            owners[index] = owner;
            copies[index] = copy;
            messages[index] = 1;
            tail++;
            staged = true;
        }
        return taken;
    }

    /** The work request that was posted last has bytes of several messages. */
    void lastHasMessages(int count) {
        messages[(int) (tail - 1) & mask] = count;
    }

    /** Whether something is staged that the device was not given; from now on nothing is. */
    boolean takeStaged() {
        boolean was = staged;
        staged = false;
        return was;
    }

    /** Whether this work request is the next to complete. */
    boolean isNext(long workId) {
        return head != tail && workId == head;
    }

    /** The oldest work request is done: who owned it, and {@link #takenMessages()}. */
    @Nullable Work take() {
        int index = (int) head & mask;
        Work owner = owners[index];
        ByteBuf copy = copies[index];
        takenMessages = messages[index];
        owners[index] = null;
        copies[index] = null;
        head++;
        if (copy != null) {
            copiesOut--;
            copy.release();
        }
        return owner;
    }

    /** How many messages what was taken last has bytes of. */
    int takenMessages() {
        return takenMessages;
    }

    /**
     * Memory to send from, added to the request; null if there is none now. The pool may be full of messages that wait behind this one: when no copy is
     * under way whose end would help, memory is registered for this work request alone.
     */
    @Nullable ByteBuf stage(Endpoint endpoint, int lengthBytes) {
        ByteBuf memory = buffers.tryAllocateSend(lengthBytes);
        if (memory != null) {
            if (buffers.gather(memory, 0, lengthBytes, 1, request.buffers()) != lengthBytes) {
                memory.release();
                throw new IllegalStateException("a send buffer is not one piece of memory registered with this device");
            }
            return memory;
        }
        if (copiesOut > 0) {
            return null;
        }
        memory = Unpooled.directBuffer(lengthBytes);
        try {
            RegisteredMemory registration =
                    OperationRegistration.register(memory, 0, lengthBytes, endpoint.memoryDomain(), Set.of());
            if (registration == null) {
                memory.release();
                return null;
            }
            counters.registered();
            request.buffers().add(registration, 0, lengthBytes);
            stagedRegistration = registration;
            return memory;
        } catch (RdmaException e) {
            memory.release();
            return null;
        }
    }

    /** The endpoint is gone, and with it the slots. */
    void release() {
        if (headers != null) {
            headers.release();
            headers = null;
        }
    }
}
