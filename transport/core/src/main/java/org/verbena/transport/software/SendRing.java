package org.verbena.transport.software;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import org.verbena.transport.spi.WorkRequest;

/**
 * The send queue.
 *
 * <pre>{@code
 *   head              next               tail
 *    | in segments;     | not yet in       |
 *    | waits for TCP or | segments         |
 *    | for a response   |                  |
 * }</pre>
 */
public final class SendRing extends WorkRing {
    private final int maxInlineBytes;

    private WorkRequest.Opcode[] opcodes;
    private byte[] flags;
    private boolean[] answered;
    private long[] remoteAddresses;
    private int[] remoteKeys;
    private int[] immediates;
    private long[] compareOrAdds;
    private long[] swaps;
    private int[] messageNumbers;
    private long[] endPositions;

    /** Payload of inline requests, by slot; empty until there is one. */
    private byte[] inlineBytes = new byte[0];

    /**
     * An empty queue.
     *
     * @param depth the most it holds
     * @param maxSges SGEs of a work request
     * @param maxInlineBytes payload of an inline one
     */
    public SendRing(int depth, int maxSges, int maxInlineBytes) {
        super(depth, maxSges);
        this.maxInlineBytes = maxInlineBytes;
        int slots = capacity();
        opcodes = new WorkRequest.Opcode[slots];
        flags = new byte[slots];
        answered = new boolean[slots];
        remoteAddresses = new long[slots];
        remoteKeys = new int[slots];
        immediates = new int[slots];
        compareOrAdds = new long[slots];
        swaps = new long[slots];
        messageNumbers = new int[slots];
        endPositions = new long[slots];
    }

    /**
     * Adds a request that was checked; there must be room.
     *
     * @param request read during the call only
     */
    public void add(WorkRequest request) {
        int slot = slot(add(request.workId(), request.buffers()));
        opcodes[slot] = request.opcode();
        flags[slot] = (byte) request.flags();
        answered[slot] = false;
        remoteAddresses[slot] = request.remoteAddress();
        remoteKeys[slot] = request.remoteKey();
        immediates[slot] = request.immediateData();
        compareOrAdds[slot] = request.compareOrAdd();
        swaps[slot] = request.swap();
        messageNumbers[slot] = 0;
        endPositions[slot] = Long.MAX_VALUE;
        if ((request.flags() & WorkRequest.INLINE) != 0) {
            copyInline(slot);
        }
    }

    private void copyInline(int slot) {
        if (inlineBytes.length == 0) {
            inlineBytes = new byte[capacity() * maxInlineBytes];
        }
        int to = slot * maxInlineBytes;
        for (int i = 0; i < sgeCount(slot); i++) {
            MemorySegment.copy(
                    region(slot, i).segment(),
                    ValueLayout.JAVA_BYTE,
                    offset(slot, i),
                    inlineBytes,
                    to,
                    length(slot, i));
            to += length(slot, i);
        }
        releaseRegions(slot);
    }

    @Override
    protected void onGrow(int oldMask, int newMask) {
        int slots = newMask + 1;
        opcodes = Arrays.copyOf(opcodes, slots);
        flags = Arrays.copyOf(flags, slots);
        answered = Arrays.copyOf(answered, slots);
        remoteAddresses = Arrays.copyOf(remoteAddresses, slots);
        remoteKeys = Arrays.copyOf(remoteKeys, slots);
        immediates = Arrays.copyOf(immediates, slots);
        compareOrAdds = Arrays.copyOf(compareOrAdds, slots);
        swaps = Arrays.copyOf(swaps, slots);
        messageNumbers = Arrays.copyOf(messageNumbers, slots);
        endPositions = Arrays.copyOf(endPositions, slots);
        if (inlineBytes.length != 0) {
            inlineBytes = Arrays.copyOf(inlineBytes, slots * maxInlineBytes);
        }
        for (long s = head(); s < tail(); s++) {
            int from = (int) s & oldMask;
            int to = (int) s & newMask;
            // A slot stays where it is, or moves up by the old length into the part that is new.
            if (from != to) {
                move(from, to);
            }
        }
    }

    private void move(int from, int to) {
        opcodes[to] = opcodes[from];
        flags[to] = flags[from];
        answered[to] = answered[from];
        remoteAddresses[to] = remoteAddresses[from];
        remoteKeys[to] = remoteKeys[from];
        immediates[to] = immediates[from];
        compareOrAdds[to] = compareOrAdds[from];
        swaps[to] = swaps[from];
        messageNumbers[to] = messageNumbers[from];
        endPositions[to] = endPositions[from];
        if (inlineBytes.length != 0) {
            System.arraycopy(inlineBytes, from * maxInlineBytes, inlineBytes, to * maxInlineBytes, maxInlineBytes);
        }
    }

    public WorkRequest.Opcode opcode(int slot) {
        return opcodes[slot];
    }

    public boolean has(int slot, int flag) {
        return (flags[slot] & flag) != 0;
    }

    /** Whether the peer answers it: a read or an atomic. */
    public boolean isAnsweredByPeer(int slot) {
        return opcodes[slot].compareTo(WorkRequest.Opcode.READ) >= 0;
    }

    /** Whether the response has come. */
    public boolean isAnswered(int slot) {
        return answered[slot];
    }

    public void setAnswered(int slot) {
        answered[slot] = true;
    }

    public long remoteAddress(int slot) {
        return remoteAddresses[slot];
    }

    public int remoteKey(int slot) {
        return remoteKeys[slot];
    }

    public int immediateData(int slot) {
        return immediates[slot];
    }

    public long compareOrAdd(int slot) {
        return compareOrAdds[slot];
    }

    public long swap(int slot) {
        return swaps[slot];
    }

    /** The message sequence number it went out with, 0 if it has none. */
    public int messageNumber(int slot) {
        return messageNumbers[slot];
    }

    public void setMessageNumber(int slot, int number) {
        messageNumbers[slot] = number;
    }

    /** The position in the outgoing stream where it ends. */
    public long endPosition(int slot) {
        return endPositions[slot];
    }

    public void setEndPosition(int slot, long position) {
        endPositions[slot] = position;
    }

    /**
     * Aims a placement at a read's memory, which this queue holds until the read is reported.
     *
     * @param slot of the read
     * @param into empty
     */
    public void aim(int slot, Placement into) {
        int sges = sgeCount(slot);
        into.begin(workId(slot), totalBytes(slot), sges, true);
        for (int i = 0; i < sges; i++) {
            into.setSge(i, region(slot, i), offset(slot, i), length(slot, i));
        }
    }

    /**
     * Copies a part of a request's payload, inline or not.
     *
     * @param to where to
     * @param at from which offset there
     * @param slot of the request
     * @param from the beginning of the part
     * @param bytes its length
     */
    public void copyTo(MemorySegment to, long at, int slot, int from, int bytes) {
        if (has(slot, WorkRequest.INLINE)) {
            MemorySegment.copy(inlineBytes, inlineStart(slot) + from, to, ValueLayout.JAVA_BYTE, at, bytes);
            return;
        }
        int skip = from;
        int done = 0;
        for (int i = 0; done < bytes; i++) {
            int length = length(slot, i);
            if (skip >= length) {
                skip -= length;
                continue;
            }
            int now = Math.min(length - skip, bytes - done);
            MemorySegment.copy(region(slot, i).segment(), offset(slot, i) + skip, to, at + done, now);
            done += now;
            skip = 0;
        }
    }

    public byte[] inlineBytes() {
        return inlineBytes;
    }

    public int inlineStart(int slot) {
        return slot * maxInlineBytes;
    }
}
