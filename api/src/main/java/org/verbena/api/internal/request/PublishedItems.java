package org.verbena.api.internal.request;

import io.netty.buffer.ByteBuf;
import java.util.concurrent.Flow;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.SendLimitException;

/**
 * Sends what a publisher has. It requests one message at a time, and the next one when there is room for it: what was
 * requested comes, however long it is. Any thread.
 */
final class PublishedItems implements Flow.Subscriber<ByteBuf> {
    /** How many may wait to be sent: enough for a peer that takes them quickly. */
    private static final int AHEAD = 32;

    private final ItemStream stream;
    private final OutgoingItems items;
    private final AtomicBoolean subscribed = new AtomicBoolean();

    /** Whether an item is requested, or will be when there is room, and has not come. */
    private final AtomicBoolean requested = new AtomicBoolean();

    private final AtomicInteger unsent = new AtomicInteger();
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
        requestNext();
    }

    private void requestNext() {
        Flow.Subscription from = subscription;
        if (from == null || unsent.get() >= AHEAD || !requested.compareAndSet(false, true)) {
            return;
        }
        if (items.isWritable()) {
            from.request(1);
            return;
        }
        stream.whenWritable().whenComplete((none, failure) -> {
            if (failure == null) { // else the stream is over
                from.request(1);
            }
        });
    }

    @Override
    public void onNext(ByteBuf message) {
        unsent.incrementAndGet();
        items.send(message, true).addListener(sent -> {
            unsent.decrementAndGet();
            if (sent.isSuccess()) {
                requestNext();
            } else if (sent.cause() instanceof SendLimitException noRoom) { // a message that came is lost
                stream.breakOff(noRoom);
            }
        });
        requested.set(false);
        requestNext();
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
