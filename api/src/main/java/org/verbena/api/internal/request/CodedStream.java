package org.verbena.api.internal.request;

import io.netty.buffer.ByteBuf;
import java.util.Iterator;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.Flow;
import org.jspecify.annotations.Nullable;
import org.verbena.api.internal.loop.LoopFuture;
import org.verbena.api.service.Codec;
import org.verbena.api.service.Metadata;
import org.verbena.api.service.ValueStream;

/** A stream of values, over one of messages. Any thread. */
public final class CodedStream<S, R> implements ValueStream<S, R> {
    private final ItemStream stream;
    private final Codec<S> sent;
    private final Codec<R> received;

    public CodedStream(ItemStream stream, Codec<S> sent, Codec<R> received) {
        this.stream = stream;
        this.sent = sent;
        this.received = received;
    }

    @Override
    public CompletableFuture<Void> send(S value) {
        ByteBuf message;
        try {
            message = encode(value);
        } catch (Throwable cause) {
            stream.fail(cause);
            return LoopFuture.of(stream.notifier().newFailedFuture(cause));
        }
        return LoopFuture.of(stream.send(message));
    }

    private ByteBuf encode(S value) throws Exception {
        return ShortForm.encode(stream.allocator(), sent, value);
    }

    @Override
    public void sendAll(Flow.Publisher<? extends S> values) {
        stream.sendAll(to -> values.subscribe(new Encoder(to)));
    }

    @Override
    public boolean isWritable() {
        return stream.isWritable();
    }

    @Override
    public CompletableFuture<Void> whenWritable() {
        return stream.whenWritable();
    }

    @Override
    public void end() {
        stream.end();
    }

    @Override
    public @Nullable R receive() throws InterruptedException {
        ByteBuf message = stream.receive();
        if (message == null) {
            return null;
        }
        try {
            return received.decode(message);
        } catch (Throwable cause) {
            stream.fail(cause);
            switch (cause) {
                case RuntimeException unchecked -> throw unchecked;
                case Error error -> throw error;
                default -> throw new CompletionException(cause);
            }
        } finally {
            message.release();
        }
    }

    @Override
    public Iterator<R> iterator() {
        return new ReceivedItems<>(this::receive);
    }

    @Override
    public Flow.Publisher<R> values() {
        return to -> stream.messages().subscribe(new Decoder(to));
    }

    @Override
    public CompletableFuture<Metadata> metadata() {
        return stream.metadata();
    }

    @Override
    public CompletableFuture<Metadata> trailers() {
        return stream.trailers();
    }

    @Override
    public CompletableFuture<Void> whenOver() {
        return stream.whenOver();
    }

    @Override
    public void cancel() {
        stream.cancel();
    }

    @Override
    public void close() {
        stream.close();
    }

    /** Makes messages of what a publisher has. Its stream ends the subscription when it fails. */
    private final class Encoder implements Flow.Subscriber<S> {
        private final Flow.Subscriber<? super ByteBuf> to;

        Encoder(Flow.Subscriber<? super ByteBuf> to) {
            this.to = to;
        }

        @Override
        public void onSubscribe(Flow.Subscription subscription) {
            to.onSubscribe(subscription);
        }

        @Override
        public void onNext(S value) {
            ByteBuf message;
            try {
                message = encode(value);
            } catch (Throwable cause) {
                stream.fail(cause);
                return;
            }
            to.onNext(message);
        }

        @Override
        public void onError(Throwable cause) {
            to.onError(cause);
        }

        @Override
        public void onComplete() {
            to.onComplete();
        }
    }

    /** Makes values of what arrives, one at a time. */
    private final class Decoder implements Flow.Subscriber<ByteBuf> {
        private final Flow.Subscriber<? super R> to;

        /** Whether the subscriber knows the end. */
        private boolean ended;

        Decoder(Flow.Subscriber<? super R> to) {
            this.to = to;
        }

        @Override
        public void onSubscribe(Flow.Subscription subscription) {
            to.onSubscribe(subscription);
        }

        @Override
        public void onNext(ByteBuf message) {
            R value;
            try {
                if (ended) {
                    return;
                }
                value = received.decode(message);
            } catch (Throwable cause) {
                ended = true;
                stream.fail(cause);
                to.onError(cause);
                return;
            } finally {
                message.release();
            }
            to.onNext(value);
        }

        @Override
        public void onError(Throwable cause) {
            if (!ended) {
                ended = true;
                to.onError(cause);
            }
        }

        @Override
        public void onComplete() {
            if (!ended) {
                ended = true;
                to.onComplete();
            }
        }
    }
}
