package org.verbena.verbs;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.verbena.verbs.ffm.Errno;

/**
 * The hints of {@link VerbsException}: what usually makes a call fail with an errno, and what to do.
 */
enum Failures {
    /** A system without the RDMA subsystem. */
    NO_SUBSYSTEM(
            "ibv_get_device_list",
            Errno.ENOSYS,
            "the kernel has no RDMA subsystem loaded: modprobe ib_uverbs, then the adapter's driver or rdma_rxe"),
    /** The list may not be read. */
    LIST_DENIED(
            "ibv_get_device_list",
            Errno.EPERM,
            "this process may not see RDMA devices: check the container's device permissions"),
    /** The character device may not be opened. */
    OPEN_DENIED(
            "ibv_open_device",
            Errno.EACCES,
            "give this user read and write permission on /dev/infiniband/uverbs*, in containers with --device=/dev/infiniband"),
    /** The character device may not be opened. */
    OPEN_FORBIDDEN(
            "ibv_open_device",
            Errno.EPERM,
            "give this user read and write permission on /dev/infiniband/uverbs*, in containers with --device=/dev/infiniband"),
    /** The character device is not there. */
    OPEN_MISSING(
            "ibv_open_device",
            Errno.ENOENT,
            "/dev/infiniband/uverbs* is missing: modprobe ib_uverbs, and in containers pass --device=/dev/infiniband"),
    /** The device went away. */
    OPEN_GONE("ibv_open_device", Errno.ENODEV, "the device was removed; list the devices again"),
    /** The locked-memory limit. */
    REGISTER_LIMIT("ibv_reg_mr", Errno.ENOMEM, "the memory could not be pinned: " + Failures.MEMLOCK),
    /** The locked-memory limit, as some kernels put it. */
    REGISTER_DENIED("ibv_reg_mr", Errno.EPERM, "the memory may not be pinned: " + Failures.MEMLOCK),
    /** Rights that do not go together. */
    REGISTER_INVALID(
            "ibv_reg_mr",
            Errno.EINVAL,
            "the device does not support this combination of access flags: REMOTE_WRITE and REMOTE_ATOMIC need LOCAL_WRITE, HUGETLB needs"
                    + " ON_DEMAND"),
    /** Not memory, or read-only. */
    REGISTER_FAULT(
            "ibv_reg_mr",
            Errno.EFAULT,
            "the segment is not mapped for writing: read-only mappings cannot be registered with LOCAL_WRITE"),
    /** A feature the device lacks. */
    REGISTER_UNSUPPORTED(
            "ibv_reg_mr",
            Errno.EOPNOTSUPP,
            "the device does not support one of these access flags; see DeviceAttributes"),
    /** Too many entries, or out of memory. */
    CQ_LIMIT(
            "ibv_create_cq",
            Errno.EINVAL,
            "more entries than the device's maxCompletionQueueEntries, none, or a completion vector that it does not have"),
    /** Out of queues or locked memory. */
    CQ_MEMORY(
            "ibv_create_cq",
            Errno.ENOMEM,
            "the device has no completion queue left, or memory could not be pinned: " + Failures.MEMLOCK),
    /** Entries would be lost. */
    CQ_RESIZE(
            "ibv_resize_cq",
            Errno.EINVAL,
            "smaller than the number of completions that are waiting, or larger than the device allows"),
    /** A driver that cannot. */
    CQ_RESIZE_UNSUPPORTED(
            "ibv_resize_cq",
            Errno.EOPNOTSUPP,
            "the device cannot resize completion queues: create it large enough for all its queue pairs"),
    /** A driver that cannot, as older ones say. */
    CQ_RESIZE_MISSING(
            "ibv_resize_cq",
            Errno.ENOSYS,
            "the device cannot resize completion queues: create it large enough for all its queue pairs"),
    /** Over the limits. */
    QP_LIMIT(
            "ibv_create_qp",
            Errno.EINVAL,
            "depths, SGEs or inline bytes are over the device's limits (maxWorkRequests, maxSges), or the queue pair type does not fit"),
    /** Out of queue pairs or locked memory. */
    QP_MEMORY(
            "ibv_create_qp",
            Errno.ENOMEM,
            "the device has no queue pair left or cannot hold one this deep, or memory could not be pinned: "
                    + Failures.MEMLOCK),
    /** Raw packets. */
    QP_DENIED("ibv_create_qp", Errno.EPERM, "raw packets need CAP_NET_RAW"),
    /** A type the device does not have. */
    QP_UNSUPPORTED("ibv_create_qp", Errno.EOPNOTSUPP, "the device does not support this type of queue pair"),
    /** Attached to a group. */
    QP_ATTACHED(
            "ibv_destroy_qp",
            Errno.EBUSY,
            "the queue pair is attached to a multicast group: detach it first (QueuePair.detachMulticast)"),
    /** A wrong transition. */
    MODIFY_INVALID(
            "ibv_modify_qp",
            Errno.EINVAL,
            "the transition is not allowed from the current state, an attribute is missing or out of range, the GID index, port or"
                    + " P_Key index does not exist, or an alternate path was given on RoCE, which has none"),
    /** A path that cannot be resolved. */
    MODIFY_UNREACHABLE(
            "ibv_modify_qp",
            Errno.ETIMEDOUT,
            "the peer's address did not resolve: check that its GID belongs to a host that can be reached"),
    /** No route. */
    MODIFY_NO_ROUTE(
            "ibv_modify_qp",
            Errno.ENETUNREACH,
            "there is no route to the peer's GID: check the GID index and the network"),
    /** Queue full. */
    SEND_FULL(
            "ibv_post_send",
            Errno.ENOMEM,
            "the send queue is full: its slots are freed by polling completions only, inline sends included; signal at least one work"
                    + " request per queue depth, poll, or ask for a deeper queue"),
    /** Bad work request or state. */
    SEND_INVALID(
            "ibv_post_send",
            Errno.EINVAL,
            "the queue pair is not RTS (connect it first), or the work request does not fit it: opcode, number of SGEs, inline bytes"),
    /** Refused by siw for opcodes it lacks. */
    SEND_UNSUPPORTED("ibv_post_send", Errno.EOPNOTSUPP, "the device does not support this opcode"),
    /** siw without a connection. */
    SEND_NOT_CONNECTED("ibv_post_send", Errno.ENOTCONN, "the queue pair is not connected"),
    /** Queue full. */
    RECEIVE_FULL(
            "ibv_post_recv",
            Errno.ENOMEM,
            "the receive queue is full: poll completions first, or ask for a deeper queue"),
    /** Bad work request or state. */
    RECEIVE_INVALID(
            "ibv_post_recv",
            Errno.EINVAL,
            "the queue pair is still in RESET, has a shared receive queue (post there), or the work request has too many SGEs"),
    /** siw without a connection. */
    RECEIVE_NOT_CONNECTED("ibv_post_recv", Errno.ENOTCONN, "the queue pair is no longer connected"),
    /** Queue full. */
    SRQ_FULL(
            "ibv_post_srq_recv",
            Errno.ENOMEM,
            "the shared receive queue is full: poll completions first, or make it deeper"),
    /** A type the device does not have. */
    SRQ_TYPE(
            "ibv_create_srq_ex",
            Errno.EOPNOTSUPP,
            "the device or its driver does not support this function, or shared receive queues of this type: see"
                    + " Context.queryDeviceExtended, maxTags, and DeviceCapability.XRC"),
    /** List full. */
    TAGS_FULL(
            "ibv_post_srq_ops",
            Errno.ENOMEM,
            "the list of tags or of its operations is full: poll completions first, signal operations, or ask for more"),
    /** An operation the queue does not take. */
    TAGS_INVALID(
            "ibv_post_srq_ops",
            Errno.EINVAL,
            "more scatter/gather elements than the device's maxTagSges, or a queue that matches no tags"),
    /** Over the limits. */
    WQ_LIMIT(
            "ibv_create_wq",
            Errno.EINVAL,
            "depth, SGEs or the number of queues are over the device's limits (maxReceiveWorkQueues), or it does not support one of the"
                    + " flags"),
    /** Out of queues or locked memory. */
    WQ_MEMORY(
            "ibv_create_wq",
            Errno.ENOMEM,
            "the device has no receive work queue left, or memory could not be pinned: " + Failures.MEMLOCK),
    /** A wrong transition. */
    WQ_MODIFY(
            "ibv_modify_wq",
            Errno.EINVAL,
            "the step is not allowed from the current state, the assumed state is not the current one, or the device cannot change these"
                    + " flags"),
    /** Queue full. */
    WQ_FULL(
            "ibv_post_wq_recv",
            Errno.ENOMEM,
            "the receive work queue is full: poll completions first, or ask for a deeper queue"),
    /** Over the limits. */
    TABLE_LIMIT(
            "ibv_create_rwq_ind_table",
            Errno.EINVAL,
            "more entries than the device's maxIndirectionTableEntries, or a queue that cannot be in a table"),
    /** Raw packets. */
    FLOW_DENIED("ibv_create_flow", Errno.EPERM, "steering rules need CAP_NET_RAW"),
    /** A rule the device does not take. */
    FLOW_INVALID(
            "ibv_create_flow",
            Errno.EINVAL,
            "the queue pair is not of RAW_PACKET or UD, the port does not exist, or the device does not match such headers, masks or"
                    + " priorities"),
    /** Steering is switched off. */
    FLOW_OFF(
            "ibv_create_flow",
            Errno.ENXIO,
            "steering by the device is not switched on: see its driver's documentation (mlx4: log_num_mgm_entry_size=-1)"),
    /** Counters in use. */
    COUNTERS_BOUND(
            "ibv_attach_counters_point_flow",
            Errno.EBUSY,
            "a flow counts with them already: attach all kinds before the first flow is created"),
    /** A kind the device lacks. */
    COUNTERS_UNSUPPORTED(
            "ibv_attach_counters_point_flow",
            Errno.EOPNOTSUPP,
            "the device does not support this function, this kind of counter, or counters for flows that exist already"),
    /** Children in the kernel. */
    BUSY("*", Errno.EBUSY, "it is still in use: first close what depends on it, and acknowledge its events"),
    /** Device gone. */
    GONE("*", Errno.EIO, "the device failed or was removed: close everything on it and open it again"),
    /** Device gone. */
    NO_DEVICE("*", Errno.ENODEV, "the device failed or was removed: close everything on it and open it again"),
    /** A verb the provider lacks. */
    UNSUPPORTED("*", Errno.EOPNOTSUPP, "the device or its driver does not support this function"),
    /** A verb the provider lacks, as older ones say. */
    MISSING("*", Errno.ENOSYS, "the device or its driver does not support this function"),
    /** What the control group of a container answers. */
    GROUP_LIMIT(
            "*",
            Errno.EAGAIN,
            "the limit of this process's RDMA control group is reached: compare its rdma.current with rdma.max, and raise that or use"
                    + " fewer objects"),
    /** Out of descriptors. */
    DESCRIPTORS("*", Errno.EMFILE, "the process has no file descriptor left: raise ulimit -n");

