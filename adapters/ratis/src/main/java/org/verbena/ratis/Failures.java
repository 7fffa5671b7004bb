package org.verbena.ratis;

import java.io.IOException;
import java.net.SocketException;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import org.apache.ratis.protocol.exceptions.RaftException;
import org.apache.ratis.protocol.exceptions.TimeoutIOException;
import org.apache.ratis.util.JavaUtils;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.RequestException;
import org.verbena.transport.RequestFailure;

/** Ratis' exceptions on the way from a server to its client, and Verbena's as Ratis knows them. */
final class Failures {
    /** The only code: the payload tells more. */
    private static final int THROWN = 0;

    /** Where the exceptions are that tell a client what to do, and take nothing but words. */
    private static final String KNOWN = RaftException.class.getPackageName() + '.';

    private Failures() {}

    /** What a server answers with instead of a reply. Only Ratis' own exceptions are answers. */
    static Throwable answer(Throwable thrown) {
        Throwable cause = JavaUtils.unwrapCompletionException(thrown);
        if (!(cause instanceof IOException)) {
            return cause;
        }
        return new RequestFailure(
                THROWN,
                String.valueOf(cause.getMessage()),
                cause.getClass().getName().getBytes(StandardCharsets.UTF_8));
    }

    /**
     * What Ratis expects. Of these it tries again after a lost connection ({@link SocketException}) and a timeout on a
     * new connection. A leader logs each with its stack, several a second while a follower is down: they have none,
     * since the event loop's says nothing that the message does not.
     */
    static IOException ioException(Throwable thrown) {
        Throwable cause = JavaUtils.unwrapCompletionException(thrown);
        return switch (cause) {
            case IOException already -> already;
            case RequestFailure answer -> rebuilt(answer);
            case RequestException.TimedOut late -> told(new TimeoutIOException(String.valueOf(late.getMessage())));
            case ConnectionException lost -> told(new SocketException(String.valueOf(lost.getMessage())));
            default -> new IOException(String.valueOf(cause.getMessage()), cause);
        };
    }

    private static <E extends IOException> E told(E failure) {
        failure.setStackTrace(new StackTraceElement[0]);
        return failure;
    }

    static CompletionException completion(Throwable thrown) {
        return new CompletionException(ioException(thrown));
    }

    /**
     * The same outcome, and of a failure its cause: Ratis hands on what it gets, and only a future that nothing was
     * made of gives that.
     */
    static <R> CompletableFuture<R> bare(CompletableFuture<R> stage) {
        CompletableFuture<R> bare = new CompletableFuture<>();
        stage.whenComplete((result, failure) -> {
            if (failure == null) {
                bare.complete(result);
            } else {
                bare.completeExceptionally(JavaUtils.unwrapCompletionException(failure));
            }
        });
        return bare;
    }

    /** No more than a class of Ratis' exceptions is made by what a server sends. */
    private static IOException rebuilt(RequestFailure answer) {
        String name = new String(answer.payload(), StandardCharsets.UTF_8);
        if (name.startsWith(KNOWN)) {
            try {
                IOException made = Class.forName(name, true, RaftException.class.getClassLoader())
                        .asSubclass(IOException.class)
                        .getConstructor(String.class)
                        .newInstance(answer.getMessage());
                made.initCause(answer);
                return made;
            } catch (ReflectiveOperationException | ClassCastException | IllegalStateException other) {
                IOException plain = new IOException(name + ": " + answer.getMessage(), answer);
                plain.addSuppressed(other);
                return plain;
            }
        }
        return new IOException(name + ": " + answer.getMessage(), answer);
    }
}
