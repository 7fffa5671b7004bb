package org.verbena.cm;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.net.InetSocketAddress;
import org.jspecify.annotations.Nullable;
import org.verbena.cm.ffm.CmLibrary;
import org.verbena.cm.ffm.RdmaCm;
import org.verbena.cm.ffm.RdmaCmEvent;
import org.verbena.cm.ffm.RdmaConnParam;
import org.verbena.cm.ffm.RdmaUdParam;
import org.verbena.verbs.ffm.CStruct;
import org.verbena.verbs.ffm.Errno;
import org.verbena.verbs.ffm.IbvEce;
import org.verbena.verbs.queue.EnhancedConnection;

/**
 * Something that happened to an id; a copy, already acknowledged.
 *
 * @param type what happened
 * @param status 0, a negative errno, or a {@link RejectReason#value()}; {@link #describe} has it in words
 * @param id the id that it happened to; for a connection request the new id, which the receiver owns and must close
 * @param listener for a connection request the id that listened; null otherwise
 * @param connection what the peer asked for or answered, on ids for connections; null otherwise. Its private data is
 *     that of the request, the answer or the rejection
 * @param datagram how to reach the peer or group, on ids for datagrams; null otherwise
 * @param enhancedConnection what the peer's adapter proposed or answered, with a connection request or response; null
 *     if nothing
 * @param group for a multicast event the group, as it was given to {@link CmId#joinMulticast}; null otherwise
 *     <p>Source: rdma_get_cm_event(3)
 */
public record CmEvent(
        CmEventType type,
        int status,
        CmId id,
        @Nullable CmId listener,
        @Nullable ConnectionParameters connection,
        @Nullable DatagramParameters datagram,
        @Nullable EnhancedConnection enhancedConnection,
        @Nullable InetSocketAddress group) {

    static CmEvent copy(CmEventType type, MemorySegment struct, CmId id, @Nullable CmId listener) {
        int status = struct.get(CStruct.I32, RdmaCmEvent.STATUS);
        if (id.isDatagram()) {
            boolean multicast = type == CmEventType.MULTICAST_JOIN || type == CmEventType.MULTICAST_ERROR;
            MemorySegment ud = struct.asSlice(RdmaCmEvent.PARAM_UD, RdmaUdParam.SIZE);
            InetSocketAddress group = multicast ? id.groupOf(ud.get(CStruct.PTR, RdmaUdParam.PRIVATE_DATA)) : null;
            return new CmEvent(type, status, id, listener, null, DatagramParameters.copy(ud, multicast), null, group);
        }
        ConnectionParameters connection =
                ConnectionParameters.read(struct.asSlice(RdmaCmEvent.PARAM_CONN, RdmaConnParam.SIZE));
        boolean handshake = type == CmEventType.CONNECT_REQUEST || type == CmEventType.CONNECT_RESPONSE;
        EnhancedConnection enhanced = handshake ? remoteEnhancedConnection(id.pointer()) : null;
        return new CmEvent(type, status, id, listener, connection, null, enhanced, null);
    }

    /**
     * What the peer's adapter proposed or answered. Null if nothing, if the id has a queue pair (librdmacm has then
     * consumed it), or if librdmacm is too old for it.
     */
    private static @Nullable EnhancedConnection remoteEnhancedConnection(long id) {
        if (!CmLibrary.LIBRARY.find("rdma_get_remote_ece").isPresent()) {
            return null;
        }
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment ece = arena.allocate(IbvEce.LAYOUT);
            if (RdmaCm.getRemoteEce(Errno.newCapture(arena), id, ece.address()) != 0) {
                return null;
            }
            int vendorId = ece.get(ValueLayout.JAVA_INT, IbvEce.VENDOR_ID);
            return vendorId == 0
                    ? null
                    : new EnhancedConnection(vendorId, ece.get(ValueLayout.JAVA_INT, IbvEce.OPTIONS));
        }
    }

    /**
     * The private data that came with it.
     *
     * @return a copy; empty if there was none. InfiniBand and RoCE pad what the peer sent with zeros
     */
    public byte[] privateData() {
        if (connection != null) {
            return connection.privateData();
        }
        return datagram == null ? new byte[0] : datagram.privateData();
    }

    /**
     * A description of the event.
     *
     * @return type and status, their meaning and, if there is one, a remedy
     */
    public String describe() {
        return type + ", " + CmStatus.describe(type, status);
    }

    /**
     * Creates the exception for a failure.
     *
     * @param step what was going on: {@code connecting to 192.0.2.1:7471}
     * @return not thrown
     */
    public CmException toException(String step) {
        return new CmException(step, type, status);
    }
}
