package org.verbena.api;

import io.netty.buffer.ByteBuf;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import org.verbena.api.internal.request.ShortForm;
import org.verbena.api.service.Method;
import org.verbena.transport.RequestException;

/**
 * The handler of a server, or a client, that answers methods by name. Immutable; start from {@link #NONE}.
 *
 * <pre>{@code
 * Methods orders = Methods.NONE.with(PLACE, (exchange, order) -> place(order)).with(CANCEL, this::cancel);
 * RdmaServer server = RdmaServer.bind("0.0.0.0", 7471, orders);
 * Receipt receipt = client.call(PLACE, order).get();
 * }</pre>
 *
 * <p>A request for a method that is not here fails at its client with {@link RequestException.Refused}. So does a call
 * to a server whose handler is another one: give these to the builder as they are, not inside a handler of your own.
 */
public final class Methods implements MessageHandler {
    /** Without methods. */
    public static final Methods NONE = new Methods(Map.of(), Methods::refuse);

    private final Map<String, MessageHandler> byName;
    private final MessageHandler otherwise;

    private Methods(Map<String, MessageHandler> byName, MessageHandler otherwise) {
        this.byName = byName;
        this.otherwise = otherwise;
    }

    private static void refuse(Exchange exchange, ByteBuf message) {
        if (!exchange.isRequest()) {
            throw new IllegalStateException(
                    "a message came, and only methods have handlers here: handle it with Methods.otherwise");
        }
        refuse(exchange, "the request names no method, and this end has nothing but methods: use call");
    }

    /**
     * The same with a method whose handler returns the reply. A handler that waits needs virtual threads, or {@link
     * #withAsync}.
     *
     * @param <Q> the type of requests
     * @param <R> the type of replies
     * @param method what to answer
     * @param handler answers it
     * @return changed methods
     * @throws IllegalArgumentException there is a method with these names
     */
    public <Q, R> Methods with(Method<Q, R> method, MethodHandler<Q, R> handler) {
        Objects.requireNonNull(handler, "the handler is null");
        return add(
                method,
                (exchange, message) -> reply(
                        exchange,
                        method,
                        handler.answer(exchange, method.request().decode(message))));
    }

    /**
     * The same with a method whose handler returns before the reply is there.
     *
     * @param <Q> the type of requests
     * @param <R> the type of replies
     * @param method what to answer
     * @param handler returns a stage with the reply; if it fails, the request fails as if the handler had thrown
     * @return changed methods
     * @throws IllegalArgumentException there is a method with these names
     */
    public <Q, R> Methods withAsync(Method<Q, R> method, MethodHandler<Q, ? extends CompletionStage<R>> handler) {
        Objects.requireNonNull(handler, "the handler is null");
        return add(
                method,
                (exchange, message) -> handler.answer(exchange, method.request().decode(message))
                        .whenComplete((value, thrown) -> {
                            try {
                                if (thrown != null) {
                                    throw thrown instanceof CompletionException && thrown.getCause() != null
                                            ? thrown.getCause()
                                            : thrown;
                                }
                                reply(exchange, method, value);
                            } catch (Throwable cause) { // of the handler, or the reply cannot be encoded
                                exchange.fail(cause);
                            }
                        }));
    }

    /**
     * The same with a method of which requests, replies or both are many: {@code client.stream} calls it.
     *
     * @param <Q> the type of requests
     * @param <R> the type of replies
     * @param method what to answer
     * @param handler answers it
     * @return changed methods
     * @throws IllegalArgumentException there is a method with these names
     */
    public <Q, R> Methods withStream(Method<Q, R> method, StreamHandler<Q, R> handler) {
        Objects.requireNonNull(handler, "the handler is null");
        return put(method, (exchange, message) -> {
            if (exchange.isStream()) {
                handler.answer(exchange, exchange.stream(method, message));
            } else {
                refuse(exchange, "the method " + method + " is a stream: use stream");
            }
        });
    }

    private static void refuse(Exchange exchange, String words) {
        exchange.refuse(RequestException.Refused.Reason.UNKNOWN, words);
    }

    /** Adds a method with one reply to each request. */
    private Methods add(Method<?, ?> method, MessageHandler handler) {
        return put(method, (exchange, message) -> {
            if (exchange.isStream()) {
                refuse(exchange, "the method " + method + " is no stream: use call");
            } else {
                handler.onMessage(exchange, message);
            }
        });
    }

    private Methods put(Method<?, ?> method, MessageHandler handler) {
        Map<String, MessageHandler> all = new LinkedHashMap<>(byName);
        if (all.put(method.toString(), handler) != null) {
            throw new IllegalArgumentException("there are two handlers of the method " + method);
        }
        return new Methods(all, otherwise);
    }

    /**
     * The same with a handler of messages, and of requests that name no method. Without one such requests are refused.
     *
     * @param handler takes the place of the one before
     * @return changed methods
     */
    public Methods otherwise(MessageHandler handler) {
        return new Methods(byName, Objects.requireNonNull(handler, "the handler is null"));
    }

    private static <R> void reply(Exchange exchange, Method<?, R> method, R value) throws Exception {
        exchange.reply(ShortForm.encode(exchange.channel().alloc(), method.reply(), value));
    }

    @Override
    public void onMessage(Exchange exchange, ByteBuf message) throws Exception {
        String name = exchange.method();
        MessageHandler handler = name == null ? otherwise : byName.get(name);
        if (handler == null) {
            refuse(exchange, "there is no method " + name);
            return;
        }
        handler.onMessage(exchange, message);
    }
}
