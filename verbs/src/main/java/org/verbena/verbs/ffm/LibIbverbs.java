package org.verbena.verbs.ffm;

import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.MemorySegment;

/**
 * The functions that libibverbs exports. A function that the installed version lacks throws {@link
 * UnsupportedOperationException} when called. Those that set {@code errno} take the segment that receives it first.
 * Source: infiniband/verbs.h
 */
public final class LibIbverbs {
    /** The library; another file is loaded if the property {@code org.verbena.verbs.library} names one. */
    public static final NativeLibrary LIBRARY = NativeLibrary.load(
            System.getProperty("org.verbena.verbs.library", "libibverbs.so.1"),
            "Install rdma-core: apt-get install libibverbs1 ibverbs-providers, or dnf install libibverbs.");

    private static final NativeFunction GET_DEVICE_LIST = LIBRARY.functionOrThrower(
            "ibv_get_device_list", FunctionDescriptor.of(CStruct.PTR, CStruct.PTR), Errno.CAPTURE);

    /** {@code struct ibv_device **ibv_get_device_list(int *num_devices);} */
    public static long getDeviceList(MemorySegment errno, long numDevices) {
        try {
            return (long) GET_DEVICE_LIST.handle().invokeExact(GET_DEVICE_LIST.address(), errno, numDevices);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final NativeFunction FREE_DEVICE_LIST =
            LIBRARY.functionOrThrower("ibv_free_device_list", FunctionDescriptor.ofVoid(CStruct.PTR));

    /** {@code void ibv_free_device_list(struct ibv_device **list);} */
    public static void freeDeviceList(long list) {
        try {
            FREE_DEVICE_LIST.handle().invokeExact(FREE_DEVICE_LIST.address(), list);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final NativeFunction GET_DEVICE_NAME =
            LIBRARY.functionOrThrower("ibv_get_device_name", FunctionDescriptor.of(CStruct.PTR, CStruct.PTR));

    /** {@code const char *ibv_get_device_name(struct ibv_device *device);} */
    public static long getDeviceName(long device) {
        try {
            return (long) GET_DEVICE_NAME.handle().invokeExact(GET_DEVICE_NAME.address(), device);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final NativeFunction GET_DEVICE_INDEX =
            LIBRARY.functionOrThrower("ibv_get_device_index", FunctionDescriptor.of(CStruct.U32, CStruct.PTR));

    /** {@code int ibv_get_device_index(struct ibv_device *device);} */
    public static int getDeviceIndex(long device) {
        try {
            return (int) GET_DEVICE_INDEX.handle().invokeExact(GET_DEVICE_INDEX.address(), device);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final NativeFunction GET_DEVICE_GUID =
            LIBRARY.functionOrThrower("ibv_get_device_guid", FunctionDescriptor.of(CStruct.U64, CStruct.PTR));

    /** {@code __be64 ibv_get_device_guid(struct ibv_device *device);} */
    public static long getDeviceGuid(long device) {
        try {
            return (long) GET_DEVICE_GUID.handle().invokeExact(GET_DEVICE_GUID.address(), device);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final NativeFunction OPEN_DEVICE = LIBRARY.functionOrThrower(
            "ibv_open_device", FunctionDescriptor.of(CStruct.PTR, CStruct.PTR), Errno.CAPTURE);

    /** {@code struct ibv_context *ibv_open_device(struct ibv_device *device);} */
    public static long openDevice(MemorySegment errno, long device) {
        try {
            return (long) OPEN_DEVICE.handle().invokeExact(OPEN_DEVICE.address(), errno, device);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final NativeFunction CLOSE_DEVICE = LIBRARY.functionOrThrower(
            "ibv_close_device", FunctionDescriptor.of(CStruct.U32, CStruct.PTR), Errno.CAPTURE);

    /** {@code int ibv_close_device(struct ibv_context *context);} */
    public static int closeDevice(MemorySegment errno, long context) {
        try {
            return (int) CLOSE_DEVICE.handle().invokeExact(CLOSE_DEVICE.address(), errno, context);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final NativeFunction GET_ASYNC_EVENT = LIBRARY.functionOrThrower(
            "ibv_get_async_event", FunctionDescriptor.of(CStruct.U32, CStruct.PTR, CStruct.PTR), Errno.CAPTURE);

    /** {@code int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event);} */
    public static int getAsyncEvent(MemorySegment errno, long context, long event) {
        try {
            return (int) GET_ASYNC_EVENT.handle().invokeExact(GET_ASYNC_EVENT.address(), errno, context, event);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final NativeFunction ACK_ASYNC_EVENT =
            LIBRARY.functionOrThrower("ibv_ack_async_event", FunctionDescriptor.ofVoid(CStruct.PTR));

    /** {@code void ibv_ack_async_event(struct ibv_async_event *event);} */
    public static void ackAsyncEvent(long event) {
        try {
            ACK_ASYNC_EVENT.handle().invokeExact(ACK_ASYNC_EVENT.address(), event);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final NativeFunction QUERY_DEVICE = LIBRARY.functionOrThrower(
            "ibv_query_device", FunctionDescriptor.of(CStruct.U32, CStruct.PTR, CStruct.PTR), Errno.CAPTURE);

    /** {@code int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *device_attr);} */
    public static int queryDevice(MemorySegment errno, long context, long deviceAttr) {
        try {
            return (int) QUERY_DEVICE.handle().invokeExact(QUERY_DEVICE.address(), errno, context, deviceAttr);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final NativeFunction QUERY_PORT = LIBRARY.functionOrThrower(
            "ibv_query_port", FunctionDescriptor.of(CStruct.U32, CStruct.PTR, CStruct.U8, CStruct.PTR), Errno.CAPTURE);

    /**
     * {@code int ibv_query_port(struct ibv_context *context, uint8_t port_num, struct _compat_ibv_port_attr
     * *port_attr);}
     */
    public static int queryPort(MemorySegment errno, long context, byte portNum, long portAttr) {
        try {
            return (int) QUERY_PORT.handle().invokeExact(QUERY_PORT.address(), errno, context, portNum, portAttr);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final NativeFunction QUERY_PORT_SPEED = LIBRARY.functionOrThrower(
            "ibv_query_port_speed", FunctionDescriptor.of(CStruct.U32, CStruct.PTR, CStruct.U32, CStruct.PTR));

    /** Whether the library has {@link #queryPortSpeed}: from rdma-core 62 on. */
    public static boolean hasQueryPortSpeed() {
        return QUERY_PORT_SPEED.isPresent();
    }

    /**
     * {@code int ibv_query_port_speed(struct ibv_context *context, uint32_t port_num, uint64_t *port_speed);} Source:
     * ibv_query_port_speed(3)
     */
    public static int queryPortSpeed(long context, int portNum, long portSpeed) {
        try {
            return (int) QUERY_PORT_SPEED.handle().invokeExact(QUERY_PORT_SPEED.address(), context, portNum, portSpeed);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final NativeFunction QUERY_GID_EX = LIBRARY.functionOrThrower(
            "_ibv_query_gid_ex",
            FunctionDescriptor.of(
                    CStruct.U32, CStruct.PTR, CStruct.U32, CStruct.U32, CStruct.PTR, CStruct.U32, CStruct.U64));

    /**
     * {@code int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port_num, uint32_t gid_index, struct
     * ibv_gid_entry *entry, uint32_t flags, size_t entry_size);}
     */
    public static int queryGidEx(long context, int portNum, int gidIndex, long entry, int flags, long entrySize) {
        try {
            return (int) QUERY_GID_EX
                    .handle()
                    .invokeExact(QUERY_GID_EX.address(), context, portNum, gidIndex, entry, flags, entrySize);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final NativeFunction QUERY_GID_TABLE = LIBRARY.functionOrThrower(
            "_ibv_query_gid_table",
            FunctionDescriptor.of(CStruct.U64, CStruct.PTR, CStruct.PTR, CStruct.U64, CStruct.U32, CStruct.U64));

    /**
     * {@code ssize_t _ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries, size_t
     * max_entries, uint32_t flags, size_t entry_size);}
     */
    public static long queryGidTable(long context, long entries, long maxEntries, int flags, long entrySize) {
        try {
            return (long) QUERY_GID_TABLE
                    .handle()
                    .invokeExact(QUERY_GID_TABLE.address(), context, entries, maxEntries, flags, entrySize);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final NativeFunction QUERY_PKEY = LIBRARY.functionOrThrower(
            "ibv_query_pkey",
            FunctionDescriptor.of(CStruct.U32, CStruct.PTR, CStruct.U8, CStruct.U32, CStruct.PTR),
            Errno.CAPTURE);

    /** {@code int ibv_query_pkey(struct ibv_context *context, uint8_t port_num, int index, __be16 *pkey);} */
    public static int queryPkey(MemorySegment errno, long context, byte portNum, int index, long pkey) {
        try {
            return (int) QUERY_PKEY.handle().invokeExact(QUERY_PKEY.address(), errno, context, portNum, index, pkey);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final NativeFunction GET_PKEY_INDEX = LIBRARY.functionOrThrower(
            "ibv_get_pkey_index",
            FunctionDescriptor.of(CStruct.U32, CStruct.PTR, CStruct.U8, CStruct.U16),
            Errno.CAPTURE);

    /** {@code int ibv_get_pkey_index(struct ibv_context *context, uint8_t port_num, __be16 pkey);} */
    public static int getPkeyIndex(MemorySegment errno, long context, byte portNum, short pkey) {
        try {
            return (int) GET_PKEY_INDEX.handle().invokeExact(GET_PKEY_INDEX.address(), errno, context, portNum, pkey);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final NativeFunction ALLOC_PD =
            LIBRARY.functionOrThrower("ibv_alloc_pd", FunctionDescriptor.of(CStruct.PTR, CStruct.PTR), Errno.CAPTURE);

    /** {@code struct ibv_pd *ibv_alloc_pd(struct ibv_context *context);} */
    public static long allocPd(MemorySegment errno, long context) {
        try {
            return (long) ALLOC_PD.handle().invokeExact(ALLOC_PD.address(), errno, context);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final NativeFunction DEALLOC_PD =
            LIBRARY.functionOrThrower("ibv_dealloc_pd", FunctionDescriptor.of(CStruct.U32, CStruct.PTR));

    /** {@code int ibv_dealloc_pd(struct ibv_pd *pd);} */
    public static int deallocPd(long pd) {
        try {
            return (int) DEALLOC_PD.handle().invokeExact(DEALLOC_PD.address(), pd);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final NativeFunction REG_MR = LIBRARY.functionOrThrower(
            "ibv_reg_mr",
            FunctionDescriptor.of(CStruct.PTR, CStruct.PTR, CStruct.PTR, CStruct.U64, CStruct.U32),
            Errno.CAPTURE);

    /** {@code struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access);} */
    public static long regMr(MemorySegment errno, long pd, long addr, long length, int access) {
        try {
            return (long) REG_MR.handle().invokeExact(REG_MR.address(), errno, pd, addr, length, access);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final NativeFunction REG_MR_IOVA2 = LIBRARY.functionOrThrower(
            "ibv_reg_mr_iova2",
            FunctionDescriptor.of(CStruct.PTR, CStruct.PTR, CStruct.PTR, CStruct.U64, CStruct.U64, CStruct.U32),
            Errno.CAPTURE);

    /**
     * {@code struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned int
     * access);}
     */
    public static long regMrIova2(MemorySegment errno, long pd, long addr, long length, long iova, int access) {
        try {
            return (long)
                    REG_MR_IOVA2.handle().invokeExact(REG_MR_IOVA2.address(), errno, pd, addr, length, iova, access);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final NativeFunction DEREG_MR =
            LIBRARY.functionOrThrower("ibv_dereg_mr", FunctionDescriptor.of(CStruct.U32, CStruct.PTR));

    /** {@code int ibv_dereg_mr(struct ibv_mr *mr);} */
    public static int deregMr(long mr) {
        try {
            return (int) DEREG_MR.handle().invokeExact(DEREG_MR.address(), mr);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final NativeFunction CREATE_COMP_CHANNEL = LIBRARY.functionOrThrower(
            "ibv_create_comp_channel", FunctionDescriptor.of(CStruct.PTR, CStruct.PTR), Errno.CAPTURE);

    /** {@code struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context);} */
    public static long createCompChannel(MemorySegment errno, long context) {
        try {
            return (long) CREATE_COMP_CHANNEL.handle().invokeExact(CREATE_COMP_CHANNEL.address(), errno, context);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final NativeFunction DESTROY_COMP_CHANNEL =
            LIBRARY.functionOrThrower("ibv_destroy_comp_channel", FunctionDescriptor.of(CStruct.U32, CStruct.PTR));

    /** {@code int ibv_destroy_comp_channel(struct ibv_comp_channel *channel);} */
    public static int destroyCompChannel(long channel) {
        try {
            return (int) DESTROY_COMP_CHANNEL.handle().invokeExact(DESTROY_COMP_CHANNEL.address(), channel);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final NativeFunction CREATE_CQ = LIBRARY.functionOrThrower(
            "ibv_create_cq",
            FunctionDescriptor.of(CStruct.PTR, CStruct.PTR, CStruct.U32, CStruct.PTR, CStruct.PTR, CStruct.U32),
            Errno.CAPTURE);

    /**
     * {@code struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context, struct
     * ibv_comp_channel *channel, int comp_vector);}
     */
    public static long createCq(
            MemorySegment errno, long context, int cqe, long cqContext, long channel, int compVector) {
        try {
            return (long) CREATE_CQ
                    .handle()
                    .invokeExact(CREATE_CQ.address(), errno, context, cqe, cqContext, channel, compVector);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final NativeFunction RESIZE_CQ =
            LIBRARY.functionOrThrower("ibv_resize_cq", FunctionDescriptor.of(CStruct.U32, CStruct.PTR, CStruct.U32));

    /** {@code int ibv_resize_cq(struct ibv_cq *cq, int cqe);} */
    public static int resizeCq(long cq, int cqe) {
        try {
            return (int) RESIZE_CQ.handle().invokeExact(RESIZE_CQ.address(), cq, cqe);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final NativeFunction DESTROY_CQ =
            LIBRARY.functionOrThrower("ibv_destroy_cq", FunctionDescriptor.of(CStruct.U32, CStruct.PTR));

    /** {@code int ibv_destroy_cq(struct ibv_cq *cq);} */
    public static int destroyCq(long cq) {
        try {
            return (int) DESTROY_CQ.handle().invokeExact(DESTROY_CQ.address(), cq);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final NativeFunction GET_CQ_EVENT = LIBRARY.functionOrThrower(
            "ibv_get_cq_event",
            FunctionDescriptor.of(CStruct.U32, CStruct.PTR, CStruct.PTR, CStruct.PTR),
            Errno.CAPTURE);

    /** {@code int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context);} */
    public static int getCqEvent(MemorySegment errno, long channel, long cq, long cqContext) {
        try {
            return (int) GET_CQ_EVENT.handle().invokeExact(GET_CQ_EVENT.address(), errno, channel, cq, cqContext);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final NativeFunction ACK_CQ_EVENTS =
            LIBRARY.functionOrThrower("ibv_ack_cq_events", FunctionDescriptor.ofVoid(CStruct.PTR, CStruct.U32));

    /** {@code void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int nevents);} */
    public static void ackCqEvents(long cq, int nevents) {
        try {
            ACK_CQ_EVENTS.handle().invokeExact(ACK_CQ_EVENTS.address(), cq, nevents);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final NativeFunction CREATE_SRQ = LIBRARY.functionOrThrower(
            "ibv_create_srq", FunctionDescriptor.of(CStruct.PTR, CStruct.PTR, CStruct.PTR), Errno.CAPTURE);

    /** {@code struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *srq_init_attr);} */
    public static long createSrq(MemorySegment errno, long pd, long srqInitAttr) {
        try {
            return (long) CREATE_SRQ.handle().invokeExact(CREATE_SRQ.address(), errno, pd, srqInitAttr);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final NativeFunction MODIFY_SRQ = LIBRARY.functionOrThrower(
            "ibv_modify_srq", FunctionDescriptor.of(CStruct.U32, CStruct.PTR, CStruct.PTR, CStruct.U32));

    /** {@code int ibv_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *srq_attr, int srq_attr_mask);} */
    public static int modifySrq(long srq, long srqAttr, int srqAttrMask) {
        try {
            return (int) MODIFY_SRQ.handle().invokeExact(MODIFY_SRQ.address(), srq, srqAttr, srqAttrMask);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final NativeFunction QUERY_SRQ =
            LIBRARY.functionOrThrower("ibv_query_srq", FunctionDescriptor.of(CStruct.U32, CStruct.PTR, CStruct.PTR));

    /** {@code int ibv_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *srq_attr);} */
    public static int querySrq(long srq, long srqAttr) {
        try {
            return (int) QUERY_SRQ.handle().invokeExact(QUERY_SRQ.address(), srq, srqAttr);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final NativeFunction DESTROY_SRQ =
            LIBRARY.functionOrThrower("ibv_destroy_srq", FunctionDescriptor.of(CStruct.U32, CStruct.PTR));

    /** {@code int ibv_destroy_srq(struct ibv_srq *srq);} */
    public static int destroySrq(long srq) {
        try {
            return (int) DESTROY_SRQ.handle().invokeExact(DESTROY_SRQ.address(), srq);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final NativeFunction CREATE_QP = LIBRARY.functionOrThrower(
            "ibv_create_qp", FunctionDescriptor.of(CStruct.PTR, CStruct.PTR, CStruct.PTR), Errno.CAPTURE);

    /** {@code struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *qp_init_attr);} */
    public static long createQp(MemorySegment errno, long pd, long qpInitAttr) {
        try {
            return (long) CREATE_QP.handle().invokeExact(CREATE_QP.address(), errno, pd, qpInitAttr);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final NativeFunction MODIFY_QP = LIBRARY.functionOrThrower(
            "ibv_modify_qp", FunctionDescriptor.of(CStruct.U32, CStruct.PTR, CStruct.PTR, CStruct.U32));

    /** {@code int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask);} */
    public static int modifyQp(long qp, long attr, int attrMask) {
        try {
            return (int) MODIFY_QP.handle().invokeExact(MODIFY_QP.address(), qp, attr, attrMask);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final NativeFunction QUERY_QP = LIBRARY.functionOrThrower(
            "ibv_query_qp", FunctionDescriptor.of(CStruct.U32, CStruct.PTR, CStruct.PTR, CStruct.U32, CStruct.PTR));

    /**
     * {@code int ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask, struct ibv_qp_init_attr
     * *init_attr);}
     */
    public static int queryQp(long qp, long attr, int attrMask, long initAttr) {
        try {
            return (int) QUERY_QP.handle().invokeExact(QUERY_QP.address(), qp, attr, attrMask, initAttr);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final NativeFunction DESTROY_QP =
            LIBRARY.functionOrThrower("ibv_destroy_qp", FunctionDescriptor.of(CStruct.U32, CStruct.PTR));

    /** {@code int ibv_destroy_qp(struct ibv_qp *qp);} */
    public static int destroyQp(long qp) {
        try {
            return (int) DESTROY_QP.handle().invokeExact(DESTROY_QP.address(), qp);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final NativeFunction FORK_INIT =
            LIBRARY.functionOrThrower("ibv_fork_init", FunctionDescriptor.of(CStruct.U32), Errno.CAPTURE);

    /** {@code int ibv_fork_init(void);} */
    public static int forkInit(MemorySegment errno) {
        try {
            return (int) FORK_INIT.handle().invokeExact(FORK_INIT.address(), errno);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final NativeFunction IS_FORK_INITIALIZED =
            LIBRARY.functionOrThrower("ibv_is_fork_initialized", FunctionDescriptor.of(CStruct.U32));

    /** {@code enum ibv_fork_status ibv_is_fork_initialized(void);} */
    public static int isForkInitialized() {
        try {
            return (int) IS_FORK_INITIALIZED.handle().invokeExact(IS_FORK_INITIALIZED.address());
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final NativeFunction NODE_TYPE_STR =
            LIBRARY.functionOrThrower("ibv_node_type_str", FunctionDescriptor.of(CStruct.PTR, CStruct.U32));

    /** {@code const char *ibv_node_type_str(enum ibv_node_type node_type);} */
    public static long nodeTypeStr(int nodeType) {
        try {
            return (long) NODE_TYPE_STR.handle().invokeExact(NODE_TYPE_STR.address(), nodeType);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final NativeFunction PORT_STATE_STR =
            LIBRARY.functionOrThrower("ibv_port_state_str", FunctionDescriptor.of(CStruct.PTR, CStruct.U32));

    /** {@code const char *ibv_port_state_str(enum ibv_port_state port_state);} */
    public static long portStateStr(int portState) {
        try {
            return (long) PORT_STATE_STR.handle().invokeExact(PORT_STATE_STR.address(), portState);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final NativeFunction EVENT_TYPE_STR =
            LIBRARY.functionOrThrower("ibv_event_type_str", FunctionDescriptor.of(CStruct.PTR, CStruct.U32));

    /** {@code const char *ibv_event_type_str(enum ibv_event_type event);} */
    public static long eventTypeStr(int event) {
        try {
            return (long) EVENT_TYPE_STR.handle().invokeExact(EVENT_TYPE_STR.address(), event);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final NativeFunction WC_STATUS_STR =
            LIBRARY.functionOrThrower("ibv_wc_status_str", FunctionDescriptor.of(CStruct.PTR, CStruct.U32));

    /** {@code const char *ibv_wc_status_str(enum ibv_wc_status status);} */
    public static long wcStatusStr(int status) {
        try {
            return (long) WC_STATUS_STR.handle().invokeExact(WC_STATUS_STR.address(), status);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final NativeFunction RATE_TO_MULT =
            LIBRARY.functionOrThrower("ibv_rate_to_mult", FunctionDescriptor.of(CStruct.U32, CStruct.U32));

    /** {@code int ibv_rate_to_mult(enum ibv_rate rate);} */
    public static int rateToMult(int rate) {
        try {
            return (int) RATE_TO_MULT.handle().invokeExact(RATE_TO_MULT.address(), rate);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final NativeFunction MULT_TO_IBV_RATE =
            LIBRARY.functionOrThrower("mult_to_ibv_rate", FunctionDescriptor.of(CStruct.U32, CStruct.U32));

    /** {@code enum ibv_rate mult_to_ibv_rate(int mult);} */
    public static int multToIbvRate(int mult) {
        try {
            return (int) MULT_TO_IBV_RATE.handle().invokeExact(MULT_TO_IBV_RATE.address(), mult);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final NativeFunction RATE_TO_MBPS =
            LIBRARY.functionOrThrower("ibv_rate_to_mbps", FunctionDescriptor.of(CStruct.U32, CStruct.U32));

    /** {@code int ibv_rate_to_mbps(enum ibv_rate rate);} */
    public static int rateToMbps(int rate) {
        try {
            return (int) RATE_TO_MBPS.handle().invokeExact(RATE_TO_MBPS.address(), rate);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final NativeFunction MBPS_TO_IBV_RATE =
            LIBRARY.functionOrThrower("mbps_to_ibv_rate", FunctionDescriptor.of(CStruct.U32, CStruct.U32));

    /** {@code enum ibv_rate mbps_to_ibv_rate(int mbps);} */
    public static int mbpsToIbvRate(int mbps) {
        try {
            return (int) MBPS_TO_IBV_RATE.handle().invokeExact(MBPS_TO_IBV_RATE.address(), mbps);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final NativeFunction IMPORT_DEVICE = LIBRARY.functionOrThrower(
            "ibv_import_device", FunctionDescriptor.of(CStruct.PTR, CStruct.U32), Errno.CAPTURE);

    /** {@code struct ibv_context *ibv_import_device(int cmd_fd);} */
    public static long importDevice(MemorySegment errno, int cmdFd) {
        try {
            return (long) IMPORT_DEVICE.handle().invokeExact(IMPORT_DEVICE.address(), errno, cmdFd);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final NativeFunction IMPORT_PD = LIBRARY.functionOrThrower(
            "ibv_import_pd", FunctionDescriptor.of(CStruct.PTR, CStruct.PTR, CStruct.U32), Errno.CAPTURE);

    /** {@code struct ibv_pd *ibv_import_pd(struct ibv_context *context, uint32_t pd_handle);} */
    public static long importPd(MemorySegment errno, long context, int pdHandle) {
        try {
            return (long) IMPORT_PD.handle().invokeExact(IMPORT_PD.address(), errno, context, pdHandle);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final NativeFunction UNIMPORT_PD =
            LIBRARY.functionOrThrower("ibv_unimport_pd", FunctionDescriptor.ofVoid(CStruct.PTR));

    /** {@code void ibv_unimport_pd(struct ibv_pd *pd);} */
    public static void unimportPd(long pd) {
        try {
            UNIMPORT_PD.handle().invokeExact(UNIMPORT_PD.address(), pd);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final NativeFunction IMPORT_MR = LIBRARY.functionOrThrower(
            "ibv_import_mr", FunctionDescriptor.of(CStruct.PTR, CStruct.PTR, CStruct.U32), Errno.CAPTURE);

    /** {@code struct ibv_mr *ibv_import_mr(struct ibv_pd *pd, uint32_t mr_handle);} */
    public static long importMr(MemorySegment errno, long pd, int mrHandle) {
        try {
            return (long) IMPORT_MR.handle().invokeExact(IMPORT_MR.address(), errno, pd, mrHandle);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final NativeFunction UNIMPORT_MR =
            LIBRARY.functionOrThrower("ibv_unimport_mr", FunctionDescriptor.ofVoid(CStruct.PTR));

    /** {@code void ibv_unimport_mr(struct ibv_mr *mr);} */
    public static void unimportMr(long mr) {
        try {
            UNIMPORT_MR.handle().invokeExact(UNIMPORT_MR.address(), mr);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final NativeFunction IMPORT_DM = LIBRARY.functionOrThrower(
            "ibv_import_dm", FunctionDescriptor.of(CStruct.PTR, CStruct.PTR, CStruct.U32), Errno.CAPTURE);

    /** {@code struct ibv_dm *ibv_import_dm(struct ibv_context *context, uint32_t dm_handle);} */
    public static long importDm(MemorySegment errno, long context, int dmHandle) {
        try {
            return (long) IMPORT_DM.handle().invokeExact(IMPORT_DM.address(), errno, context, dmHandle);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final NativeFunction UNIMPORT_DM =
            LIBRARY.functionOrThrower("ibv_unimport_dm", FunctionDescriptor.ofVoid(CStruct.PTR));

    /** {@code void ibv_unimport_dm(struct ibv_dm *dm);} */
    public static void unimportDm(long dm) {
        try {
            UNIMPORT_DM.handle().invokeExact(UNIMPORT_DM.address(), dm);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final NativeFunction REG_MR_IOVA = LIBRARY.functionOrThrower(
            "ibv_reg_mr_iova",
            FunctionDescriptor.of(CStruct.PTR, CStruct.PTR, CStruct.PTR, CStruct.U64, CStruct.U64, CStruct.U32),
            Errno.CAPTURE);

    /**
     * {@code struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, int access);}
     */
    public static long regMrIova(MemorySegment errno, long pd, long addr, long length, long iova, int access) {
        try {
            return (long)
                    REG_MR_IOVA.handle().invokeExact(REG_MR_IOVA.address(), errno, pd, addr, length, iova, access);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final NativeFunction REG_DMABUF_MR = LIBRARY.functionOrThrower(
            "ibv_reg_dmabuf_mr",
            FunctionDescriptor.of(
                    CStruct.PTR, CStruct.PTR, CStruct.U64, CStruct.U64, CStruct.U64, CStruct.U32, CStruct.U32),
            Errno.CAPTURE);

    /**
     * {@code struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova, int fd,
     * int access);}
     */
    public static long regDmabufMr(
            MemorySegment errno, long pd, long offset, long length, long iova, int fd, int access) {
        try {
            return (long) REG_DMABUF_MR
                    .handle()
                    .invokeExact(REG_DMABUF_MR.address(), errno, pd, offset, length, iova, fd, access);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final NativeFunction REREG_MR = LIBRARY.functionOrThrower(
            "ibv_rereg_mr",
            FunctionDescriptor.of(
                    CStruct.U32, CStruct.PTR, CStruct.U32, CStruct.PTR, CStruct.PTR, CStruct.U64, CStruct.U32),
            Errno.CAPTURE);

    /**
     * {@code int ibv_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length, int access);}
     */
    public static int reregMr(MemorySegment errno, long mr, int flags, long pd, long addr, long length, int access) {
        try {
            return (int) REREG_MR.handle().invokeExact(REREG_MR.address(), errno, mr, flags, pd, addr, length, access);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final NativeFunction CREATE_AH = LIBRARY.functionOrThrower(
            "ibv_create_ah", FunctionDescriptor.of(CStruct.PTR, CStruct.PTR, CStruct.PTR), Errno.CAPTURE);

    /** {@code struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr);} */
    public static long createAh(MemorySegment errno, long pd, long attr) {
        try {
            return (long) CREATE_AH.handle().invokeExact(CREATE_AH.address(), errno, pd, attr);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final NativeFunction INIT_AH_FROM_WC = LIBRARY.functionOrThrower(
            "ibv_init_ah_from_wc",
            FunctionDescriptor.of(CStruct.U32, CStruct.PTR, CStruct.U8, CStruct.PTR, CStruct.PTR, CStruct.PTR),
            Errno.CAPTURE);

    /**
     * {@code int ibv_init_ah_from_wc(struct ibv_context *context, uint8_t port_num, struct ibv_wc *wc, struct ibv_grh
     * *grh, struct ibv_ah_attr *ah_attr);}
     */
    public static int initAhFromWc(MemorySegment errno, long context, byte portNum, long wc, long grh, long ahAttr) {
        try {
            return (int) INIT_AH_FROM_WC
                    .handle()
                    .invokeExact(INIT_AH_FROM_WC.address(), errno, context, portNum, wc, grh, ahAttr);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final NativeFunction CREATE_AH_FROM_WC = LIBRARY.functionOrThrower(
            "ibv_create_ah_from_wc",
            FunctionDescriptor.of(CStruct.PTR, CStruct.PTR, CStruct.PTR, CStruct.PTR, CStruct.U8),
            Errno.CAPTURE);

    /**
     * {@code struct ibv_ah *ibv_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc, struct ibv_grh *grh, uint8_t
     * port_num);}
     */
    public static long createAhFromWc(MemorySegment errno, long pd, long wc, long grh, byte portNum) {
        try {
            return (long)
                    CREATE_AH_FROM_WC.handle().invokeExact(CREATE_AH_FROM_WC.address(), errno, pd, wc, grh, portNum);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final NativeFunction DESTROY_AH =
            LIBRARY.functionOrThrower("ibv_destroy_ah", FunctionDescriptor.of(CStruct.U32, CStruct.PTR));

    /** {@code int ibv_destroy_ah(struct ibv_ah *ah);} */
    public static int destroyAh(long ah) {
        try {
            return (int) DESTROY_AH.handle().invokeExact(DESTROY_AH.address(), ah);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final NativeFunction ATTACH_MCAST = LIBRARY.functionOrThrower(
            "ibv_attach_mcast", FunctionDescriptor.of(CStruct.U32, CStruct.PTR, CStruct.PTR, CStruct.U16));

    /** {@code int ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid);} */
    public static int attachMcast(long qp, long gid, short lid) {
        try {
            return (int) ATTACH_MCAST.handle().invokeExact(ATTACH_MCAST.address(), qp, gid, lid);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final NativeFunction DETACH_MCAST = LIBRARY.functionOrThrower(
            "ibv_detach_mcast", FunctionDescriptor.of(CStruct.U32, CStruct.PTR, CStruct.PTR, CStruct.U16));

    /** {@code int ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid);} */
    public static int detachMcast(long qp, long gid, short lid) {
        try {
            return (int) DETACH_MCAST.handle().invokeExact(DETACH_MCAST.address(), qp, gid, lid);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final NativeFunction RESOLVE_ETH_L2_FROM_GID = LIBRARY.functionOrThrower(
            "ibv_resolve_eth_l2_from_gid",
            FunctionDescriptor.of(CStruct.U32, CStruct.PTR, CStruct.PTR, CStruct.PTR, CStruct.PTR),
            Errno.CAPTURE);

    /**
     * {@code int ibv_resolve_eth_l2_from_gid(struct ibv_context *context, struct ibv_ah_attr *attr, uint8_t *eth_mac,
     * uint16_t *vid);}
     */
    public static int resolveEthL2FromGid(MemorySegment errno, long context, long attr, long ethMac, long vid) {
        try {
            return (int) RESOLVE_ETH_L2_FROM_GID
                    .handle()
                    .invokeExact(RESOLVE_ETH_L2_FROM_GID.address(), errno, context, attr, ethMac, vid);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final NativeFunction SET_ECE =
            LIBRARY.functionOrThrower("ibv_set_ece", FunctionDescriptor.of(CStruct.U32, CStruct.PTR, CStruct.PTR));

    /** {@code int ibv_set_ece(struct ibv_qp *qp, struct ibv_ece *ece);} */
    public static int setEce(long qp, long ece) {
        try {
            return (int) SET_ECE.handle().invokeExact(SET_ECE.address(), qp, ece);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final NativeFunction QUERY_ECE =
            LIBRARY.functionOrThrower("ibv_query_ece", FunctionDescriptor.of(CStruct.U32, CStruct.PTR, CStruct.PTR));

    /** {@code int ibv_query_ece(struct ibv_qp *qp, struct ibv_ece *ece);} */
    public static int queryEce(long qp, long ece) {
        try {
            return (int) QUERY_ECE.handle().invokeExact(QUERY_ECE.address(), qp, ece);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final NativeFunction QP_TO_QP_EX =
            LIBRARY.functionOrThrower("ibv_qp_to_qp_ex", FunctionDescriptor.of(CStruct.PTR, CStruct.PTR));

    /** {@code struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *qp);} */
    public static long qpToQpEx(long qp) {
        try {
            return (long) QP_TO_QP_EX.handle().invokeExact(QP_TO_QP_EX.address(), qp);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final NativeFunction QUERY_QP_DATA_IN_ORDER = LIBRARY.functionOrThrower(
            "ibv_query_qp_data_in_order", FunctionDescriptor.of(CStruct.U32, CStruct.PTR, CStruct.U32, CStruct.U32));

    /** {@code int ibv_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op, uint32_t flags);} */
    public static int queryQpDataInOrder(long qp, int op, int flags) {
        try {
            return (int) QUERY_QP_DATA_IN_ORDER.handle().invokeExact(QUERY_QP_DATA_IN_ORDER.address(), qp, op, flags);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private LibIbverbs() {}
}
