package org.verbena.cm.ffm;

import static java.lang.foreign.ValueLayout.JAVA_INT;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.StructLayout;
import org.verbena.verbs.ffm.CStruct;

/** {@code struct rdma_event_channel}. Source: rdma_create_event_channel(3) */
@SuppressWarnings("restricted") // gives pointers from C their sizes
public final class RdmaEventChannel {
    public static final StructLayout LAYOUT = CStruct.struct("rdma_event_channel", JAVA_INT.withName("fd"));

    private RdmaEventChannel() {}

    /** {@code int fd}. */
    public static int fd(long pointer) {
        return MemorySegment.ofAddress(pointer).reinterpret(LAYOUT.byteSize()).get(JAVA_INT, 0);
    }
}
