package org.verbena.verbs.ffm;

import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;

/**
 * The functions that libibverbs exports. A function that the installed version lacks throws
 * {@link UnsupportedOperationException} when called. Those that set {@code errno} take the segment that receives it first.
 * Source: infiniband/verbs.h
 */
public final class LibIbverbs {
    /** The library; another file is loaded if the property {@code org.verbena.verbs.library} names one. */
    public static final NativeLibrary LIBRARY = NativeLibrary.load(
            System.getProperty("org.verbena.verbs.library", "libibverbs.so.1"),
            "Install rdma-core: apt-get install libibverbs1 ibverbs-providers, or dnf install libibverbs.");

    private static final MethodHandle GET_DEVICE_LIST = LIBRARY.functionOrThrower(
            "ibv_get_device_list", FunctionDescriptor.of(CStruct.PTR, CStruct.PTR), Errno.CAPTURE);

    /** {@code struct ibv_device **ibv_get_device_list(int *num_devices);} */
    public static long getDeviceList(MemorySegment errno, long numDevices) {
        try {
            return (long) GET_DEVICE_LIST.invokeExact(errno, numDevices);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final MethodHandle FREE_DEVICE_LIST =
            LIBRARY.functionOrThrower("ibv_free_device_list", FunctionDescriptor.ofVoid(CStruct.PTR));

    /** {@code void ibv_free_device_list(struct ibv_device **list);} */
    public static void freeDeviceList(long list) {
        try {
            FREE_DEVICE_LIST.invokeExact(list);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final MethodHandle GET_DEVICE_NAME =
            LIBRARY.functionOrThrower("ibv_get_device_name", FunctionDescriptor.of(CStruct.PTR, CStruct.PTR));

    /** {@code const char *ibv_get_device_name(struct ibv_device *device);} */
    public static long getDeviceName(long device) {
        try {
            return (long) GET_DEVICE_NAME.invokeExact(device);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final MethodHandle GET_DEVICE_INDEX =
            LIBRARY.functionOrThrower("ibv_get_device_index", FunctionDescriptor.of(CStruct.U32, CStruct.PTR));

    /** {@code int ibv_get_device_index(struct ibv_device *device);} */
    public static int getDeviceIndex(long device) {
        try {
            return (int) GET_DEVICE_INDEX.invokeExact(device);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final MethodHandle GET_DEVICE_GUID =
            LIBRARY.functionOrThrower("ibv_get_device_guid", FunctionDescriptor.of(CStruct.U64, CStruct.PTR));

    /** {@code __be64 ibv_get_device_guid(struct ibv_device *device);} */
    public static long getDeviceGuid(long device) {
        try {
            return (long) GET_DEVICE_GUID.invokeExact(device);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final MethodHandle OPEN_DEVICE = LIBRARY.functionOrThrower(
            "ibv_open_device", FunctionDescriptor.of(CStruct.PTR, CStruct.PTR), Errno.CAPTURE);

    /** {@code struct ibv_context *ibv_open_device(struct ibv_device *device);} */
    public static long openDevice(MemorySegment errno, long device) {
        try {
            return (long) OPEN_DEVICE.invokeExact(errno, device);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final MethodHandle CLOSE_DEVICE = LIBRARY.functionOrThrower(
            "ibv_close_device", FunctionDescriptor.of(CStruct.U32, CStruct.PTR), Errno.CAPTURE);

    /** {@code int ibv_close_device(struct ibv_context *context);} */
    public static int closeDevice(MemorySegment errno, long context) {
        try {
            return (int) CLOSE_DEVICE.invokeExact(errno, context);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final MethodHandle GET_ASYNC_EVENT = LIBRARY.functionOrThrower(
            "ibv_get_async_event", FunctionDescriptor.of(CStruct.U32, CStruct.PTR, CStruct.PTR), Errno.CAPTURE);

    /** {@code int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event);} */
    public static int getAsyncEvent(MemorySegment errno, long context, long event) {
        try {
            return (int) GET_ASYNC_EVENT.invokeExact(errno, context, event);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final MethodHandle ACK_ASYNC_EVENT =
            LIBRARY.functionOrThrower("ibv_ack_async_event", FunctionDescriptor.ofVoid(CStruct.PTR));

    /** {@code void ibv_ack_async_event(struct ibv_async_event *event);} */
    public static void ackAsyncEvent(long event) {
        try {
            ACK_ASYNC_EVENT.invokeExact(event);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final MethodHandle QUERY_DEVICE = LIBRARY.functionOrThrower(
            "ibv_query_device", FunctionDescriptor.of(CStruct.U32, CStruct.PTR, CStruct.PTR), Errno.CAPTURE);

    /** {@code int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *device_attr);} */
    public static int queryDevice(MemorySegment errno, long context, long deviceAttr) {
        try {
            return (int) QUERY_DEVICE.invokeExact(errno, context, deviceAttr);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final MethodHandle QUERY_PORT = LIBRARY.functionOrThrower(
            "ibv_query_port", FunctionDescriptor.of(CStruct.U32, CStruct.PTR, CStruct.U8, CStruct.PTR), Errno.CAPTURE);

    /** {@code int ibv_query_port(struct ibv_context *context, uint8_t port_num, struct _compat_ibv_port_attr *port_attr);} */
    public static int queryPort(MemorySegment errno, long context, byte portNum, long portAttr) {
        try {
            return (int) QUERY_PORT.invokeExact(errno, context, portNum, portAttr);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final MethodHandle QUERY_GID = LIBRARY.functionOrThrower(
            "ibv_query_gid",
            FunctionDescriptor.of(CStruct.U32, CStruct.PTR, CStruct.U8, CStruct.U32, CStruct.PTR),
            Errno.CAPTURE);

    /** {@code int ibv_query_gid(struct ibv_context *context, uint8_t port_num, int index, union ibv_gid *gid);} */
    public static int queryGid(MemorySegment errno, long context, byte portNum, int index, long gid) {
        try {
            return (int) QUERY_GID.invokeExact(errno, context, portNum, index, gid);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final MethodHandle QUERY_GID_EX = LIBRARY.functionOrThrower(
            "_ibv_query_gid_ex",
            FunctionDescriptor.of(
                    CStruct.U32, CStruct.PTR, CStruct.U32, CStruct.U32, CStruct.PTR, CStruct.U32, CStruct.U64));

    /** {@code int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port_num, uint32_t gid_index, struct ibv_gid_entry *entry, uint32_t flags, size_t entry_size);} */
    public static int queryGidEx(long context, int portNum, int gidIndex, long entry, int flags, long entrySize) {
        try {
            return (int) QUERY_GID_EX.invokeExact(context, portNum, gidIndex, entry, flags, entrySize);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final MethodHandle QUERY_GID_TABLE = LIBRARY.functionOrThrower(
            "_ibv_query_gid_table",
            FunctionDescriptor.of(CStruct.U64, CStruct.PTR, CStruct.PTR, CStruct.U64, CStruct.U32, CStruct.U64));

    /** {@code ssize_t _ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries, size_t max_entries, uint32_t flags, size_t entry_size);} */
    public static long queryGidTable(long context, long entries, long maxEntries, int flags, long entrySize) {
        try {
            return (long) QUERY_GID_TABLE.invokeExact(context, entries, maxEntries, flags, entrySize);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final MethodHandle QUERY_PKEY = LIBRARY.functionOrThrower(
            "ibv_query_pkey",
            FunctionDescriptor.of(CStruct.U32, CStruct.PTR, CStruct.U8, CStruct.U32, CStruct.PTR),
            Errno.CAPTURE);

    /** {@code int ibv_query_pkey(struct ibv_context *context, uint8_t port_num, int index, __be16 *pkey);} */
    public static int queryPkey(MemorySegment errno, long context, byte portNum, int index, long pkey) {
        try {
            return (int) QUERY_PKEY.invokeExact(errno, context, portNum, index, pkey);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final MethodHandle GET_PKEY_INDEX = LIBRARY.functionOrThrower(
            "ibv_get_pkey_index",
            FunctionDescriptor.of(CStruct.U32, CStruct.PTR, CStruct.U8, CStruct.U16),
            Errno.CAPTURE);

    /** {@code int ibv_get_pkey_index(struct ibv_context *context, uint8_t port_num, __be16 pkey);} */
    public static int getPkeyIndex(MemorySegment errno, long context, byte portNum, short pkey) {
        try {
            return (int) GET_PKEY_INDEX.invokeExact(errno, context, portNum, pkey);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final MethodHandle ALLOC_PD =
            LIBRARY.functionOrThrower("ibv_alloc_pd", FunctionDescriptor.of(CStruct.PTR, CStruct.PTR), Errno.CAPTURE);

    /** {@code struct ibv_pd *ibv_alloc_pd(struct ibv_context *context);} */
    public static long allocPd(MemorySegment errno, long context) {
        try {
            return (long) ALLOC_PD.invokeExact(errno, context);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final MethodHandle DEALLOC_PD =
            LIBRARY.functionOrThrower("ibv_dealloc_pd", FunctionDescriptor.of(CStruct.U32, CStruct.PTR));

    /** {@code int ibv_dealloc_pd(struct ibv_pd *pd);} */
    public static int deallocPd(long pd) {
        try {
            return (int) DEALLOC_PD.invokeExact(pd);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final MethodHandle REG_MR = LIBRARY.functionOrThrower(
            "ibv_reg_mr",
            FunctionDescriptor.of(CStruct.PTR, CStruct.PTR, CStruct.PTR, CStruct.U64, CStruct.U32),
            Errno.CAPTURE);

    /** {@code struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access);} */
    public static long regMr(MemorySegment errno, long pd, long addr, long length, int access) {
        try {
            return (long) REG_MR.invokeExact(errno, pd, addr, length, access);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final MethodHandle REG_MR_IOVA2 = LIBRARY.functionOrThrower(
            "ibv_reg_mr_iova2",
            FunctionDescriptor.of(CStruct.PTR, CStruct.PTR, CStruct.PTR, CStruct.U64, CStruct.U64, CStruct.U32),
            Errno.CAPTURE);

    /** {@code struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned int access);} */
    public static long regMrIova2(MemorySegment errno, long pd, long addr, long length, long iova, int access) {
        try {
            return (long) REG_MR_IOVA2.invokeExact(errno, pd, addr, length, iova, access);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final MethodHandle DEREG_MR =
            LIBRARY.functionOrThrower("ibv_dereg_mr", FunctionDescriptor.of(CStruct.U32, CStruct.PTR));

    /** {@code int ibv_dereg_mr(struct ibv_mr *mr);} */
    public static int deregMr(long mr) {
        try {
            return (int) DEREG_MR.invokeExact(mr);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final MethodHandle CREATE_COMP_CHANNEL = LIBRARY.functionOrThrower(
            "ibv_create_comp_channel", FunctionDescriptor.of(CStruct.PTR, CStruct.PTR), Errno.CAPTURE);

    /** {@code struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context);} */
    public static long createCompChannel(MemorySegment errno, long context) {
        try {
            return (long) CREATE_COMP_CHANNEL.invokeExact(errno, context);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final MethodHandle DESTROY_COMP_CHANNEL =
            LIBRARY.functionOrThrower("ibv_destroy_comp_channel", FunctionDescriptor.of(CStruct.U32, CStruct.PTR));

    /** {@code int ibv_destroy_comp_channel(struct ibv_comp_channel *channel);} */
    public static int destroyCompChannel(long channel) {
        try {
            return (int) DESTROY_COMP_CHANNEL.invokeExact(channel);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final MethodHandle CREATE_CQ = LIBRARY.functionOrThrower(
            "ibv_create_cq",
            FunctionDescriptor.of(CStruct.PTR, CStruct.PTR, CStruct.U32, CStruct.PTR, CStruct.PTR, CStruct.U32),
            Errno.CAPTURE);

    /** {@code struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context, struct ibv_comp_channel *channel, int comp_vector);} */
    public static long createCq(
            MemorySegment errno, long context, int cqe, long cqContext, long channel, int compVector) {
        try {
            return (long) CREATE_CQ.invokeExact(errno, context, cqe, cqContext, channel, compVector);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final MethodHandle RESIZE_CQ =
            LIBRARY.functionOrThrower("ibv_resize_cq", FunctionDescriptor.of(CStruct.U32, CStruct.PTR, CStruct.U32));

    /** {@code int ibv_resize_cq(struct ibv_cq *cq, int cqe);} */
    public static int resizeCq(long cq, int cqe) {
        try {
            return (int) RESIZE_CQ.invokeExact(cq, cqe);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final MethodHandle DESTROY_CQ =
            LIBRARY.functionOrThrower("ibv_destroy_cq", FunctionDescriptor.of(CStruct.U32, CStruct.PTR));

    /** {@code int ibv_destroy_cq(struct ibv_cq *cq);} */
    public static int destroyCq(long cq) {
        try {
            return (int) DESTROY_CQ.invokeExact(cq);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final MethodHandle GET_CQ_EVENT = LIBRARY.functionOrThrower(
            "ibv_get_cq_event",
            FunctionDescriptor.of(CStruct.U32, CStruct.PTR, CStruct.PTR, CStruct.PTR),
            Errno.CAPTURE);

    /** {@code int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context);} */
    public static int getCqEvent(MemorySegment errno, long channel, long cq, long cqContext) {
        try {
            return (int) GET_CQ_EVENT.invokeExact(errno, channel, cq, cqContext);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final MethodHandle ACK_CQ_EVENTS =
            LIBRARY.functionOrThrower("ibv_ack_cq_events", FunctionDescriptor.ofVoid(CStruct.PTR, CStruct.U32));

    /** {@code void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int nevents);} */
    public static void ackCqEvents(long cq, int nevents) {
        try {
            ACK_CQ_EVENTS.invokeExact(cq, nevents);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final MethodHandle CREATE_SRQ = LIBRARY.functionOrThrower(
            "ibv_create_srq", FunctionDescriptor.of(CStruct.PTR, CStruct.PTR, CStruct.PTR), Errno.CAPTURE);

    /** {@code struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *srq_init_attr);} */
    public static long createSrq(MemorySegment errno, long pd, long srqInitAttr) {
        try {
            return (long) CREATE_SRQ.invokeExact(errno, pd, srqInitAttr);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final MethodHandle MODIFY_SRQ = LIBRARY.functionOrThrower(
            "ibv_modify_srq", FunctionDescriptor.of(CStruct.U32, CStruct.PTR, CStruct.PTR, CStruct.U32));

    /** {@code int ibv_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *srq_attr, int srq_attr_mask);} */
    public static int modifySrq(long srq, long srqAttr, int srqAttrMask) {
        try {
            return (int) MODIFY_SRQ.invokeExact(srq, srqAttr, srqAttrMask);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final MethodHandle QUERY_SRQ =
            LIBRARY.functionOrThrower("ibv_query_srq", FunctionDescriptor.of(CStruct.U32, CStruct.PTR, CStruct.PTR));

    /** {@code int ibv_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *srq_attr);} */
    public static int querySrq(long srq, long srqAttr) {
        try {
            return (int) QUERY_SRQ.invokeExact(srq, srqAttr);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final MethodHandle DESTROY_SRQ =
            LIBRARY.functionOrThrower("ibv_destroy_srq", FunctionDescriptor.of(CStruct.U32, CStruct.PTR));

    /** {@code int ibv_destroy_srq(struct ibv_srq *srq);} */
    public static int destroySrq(long srq) {
        try {
            return (int) DESTROY_SRQ.invokeExact(srq);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final MethodHandle CREATE_QP = LIBRARY.functionOrThrower(
            "ibv_create_qp", FunctionDescriptor.of(CStruct.PTR, CStruct.PTR, CStruct.PTR), Errno.CAPTURE);

    /** {@code struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *qp_init_attr);} */
    public static long createQp(MemorySegment errno, long pd, long qpInitAttr) {
        try {
            return (long) CREATE_QP.invokeExact(errno, pd, qpInitAttr);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final MethodHandle MODIFY_QP = LIBRARY.functionOrThrower(
            "ibv_modify_qp", FunctionDescriptor.of(CStruct.U32, CStruct.PTR, CStruct.PTR, CStruct.U32));

    /** {@code int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask);} */
    public static int modifyQp(long qp, long attr, int attrMask) {
        try {
            return (int) MODIFY_QP.invokeExact(qp, attr, attrMask);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final MethodHandle QUERY_QP = LIBRARY.functionOrThrower(
            "ibv_query_qp", FunctionDescriptor.of(CStruct.U32, CStruct.PTR, CStruct.PTR, CStruct.U32, CStruct.PTR));

    /** {@code int ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask, struct ibv_qp_init_attr *init_attr);} */
    public static int queryQp(long qp, long attr, int attrMask, long initAttr) {
        try {
            return (int) QUERY_QP.invokeExact(qp, attr, attrMask, initAttr);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final MethodHandle DESTROY_QP =
            LIBRARY.functionOrThrower("ibv_destroy_qp", FunctionDescriptor.of(CStruct.U32, CStruct.PTR));

    /** {@code int ibv_destroy_qp(struct ibv_qp *qp);} */
    public static int destroyQp(long qp) {
        try {
            return (int) DESTROY_QP.invokeExact(qp);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private LibIbverbs() {}
}
