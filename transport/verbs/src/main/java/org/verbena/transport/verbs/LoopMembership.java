package org.verbena.transport.verbs;

import io.netty.channel.IoEventLoop;
import io.netty.channel.IoRegistration;
import io.netty.util.concurrent.Future;
import java.util.concurrent.RejectedExecutionException;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The place of an endpoint or a listener on its completion loop. */
final class LoopMembership {
    private static final Logger LOG = LoggerFactory.getLogger(LoopMembership.class);

    private final VerbsHandle member;
    private final IoEventLoop loop;

    /** Written by the loop once; read by threads that execute tasks on it. */
    private volatile @Nullable CompletionIoHandler ioHandler;

    /** Confined to the loop's thread. */
    private @Nullable IoRegistration registration;

    LoopMembership(VerbsHandle member, IoEventLoop loop) {
        this.member = member;
        this.loop = loop;
    }

    IoEventLoop loop() {
        return loop;
    }

    /** Registers it. The loop's thread, first of all. */
    void join0() {
        Future<IoRegistration> registered = loop.register(member);
        if (!registered.isSuccess()) {
            throw new IllegalStateException("not a loop of the verbs provider", registered.cause());
        }
        IoRegistration known = registered.getNow();
        registration = known;
        ioHandler = known.attachment();
    }

    /** The loop's handler, once it has joined. */
    CompletionIoHandler ioHandler() {
        return VerbsEndpoint.required(ioHandler);
    }

    /** Runs something on the loop, also while that ends. Any thread. */
    void execute(Runnable task) {
        CompletionIoHandler known = ioHandler;
        if (known != null) {
            known.execute(task);
            return;
        }
        try {
            loop.execute(task);
        } catch (RejectedExecutionException ended) {
            LOG.debug("{}: its loop has ended", member, ended);
        }
    }

    /** It has ended. The loop's thread. */
    void leave0() {
        IoRegistration known = registration;
        if (known != null) {
            known.cancel();
        }
    }
}
