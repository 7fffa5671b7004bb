package org.verbena.transport.protocol.connection;

import java.util.function.Consumer;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.EndpointCapabilities;
import org.verbena.transport.Framing;
import org.verbena.transport.protocol.MessageOptions;
import org.verbena.transport.protocol.Role;
import org.verbena.transport.protocol.TransferBudget;
import org.verbena.transport.protocol.framing.ControlFrames;
import org.verbena.transport.protocol.framing.FrameReceiver;
import org.verbena.transport.protocol.framing.Framer;
import org.verbena.transport.protocol.framing.MessageFramer;
import org.verbena.transport.protocol.framing.RawFramer;
import org.verbena.transport.protocol.framing.StreamFramer;
import org.verbena.transport.protocol.handshake.Handshake;
import org.verbena.transport.protocol.memory.MessageBuffers;
import org.verbena.transport.protocol.receiving.Inbox;
import org.verbena.transport.protocol.receiving.ReceiveWindow;
import org.verbena.transport.protocol.rendezvous.RendezvousReceiver;
import org.verbena.transport.protocol.rendezvous.RendezvousSender;
import org.verbena.transport.protocol.sending.FrameSender;
import org.verbena.transport.protocol.sending.FrameTap;
import org.verbena.transport.protocol.sending.Outbox;
import org.verbena.transport.protocol.sending.SendLedger;
import org.verbena.transport.protocol.sending.SendMemory;
import org.verbena.transport.protocol.sending.Transfers;
import org.verbena.transport.protocol.state.ConnectionCounters;
import org.verbena.transport.protocol.state.Lifecycle;
import org.verbena.transport.protocol.state.Peer;
import org.verbena.transport.protocol.wire.Credits;
import org.verbena.transport.protocol.wire.HeaderState;
import org.verbena.transport.spi.Endpoint;

/** The parts of one connection, each made with those that it uses. */
final class Parts {
    final Lifecycle life = new Lifecycle();
    final Peer peer = new Peer();
    final Credits credits = new Credits();
    final HeaderState header = new HeaderState();
    final ConnectionCounters counters = new ConnectionCounters(credits);
    final Callbacks callbacks;
    final FrameTap tap;
    final Transfers transfers;
    final Handshake handshake;
    final Outbox outbox;
    final SendLedger ledger;
    final SendMemory sendMemory;
    final ReceiveWindow window;
    final Inbox inbox;
    final FrameSender frames;
    final RendezvousSender rendezvousSender;
    final RendezvousReceiver rendezvous;
    final Framer framer;
    final OneSided oneSided;
    final ControlFrames control;
    final FrameReceiver frameReceiver;
    final Outflow outflow;
    final Timeouts timeouts;
    final Settling settling;

    private final MessageOptions options;

    @SuppressWarnings("NullAway.Init") // set by prepare
    MessageBuffers buffers;

    /** Made when they are first asked for: most connections have none. */
    private @Nullable Claims claims;

    Parts(
            MessageConnection connection,
            Role role,
            MessageOptions options,
            MessageListener listener,
            LongSupplier nanoClock) {
        this.options = options;
        boolean raw = options.framing() == Framing.RAW;
        boolean stream = options.framing() == Framing.STREAM;
        Consumer<Throwable> onThrown = connection::threw;
        callbacks = new Callbacks(connection, listener, onThrown);
        tap = new FrameTap(raw, onThrown);
        outbox = new Outbox(life, peer, counters, onThrown);
        transfers = new Transfers(this::wakeAfter, counters, connection::onMemoryFreed);
        ledger = new SendLedger(options, counters, transfers);
        sendMemory = new SendMemory(options, ledger, counters);
        window = new ReceiveWindow(options, credits, counters, header, connection);
        inbox = new Inbox(life, window, counters, callbacks, connection, stream, nanoClock);
        rendezvous = new RendezvousReceiver(peer, options, inbox, ledger, counters, header, this::retry, transfers);
        frames = new FrameSender(credits, ledger, counters, header, tap);
        rendezvousSender = new RendezvousSender(peer, options, ledger, sendMemory, frames, counters);
        handshake = new Handshake(role, options, life, peer, credits, ledger, window, inbox, frames, rendezvousSender);
        framer = switch (options.framing()) {
            case MESSAGE ->
                new MessageFramer(ledger, sendMemory, frames, window, inbox, handshake, rendezvousSender, rendezvous);
            case STREAM ->
                new StreamFramer(ledger, sendMemory, frames, window, inbox, handshake, rendezvousSender, rendezvous);
            case RAW -> new RawFramer(ledger, sendMemory, frames, window, inbox);
        };
        oneSided =
                new OneSided(life, outbox, ledger, credits, handshake, transfers, raw, () -> connection.settle(false));
        control = new ControlFrames(life, credits, ledger, frames, window, inbox, header, outbox, counters);
        frameReceiver = new FrameReceiver(
                life,
                handshake,
                credits,
                window,
                inbox,
                framer,
                rendezvousSender,
                control,
                tap,
                outbox::maybeComplete,
                connection::violated);
        timeouts = new Timeouts(this, role, options, nanoClock);
        outflow = new Outflow(outbox, ledger, framer, oneSided, header, this::retry, counters, peer);
        settling = new Settling(this, connection);
    }

