package org.verbena.ratis;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import org.apache.ratis.client.RaftClient;
import org.apache.ratis.conf.RaftProperties;
import org.apache.ratis.proto.RaftProtos.ReplicationLevel;
import org.apache.ratis.protocol.Message;
import org.apache.ratis.protocol.RaftClientReply;
import org.apache.ratis.protocol.RaftGroup;
import org.apache.ratis.protocol.RaftGroupId;
import org.apache.ratis.protocol.RaftPeerId;
import org.apache.ratis.protocol.exceptions.GroupMismatchException;
import org.apache.ratis.protocol.exceptions.StateMachineException;
import org.apache.ratis.protocol.exceptions.TransferLeadershipException;
import org.apache.ratis.retry.RetryPolicies;
import org.apache.ratis.server.RaftServerConfigKeys;
import org.apache.ratis.server.storage.RaftStorage.StartupOption;
import org.apache.ratis.thirdparty.com.google.protobuf.ByteString;
import org.apache.ratis.util.SizeInBytes;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.verbena.transport.spi.Patience;

/** A group of servers over Verbena, on any provider. */
@Timeout(300)
public abstract class RatisSuite {
    @TempDir
    Path folder;

    /** The provider's name. */
    protected abstract String provider();

    /** Where servers listen. */
    protected String host() {
        return "127.0.0.1";
    }

    /** Long enough for a machine that is busy with other work, which would else change leaders all the time. */
    protected long electionMillis() {
        return 1_000;
    }

    private Cluster cluster(int size) throws IOException {
        return cluster(size, new RaftProperties());
    }

    private Cluster cluster(int size, RaftProperties properties) throws IOException {
        return new Cluster(provider(), host(), folder, size, properties, electionMillis());
    }

    private static Message message(long number) {
        return Message.valueOf("message " + number);
    }

    private static long count(RaftClientReply reply) {
        return Long.parseLong(reply.getMessage().getContent().toStringUtf8());
    }

    private static void append(RaftClient client, int from, int to) throws IOException {
        for (int number = from; number < to; number++) {
            assertThat(count(client.io().send(message(number)))).isEqualTo(number + 1);
        }
    }

    /** The messages arrive once each and in their order, whoever leads. */
    @Test
    void appendsAHundredWithAChangeOfLeader() throws Exception {
        appendWithAChangeOfLeader(100);
    }

    /** Also for more of them where a thousand do not take a minute and a half, as they do in the lab. */
    protected final void appendWithAChangeOfLeader(int count) throws IOException {
        try (Cluster cluster = cluster(3);
                RaftClient client = cluster.client()) {
            append(client, 0, count * 2 / 5);
            RaftPeerId first = cluster.leader();
            cluster.stop(first);
            append(client, count * 2 / 5, count * 4 / 5);
            assertThat(cluster.leader()).isNotEqualTo(first);
            cluster.start(first, StartupOption.RECOVER);
            append(client, count * 4 / 5, count);
            cluster.awaitSame(count);
        }
    }

    @Test
    @Tag("full")
    void aFollowerThatWasAwayCatchesUp() throws Exception {
        try (Cluster cluster = cluster(3);
                RaftClient client = cluster.client()) {
            append(client, 0, 50);
            RaftPeerId follower = cluster.followers().getFirst();
            cluster.stop(follower);
            append(client, 50, 250);
            cluster.start(follower, StartupOption.RECOVER);
            cluster.awaitSame(250);
            assertThat(cluster.machine(follower).isFromSnapshot()).isFalse();
        }
    }

    @Test
    void anEmptyFollowerGetsASnapshot() throws Exception {
        RaftProperties properties = new RaftProperties();
        RaftServerConfigKeys.Log.setPurgeUptoSnapshotIndex(properties, true);
        RaftServerConfigKeys.Log.setPurgeGap(properties, 1);
        RaftServerConfigKeys.Snapshot.setCreationGap(properties, 1);
        RaftServerConfigKeys.Log.setSegmentSizeMax(properties, SizeInBytes.valueOf(1_024));
        RaftServerConfigKeys.Log.setPreallocatedSize(properties, SizeInBytes.valueOf(1_024));
        // In several pieces, each a request of its own.
        RaftServerConfigKeys.Log.Appender.setSnapshotChunkSizeMax(properties, SizeInBytes.valueOf(4));
        try (Cluster cluster = cluster(3, properties);
                RaftClient client = cluster.client()) {
            append(client, 0, 80);
            RaftPeerId follower = cluster.followers().getFirst();
            cluster.stop(follower);
            append(client, 80, 120);
            RaftPeerId leader = cluster.leader();
            assertThat(client.getSnapshotManagementApi(leader).create(60_000).isSuccess())
                    .isTrue();
            Patience.until(
                    "the log begins after the snapshot",
                    () -> cluster.division(leader).getRaftLog().getStartIndex() > 40);
            cluster.start(follower, StartupOption.FORMAT);
            append(client, 120, 140);
            cluster.awaitSame(140);
            assertThat(cluster.machine(follower).isFromSnapshot()).isTrue();
        }
    }

