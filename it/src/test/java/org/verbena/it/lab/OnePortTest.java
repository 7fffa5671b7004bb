package org.verbena.it.lab;

import static java.nio.charset.StandardCharsets.US_ASCII;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.grpc.CallOptions;
import io.grpc.ManagedChannel;
import io.grpc.Server;
import io.grpc.netty.NettyChannelBuilder;
import io.grpc.stub.ClientCalls;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.SocketException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.api.Carrier;
import org.verbena.api.MessageHandler;
import org.verbena.api.ProviderStatistics;
import org.verbena.api.RdmaChannelOption;
import org.verbena.api.RdmaClient;
import org.verbena.api.RdmaEventLoopGroup;
import org.verbena.api.RdmaServer;
import org.verbena.api.ServerMemory;
import org.verbena.grpc.VerbenaGrpc;
import org.verbena.it.FleetTokens;
import org.verbena.transport.MemoryDomain.Access;
import org.verbena.transport.RemoteMemory;
import org.verbena.transport.provider.ProviderChoice;
import org.verbena.transport.spi.Patience;

/**
 * A mixed fleet: one server with verbs, soft and plain TCP on one address and port, and all kinds of clients at once.
 * Only the kernel has the ports of RDMA and of TCP, side by side on soft RoCE and shared on soft iWARP.
 */
@Tag("lab")
@Tag("lab-long")
@Timeout(350)
class OnePortTest {
    private static final MessageHandler ECHO = MessageHandler.ofBytes((exchange, message) -> exchange.reply(message));

    private static Server grpc(String address, int port, RdmaEventLoopGroup group) throws IOException {
        return VerbenaGrpc.server(new InetSocketAddress(address, port), group)
                .withOption(RdmaChannelOption.PLAIN_TCP, true)
                .addService(GrpcEcho.service())
                .build()
                .start();
    }

    static void assertRefusesC(String address, int port) {
        try (PeerProgram rping =
                PeerProgram.start("rping", "-c", "-a", address, "-p", String.valueOf(port), "-C", "1", "-v")) {
            assertThat(rping.awaitExit(Patience.LIMIT)).isNotZero();
            assertThat(rping.output()).contains("REJECTED");
        }
    }

    private static void assertServes(RdmaClient client) throws Exception {
        assertThat(client.request("hello".getBytes(US_ASCII)).get(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS))
                .isEqualTo("hello".getBytes(US_ASCII));
    }

    @Tag("lab-full")
    @Test
    void streamsOnRxeServeVerbsSoftAndPlainTcpAtOnce() throws Exception {
        String address = LabDevice.RXE.address();
        ProviderStatistics before =
                ProviderStatistics.of(ProviderChoice.choose("soft", null).provider());
        try (RdmaEventLoopGroup both = new RdmaEventLoopGroup("verbs+soft", 2);
                RdmaEventLoopGroup soft = new RdmaEventLoopGroup("soft", 1)) {
            Server server = grpc(address, 7941, both);
            ManagedChannel onRxe =
                    VerbenaGrpc.channel(address, 7941, both).usePlaintext().build();
            ManagedChannel onSoft =
                    VerbenaGrpc.channel(address, 7941, soft).usePlaintext().build();
            ManagedChannel onTcp =
                    NettyChannelBuilder.forAddress(address, 7941).usePlaintext().build();
            List<ManagedChannel> channels = List.of(onRxe, onSoft, onTcp);
            try {
                List<Future<byte[]>> replies = new ArrayList<>();
                for (int i = 0; i < 50; i++) {
                    for (ManagedChannel channel : channels) {
                        replies.add(ClientCalls.futureUnaryCall(
                                channel.newCall(GrpcEcho.CALL, CallOptions.DEFAULT), new byte[] {(byte) i}));
                    }
                }
                for (int i = 0; i < replies.size(); i++) {
                    assertThat(replies.get(i).get(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS))
                            .containsExactly(i / 3);
                }
                assertRefusesC(address, 7941);
                ProviderStatistics after = soft.providerStatistics();
                assertThat(after.plainConnections() - before.plainConnections()).isEqualTo(1);
                assertThat(after.connections() - before.connections())
                        .as("both ends of soft's connection")
                        .isEqualTo(2);
            } finally {
                channels.forEach(ManagedChannel::shutdownNow);
                for (ManagedChannel channel : channels) {
                    assertThat(channel.awaitTermination(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS))
                            .isTrue();
                }
                server.shutdownNow();
                assertThat(server.awaitTermination(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS))
                        .isTrue();
            }
        }
    }

    @Test
    void messagesOnRxeServeVerbsAndSoftOnAnyPort() throws Exception {
        String address = LabDevice.RXE.address();
        try (RdmaServer server = RdmaServer.builder()
                        .provider("all")
                        .threadsPerProvider(2)
                        .bind(address, 0, ECHO);
                RdmaClient onRxe = RdmaClient.builder().provider("verbs").connect(address, server.port());
                RdmaClient onSoft = RdmaClient.builder().provider("soft").connect(address, server.port())) {
            assertThat(server.provider()).isEqualTo("verbs+soft+shm");
            assertServes(onRxe);
            assertServes(onSoft);
            assertThat(List.copyOf(server.connections()))
                    .extracting(child -> Carrier.of(child).name())
                    .containsExactlyInAnyOrder("verbs", "soft");
        }
    }

