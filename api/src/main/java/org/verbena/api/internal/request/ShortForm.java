package org.verbena.api.internal.request;

import io.netty.bootstrap.AbstractBootstrap;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufAllocator;
import io.netty.channel.Channel;
import io.netty.channel.ChannelFuture;
import io.netty.channel.ChannelOption;
import io.netty.util.concurrent.EventExecutorGroup;
import io.netty.util.concurrent.Future;
import io.netty.util.concurrent.FutureListener;
import io.netty.util.concurrent.Promise;
import java.nio.channels.ClosedChannelException;
import java.time.Duration;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.verbena.api.RdmaClient;
import org.verbena.api.RdmaServer;
import org.verbena.api.internal.loop.LoopFuture;
import org.verbena.api.service.Codec;
import org.verbena.transport.ConnectionException;

/** The parts that {@link RdmaServer} and {@link RdmaClient} share. */
public final class ShortForm {

    /** The number of event loops of a server: one per processor, but no more than most servers can use. */
    public static final int SERVER_THREADS = Math.clamp(Runtime.getRuntime().availableProcessors(), 1, 8);

    /** Long enough for CLOSE frames in flight. */
    public static final int CLOSE_MILLIS = 5_000;

    /** How long connecting may take by default: Netty's default. */
    public static final int CONNECT_MILLIS = 30_000;

    private static final int MAX_PORT = 65_535;

    /** The number of failures that the message for all of them names. */
    private static final int MAX_CAUSES = 5;

    /** How much of a peer's words is logged or thrown, in characters. */
    private static final int MAX_WORDS_CHARS = 200;

    private ShortForm() {}

    /** Words of a peer, as they may be logged or thrown: on one line, and not too many. */
    public static String printable(String words) {
        return words.substring(0, Math.min(words.length(), MAX_WORDS_CHARS))
                .replaceAll("[\\p{Cc}\\p{Cf}\\p{Zl}\\p{Zp}]", "?");
    }

    /** Makes a message of a value. */
    public static <T> ByteBuf encode(ByteBufAllocator allocator, Codec<T> codec, T value) throws Exception {
        ByteBuf message = allocator.buffer();
        try {
            codec.encode(value, message);
            return message;
        } catch (Throwable cause) {
            message.release();
            throw cause;
        }
    }

    /** Checks where to connect to or to listen. */
    public static void checkAddress(String purpose, String host, int port, int minPort) {
        if (host == null || host.isBlank()) {
            throw new IllegalArgumentException(purpose + "port " + port + ": the host is "
                    + (host == null ? "null" : "blank") + "; name one, or say localhost");
        }
        if (port < minPort || port > MAX_PORT) {
            throw new IllegalArgumentException(
                    purpose + host + ":" + port + ": the port is not within " + minPort + " to " + MAX_PORT);
        }
    }

    /**
     * Throws if the calling thread has been interrupted. Nothing is begun then, since the interrupt could close the
     * files that the first use of a provider opens.
     */
    public static void checkNotInterrupted(String purpose) {
        if (Thread.currentThread().isInterrupted()) {
            throw interrupted(purpose, new InterruptedException());
        }
    }

    /** Keeps the thread interrupted. */
    public static ConnectionException interrupted(String purpose, InterruptedException interruption) {
        Thread.currentThread().interrupt();
        return new ConnectionException(purpose + ": the thread was interrupted", interruption);
    }

    /** Checks a time. Returns it in nanoseconds, saturating. */
    public static long positive(String name, Duration value) {
        Objects.requireNonNull(value, () -> name + " is null");
        if (!value.isPositive()) {
            throw new IllegalArgumentException(name + " " + value + " is not positive");
        }
        return TimeUnit.NANOSECONDS.convert(value);
    }

    public static long positive(String name, long value) {
        if (value < 1) {
            throw new IllegalArgumentException(name + " " + value + " is below 1");
        }
        return value;
    }

    /**
     * Makes a channel and waits until it is on its loop. A bootstrap that connects or binds by itself does so in a
     * listener, which a loop that ends in between never calls.
     *
     * @throws ConnectionException the loops have ended
     */
    public static Channel register(String purpose, AbstractBootstrap<?, ?> bootstrap) {
        ChannelFuture registering = bootstrap.register();
        await(purpose, registering, bootstrap.config().group());
        return registering.channel();
    }

