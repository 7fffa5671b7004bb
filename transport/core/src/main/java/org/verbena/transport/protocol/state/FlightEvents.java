package org.verbena.transport.protocol.state;

import java.net.InetSocketAddress;
import jdk.jfr.Category;
import jdk.jfr.DataAmount;
import jdk.jfr.Description;
import jdk.jfr.Event;
import jdk.jfr.FlightRecorder;
import jdk.jfr.Label;
import jdk.jfr.Name;
import jdk.jfr.StackTrace;
import jdk.jfr.Threshold;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.MessageStatistics;
import org.verbena.transport.WorkStatus;
import org.verbena.transport.protocol.Negotiated;
import org.verbena.transport.protocol.Role;
import org.verbena.transport.spi.Endpoint;
import org.verbena.transport.spi.LoadedElsewhere;

/**
 * The events for the JDK's Flight Recorder. A disabled event costs one flag check and allocates nothing; the methods
 * that begin an event then return null, and those that end one accept it. {@code docs/observability.md} describes them.
 *
 * <p>Source: jdk.jfr, package summary
 */
public final class FlightEvents {
    /** To make the first event loads most of the Flight Recorder, which takes a tenth of a second and more. */
    private static final LoadedElsewhere LOADING = new LoadedElsewhere(() -> Prototypes.CONNECT.isEnabled());

    /** The number of nested causes that are recorded. */
    private static final int MAX_CAUSES = 8;

    private FlightEvents() {}

    /** One of each kind, to ask whether it is recorded. */
    static final class Prototypes {
        static final Thread LOADER = Thread.currentThread();
        static final Connect CONNECT = new Connect();
        static final Disconnect DISCONNECT = new Disconnect();
        static final CompletionError COMPLETION_ERROR = new CompletionError();
        static final CreditStall CREDIT_STALL = new CreditStall();
        static final Rendezvous RENDEZVOUS = new Rendezvous();

        private Prototypes() {}
    }

    /** Whether events can be recorded: where nobody has begun to record, not before their classes are loaded. */
    static boolean isReady() {
        return LOADING.isDone() || FlightRecorder.isInitialized();
    }

    /** The addresses of the connection. */
    abstract static class ConnectionEvent extends Event {
        @Label("Local Address")
        @Nullable String localAddress;

        @Label("Remote Address")
        @Nullable String remoteAddress;

        final void of(Peer peer) {
            Endpoint endpoint = peer.endpoint();
            if (endpoint != null) {
                remoteAddress = format(endpoint.remoteAddress());
                if (peer.isPrepared()) {
                    localAddress = format(endpoint.localAddress());
                }
            }
        }

        private static String format(@Nullable InetSocketAddress address) {
            return address == null
                    ? ""
                    : address.getAddress() == null
                            ? address.toString()
                            : address.getAddress().getHostAddress() + ":" + address.getPort();
        }
    }

    @Name("org.verbena.Connect")
    @Label("RDMA Connect")
    @Category({"Verbena"})
    @Description("A connection came up, handshake included, or did not")
    @StackTrace(false)
    public static final class Connect extends ConnectionEvent {
        @Label("Role")
        @Description("INITIATOR called connect, ACCEPTOR accepted")
        @Nullable String role;

        @Label("Succeeded")
        boolean succeeded;

        @Label("Cause")
        @Description("Why it did not come up")
        @Nullable String cause;

        @Label("Framing")
        @Nullable String framing;

        @Label("Peer Window")
        @Description("Messages that the peer accepts at first")
        int peerWindow;

        @Label("Rendezvous")
        @Description("Whether large messages are read from the sender's memory")
        boolean rendezvous;
    }

    @Name("org.verbena.Disconnect")
    @Label("RDMA Disconnect")
    @Category({"Verbena"})
    @Description("A connection that was up ended")
    @StackTrace(false)
    static final class Disconnect extends ConnectionEvent {
        @Label("In Good Order")
        @Description("Either end closed it; otherwise it was lost or aborted")
        boolean inGoodOrder;

        @Label("Cause")
        @Description("The first failure and its causes")
        @Nullable String cause;

        @Label("Failed Operations")
        @Description("Messages and one-sided operations that had no outcome yet, and failed with the cause")
        int failedOperations;

        @Label("Messages Sent")
        long messagesSent;

        @Label("Bytes Sent")
        @DataAmount
        long bytesSent;

        @Label("Messages Received")
        long messagesReceived;

        @Label("Bytes Received")
        @DataAmount
        long bytesReceived;

        @Label("Credit Stalls")
        long creditStalls;
    }

    @Name("org.verbena.CompletionError")
    @Label("RDMA Completion Error")
    @Category({"Verbena"})
    @Description("A work request completed with an error; those flushed because of it are not recorded")
    @StackTrace(false)
    static final class CompletionError extends ConnectionEvent {
        @Label("Work")
        @Description("The operation")
        @Nullable String work;

        @Label("Status")
        @Description("As enum ibv_wc_status")
        @Nullable String status;

        @Label("Explanation")
        @Nullable String explanation;
    }

