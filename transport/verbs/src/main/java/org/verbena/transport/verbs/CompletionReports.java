package org.verbena.transport.verbs;

import org.jspecify.annotations.Nullable;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.WorkCompletionException;
import org.verbena.transport.WorkStatus;
import org.verbena.transport.spi.EndpointHandler;
import org.verbena.transport.spi.EndpointOptions;
import org.verbena.verbs.VerbsException;
import org.verbena.verbs.WorkCompletions;

/**
 * Reports the outcomes of an endpoint's work: completions come from {@link LoopDevice}, go through the path that they
 * belong to, and reach the handler; what a failure means for the connection goes to the endpoint. Not thread-safe;
 * confined to the loop's thread.
 */
final class CompletionReports implements LoopEndpoint.Reports, SendPath.Events, ReceivePath.Events {
    private final VerbsEndpoint endpoint;
    private final EndpointHandler handler;
    private final ReceivePath receives;

    /** Nothing can be sent before the device is known. */
    private SendPath sends;

    /** The peer has left, and what it has not taken comes back flushed. */
    private boolean hasPeerLeft;

    CompletionReports(VerbsEndpoint endpoint, EndpointOptions options, EndpointHandler handler) {
        this.endpoint = endpoint;
        this.handler = handler;
        sends = new SendPath(0, this);
        receives = new ReceivePath(options.sharedReceiveQueue() ? 0 : options.receiveDepth(), options.maxSges(), this);
    }

    /** The device is known, and how many sends may be out on it. */
    void prepare(VerbsDevice device, int sendDepth) {
        sends = SendPath.on(device, sendDepth, this);
    }

    SendPath sends() {
        return sends;
    }

    ReceivePath receives() {
        return receives;
    }

    // ---- from LoopDevice

    /** A slot of the send queue was done. */
    @Override
    public void onSendDone(int slot) {
        if (slot >= WorkRequestId.LAST_ASKING) {
            onOwn(slot, WorkStatus.SUCCESS, 0);
            return;
        }
        if (!sends.isOut(slot)) {
            strayCompletion("send", slot);
            return;
        }
        endpoint.noteProgress();
        sends.onDone(slot);
    }

    /** Work that nobody has posted but this module. */
    private void onOwn(int slot, WorkStatus status, int vendorError) {
        if (slot == WorkRequestId.BINDING) {
            endpoint.onBinding0(status, vendorError);
            return;
        }
        sends.onAsked(slot);
        if (status != WorkStatus.SUCCESS) {
            endFailed("a write of no bytes", status, vendorError);
        }
        endpoint.noteProgress();
    }

    /** A slot of the send queue failed. */
    @Override
    public void onSendFailed(int slot, WorkStatus status, int vendorError) {
        if (slot >= WorkRequestId.LAST_ASKING) {
            onOwn(slot, status, vendorError);
            return;
        }
        if (!sends.isOut(slot)) {
            strayCompletion("send", slot);
            return;
        }
        if (hasPeerLeft && status == WorkStatus.FLUSHED) {
            endpoint.drain(new ConnectionException.Lost(lossDuring(sends.describe(slot))));
        }
        endFailed(sends.describe(slot), status, vendorError);
        sends.onFailed(slot, status);
    }

    /** The first part of a slot of the send queue failed; the second is still to come. */
    @Override
    public void onFirstPartFailed(int slot, WorkStatus status, int vendorError) {
        if (!sends.isOut(slot)) {
            strayCompletion("send", slot);
            return;
        }
        sends.onFirstPartFailed(slot, status);
        endFailed(sends.describe(slot), status, vendorError);
    }

