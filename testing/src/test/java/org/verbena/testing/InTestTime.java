package org.verbena.testing;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Timeout;
import org.verbena.api.Exchange;
import org.verbena.api.MessageHandler;
import org.verbena.api.RdmaClient;
import org.verbena.api.RdmaEventLoopGroup;
import org.verbena.api.RdmaServer;
import org.verbena.api.client.Target;

/** A server whose time the test moves, and clients of it. No test waits for the system's time. */
@Timeout(120)
abstract class InTestTime {
    static final byte[] ASKED = {1, 2, 3};

    final TestTime time = new TestTime();
    final RdmaEventLoopGroup loops = new RdmaEventLoopGroup(time.provider(), 2);
    final Queue<Exchange> held = new ConcurrentLinkedQueue<>();

    /** Answers "hold" never, unless the test does, and everything else at once. */
    private final MessageHandler handler = MessageHandler.ofBytes((exchange, message) -> {
        if (new String(message, UTF_8).equals("hold")) {
            held.add(exchange);
        } else {
            exchange.reply(message);
        }
    });

    final RdmaServer server = bind(0);
    final Faults faults = Faults.at(server.port());

    final RdmaServer bind(int port) {
        return RdmaServer.builder().group(loops).bind("127.0.0.1", port, handler);
    }

    final RdmaClient.Builder client() {
        return RdmaClient.builder().group(loops);
    }

    final RdmaClient connect() {
        return client().connect("127.0.0.1", server.port());
    }

    static CompletableFuture<byte[]> hold(RdmaClient client, Duration timeout) {
        return client.request("hold".getBytes(UTF_8), timeout);
    }

    final Target both(RdmaServer other) {
        return Target.of(List.of(
                new InetSocketAddress("127.0.0.1", server.port()), new InetSocketAddress("127.0.0.1", other.port())));
    }

    @AfterEach
    final void close() {
        faults.close();
        server.close();
        loops.close();
    }
}
