package org.verbena.sockets;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.SocketException;
import java.util.Random;
import java.util.concurrent.FutureTask;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.api.RdmaEventLoopGroup;
import org.verbena.transport.spi.Patience;

/** The relay that {@link PostgresSuite} puts before a server of TCP: sockets of both kinds, and half closes. */
@Timeout(180)
class RelayTest {
    private static final InetAddress HOST = InetAddress.getLoopbackAddress();

    private final RdmaEventLoopGroup loops = new RdmaEventLoopGroup("soft", 2);
    private ServerSocket target;
    private Relay relay;

    @BeforeEach
    void start() throws IOException {
        target = new ServerSocket(0, 50, HOST);
        target.setSoTimeout((int) Patience.LIMIT.toMillis());
        relay = new Relay(
                new RdmaServerSocketFactory(loops).createServerSocket(0, 50, HOST),
                new InetSocketAddress(HOST, target.getLocalPort()));
    }

    @AfterEach
    void stop() throws IOException {
        relay.close();
        target.close();
        loops.close();
    }

    private Socket connect() throws IOException {
        Socket client = new RdmaSocketFactory(loops).createSocket(HOST, relay.port());
        client.setSoTimeout((int) Patience.LIMIT.toMillis());
        return client;
    }

    private Socket accept() throws IOException {
        Socket server = target.accept();
        server.setSoTimeout((int) Patience.LIMIT.toMillis());
        return server;
    }

    /** On a thread of its own, since nobody reads yet. */
    private static FutureTask<Boolean> writeAll(Socket to, byte[] bytes) {
        FutureTask<Boolean> writing = new FutureTask<>(() -> {
            to.getOutputStream().write(bytes);
            to.shutdownOutput();
            return true;
        });
        Thread.startVirtualThread(writing);
        return writing;
    }

    @Test
    void halfClosesGoThroughAndNothingIsLost() throws IOException {
        byte[] question = new byte[4 << 20];
        new Random(7).nextBytes(question);
        try (Socket client = connect();
                Socket server = accept()) {
            FutureTask<Boolean> asking = writeAll(client, question);
            byte[] read = server.getInputStream().readAllBytes(); // to the client's end, with the other half open
            assertThat(read).isEqualTo(question);
            assertThat(Patience.await("the question", asking)).isTrue();
            FutureTask<Boolean> answering = writeAll(server, read);
            assertThat(client.getInputStream().readAllBytes()).isEqualTo(question);
            assertThat(Patience.await("the answer", answering)).isTrue();
        }
    }

    @Test
    void eitherEndEndsTheOtherAndNoOtherConnection() throws IOException {
        try (Socket bystander = connect();
                Socket ofBystander = accept()) {
            try (Socket client = connect()) {
                Socket server = accept();
                server.setSoLinger(true, 0); // a reset
                server.close();
                assertThat(read(client)).isEqualTo(-1);
            }
            Socket leaving = connect();
            try (Socket server = accept()) {
                leaving.close();
                assertThat(read(server)).isEqualTo(-1);
            }
            bystander.getOutputStream().write(7);
            assertThat(ofBystander.getInputStream().read()).isEqualTo(7);
        }
    }

    /** A reset is an end as well. */
    private static int read(Socket from) throws IOException {
        try {
            return from.getInputStream().read();
        } catch (SocketException reset) {
            return -1;
        }
    }

    @Test
    void aClosedRelayTakesNoMore() throws IOException {
        relay.close();
        assertThatThrownBy(this::connect).isInstanceOf(IOException.class);
    }
}
