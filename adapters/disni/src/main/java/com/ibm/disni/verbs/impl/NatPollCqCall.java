package com.ibm.disni.verbs.impl;

import com.ibm.disni.util.MemBuf;
import com.ibm.disni.util.MemoryAllocation;
import com.ibm.disni.verbs.IbvCQ;
import com.ibm.disni.verbs.IbvWC;
import com.ibm.disni.verbs.SVCPollCq;
import java.io.IOException;
import java.nio.ByteBuffer;
import org.jspecify.annotations.Nullable;

/** In the place of DiSNI's class, which lets C write more completions than it has allocated memory for. */
public class NatPollCqCall extends SVCPollCq {
    private final NativeDispatcher calls;
    private final NatIbvCQ queue;
    private final IbvWC[] completions;
    private final int max;

    /** The memory of C's structs; null once freed. */
    private @Nullable MemBuf memory;

    private int taken;

    /**
     * Prepares a call, which takes no more completions than there are objects for.
     *
     * @throws IllegalArgumentException it would
     */
    public NatPollCqCall(
            @Nullable RdmaVerbsNat verbs,
            NativeDispatcher calls,
            MemoryAllocation allocation,
            IbvCQ queue,
            IbvWC[] completions,
            int max) {
        if (max < 0 || max > completions.length) {
            throw new IllegalArgumentException(max + " completions into an array of " + completions.length);
        }
        this.calls = calls;
        this.queue = (NatIbvCQ) queue;
        this.completions = completions;
        this.max = max;
        this.memory = allocation.allocate(completions.length * IbvWC.CSIZE);
    }

    @Override
    public SVCPollCq execute() throws IOException {
        taken = 0;
        MemBuf structs = memory;
        if (structs == null) {
            throw new IOException("the call was freed");
        }
        if (!queue.isOpen()) {
            throw new IOException("the completion queue is closed");
        }
        int polled = calls._pollCQ(queue.getObjId(), max, structs.address());
        ByteBuffer buffer = structs.getBuffer();
        for (int i = 0; i < polled; i++) {
            buffer.position(i * IbvWC.CSIZE);
            read(buffer, completions[i]);
        }
        taken = polled;
        return this;
    }

    private static void read(ByteBuffer struct, IbvWC into) {
        into.setWr_id(struct.getLong());
        into.setStatus(struct.getInt());
        into.setOpcode(struct.getInt());
        if (into.getStatus() != 0) {
            return; // as DiSNI does: the rest is as it was
        }
        into.setVendor_err(struct.getInt());
        into.setByte_len(struct.getInt());
        into.setImm_data(struct.getInt());
        into.setQp_num(struct.getInt());
        into.setSrc_qp(struct.getInt());
        into.setWc_flags(struct.getInt());
        into.setPkey_index(struct.getShort());
        into.setSlid(struct.getShort());
        into.setSl(struct.get());
        into.setDlid_path_bits(struct.get());
    }

    @Override
    public int getPolls() {
        return taken;
    }

    @Override
    public boolean isValid() {
        return memory != null;
    }

    @Override
    public SVCPollCq free() {
        MemBuf structs = memory;
        memory = null;
        if (structs != null) {
            structs.free();
        }
        return this;
    }
}