    private static final String MEMLOCK =
            "raise the locked-memory limit (ulimit -l unlimited; for services LimitMEMLOCK=infinity; for"
                    + " containers --ulimit memlock=-1)";

    private static final Pattern MEMLOCK_LIMIT = Pattern.compile("Max locked memory\\s+(\\S+)");

    private final String call;
    private final int errno;
    private final String hint;

    Failures(String call, int errno, String hint) {
        this.call = call;
        this.errno = errno;
        this.hint = hint;
    }

    /**
     * Makes the exception of a failed call.
     *
     * @param function C's name of it
     * @param arguments the arguments that matter, as {@code length=4096, access=[LOCAL_WRITE]}; not null
     * @param errno what it returned
     * @return the exception
     */
    static VerbsException failure(String function, String arguments, int errno) {
        String hint = hint(function, errno);
        if (hint.endsWith(MEMLOCK)) {
            hint += memlockLimit();
        }
        return new VerbsException(function + "(" + arguments + ")", errno, hint);
    }

    /**
     * What usually causes a failure and what to do.
     *
     * @param function C's name of it
     * @param errno what it returned
     * @return a sentence, or an empty string
     */
    static String hint(String function, int errno) {
        for (Failures failure : values()) {
            if (failure.errno == errno && (failure.call.equals("*") || function.startsWith(failure.call))) {
                return failure.hint;
            }
        }
        return "";
    }

    /**
     * Puts sentences together.
     *
     * @param hint what usually causes a failure; may be empty
     * @param remark what else may
     * @return both
     */
    static String joined(String hint, String remark) {
        return hint.isEmpty() ? remark : hint + "; " + remark;
    }

    /**
     * The limit in force.
     *
     * @return a remark for the end of a sentence, empty where nothing is known
     */
    private static String memlockLimit() {
        try {
            Matcher limit = MEMLOCK_LIMIT.matcher(Files.readString(Path.of("/proc/self/limits")));
            if (!limit.find()) {
                return "";
            }
            String soft = limit.group(1);
            return "; it is " + (soft.equals("unlimited") ? soft : soft + " bytes") + " now";
        } catch (IOException unreadable) {
            return "";
        }
    }

    /** C's name of the function, or {@code *} for any. */
    String call() {
        return call;
    }

    /** The errno that it returns. */
    int errno() {
        return errno;
    }

    /** What to do. */
    String hint() {
        return hint;
    }
}
