package org.verbena.transport.verbs;

import io.netty.channel.IoHandle;
import io.netty.channel.IoHandlerContext;
import io.netty.channel.IoRegistration;
import io.netty.util.collection.LongObjectHashMap;
import io.netty.util.concurrent.ThreadAwareExecutor;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.cm.CmEvent;
import org.verbena.cm.EventChannel;
import org.verbena.transport.verbs.epoll.DescriptorIoHandler;
import org.verbena.transport.verbs.epoll.DeviceChanges;
import org.verbena.verbs.AsyncEvent;
import org.verbena.verbs.NativeRdmaException;

/**
 * A connection loop's I/O: waits for events of the connection manager and of the devices, and dispatches each to its
 * owner. Nothing is registered with it.
 */
final class CmIoHandler extends DescriptorIoHandler {
    private static final Logger LOG = LoggerFactory.getLogger(CmIoHandler.class);

    /** How many events are handled before tasks get their turn. */
    private static final int MAX_EVENTS_PER_TURN = 64;

    /**
     * What is watched, by the number under which epoll reports it: an {@link EventChannel}, a {@link VerbsDevice}, or
     * the changes.
     */
    private final LongObjectHashMap<Object> watched = new LongObjectHashMap<>();

    private final @Nullable Runnable onDeviceRemoved;
    private final @Nullable DeviceChanges changes;

    private long nextNumber;
    private int handled;

    CmIoHandler(ThreadAwareExecutor executor, EventChannel channel, @Nullable Runnable onDeviceRemoved) {
        super(executor);
        this.onDeviceRemoved = onDeviceRemoved;
        changes = onDeviceRemoved == null ? null : watchChanges();
        try {
            watch(channel);
        } catch (RuntimeException refused) {
            destroy();
            throw refused;
        }
    }

    /**
     * Null on the loop of a device, and if the system does not report changes: then removals of devices without
     * connections are noticed late.
     */
    private @Nullable DeviceChanges watchChanges() {
        DeviceChanges made = null;
        try {
            made = new DeviceChanges();
            watch(made.fd(), nextNumber);
            watched.put(nextNumber++, made);
            return made;
        } catch (RuntimeException refused) {
            LOG.debug("The system does not report removals of devices", refused);
            if (made != null) {
                made.close();
            }
            return null;
        }
    }

    void watch(VerbsDevice device) {
        watch(device.context().asyncFd(), nextNumber);
        watched.put(nextNumber++, device);
    }

    /** Before its context is closed. Does nothing if it is not watched. */
    void unwatch(VerbsDevice device) {
        if (watched.values().remove(device)) {
            unwatch(device.context().asyncFd());
        }
    }

    void watch(EventChannel channel) {
        watch(channel.descriptor(), nextNumber);
        watched.put(nextNumber++, channel);
    }

    /** Before the channel is closed. */
    void unwatch(EventChannel channel) {
        watched.values().remove(channel);
        unwatch(channel.descriptor());
    }

    @Override
    protected int doWork(IoHandlerContext context) {
        handled = 0;
        block(context, Long.MAX_VALUE);
        return handled;
    }

    @Override
    protected void onReadable(long data) {
        Object source = watched.get(data);
        if (source instanceof EventChannel channel) {
            takeConnectionEvents(channel);
        } else if (source instanceof VerbsDevice device) {
            takeDeviceEvents(device);
        } else if (source instanceof DeviceChanges removals && onDeviceRemoved != null && removals.takeRemovals()) {
            handled++;
            onDeviceRemoved.run();
        }
    }

    /** Dispatches the events of a channel; false if there are no more. The loop's thread. */
    boolean takeConnectionEvents(EventChannel channel) {
        for (int i = 0; i < MAX_EVENTS_PER_TURN; i++) {
            CmEvent event = channel.tryGet();
            if (event == null) {
                return false;
            }
            handled++;
            Object sink = event.listener() == null
                    ? event.id().attachment()
                    : event.listener().attachment();
            LOG.debug("{}: {}", event.id(), event.type());
            try {
                if (sink instanceof CmEventSink owner) {
                    owner.onCmEvent(event);
                } else if (event.listener() != null) {
                    event.id().close();
                }
            } catch (Throwable failure) {
                LOG.error("{} could not be handled", event.describe(), failure);
            }
        }
        return true;
    }

    private void takeDeviceEvents(VerbsDevice device) {
        for (int i = 0; i < MAX_EVENTS_PER_TURN; i++) {
            AsyncEvent event;
            try {
                event = device.context().tryGetAsyncEvent();
            } catch (NativeRdmaException gone) {
                device.events().onUnreadable(gone);
                return;
            }
            if (event == null) {
                return;
            }
            handled++;
            try {
                device.events().onAsyncEvent(event);
            } catch (Throwable failure) {
                LOG.error("{} of {} could not be handled", event, device, failure);
            }
        }
    }

    @Override
    public void destroy() {
        super.destroy();
        if (changes != null) {
            changes.close();
        }
    }

    @Override
    public IoRegistration register(IoHandle handle) {
        throw new UnsupportedOperationException("nothing can be registered with a connection loop");
    }

    @Override
    public boolean isCompatible(Class<? extends IoHandle> handleType) {
        return false;
    }
}
