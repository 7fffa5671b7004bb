package org.verbena.api.internal.request;

import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.netty.util.concurrent.DefaultEventExecutorGroup;
import io.netty.util.concurrent.ImmediateEventExecutor;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.transport.ConnectionException;

/** A thread that waits for loops which end without a word. */
@Timeout(120)
class EndedLoopsTest {
    @Test
    void nobodyWaitsForLoopsThatHaveEnded() {
        DefaultEventExecutorGroup loops = new DefaultEventExecutorGroup(1);
        loops.shutdownGracefully(0, 0, TimeUnit.SECONDS);
        assertThatThrownBy(() -> ShortForm.await("connect", ImmediateEventExecutor.INSTANCE.newPromise(), loops))
                .isInstanceOf(ConnectionException.class)
                .hasMessageContaining("the event loops have ended");
    }
}
