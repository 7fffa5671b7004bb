package org.verbena.verbs.ffm;

import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;

/**
 * The functions that C headers call inline through pointers in {@code ibv_context.ops} and {@code verbs_context}. The pointer
 * is the first argument of each; it is read once, when its owner is opened.
 *
 * <p>poll_cq alone is a critical call: it stays in user space. rxe and siw enter the kernel to post, and a blocked critical call
 * stops the garbage collector. Source: infiniband/verbs.h
 */
public final class VerbsOps {
    private static final MethodHandle QUERY_PORT = NativeLibrary.functionPointer(
            FunctionDescriptor.of(CStruct.U32, CStruct.PTR, CStruct.U8, CStruct.PTR, CStruct.U64));

    /** {@code int query_port(struct ibv_context *context, uint8_t port_num, struct ibv_port_attr *port_attr, size_t port_attr_len);} */
    public static int queryPort(MemorySegment function, long context, byte portNum, long portAttr, long portAttrLen) {
        try {
            return (int) QUERY_PORT.invokeExact(function, context, portNum, portAttr, portAttrLen);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final MethodHandle REQ_NOTIFY_CQ =
            NativeLibrary.functionPointer(FunctionDescriptor.of(CStruct.U32, CStruct.PTR, CStruct.U32));

    /** {@code int req_notify_cq(struct ibv_cq *cq, int solicited_only);} */
    public static int reqNotifyCq(MemorySegment function, long cq, int solicitedOnly) {
        try {
            return (int) REQ_NOTIFY_CQ.invokeExact(function, cq, solicitedOnly);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final MethodHandle POST_SEND =
            NativeLibrary.functionPointer(FunctionDescriptor.of(CStruct.U32, CStruct.PTR, CStruct.PTR, CStruct.PTR));

    /** {@code int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr);} */
    public static int postSend(MemorySegment function, long qp, long wr, long badWr) {
        try {
            return (int) POST_SEND.invokeExact(function, qp, wr, badWr);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final MethodHandle POST_RECV =
            NativeLibrary.functionPointer(FunctionDescriptor.of(CStruct.U32, CStruct.PTR, CStruct.PTR, CStruct.PTR));

    /** {@code int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);} */
    public static int postRecv(MemorySegment function, long qp, long wr, long badWr) {
        try {
            return (int) POST_RECV.invokeExact(function, qp, wr, badWr);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final MethodHandle POST_SRQ_RECV =
            NativeLibrary.functionPointer(FunctionDescriptor.of(CStruct.U32, CStruct.PTR, CStruct.PTR, CStruct.PTR));

    /** {@code int post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *recv_wr, struct ibv_recv_wr **bad_recv_wr);} */
    public static int postSrqRecv(MemorySegment function, long srq, long recvWr, long badRecvWr) {
        try {
            return (int) POST_SRQ_RECV.invokeExact(function, srq, recvWr, badRecvWr);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final MethodHandle POLL_CQ = NativeLibrary.functionPointer(
            FunctionDescriptor.of(CStruct.U32, CStruct.PTR, CStruct.U32, CStruct.PTR), Linker.Option.critical(false));

    /** {@code int poll_cq(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc);} */
    public static int pollCq(MemorySegment function, long cq, int numEntries, long wc) {
        try {
            return (int) POLL_CQ.invokeExact(function, cq, numEntries, wc);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private VerbsOps() {}
}
