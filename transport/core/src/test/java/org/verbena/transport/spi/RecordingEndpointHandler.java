package org.verbena.transport.spi;

import io.netty.channel.IoEventLoop;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BiConsumer;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.RegisteredMemory;
import org.verbena.transport.WorkStatus;

/**
 * Records the events of an endpoint for a test thread to wait for, and checks them against the contract of {@link
 * Endpoint} and {@link EndpointHandler}: callbacks on the loop's thread and never re-entrant, each at most as often as
 * promised, every accepted work request completed exactly once and in its queue's order, nothing after {@code
 * onDisconnected}. Breaches are in {@link #violations()}; a test ends with {@link #assertNoViolations()}.
 *
 * <p>Work must be posted through {@link #post}, {@link #postReceive} and {@link #call}, so that its completions can be
 * checked.
 */
public class RecordingEndpointHandler implements EndpointHandler {

    /**
     * One completion as it came.
     *
     * @param workId as posted
     * @param status how it ended
     * @param lengthBytes bytes moved or received
     * @param flags of {@link EndpointHandler#onReceiveCompletion}; 0 for sends
     * @param immediateData of {@link EndpointHandler#onReceiveCompletion}; 0 for sends
     */
    public record Completion(long workId, WorkStatus status, int lengthBytes, int flags, int immediateData) {}

    private final String name;
    private final IoEventLoop loop;
    private final CompletableFuture<Endpoint> prepared = new CompletableFuture<>();
    private final CompletableFuture<byte[]> connected = new CompletableFuture<>();
    private final CompletableFuture<Optional<Throwable>> disconnected = new CompletableFuture<>();
    private final BlockingQueue<Completion> sends = new LinkedBlockingQueue<>();
    private final BlockingQueue<Completion> receives = new LinkedBlockingQueue<>();
    private final List<String> violations = new CopyOnWriteArrayList<>();
    private final AtomicInteger batchEnds = new AtomicInteger();

    // The loop's thread alone.
    private final ArrayDeque<Long> takenSends = new ArrayDeque<>();
    private final ArrayDeque<Long> takenReceives = new ArrayDeque<>();
    private boolean sharedReceives;
    private boolean inCall;
    private boolean inCallback;
    private int preparedCount;
    private int connectedCount;
    private int disconnectedCount;
    private int completionsSinceBatchEnd;

    private Consumer<Endpoint> whenPrepared = endpoint -> {};
    private Consumer<Endpoint> whenConnected = endpoint -> {};
    private BiConsumer<Endpoint, Completion> whenSent = (endpoint, completion) -> {};
    private BiConsumer<Endpoint, Completion> whenReceived = (endpoint, completion) -> {};
    private Consumer<Endpoint> whenCompletionsHandled = endpoint -> {};
    private Supplier<byte[]> whenRejecting = () -> new byte[0];

    /**
     * Makes one for one endpoint.
     *
     * @param name for messages
     * @param loop the endpoint's loop
     */
    public RecordingEndpointHandler(String name, IoEventLoop loop) {
        this.name = name;
        this.loop = loop;
    }

    /**
     * What else to do when prepared, on the loop.
     *
     * @param action post receives here
     * @return this
     */
    public RecordingEndpointHandler whenPrepared(Consumer<Endpoint> action) {
        whenPrepared = action;
        return this;
    }

    /**
     * What else to do when connected, on the loop.
     *
     * @param action posts
     * @return this
     */
    public RecordingEndpointHandler whenConnected(Consumer<Endpoint> action) {
        whenConnected = action;
        return this;
    }

    /**
     * What to answer a peer that is rejected because this side lacks something.
     *
     * @param reason private data; it may throw
     * @return this
     */
    public RecordingEndpointHandler whenRejecting(Supplier<byte[]> reason) {
        whenRejecting = reason;
        return this;
    }

    /**
     * What else to do when a send, write, read or atomic completes, on the loop.
     *
     * @param action after the completion was recorded
     * @return this
     */
    public RecordingEndpointHandler whenSent(BiConsumer<Endpoint, Completion> action) {
        whenSent = action;
        return this;
    }

    /**
     * What else to do when a receive completes, on the loop.
     *
     * @param action after the completion was recorded
     * @return this
     */
    public RecordingEndpointHandler whenReceived(BiConsumer<Endpoint, Completion> action) {
        whenReceived = action;
        return this;
    }

    /**
     * What else to do at the end of a batch, on the loop.
     *
     * @param action flush, usually
     * @return this
     */
    public RecordingEndpointHandler whenCompletionsHandled(Consumer<Endpoint> action) {
        whenCompletionsHandled = action;
        return this;
    }

    /**
     * The endpoint's loop.
     *
     * @return as given
     */
    public IoEventLoop loop() {
        return loop;
    }

    // ---- what a test waits for

