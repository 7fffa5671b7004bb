package org.verbena.it.lab;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.net.InetSocketAddress;
import java.nio.file.Path;
import java.util.Objects;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.FutureTask;
import java.util.concurrent.LinkedBlockingQueue;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.verbena.api.MessageHandler;
import org.verbena.api.RdmaServer;
import org.verbena.cm.CmEvent;
import org.verbena.cm.CmEventType;
import org.verbena.cm.ConnectionParameters;
import org.verbena.cm.PortSpace;
import org.verbena.cm.sync.CmEndpoint;
import org.verbena.cm.sync.SynchronousId;
import org.verbena.it.docs.MovingProgram;
import org.verbena.transport.spi.Patience;
import org.verbena.verbs.MemoryRegion;
import org.verbena.verbs.WorkCompletions;
import org.verbena.verbs.work.SendFlags;

/** The programs of docs/moving.md, each with a server at its level. */
@Tag("lab")
@Tag("lab-full")
@Timeout(value = 240, threadMode = Timeout.ThreadMode.SEPARATE_THREAD) // DiSNI's calls do not see an interrupt
class MovingOnDevicesTest {
    private static final int PORT = 7880;
    private static final int MESSAGE_BYTES = 64;

    @TempDir
    private Path out;

    private static int port(MovingProgram program, LabDevice device) {
        return PORT + 2 * program.ordinal() + device.ordinal();
    }

    private static WorkCompletions success(WorkCompletions completion) {
        assertThat(completion).as("a completion in time").isNotNull();
        assertThat(completion.isSuccess(0)).as(completion.describe(0)).isTrue();
        return completion;
    }

    /** Answers one message of one client, and stays until that client disconnects. */
    private static String answerOne(SynchronousId listener) {
        int waitMillis = (int) Patience.LIMIT.toMillis();
        try (Arena arena = Arena.ofShared();
                SynchronousId id = Objects.requireNonNull(listener.request(waitMillis))) {
            MemorySegment memory = arena.allocate(MESSAGE_BYTES);
            try (CmEndpoint endpoint = CmEndpoint.create(id.id(), 2, 2);
                    MemoryRegion region = endpoint.registerMessages(memory)) {
                endpoint.postReceive(1, region, 0, MESSAGE_BYTES);
                id.accept(ConnectionParameters.DEFAULT);
                success(endpoint.awaitReceive(waitMillis));
                String received = memory.getString(0);
                endpoint.postSend(2, region, 0, MESSAGE_BYTES, SendFlags.SIGNALED);
                success(endpoint.awaitSend(waitMillis));
                CmEvent end = Objects.requireNonNull(id.id().channel().get(waitMillis));
                assertThat(end.type()).isEqualTo(CmEventType.DISCONNECTED);
                return received;
            }
        }
    }

    @ParameterizedTest
    @CsvSource({"DISNI,RXE", "DISNI,SIW", "BINDINGS,RXE", "BINDINGS,SIW"})
    void runs(MovingProgram program, LabDevice device) throws Exception {
        int port = port(program, device);
        MovingProgram.Compiled client = program.compile(out, device.address(), port);
        try (SynchronousId listener = SynchronousId.create(PortSpace.TCP)) {
            listener.id().bind(new InetSocketAddress(device.address(), port));
            listener.id().listen(1);
            FutureTask<String> server = new FutureTask<>(() -> answerOne(listener));
            Thread.ofPlatform().daemon().name("server").start(server);
            client.run();
            assertThat(Patience.await("the server", server)).isEqualTo("hello");
        }
    }

    @ParameterizedTest
    @EnumSource
    void runsOnTheChannelApi(LabDevice device) throws Exception {
        int port = port(MovingProgram.CHANNEL_API, device);
        BlockingQueue<String> requests = new LinkedBlockingQueue<>();
        MessageHandler answer = MessageHandler.ofBytes((exchange, request) -> {
            requests.add(new String(request, UTF_8));
            exchange.reply("hello back".getBytes(UTF_8));
        });
        MovingProgram.Compiled client = MovingProgram.CHANNEL_API.compile(out, device.address(), port);
        try (RdmaServer server = RdmaServer.bind(device.address(), port, answer)) {
            client.run();
            assertThat(server.port()).isEqualTo(port);
        }
        assertThat(requests).containsExactly("hello");
    }
}
