package org.verbena.verbs;

import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;
import org.verbena.verbs.device.AsyncEventType;
import org.verbena.verbs.ffm.CStruct;
import org.verbena.verbs.ffm.IbvAsyncEvent;

/**
 * An event of a device, a port or an object, outside of any work request. It is already acknowledged.
 *
 * <p>Source: ibv_get_async_event(3)
 *
 * @param type what happened
 * @param port the port it happened to, 0 for objects and the device as a whole
 * @param source the object it happened to; null for ports and the device, and for objects closed or made elsewhere
 */
public record AsyncEvent(
        AsyncEventType type, int port, @Nullable VerbsObject source) {

    static AsyncEvent read(AsyncEvents events, MemorySegment event) {
        AsyncEventType type = AsyncEventType.of(event.get(CStruct.ENUM, IbvAsyncEvent.EVENT_TYPE));
        return switch (type) {
            case CQ_ERR,
                    QP_FATAL,
                    QP_REQ_ERR,
                    QP_ACCESS_ERR,
                    COMM_EST,
                    SQ_DRAINED,
                    PATH_MIG,
                    PATH_MIG_ERR,
                    SRQ_ERR,
                    SRQ_LIMIT_REACHED,
                    QP_LAST_WQE_REACHED,
                    WQ_FATAL ->
                new AsyncEvent(type, 0, events.source(event.get(CStruct.PTR, IbvAsyncEvent.ELEMENT_QP)));
            case PORT_ACTIVE,
                    PORT_ERR,
                    LID_CHANGE,
                    PKEY_CHANGE,
                    SM_CHANGE,
                    CLIENT_REREGISTER,
                    GID_CHANGE,
                    DEVICE_SPEED_CHANGE ->
                new AsyncEvent(type, event.get(CStruct.I32, IbvAsyncEvent.ELEMENT_PORT_NUM), null);
            case DEVICE_FATAL, UNKNOWN -> new AsyncEvent(type, 0, null);
        };
    }
}
