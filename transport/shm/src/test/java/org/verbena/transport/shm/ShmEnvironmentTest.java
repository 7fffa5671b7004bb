package org.verbena.transport.shm;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.netty.channel.IoEventLoop;
import io.netty.channel.IoHandlerFactory;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.channels.SocketChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.verbena.transport.CompletionLoopOptions;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.shm.ffm.UnixSockets;
import org.verbena.transport.spi.Endpoint;
import org.verbena.transport.spi.EndpointOptions;
import org.verbena.transport.spi.IncomingConnection;
import org.verbena.transport.spi.ListenOptions;
import org.verbena.transport.spi.Listener;
import org.verbena.transport.spi.ListenerHandler;
import org.verbena.transport.spi.LocalBinding;
import org.verbena.transport.spi.Patience;
import org.verbena.transport.spi.RecordingEndpointHandler;
import org.verbena.transport.spi.RecordingListenerHandler;

/** Servers that are slow to accept, whose names are removed, and that strangers keep busy. */
@Timeout(240)
class ShmEnvironmentTest {
    private static final InetSocketAddress ANY_PORT = new InetSocketAddress(InetAddress.getLoopbackAddress(), 0);

    @TempDir
    Path parent;

    private final List<SocketChannel> silent = new ArrayList<>();
    private final List<MultiThreadIoEventLoopGroup> groups = new ArrayList<>();

    private Path directory() {
        return parent.resolve("sockets");
    }

    private IoEventLoop loop(ShmProvider provider) {
        MultiThreadIoEventLoopGroup group =
                new MultiThreadIoEventLoopGroup(1, provider.newIoHandlerFactory(CompletionLoopOptions.DEFAULTS));
        groups.add(group);
        return group.next();
    }

    @AfterEach
    void endAll() throws IOException {
        for (SocketChannel each : silent) {
            each.close();
        }
        groups.forEach(group -> Patience.await("the loop ended", group.shutdownGracefully(0, 1, TimeUnit.SECONDS)));
    }

    private void connectSilently(Path name) throws IOException {
        SocketChannel channel = SocketChannel.open(StandardProtocolFamily.UNIX);
        silent.add(channel);
        channel.connect(UnixDomainSocketAddress.of(name));
    }

    /** A server that accepts all, and that takes no more than this many connections that wait. */
    private Listener listen(ShmProvider provider, IoEventLoop loop, int backlog) {
        RecordingListenerHandler listening = new RecordingListenerHandler(loop);
        listening.whenRequested(request -> {
            Endpoint unused =
                    request.accept(loop, EndpointOptions.DEFAULTS, new RecordingEndpointHandler("server", loop));
        });
        Listener unused = provider.listen(loop, ANY_PORT, new ListenOptions(backlog, true), listening);
        return listening.awaitListening();
    }

    @Test
    void clientsWaitUntilTheBacklogHasRoom() throws InterruptedException {
        ShmProvider provider = new ShmProvider(ShmOptions.DEFAULTS.withDirectory(directory()));
        IoEventLoop serverLoop = loop(provider);
        IoEventLoop clientLoop = loop(provider);
        Listener listener = listen(provider, serverLoop, 2);
        CountDownLatch stopped = new CountDownLatch(1);
        CountDownLatch goOn = new CountDownLatch(1);
        serverLoop.execute(() -> {
            stopped.countDown();
            try {
                goOn.await();
            } catch (InterruptedException e) {
                throw new AssertionError(e);
            }
        });
        stopped.await();
        List<RecordingEndpointHandler> clients = new ArrayList<>();
        for (int i = 0; i < 20; i++) {
            RecordingEndpointHandler client = new RecordingEndpointHandler("client " + i, clientLoop);
            clients.add(client);
            Endpoint unused = provider.connect(clientLoop, listener.localAddress(), EndpointOptions.DEFAULTS, client);
        }
        // Behind their first attempts.
        Patience.await("the client's loop is there", clientLoop.submit(() -> {}));
        goOn.countDown();
        for (RecordingEndpointHandler client : clients) {
            client.awaitConnected();
            client.awaitPrepared().disconnect();
            client.awaitDisconnected();
            client.assertNoViolations();
        }
    }