    private void endFailed(String work, WorkStatus status, int vendorError) {
        if (status != WorkStatus.FLUSHED) {
            endpoint.drain(endpoint.explain(new WorkCompletionException(onConnection(work), status, vendorError)));
        } else if (endpoint.is(VerbsEndpoint.State.CONNECTED)) {
            // The peer moved the queue pair to its error state: over iWARP, nothing else shows that a TERMINATE has
            // come.
            endpoint.drain(endpoint.explain(new ConnectionException.Lost(
                    lossDuring(work), new WorkCompletionException(onConnection(work), status, vendorError))));
        }
        endpoint.noteProgress();
    }

    /** The peer has left, and completions may still come. */
    void peerLeaves() {
        hasPeerLeft = true;
    }

    /**
     * The peer has left, and all completions that had come are handled.
     *
     * @return what that means; null if it has taken all that was sent, so far as is known
     */
    @Nullable ConnectionException peerLeft() {
        peerLeaves();
        return sends.isCompletionDue() ? new ConnectionException.Lost(lossDuring(sends.describeOldest())) : null;
    }

    private String lossDuring(String work) {
        String problem = endpoint.portProblem();
        return endpoint.connection() + " was ended by the peer, its adapter or the network while "
                + onConnection(work) + " was out; if the peer's side has an error, that is the reason"
                + (problem == null ? "" : " (" + problem + ")");
    }

    private String onConnection(String work) {
        return work + " on " + endpoint.connection();
    }

    /** A receive has a message. */
    @Override
    public void onReceiveDone(int kind, int slot, WorkCompletions completions, int i) {
        endpoint.noteProgress();
        if (endpoint.isDelivering()) {
            receives.onDone(kind, slot, completions, i);
        } else if (endpoint.is(VerbsEndpoint.State.PREPARED)) {
            // The peer learned of the connection before this side: the event is still to come.
            receives.onEarly(kind, slot, completions, i);
        } else {
            receives.deliverEarly(false);
            receives.onFailed(kind, slot, WorkStatus.FLUSHED);
        }
    }

    /** A receive failed or was flushed. */
    @Override
    public void onReceiveFailed(int kind, int slot, WorkStatus status, int vendorError) {
        if (status != WorkStatus.FLUSHED) {
            endpoint.drain(
                    endpoint.explain(new WorkCompletionException(onConnection("a receive"), status, vendorError)));
        } else if (endpoint.is(VerbsEndpoint.State.CONNECTED)) {
            endpoint.drainFlushed();
        }
        endpoint.noteProgress();
        receives.deliverEarly(endpoint.isDelivering());
        receives.onFailed(kind, slot, status);
    }

    private void strayCompletion(String queue, int slot) {
        endpoint.drain(new IllegalStateException("the device completed slot " + slot + " of the " + queue + " queue of "
                + endpoint.connection() + ", where nothing was out, or out of order: report the driver"));
    }

    // ---- from the paths

    @Override
    public void onSendCompleted(long workId, WorkStatus status, int lengthBytes) {
        try {
            handler.onSendCompletion(endpoint, workId, status, lengthBytes);
        } catch (Throwable thrown) {
            endpoint.drain(thrown);
        }
    }

    @Override
    public void onReceiveCompleted(long workId, WorkStatus status, int lengthBytes, int flags, int immediate) {
        try {
            handler.onReceiveCompletion(endpoint, workId, status, lengthBytes, flags, immediate);
        } catch (Throwable thrown) {
            endpoint.drain(thrown);
        }
    }

    @Override
    public void onStrayReceive(int slot) {
        strayCompletion("receive", slot);
    }

    @Override
    public void onSendsRefused(int errno, int taken, int out) {
        endpoint.drain(new VerbsException(
                "ibv_post_send() on " + endpoint.connection(),
                errno,
                "the device took " + taken + " of " + out
                        + " work requests; those it did not take complete as FLUSHED"));
    }

    @Override
    public void onReceivesRefused(int errno, int taken, int out) {
        endpoint.drain(new VerbsException(
                "ibv_post_recv() on " + endpoint.connection(),
                errno,
                "the device took " + taken + " of " + out + " receives; those it did not take complete as FLUSHED"));
    }
}
