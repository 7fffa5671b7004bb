package com.ibm.disni.verbs.impl;

import com.ibm.disni.verbs.IbvWC;
import java.io.IOException;
import java.io.UncheckedIOException;
import org.verbena.disni.Connections;
import org.verbena.disni.Devices;

/**
 * In the place of DiSNI's class, all of whose methods are native and in {@code libdisni.so}. Comes before DiSNI on the
 * class path.
 *
 * <p>What DiSNI keeps as {@code objId} is a number that is given out once, not an address: a stale one throws an
 * {@link IOException}.
 */
@SuppressWarnings({"MemberName", "StaticAssignmentInConstructor"}) // names and sizes are DiSNI's
public class NativeDispatcher {
    /** What DiSNI 2.1 asks {@code libdisni.so} for. */
    private static final int VERSION = 32;

    /** {@code sizeof(struct sockaddr_in)}. */
    static final int SOCKADDR_IN_BYTES = 16;

    /** {@code sizeof(struct ibv_recv_wr)}. */
    static final int RECV_WR_BYTES = 32;

    /** {@code sizeof(struct ibv_send_wr)}. */
    static final int SEND_WR_BYTES = 128;

    /** {@code sizeof(struct ibv_sge)}. */
    static final int SGE_BYTES = 16;

    /** {@code sizeof(struct ibv_wc)}. */
    static final int WC_BYTES = 48;

    /** {@code offsetof(struct ibv_send_wr, wr.rdma.remote_addr)}. */
    static final int REMOTE_ADDRESS_OFFSET = 40;

    /** {@code offsetof(struct ibv_send_wr, wr.rdma.rkey)}. */
    static final int REMOTE_KEY_OFFSET = 48;

    private final Devices devices = new Devices();
    private final Connections connections = new Connections(devices);

    /** Corrects the sizes of C's structs that DiSNI's classes were built with. */
    NativeDispatcher() {
        SockAddrIn.CSIZE = SOCKADDR_IN_BYTES;
        NatIbvRecvWR.CSIZE = RECV_WR_BYTES;
        NatIbvSendWR.CSIZE = SEND_WR_BYTES;
        NatIbvSge.CSIZE = SGE_BYTES;
        IbvWC.CSIZE = WC_BYTES;
        NatIbvSendWR.REMOTEADDR_OFFSET = REMOTE_ADDRESS_OFFSET;
        NatIbvSendWR.RKEY_OFFSET = REMOTE_KEY_OFFSET;
    }

    // ---- librdmacm

    public long _createEventChannel() throws IOException {
        return connections.createEventChannel();
    }

    public long _createId(long channel, short rdma_ps) throws IOException {
        return connections.createId(channel); // DiSNI's C library does not look at rdma_ps either
    }

    public long _createQP(
            long id, long pd, long sendcq, long recvcq, int qptype, int maxsendwr, int maxrecvwr, int maxinline)
            throws IOException {
        return connections.createQueuePair(id, pd, sendcq, recvcq, qptype, maxsendwr, maxrecvwr, maxinline);
    }

    public void _bindAddr(long id, long addr) throws IOException {
        connections.bind(id, addr);
    }

    public void _listen(long id, int backlog) throws IOException {
        connections.listen(id, backlog);
    }

    public void _resolveAddr(long id, long src, long dst, int timeout) throws IOException {
        connections.resolveAddress(id, dst, timeout); // src is always 0
    }

    public void _resolveRoute(long id, int timeout) throws IOException {
        connections.resolveRoute(id, timeout);
    }

    public int _getCmEvent(long channel, long listenid, long clientid, int timeout) throws IOException {
        return connections.getEvent(channel, listenid, clientid, timeout);
    }

    public void _connect(long id, int retrycount, int rnrretrycount, long privdataaddr, byte privdatalen)
            throws IOException {
        connections.connect(id, retrycount, rnrretrycount, privdataaddr, Byte.toUnsignedInt(privdatalen));
    }

    public void _accept(long id, int retrycount, int rnrretrycount) throws IOException {
        connections.accept(id, retrycount, rnrretrycount);
    }

    public int _ackCmEvent(int cmEvent) {
        return 0; // _getCmEvent has copied and acknowledged it
    }

    public int _disconnect(long id) throws IOException {
        return connections.disconnect(id);
    }

