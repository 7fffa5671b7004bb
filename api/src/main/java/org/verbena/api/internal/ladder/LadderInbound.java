package org.verbena.api.internal.ladder;

import io.netty.channel.ChannelPipeline;
import io.netty.channel.EventLoop;
import io.netty.util.ReferenceCountUtil;
import java.util.ArrayDeque;
import org.verbena.api.LadderSocketChannel;

/**
 * Takes what the rung of a {@link LadderSocketChannel} delivers to that channel's pipeline: in order, and no more than
 * its pipeline has asked for. The rung is asked for one batch at a time. What comes of it after the pipeline has
 * changed its mind waits here, and so no more than one batch does. Event loop of the channel only.
 */
public final class LadderInbound {

    /** The channel, as far as this needs it. */
    public interface Host {
        ChannelPipeline pipeline();

        EventLoop eventLoop();

        /** Whether what arrives goes to the pipeline. */
        boolean wantsInbound0();

        /** Asks the rung for a batch; does nothing before there is one. */
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

    /** The batch that has begun goes no further: auto-read was switched off. */
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

    /** There is a rung now, which gets what was asked for before. */
    public void resume() {
        proceed();
    }

    /** The pipeline does not want what it has asked for. */
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
                drainScheduled = true;
                host.eventLoop().execute(drain);
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

    /** Runs an action after what has come before it. */
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

    /** The connection is lost: nothing waits for the pipeline to ask for it. */
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
