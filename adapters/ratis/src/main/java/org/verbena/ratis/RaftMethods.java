package org.verbena.ratis;

import io.netty.buffer.ByteBuf;
import java.io.IOException;
import org.apache.ratis.proto.RaftProtos.AppendEntriesReplyProto;
import org.apache.ratis.proto.RaftProtos.AppendEntriesRequestProto;
import org.apache.ratis.proto.RaftProtos.GroupInfoReplyProto;
import org.apache.ratis.proto.RaftProtos.GroupInfoRequestProto;
import org.apache.ratis.proto.RaftProtos.GroupListReplyProto;
import org.apache.ratis.proto.RaftProtos.GroupListRequestProto;
import org.apache.ratis.proto.RaftProtos.GroupManagementRequestProto;
import org.apache.ratis.proto.RaftProtos.InstallSnapshotReplyProto;
import org.apache.ratis.proto.RaftProtos.InstallSnapshotRequestProto;
import org.apache.ratis.proto.RaftProtos.LeaderElectionManagementRequestProto;
import org.apache.ratis.proto.RaftProtos.RaftClientReplyProto;
import org.apache.ratis.proto.RaftProtos.RaftClientRequestProto;
import org.apache.ratis.proto.RaftProtos.ReadIndexReplyProto;
import org.apache.ratis.proto.RaftProtos.ReadIndexRequestProto;
import org.apache.ratis.proto.RaftProtos.RequestVoteReplyProto;
import org.apache.ratis.proto.RaftProtos.RequestVoteRequestProto;
import org.apache.ratis.proto.RaftProtos.SetConfigurationRequestProto;
import org.apache.ratis.proto.RaftProtos.SnapshotManagementRequestProto;
import org.apache.ratis.proto.RaftProtos.StartLeaderElectionReplyProto;
import org.apache.ratis.proto.RaftProtos.StartLeaderElectionRequestProto;
import org.apache.ratis.proto.RaftProtos.TransferLeadershipRequestProto;
import org.apache.ratis.thirdparty.com.google.protobuf.CodedInputStream;
import org.apache.ratis.thirdparty.com.google.protobuf.CodedOutputStream;
import org.apache.ratis.thirdparty.com.google.protobuf.MessageLite;
import org.apache.ratis.thirdparty.com.google.protobuf.Parser;
import org.verbena.api.service.Codec;
import org.verbena.api.service.Method;

/** What servers and clients call, in Ratis' messages. */
final class RaftMethods {
    private static final Codec<RaftClientReplyProto> CLIENT_REPLY = codec(RaftClientReplyProto.parser());

    static final Method<RequestVoteRequestProto, RequestVoteReplyProto> VOTE =
            method("vote", RequestVoteRequestProto.parser(), codec(RequestVoteReplyProto.parser()));
    static final Method<AppendEntriesRequestProto, AppendEntriesReplyProto> APPEND =
            method("append", AppendEntriesRequestProto.parser(), codec(AppendEntriesReplyProto.parser()));
    static final Method<InstallSnapshotRequestProto, InstallSnapshotReplyProto> INSTALL =
            method("install", InstallSnapshotRequestProto.parser(), codec(InstallSnapshotReplyProto.parser()));
    static final Method<StartLeaderElectionRequestProto, StartLeaderElectionReplyProto> ELECT =
            method("elect", StartLeaderElectionRequestProto.parser(), codec(StartLeaderElectionReplyProto.parser()));
    static final Method<ReadIndexRequestProto, ReadIndexReplyProto> READ_INDEX =
            method("read-index", ReadIndexRequestProto.parser(), codec(ReadIndexReplyProto.parser()));

    static final Method<RaftClientRequestProto, RaftClientReplyProto> REQUEST =
            method("request", RaftClientRequestProto.parser(), CLIENT_REPLY);
    static final Method<SetConfigurationRequestProto, RaftClientReplyProto> SET_CONFIGURATION =
            method("set-configuration", SetConfigurationRequestProto.parser(), CLIENT_REPLY);
    static final Method<TransferLeadershipRequestProto, RaftClientReplyProto> TRANSFER_LEADERSHIP =
            method("transfer-leadership", TransferLeadershipRequestProto.parser(), CLIENT_REPLY);
    static final Method<SnapshotManagementRequestProto, RaftClientReplyProto> MANAGE_SNAPSHOTS =
            method("manage-snapshots", SnapshotManagementRequestProto.parser(), CLIENT_REPLY);
    static final Method<LeaderElectionManagementRequestProto, RaftClientReplyProto> MANAGE_ELECTIONS =
            method("manage-elections", LeaderElectionManagementRequestProto.parser(), CLIENT_REPLY);
    static final Method<GroupManagementRequestProto, RaftClientReplyProto> MANAGE_GROUPS =
            method("manage-groups", GroupManagementRequestProto.parser(), CLIENT_REPLY);
    static final Method<GroupListRequestProto, GroupListReplyProto> LIST_GROUPS =
            method("list-groups", GroupListRequestProto.parser(), codec(GroupListReplyProto.parser()));
    static final Method<GroupInfoRequestProto, GroupInfoReplyProto> GROUP_INFO =
            method("group-info", GroupInfoRequestProto.parser(), codec(GroupInfoReplyProto.parser()));

    private RaftMethods() {}

    private static <Q extends MessageLite, R> Method<Q, R> method(String name, Parser<Q> request, Codec<R> reply) {
        return Method.of("ratis", name, codec(request), reply);
    }

    /** One copy each way: into the buffer that is sent, and out of the one that was received. */
    private static <T extends MessageLite> Codec<T> codec(Parser<T> parser) {
        return new Codec<>() {
            @Override
            public void encode(T value, ByteBuf out) throws IOException {
                int length = value.getSerializedSize();
                int start = out.ensureWritable(length).writerIndex();
                CodedOutputStream stream = CodedOutputStream.newInstance(out.nioBuffer(start, length));
                value.writeTo(stream);
                stream.flush();
                out.writerIndex(start + length);
            }

            @Override
            public T decode(ByteBuf in) throws IOException {
                return parser.parseFrom(CodedInputStream.newInstance(in.nioBuffer()));
            }
        };
    }
}
