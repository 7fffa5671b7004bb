package org.verbena.transport.protocol.sending;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.util.Arrays;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.EndpointCapabilities;
import org.verbena.transport.Framing;
import org.verbena.transport.RdmaException;
import org.verbena.transport.RegisteredMemory;
import org.verbena.transport.SendCompletion;
import org.verbena.transport.buffer.OperationRegistration;
import org.verbena.transport.protocol.MessageOptions;
import org.verbena.transport.protocol.memory.MessageBuffers;
import org.verbena.transport.protocol.state.ConnectionCounters;
import org.verbena.transport.protocol.state.Work;
import org.verbena.transport.protocol.wire.Credits;
import org.verbena.transport.spi.Endpoint;
import org.verbena.transport.spi.ScatterGatherList;
import org.verbena.transport.spi.WorkRequest;

/**
 * The send queue as the protocol sees it: the owner of each outstanding work request, in the order posted, and the
 * memory that it uses. A work id is the request's number. Each has a slot of registered memory for a header and a
 * handshake or a short copy.
 *
 * <p>A frame that the endpoint copies when it is posted, and that nobody waits for, is not here: it has the id {@link
 * #UNTRACKED}, its slot is free at once, and the endpoint need not report it in time.
 */
public final class SendLedger {
    /** Work requests are staged from here; each has room for a header and a handshake or a short copy. */
    public static final int SLOT_BYTES = 64;

    /** The id of a work request that is not in the ledger. */
    public static final long UNTRACKED = -1;

    /** The number of work requests that there is room for at first: most connections never have more outstanding. */
    private static final int FIRST_RING = 8;

    private static final ByteBuf[] NO_COPIES = {};
    private static final int[] NO_COUNTS = {};
    private static final long[] NO_CHARGES = {};

    private final int maxInlineBytes;
    private final boolean completesPosted;
    private final ConnectionCounters counters;
    private final Transfers transfers;

    // Set by prepare, before anything that reads them.
    @SuppressWarnings("NullAway.Init")
    private WorkRequest request;

    @SuppressWarnings("NullAway.Init")
    private MessageBuffers buffers;

    private @Nullable Work[] owners = new Work[0];
    /** Made for the first copy, as many connections send none. */
    private @Nullable ByteBuf[] copies = NO_COPIES;
    /** How many messages a frame has bytes of, its owner being the first. Made for the first frame with several. */
    private int[] messages = NO_COUNTS;
    /** The charges of transfers. Made for the first one that is charged. */
    private long[] charges = NO_CHARGES;

    private int mask;
    /** Room for the most that the endpoint accepts. */
    private int greatestRing;

    private long head;
    private long tail;
    private int inlineBytes;
    private boolean staged;
    private boolean copied;
    private int copiesOut;
    private int takenMessages;
    private int readsOut;
    /** What the next work request sends a copy from, until it is posted. */
    private @Nullable ByteBuf stagedCopy;

    private @Nullable RegisteredMemory stagedRegistration;
    private @Nullable ByteBuf headers;
    /** The slots from before the ledger grew, until the work requests that use them are done. */
    private @Nullable ByteBuf retired;

    private long retiredAt;

    /** From which work request on to try to grow. */
    private long growFrom;

    @SuppressWarnings("NullAway.Init")
    private RegisteredMemory headerRegion;

    private long headerOffset;

    public SendLedger(MessageOptions options, ConnectionCounters counters, Transfers transfers) {
        maxInlineBytes = options.maxInlineBytes();
        completesPosted = options.sendCompletion() == SendCompletion.POSTED;
        this.counters = counters;
        this.transfers = transfers;
    }