    /**
     * Waits for {@code onPrepared}.
     *
     * @return the endpoint
     */
    public Endpoint awaitPrepared() {
        return Patience.await(name + " prepared", prepared);
    }

    /**
     * Waits for {@code onConnected}; fails at once, with its cause, if the connection ended instead.
     *
     * @return the peer's private data
     */
    public byte[] awaitConnected() {
        CompletableFuture.anyOf(connected, disconnected)
                .orTimeout(Patience.LIMIT.toMillis(), java.util.concurrent.TimeUnit.MILLISECONDS)
                .exceptionally(timeout -> {
                    throw new AssertionError("waited " + Patience.LIMIT + " for: " + name + " connected", timeout);
                })
                .join();
        if (!connected.isDone()) {
            throw new AssertionError(
                    name + " disconnected instead of connected",
                    disconnected.join().orElse(null));
        }
        return connected.join();
    }

    /**
     * Waits for {@code onDisconnected}.
     *
     * @return its cause
     */
    public @Nullable Throwable awaitDisconnected() {
        return Patience.await(name + " disconnected", disconnected).orElse(null);
    }

    /**
     * Waits for the next completion of the send queue.
     *
     * @return the completion
     */
    public Completion awaitSend() {
        return Patience.take(name + " send completion", sends);
    }

    /**
     * Waits for several completions of the send queue.
     *
     * @param count how many
     * @return the completions, in order
     */
    public List<Completion> awaitSends(int count) {
        List<Completion> result = new ArrayList<>(count);
        for (int i = 0; i < count; i++) {
            result.add(Patience.take(name + " send completion " + (i + 1) + " of " + count, sends));
        }
        return result;
    }

    /**
     * Waits for the next receive.
     *
     * @return the completion
     */
    public Completion awaitReceive() {
        return Patience.take(name + " receive completion", receives);
    }

    /**
     * Waits for several receives.
     *
     * @param count how many
     * @return the completions, in order
     */
    public List<Completion> awaitReceives(int count) {
        List<Completion> result = new ArrayList<>(count);
        for (int i = 0; i < count; i++) {
            result.add(Patience.take(name + " receive completion " + (i + 1) + " of " + count, receives));
        }
        return result;
    }

    /**
     * Whether {@code onConnected} was called.
     *
     * @return true from then on
     */
    public boolean isConnected() {
        return connected.isDone();
    }

    /**
     * Whether {@code onDisconnected} was called.
     *
     * @return true from then on
     */
    public boolean isDisconnected() {
        return disconnected.isDone();
    }

    /**
     * Completions that came and were not awaited.
     *
     * @return how many
     */
    public int unclaimedCompletions() {
        return sends.size() + receives.size();
    }

    /**
     * How often {@code onCompletionsHandled} was called.
     *
     * @return the count
     */
    public int batchEnds() {
        return batchEnds.get();
    }

    /**
     * The breaches of the contract.
     *
     * @return sentences; empty if there was none
     */
    public List<String> violations() {
        return violations;
    }

    /** Fails if the contract was broken. */
    public void assertNoViolations() {
        if (!violations.isEmpty()) {
            throw new AssertionError(name + " broke the contract: " + violations);
        }
    }

    // ---- what a test does

    /**
     * Does something with the prepared endpoint on its loop, and waits for it. Callbacks that come before it returns
     * are violations.
     *
     * @param action what to do
     * @param <T> of its value
     * @return what the action returned
     */
    public <T> T call(Function<Endpoint, T> action) {
        Endpoint endpoint = awaitPrepared();
        return Patience.await(name + " call on its loop", loop.submit(() -> within(() -> action.apply(endpoint))));
    }

    /**
     * As {@link #call}, without a result.
     *
     * @param action what to do
     */
    public void run(Consumer<Endpoint> action) {
        call(endpoint -> {
            action.accept(endpoint);
            return true;
        });
    }

    /**
     * Posts on the loop and remembers what was accepted.
     *
     * @param endpoint the endpoint of this handler
     * @param request what to post
     * @return what the endpoint returned
     */
    public boolean post(Endpoint endpoint, WorkRequest request) {
        return within(() -> {
            boolean taken = endpoint.post(request);
            if (taken) {
                takenSends.add(request.workId());
            }
            return taken;
        });
    }

    /**
     * Posts a receive on the loop and remembers what was accepted.
     *
     * @param endpoint the endpoint of this handler
     * @param workId returned in the completion
     * @param buffers where to
     * @return what the endpoint returned
     */
    public boolean postReceive(Endpoint endpoint, long workId, ScatterGatherList buffers) {
        return within(() -> {
            boolean taken = endpoint.postReceive(workId, buffers);
            if (taken) {
                takenReceives.add(workId);
            }
            return taken;
        });
    }