    public int _destroyEventChannel(long fd) throws IOException {
        return connections.destroyEventChannel(fd);
    }

    public int _destroyCmId(long natid) throws IOException {
        return connections.destroyId(natid);
    }

    public int _destroyQP(long id) throws IOException {
        return connections.destroyQueuePair(id);
    }

    public int _getSrcAddr(long id, long address) throws IOException {
        return connections.localAddress(id, address);
    }

    public int _getDstAddr(long id, long address) throws IOException {
        return connections.remoteAddress(id, address);
    }

    public int _destroyEp(long natid) throws IOException {
        return connections.destroyId(natid);
    }

    // ---- libibverbs

    public long _allocPd(long context) throws IOException {
        return devices.allocateDomain(context);
    }

    public long _createCompChannel(long context) throws IOException {
        return devices.createChannel(context);
    }

    public long _createCQ(long context, long compChannel, int ncqe, int comp_vector) throws IOException {
        return devices.createQueue(context, compChannel, ncqe, comp_vector);
    }

    public int _modifyQP(long qp, long attr) throws IOException {
        devices.checkQueuePair(qp);
        throw new IOException("DiSNI 2.1 passes no attributes to modifyQP: its C library calls ibv_modify_qp with what"
                + " happens to be on the stack");
    }

    public long _regMr(long pd, long addr, int len, int access, long lkey, long rkey, long handle) throws IOException {
        return devices.register(pd, addr, len, access, lkey, rkey, handle);
    }

    public int _queryOdpSupport(long context) {
        try {
            return devices.onDemandOperations(context);
        } catch (IOException stale) {
            throw new UncheckedIOException(stale); // RdmaVerbs.queryOdpSupport declares none
        }
    }

    public int _expPrefetchMr(long handle, long addr, int len) throws IOException {
        return devices.prefetch(handle, addr, len);
    }

    public void _deregMr(long handle) throws IOException {
        devices.deregister(handle);
    }

    public void _postSend(long qp, long wrList) throws IOException {
        devices.postSends(qp, wrList);
    }

    public void _postRecv(long qp, long wrList) throws IOException {
        devices.postReceives(qp, wrList);
    }

    public int _getCqEvent(long compChannel, int timeout) throws IOException {
        return devices.awaitEvent(compChannel, timeout);
    }

    public int _pollCQ(long cq, int ne, long wclist) throws IOException {
        return devices.poll(cq, ne, wclist);
    }

    public int _reqNotifyCQ(long cq, int solicited_only) throws IOException {
        return devices.requestNotify(cq, solicited_only != 0);
    }

    public int _ackCqEvent(long cq, int nevents) throws IOException {
        return devices.acknowledge(cq);
    }

    public int _destroyCompChannel(long fd) throws IOException {
        return devices.destroyChannel(fd);
    }

    public int _deallocPd(long handle) throws IOException {
        return devices.deallocateDomain(handle);
    }

    public int _destroyCQ(long handle) throws IOException {
        return devices.destroyQueue(handle);
    }

    // ---- fields

    public long _getContext(long id) throws IOException {
        return connections.context(id);
    }

    public int _getQpNum(long id) throws IOException {
        return devices.queuePairNumber(id);
    }

    public int _getContextFd(long objId) throws IOException {
        return devices.commandFd(objId);
    }

    public int _getContextNumCompVectors(long objId) throws IOException {
        return devices.completionVectors(objId);
    }

    public int _getPdHandle(long objId) throws IOException {
        return devices.domainHandle(objId);
    }

    // ---- C's structs

    public int _getSockAddrInSize() {
        return SOCKADDR_IN_BYTES;
    }

    public int _getIbvRecvWRSize() {
        return RECV_WR_BYTES;
    }

    public int _getIbvSendWRSize() {
        return SEND_WR_BYTES;
    }

    public int _getIbvSgeSize() {
        return SGE_BYTES;
    }

    public int _getIbvWCSize() {
        return WC_BYTES;
    }

    public int _getRemoteAddressOffset() {
        return REMOTE_ADDRESS_OFFSET;
    }

    public int _getRKeyOffset() {
        return REMOTE_KEY_OFFSET;
    }

    public int _getVersion() {
        return VERSION;
    }
}
