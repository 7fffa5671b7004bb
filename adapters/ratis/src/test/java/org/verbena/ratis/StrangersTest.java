package org.verbena.ratis;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.net.InetSocketAddress;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.CompletableFuture;
import org.apache.ratis.client.RaftClient;
import org.apache.ratis.conf.RaftProperties;
import org.apache.ratis.protocol.Message;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.verbena.api.RdmaClient;
import org.verbena.api.RdmaEventLoopGroup;
import org.verbena.api.service.Codec;
import org.verbena.api.service.Method;
import org.verbena.transport.Framing;
import org.verbena.transport.spi.Patience;
import org.verbena.transport.spi.Strangers;

/** A server whose port others reach than servers and clients of its group: it serves these, and is done with those. */
@Timeout(300)
class StrangersTest {
    /** Two for each. */
    private static final int SILENT = 700;

    /** Of a connection that is not one of many. */
    private static final long USUAL_BYTES = 1 << 20;

    @TempDir
    Path folder;

    private static InetSocketAddress address(Cluster cluster) {
        String[] address =
                cluster.group().getPeer(cluster.leader()).getAddress().split(":");
        return new InetSocketAddress(address[0], Integer.parseInt(address[1]));
    }

    private static void append(RaftClient client, int times) throws Exception {
        for (int i = 0; i < times; i++) {
            assertThat(client.io().send(Message.valueOf("honest")).isSuccess()).isTrue();
        }
    }

    @Test
    void whoSpeaksNoProtocolIsEndedInTime() throws Exception {
        try (Cluster cluster = new Cluster("soft", "127.0.0.1", folder, 1, new RaftProperties(), 1_000);
                RaftClient client = cluster.client();
                Strangers strangers = new Strangers(address(cluster))) {
            append(client, 1);
            strangers.connectSilently(100, Framing.MESSAGE);
            strangers.sendNoise(10);
            append(client, 20);
            strangers.awaitEnd();
            append(client, 1);
        }
    }

    /** Calls that are no message of Ratis, of lengths that are not there among others. */
    @Test
    void callsThatCannotBeReadFail() throws Exception {
        try (Cluster cluster = new Cluster("soft", "127.0.0.1", folder, 1, new RaftProperties(), 1_000);
                RaftClient client = cluster.client();
                Strangers strangers = new Strangers(address(cluster));
                RdmaClient stranger = RdmaClient.builder()
                        .provider("soft")
                        .connect("127.0.0.1", address(cluster).getPort())) {
            append(client, 1);
            SplittableRandom random = new SplittableRandom(59);
            byte[] noise = new byte[3_000];
            random.nextBytes(noise);
            List<byte[]> requests = List.of(
                    new byte[0],
                    noise,
                    new byte[] {0x0a, -1, -1, -1, -1, 7}, // 2 GiB
                    new byte[] {0x0a, 5, 1, 2});
            List<CompletableFuture<byte[]>> calls = new ArrayList<>();
            for (String method :
                    List.of("vote", "append", "install", "request", "manage-groups", "group-info", "none")) {
                for (byte[] request : requests) {
                    calls.add(stranger.call(Method.of("ratis", method, Codec.BYTES, Codec.BYTES), request));
                }
            }
            for (CompletableFuture<byte[]> call : calls) {
                assertThatThrownBy(() -> Patience.await("an answer", call)).isNotNull();
                assertThat(call).isCompletedExceptionally();
            }
            append(client, 20);
            strangers.awaitEnd();
        }
    }

    /** Clients may be idle, so connections that are complete stay: where they are many, with less memory. */
    @Test
    void silentClientsLeaveRoomForOthers() throws Exception {
        try (Cluster cluster = new Cluster("soft", "127.0.0.1", folder, 1, new RaftProperties(), 1_000);
                RaftClient client = cluster.client();
                RdmaEventLoopGroup loops = new RdmaEventLoopGroup("soft", 1)) {
            append(client, 1);
            long before = receiveBytes(loops);
            List<RdmaClient> silent = new ArrayList<>();
            for (int i = 0; i < SILENT; i++) {
                silent.add(RdmaClient.builder()
                        .group(loops)
                        .connect("127.0.0.1", address(cluster).getPort()));
            }
            try (RaftClient late = cluster.client()) {
                append(late, 20);
            }
            assertThat(receiveBytes(loops) - before).isLessThan(3 * SILENT * USUAL_BYTES / 2);
            silent.forEach(RdmaClient::close);
        }
    }

    /** Of both ends of all connections. */
    private static long receiveBytes(RdmaEventLoopGroup loops) {
        return loops.providerStatistics().receiveBuffers().usedBytes();
    }
}
