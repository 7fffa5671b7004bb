package org.verbena.transport.verbs;

import io.netty.channel.IoEventLoop;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import io.netty.util.concurrent.DefaultThreadFactory;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.cm.CmId;
import org.verbena.cm.EventChannel;
import org.verbena.cm.PortSpace;
import org.verbena.transport.ProviderException;

/**
 * A thread that sets connections up and takes them down: it runs a {@link CmIoHandler} on one event channel. The
 * provider has a common one, for what has no device or none yet, and one for each device, since calls that create and
 * destroy queue pairs, or listen on iWARP, wait for the device's firmware, which may not answer.
 *
 * <p>All calls on an id, and those that create and destroy its queue pair, are made on one loop at a time, one after
 * the other, so that none meets an object that another one closes; {@link SetupLoop} says on which. The one exception
 * is {@link #blockingConnects()}.
 */
final class ConnectionLoop {
    private static final Logger LOG = LoggerFactory.getLogger(ConnectionLoop.class);

    /**
     * The delay before another attempt: what was missing may be available again, and one line a second does not flood
     * the log.
     */
    private static final long RETRY_MILLIS = 1_000;

    private static final int CLOSE_SECONDS = 5;

    private final EventChannel channel;
    private final MultiThreadIoEventLoopGroup group;
    private final IoEventLoop loop;
    private final CmIoHandler handler;
    private final BlockingConnects blockingConnects;

    /**
     * Starts the thread.
     *
     * @param name of the thread
     * @param onDeviceRemoved called on it whenever the system has removed some device; null to leave that to another
     *     loop
     * @throws org.verbena.verbs.NativeRdmaException there is no device, or no permission
     * @throws java.io.UncheckedIOException no descriptor is left
     * @throws ProviderException its thread cannot be started
     */
    ConnectionLoop(String name, @Nullable Runnable onDeviceRemoved) {
        channel = EventChannel.open();
        CmIoHandler[] made = new CmIoHandler[1];
        try {
            group = new MultiThreadIoEventLoopGroup(1, new DefaultThreadFactory(name, true), executor -> {
                made[0] = new CmIoHandler(executor, channel, onDeviceRemoved);
                return made[0];
            });
        } catch (RuntimeException refused) {
            channel.close();
            // Netty only says that it has no loop.
            throw refused.getCause() instanceof RuntimeException why ? why : refused;
        }
        loop = group.next();
        handler = made[0];
        try {
            // An event loop's thread starts with its first task, and a process that only listens would never give it
            // one.
            loop.execute(() -> {});
        } catch (Throwable noThread) {
            handler.destroy();
            channel.close();
            throw new ProviderException(
                    "the thread " + name + " cannot be started: " + noThread.getMessage(), noThread);
        }
        blockingConnects = new BlockingConnects(loop);
    }

    /** For tests: ends the thread. */
    void close() {
        blockingConnects.close();
        group.shutdownGracefully(0, CLOSE_SECONDS, TimeUnit.SECONDS).awaitUninterruptibly();
        channel.close();
    }

    /** Makes the connect calls that may block. */
    BlockingConnects blockingConnects() {
        return blockingConnects;
    }

    /** The loop itself, to execute and schedule on. */
    IoEventLoop loop() {
        return loop;
    }

    /** Handles the device's asynchronous events from now on, or as soon as the system allows it. Any thread. */
    void watch(VerbsDevice device) {
        loop.execute(() -> {
            if (device.isLost()) {
                return;
            }
            try {
                handler.watch(device);
            } catch (Throwable refused) {
                LOG.warn(
                        "The asynchronous events of {} cannot be taken; next try in {} ms",
                        device.name(),
                        RETRY_MILLIS,
                        refused);
                loop.schedule(() -> watch(device), RETRY_MILLIS, TimeUnit.MILLISECONDS);
            }
        });
    }

    /** Handles the device's asynchronous events no longer. This loop's thread. */
    void unwatch(VerbsDevice device) {
        handler.unwatch(device);
    }

    /**
     * Makes an id for a reliable connection or a listener.
     *
     * @param sink receives its events
     * @return the id; the caller closes it
     */
    CmId newId(CmEventSink sink) {
        return newId(sink, PortSpace.TCP);
    }

    /**
     * Makes an id.
     *
     * @param sink receives its events
     * @param portSpace connections or datagrams
     * @return the id; the caller closes it
     */
    CmId newId(CmEventSink sink, PortSpace portSpace) {
        CmId id = CmId.create(channel, portSpace);
        id.attach(sink);
        return id;
    }

    /**
     * Takes an id over, with its pending events.
     *
     * @throws org.verbena.cm.CmException the kernel refuses; the id stays where it is
     */
    void adopt(CmId id) {
        id.migrate(channel);
        loop.execute(this::takeMoved);
    }

    /**
     * Takes the events that have come here with an id. The kernel moves them without waking a thread that
     * waits for this channel (core/ucma.c, ucma_migrate_id).
     */
    private void takeMoved() {
        try {
            if (handler.takeConnectionEvents(channel)) {
                loop.execute(this::takeMoved);
            }
        } catch (RuntimeException refused) {
            LOG.warn("Events that came with an id cannot be taken; next try in {} ms", RETRY_MILLIS, refused);
            loop.schedule(this::takeMoved, RETRY_MILLIS, TimeUnit.MILLISECONDS);
        }
    }

    /**
     * Gives an id an event channel of its own, since one call at a time is made on a channel and this one's next call
     * may block. This loop's thread.
     *
     * @param id with a route
     * @return the channel; {@link #rejoin} or {@link #closeOwn} it when the outcome of the call is known
     */
    EventChannel leave(CmId id) {
        EventChannel own = EventChannel.open();
        try {
            id.migrate(own);
        } catch (RuntimeException refused) {
            own.close();
            throw refused;
        }
        try {
            handler.watch(own);
        } catch (RuntimeException refused) {
            adopt(id);
            own.close();
            throw refused;
        }
        return own;
    }

    /**
     * Brings an id back to this loop's channel, and closes its own. Not within one of its events; this loop's thread.
     */
    void rejoin(CmId id, EventChannel own) {
        adopt(id);
        closeOwn(own);
    }

    /** Closes the channel of an id that is closed. Not within one of its events; this loop's thread. */
    void closeOwn(EventChannel own) {
        try {
            handler.unwatch(own);
        } catch (RuntimeException refused) {
            // Closing the descriptor does it as well.
            LOG.debug("{} is closed while it is watched", own, refused);
        }
        own.close();
    }
}
