package org.verbena.transport.verbs;

import io.netty.channel.IoHandle;
import io.netty.channel.IoHandlerContext;
import io.netty.channel.IoRegistration;
import io.netty.util.collection.LongObjectHashMap;
import io.netty.util.concurrent.ThreadAwareExecutor;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.cm.CmEvent;
import org.verbena.cm.EventChannel;
import org.verbena.transport.verbs.epoll.DescriptorIoHandler;
import org.verbena.verbs.AsyncEvent;
import org.verbena.verbs.NativeRdmaException;

/**
 * The connection loop's I/O: waits for events of the connection manager and of the devices, and dispatches each to its
 * owner. Nothing is registered with it.
 */
final class CmIoHandler extends DescriptorIoHandler {
    private static final Logger LOG = LoggerFactory.getLogger(CmIoHandler.class);

    /** How many events are handled before tasks get their turn. */
    private static final int MAX_EVENTS_PER_TURN = 64;

    /**
     * What is watched, by the number under which epoll reports it: an {@link EventChannel} or a {@link VerbsDevice}.
     */
    private final LongObjectHashMap<Object> watched = new LongObjectHashMap<>();

    private long nextNumber;
    private int handled;

    CmIoHandler(ThreadAwareExecutor executor, EventChannel channel) {
        super(executor);
        try {
            watch(channel);
        } catch (RuntimeException refused) {
            destroy();
            throw refused;
        }
    }

    void watch(VerbsDevice device) {
        watch(device.context().asyncFd(), nextNumber);
        watched.put(nextNumber++, device);
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
        block(context);
        return handled;
    }

    @Override
    protected void onReadable(long data) {
        Object source = watched.get(data);
        if (source instanceof EventChannel channel) {
            takeConnectionEvents(channel);
        } else if (source instanceof VerbsDevice device) {
            takeDeviceEvents(device);
        }
    }

    private void takeConnectionEvents(EventChannel channel) {
        for (int i = 0; i < MAX_EVENTS_PER_TURN; i++) {
            CmEvent event = channel.tryGet();
            if (event == null) {
                return;
            }
            handled++;
            Object sink = event.listener() == null
                    ? event.id().attachment()
                    : event.listener().attachment();
            LOG.debug("{}: {}", event.id(), event.type());
            try {
                if (sink instanceof CmEventSink hears) {
                    hears.onCmEvent(event);
                } else if (event.listener() != null) {
                    event.id().close();
                }
            } catch (RuntimeException failure) {
                LOG.error("{} could not be handled", event.describe(), failure);
            }
        }
    }

    private void takeDeviceEvents(VerbsDevice device) {
        for (int i = 0; i < MAX_EVENTS_PER_TURN; i++) {
            AsyncEvent event;
            try {
                event = device.context().tryGetAsyncEvent();
            } catch (NativeRdmaException gone) {
                unwatch(device.context().asyncFd());
                device.onLost("its asynchronous events cannot be read any more: " + gone.getMessage());
                return;
            }
            if (event == null) {
                return;
            }
            handled++;
            try {
                device.onAsyncEvent(event);
            } catch (RuntimeException failure) {
                LOG.error("{} of {} could not be handled", event, device, failure);
            }
        }
    }

    @Override
    public IoRegistration register(IoHandle handle) {
        throw new UnsupportedOperationException("nothing can be registered with the connection loop");
    }

    @Override
    public boolean isCompatible(Class<? extends IoHandle> handleType) {
        return false;
    }
}
