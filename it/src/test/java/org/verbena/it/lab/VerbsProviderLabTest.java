package org.verbena.it.lab;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.channel.IoEventLoop;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import java.lang.foreign.Arena;
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.verbena.transport.CompletionLoopOptions;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.MemoryDomain.Access;
import org.verbena.transport.RegisteredMemory;
import org.verbena.transport.WorkStatus;
import org.verbena.transport.spi.EndpointOptions;
import org.verbena.transport.spi.ListenOptions;
import org.verbena.transport.spi.Listener;
import org.verbena.transport.spi.Patience;
import org.verbena.transport.spi.RecordingEndpointHandler;
import org.verbena.transport.spi.RecordingListenerHandler;
import org.verbena.transport.spi.WorkRequest;
import org.verbena.transport.verbs.VerbsProvider;

/** What the native provider does with devices, beyond the contract that all providers keep. */
@Tag("lab")
@Timeout(350)
class VerbsProviderLabTest {
    private static final VerbsProvider PROVIDER = new VerbsProvider();

    /** In siw's network. */
    private static final String HANGING = "10.78.0.251";

    private final List<RecordingEndpointHandler> handlers = new ArrayList<>();
    private final List<RegisteredMemory> regions = new ArrayList<>();
    private final Arena arena = Arena.ofShared();
    private MultiThreadIoEventLoopGroup group = newGroup(CompletionLoopOptions.DEFAULTS);

    private static MultiThreadIoEventLoopGroup newGroup(CompletionLoopOptions options) {
        return new MultiThreadIoEventLoopGroup(1, PROVIDER.newIoHandlerFactory(options));
    }

    private void use(CompletionLoopOptions options) {
        end();
        group = newGroup(options);
    }

    private void end() {
        Patience.await("event loops ended", group.shutdownGracefully(0, 1, TimeUnit.SECONDS));
    }

    @AfterEach
    void close() {
        handlers.forEach(handler -> handler.awaitPrepared().disconnect());
        handlers.forEach(RecordingEndpointHandler::awaitDisconnected);
        regions.forEach(RegisteredMemory::close);
        end();
        handlers.forEach(RecordingEndpointHandler::assertNoViolations);
        arena.close();
    }

    /** Both ends of one connection. */
    private record Pair(RecordingEndpointHandler client, RecordingEndpointHandler server) {}

    private Pair connect(LabDevice device, EndpointOptions options) {
        IoEventLoop loop = group.next();
        RecordingListenerHandler listening = new RecordingListenerHandler(loop);
        PROVIDER.listen(loop, new InetSocketAddress(device.address(), 0), ListenOptions.DEFAULTS, listening);
        Listener listener = listening.awaitListening();
        RecordingEndpointHandler client = new RecordingEndpointHandler("client", loop);
        RecordingEndpointHandler server = new RecordingEndpointHandler("server", loop);
        PROVIDER.connect(loop, listener.localAddress(), options, client);
        listening.awaitRequest().accept(loop, options, server);
        server.awaitConnected();
        client.awaitConnected();
        listener.close();
        handlers.add(client);
        handlers.add(server);
        return new Pair(client, server);
    }

    private RegisteredMemory region(RecordingEndpointHandler owner, long bytes, Access... access) {
        RegisteredMemory region = owner.awaitPrepared().memoryDomain().register(arena.allocate(bytes, 8), access);
        regions.add(region);
        return region;
    }

    private static EndpointOptions options(int sendDepth, int receiveDepth, int timeoutMillis, int retries) {
        return EndpointOptions.DEFAULTS.with(o -> {
            o.connectTimeoutMillis = timeoutMillis;
            o.sendDepth = sendDepth;
            o.receiveDepth = receiveDepth;
            o.maxSges = 2;
            o.maxInlineBytes = 32;
            o.readDepth = 4;
            o.retryCount = retries;
        });
    }

    @ParameterizedTest
    @EnumSource
    void servesWhatItsDevicesReach(LabDevice device) {
        assertThat(PROVIDER.unavailabilityCause()).isNull();
        assertThat(PROVIDER.serves(new InetSocketAddress(device.address(), 7))).isTrue();
        assertThat(PROVIDER.serves(new InetSocketAddress(device.silentAddress(), 7)))
                .as("an address of the device's network")
                .isTrue();
        assertThat(PROVIDER.serves(new InetSocketAddress("0.0.0.0", 7))).isTrue();
        assertThat(PROVIDER.serves(new InetSocketAddress("127.0.0.1", 7))).isFalse();
        assertThat(PROVIDER.serves(new InetSocketAddress("192.0.2.1", 7)))
                .as("no route leads there")
                .isFalse();
        assertThat(PROVIDER.description()).contains(device.deviceName());
    }

