package org.verbena.api.internal.client;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufAllocator;
import io.netty.buffer.UnpooledByteBufAllocator;
import io.netty.channel.Channel;
import io.netty.util.concurrent.DefaultPromise;
import io.netty.util.concurrent.EventExecutor;
import io.netty.util.concurrent.Future;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.verbena.api.internal.loop.VirtualNotifier;
import org.verbena.api.internal.request.ClientTransport;
import org.verbena.api.internal.request.Operation;
import org.verbena.api.internal.request.SendLimit;
import org.verbena.api.internal.request.UnsentItems;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.RequestException;
import org.verbena.transport.SendLimitException;

/** A connection of {@link ClientWalkTest}, which does with its operations what a real one may do with them. */
final class WalkTransport implements ClientTransport {
    private static final long NOT_ASKED = -1;

    private final WalkServer server;
    private final Links owner;
    private final StepClock clock;
    private final Random random;
    private final EventExecutor notifier;

    /** Those that have begun here and are not over. */
    private final Set<Request<?>> pending = new LinkedHashSet<>();

    private final List<Runnable> closeListeners = new ArrayList<>();
    private int load;
    private long carried;
    private long answers;
    private long leavingNanos = NOT_ASKED;
    private boolean leaves;
    private boolean connected = true;

    WalkTransport(WalkServer server, Links owner, StepClock clock, Random random) {
        this.server = server;
        this.owner = owner;
        this.clock = clock;
        this.random = random;
        notifier = VirtualNotifier.of(clock);
    }

    /** An operation here. */
    final class Request<T> extends DefaultPromise<T> {
        private final Operation<T> operation;
        private final ByteBuf message;
        private final long number;
        private final long timeoutNanos;
        private final boolean whole;
        private final boolean goesOn;
        private final long beganNanos = clock.nanoTime();

        /** Whether the message is on its way, or somebody else's. */
        private boolean isGone;

        /** Whether there will be no reply. */
        boolean isSilent;

        Request(Operation<T> operation, ByteBuf message, long timeoutNanos, boolean whole, boolean goesOn) {
            super(notifier);
            this.operation = operation;
            this.message = message;
            this.timeoutNanos = timeoutNanos;
            this.whole = whole;
            this.goesOn = goesOn;
            number = message.getLong(message.readerIndex());
        }

        WalkTransport transport() {
            return WalkTransport.this;
        }

        long number() {
            return number;
        }

        /** Whether it waits for its reply. */
        boolean isThere() {
            return pending.contains(this);
        }

        private boolean isSend() {
            return operation.equals(Operation.SEND);
        }

        void begin() {
            if (isDone()) {
                over();
            } else if (!isUsable()) {
                notBegun();
            } else if (server.mood != WalkServer.WELL && random.nextInt(10) == 0) {
                over();
                tryFailure(new SendLimitException("full", 1, Long.BYTES));
            } else {
                pending.add(this);
                if (!isSend()) {
                    clock.schedule(this::timeOut, timeoutNanos);
                }
                clock.schedule(this::send, random.nextLong(TimeUnit.MILLISECONDS.toNanos(2)));
            }
        }

        private void send() {
            if (!isThere()) {
                return;
            }
            if (isDone()) { // cancelled
                over();
            } else if (!isUsable()) {
                notBegun();
            } else if (isSend()) {
                server.begin(number);
                over();
                trySuccess(null);
            } else {
                message.release();
                isGone = true;
                server.send(this);
            }
        }

        /** It needs nothing of this connection any more. */
        private void over() {
            pending.remove(this);
            load--;
            carried++;
            if (!isGone) {
                isGone = true;
                message.release();
            }
            clock.submit(WalkTransport.this::closeIfIdle);
        }

        private void notBegun() {
            long leftNanos = Math.max(1, timeoutNanos - (clock.nanoTime() - beganNanos));
            if (goesOn && owner.goOn(this, operation, message, leftNanos, whole)) {
                server.moved++;
                isGone = true;
                over();
            } else {
                over();
                tryFailure(new ConnectionException.Lost("lost before it was sent"));
            }
        }

