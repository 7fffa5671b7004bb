package org.verbena.ratis;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import org.apache.ratis.client.RaftClient;
import org.apache.ratis.conf.Parameters;
import org.apache.ratis.conf.RaftProperties;
import org.apache.ratis.protocol.Message;
import org.apache.ratis.protocol.RaftClientReply;
import org.apache.ratis.protocol.RaftGroup;
import org.apache.ratis.protocol.RaftPeerId;
import org.apache.ratis.retry.RetryPolicies;
import org.apache.ratis.server.storage.RaftStorage.StartupOption;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.verbena.transport.spi.Patience;

/** Servers in processes of their own, of which the leader is killed as {@code kill -9} does. */
@Tag("full")
@Timeout(300)
class KilledLeaderTest {
    private static final String HOST = "127.0.0.1";
    private static final int APPENDS = 100;
    private static final long ELECTION_MILLIS = 1_000;

    @TempDir
    Path folder;

    private final Map<RaftPeerId, ServerProcess> servers = new HashMap<>();
    private int appended;

    /**
     * What was acknowledged is there once, in its order, at every server: also what the client has sent again because a
     * kill had cut it off, and also when no server was left.
     */
    @ParameterizedTest
    @CsvSource({"soft, 3", "soft, 5", "shm, 3", "shm, 5"})
    void anotherLeadsAndTheKilledComeBack(String provider, int size) throws Exception {
        RaftGroup group = Cluster.group(HOST, size);
        startAll(provider, group, StartupOption.FORMAT);
        try (RaftClient client = client(provider, group)) {
            append(client);
            for (int kills = 0; kills < 2; kills++) {
                RaftPeerId leader = append(client);
                servers.remove(leader).kill();
                assertThat(append(client)).isNotEqualTo(leader);
                start(provider, group, leader, StartupOption.RECOVER);
                append(client);
                awaitSame(client);
            }
            killAll();
            startAll(provider, group, StartupOption.RECOVER);
            awaitSame(client);
            append(client);
            awaitSame(client);
        }
    }

    private void startAll(String provider, RaftGroup group, StartupOption option) throws IOException {
        for (RaftPeerId id : group.getPeers().stream().map(peer -> peer.getId()).toList()) {
            start(provider, group, id, option);
        }
    }

    private void start(String provider, RaftGroup group, RaftPeerId id, StartupOption option) throws IOException {
        servers.put(id, ServerProcess.start(provider, group, id, folder, option, ELECTION_MILLIS));
    }

    @AfterEach
    void killAll() throws InterruptedException {
        for (ServerProcess server : servers.values()) {
            server.kill();
        }
        servers.clear();
    }

    private static RaftClient client(String provider, RaftGroup group) {
        RaftProperties properties = new RaftProperties();
        Cluster.set(properties, ELECTION_MILLIS);
        Parameters parameters = new Parameters();
        RdmaConfigKeys.Client.setCustomizer(parameters, builder -> builder.provider(provider));
        return RaftClient.newBuilder()
                .setRaftGroup(group)
                .setProperties(properties)
                .setParameters(parameters)
                .setRetryPolicy(RetryPolicies.retryForeverWithSleep(Cluster.millis(50)))
                .build();
    }

    /** Returns who has answered the last, which leads. */
    private RaftPeerId append(RaftClient client) throws IOException {
        RaftClientReply reply = null;
        for (int i = 0; i < APPENDS; i++) {
            reply = client.io().send(message(appended));
            appended++;
            assertThat(text(reply)).isEqualTo(String.valueOf(appended));
        }
        return RaftPeerId.valueOf(reply.getReplierId());
    }

    private static Message message(int number) {
        return Message.valueOf("message " + number);
    }

    /** Waits until all servers have applied all messages in their order. */
    private void awaitSame(RaftClient client) {
        CountingStateMachine.State state = new CountingStateMachine.State(0, 0);
        for (int number = 0; number < appended; number++) {
            state = state.and(message(number));
        }
        String expected = state.toString();
        for (RaftPeerId id : servers.keySet()) {
            Patience.until(id + " has applied " + appended, () -> expected.equals(stateOf(client, id)));
        }
    }

    private static String stateOf(RaftClient client, RaftPeerId id) {
        try {
            return text(client.io().sendStaleRead(CountingStateMachine.STATE, 0, id));
        } catch (IOException notYet) {
            return notYet.toString();
        }
    }

    private static String text(RaftClientReply reply) {
        return reply.getMessage().getContent().toStringUtf8();
    }
}
