package org.verbena.tools.perf;

import io.netty.channel.EventLoop;
import io.netty.util.concurrent.Future;
import io.netty.util.concurrent.Promise;
import java.util.ArrayDeque;
import org.verbena.samples.command.CommandFailure;

/** The messages that were sent and have not come back yet, in order. Used on one event loop. */
final class Echoes {
    private final EventLoop loop;
    private final ArrayDeque<Promise<Boolean>> awaited = new ArrayDeque<>();

    Echoes(EventLoop loop) {
        this.loop = loop;
    }

    /** Completes when the message that is sent has come back. */
    Future<?> expect(Future<?> sent) {
        Promise<Boolean> back = loop.newPromise();
        expect(sent, back);
        return back;
    }

    /** Completes that promise when the message that is sent has come back. */
    void expect(Future<?> sent, Promise<Boolean> back) {
        awaited.add(back);
        sent.addListener(done -> {
            if (!done.isSuccess()) {
                back.tryFailure(done.cause());
            }
        });
    }

    void arrived() {
        Promise<Boolean> back = awaited.poll();
        if (back != null) {
            back.trySuccess(true);
        }
    }

    void fail(String why) {
        for (Promise<Boolean> back = awaited.poll(); back != null; back = awaited.poll()) {
            back.tryFailure(new CommandFailure(why));
        }
    }
}