    @ParameterizedTest
    @EnumSource
    void failsInTimeWhereNobodyIs(LabDevice device) {
        RecordingEndpointHandler client = new RecordingEndpointHandler("client", group.next());
        PROVIDER.connect(
                group.next(), new InetSocketAddress(device.silentAddress(), 7471), options(8, 8, 1500, 7), client);
        assertThat(client.awaitDisconnected())
                .isInstanceOf(ConnectionException.class)
                .hasMessageContaining(device.silentAddress() + ":7471");
        client.assertNoViolations();
    }

    /**
     * The kernel holds a connect of siw for as long as TCP sends SYNs, two minutes, even if it was given up meanwhile.
     */
    @Test
    void connectsThatHangDoNotHoldUpOthers() {
        List<RecordingEndpointHandler> hanging = new ArrayList<>();
        // Somebody has the address, for the kernel, and does not answer.
        neighbour("replace", HANGING, "lladdr", "02:00:00:00:00:fa", "nud", "permanent");
        try {
            for (int i = 0; i < 20; i++) {
                // Few calls are made to one address at a time: these have a port each, and hang all.
                InetSocketAddress silent = new InetSocketAddress(HANGING, 7480 + i);
                RecordingEndpointHandler client = new RecordingEndpointHandler("hanging " + i, group.next());
                hanging.add(client);
                PROVIDER.connect(group.next(), silent, options(8, 8, 3000, 7), client);
            }
            for (RecordingEndpointHandler client : hanging) {
                assertThat(client.awaitDisconnected())
                        .isInstanceOf(ConnectionException.TimedOut.class)
                        .hasMessageContaining("while the kernel opens the TCP connection");
            }
            connect(LabDevice.SIW, options(8, 8, 20_000, 7));
        } finally {
            neighbour("delete", HANGING);
        }
        hanging.forEach(RecordingEndpointHandler::assertNoViolations);
    }

    private static void neighbour(String change, String address, String... more) {
        List<String> command = new ArrayList<>(List.of("ip", "neighbour", change, address));
        command.addAll(List.of(more));
        command.addAll(List.of("dev", LabDevice.SIW.interfaceName()));
        PeerProgram.run(Patience.LIMIT, command.toArray(String[]::new));
    }

    @ParameterizedTest
    @EnumSource
    void growsItsCompletionQueues(LabDevice device) {
        use(new CompletionLoopOptions(0, 8, 8));
        int count = 12;
        int depth = 32;
        EndpointOptions options = options(depth, depth, 20_000, 7);
        List<Pair> pairs = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            pairs.add(connect(device, options));
        }
        // Everything that can be out is out at a time, so a queue that is too small would overflow.
        RegisteredMemory source = region(pairs.getFirst().client(), 64);
        RegisteredMemory sink = region(pairs.getFirst().server(), 64, Access.LOCAL_WRITE);
        for (Pair pair : pairs) {
            for (int i = 0; i < depth; i++) {
                pair.server().receive(i, sink, 0, 64);
            }
        }
        for (Pair pair : pairs) {
            pair.client().run(endpoint -> {
                WorkRequest send = new WorkRequest(1);
                for (int i = 0; i < depth; i++) {
                    send.asSend(i, 0).buffers().add(source, 0, 8);
                    assertThat(pair.client().post(endpoint, send)).isTrue();
                }
                endpoint.flush();
            });
        }
        for (Pair pair : pairs) {
            assertThat(pair.client().awaitSends(depth)).allMatch(done -> done.status() == WorkStatus.SUCCESS);
            assertThat(pair.server().awaitReceives(depth)).allMatch(done -> done.status() == WorkStatus.SUCCESS);
        }
    }

    @ParameterizedTest
    @EnumSource
    void refusesQueuesThatTheDeviceDoesNotHave(LabDevice device) {
        IoEventLoop loop = group.next();
        RecordingListenerHandler listening = new RecordingListenerHandler(loop);
        PROVIDER.listen(loop, new InetSocketAddress(device.address(), 0), ListenOptions.DEFAULTS, listening);
        RecordingEndpointHandler client = new RecordingEndpointHandler("client", loop);
        PROVIDER.connect(loop, listening.awaitListening().localAddress(), options(1 << 16, 8, 5000, 7), client);
        assertThat(client.awaitDisconnected())
                .isInstanceOf(ConnectionException.class)
                .hasMessageContaining("sendDepth")
                .hasMessageContaining(device.deviceName());
        client.assertNoViolations();
        listening.awaitListening().close();
        listening.awaitClosed();
    }
}
