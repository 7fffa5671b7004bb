package org.verbena.api.internal.request;

import io.netty.buffer.ByteBuf;
import java.util.concurrent.Flow;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;

/** Sends what a publisher has: a further message for each that has been sent. Any thread. */
final class PublishedItems implements Flow.Subscriber<ByteBuf> {
    /** How many it asks for in advance. */
    private static final int AHEAD = 32;

    private final ItemStream stream;
    private final OutgoingItems items;
    private final AtomicBoolean subscribed = new AtomicBoolean();
    private volatile Flow.@Nullable Subscription subscription;

    PublishedItems(ItemStream stream, OutgoingItems items) {
        this.stream = stream;
        this.items = items;
    }

    @Override
    public void onSubscribe(Flow.Subscription given) {
        if (!subscribed.compareAndSet(false, true)) {
            given.cancel();
            return;
        }
        subscription = given;
        stream.whenOver().whenComplete((none, failure) -> given.cancel());
        given.request(AHEAD);
    }

    @Override
    public void onNext(ByteBuf message) {
        items.send(message, true).addListener(sent -> {
            Flow.Subscription from = subscription;
            if (sent.isSuccess() && from != null) {
                from.request(1);
            }
        });
    }

    @Override
    public void onError(Throwable cause) {
        stream.breakOff(cause);
    }

    @Override
    public void onComplete() {
        stream.end();
    }
}
