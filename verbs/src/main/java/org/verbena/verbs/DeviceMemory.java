package org.verbena.verbs;

import java.lang.foreign.MemorySegment;
import java.util.Objects;
import org.verbena.verbs.ffm.CStruct;
import org.verbena.verbs.ffm.IbvAllocDmAttr;
import org.verbena.verbs.ffm.IbvDm;
import org.verbena.verbs.ffm.LibIbverbs;
import org.verbena.verbs.ffm.Pointers;
import org.verbena.verbs.ffm.Ranges;
import org.verbena.verbs.ffm.VerbsContext;
import org.verbena.verbs.ffm.VerbsOps;

/**
 * Memory on the adapter itself. Work requests reach it through a region ({@link
 * ProtectionDomain#registerDeviceMemory}), the processor by copying.
 *
 * <p>Source: ibv_alloc_dm(3)
 */
public final class DeviceMemory extends VerbsObject {
    private final Context context;
    private final long lengthBytes;
    private final boolean imported;

    private DeviceMemory(long address, Context context, long lengthBytes, boolean imported) {
        super(address, context);
        this.context = context;
        this.lengthBytes = lengthBytes;
        this.imported = imported;
    }

    static DeviceMemory allocate(Context context, long lengthBytes, int alignmentLog2) {
        if (lengthBytes < 1) {
            throw new IllegalArgumentException("lengthBytes " + lengthBytes + " is below 1");
        }
        return make(context, arena -> {
            MemorySegment function = context.extendedOperation("ibv_alloc_dm", VerbsContext.ALLOC_DM);
            MemorySegment free = context.extendedOperation("ibv_free_dm", VerbsContext.FREE_DM);
            MemorySegment attr = arena.allocate(IbvAllocDmAttr.LAYOUT);
            attr.set(CStruct.SIZE, IbvAllocDmAttr.LENGTH, lengthBytes);
            attr.set(CStruct.U32, IbvAllocDmAttr.LOG_ALIGN_REQ, Ranges.check("alignmentLog2", alignmentLog2, 0, 63));
            long dm = Calls.create(
                    "ibv_alloc_dm",
                    "length=" + lengthBytes,
                    errno -> VerbsOps.allocDm(function, errno, context.nativeAddress(), attr.address()));
            return own(
                    dm,
                    made -> new DeviceMemory(made, context, lengthBytes, false),
                    refused -> VerbsOps.freeDm(free, refused));
        });
    }

    static DeviceMemory importFrom(Context context, int handle, long lengthBytes) {
        return make(context, arena -> {
            long dm = Calls.create(
                    "ibv_import_dm",
                    "handle=" + handle,
                    errno -> LibIbverbs.importDm(errno, context.nativeAddress(), handle));
            return own(dm, made -> new DeviceMemory(made, context, lengthBytes, true), LibIbverbs::unimportDm);
        });
    }

    /**
     * Its size.
     *
     * @return bytes
     */
    public long lengthBytes() {
        return lengthBytes;
    }

    /**
     * The handle with which another process that shares the device can {@link Context#importDeviceMemory import} it.
     *
     * @return the handle
     */
    public int handle() {
        return whileOpen(arena -> Pointers.readInt(nativeAddress() + IbvDm.HANDLE));
    }

    /**
     * Copies into it.
     *
     * @param source native memory, all of it
     * @param offsetBytes where to, in the device's memory
     * @throws VerbsException the device refused
     */
    public void copyFrom(MemorySegment source, long offsetBytes) {
        Objects.checkFromIndexSize(offsetBytes, source.byteSize(), lengthBytes);
        runWhileOpen(arena -> {
            long dm = nativeAddress();
            Calls.check(
                    "ibv_memcpy_to_dm",
                    "offset=" + offsetBytes + ", length=" + source.byteSize(),
                    VerbsOps.memcpyToDm(
                            Pointers.function(Pointers.readLong(dm + IbvDm.MEMCPY_TO_DM)),
                            dm,
                            offsetBytes,
                            source.address(),
                            source.byteSize()));
        });
    }

    /**
     * Copies out of it.
     *
     * @param offsetBytes where from, in the device's memory
     * @param target native memory, all of it
     * @throws VerbsException the device refused
     */
    public void copyTo(long offsetBytes, MemorySegment target) {
        Objects.checkFromIndexSize(offsetBytes, target.byteSize(), lengthBytes);
        runWhileOpen(arena -> {
            long dm = nativeAddress();
            Calls.check(
                    "ibv_memcpy_from_dm",
                    "offset=" + offsetBytes + ", length=" + target.byteSize(),
                    VerbsOps.memcpyFromDm(
                            Pointers.function(Pointers.readLong(dm + IbvDm.MEMCPY_FROM_DM)),
                            target.address(),
                            dm,
                            offsetBytes,
                            target.byteSize()));
        });
    }

    @Override
    protected void destroy(long closing) {
        if (imported) {
            LibIbverbs.unimportDm(closing);
        } else {
            Calls.check(
                    "ibv_free_dm",
                    toString(),
                    VerbsOps.freeDm(context.extendedOperation("ibv_free_dm", VerbsContext.FREE_DM), closing));
        }
    }

    @Override
    public String toString() {
        return "DeviceMemory of " + lengthBytes + " bytes on "
                + context.device().name();
    }
}