    @Test
    @Tag("full")
    void aLeaderThatIsCutOffIsReplaced() throws Exception {
        try (Cluster cluster = cluster(3);
                RaftClient client = cluster.client()) {
            append(client, 0, 20);
            RaftPeerId first = cluster.leader();
            cluster.cutOff(first);
            assertThat(cluster.leader()).isNotEqualTo(first);
            append(client, 20, 60);
            Patience.until(
                    "without a majority nobody leads",
                    () -> !cluster.division(first).getInfo().isLeader());
            assertThat(cluster.machine(first).count()).isLessThanOrEqualTo(20);
            cluster.heal(first);
            cluster.awaitSame(60);
        }
    }

    /** The others are a majority, and what they have is committed. */
    @Test
    @Tag("full")
    void aSlowFollowerHoldsNobodyUp() throws Exception {
        try (Cluster cluster = cluster(3);
                RaftClient client = cluster.client()) {
            append(client, 0, 10);
            cluster.awaitSame(10);
            RaftPeerId follower = cluster.followers().getFirst();
            cluster.hold(follower);
            append(client, 10, 200);
            assertThat(cluster.machine(follower).count()).isLessThan(200);
            cluster.release(follower);
            cluster.awaitSame(200);
        }
    }

    @Test
    void readsTheNewestFromEachServerAndTheOldWithoutALeader() throws Exception {
        RaftProperties properties = new RaftProperties();
        RaftServerConfigKeys.Read.setOption(properties, RaftServerConfigKeys.Read.Option.LINEARIZABLE);
        try (Cluster cluster = cluster(3, properties);
                RaftClient client = cluster.client()) {
            for (int number = 0; number < 20; number++) {
                append(client, number, number + 1);
                for (RaftPeerId id : cluster.ids()) {
                    assertThat(count(client.io().sendReadOnly(CountingStateMachine.QUERY, id)))
                            .isEqualTo(number + 1);
                }
            }
            assertThat(count(client.async()
                            .sendReadOnly(CountingStateMachine.QUERY)
                            .get()))
                    .isEqualTo(20);
            cluster.awaitSame(20);
            RaftPeerId last = cluster.followers().getFirst();
            cluster.stop(cluster.ids().stream().filter(id -> !id.equals(last)).toArray(RaftPeerId[]::new));
            assertThat(count(client.io().sendStaleRead(CountingStateMachine.QUERY, 0, last)))
                    .isEqualTo(20);
        }
    }

    @Test
    void handsTheLeadershipOver() throws Exception {
        try (Cluster cluster = cluster(3);
                RaftClient client = cluster.client()) {
            append(client, 0, 20);
            RaftPeerId next = cluster.followers().getFirst();
            assertThat(client.admin().transferLeadership(next, 60_000).isSuccess())
                    .isTrue();
            assertThat(cluster.leader()).isEqualTo(next);
            append(client, 20, 40);
            cluster.awaitSame(40);
        }
    }

    /** A client waits longer than the server may take, and so gets the server's reason. */
    @Test
    @Tag("full")
    void aTransferThatTakesTooLongFailsAtTheServer() throws Exception {
        try (Cluster cluster = cluster(3);
                RaftClient client = cluster.client();
                RaftClient once = cluster.client(cluster.group(), RetryPolicies.noRetry())) {
            append(client, 0, 10);
            RaftPeerId follower = cluster.followers().getFirst();
            cluster.hold(follower);
            append(client, 10, 20);
            RaftPeerId leader = cluster.leader();
            assertThatThrownBy(() -> once.admin().transferLeadership(follower, leader, electionMillis() / 2))
                    .isInstanceOf(TransferLeadershipException.class);
            cluster.release(follower);
            append(client, 20, 30);
            cluster.awaitSame(30);
        }
    }

