package org.verbena.cm;

import org.verbena.verbs.ffm.Errno;

/** What an event's status and a call's errno mean, and what to do. */
final class CmStatus {
    private CmStatus() {}

    /** An event's status in words, with a remedy where there is one. Never empty. */
    static String describe(CmEventType type, int status) {
        if (status == 0) {
            return type.meaning();
        }
        if (status > 0) {
            return describePositive(type, status);
        }
        if (status == -1) {
            // librdmacm reports here what its own failed step returned: -1, with the reason in errno.
            return "status -1 (librdmacm could not bring the queue pair or id to its next state; the attributes or private"
                    + " data may not suit the device)";
        }
        int errno = -status;
        String remedy = switch (type) {
            case ADDR_ERROR ->
                switch (errno) {
                    case Errno.ETIMEDOUT ->
                        "no answer to the address resolution in time; is the peer up, and in the same network?";
                    case Errno.ENODEV ->
                        "no RDMA device has the interface that leads there; see `rdma link` and `ip route get`";
                    case Errno.ENETUNREACH, Errno.EHOSTUNREACH -> "no route leads there; see `ip route get`";
                    case Errno.EADDRNOTAVAIL -> "the local address is on no RDMA device";
                    default -> "";
                };
            case ROUTE_ERROR ->
                errno == Errno.ETIMEDOUT ? "the subnet manager did not answer in time" : "no path leads there";
            case REJECTED ->
                errno == Errno.ECONNREFUSED
                        ? "nobody listens on that port, or the application rejected it; its private data may say why"
                        : errno == Errno.ECONNRESET ? "the peer reset the connection during the handshake" : "";
            case UNREACHABLE ->
                errno == Errno.ETIMEDOUT
                        ? "the peer does not answer; is it up, and does a firewall pass its traffic"
                                + " (RoCE: UDP port 4791; iWARP: the TCP port itself)?"
                        : "";
            case CONNECT_ERROR -> errno == Errno.ETIMEDOUT ? "the peer stopped answering during the handshake" : "";
            case MULTICAST_ERROR -> "is the group's address a multicast address, and does the device have multicast?";
            default -> "";
        };
        return "status " + status + " (" + Errno.name(errno) + (remedy.isEmpty() ? "" : ": " + remedy) + ")";
    }

    private static String describePositive(CmEventType type, int status) {
        if (type == CmEventType.REJECTED) {
            RejectReason reason = RejectReason.of(status);
            return "reason " + status + (reason == null ? "" : " (" + reason + ": " + reason.meaning() + ")");
        }
        if (type == CmEventType.UNREACHABLE) {
            String sidr = switch (status) {
                case 1 -> "nobody listens on that port";
                case 2 -> "the application rejected it";
                case 3 -> "the peer has no queue pair for that service";
                case 4 -> "the service is elsewhere";
                case 5 -> "the peer has another version";
                default -> "";
            };
            return "status " + status + (sidr.isEmpty() ? "" : " (" + sidr + ")");
        }
        return "status " + status + " (" + Errno.name(status) + ")";
    }

    /** What usually causes an errno of a call, and what to do; empty if nothing is known. */
    static String hint(String call, int errno) {
        String function = call.indexOf('(') < 0 ? call : call.substring(0, call.indexOf('('));
        return switch (errno) {
            case Errno.ENODEV ->
                switch (function) {
                    case "rdma_create_event_channel", "rdma_create_id", "rdma_get_devices", "rdma_getaddrinfo" ->
                        "this machine has no RDMA device. Load a driver, or make a software device:"
                                + " modprobe rdma_rxe && rdma link add rxe0 type rxe netdev eth0";
                    default ->
                        "no RDMA device serves that address: see `rdma link` for the interfaces that have one, and `ip route get`"
                                + " for the one that leads there";
                };
            case Errno.EADDRNOTAVAIL ->
                function.equals("rdma_leave_multicast")
                        ? "the group was not joined on this id"
                        : "the address is on no interface of this machine, or on one without an RDMA device; see `ip address` and `rdma link`";
            case Errno.EADDRINUSE ->
                "another id is bound to that port: use another port, 0 for any, or set REUSEADDR on both";
            case Errno.EINVAL ->
                switch (function) {
                    case "rdma_connect", "rdma_accept" ->
                        "the id is not in the state for it, the queue pair is missing, or responder resources or initiator depth are"
                                + " over the device's limits";
                    case "rdma_create_qp", "rdma_create_qp_ex" ->
                        "an attribute is over the device's limits, the protection domain is another device's, or the id has a queue"
                                + " pair already";
                    case "rdma_resolve_addr", "rdma_bind_addr" ->
                        "the id is bound already, or the two addresses are of different families";
                    case "rdma_resolve_route", "rdma_listen", "rdma_disconnect", "rdma_reject", "rdma_establish" ->
                        "the id is not in the state for it";
                    default -> "";
                };
            case Errno.ENOENT, Errno.EACCES ->
                function.equals("rdma_create_event_channel")
                        ? "/dev/infiniband/rdma_cm cannot be opened. Load its module (modprobe rdma_ucm), and see that this user"
                                + " may read and write it"
                        : "";
            case Errno.EPERM ->
                function.equals("rdma_create_event_channel")
                        ? "the kernel has no version of the connection manager's interface that librdmacm supports, or access is denied;"
                                + " load rdma_ucm (modprobe rdma_ucm) and use a librdmacm as new as the kernel"
                        : "it needs a privilege that this process does not have (CAP_NET_ADMIN, CAP_NET_BIND_SERVICE or CAP_NET_RAW)";
            case Errno.ENOMEM ->
                "memory or a device limit ran out; if `ulimit -l` is small, raise it (memlock in /etc/security/limits.conf)";
            case Errno.EAGAIN ->
                switch (function) {
                    case "rdma_create_id", "rdma_create_qp", "rdma_create_qp_ex" ->
                        "the limit of this process's RDMA control group is reached: compare its rdma.current with rdma.max, and"
                                + " raise that or use fewer objects";
                    default -> "";
                };
            case Errno.EMFILE -> "this process has no descriptors left: raise `ulimit -n`";
            case Errno.ECONNREFUSED -> "nobody listens there, or the peer rejected the connection";
            case Errno.ETIMEDOUT -> "the peer does not answer";
            case Errno.ENETUNREACH, Errno.EHOSTUNREACH -> "no route leads there; see `ip route get`";
            case Errno.ENOSYS, Errno.EOPNOTSUPP -> "the device or its kernel driver does not support it";
            case Errno.EBUSY ->
                function.equals("ibv_destroy_qp")
                        ? "the queue pair is attached to a multicast group: leave the group first, or detach what was attached by hand"
                        : "it is still in use";
            default -> "";
        };
    }
}