    /**
     * Makes room for as many work requests as the endpoint accepts, with headers if frames have any.
     *
     * @throws IllegalArgumentException the endpoint accepts too few, or too few elements each, for the framing
     */
    public void prepare(EndpointCapabilities capabilities, MessageBuffers memory, Framing framing) {
        boolean withHeaders = framing != Framing.RAW;
        int leastDepth = withHeaders ? Credits.CONTROL_RECEIVES + 1 : 1;
        if (capabilities.sendDepth() < leastDepth) {
            throw new IllegalArgumentException("a sendDepth of " + capabilities.sendDepth()
                    + " is too small for framing " + framing + ": ask for " + leastDepth + " or more");
        }
        if (withHeaders && capabilities.maxSges() < 2) {
            throw new IllegalArgumentException(
                    "framing " + framing + " needs 2 scatter/gather elements, the endpoint has "
                            + capabilities.maxSges() + ": ask for maxSges of 2 or more");
        }
        buffers = memory;
        inlineBytes = Math.min(maxInlineBytes, capabilities.maxInlineBytes());
        request = new WorkRequest(Math.max(capabilities.maxSges(), capabilities.maxReadSges()));
        greatestRing = Integer.highestOneBit(Math.max(1, capabilities.sendDepth() * 2 - 1));
        int ring = Math.min(FIRST_RING, greatestRing);
        owners = new Work[ring];
        mask = ring - 1;
        if (withHeaders && !prepareHeaders(ring * SLOT_BYTES)) {
            throw memory.exhausted("the " + ring * SLOT_BYTES + " bytes of headers of a connection");
        }
    }

    private boolean prepareHeaders(int bytes) {
        ByteBuf memory = buffers.tryAllocateSend(bytes);
        if (memory == null) {
            return false;
        }
        headers = memory;
        ScatterGatherList list = request.buffers().clear();
        if (buffers.gather(memory, 0, bytes, 1, list) != bytes) {
            throw new IllegalStateException(
                    "a send buffer is not one piece of memory registered with this device: " + memory);
        }
        headerRegion = list.region(0);
        headerOffset = list.address(0) - headerRegion.address();
        list.clear();
        return true;
    }

    /** Makes room for as many work requests as the endpoint accepts; without memory for that, nothing changes. */
    private void grow() {
        ByteBuf before = headers;
        if (before != null) {
            if (!prepareHeaders(greatestRing * SLOT_BYTES)) {
                growFrom = tail + owners.length; // not again at once: asking the device takes a system call
                return;
            }
            retired = before;
            retiredAt = tail;
        }
        int old = mask;
        mask = greatestRing - 1;
        Work[] moreOwners = new Work[greatestRing];
        ByteBuf[] moreCopies = new ByteBuf[copies.length == 0 ? 0 : greatestRing];
        int[] moreMessages = new int[messages.length == 0 ? 0 : greatestRing];
        long[] moreCharges = new long[charges.length == 0 ? 0 : greatestRing];
        for (long id = head; id < tail; id++) {
            int from = (int) id & old;
            int to = (int) id & mask;
            moreOwners[to] = owners[from];
            if (copies.length > 0) {
                moreCopies[to] = copies[from];
            }
            if (messages.length > 0) {
                moreMessages[to] = messages[from];
            }
            if (charges.length > 0) {
                moreCharges[to] = charges[from];
            }
        }
        owners = moreOwners;
        copies = moreCopies;
        messages = moreMessages;
        charges = moreCharges;
    }

    /** The work request that is posted next. */
    public WorkRequest request() {
        return request;
    }

    /** The next work request's id. */
    public long nextId() {
        return tail;
    }

    /** How many may be posted now. Called before the next one is described. */
    public int free(Endpoint endpoint) {
        if (owners.length < greatestRing && owners.length - out() <= Credits.CONTROL_RECEIVES + 1 && tail >= growFrom) {
            grow();
        }
        return Math.min(endpoint.freeSendSlots(), owners.length - out());
    }

    public int out() {
        return (int) (tail - head);
    }

    public boolean isEmpty() {
        return head == tail;
    }

    /** Whether copies are in flight, whose completion gives memory back. */
    public boolean hasCopiesOut() {
        return copiesOut > 0;
    }

