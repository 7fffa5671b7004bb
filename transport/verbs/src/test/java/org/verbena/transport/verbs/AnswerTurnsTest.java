package org.verbena.transport.verbs;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.channel.IoHandlerFactory;
import java.lang.foreign.Arena;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.transport.CompletionLoopOptions;
import org.verbena.transport.MemoryDomain.Access;
import org.verbena.transport.RegisteredMemory;
import org.verbena.transport.spi.Endpoint;
import org.verbena.transport.spi.RecordingEndpointHandler;
import org.verbena.transport.spi.ScatterGatherList;
import org.verbena.transport.spi.WorkRequest;

/** How often a loop that waits for each message goes back to Netty. The device does half of the sends later. */
@Timeout(120)
class AnswerTurnsTest extends LinkedPair {
    private static final int MESSAGES = 2000;

    /** Longer than the device ever takes, so that the loop does not sleep between two messages. */
    private static final CompletionLoopOptions SPINNING = new CompletionLoopOptions(
            TimeUnit.SECONDS.toNanos(2),
            CompletionLoopOptions.DEFAULTS.maxCompletionsPerTurn(),
            CompletionLoopOptions.DEFAULTS.completionQueueDepth());

    private final AtomicInteger turns = new AtomicInteger();
    private final CompletableFuture<Integer> taken = new CompletableFuture<>();
    private RegisteredMemory region;

    // The loop's thread only.
    private int sent;
    private int before;

    @Override
    IoHandlerFactory handlers(VerbsProvider of) {
        IoHandlerFactory real = of.newIoHandlerFactory(SPINNING);
        return executor -> LoopTurnsTest.counting(real.newHandler(executor), turns);
    }

    @AfterEach
    void calm() {
        StubDevice.call("stub_calm");
    }

    @Test
    void anAnswerDoesNotWaitForATurn() {
        connect("mlx5");
        region = client.call(
                endpoint -> endpoint.memoryDomain().register(Arena.global().allocate(64), Set.of(Access.LOCAL_WRITE)));
        regions.add(region);
        answers(client);
        answers(server);
        StubDevice.call("stub_seed", 1);
        StubDevice.call("stub_quirk", "work", 500);
        client.run(endpoint -> {
            before = turns.get();
            send(client, endpoint);
        });
        assertThat(taken.orTimeout(60, TimeUnit.SECONDS).join()).isLessThan(MESSAGES / 4);
    }

    /** Each message is answered by another one, until there were enough. */
    private void answers(RecordingEndpointHandler side) {
        side.whenReceived((endpoint, completion) -> {
            if (sent == MESSAGES) {
                taken.complete(turns.get() - before);
            } else {
                side.postReceive(endpoint, completion.workId() + 1, list());
                send(side, endpoint);
            }
        });
        side.receive(1, region, 0, 8);
    }

    private void send(RecordingEndpointHandler side, Endpoint endpoint) {
        WorkRequest work = new WorkRequest(1).asSend(sent++, 0);
        work.buffers().add(region, 8, 8);
        assertThat(side.post(endpoint, work)).isTrue();
        endpoint.flush();
    }

    private ScatterGatherList list() {
        return new ScatterGatherList(1).add(region, 0, 8);
    }
}
