package org.verbena.api.internal.client;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import java.nio.ByteBuffer;
import org.verbena.api.client.RequestOptions;
import org.verbena.api.internal.request.Frames;
import org.verbena.api.internal.request.HeadedOperation;
import org.verbena.api.internal.request.Headers;
import org.verbena.api.internal.request.Operation;
import org.verbena.api.internal.request.WithHeaders;
import org.verbena.api.service.Method;
import org.verbena.api.service.Reply;

/** The operations of requests with options: the plain ones, unless there is more to send than the message. */
final class RequestOperations {
    private static final HeadedOperation.Outcome<ByteBuf> BUFFER = (metadata, reply) -> reply;
    private static final HeadedOperation.Outcome<byte[]> BYTES = (metadata, reply) -> bytes(reply);
    private static final HeadedOperation.Outcome<ByteBuffer> NIO = (metadata, reply) -> ByteBuffer.wrap(bytes(reply));

    private RequestOperations() {}

    static Operation<ByteBuf> request(RequestOptions how, CallPlan plan) {
        return how.metadata().isEmpty() ? Operation.REQUEST : headed(how, plan, BUFFER);
    }

    static Operation<byte[]> requestBytes(RequestOptions how, CallPlan plan) {
        return how.metadata().isEmpty() ? Operation.REQUEST_BYTES : headed(how, plan, BYTES);
    }

    static Operation<ByteBuffer> requestBuffer(RequestOptions how, CallPlan plan) {
        return how.metadata().isEmpty() ? Operation.REQUEST_BUFFER : headed(how, plan, NIO);
    }

    /** Without metadata it is a plain request on the wire, whose reply may have some nevertheless. */
    static Operation<Reply<byte[]>> requestReply(RequestOptions how, CallPlan plan) {
        return headed(how, plan, (metadata, reply) -> new Reply<>(bytes(reply), metadata));
    }

    static <R> Operation<R> call(Method<?, R> method, RequestOptions how, CallPlan plan) {
        return new HeadedOperation<>(
                Headers.of(how.metadata(), method), flags(plan), (metadata, reply) -> decoded(method, reply));
    }

    static <R> Operation<Reply<R>> callReply(Method<?, R> method, RequestOptions how, CallPlan plan) {
        return new HeadedOperation<>(
                Headers.of(how.metadata(), method),
                flags(plan),
                (metadata, reply) -> new Reply<>(decoded(method, reply), metadata));
    }

    private static <R> R decoded(Method<?, R> method, ByteBuf reply) throws Exception {
        try {
            return method.reply().decode(reply);
        } finally {
            reply.release();
        }
    }

    /** The same with headers. */
    @SuppressWarnings("unchecked") // each operation has results of one type
    static <T> WithHeaders<T> headed(Operation<T> operation, CallPlan plan) {
        if (operation instanceof WithHeaders<T> already) {
            return already;
        }
        HeadedOperation.Outcome<?> outcome =
                operation.equals(Operation.REQUEST) ? BUFFER : operation.equals(Operation.REQUEST_BYTES) ? BYTES : NIO;
        return new HeadedOperation<>(Headers.NONE, flags(plan), (HeadedOperation.Outcome<T>) outcome);
    }

    private static int flags(CallPlan plan) {
        return plan.idempotent() ? Frames.IDEMPOTENT : 0;
    }

    private static <T> Operation<T> headed(RequestOptions how, CallPlan plan, HeadedOperation.Outcome<T> outcome) {
        return new HeadedOperation<>(Headers.of(how.metadata()), flags(plan), outcome);
    }

    private static byte[] bytes(ByteBuf reply) {
        try {
            return ByteBufUtil.getBytes(reply);
        } finally {
            reply.release();
        }
    }
}
