package org.verbena.api.internal.client;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufAllocator;
import io.netty.buffer.Unpooled;
import io.netty.buffer.UnpooledByteBufAllocator;
import io.netty.util.ReferenceCountUtil;
import io.netty.util.concurrent.Future;
import io.netty.util.concurrent.Promise;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.verbena.api.client.RequestOptions;
import org.verbena.api.internal.loop.HandlerTime;
import org.verbena.api.internal.loop.LoopFuture;
import org.verbena.api.internal.request.ClientTransport;
import org.verbena.api.internal.request.CodedStream;
import org.verbena.api.internal.request.Frames;
import org.verbena.api.internal.request.Headers;
import org.verbena.api.internal.request.ItemStream;
import org.verbena.api.internal.request.Messenger;
import org.verbena.api.internal.request.Operation;
import org.verbena.api.internal.request.ShortForm;
import org.verbena.api.internal.request.StreamOperation;
import org.verbena.api.internal.request.UnsentItems;
import org.verbena.api.service.Metadata;
import org.verbena.api.service.Method;
import org.verbena.api.service.Reply;
import org.verbena.api.service.ValueStream;
import org.verbena.transport.RequestException;

/** Begins the operations of a client: on a connection that is up, or when there is one. Any thread. */
public final class Operations {
    private final Links links;
    private final Links.Options options;

    public Operations(Links links) {
        this.links = links;
        options = links.options();
    }

    /** Begins, now or when there is a connection. */
    public <T> CompletableFuture<T> start(Operation<T> operation, byte @Nullable [] message, long timeoutNanos) {
        return start(operation, Messenger.buffer(message), timeoutNanos);
    }

    /** As {@link #start(Operation, byte[], long)}. */
    public <T> CompletableFuture<T> start(Operation<T> operation, @Nullable ByteBuffer message, long timeoutNanos) {
        return start(operation, message, timeoutNanos, options.plan());
    }

    /** As {@link #start(Operation, ByteBuffer, long)}, by a plan. */
    private <T> CompletableFuture<T> start(
            Operation<T> operation, @Nullable ByteBuffer message, long timeoutNanos, CallPlan plan) {
        ClientTransport transport = links.pick(plan);
        ByteBuf copy;
        try {
            copy = Frames.copyOf(allocator(transport), message);
        } catch (RuntimeException | Error noMemory) {
            return LoopFuture.of(links.notifier(transport).newFailedFuture(noMemory));
        }
        return LoopFuture.of(start(transport, operation, copy, timeoutNanos, plan));
    }

    /** Begins, now or when there is a connection. Takes ownership of the message. */
    public <T> Future<T> start(Operation<T> operation, @Nullable ByteBuf message, long timeoutNanos) {
        CallPlan plan = options.plan();
        return start(links.pick(plan), operation, message, timeoutNanos, plan);
    }

    public Future<ByteBuf> start(@Nullable ByteBuf message, RequestOptions how) {
        CallPlan plan = options.plan().with(how);
        return start(links.pick(plan), RequestOperations.request(how, plan), message, timeoutNanos(how), plan);
    }

    public CompletableFuture<byte[]> start(byte @Nullable [] message, RequestOptions how) {
        CallPlan plan = options.plan().with(how);
        return start(RequestOperations.requestBytes(how, plan), Messenger.buffer(message), timeoutNanos(how), plan);
    }

    public CompletableFuture<ByteBuffer> start(@Nullable ByteBuffer message, RequestOptions how) {
        CallPlan plan = options.plan().with(how);
        return start(RequestOperations.requestBuffer(how, plan), message, timeoutNanos(how), plan);
    }

    public CompletableFuture<Reply<byte[]>> startReply(byte @Nullable [] message, RequestOptions how) {
        CallPlan plan = options.plan().with(how);
        return start(RequestOperations.requestReply(how, plan), Messenger.buffer(message), timeoutNanos(how), plan);
    }

    public <Q, R> CompletableFuture<R> call(Method<Q, R> method, Q request, RequestOptions how) {
        CallPlan plan = options.plan().with(how);
        return call(method, request, RequestOperations.call(method, how, plan), how, plan);
    }

    public <Q, R> CompletableFuture<Reply<R>> callReply(Method<Q, R> method, Q request, RequestOptions how) {
        CallPlan plan = options.plan().with(how);
        return call(method, request, RequestOperations.callReply(method, how, plan), how, plan);
    }

    private <Q, T> CompletableFuture<T> call(
            Method<Q, ?> method, Q request, Operation<T> operation, RequestOptions how, CallPlan plan) {
        ClientTransport transport = links.pick(plan);
        ByteBuf message;
        try {
            message = encode(transport, method, request);
        } catch (Throwable cause) {
            return LoopFuture.of(links.notifier(transport).newFailedFuture(cause));
        }
        return LoopFuture.of(start(transport, operation, message, timeoutNanos(how), plan));
    }

