package org.verbena.transport.spi;

import io.netty.channel.IoEventLoop;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * Records the events of a listener for a test thread to wait for, and checks them against the contract of {@link
 * ListenerHandler}.
 */
public class RecordingListenerHandler implements ListenerHandler {
    private final IoEventLoop loop;
    private final CompletableFuture<Listener> listening = new CompletableFuture<>();
    private final CompletableFuture<Optional<Throwable>> closed = new CompletableFuture<>();
    private final BlockingQueue<IncomingConnection> requests = new LinkedBlockingQueue<>();
    private final List<String> violations = new CopyOnWriteArrayList<>();
    private volatile @Nullable Consumer<IncomingConnection> whenRequested;

    /**
     * Makes one for one listener.
     *
     * @param loop the listener's loop
     */
    public RecordingListenerHandler(IoEventLoop loop) {
        this.loop = loop;
    }

    /**
     * What to do with requests, on the loop, instead of keeping them for {@link #awaitRequest()}.
     *
     * @param action accepts or rejects
     * @return this
     */
    public RecordingListenerHandler whenRequested(Consumer<IncomingConnection> action) {
        whenRequested = action;
        return this;
    }

    /**
     * Waits until it listens; fails at once, with its cause, if it closed instead.
     *
     * @return the listener
     */
    public Listener awaitListening() {
        Patience.until("listening or closed", () -> listening.isDone() || closed.isDone());
        if (!listening.isDone()) {
            throw new AssertionError(
                    "closed instead of listening", closed.join().orElse(null));
        }
        return listening.join();
    }

    /**
     * Waits for a connection request.
     *
     * @return the request
     */
    public IncomingConnection awaitRequest() {
        return Patience.take("a connection request", requests);
    }

    /**
     * A connection request that has come.
     *
     * @return null if there is none
     */
    public @Nullable IncomingConnection tryRequest() {
        return requests.poll();
    }

    /**
     * Waits for the end.
     *
     * @return its cause
     */
    public @Nullable Throwable awaitClosed() {
        return Patience.await("listener closed", closed).orElse(null);
    }

    /** Fails if the contract was broken. */
    public void assertNoViolations() {
        if (!violations.isEmpty()) {
            throw new AssertionError("the listener broke the contract: " + violations);
        }
    }

    private void check(String what) {
        if (!loop.inEventLoop()) {
            violations.add(what + " on thread " + Thread.currentThread().getName());
        }
        if (closed.isDone()) {
            violations.add(what + " after onClosed");
        }
    }

    @Override
    public void onListening(Listener listener) {
        check("onListening");
        if (!listening.complete(listener)) {
            violations.add("onListening twice");
        }
    }

    @Override
    public void onConnectRequest(Listener listener, IncomingConnection connection) {
        check("onConnectRequest");
        Consumer<IncomingConnection> action = whenRequested;
        if (action == null) {
            requests.add(connection);
        } else {
            action.accept(connection);
        }
    }

    @Override
    public void onClosed(Listener listener, @Nullable Throwable cause) {
        check("onClosed");
        closed.complete(Optional.ofNullable(cause));
    }
}
