package org.verbena.transport.verbs;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.channel.IoEventLoop;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import java.lang.foreign.Arena;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.transport.CompletionLoopOptions;
import org.verbena.transport.MemoryDomain.Access;
import org.verbena.transport.RegisteredMemory;
import org.verbena.transport.WorkStatus;
import org.verbena.transport.spi.EndpointOptions;
import org.verbena.transport.spi.Patience;
import org.verbena.transport.spi.RecordingEndpointHandler;
import org.verbena.transport.spi.WorkRequest;

/** A completion event that the adapter loses delays what it was for, and nothing after it. */
@Timeout(120)
class LostEventTest {
    private final VerbsProvider provider = new VerbsProvider();
    private MultiThreadIoEventLoopGroup group;
    private RecordingEndpointHandler client;
    private RegisteredMemory region;

    @BeforeEach
    void connect() throws Exception {
        StubDevice.install();
        // It sleeps whenever there is nothing.
        CompletionLoopOptions options = new CompletionLoopOptions(
                0,
                CompletionLoopOptions.DEFAULTS.maxCompletionsPerTurn(),
                CompletionLoopOptions.DEFAULTS.completionQueueDepth());
        group = new MultiThreadIoEventLoopGroup(1, provider.newIoHandlerFactory(options));
        IoEventLoop loop = group.next();
        client = new RecordingEndpointHandler("client", loop);
        provider.connect(loop, StubDevice.ROCE, EndpointOptions.DEFAULTS, client);
        client.awaitConnected();
        region = client.call(
                endpoint -> endpoint.memoryDomain().register(Arena.global().allocate(64), Set.of(Access.LOCAL_WRITE)));
    }

    @AfterEach
    void end() {
        client.awaitPrepared().disconnect();
        client.awaitDisconnected();
        region.close();
        Patience.await("the loop ended", group.shutdownGracefully(0, 5, TimeUnit.SECONDS));
        StubDevice.close(provider);
    }

    private static boolean isArmed() {
        return StubDevice.call("stub_is_armed", StubDevice.lastNumber()) != 0;
    }

    /** A message comes while the loop sleeps. */
    private void receive(int id) {
        client.receive(id, region, 0, 8);
        Patience.until("the queue is armed", LostEventTest::isArmed);
        assertThat(StubDevice.call("stub_receive", StubDevice.lastNumber(), 8, 0))
                .isZero();
        assertThat(client.awaitReceive().status()).isEqualTo(WorkStatus.SUCCESS);
    }

    @Test
    void costsOneSleep() {
        receive(0);
        StubDevice.call("stub_lose_event", 2);
        for (int i = 1; i <= 20; i++) {
            receive(i); // waits for the queue to be armed again
        }
        assertThat(StubDevice.call("stub_lost_event")).as("an event was lost").isOne();
    }

    /** A poll finds what completes before its event is read: the queue is armed for that, and again for the event. */
    @Test
    void isArmedTwiceAMessageAtMostAndNotForTasks() {
        int messages = 50;
        receive(0);
        Patience.until("the queue is armed", LostEventTest::isArmed);
        int before = arms();
        for (int i = 1; i <= messages; i++) {
            receive(i);
            WorkRequest work = new WorkRequest(1).asSend(i, 0);
            work.buffers().add(region, 0, 8);
            client.send(work);
            assertThat(client.awaitSend().status()).isEqualTo(WorkStatus.SUCCESS);
        }
        assertThat(arms() - before).isLessThanOrEqualTo(2 * 2 * messages);
        Patience.until("the queue is armed", LostEventTest::isArmed);
        client.run(endpoint -> {}); // after which no event of a completion waits
        before = arms();
        for (int i = 0; i < 20; i++) {
            client.run(endpoint -> {});
        }
        assertThat(arms() - before).isLessThanOrEqualTo(1);
    }

    private static int arms() {
        String[] calls = StubDevice.allCalls().split(" ");
        for (int i = 0; i < calls.length; i += 2) {
            if (calls[i].equals("req_notify_cq")) {
                return Integer.parseInt(calls[i + 1]);
            }
        }
        return 0;
    }
}