    private static <Q> ByteBuf encode(@Nullable ClientTransport transport, Method<Q, ?> method, Q request)
            throws Exception {
        return ShortForm.encode(allocator(transport), method.request(), request);
    }

    private static ByteBufAllocator allocator(@Nullable ClientTransport transport) {
        return transport == null ? UnpooledByteBufAllocator.DEFAULT : transport.alloc();
    }

    /** Begins a stream, once only. Takes ownership of the message. */
    public ItemStream stream(@Nullable ByteBuf message, RequestOptions how) {
        CallPlan plan = options.plan().with(how).once();
        return stream(links.pick(plan), message, Headers.of(how.metadata()), how, plan);
    }

    /** As {@link #stream(ByteBuf, RequestOptions)}, of a method. */
    public <Q, R> ValueStream<Q, R> stream(Method<Q, R> method, RequestOptions how) {
        CallPlan plan = options.plan().with(how).once();
        Headers headers = Headers.ofStream(how.metadata(), method, false);
        return new CodedStream<>(
                stream(links.pick(plan), Unpooled.EMPTY_BUFFER, headers, how, plan), method.request(), method.reply());
    }

    /** As {@link #stream(Method, RequestOptions)}, with the only request. */
    public <Q, R> ValueStream<Q, R> stream(Method<Q, R> method, Q request, RequestOptions how) {
        CallPlan plan = options.plan().with(how).once();
        ClientTransport transport = links.pick(plan);
        ItemStream stream;
        try {
            ByteBuf message = encode(transport, method, request);
            stream = stream(transport, message, Headers.ofStream(how.metadata(), method, true), how, plan);
        } catch (Throwable cause) {
            stream = ItemStream.ofClient(links.control().clock(), unsent(transport))
                    .begun(links.notifier(transport).newFailedFuture(cause));
        }
        stream.end();
        return new CodedStream<>(stream, method.request(), method.reply());
    }

    private ItemStream stream(
            @Nullable ClientTransport transport,
            @Nullable ByteBuf message,
            Headers headers,
            RequestOptions how,
            CallPlan plan) {
        ItemStream stream = ItemStream.ofClient(links.control().clock(), unsent(transport));
        boolean inherits = how.timeout() == null && HandlerTime.isLimited();
        StreamOperation operation =
                new StreamOperation(headers, stream, inherits || how.timeout() != null, received -> {});
        return stream.begun(start(transport, operation, message, inherits ? Long.MAX_VALUE : timeoutNanos(how), plan));
    }

    private UnsentItems unsent(@Nullable ClientTransport transport) {
        return transport == null ? links.unsent() : transport.unsent();
    }

    private long timeoutNanos(RequestOptions how) {
        Duration timeout = how.timeout();
        return timeout == null ? options.requestNanos() : TimeUnit.NANOSECONDS.convert(timeout);
    }

    private <T> Future<T> start(
            @Nullable ClientTransport transport,
            Operation<T> operation,
            @Nullable ByteBuf message,
            long timeoutNanos,
            CallPlan plan) {
        if (operation.equals(Operation.SEND)) {
            return begin(transport, operation, message, timeoutNanos, true, plan);
        }
        if (HandlerTime.isOver()) {
            ReferenceCountUtil.safeRelease(message);
            return links.notifier(transport)
                    .newFailedFuture(new RequestException.TimedOut("request: nothing was sent, since the time of the"
                            + " request that this handler answers is over"));
        }
        long nanos = HandlerTime.atMost(timeoutNanos);
        boolean whole = nanos == timeoutNanos;
        if (options.interceptors().isEmpty()) {
            return begin(transport, operation, message, nanos, whole, plan);
        }
        Intercepted<T> request = new Intercepted<>(RequestOperations.headed(operation, plan));
        Throwable refusal = request.pass(options.interceptors());
        if (refusal != null) {
            ReferenceCountUtil.safeRelease(message);
            request.ended(Metadata.EMPTY, refusal);
            return links.notifier(transport).newFailedFuture(refusal);
        }
        return request.seenBefore(
                begin(transport, request.operation(), message, nanos, whole, plan),
                links.notifier(transport).newPromise());
    }

    private <T> Future<T> begin(
            @Nullable ClientTransport transport,
            Operation<T> operation,
            @Nullable ByteBuf message,
            long timeoutNanos,
            boolean whole,
            CallPlan plan) {
        if (transport != null && (plan.isPlain() || operation.equals(Operation.SEND))) {
            return transport.start(operation, message, timeoutNanos, whole, true);
        }
        Promise<T> outcome = new Outcome<>(links.notifier(transport));
        ByteBuf usable;
        try {
            usable = Messenger.checkUsable(message);
        } catch (RuntimeException cause) {
            outcome.tryFailure(cause);
            return outcome;
        }
        new Call<>(links, operation, usable, outcome, timeoutNanos, whole, plan).begin(transport);
        return outcome;
    }
}
