package org.verbena.transport.verbs;

import io.netty.channel.IoEventLoop;
import io.netty.channel.IoHandlerFactory;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.verbena.transport.CompletionLoopOptions;
import org.verbena.transport.RegisteredMemory;
import org.verbena.transport.spi.EndpointOptions;
import org.verbena.transport.spi.ListenOptions;
import org.verbena.transport.spi.Listener;
import org.verbena.transport.spi.Patience;
import org.verbena.transport.spi.RecordingEndpointHandler;
import org.verbena.transport.spi.RecordingListenerHandler;

/** A test with both ends of one connection, over linked queue pairs. */
abstract class LinkedPair {
    final List<RegisteredMemory> regions = new ArrayList<>();
    RecordingEndpointHandler client;
    RecordingEndpointHandler server;
    private VerbsProvider provider;
    private MultiThreadIoEventLoopGroup group;
    private Listener listener;

    @BeforeEach
    void resetStub() throws Exception {
        StubDevice.install();
    }

    final void connect(String family) {
        StubDevice.become(family);
        StubDevice.call("stub_link", 1);
        provider = new VerbsProvider();
        group = new MultiThreadIoEventLoopGroup(1, handlers(provider));
        IoEventLoop loop = group.next();
        RecordingListenerHandler requests = new RecordingListenerHandler(loop);
        listener = provider.listen(loop, StubDevice.ROCE, ListenOptions.DEFAULTS, requests);
        requests.awaitListening();
        client = new RecordingEndpointHandler("client", loop);
        server = new RecordingEndpointHandler("server", loop);
        provider.connect(loop, StubDevice.ROCE, EndpointOptions.DEFAULTS, client);
        requests.awaitRequest().accept(loop, EndpointOptions.DEFAULTS, server);
        client.awaitConnected();
        server.awaitConnected();
    }

    IoHandlerFactory handlers(VerbsProvider of) {
        return of.newIoHandlerFactory(CompletionLoopOptions.DEFAULTS);
    }

    @AfterEach
    final void endLoop() {
        listener.close();
        Patience.await("the loop ended", group.shutdownGracefully(0, 5, TimeUnit.SECONDS));
        regions.reversed().forEach(RegisteredMemory::close);
        StubDevice.close(provider);
        StubDevice.call("stub_link", 0);
    }
}
