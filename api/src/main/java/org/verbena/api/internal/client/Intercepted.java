package org.verbena.api.internal.client;

import io.netty.util.ReferenceCountUtil;
import io.netty.util.concurrent.Future;
import io.netty.util.concurrent.Promise;
import java.util.ArrayList;
import java.util.List;
import java.util.function.BiConsumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.api.client.ClientInterceptor;
import org.verbena.api.client.OutgoingRequest;
import org.verbena.api.internal.request.Headers;
import org.verbena.api.internal.request.Operation;
import org.verbena.api.internal.request.WithHeaders;
import org.verbena.api.service.Metadata;

/**
 * A request as interceptors see it.
 *
 * @param <T> its result
 */
final class Intercepted<T> implements OutgoingRequest {
    private static final Logger LOG = LoggerFactory.getLogger(Intercepted.class);

    private final WithHeaders<T> request;

    // Of the thread that sends it, until it is sent.
    private final List<BiConsumer<Metadata, @Nullable Throwable>> whenEnded = new ArrayList<>(1);
    private Metadata metadata;

    /** What has come with the reply. Written before the request is done. */
    private volatile Metadata replied = Metadata.EMPTY;

    Intercepted(WithHeaders<T> request) {
        this.request = request;
        metadata = request.headers().metadata();
    }

    /**
     * Calls the interceptors.
     *
     * @return why the request is not to be sent; null if it is
     */
    @Nullable Throwable pass(List<ClientInterceptor> interceptors) {
        try {
            for (ClientInterceptor each : interceptors) {
                each.onRequest(this);
            }
            return null;
        } catch (Throwable refusal) {
            return refusal;
        }
    }

    /** What to send. */
    Operation<T> operation() {
        return request.with(new Headers(metadata, request.headers().own()), received -> replied = received);
    }

    /** The outcome for the program, which gets it when the interceptors have seen it. */
    Future<T> seenBefore(Future<T> outcome, Promise<T> program) {
        program.addListener(done -> {
            if (done.isCancelled()) {
                outcome.cancel(false);
            }
        });
        outcome.addListener((Future<T> done) -> {
            Throwable cause = done.cause();
            ended(cause == null ? replied : Metadata.EMPTY, cause);
            if (cause != null) {
                program.tryFailure(cause);
            } else if (!program.trySuccess(done.getNow())) {
                ReferenceCountUtil.release(done.getNow());
            }
        });
        return program;
    }

    void ended(Metadata received, @Nullable Throwable cause) {
        for (BiConsumer<Metadata, @Nullable Throwable> action : whenEnded.reversed()) {
            try {
                action.accept(received, cause);
            } catch (Throwable thrown) {
                LOG.warn("an interceptor's action at the end of a request has thrown", thrown);
            }
        }
    }

    @Override
    public @Nullable String method() {
        return request.headers().method();
    }

    @Override
    public Metadata metadata() {
        return metadata;
    }

    @Override
    public void addMetadata(Metadata more) {
        metadata = metadata.with(more);
    }

    @Override
    public void onEnd(BiConsumer<Metadata, @Nullable Throwable> action) {
        whenEnded.add(action);
    }
}