    /** The endpoint exists: from now on there is memory, and receives are posted. */
    void prepare(Endpoint endpoint, MessageBuffers memory, TransferBudget.@Nullable Source budgets, Role role) {
        peer.setPrepared();
        EndpointCapabilities capabilities = endpoint.capabilities();
        buffers = memory;
        if (budgets != null) {
            transfers.prepare(budgets.forDomain(endpoint.memoryDomain()));
        }
        ledger.prepare(capabilities, memory, options.framing());
        sendMemory.prepare(endpoint, memory);
        inbox.prepare(memory);
        handshake.prepare(memory);
        learn(capabilities);
        window.prepare(endpoint, capabilities, memory, role == Role.ACCEPTOR);
        if (handshake.isAuthenticating()) {
            endpoint.allowRemoteAccess(false);
        }
    }

    /** What the endpoint can do; providers that learn from the peer know more when it is connected. */
    void learn(EndpointCapabilities capabilities) {
        handshake.prepare(capabilities);
        framer.prepare(capabilities);
        oneSided.prepare(capabilities);
        rendezvous.prepare(capabilities, buffers);
    }

    /** The claims of the connection. */
    Claims claims(MessageConnection connection) {
        Claims made = claims;
        if (made == null) {
            if (!(framer instanceof MessageFramer messages)) {
                throw new UnsupportedOperationException(
                        "claims need framing " + Framing.MESSAGE + ", not " + options.framing());
            }
            made = new Claims(connection, this, messages.claimed());
            claims = made;
        }
        return made;
    }

    /** Whether a claim was refused and there is still no room for it. */
    boolean areClaimsHeldUp() {
        return claims != null && claims.isHeldUp();
    }

    /** Whether a claim was refused, and no room for it was found since. */
    boolean isClaimRefused() {
        return claims != null && claims.isRefused();
    }

    /** The connection has ended. */
    void endClaims() {
        if (claims != null) {
            claims.abort();
        }
    }

    /**
     * Receives come first, then the frames whose headers promise them.
     *
     * @return whether the handshake is over, so that messages may follow
     */
    boolean postAhead(Endpoint endpoint) {
        if (window.isDue()) {
            if (window.post(endpoint, inbox.undelivered(), inbox.isReading())) {
                settling.pumpAgain();
            }
            if (handshake.isOver() && options.framing() != Framing.RAW) {
                window.grant(inbox.undelivered());
            }
        }
        handshake.post(endpoint);
        return handshake.isOver();
    }

    /** Whether nothing waits for what sends give back when they are done: slots of the send queue, and memory. */
    boolean isAtRest() {
        return handshake.isOver()
                && outbox.isNoneWaiting()
                && outbox.isWritable()
                && !outbox.isHeld()
                && !ledger.isStaged()
                && inbox.isEmpty()
                && !header.hasChanged()
                && !isClaimRefused();
    }

    /** Nothing reports when a device that has refused memory has some again. */
    void askAgainForMemory(MessageBuffers.Waiter waiter) {
        if ((window.isStarved() || inbox.isWaitingForMemory()) && buffers.mustAskAgain(waiter)) {
            retry();
        }
    }

    private void retry() {
        timeouts.retry();
    }

    private long wakeAfter(long nanos) {
        return timeouts.wakeAfter(nanos);
    }

    @Override
    public String toString() {
        return life + " with " + peer + ", work out " + ledger.out() + ", " + credits + ", " + outflow + ", " + inbox
                + ", " + window + settling;
    }
}
