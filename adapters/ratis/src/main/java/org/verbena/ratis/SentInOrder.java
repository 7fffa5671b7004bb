package org.verbena.ratis;

import java.util.NavigableSet;
import java.util.concurrent.ConcurrentSkipListSet;
import org.apache.ratis.protocol.RaftClientRequest;
import org.apache.ratis.util.ProtoUtils;
import org.jspecify.annotations.Nullable;

/**
 * The numbers of a client's asynchronous requests to the leader, or to one server, that have no reply. Ratis marks the
 * first after a failure, but not after a blocking call has found another leader: then the new leader would wait for
 * those before until the request times out.
 */
final class SentInOrder {
    private final NavigableSet<Long> withoutReply = new ConcurrentSkipListSet<>();
    private volatile @Nullable Object begun; // the last connection that has got a first request

    /**
     * Takes note of a request. They come one after another, each when all with lower numbers have been sent once.
     *
     * @param connection on which it is sent
     * @return the same, or one that is marked as the first because all before have replies
     */
    RaftClientRequest sent(RaftClientRequest request, Object connection) {
        long number = request.getSlidingWindowEntry().getSeqNum();
        withoutReply.add(number);
        boolean first = request.getSlidingWindowEntry().getIsFirst();
        if (!first && (connection.equals(begun) || withoutReply.lower(number) != null)) {
            return request;
        }
        begun = connection;
        return first
                ? request
                : RaftClientRequest.newBuilder()
                        .set(request)
                        .setSlidingWindowEntry(ProtoUtils.toSlidingWindowEntry(number, true))
                        .build();
    }

    /** One is answered, and not to be sent again. */
    void replied(RaftClientRequest request) {
        withoutReply.remove(request.getSlidingWindowEntry().getSeqNum());
    }
}
