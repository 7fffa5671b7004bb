package org.verbena.transport.verbs;

import io.netty.channel.IoHandle;
import io.netty.channel.IoHandler;
import io.netty.channel.IoRegistration;
import io.netty.channel.nio.NioIoHandler;
import io.netty.util.concurrent.ThreadAwareExecutor;
import java.io.IOException;
import java.nio.channels.Selector;
import java.util.function.IntConsumer;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.system.KnownSelectors;
import org.verbena.transport.system.Polling;
import org.verbena.transport.system.SelectorDescriptor;

/**
 * Netty's NIO channels, TCP and UDP, on a completion loop. Netty's NIO handler serves them and never blocks: the loop
 * blocks in its own epoll, which watches that of the handler's selector. What a handler changes, such as a channel's
 * interest in writing, takes effect at the selector's next selection; so the loop calls {@link #poll()} before it
 * blocks.
 */
final class SocketChannels {
    private final IntConsumer watch;
    private final IoHandler nio;
    private @Nullable Selector selector;

    /**
     * Opens a selector.
     *
     * @param executor the loop
     * @param watch makes the loop's epoll watch a descriptor
     * @throws io.netty.channel.ChannelException there is none, or the loop cannot wait for it
     */
    SocketChannels(ThreadAwareExecutor executor, IntConsumer watch) {
        this.watch = watch;
        nio = NioIoHandler.newFactory(new KnownSelectors(this::watch)).newHandler(executor);
        nio.initialize();
    }

    IoRegistration register(IoHandle handle) throws Exception {
        return nio.register(handle);
    }

    /** Handles what is ready; returns how much that was. */
    int poll() {
        Selector present = selector;
        return present == null || present.keys().isEmpty() ? 0 : nio.run(Polling.CONTEXT);
    }

    /** The loop is going to end: closes the channels. */
    void prepareToDestroy() {
        nio.prepareToDestroy();
    }

    void destroy() {
        nio.destroy();
    }

    /** Watches each selector that the handler opens: one, and another in its place if it breaks. */
    private void watch(Selector opened) throws IOException {
        try {
            watch.accept(SelectorDescriptor.of(opened));
        } catch (IOException unknown) {
            throw new IOException(
                    "a loop of the verbs provider cannot wait for sockets here, give them loops of their own: "
                            + unknown.getMessage(),
                    unknown);
        }
        selector = opened;
    }
}
