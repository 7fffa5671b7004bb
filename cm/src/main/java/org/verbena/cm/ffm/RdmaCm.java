package org.verbena.cm.ffm;

import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.MemorySegment;
import org.verbena.verbs.ffm.CStruct;
import org.verbena.verbs.ffm.Errno;
import org.verbena.verbs.ffm.NativeFunction;
import org.verbena.verbs.ffm.NativeLibrary;

/**
 * The functions that librdmacm exports, rsockets aside. The first argument of every method is the segment that receives
 * errno ({@link Errno#newCapture}), the rest is as in C. Unless its prototype says otherwise, a function returns 0, or
 * -1 and sets errno. One that the installed version lacks throws {@link UnsupportedOperationException} when called.
 * Source: rdma/rdma_cma.h, rdma/rdma_verbs.h
 */
public final class RdmaCm {
    /** The library; another file is loaded if the property {@code org.verbena.cm.library} names one. */
    public static final NativeLibrary LIBRARY = load(System.getProperty("org.verbena.cm.library", "librdmacm.so.1"));

    /**
     * Not loaded if this module has no native access to what its functions return, even if libibverbs's module has it.
     */
    @SuppressWarnings("restricted") // whether this is allowed is the question
    private static NativeLibrary load(String soname) {
        try {
            MemorySegment ignored = MemorySegment.NULL.reinterpret(1);
        } catch (IllegalCallerException denied) {
            return NativeLibrary.denied(soname, RdmaCm.class.getModule());
        }
        return NativeLibrary.load(
                soname,
                "Install rdma-core's connection manager: apt-get install librdmacm1, or dnf install librdmacm.");
    }

    private static final NativeFunction CREATE_EVENT_CHANNEL =
            LIBRARY.functionOrThrower("rdma_create_event_channel", FunctionDescriptor.of(CStruct.PTR), Errno.CAPTURE);