    /** Those of one client, all under way at once, in the order of their calls. */
    @Test
    void asynchronousRequestsKeepTheirOrder() throws Exception {
        try (Cluster cluster = cluster(3);
                RaftClient client = cluster.client()) {
            List<CompletableFuture<RaftClientReply>> replies = new ArrayList<>();
            AtomicInteger blocked = new AtomicInteger();
            for (int number = 0; number < 90; number++) {
                replies.add(client.async().send(message(number)));
            }
            for (int number = 0; number < 90; number++) {
                assertThat(count(replies.get(number).get())).isEqualTo(number + 1);
            }
            // What a stage does may block: none runs on an event loop.
            CompletableFuture<Void> stage = client.async().send(message(90)).thenAccept(reply -> {
                try {
                    blocked.addAndGet((int) count(client.io().send(message(91))));
                } catch (IOException failure) {
                    throw new CompletionException(failure);
                }
            });
            stage.get();
            assertThat(blocked).hasValue(92);
            RaftClientReply last = client.async().send(message(92)).get();
            assertThat(client.async()
                            .watch(last.getLogIndex(), ReplicationLevel.ALL_COMMITTED)
                            .get()
                            .isSuccess())
                    .isTrue();
            cluster.awaitSame(93);
        }
    }

    /** Longer than a receive, and than any frame. */
    @Test
    void longMessagesArrive() throws Exception {
        byte[] bytes = new byte[3_000_000];
        IntStream.range(0, bytes.length).forEach(index -> bytes[index] = (byte) (index * 31));
        try (Cluster cluster = cluster(3);
                RaftClient client = cluster.client()) {
            client.io().send(Message.valueOf(ByteString.copyFrom(bytes)));
            client.io().send(Message.valueOf(ByteString.copyFrom(bytes, 0, 70_000)));
            cluster.awaitSame(2);
            CountingStateMachine.State expected = new CountingStateMachine.State(0, 0)
                    .and(Message.valueOf(ByteString.copyFrom(bytes)))
                    .and(Message.valueOf(ByteString.copyFrom(bytes, 0, 70_000)));
            assertThat(cluster.machine(cluster.leader()).state()).isEqualTo(expected);
        }
    }

    /** As what it is, since some of them the client must not try again. */
    @Test
    void aFailureReachesTheClient() throws Exception {
        try (Cluster cluster = cluster(3);
                RaftClient client = cluster.client();
                RaftClient stranger = cluster.client(RaftGroup.valueOf(
                        RaftGroupId.randomId(), cluster.group().getPeers()))) {
            append(client, 0, 1);
            assertThatThrownBy(() -> client.io().send(CountingStateMachine.INVALID))
                    .isInstanceOf(StateMachineException.class);
            assertThatThrownBy(() ->
                            client.async().send(CountingStateMachine.INVALID).join())
                    .hasCauseInstanceOf(StateMachineException.class);
            assertThatThrownBy(() -> stranger.io().send(message(0))).isInstanceOf(GroupMismatchException.class);
            assertThatThrownBy(() ->
                            stranger.async().sendReadOnlyUnordered(message(0)).join())
                    .hasCauseInstanceOf(GroupMismatchException.class);
            assertThat(client.getGroupManagementApi(cluster.leader()).list().getGroupIds())
                    .containsExactly(cluster.group().getGroupId());
            assertThat(client.getGroupManagementApi(cluster.leader())
                            .info(cluster.group().getGroupId())
                            .getGroup())
                    .isEqualTo(cluster.group());
            append(client, 1, 2);
        }
    }

    @Test
    @Tag("full")
    void fiveServersGoOnWithThree() throws Exception {
        try (Cluster cluster = cluster(5);
                RaftClient client = cluster.client()) {
            append(client, 0, 100);
            RaftPeerId leader = cluster.leader();
            RaftPeerId follower = cluster.followers().getFirst();
            cluster.stop(leader, follower);
            append(client, 100, 200);
            cluster.start(leader, StartupOption.RECOVER);
            cluster.start(follower, StartupOption.RECOVER);
            append(client, 200, 250);
            cluster.awaitSame(250);
        }
    }
}