    @Name("org.verbena.CreditStall")
    @Label("RDMA Credit Stall")
    @Category({"Verbena"})
    @Description("Messages waited for the peer's credits: it is slower than this side, or does not read")
    @Threshold("10 ms")
    @StackTrace(false)
    public static final class CreditStall extends ConnectionEvent {
        @Label("Queued Bytes")
        @Description("Bytes of messages without an outcome when it began")
        @DataAmount
        long queuedBytes;

        @Label("Ended By")
        @Description("What ended it: credits, or the end of the connection")
        @Nullable String endedBy;
    }

    @Name("org.verbena.Rendezvous")
    @Label("RDMA Rendezvous")
    @Category({"Verbena"})
    @Description("A large message was read from its sender's memory; from the advertisement to the last byte")
    @Threshold("10 ms")
    @StackTrace(false)
    public static final class Rendezvous extends ConnectionEvent {
        @Label("Direction")
        @Nullable String direction;

        @Label("Length")
        @DataAmount
        long lengthBytes;

        @Label("Pieces")
        @Description("Pieces of registered memory that it lay in")
        int pieces;
    }

    public static @Nullable Connect beginConnect() {
        if (!isReady() || !Prototypes.CONNECT.isEnabled()) {
            return null;
        }
        Connect event = new Connect();
        event.begin();
        return event;
    }

    /** Records the outcome of connecting. */
    public static void endConnect(
            @Nullable Connect begun, Peer peer, Role role, @Nullable Negotiated agreed, @Nullable Throwable cause) {
        if (!isReady() || !Prototypes.CONNECT.isEnabled()) {
            return;
        }
        Connect event = begun == null ? new Connect() : begun;
        event.of(peer);
        event.role = role.name();
        event.succeeded = agreed != null;
        if (agreed == null) {
            event.cause = cause == null ? "it was closed before it was established" : describe(cause);
        } else {
            event.framing = agreed.framing().name();
            event.peerWindow = agreed.peerWindow();
            event.rendezvous = agreed.rendezvous();
        }
        event.commit();
    }

    public static void disconnected(
            Peer peer, ConnectionCounters counters, @Nullable Throwable cause, int failedOperations) {
        if (!isReady() || !Prototypes.DISCONNECT.isEnabled()) {
            return;
        }
        MessageStatistics statistics = counters.snapshot();
        Disconnect event = new Disconnect();
        event.of(peer);
        event.inGoodOrder = cause == null;
        event.cause = cause == null ? null : describe(cause);
        event.failedOperations = failedOperations;
        event.messagesSent = statistics.messagesSent();
        event.bytesSent = statistics.bytesSent();
        event.messagesReceived = statistics.messagesReceived();
        event.bytesReceived = statistics.bytesReceived();
        event.creditStalls = statistics.creditStalls();
        event.commit();
    }

    /** A work request has failed, and was not just flushed. */
    static void completionError(Peer peer, String work, WorkStatus status) {
        if (!isReady() || !Prototypes.COMPLETION_ERROR.isEnabled()) {
            return;
        }
        CompletionError event = new CompletionError();
        event.of(peer);
        event.work = work;
        event.status = status.name();
        event.explanation = status.meaning();
        event.commit();
    }

    public static @Nullable CreditStall beginCreditStall(long queuedBytes) {
        if (!isReady() || !Prototypes.CREDIT_STALL.isEnabled()) {
            return null;
        }
        CreditStall event = new CreditStall();
        event.queuedBytes = queuedBytes;
        event.begin();
        return event;
    }

    public static void endCreditStall(@Nullable CreditStall event, Peer peer, boolean byEnd) {
        if (event == null) {
            return;
        }
        event.end();
        if (event.shouldCommit()) {
            event.of(peer);
            event.endedBy = byEnd ? "the end of the connection" : "credits";
            event.commit();
        }
    }

    public static @Nullable Rendezvous beginRendezvous(boolean sending, int lengthBytes, int pieces) {
        if (!isReady() || !Prototypes.RENDEZVOUS.isEnabled()) {
            return null;
        }
        Rendezvous event = new Rendezvous();
        event.direction = sending ? "sent" : "received";
        event.lengthBytes = lengthBytes;
        event.pieces = pieces;
        event.begin();
        return event;
    }

    /** A message, or a stretch of it, was advertised: begins its event, or adds the pieces. */
    public static @Nullable Rendezvous advertised(@Nullable Rendezvous begun, int lengthBytes, int pieces) {
        if (begun == null) {
            return beginRendezvous(true, lengthBytes, pieces);
        }
        begun.pieces += pieces;
        return begun;
    }

    public static void endRendezvous(@Nullable Rendezvous event, Peer peer) {
        if (event == null) {
            return;
        }
        event.end();
        if (event.shouldCommit()) {
            event.of(peer);
            event.commit();
        }
    }

    /** A throwable and its causes, in one line. */
    private static String describe(Throwable cause) {
        StringBuilder text = new StringBuilder();
        Throwable next = cause;
        for (int i = 0; next != null && i < MAX_CAUSES; i++) {
            text.append(i == 0 ? "" : "; because of ").append(next);
            next = next.getCause();
        }
        return text.toString();
    }
}