    /**
     * Posts one receive, from any thread, and flushes.
     *
     * @param workId comes back
     * @param region where to
     * @param offsetBytes into the region
     * @param lengthBytes of the receive
     */
    public void receive(long workId, RegisteredMemory region, long offsetBytes, int lengthBytes) {
        ScatterGatherList list = new ScatterGatherList(1).add(region, offsetBytes, lengthBytes);
        boolean taken = call(endpoint -> {
            boolean posted = postReceive(endpoint, workId, list);
            endpoint.flush();
            return posted;
        });
        if (!taken) {
            throw new AssertionError(name + " did not take a receive");
        }
    }

    /**
     * Posts one request, from any thread, and flushes.
     *
     * @param request what to post
     */
    public void send(WorkRequest request) {
        boolean taken = call(endpoint -> {
            boolean posted = post(endpoint, request);
            endpoint.flush();
            return posted;
        });
        if (!taken) {
            throw new AssertionError(name + " did not take a " + request.opcode());
        }
    }

    /** Receives come from a shared queue, so they are not checked against what this endpoint posted. */
    public void sharesReceives() {
        Patience.await(name + " shared receives", loop.submit(() -> {
            sharedReceives = true;
        }));
    }

    private <T> T within(Supplier<T> action) {
        boolean outer = inCall;
        inCall = true;
        try {
            return action.get();
        } finally {
            inCall = outer;
        }
    }

    // ---- the callbacks

    private void callback(String what, Runnable body) {
        if (!loop.inEventLoop()) {
            violations.add(what + " on thread " + Thread.currentThread().getName());
        }
        if (inCall) {
            violations.add(what + " re-entrantly from a call");
        }
        if (inCallback) {
            violations.add(what + " within another callback");
        }
        if (disconnectedCount > 0) {
            violations.add(what + " after onDisconnected");
        }
        inCallback = true;
        try {
            body.run();
        } finally {
            inCallback = false;
        }
    }

    @Override
    public void onPrepared(Endpoint endpoint) {
        callback("onPrepared", () -> {
            if (++preparedCount > 1) {
                violations.add("onPrepared twice");
            }
            if (connectedCount > 0) {
                violations.add("onPrepared after onConnected");
            }
            whenPrepared.accept(endpoint);
            prepared.complete(endpoint);
        });
    }

    @Override
    public void onConnected(Endpoint endpoint, byte[] privateData) {
        callback("onConnected", () -> {
            if (++connectedCount > 1) {
                violations.add("onConnected twice");
            }
            if (preparedCount == 0) {
                violations.add("onConnected before onPrepared");
            }
            connected.complete(privateData);
            whenConnected.accept(endpoint);
        });
    }

    @Override
    public void onSendCompletion(Endpoint endpoint, long workId, WorkStatus status, int lengthBytes) {
        callback("onSendCompletion", () -> {
            completionsSinceBatchEnd++;
            Long expected = takenSends.poll();
            if (expected == null || expected != workId) {
                violations.add("send completion " + workId + " where " + expected + " was next");
            }
            Completion completion = new Completion(workId, status, lengthBytes, 0, 0);
            sends.add(completion);
            whenSent.accept(endpoint, completion);
        });
    }

    @Override
    public void onReceiveCompletion(
            Endpoint endpoint, long workId, WorkStatus status, int lengthBytes, int flags, int immediateData) {
        callback("onReceiveCompletion", () -> {
            completionsSinceBatchEnd++;
            if (!sharedReceives) {
                Long expected = takenReceives.poll();
                if (expected == null || expected != workId) {
                    violations.add("receive completion " + workId + " where " + expected + " was next");
                }
            }
            Completion completion = new Completion(workId, status, lengthBytes, flags, immediateData);
            receives.add(completion);
            whenReceived.accept(endpoint, completion);
        });
    }

    @Override
    public void onCompletionsHandled(Endpoint endpoint) {
        callback("onCompletionsHandled", () -> {
            completionsSinceBatchEnd = 0;
            batchEnds.incrementAndGet();
            whenCompletionsHandled.accept(endpoint);
        });
    }

    @Override
    public byte[] rejection(Endpoint endpoint) {
        byte[][] reason = new byte[1][];
        callback("rejection", () -> reason[0] = whenRejecting.get());
        return reason[0];
    }

    @Override
    public void onDisconnected(Endpoint endpoint, @Nullable Throwable cause) {
        callback("onDisconnected", () -> {
            disconnectedCount++;
            if (!takenSends.isEmpty()) {
                violations.add("sends never completed: " + takenSends);
            }
            if (!takenReceives.isEmpty()) {
                violations.add("receives never completed: " + takenReceives);
            }
            if (completionsSinceBatchEnd > 0) {
                violations.add(completionsSinceBatchEnd + " completions without onCompletionsHandled after them");
            }
            disconnected.complete(Optional.ofNullable(cause));
        });
    }

    @Override
    public String toString() {
        return name;
    }
}