    private InetSocketAddress fullServer() throws IOException {
        SocketDirectory.Bound full = SocketDirectory.open(directory()).bind(ANY_PORT, 1);
        for (int i = 0; i < 2; i++) {
            connectSilently(full.file());
        }
        return full.address();
    }

    private RecordingEndpointHandler connect(
            ShmProvider provider, IoEventLoop loop, InetSocketAddress to, int timeoutMillis) {
        RecordingEndpointHandler client = new RecordingEndpointHandler("client", loop);
        Endpoint unused = provider.connect(
                loop, to, EndpointOptions.DEFAULTS.with(o -> o.connectTimeoutMillis = timeoutMillis), client);
        return client;
    }

    @Test
    void aBacklogThatStaysFullIsATimeout() throws IOException {
        ShmProvider provider = new ShmProvider(ShmOptions.DEFAULTS.withDirectory(directory()));
        RecordingEndpointHandler client = connect(provider, loop(provider), fullServer(), 300);
        assertThat(client.awaitDisconnected()).isInstanceOf(ConnectionException.TimedOut.class);
    }

    @Test
    void aLoopThatEndsMeanwhileFailsThem() throws IOException {
        ShmProvider provider = new ShmProvider(ShmOptions.DEFAULTS.withDirectory(directory()));
        IoEventLoop loop = loop(provider);
        RecordingEndpointHandler client = connect(provider, loop, fullServer(), 600_000);
        Patience.await("the first attempt is over", loop.submit(() -> {}));
        Patience.await("the loop ended", groups.getLast().shutdownGracefully(0, 1, TimeUnit.SECONDS));
        assertThat(client.awaitDisconnected()).isInstanceOf(ConnectionException.class);
    }

