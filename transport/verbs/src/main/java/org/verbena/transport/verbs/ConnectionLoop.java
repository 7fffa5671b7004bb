package org.verbena.transport.verbs;

import io.netty.channel.IoEventLoop;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import io.netty.util.concurrent.DefaultThreadFactory;
import org.verbena.cm.CmId;
import org.verbena.cm.EventChannel;
import org.verbena.cm.PortSpace;

/**
 * The thread that sets connections up and takes them down, for all endpoints of the process: it runs a {@link CmIoHandler} on one event channel. All
 * calls on an id and on its queue pair's life are made on it, one after the other, so that none meets an object that another one closes. The one exception
 * are {@link #blockingConnects()}.
 */
final class ConnectionLoop {
    private final EventChannel channel;
    private final IoEventLoop loop;
    private final CmIoHandler handler;
    private final BlockingConnects blockingConnects;

    /**
     * Starts the thread.
     *
     * @throws org.verbena.verbs.NativeRdmaException there is no device, or no permission
     */
    ConnectionLoop() {
        channel = EventChannel.open();
        CmIoHandler[] made = new CmIoHandler[1];
        MultiThreadIoEventLoopGroup group =
                new MultiThreadIoEventLoopGroup(1, new DefaultThreadFactory("verbena-connections", true), executor -> {
                    made[0] = new CmIoHandler(executor, channel);
                    return made[0];
                });
        loop = group.next();
        handler = made[0];
        // An event loop's thread starts with its first task, and a process that only listens would never give it one.
        loop.execute(() -> {});
        blockingConnects = new BlockingConnects(loop);
    }

    /** Makes the connect calls that may block. */
    BlockingConnects blockingConnects() {
        return blockingConnects;
    }

    /** The loop itself, to execute and schedule on. */
    IoEventLoop loop() {
        return loop;
    }

    /** Handles the device's asynchronous events from now on. Any thread. */
    void watch(VerbsDevice device) {
        loop.execute(() -> handler.watch(device));
    }

    /**
     * Makes an id for a reliable connection or a listener.
     *
     * @param sink receives its events
     * @return the id; the caller closes it
     */
    CmId newId(CmEventSink sink) {
        CmId id = CmId.create(channel, PortSpace.TCP);
        id.attach(sink);
        return id;
    }

    /**
     * Gives an id an event channel of its own, since one call at a time is made on a channel and this one's next call may block. This loop's thread.
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
        handler.watch(own);
        return own;
    }

    /** Brings an id back to the common channel, and closes its own. Not within one of its events; this loop's thread. */
    void rejoin(CmId id, EventChannel own) {
        id.migrate(channel);
        closeOwn(own);
    }

    /** Closes the channel of an id that is closed. Not within one of its events; this loop's thread. */
    void closeOwn(EventChannel own) {
        handler.unwatch(own);
        own.close();
    }
}
