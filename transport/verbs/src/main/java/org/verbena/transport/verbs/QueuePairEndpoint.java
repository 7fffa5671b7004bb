package org.verbena.transport.verbs;

import io.netty.channel.IoEventLoop;

/**
 * What an endpoint is whatever its queue pair's type: a member of its completion loop, which marks it when a batch has
 * completions for it, and which watches it until everything that it posted has come back. Not thread-safe; confined to
 * the loop's thread, unless noted otherwise.
 */
abstract class QueuePairEndpoint implements VerbsHandle, LoopEndpoint {
    final IoEventLoop loop;
    final LoopMembership membership;
    final Draining draining = new Draining();

    /** This batch has completions for it. */
    boolean isTouched;

    QueuePairEndpoint(IoEventLoop loop) {
        this.loop = loop;
        membership = new LoopMembership(this, loop);
    }

    /** Begins, on the loop: never within the caller. Any thread. */
    final void start() {
        loop.execute(() -> guarded0(this::start0));
    }

    /** Whatever a task throws ends the endpoint at once. */
    private void guarded0(Runnable task) {
        try {
            task.run();
        } catch (Throwable thrown) {
            drain(thrown);
        }
    }

    abstract void start0();

    /** Runs something on the loop. Any thread. */
    final void execute(Runnable task) {
        membership.execute(() -> guarded0(task));
    }

    final void checkLoop() {
        if (!loop.inEventLoop()) {
            throw new IllegalStateException("an endpoint belongs to its event loop: use loop.execute()");
        }
    }

    @Override
    public final boolean touch() {
        boolean before = isTouched;
        isTouched = true;
        return before;
    }

    // ---- the end

    abstract boolean isDraining();

    /** Destroys the queue pair once everything is back. */
    abstract void checkDrained();

    /** Destroys the queue pair. */
    abstract void destroy0();

    /**
     * Everything is over: completes what is still out, and tells the handler.
     *
     * @param queuePairGone false if the device may still use the memory of what is out
     */
    abstract void finish0(boolean queuePairGone);

    final void inErrorState0() {
        draining.inErrorState();
        checkDrained();
    }

    @Override
    public final boolean drainTick(long now) {
        if (!isDraining() || draining.isOver()) {
            return false;
        }
        if (draining.isSilent(now)) {
            checkDrained();
            return false;
        }
        return true;
    }

    @Override
    public final void abandon() {
        if (!draining.isOver()) {
            destroy0(); // when the connection loop comes to it
        }
        finish0(false);
    }
}
