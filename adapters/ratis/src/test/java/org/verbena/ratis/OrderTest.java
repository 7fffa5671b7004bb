package org.verbena.ratis;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.file.Path;
import java.util.concurrent.CompletableFuture;
import org.apache.ratis.client.RaftClient;
import org.apache.ratis.client.RaftClientConfigKeys;
import org.apache.ratis.client.impl.ClientProtoUtils;
import org.apache.ratis.conf.RaftProperties;
import org.apache.ratis.proto.RaftProtos.RaftClientReplyProto;
import org.apache.ratis.protocol.ClientId;
import org.apache.ratis.protocol.Message;
import org.apache.ratis.protocol.RaftClientRequest;
import org.apache.ratis.protocol.RaftPeerId;
import org.apache.ratis.util.ProtoUtils;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.verbena.api.RdmaClient;
import org.verbena.transport.ConnectionException;

/** What a server does with numbered requests that arrive in another order, as after a change of leader. */
@Timeout(120)
class OrderTest {
    private static final ClientId CLIENT = ClientId.randomId();

    @TempDir
    Path folder;

    private static RdmaClient connect(Cluster cluster, RaftPeerId server) {
        String[] address = cluster.group().getPeer(server).getAddress().split(":");
        return RdmaClient.builder().provider("soft").connect(address[0], Integer.parseInt(address[1]));
    }

    /** Sends one without a number if it is 0. */
    private static CompletableFuture<Long> send(
            RdmaClient client, Cluster cluster, RaftPeerId leader, long call, long number, boolean first) {
        RaftClientRequest request = RaftClientRequest.newBuilder()
                .setClientId(CLIENT)
                .setLeaderId(leader)
                .setGroupId(cluster.group().getGroupId())
                .setCallId(call)
                .setMessage(Message.valueOf("call " + call))
                .setType(RaftClientRequest.writeRequestType())
                .setSlidingWindowEntry(number == 0 ? null : ProtoUtils.toSlidingWindowEntry(number, first))
                .build();
        return client.call(RaftMethods.REQUEST, ClientProtoUtils.toRaftClientRequestProto(request))
                .thenApply(OrderTest::count);
    }

    private static long count(RaftClientReplyProto reply) {
        return Long.parseLong(ClientProtoUtils.toRaftClientReply(reply)
                .getMessage()
                .getContent()
                .toStringUtf8());
    }

    @Test
    void requestsAreAppliedInTheOrderOfTheirNumbers() throws Exception {
        try (Cluster cluster = new Cluster("soft", "127.0.0.1", folder, 1, new RaftProperties(), 1_000)) {
            RaftPeerId leader = cluster.leader();
            CompletableFuture<Long> lost;
            try (RdmaClient client = connect(cluster, leader)) {
                assertThat(send(client, cluster, leader, 1, 1, true).get()).isEqualTo(1);
                CompletableFuture<Long> fourth = send(client, cluster, leader, 4, 4, false);
                CompletableFuture<Long> third = send(client, cluster, leader, 3, 3, false);
                // Without a number there is nothing to wait for.
                assertThat(send(client, cluster, leader, 100, 0, false).get()).isEqualTo(2);
                CompletableFuture<Long> second = send(client, cluster, leader, 2, 2, false);
                assertThat(second.get()).isEqualTo(3);
                assertThat(third.get()).isEqualTo(4);
                assertThat(fourth.get()).isEqualTo(5);
                lost = send(client, cluster, leader, 7, 7, false);
            }
            assertThatThrownBy(lost::get).hasCauseInstanceOf(ConnectionException.class);
            try (RdmaClient again = connect(cluster, leader)) {
                CompletableFuture<Long> seventh = send(again, cluster, leader, 7, 7, false);
                CompletableFuture<Long> sixth = send(again, cluster, leader, 6, 6, false);
                CompletableFuture<Long> fifth = send(again, cluster, leader, 5, 5, true);
                assertThat(fifth.get()).isEqualTo(6);
                assertThat(sixth.get()).isEqualTo(7);
                assertThat(seventh.get()).isEqualTo(8);
            }
        }
    }

    /** A request that is not marked as the first would wait at the new leader until its time is over. */
    @Test
    void anAsynchronousRequestFollowsABlockingOneToAnotherLeader() throws Exception {
        RaftProperties properties = new RaftProperties();
        try (Cluster cluster = new Cluster("soft", "127.0.0.1", folder, 3, properties, 1_000)) {
            RaftClientConfigKeys.Rpc.setRequestTimeout(properties, Cluster.millis(600_000));
            try (RaftClient client = cluster.client();
                    RaftClient other = cluster.client()) {
                client.async().send(Message.valueOf("before")).get();
                RaftPeerId next = cluster.followers().getFirst();
                assertThat(other.admin().transferLeadership(next, 60_000).isSuccess())
                        .isTrue();
                client.io().send(Message.valueOf("between"));
                client.async().send(Message.valueOf("after")).get();
                cluster.awaitSame(3);
            }
        }
    }
}