    /** {@code struct rdma_event_channel *rdma_create_event_channel(void);} Source: rdma_create_event_channel(3) */
    public static long createEventChannel(MemorySegment errno) {
        try {
            return (long) CREATE_EVENT_CHANNEL.handle().invokeExact(CREATE_EVENT_CHANNEL.address(), errno);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final NativeFunction DESTROY_EVENT_CHANNEL = LIBRARY.functionOrThrower(
            "rdma_destroy_event_channel", FunctionDescriptor.ofVoid(CStruct.PTR), Errno.CAPTURE);

    /**
     * {@code void rdma_destroy_event_channel(struct rdma_event_channel *channel);} Source:
     * rdma_destroy_event_channel(3)
     */
    public static void destroyEventChannel(MemorySegment errno, long channel) {
        try {
            DESTROY_EVENT_CHANNEL.handle().invokeExact(DESTROY_EVENT_CHANNEL.address(), errno, channel);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final NativeFunction CREATE_ID = LIBRARY.functionOrThrower(
            "rdma_create_id",
            FunctionDescriptor.of(CStruct.U32, CStruct.PTR, CStruct.PTR, CStruct.PTR, CStruct.U32),
            Errno.CAPTURE);

    /**
     * {@code int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context, enum
     * rdma_port_space ps);} Source: rdma_create_id(3)
     */
    public static int createId(MemorySegment errno, long channel, long id, long context, int ps) {
        try {
            return (int) CREATE_ID.handle().invokeExact(CREATE_ID.address(), errno, channel, id, context, ps);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final NativeFunction DESTROY_ID = LIBRARY.functionOrThrower(
            "rdma_destroy_id", FunctionDescriptor.of(CStruct.U32, CStruct.PTR), Errno.CAPTURE);

    /** {@code int rdma_destroy_id(struct rdma_cm_id *id);} Source: rdma_destroy_id(3) */
    public static int destroyId(MemorySegment errno, long id) {
        try {
            return (int) DESTROY_ID.handle().invokeExact(DESTROY_ID.address(), errno, id);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final NativeFunction BIND_ADDR = LIBRARY.functionOrThrower(
            "rdma_bind_addr", FunctionDescriptor.of(CStruct.U32, CStruct.PTR, CStruct.PTR), Errno.CAPTURE);

    /** {@code int rdma_bind_addr(struct rdma_cm_id *id, struct sockaddr *addr);} Source: rdma_bind_addr(3) */
    public static int bindAddr(MemorySegment errno, long id, long addr) {
        try {
            return (int) BIND_ADDR.handle().invokeExact(BIND_ADDR.address(), errno, id, addr);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final NativeFunction RESOLVE_ADDR = LIBRARY.functionOrThrower(
            "rdma_resolve_addr",
            FunctionDescriptor.of(CStruct.U32, CStruct.PTR, CStruct.PTR, CStruct.PTR, CStruct.U32),
            Errno.CAPTURE);

    /**
     * {@code int rdma_resolve_addr(struct rdma_cm_id *id, struct sockaddr *src_addr, struct sockaddr *dst_addr, int
     * timeout_ms);} Source: rdma_resolve_addr(3)
     */
    public static int resolveAddr(MemorySegment errno, long id, long srcAddr, long dstAddr, int timeoutMillis) {
        try {
            return (int) RESOLVE_ADDR
                    .handle()
                    .invokeExact(RESOLVE_ADDR.address(), errno, id, srcAddr, dstAddr, timeoutMillis);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final NativeFunction RESOLVE_ROUTE = LIBRARY.functionOrThrower(
            "rdma_resolve_route", FunctionDescriptor.of(CStruct.U32, CStruct.PTR, CStruct.U32), Errno.CAPTURE);

    /** {@code int rdma_resolve_route(struct rdma_cm_id *id, int timeout_ms);} Source: rdma_resolve_route(3) */
    public static int resolveRoute(MemorySegment errno, long id, int timeoutMillis) {
        try {
            return (int) RESOLVE_ROUTE.handle().invokeExact(RESOLVE_ROUTE.address(), errno, id, timeoutMillis);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final NativeFunction CREATE_QP = LIBRARY.functionOrThrower(
            "rdma_create_qp", FunctionDescriptor.of(CStruct.U32, CStruct.PTR, CStruct.PTR, CStruct.PTR), Errno.CAPTURE);

    /**
     * {@code int rdma_create_qp(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_qp_init_attr *qp_init_attr);}
     * Source: rdma_create_qp(3)
     */
    public static int createQp(MemorySegment errno, long id, long pd, long qpInitAttr) {
        try {
            return (int) CREATE_QP.handle().invokeExact(CREATE_QP.address(), errno, id, pd, qpInitAttr);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final NativeFunction CREATE_QP_EX = LIBRARY.functionOrThrower(
            "rdma_create_qp_ex", FunctionDescriptor.of(CStruct.U32, CStruct.PTR, CStruct.PTR), Errno.CAPTURE);

    /**
     * {@code int rdma_create_qp_ex(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *qp_init_attr);} Source:
     * rdma_create_qp(3)
     */
    public static int createQpEx(MemorySegment errno, long id, long qpInitAttr) {
        try {
            return (int) CREATE_QP_EX.handle().invokeExact(CREATE_QP_EX.address(), errno, id, qpInitAttr);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final NativeFunction DESTROY_QP =
            LIBRARY.functionOrThrower("rdma_destroy_qp", FunctionDescriptor.ofVoid(CStruct.PTR), Errno.CAPTURE);

    /** {@code void rdma_destroy_qp(struct rdma_cm_id *id);} Source: rdma_destroy_qp(3) */
    public static void destroyQp(MemorySegment errno, long id) {
        try {
            DESTROY_QP.handle().invokeExact(DESTROY_QP.address(), errno, id);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final NativeFunction CONNECT = LIBRARY.functionOrThrower(
            "rdma_connect", FunctionDescriptor.of(CStruct.U32, CStruct.PTR, CStruct.PTR), Errno.CAPTURE);

    /** {@code int rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *conn_param);} Source: rdma_connect(3) */
    public static int connect(MemorySegment errno, long id, long connParam) {
        try {
            return (int) CONNECT.handle().invokeExact(CONNECT.address(), errno, id, connParam);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final NativeFunction ESTABLISH =
            LIBRARY.functionOrThrower("rdma_establish", FunctionDescriptor.of(CStruct.U32, CStruct.PTR), Errno.CAPTURE);

    /** {@code int rdma_establish(struct rdma_cm_id *id);} Source: rdma_establish(3) */
    public static int establish(MemorySegment errno, long id) {
        try {
            return (int) ESTABLISH.handle().invokeExact(ESTABLISH.address(), errno, id);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final NativeFunction LISTEN = LIBRARY.functionOrThrower(
            "rdma_listen", FunctionDescriptor.of(CStruct.U32, CStruct.PTR, CStruct.U32), Errno.CAPTURE);

    /** {@code int rdma_listen(struct rdma_cm_id *id, int backlog);} Source: rdma_listen(3) */
    public static int listen(MemorySegment errno, long id, int backlog) {
        try {
            return (int) LISTEN.handle().invokeExact(LISTEN.address(), errno, id, backlog);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final NativeFunction ACCEPT = LIBRARY.functionOrThrower(
            "rdma_accept", FunctionDescriptor.of(CStruct.U32, CStruct.PTR, CStruct.PTR), Errno.CAPTURE);

    /** {@code int rdma_accept(struct rdma_cm_id *id, struct rdma_conn_param *conn_param);} Source: rdma_accept(3) */
    public static int accept(MemorySegment errno, long id, long connParam) {
        try {
            return (int) ACCEPT.handle().invokeExact(ACCEPT.address(), errno, id, connParam);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final NativeFunction REJECT = LIBRARY.functionOrThrower(
            "rdma_reject", FunctionDescriptor.of(CStruct.U32, CStruct.PTR, CStruct.PTR, CStruct.U8), Errno.CAPTURE);

    /**
     * {@code int rdma_reject(struct rdma_cm_id *id, const void *private_data, uint8_t private_data_len);} Source:
     * rdma_reject(3)
     */
    public static int reject(MemorySegment errno, long id, long privateData, byte privateDataLen) {
        try {
            return (int) REJECT.handle().invokeExact(REJECT.address(), errno, id, privateData, privateDataLen);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final NativeFunction REJECT_ECE = LIBRARY.functionOrThrower(
            "rdma_reject_ece", FunctionDescriptor.of(CStruct.U32, CStruct.PTR, CStruct.PTR, CStruct.U8), Errno.CAPTURE);

    /**
     * {@code int rdma_reject_ece(struct rdma_cm_id *id, const void *private_data, uint8_t private_data_len);} Source:
     * rdma_reject(3)
     */
    public static int rejectEce(MemorySegment errno, long id, long privateData, byte privateDataLen) {
        try {
            return (int) REJECT_ECE.handle().invokeExact(REJECT_ECE.address(), errno, id, privateData, privateDataLen);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final NativeFunction NOTIFY = LIBRARY.functionOrThrower(
            "rdma_notify", FunctionDescriptor.of(CStruct.U32, CStruct.PTR, CStruct.U32), Errno.CAPTURE);

    /** {@code int rdma_notify(struct rdma_cm_id *id, enum ibv_event_type event);} Source: rdma_notify(3) */
    public static int notify(MemorySegment errno, long id, int event) {
        try {
            return (int) NOTIFY.handle().invokeExact(NOTIFY.address(), errno, id, event);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final NativeFunction DISCONNECT = LIBRARY.functionOrThrower(
            "rdma_disconnect", FunctionDescriptor.of(CStruct.U32, CStruct.PTR), Errno.CAPTURE);

    /** {@code int rdma_disconnect(struct rdma_cm_id *id);} Source: rdma_disconnect(3) */
    public static int disconnect(MemorySegment errno, long id) {
        try {
            return (int) DISCONNECT.handle().invokeExact(DISCONNECT.address(), errno, id);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final NativeFunction JOIN_MULTICAST = LIBRARY.functionOrThrower(
            "rdma_join_multicast",
            FunctionDescriptor.of(CStruct.U32, CStruct.PTR, CStruct.PTR, CStruct.PTR),
            Errno.CAPTURE);

    /**
     * {@code int rdma_join_multicast(struct rdma_cm_id *id, struct sockaddr *addr, void *context);} Source:
     * rdma_join_multicast(3)
     */
    public static int joinMulticast(MemorySegment errno, long id, long addr, long context) {
        try {
            return (int) JOIN_MULTICAST.handle().invokeExact(JOIN_MULTICAST.address(), errno, id, addr, context);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final NativeFunction JOIN_MULTICAST_EX = LIBRARY.functionOrThrower(
            "rdma_join_multicast_ex",
            FunctionDescriptor.of(CStruct.U32, CStruct.PTR, CStruct.PTR, CStruct.PTR),
            Errno.CAPTURE);

    /**
     * {@code int rdma_join_multicast_ex(struct rdma_cm_id *id, struct rdma_cm_join_mc_attr_ex *mc_join_attr, void
     * *context);} Source: rdma_join_multicast_ex(3)
     */
    public static int joinMulticastEx(MemorySegment errno, long id, long joinAttr, long context) {
        try {
            return (int)
                    JOIN_MULTICAST_EX.handle().invokeExact(JOIN_MULTICAST_EX.address(), errno, id, joinAttr, context);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final NativeFunction LEAVE_MULTICAST = LIBRARY.functionOrThrower(
            "rdma_leave_multicast", FunctionDescriptor.of(CStruct.U32, CStruct.PTR, CStruct.PTR), Errno.CAPTURE);

    /**
     * {@code int rdma_leave_multicast(struct rdma_cm_id *id, struct sockaddr *addr);} Source: rdma_leave_multicast(3)
     */
    public static int leaveMulticast(MemorySegment errno, long id, long addr) {
        try {
            return (int) LEAVE_MULTICAST.handle().invokeExact(LEAVE_MULTICAST.address(), errno, id, addr);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final NativeFunction GET_CM_EVENT = LIBRARY.functionOrThrower(
            "rdma_get_cm_event", FunctionDescriptor.of(CStruct.U32, CStruct.PTR, CStruct.PTR), Errno.CAPTURE);

    /**
     * {@code int rdma_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **event);} Source:
     * rdma_get_cm_event(3)
     */
    public static int getCmEvent(MemorySegment errno, long channel, long event) {
        try {
            return (int) GET_CM_EVENT.handle().invokeExact(GET_CM_EVENT.address(), errno, channel, event);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final NativeFunction ACK_CM_EVENT = LIBRARY.functionOrThrower(
            "rdma_ack_cm_event", FunctionDescriptor.of(CStruct.U32, CStruct.PTR), Errno.CAPTURE);

    /** {@code int rdma_ack_cm_event(struct rdma_cm_event *event);} Source: rdma_ack_cm_event(3) */
    public static int ackCmEvent(MemorySegment errno, long event) {
        try {
            return (int) ACK_CM_EVENT.handle().invokeExact(ACK_CM_EVENT.address(), errno, event);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final NativeFunction GET_DEVICES = LIBRARY.functionOrThrower(
            "rdma_get_devices", FunctionDescriptor.of(CStruct.PTR, CStruct.PTR), Errno.CAPTURE);

    /** {@code struct ibv_context **rdma_get_devices(int *num_devices);} Source: rdma_get_devices(3) */
    public static long getDevices(MemorySegment errno, long numDevices) {
        try {
            return (long) GET_DEVICES.handle().invokeExact(GET_DEVICES.address(), errno, numDevices);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final NativeFunction FREE_DEVICES =
            LIBRARY.functionOrThrower("rdma_free_devices", FunctionDescriptor.ofVoid(CStruct.PTR), Errno.CAPTURE);

    /** {@code void rdma_free_devices(struct ibv_context **list);} Source: rdma_free_devices(3) */
    public static void freeDevices(MemorySegment errno, long list) {
        try {
            FREE_DEVICES.handle().invokeExact(FREE_DEVICES.address(), errno, list);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final NativeFunction SET_OPTION = LIBRARY.functionOrThrower(
            "rdma_set_option",
            FunctionDescriptor.of(CStruct.U32, CStruct.PTR, CStruct.U32, CStruct.U32, CStruct.PTR, CStruct.SIZE),
            Errno.CAPTURE);

    /**
     * {@code int rdma_set_option(struct rdma_cm_id *id, int level, int optname, void *optval, size_t optlen);} Source:
     * rdma_set_option(3)
     */
    public static int setOption(MemorySegment errno, long id, int level, int optname, long optval, long optlen) {
        try {
            return (int)
                    SET_OPTION.handle().invokeExact(SET_OPTION.address(), errno, id, level, optname, optval, optlen);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final NativeFunction MIGRATE_ID = LIBRARY.functionOrThrower(
            "rdma_migrate_id", FunctionDescriptor.of(CStruct.U32, CStruct.PTR, CStruct.PTR), Errno.CAPTURE);

    /**
     * {@code int rdma_migrate_id(struct rdma_cm_id *id, struct rdma_event_channel *channel);} Source:
     * rdma_migrate_id(3)
     */
    public static int migrateId(MemorySegment errno, long id, long channel) {
        try {
            return (int) MIGRATE_ID.handle().invokeExact(MIGRATE_ID.address(), errno, id, channel);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final NativeFunction GETADDRINFO = LIBRARY.functionOrThrower(
            "rdma_getaddrinfo",
            FunctionDescriptor.of(CStruct.U32, CStruct.PTR, CStruct.PTR, CStruct.PTR, CStruct.PTR),
            Errno.CAPTURE);

    /**
     * {@code int rdma_getaddrinfo(const char *node, const char *service, const struct rdma_addrinfo *hints, struct
     * rdma_addrinfo **res);} Source: rdma_getaddrinfo(3)
     */
    public static int getaddrinfo(MemorySegment errno, long node, long service, long hints, long res) {
        try {
            return (int) GETADDRINFO.handle().invokeExact(GETADDRINFO.address(), errno, node, service, hints, res);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final NativeFunction FREEADDRINFO =
            LIBRARY.functionOrThrower("rdma_freeaddrinfo", FunctionDescriptor.ofVoid(CStruct.PTR), Errno.CAPTURE);

    /** {@code void rdma_freeaddrinfo(struct rdma_addrinfo *res);} Source: rdma_getaddrinfo(3) */
    public static void freeaddrinfo(MemorySegment errno, long res) {
        try {
            FREEADDRINFO.handle().invokeExact(FREEADDRINFO.address(), errno, res);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final NativeFunction INIT_QP_ATTR = LIBRARY.functionOrThrower(
            "rdma_init_qp_attr",
            FunctionDescriptor.of(CStruct.U32, CStruct.PTR, CStruct.PTR, CStruct.PTR),
            Errno.CAPTURE);

    /**
     * {@code int rdma_init_qp_attr(struct rdma_cm_id *id, struct ibv_qp_attr *qp_attr, int *qp_attr_mask);} Source:
     * rdma_init_qp_attr(3)
     */
    public static int initQpAttr(MemorySegment errno, long id, long qpAttr, long qpAttrMask) {
        try {
            return (int) INIT_QP_ATTR.handle().invokeExact(INIT_QP_ATTR.address(), errno, id, qpAttr, qpAttrMask);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final NativeFunction SET_LOCAL_ECE = LIBRARY.functionOrThrower(
            "rdma_set_local_ece", FunctionDescriptor.of(CStruct.U32, CStruct.PTR, CStruct.PTR), Errno.CAPTURE);

    /** {@code int rdma_set_local_ece(struct rdma_cm_id *id, struct ibv_ece *ece);} Source: rdma_set_local_ece(3) */
    public static int setLocalEce(MemorySegment errno, long id, long ece) {
        try {
            return (int) SET_LOCAL_ECE.handle().invokeExact(SET_LOCAL_ECE.address(), errno, id, ece);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final NativeFunction GET_REMOTE_ECE = LIBRARY.functionOrThrower(
            "rdma_get_remote_ece", FunctionDescriptor.of(CStruct.U32, CStruct.PTR, CStruct.PTR), Errno.CAPTURE);

    /** {@code int rdma_get_remote_ece(struct rdma_cm_id *id, struct ibv_ece *ece);} Source: rdma_get_remote_ece(3) */
    public static int getRemoteEce(MemorySegment errno, long id, long ece) {
        try {
            return (int) GET_REMOTE_ECE.handle().invokeExact(GET_REMOTE_ECE.address(), errno, id, ece);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private RdmaCm() {}
}