    /** A server may make its name again meanwhile. */
    private void removeDirectory() {
        Patience.until("the directory is removed", () -> {
            try (Stream<Path> names = Files.list(directory())) {
                names.forEach(name -> name.toFile().delete());
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
            return directory().toFile().delete();
        });
    }

    @Test
    void aServerWhoseNameWasRemovedMakesItAgain() {
        ShmProvider provider =
                new ShmProvider(ShmOptions.DEFAULTS.withDirectory(directory()).withStallTimeoutMillis(1000));
        IoEventLoop loop = loop(provider);
        Listener listener = listen(provider, loop, 16);
        for (int round = 0; round < 2; round++) {
            removeDirectory();
            Patience.until("the name is there again", () -> provider.reaches(listener.localAddress()));
            RecordingEndpointHandler client = connect(provider, loop, listener.localAddress(), 10_000);
            client.awaitConnected();
            client.awaitPrepared().disconnect();
            client.awaitDisconnected();
        }
    }

    @Test
    void aPortIsBoundOnceThoughItsNameWasRemoved() {
        ShmProvider provider = new ShmProvider(ShmOptions.DEFAULTS.withDirectory(directory()));
        LocalBinding first = provider.bind(ANY_PORT);
        InetSocketAddress address = first.localAddress();
        removeDirectory();
        assertThatThrownBy(() -> provider.bind(address)).isInstanceOf(ConnectionException.class);
        assertThatThrownBy(() -> provider.bind(new InetSocketAddress(address.getPort())))
                .isInstanceOf(ConnectionException.class);
        first.close();
        provider.bind(address).close();
    }

    /** Such a loop polls its connections more often than its sockets. */
    @Test
    void aPortIsFreeWhenItsListenerOnABusyLoopHasClosed() {
        ShmProvider provider = new ShmProvider(ShmOptions.DEFAULTS.withDirectory(directory()));
        IoHandlerFactory factory = provider.newIoHandlerFactory(CompletionLoopOptions.DEFAULTS);
        ShmIoHandler[] io = new ShmIoHandler[1];
        MultiThreadIoEventLoopGroup group =
                new MultiThreadIoEventLoopGroup(1, executor -> io[0] = (ShmIoHandler) factory.newHandler(executor));
        groups.add(group);
        IoEventLoop loop = group.next();
        AlwaysBusy busy = new AlwaysBusy();
        Patience.await("something to do in each turn", loop.submit(() -> io[0].wake(busy)));
        for (int i = 0; i < 100; i++) {
            RecordingListenerHandler listening = new RecordingListenerHandler(loop);
            CompletableFuture<Void> boundAgain = new CompletableFuture<>();
            Listener listener = provider.listen(loop, ANY_PORT, new ListenOptions(1, true), new ListenerHandler() {
                @Override
                public void onListening(Listener it) {
                    listening.onListening(it);
                }

                @Override
                public void onConnectRequest(Listener it, IncomingConnection connection) {
                    listening.onConnectRequest(it, connection);
                }

                @Override
                public void onClosed(Listener it, @Nullable Throwable cause) {
                    boundAgain.completeAsync(
                            () -> {
                                provider.bind(it.localAddress()).close();
                                return null;
                            },
                            Runnable::run);
                }
            });
            listening.awaitListening();
            listener.close();
            Patience.await("the port bound again", boundAgain);
        }
        Patience.await("no more to do", loop.submit(() -> io[0].removeAwake(busy)));
    }

    private static final class AlwaysBusy extends Polled {
        @Override
        int poll() {
            return 1;
        }

        @Override
        boolean fallAsleep() {
            return false;
        }

        @Override
        void awake() {}
    }

    @Test
    void aServerLeavesTheNameOfAnotherAlone() throws IOException {
        SocketDirectory.Bound first = SocketDirectory.open(directory()).bind(ANY_PORT, 1);
        Files.delete(first.file());
        first.channel().close();
        SocketDirectory.Bound second = SocketDirectory.open(directory()).bind(first.address(), 1);
        first.close();
        assertThat(second.hasName()).isTrue();
        second.close();
        assertThat(second.file()).doesNotExist();
    }

    @Test
    void whoFindsNobodyIsToldWhatTheDirectoryDependsOn() {
        ShmProvider provider = new ShmProvider(ShmOptions.DEFAULTS.withDirectory(directory()));
        RecordingEndpointHandler client =
                connect(provider, loop(provider), new InetSocketAddress(ANY_PORT.getAddress(), 1), 10_000);
        assertThat(client.awaitDisconnected())
                .isInstanceOf(ConnectionException.Rejected.class)
                .hasMessageContaining(directory().toString())
                .hasMessageContaining("org.verbena.shm.directory")
                .hasMessageContaining("XDG_RUNTIME_DIR");
    }

    /** What is decided by the kernel's answer, which is a number. */
    @Test
    void theKernelTellsWhoListens() throws IOException {
        SocketDirectory.Bound bound = SocketDirectory.open(directory()).bind(ANY_PORT, 1);
        assertThat(UnixSockets.ask(bound.file())).isEqualTo(UnixSockets.Answer.LISTENS);
        connectSilently(bound.file());
        assertThat(UnixSockets.ask(bound.file())).isEqualTo(UnixSockets.Answer.IS_FULL);
        bound.channel().close();
        assertThat(UnixSockets.ask(bound.file())).isEqualTo(UnixSockets.Answer.NOBODY);
        bound.close();
        assertThat(UnixSockets.ask(bound.file())).isEqualTo(UnixSockets.Answer.NO_NAME);
    }

    @Test
    void silentClientsMakeRoom() throws IOException {
        ShmOptions usual = ShmOptions.DEFAULTS;
        int most = 8;
        ShmProvider provider = new ShmProvider(new ShmOptions(
                usual.ringBytes(), 600_000, most, usual.stallTimeoutMillis(), usual.sharedReceiveDepth(), directory()));
        IoEventLoop loop = loop(provider);
        Listener listener = listen(provider, loop, 1024);
        Path name = SocketDirectory.open(directory()).find(listener.localAddress());
        assertThat(name).isNotNull();
        for (int i = 0; i < 5 * most; i++) {
            connectSilently(name);
        }
        RecordingEndpointHandler client = connect(provider, loop, listener.localAddress(), 600_000);
        client.awaitConnected();
        client.awaitPrepared().disconnect();
        client.awaitDisconnected();
    }

    @Test
    void aDirectoryThatCannotBeMadeNamesTheProperty() throws IOException {
        Path file = Files.createFile(parent.resolve("file"));
        assertThat(new ShmProvider(ShmOptions.DEFAULTS.withDirectory(file.resolve("sockets"))).unavailabilityCause())
                .hasMessageContaining("org.verbena.shm.directory");
    }
}
