package org.verbena.verbs;

import java.lang.foreign.MemorySegment;
import org.verbena.verbs.ffm.CStruct;
import org.verbena.verbs.ffm.IbvContext;
import org.verbena.verbs.ffm.IbvContextOps;
import org.verbena.verbs.ffm.IbvDevice;
import org.verbena.verbs.ffm.LibIbverbs;
import org.verbena.verbs.ffm.Pointers;
import org.verbena.verbs.ffm.VerbsContext;
import org.verbena.verbs.ffm.VerbsLibrary;

/**
 * Checks that the library's structs have the layout that is bound here, by fields whose values are known beforehand. A
 * library with another layout is refused: using it would crash the JVM or corrupt memory.
 */
final class AbiCheck {
    /**
     * What {@code abi_compat} holds in every context since rdma-core 12: the context is the tail of a {@code
     * verbs_context}.
     */
    private static final long EXTENDED = -1L;

    /** No {@code verbs_context} of rdma-core 12 to 60 is as small, or as large. */
    private static final long MIN_CONTEXT_BYTES = IbvContext.SIZE + 2 * Long.BYTES;

    private static final long MAX_CONTEXT_BYTES = 4096;

    /** No device has more. */
    private static final int MAX_COMPLETION_VECTORS = 1 << 16;

    private AbiCheck() {}

    /**
     * Checks a device: its name must be where the library says it is.
     *
     * @param device address of an {@code ibv_device}
     */
    static void device(long device) {
        expect("ibv_device.name", device + IbvDevice.NAME, LibIbverbs.getDeviceName(device));
    }

    /**
     * Checks a context.
     *
     * @param context address of an {@code ibv_context}
     * @param device what it was opened on, 0 if that is not known
     */
    static void context(long context, long device) {
        MemorySegment struct = Pointers.view(context, IbvContext.SIZE);
        if (device != 0) {
            expect("ibv_context.device", device, struct.get(CStruct.PTR, IbvContext.DEVICE));
        }
        expect("ibv_context.abi_compat", EXTENDED, struct.get(CStruct.PTR, IbvContext.ABI_COMPAT));
        int vectors = struct.get(CStruct.I32, IbvContext.NUM_COMP_VECTORS);
        if (vectors < 0 || vectors > MAX_COMPLETION_VECTORS) {
            throw unknown("ibv_context.num_comp_vectors is " + vectors);
        }
        long size = Pointers.readLong(context - VerbsContext.CONTEXT + VerbsContext.SZ);
        if (size < MIN_CONTEXT_BYTES || size > MAX_CONTEXT_BYTES || size % Long.BYTES != 0) {
            throw unknown("verbs_context.sz is " + size);
        }
        for (long operation : new long[] {
            IbvContextOps.POLL_CQ, IbvContextOps.REQ_NOTIFY_CQ, IbvContextOps.POST_SEND, IbvContextOps.POST_RECV
        }) {
            if (struct.get(CStruct.PTR, IbvContext.OPS + operation) == 0) {
                throw unknown("ibv_context.ops has no function at offset " + operation);
            }
        }
    }

    /**
     * Checks a field of something that was just made.
     *
     * @param field C's name of it
     * @param expected what it must hold
     * @param found what it holds
     */
    static void expect(String field, long expected, long found) {
        if (expected != found) {
            throw unknown(field + " is 0x" + Long.toHexString(found) + " and not 0x" + Long.toHexString(expected));
        }
    }

    private static UnsupportedOperationException unknown(String finding) {
        return new UnsupportedOperationException(
                VerbsLibrary.LIBRARY + " has an ABI that this version of Verbena does not know (" + finding
                        + "). Install rdma-core 28 or newer with ABI libibverbs.so.1, or a Verbena built for the one you have.");
    }
}