    /**
     * Waits until a registered channel is connected or bound, and closes it if it is not.
     *
     * @throws ConnectionException it is not, or the thread was interrupted
     */
    public static void awaitOpen(String purpose, ChannelFuture opening) {
        try {
            await(purpose, opening, opening.channel().eventLoop());
        } catch (RuntimeException | Error failure) {
            opening.channel().close();
            throw failure;
        }
    }

    /**
     * Waits until a channel is registered, connected or bound.
     *
     * @param future of a channel, or with one as its value; given up if the thread is interrupted
     * @param loops complete it; if they end without doing so, no one will
     * @throws ConnectionException it is not, or the thread was interrupted
     */
    public static void await(String purpose, Future<?> future, EventExecutorGroup loops) {
        FutureListener<Object> atEnd = ended -> {
            if (future instanceof Promise<?> promise) {
                promise.tryFailure(new ClosedChannelException());
            }
        };
        loops.terminationFuture().addListener(atEnd);
        try {
            future.await();
        } catch (InterruptedException interruption) {
            future.cancel(false);
            if (future instanceof ChannelFuture opening) {
                opening.channel().close();
            } else if (future.isSuccess() && future.getNow() instanceof Channel late) {
                late.close();
            }
            throw interrupted(purpose, interruption);
        } finally {
            loops.terminationFuture().removeListener(atEnd);
        }
        Throwable cause = future.cause();
        if (cause != null) {
            throw unchecked(purpose, cause);
        }
    }

    /** Returns an exception to throw for a failure. */
    public static RuntimeException unchecked(String purpose, Throwable cause) {
        return switch (cause) {
            case RejectedExecutionException ended -> closed(purpose, ended);
            case ClosedChannelException ended -> closed(purpose, ended);
            case CancellationException ended -> closed(purpose, ended);
            case RuntimeException failure -> failure;
            case Error error -> throw error;
            default -> new ConnectionException(purpose + ": " + cause.getMessage(), cause);
        };
    }

    private static ConnectionException closed(String purpose, Exception cause) {
        return new ConnectionException(purpose + ": the event loops have ended, or are ending", cause);
    }

    /** One failure for several, of the first one's kind. */
    public static Throwable ofAll(String purpose, List<Throwable> causes) {
        Throwable first = causes.getFirst();
        String message = purpose + ": none of " + causes.size() + " connections could be made: "
                + causes.stream()
                        .limit(MAX_CAUSES)
                        .map(cause -> String.valueOf(cause.getMessage()))
                        .collect(Collectors.joining("; "))
                + (causes.size() > MAX_CAUSES ? "; ..." : "");
        ConnectionException all = switch (first) {
            case ConnectionException.Rejected rejected ->
                new ConnectionException.Rejected(message, rejected.privateData());
            case ConnectionException.Unreachable unreachable -> new ConnectionException.Unreachable(message);
            case ConnectionException.TimedOut late -> new ConnectionException.TimedOut(message);
            case ConnectionException.Lost lost -> new ConnectionException.Lost(message);
            case ConnectionException other -> new ConnectionException(message);
            default -> null;
        };
        if (all == null) {
            return first;
        }
        all.initCause(first);
        causes.stream().skip(1).limit(MAX_CAUSES).forEach(all::addSuppressed);
        return all;
    }

    /** Closes a channel. Done when it is closed, which it is if its loop has ended. */
    public static CompletableFuture<Void> close(Channel channel) {
        return done(channel.close());
    }

    /** Returns a stage that is done with the future, whatever its outcome, and also if its loop has ended. */
    public static CompletableFuture<Void> done(Future<?> future) {
        return LoopFuture.of(future).handle((value, failure) -> null);
    }

    /** For options from a map, where each value has its option's type. */
    @SuppressWarnings("unchecked")
    public static ChannelOption<Object> untyped(ChannelOption<?> option) {
        return (ChannelOption<Object>) option;
    }
}
