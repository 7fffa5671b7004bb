package org.verbena.api.internal.ladder;

import io.netty.channel.ChannelPipeline;
import io.netty.channel.EventLoop;
import io.netty.util.ReferenceCountUtil;
import java.util.ArrayDeque;
import org.verbena.api.LadderSocketChannel;

/**
 * Delivers the inbound messages of a {@link LadderSocketChannel}'s rung to the channel's pipeline, in order and only as
 * requested. It requests one batch at a time from the rung. If the pipeline then no longer wants to read, that batch
 * waits here, so never more than one does. Event loop of the channel only.
 */
public final class LadderInbound {

    /** The channel, as far as this needs it. */
    public interface Host {
        ChannelPipeline pipeline();

        EventLoop eventLoop();

        /** Whether inbound messages go to the pipeline. */
        boolean wantsInbound0();

        /** Requests a batch from the rung; does nothing before there is a rung. */
        boolean request0();
    }

    /** Something that happened after the messages before it. */
    private record Event(Runnable action) {}

    private final Host host;
    private final ArrayDeque<Object> waiting = new ArrayDeque<>(0);
    private final Runnable drain = this::drain0;

    /** The pipeline has asked for a batch that has not begun. */
    private boolean asked;

    /** The rung was asked for a batch that has not ended. */
    private boolean requested;

    private boolean inBatch;

    /** The batch that has begun stops: auto-read was switched off. */
    private boolean stopped;

    private boolean drainScheduled;

    public LadderInbound(Host host) {
        this.host = host;
    }

    /** The pipeline asks for a batch. */
    public void read() {
        asked = true;
        proceed();
    }

    /** There is a rung now, which gets the earlier requests. */
    public void resume() {
        proceed();
    }

    /** The pipeline withdraws its request. */
    public void stop() {
        asked = false;
        stopped = inBatch;
    }

    private void proceed() {
        if (!asked) {
            return;
        }
        if (!waiting.isEmpty()) {
            if (!drainScheduled) {
                host.eventLoop().execute(drain);
                drainScheduled = true;
            }
        } else if (!requested) {
            requested = host.request0();
        }
    }

    void onMessage(Object message) {
        if (!host.wantsInbound0()) {
            ReferenceCountUtil.release(message);
        } else if (waiting.isEmpty() && isWanted()) {
            fire(message);
        } else {
            waiting.add(message);
        }
    }

    private boolean isWanted() {
        return asked || (inBatch && !stopped);
    }

    private void fire(Object message) {
        asked = false;
        inBatch = true;
        host.pipeline().fireChannelRead(message);
    }

    /** The rung's batch has ended. */
    void onBatchEnd() {
        requested = false;
        endBatch();
    }

    private void endBatch() {
        if (inBatch) {
            inBatch = false;
            stopped = false;
            host.pipeline().fireChannelReadComplete(); // with auto-read on, this reads again
        }
        proceed();
    }

    /** Runs an action after the messages before it. */
    public void onEvent(Runnable action) {
        if (waiting.isEmpty()) {
            action.run();
        } else {
            waiting.add(new Event(action));
        }
    }

    private void drain0() {
        drainScheduled = false;
        while (!waiting.isEmpty() && (waiting.peek() instanceof Event || isWanted())) {
            next();
        }
        endBatch();
    }

    private void next() {
        Object first = waiting.remove();
        if (first instanceof Event event) {
            event.action().run();
        } else {
            fire(first);
        }
    }

    /** The connection is lost: delivers everything without waiting for requests. */
    public void deliverAll() {
        while (!waiting.isEmpty()) {
            next();
        }
        endBatch();
    }

    /** The channel is closed. */
    public void close() {
        asked = false;
        while (!waiting.isEmpty()) {
            ReferenceCountUtil.release(waiting.remove());
        }
    }
}