    /** Reads and atomics that are out. */
    public int readsOut() {
        return readsOut;
    }

    private static boolean reads(@Nullable Work owner) {
        return owner != null && owner.reads();
    }

    /** Where the next work request's own slot begins in {@link #slots()}. */
    public int slotOffset() {
        return ((int) tail & mask) * SLOT_BYTES;
    }

    public ByteBuf slots() {
        ByteBuf memory = headers;
        if (memory == null) {
            throw new IllegalStateException("the connection is over");
        }
        return memory;
    }

    /** Adds what the next work request's own slot holds. */
    public void gatherSlot(int lengthBytes) {
        request.buffers().addHeld(headerRegion, headerOffset + slotOffset(), lengthBytes);
    }

    /**
     * Begins to describe a send.
     *
     * @param frameBytes how long it will be
     * @param isAwaited whether somebody waits until it is done
     */
    public WorkRequest describeSend(long frameBytes, boolean isAwaited) {
        int flags = inlineFlag(frameBytes);
        return isAwaited || flags == 0
                ? request.asSend(tail, flags)
                : request.asSend(UNTRACKED, flags | WorkRequest.UNSIGNALLED);
    }

    /**
     * The same for a frame with bytes of messages, which is awaited unless these are done when it is posted.
     *
     * @param areUnawaited whether nobody waits for any of them
     */
    public WorkRequest describeMessage(long frameBytes, boolean areUnawaited) {
        return describeSend(frameBytes, !completesPosted && !areUnawaited);
    }

    /**
     * Whether the messages of the work request are done when it is posted, as their bytes are copied.
     *
     * @param isInSlot whether they were copied into its slot
     * @param areUnawaited whether nobody waits for any of them
     */
    public boolean isDoneWhenPosted(boolean isInSlot, boolean areUnawaited) {
        return (completesPosted || areUnawaited)
                && (isInSlot || stagedCopy != null || (request.flags() & WorkRequest.INLINE) != 0);
    }

    public int inlineFlag(long lengthBytes) {
        return lengthBytes <= inlineBytes ? WorkRequest.INLINE : 0;
    }

    /**
     * Posts the work request, with the copy that was staged for it, if there is one.
     *
     * @param owner given back by {@link #take()}; null for a control frame
     * @return false if the endpoint did not take it
     */
    boolean post(Endpoint endpoint, @Nullable Work owner) {
        boolean taken = false;
        try {
            taken = endpoint.post(request);
        } finally {
            if (!taken) {
                dropStaged();
            }
        }
        if (taken && request.workId() == UNTRACKED) {
            staged = true;
            dropStaged(); // the endpoint has copied it
        } else if (taken) {
            int index = (int) tail & mask;
            owners[index] = owner;
            if (messages.length > 0) {
                messages[index] = 1;
            }
            if (stagedCopy != null) {
                if (copies.length == 0) {
                    copies = new ByteBuf[owners.length];
                }
                copies[index] = stagedCopy;
                stagedCopy = null;
                copiesOut++;
                dropStaged(); // the endpoint holds the registration until the work is done
            }
            readsOut += reads(owner) ? 1 : 0;
            tail++;
            staged = true;
        }
        return taken;
    }

    /** Posts a read or write that may go now, as {@link #post} does, and charges it until it is taken. */
    public boolean postTransfer(Endpoint endpoint, Work owner, long bytes) {
        if (!post(endpoint, owner)) {
            return false;
        }
        long charge = transfers.shareOf(owner).begun(bytes);
        if (charge > 0 && charges.length == 0) {
            charges = new long[owners.length];
        }
        if (charges.length > 0) {
            charges[(int) (tail - 1) & mask] = charge;
        }
        return true;
    }

    /** The work request is not posted: releases what was staged for it. */
    public void dropStaged() {
        if (stagedRegistration != null) {
            stagedRegistration.close();
            stagedRegistration = null;
        }
        if (stagedCopy != null) {
            stagedCopy.release();
            stagedCopy = null;
        }
    }