    /** One buffer of the server is registered with rxe, soft and shm; whoever asks gets the token of its device. */
    @Test
    void aServersMemoryHasATokenForEachDevice() throws Exception {
        String address = LabDevice.RXE.address();
        try (ServerMemory table = ServerMemory.allocate(4096, Access.REMOTE_READ, Access.REMOTE_ATOMIC);
                RdmaServer server = RdmaServer.builder()
                        .provider("all")
                        .threadsPerProvider(2)
                        .bind(
                                address,
                                0,
                                (exchange, message) ->
                                        exchange.reply(exchange.token(table).encode()));
                RdmaClient onRxe = RdmaClient.builder().provider("verbs").connect(address, server.port());
                RdmaClient onSoft = RdmaClient.builder().provider("soft").connect(address, server.port());
                RdmaClient onShm = RdmaClient.builder().provider("shm").connect(address, server.port())) {
            List<RdmaClient> clients = List.of(onRxe, onSoft, onShm);
            List<RemoteMemory> tokens = new ArrayList<>();
            for (RdmaClient client : clients) {
                tokens.add(FleetTokens.of(client));
            }
            assertThat(tokens).extracting(RemoteMemory::key).doesNotHaveDuplicates();
            for (int i = 0; i < 9; i++) {
                FleetTokens.assertCounts(clients.get(i % 3), tokens.get(i % 3), table, i);
            }
            FleetTokens.assertRefuses(onSoft, tokens.getFirst());
            FleetTokens.assertRefuses(onShm, tokens.get(1));
            FleetTokens.assertRefuses(onRxe, tokens.get(2));
        }
    }

    /**
     * The kernel holds the TCP port of an iWARP device: the device serves soft's clients itself, and nobody plain TCP.
     */
    @Test
    void theDeviceServesSoftsClientsOnSiw() throws Exception {
        String address = LabDevice.SIW.address();
        long failed = ProviderStatistics.of(ProviderChoice.choose("soft", null).provider())
                .failedListens();
        try (RdmaServer server = RdmaServer.builder()
                        .provider("all")
                        .threadsPerProvider(2)
                        .bind(address, 7942, ECHO);
                RdmaClient onSiw = RdmaClient.builder().provider("verbs").connect(address, 7942);
                RdmaClient onSoft = RdmaClient.builder().provider("soft").connect(address, 7942)) {
            assertThat(server.provider()).isEqualTo("verbs+shm");
            assertThat(ProviderStatistics.of(ProviderChoice.choose("soft", null).provider())
                            .failedListens())
                    .isEqualTo(failed + 1);
            assertServes(onSiw);
            assertServes(onSoft);
            assertThat(List.copyOf(server.connections()))
                    .extracting(child -> Carrier.of(child).name())
                    .containsExactly("verbs", "verbs");
            assertPlainTcpIsCutOff(address, 7942);
            assertServes(onSoft);
        }
    }

    private static void assertPlainTcpIsCutOff(String address, int port) throws IOException {
        try (Socket socket = new Socket(address, port)) {
            socket.setSoTimeout(60_000);
            socket.getOutputStream().write("GET / HTTP/1.1\r\nHost: siw\r\n\r\n".getBytes(US_ASCII));
            int read;
            try {
                read = socket.getInputStream().read();
            } catch (SocketException reset) {
                assertThat(reset).hasMessageContaining("reset");
                read = -1;
            }
            assertThat(read).isEqualTo(-1);
        }
    }

    @Test
    void aRequiredSoftFailsTheBindOnSiw() {
        String address = LabDevice.SIW.address();
        assertThatThrownBy(() -> RdmaServer.builder()
                        .provider("verbs+soft")
                        .threadsPerProvider(1)
                        .bind(address, 7943, ECHO)
                        .close())
                .hasMessageContaining("already in use");
        try (RdmaServer server =
                RdmaServer.builder().provider("verbs").threadsPerProvider(1).bind(address, 7943, ECHO)) {
            assertThat(server.port()).isEqualTo(7943);
        }
    }

    /** An iWARP device holds the TCP port for all addresses, so that soft has it for none. */
    @Test
    void softHasNoWildcardAddressBesideAnIwarpDevice() throws Exception {
        try (RdmaServer server =
                RdmaServer.builder().provider("all").threadsPerProvider(1).bind("0.0.0.0", 7944, ECHO)) {
            assertThat(server.provider()).isEqualTo("verbs+shm");
            try (RdmaClient onRxe = RdmaClient.builder().provider("verbs").connect(LabDevice.RXE.address(), 7944);
                    RdmaClient onSiw = RdmaClient.builder().provider("soft").connect(LabDevice.SIW.address(), 7944)) {
                assertServes(onRxe);
                assertServes(onSiw);
            }
        }
    }
}
