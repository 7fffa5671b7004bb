package org.verbena.transport.verbs;

import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.WorkCompletionException;
import org.verbena.verbs.AsyncEvent;
import org.verbena.verbs.NativeRdmaException;
import org.verbena.verbs.VerbsObject;
import org.verbena.verbs.device.PortState;

/**
 * What a device's asynchronous events mean for the endpoints on it, and for the causes of connections that break. Any
 * thread, unless it says otherwise.
 */
final class DeviceEvents {
    private static final Logger LOG = LoggerFactory.getLogger(DeviceEvents.class);

    private final VerbsDevice device;
    private final VerbsDevices devices;

    /** Endpoints by their queue pair, which their events name. */
    private final ConcurrentHashMap<VerbsObject, LoopEndpoint> endpoints = new ConcurrentHashMap<>();

    /**
     * What is wrong with ports now, by their numbers, for the causes of connections that break. Written by the
     * connection loop.
     */
    private final ConcurrentHashMap<Integer, String> portProblems = new ConcurrentHashMap<>();

    DeviceEvents(VerbsDevice device, VerbsDevices devices) {
        this.device = device;
        this.devices = devices;
    }

    void add(VerbsObject queuePair, LoopEndpoint endpoint) {
        endpoints.put(queuePair, endpoint);
    }

    void remove(VerbsObject queuePair) {
        endpoints.remove(queuePair);
    }

    /** What is wrong with the device or one of its ports now: null if nothing is. */
    @Nullable String portProblem(int number) {
        String what = device.loss();
        return what == null ? portProblems.get(number) : device.name() + " " + what;
    }

    /**
     * Dispatches an event to the endpoints that it concerns.
     *
     * @param event taken and acknowledged; on the connection loop's thread
     */
    void onAsyncEvent(AsyncEvent event) {
        switch (event.type()) {
            case QP_FATAL, QP_REQ_ERR, QP_ACCESS_ERR -> {
                LoopEndpoint endpoint = endpointOf(event);
                if (endpoint != null) {
                    endpoint.onDeviceFailure(
                            switch (event.type()) {
                                case QP_REQ_ERR -> "the peer sent an invalid request (QP_REQ_ERR)";
                                case QP_ACCESS_ERR ->
                                    "the peer asked for memory that it may not access (QP_ACCESS_ERR)";
                                default -> "the queue pair failed (QP_FATAL)";
                            });
                }
            }
            case QP_LAST_WQE_REACHED -> {
                LoopEndpoint endpoint = endpointOf(event);
                if (endpoint != null) {
                    endpoint.onLastReceiveTaken();
                }
            }
            case CQ_ERR -> {
                LOG.error("A completion queue of {} overflowed; the connections on it are lost", device.name());
                device.onQueueError(event.source());
            }
            case SRQ_ERR -> {
                LOG.error("A shared receive queue of {} failed; the connections on it are lost", device.name());
                device.onQueueError(event.source());
            }
            case DEVICE_FATAL -> devices.lose0(device, "reported a fatal error (DEVICE_FATAL)");
            case PORT_ERR -> {
                portProblems.put(event.port(), portIsDown(event.port()));
                LOG.warn(
                        "Port {} of {} is down; connections over it fail when their retries are used up",
                        event.port(),
                        device.name());
            }
            case PORT_ACTIVE -> {
                portProblems.remove(event.port());
                LOG.info("Port {} of {} is up", event.port(), device.name());
            }
            case COMM_EST -> {
                LoopEndpoint endpoint = endpointOf(event);
                if (endpoint != null) {
                    endpoint.onCommunicationEstablished();
                }
            }
            case SQ_DRAINED, SRQ_LIMIT_REACHED, PATH_MIG, DEVICE_SPEED_CHANGE ->
                LOG.debug("{} on {}", event.type(), device.name());
            case PATH_MIG_ERR, LID_CHANGE, PKEY_CHANGE, SM_CHANGE, CLIENT_REREGISTER, GID_CHANGE, WQ_FATAL, UNKNOWN ->
                LOG.info("{} on port {} of {}", event.type(), event.port(), device.name());
        }
    }

    private String portIsDown(int number) {
        return "port " + number + " of " + device.name() + " is down";
    }

    /**
     * Queries the state of a port before its event arrives. The connection loop's thread.
     *
     * @param number the port
     */
    void queryPort(int number) {
        if (portProblem(number) != null) {
            return;
        }
        try {
            if (device.port(number).state() != PortState.ACTIVE) {
                portProblems.put(number, portIsDown(number));
            }
        } catch (NativeRdmaException gone) {
            LOG.debug("{} does not report the state of its port {}", device.name(), number, gone);
        }
    }

    /** Gives the device up, whose asynchronous events cannot be read any more. The connection loop's thread. */
    void onUnreadable(NativeRdmaException failure) {
        devices.lose0(device, "cannot be asked for its asynchronous events any more: " + failure.getMessage());
    }

    int endpoints() {
        return endpoints.size();
    }

    /** Nothing on the device works any more. */
    void lose(String what) {
        for (LoopEndpoint endpoint : endpoints.values()) {
            if (what.equals(VerbsDevice.REMOVED)) {
                endpoint.onDeviceRemoval();
            } else {
                endpoint.onDeviceFailure("the device " + what);
            }
        }
    }

    private @Nullable LoopEndpoint endpointOf(AsyncEvent event) {
        VerbsObject source = event.source();
        return source == null ? null : endpoints.get(source);
    }

    /**
     * Puts what is known about the device in front of a failure that it explains: that no answer came, or that this
     * side's queue pair failed, which rxe reports when its network interface is down and it finds no route for a
     * packet. From Linux 6.12 on, rxe then only reports that the work was flushed.
     */
    Throwable explain(Throwable why, int number, String connection) {
        String known = portProblem(number);
        WorkCompletionException failure = completionOf(why);
        if (known == null || failure == null) {
            return why;
        }
        return switch (failure.status()) {
            case TRANSPORT_RETRY_EXCEEDED, LOCAL_QUEUE_PAIR_OPERATION_ERROR, FLUSHED ->
                new ConnectionException.Lost(connection + " was lost: " + known, failure);
            default -> why;
        };
    }

    /** The failed completion that ended a connection; null if something else did. */
    static @Nullable WorkCompletionException completionOf(@Nullable Throwable why) {
        if (why instanceof ConnectionException.Lost lost) {
            return completionOf(lost.getCause());
        }
        return why instanceof WorkCompletionException failure ? failure : null;
    }
}