    /** The work request that was posted last has bytes of several messages. */
    public void lastHasMessages(int count) {
        if (count > 1 && messages.length == 0) {
            messages = new int[owners.length];
            Arrays.fill(messages, 1);
        }
        if (messages.length > 0) {
            messages[(int) (tail - 1) & mask] = count;
        }
    }

    /** The endpoint was given a frame without a work request, which waits for a flush. */
    void copied() {
        staged = true;
        copied = !completesPosted;
    }

    /** Whether messages of a frame that was copied are not done before it has gone; from now on none are. */
    public boolean takeCopied() {
        boolean was = copied;
        copied = false;
        return was;
    }

    /** Whether something is staged that the device was not given. */
    public boolean isStaged() {
        return staged;
    }

    /** The same; from now on nothing is. */
    public boolean takeStaged() {
        boolean was = staged;
        staged = false;
        return was;
    }

    /** Whether this work request is the next to complete. */
    public boolean isNext(long workId) {
        return head != tail && workId == head;
    }

    /** The oldest work request is done: returns its owner, and sets {@link #takenMessages()}. */
    public @Nullable Work take() {
        int index = (int) head & mask;
        Work owner = owners[index];
        ByteBuf copy = copies.length == 0 ? null : copies[index];
        takenMessages = messages.length == 0 ? 1 : messages[index];
        owners[index] = null;
        if (owner != null && charges.length > 0 && charges[index] > 0) {
            long charge = charges[index];
            charges[index] = 0;
            transfers.shareOf(owner).ended(charge);
        }
        readsOut -= reads(owner) ? 1 : 0;
        head++;
        if (retired != null && head >= retiredAt) {
            retired.release();
            retired = null;
        }
        if (copy != null) {
            copies[index] = null;
            copiesOut--;
            copy.release();
        }
        return owner;
    }

    /** How many messages the work request taken last has bytes of. */
    public int takenMessages() {
        return takenMessages;
    }

    /**
     * Memory to send a copy from, added to the request; null if there is none now. The ledger owns it. The pool may be
     * full of messages that wait behind this one: when no copy is in flight whose completion would help, memory is
     * registered for this work request only.
     */
    public @Nullable ByteBuf stage(Endpoint endpoint, int lengthBytes) {
        ByteBuf memory = buffers.tryAllocateSend(lengthBytes);
        if (memory != null) {
            addStaged(memory, lengthBytes);
            return memory;
        }
        if (copiesOut > 0) {
            return null;
        }
        try {
            memory = Unpooled.directBuffer(lengthBytes);
            stagedCopy = memory;
            RegisteredMemory registration =
                    OperationRegistration.register(memory, 0, lengthBytes, endpoint.memoryDomain(), Set.of());
            if (registration != null) {
                stagedRegistration = registration;
                counters.registered();
                request.buffers().add(registration, 0, lengthBytes);
                return memory;
            }
        } catch (RdmaException | OutOfMemoryError noneNow) {
            // The limit of locked memory may be reached, or that of direct memory: try again later.
        }
        dropStaged();
        return null;
    }

    /** As {@link #stage}, for a copy without which something can go another way: only memory that is there. */
    public @Nullable ByteBuf tryStage(int lengthBytes) {
        ByteBuf memory = buffers.tryAllocateSend(lengthBytes);
        if (memory != null) {
            addStaged(memory, lengthBytes);
        }
        return memory;
    }

    private void addStaged(ByteBuf memory, int lengthBytes) {
        stagedCopy = memory;
        if (buffers.gather(memory, 0, lengthBytes, 1, request.buffers()) != lengthBytes) {
            throw new IllegalStateException("a send buffer is not one piece of memory registered with this device");
        }
    }

    /** The endpoint is gone, and with it the slots. */
    public void release() {
        dropStaged();
        if (retired != null) {
            retired.release();
            retired = null;
        }
        if (headers != null) {
            headers.release();
            headers = null;
        }
    }
}
