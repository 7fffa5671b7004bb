package org.verbena.transport.verbs;

import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.verbena.cm.CmEvent;
import org.verbena.cm.ConnectionParameters;
import org.verbena.verbs.NativeRdmaException;
import org.verbena.verbs.ProtectionDomain;
import org.verbena.verbs.QueuePair;
import org.verbena.verbs.QueuePairOptions;

/**
 * An endpoint's part on a connection loop, see {@link SetupLoop}: how it meets its peer, and the life of its queue
 * pair. {@link ConnectionSetup} does it with rdma_cm, {@link ExchangeSetup} by hand. The drawing is at
 * {@link VerbsEndpoint}.
 *
 * <p>Confined to the connection loop's thread, unless noted otherwise. The endpoint asks for each step with {@link
 * #execute}, in order, so none meets an object that another one closes; the results go to the endpoint's loop.
 */
abstract class EndpointSetup {
    private final VerbsEndpoint endpoint;
    private final SetupLoop loop;

    /** Set when the endpoint drains, or there is no peer: steps of connecting that are still to come are left out. */
    private volatile boolean givenUp;

    /** What is being done, for the message of a failure. Written by both loops, in turns. */
    private volatile String step = "starting";

    private @Nullable QueuePair queuePair;

    EndpointSetup(VerbsEndpoint endpoint, SetupLoop loop) {
        this.endpoint = endpoint;
        this.loop = loop;
    }

    // ---- any thread

    /**
     * Does a step on the connection loop that it is on.
     *
     * @throws NativeRdmaException there is no connection loop, for there is no device
     */
    final void execute(Runnable stepOfThis) {
        loop.execute(() -> guarded(stepOfThis));
    }

    /** Whatever a step throws fails the connection at once. */
    final void guarded(Runnable stepOfThis) {
        try {
            stepOfThis.run();
        } catch (Throwable thrown) {
            fail(failureOf(NativeFailures.unchecked(thrown)));
        }
    }

    /** The connection loop that it is on. */
    final SetupLoop loop() {
        return loop;
    }

    /** Leaves out what is still to come of connecting. Either loop. */
    void giveUp() {
        givenUp = true;
    }

    final boolean isGivenUp() {
        return givenUp;
    }

    final void setStep(String what) {
        step = what;
    }

    final String step() {
        return step;
    }

    /** What is attempted, and the peer, for messages. */
    abstract String attempt();

    /** What is waited for once the queue pair is prepared, for messages. */
    abstract String waiting();

    /** The peer, for messages. */
    abstract String peer();

    /** Whether the end of the peer is reported. */
    abstract boolean reportsPeerEnd();

    /** Whether the peer's queue pair is known to take writes, with a key or of no bytes. */
    abstract boolean peerTakesWrites();

    final Throwable failureOf(RuntimeException refused) {
        return ConnectFailures.of(attempt() + " failed while " + step, refused);
    }

    final Throwable failureOf(CmEvent event) {
        return ConnectFailures.of(attempt() + " failed while " + step, event);
    }

    final void fail(Throwable cause) {
        endpoint.execute(() -> endpoint.refuse0(cause));
    }

    // ---- the connection loop: the steps, in their order

    /** Finds the device, and then makes the endpoint prepare. */
    abstract void begin();

    /** Makes the queue pair, which takes receives from now on. */
    abstract QueuePair make(VerbsDevice device, ProtectionDomain domain, QueuePairOptions wanted);

    final void createQueuePair(VerbsDevice device, ProtectionDomain domain, QueuePairOptions wanted) {
        if (givenUp) {
            return;
        }
        QueuePair made = make(device, domain, wanted);
        endpoint.execute(() -> endpoint.prepared0(made));
    }

    /** The queue pair exists, whether or not it takes receives yet: it is this part's to destroy. */
    final QueuePair keep(QueuePair made) {
        queuePair = made;
        return made;
    }

    final @Nullable QueuePair queuePair() {
        return queuePair;
    }

    /** Connects to the peer, or accepts it. */
    abstract void connectOrAccept(ConnectionParameters parameters);

    /** A message of the peer confirms the connection. */
    void confirm() {}

    // ---- the end

    /**
     * Notifies the peer, and moves the queue pair to its error state, so that it returns all work.
     *
     * @param rejection the answer to a peer whose request to connect was not answered yet
     */
    final void toErrorState(byte[] rejection) {
        try {
            notifyPeer(rejection);
            QueuePairEnding.toErrorState(queuePair, endpoint);
        } finally {
            endpoint.execute(endpoint::inErrorState0);
        }
    }

    /** The part of {@link #toErrorState} that concerns the peer. */
    abstract void notifyPeer(byte[] rejection);

    /** Destroys the queue pair, and what is left of the connection. */
    abstract void destroy();

    /** Destroys the queue pair, if there is one; then says whether it is gone. */
    final void closeQueuePair(Consumer<Boolean> then) {
        if (queuePair != null) {
            endpoint.endWindows();
        }
        QueuePairEnding.close(queuePair, endpoint, loop.loop().loop(), then);
    }
}
