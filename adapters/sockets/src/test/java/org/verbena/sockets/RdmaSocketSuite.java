package org.verbena.sockets;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.SocketException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.FutureTask;
import javax.net.ServerSocketFactory;
import javax.net.SocketFactory;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.verbena.api.RdmaEventLoopGroup;
import org.verbena.transport.CompletionLoopOptions;
import org.verbena.transport.provider.ProviderChoice;
import org.verbena.transport.spi.Patience;
import org.verbena.transport.spi.RefusingThreads;

/** The suite on sockets over RDMA, and tests of their own features. */
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
public abstract class RdmaSocketSuite extends SocketSuite {
    private RdmaEventLoopGroup group;

    /** The provider's name. */
    protected abstract String provider();

    /** The loops of both ends. */
    RdmaEventLoopGroup newGroup() {
        return new RdmaEventLoopGroup(provider(), 2);
    }

    @BeforeAll
    void makeLoops() {
        group = newGroup();
    }

    @AfterAll
    void endLoops() {
        group.close();
    }

    @Override
    protected SocketFactory clients() {
        return new RdmaSocketFactory(group);
    }

    @Override
    protected ServerSocketFactory servers() {
        return new RdmaServerSocketFactory(group);
    }

    @Test
    void refusesUrgentData() throws Exception {
        try (ServerSocket server = servers().createServerSocket(0);
                Socket client = clients().createSocket(host(), server.getLocalPort())) {
            assertThatThrownBy(() -> client.sendUrgentData(1))
                    .isInstanceOf(SocketException.class)
                    .hasMessage("Urgent data not supported");
        }
    }

    @Test
    void refusesToBlockItsOwnLoop() throws Exception {
        try (ServerSocket server = servers().createServerSocket(0);
                Socket client = clients().createSocket(host(), server.getLocalPort())) {
            // One of the two loops is the connection's.
            int refused = 0;
            client.setSoTimeout(1);
            for (var loop : group) {
                Throwable failure = Patience.await(
                        "the loop",
                        loop.submit(() -> failure(() -> client.getInputStream().read())));
                if (failure instanceof IllegalStateException) {
                    refused++;
                }
            }
            assertThat(refused).isEqualTo(1);
        }
    }

    /** The thread of a loop cannot be started twice: for the channel, and for whatever waits for it. */
    @Test
    void aSocketWithoutAThreadFailsAndTheNextOneConnects() throws Exception {
        try (RdmaEventLoopGroup refusing = new RdmaEventLoopGroup(
                        ProviderChoice.choose(provider(), null),
                        1,
                        new RefusingThreads(0, 2),
                        CompletionLoopOptions.DEFAULTS);
                ServerSocket server = servers().createServerSocket(0, 50, InetAddress.getByName(host()))) {
            SocketFactory clients = new RdmaSocketFactory(refusing);
            int refusals = 0;
            for (int i = 0; i < 3; i++) {
                try (Socket client = clients.createSocket(host(), server.getLocalPort())) {
                    assertThat(client.isConnected()).isTrue();
                } catch (IOException | OutOfMemoryError noThread) {
                    refusals++;
                }
            }
            assertThat(refusals).isBetween(1, 2);
        }
    }

    /** Loops that could not be made once can be made later. */
    @Test
    void aFactoryWithoutLoopsRecovers() throws Exception {
        String before = System.setProperty(ProviderChoice.PROPERTY, "none-of-them");
        try {
            failure(() -> RdmaSocketFactory.getDefault().createSocket());
        } finally {
            System.clearProperty(ProviderChoice.PROPERTY);
            if (before != null) {
                System.setProperty(ProviderChoice.PROPERTY, before);
            }
        }
        try (Socket socket = RdmaSocketFactory.getDefault().createSocket()) {
            assertThat(socket).isInstanceOf(RdmaSocket.class);
        }
        try (ServerSocket server = RdmaServerSocketFactory.getDefault().createServerSocket()) {
            assertThat(server).isInstanceOf(RdmaServerSocket.class);
        }
    }

    /** Whichever comes first: closing throws nothing, and binding what sockets throw. */
    @Test
    void mayBeClosedWhileItBinds() throws Exception {
        for (int i = 0; i < 300; i++) {
            ServerSocket server = servers().createServerSocket();
            FutureTask<Throwable> binding = new FutureTask<>(() -> failure(() -> {
                server.bind(new InetSocketAddress(InetAddress.getByName(host()), 0));
                return null;
            }));
            Thread.ofPlatform().start(binding);
            for (int spins = i % 2 == 0 ? 1 : 20 * i; spins > 0; spins--) {
                Thread.onSpinWait();
            }
            server.close();
            Throwable failure = Patience.await("binding", binding);
            if (failure != null) {
                assertThat(failure).isInstanceOf(SocketException.class);
            }
        }
    }

    /** As a kernel does for TCP. */
    @Test
    void sendsWhatWasWrittenAlthoughTheProcessEnds() throws Exception {
        int bytes = 200_000; // less than may be unsent: the program ends before anyone reads
        try (ServerSocket server = servers().createServerSocket(0, 1, InetAddress.getByName(host()))) {
            Process program = program(
                    ExitingClient.class,
                    provider(),
                    host(),
                    String.valueOf(server.getLocalPort()),
                    String.valueOf(bytes));
            try (Socket accepted = server.accept()) {
                assertThat(accepted.getInputStream().readAllBytes()).hasSize(bytes);
                assertThat(program.waitFor()).isZero();
            } finally {
                program.destroyForcibly();
            }
        }
    }

    private static Process program(Class<?> main, String... arguments) throws IOException {
        List<String> command = new ArrayList<>(
                List.of(Path.of(System.getProperty("java.home"), "bin", "java").toString()));
        for (String flag : ManagementFactory.getRuntimeMXBean().getInputArguments()) {
            if (flag.startsWith("--") || flag.startsWith("-Dio.netty.try")) {
                command.add(flag);
            }
        }
        command.addAll(
                List.of("-XX:TieredStopAtLevel=1", "-cp", System.getProperty("java.class.path"), main.getName()));
        command.addAll(List.of(arguments));
        return new ProcessBuilder(command)
                .redirectOutput(ProcessBuilder.Redirect.DISCARD)
                .redirectError(ProcessBuilder.Redirect.INHERIT)
                .start();
    }
}
