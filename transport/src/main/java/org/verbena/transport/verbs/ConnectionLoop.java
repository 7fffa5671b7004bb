package org.verbena.transport.verbs;

import io.netty.channel.IoEventLoop;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import io.netty.util.concurrent.DefaultThreadFactory;
import org.verbena.cm.CmId;
import org.verbena.cm.EventChannel;
import org.verbena.cm.PortSpace;

/**
 * The thread that sets connections up and takes them down, for all endpoints of the process: it runs a {@link CmIoHandler} on one event channel. All
 * calls on an id and on its queue pair's life are made on it, one after the other, so that none meets an object that another one closes.
 */
final class ConnectionLoop {
    private final EventChannel channel;
    private final IoEventLoop loop;
    private final CmIoHandler handler;

    /**
     * Starts the thread.
     *
     * @throws org.verbena.verbs.RdmaException there is no device, or no permission
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
    }

    /** The loop itself, to execute and schedule on. */
    IoEventLoop loop() {
        return loop;
    }

    /** Hears the device's asynchronous events from now on. Any thread. */
    void watch(VerbsDevice device) {
        loop.execute(() -> handler.watch(device));
    }

    /**
     * Makes an id for a reliable connection or a listener.
     *
     * @param sink hears its events
     * @return the id; the caller closes it
     */
    CmId newId(CmEventSink sink) {
        CmId id = CmId.create(channel, PortSpace.TCP);
        id.attach(sink);
        return id;
    }
}
