package org.verbena.rsocket;

import io.netty.buffer.ByteBuf;
import io.netty.channel.Channel;
import io.netty.channel.EventLoop;
import io.netty.util.concurrent.GlobalEventExecutor;
import java.util.ArrayDeque;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;
import org.reactivestreams.Subscription;
import reactor.core.CoreSubscriber;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Operators;

/**
 * The frames that arrive, for one subscriber. The channel reads only as many as were requested, so a subscriber that
 * requests nothing stops the peer. A frame is released when {@code onNext} returns: retain it to keep it longer.
 */
final class Inbound extends Flux<ByteBuf> implements Subscription {
    private final Channel channel;
    private final AtomicBoolean subscribed = new AtomicBoolean();

    // Confined to the event loop, and when that has ended, to Netty's global executor.
    private @Nullable CoreSubscriber<? super ByteBuf> subscriber;
    private final ArrayDeque<ByteBuf> waiting = new ArrayDeque<>(0);
    private long requested;
    private boolean delivering;
    private @Nullable Throwable end;

    Inbound(Channel channel) {
        this.channel = channel;
    }

    @Override
    public void subscribe(CoreSubscriber<? super ByteBuf> actual) {
        if (!subscribed.compareAndSet(false, true)) {
            Operators.error(actual, new IllegalStateException("the connection's frames have a subscriber already"));
            return;
        }
        onLoop(() -> {
            subscriber = actual;
            actual.onSubscribe(this);
            deliver0();
        });
    }

    @Override
    public void request(long count) {
        if (Operators.validate(count)) {
            onLoop(() -> {
                requested = Operators.addCap(requested, count);
                deliver0();
            });
        }
    }

    /** Nobody receives the peer's frames any more: the connection is closed. */
    @Override
    public void cancel() {
        onLoop(() -> {
            subscriber = null;
            discard0();
            channel.close();
        });
    }

    private void onLoop(Runnable task) {
        EventLoop loop = channel.eventLoop();
        if (loop.inEventLoop()) {
            task.run();
        } else {
            try {
                loop.execute(task);
            } catch (RejectedExecutionException ended) {
                // Reactive Streams 3.15 and 3.16: neither request nor cancel throws. The loop has left everything that
                // is here.
                GlobalEventExecutor.INSTANCE.execute(task);
            }
        }
    }

    void onFrame0(ByteBuf frame) {
        waiting.add(frame);
        deliver0();
    }

    /** The connection has ended: the subscriber is notified after the last frame. */
    void onEnd0(Throwable cause) {
        end = cause;
        deliver0();
    }

    private void deliver0() {
        CoreSubscriber<? super ByteBuf> to = subscriber;
        if (delivering || to == null) {
            return;
        }
        delivering = true;
        try {
            while (requested > 0 && !waiting.isEmpty()) {
                if (requested != Long.MAX_VALUE) {
                    requested--;
                }
                ByteBuf frame = waiting.remove();
                try {
                    to.onNext(frame);
                } finally {
                    frame.release();
                }
            }
        } finally {
            delivering = false;
        }
        Throwable ended = end;
        if (ended != null) {
            if (waiting.isEmpty()) {
                subscriber = null;
                to.onError(ended);
            }
        } else if (requested == Long.MAX_VALUE) {
            channel.config().setAutoRead(true);
        } else if (requested > 0) {
            channel.read();
        }
    }

    /** Releases the waiting frames, which nobody will take. */
    void discard0() {
        if (subscriber == null) {
            waiting.forEach(ByteBuf::release);
            waiting.clear();
        }
    }
}