        private void timeOut() {
            if (isThere()) {
                over();
                tryFailure(new RequestException.TimedOut("no reply"));
                if (random.nextBoolean()) {
                    owner.unanswered(WalkTransport.this);
                }
            }
        }

        void fail(Exception cause) {
            if (isThere()) {
                over();
                tryFailure(cause);
            }
        }

        @SuppressWarnings("unchecked") // only requests have replies
        void reply() {
            if (isThere()) {
                answers++;
                over();
                trySuccess((T) (Long) number);
            }
        }

        void lost() {
            if (isGone) {
                over();
                tryFailure(new ConnectionException.Lost("lost", new IllegalStateException("the walk"), true));
            } else {
                notBegun();
            }
        }
    }

    @Override
    public <T> Future<T> start(
            Operation<T> operation, @Nullable ByteBuf message, long timeoutNanos, boolean whole, boolean goesOn) {
        Request<T> request = new Request<>(operation, message, timeoutNanos, whole, goesOn);
        load++;
        clock.submit(request::begin);
        return request;
    }

    // ---- what the walk does to it

    /** The connection is lost. */
    void lose() {
        if (connected) {
            connected = false;
            List.copyOf(pending).forEach(Request::lost);
            List.copyOf(closeListeners).forEach(clock::submit);
        }
    }

    void loseIfSilent() {
        if (pending.stream().anyMatch(request -> request.isSilent)) {
            lose();
        }
    }

    void serverLeaves(long retryNanos) {
        if (connected && leavingNanos == NOT_ASKED) {
            leavingNanos = retryNanos;
            owner.leaving(this, retryNanos, "the walk");
        }
    }

    private void closeIfIdle() {
        if (leaves && load == 0) {
            lose();
        }
    }

    // ---- what the client does with it

    @Override
    public void leave() {
        leaves = true;
        clock.submit(this::closeIfIdle);
    }

    @Override
    public CompletableFuture<Void> close() {
        CompletableFuture<Void> closed = new CompletableFuture<>();
        clock.submit(() -> {
            lose();
            closed.complete(null);
        });
        return closed;
    }

    @Override
    public void whenClosed(Runnable step) {
        if (connected) {
            closeListeners.add(step);
        } else {
            clock.submit(step);
        }
    }

    @Override
    public Throwable closeCause() {
        return new ConnectionException.Lost("the connection to " + server.address + " is lost");
    }

    @Override
    public Channel channel() {
        throw new UnsupportedOperationException("there is none");
    }

    @Override
    public boolean isConnected() {
        return connected;
    }

    @Override
    public boolean isUsable() {
        return connected && !leaves && leavingNanos == NOT_ASKED;
    }

    @Override
    public boolean isWritable() {
        return load < 10;
    }

    @Override
    public int load() {
        return load;
    }

    @Override
    public int burden() {
        return load;
    }

    @Override
    public long carried() {
        return carried;
    }

    @Override
    public long replyNanos() {
        return answers == 0 ? 0 : TimeUnit.MILLISECONDS.toNanos(10);
    }

    @Override
    public boolean isUnproven() {
        return carried > 0 && answers == 0;
    }

    @Override
    public long leavingNanos() {
        return leavingNanos;
    }

    @Override
    public UnsentItems unsent() {
        return new UnsentItems(SendLimit.Bounds.DEFAULTS);
    }

    @Override
    public void abandon(Future<?> request) {
        request.cancel(false);
    }

    @Override
    public void countUnanswered() {
        owner.unanswered(this);
    }

    @Override
    public ByteBufAllocator alloc() {
        return UnpooledByteBufAllocator.DEFAULT;
    }

    @Override
    public EventExecutor notifier() {
        return notifier;
    }

    @Override
    public java.util.concurrent.Future<?> schedule(Runnable step, long delayNanos) {
        return clock.schedule(step, delayNanos);
    }
}
