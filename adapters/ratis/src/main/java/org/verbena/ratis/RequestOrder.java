package org.verbena.ratis;

import io.netty.util.AttributeKey;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.NavigableSet;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentSkipListSet;
import java.util.function.Consumer;
import java.util.function.Function;
import org.apache.ratis.protocol.ClientId;
import org.apache.ratis.protocol.Message;
import org.apache.ratis.protocol.RaftClientReply;
import org.apache.ratis.protocol.RaftClientRequest;
import org.apache.ratis.protocol.RaftGroupId;
import org.apache.ratis.protocol.exceptions.AlreadyClosedException;
import org.apache.ratis.protocol.exceptions.ResourceUnavailableException;
import org.jspecify.annotations.Nullable;
import org.verbena.api.RdmaChannel;

/**
 * Hands the numbered requests of a client to Ratis in the order of their numbers, whatever the order in which they
 * arrive on a connection. Ratis' client sends them in order, but after a failure sends again what has no reply in any
 * order. A request waits while one with a lower number is expected: it has not come yet, or has failed so that the
 * client sends it again.
 *
 * <p>The client marks a request as the first if it has a reply to all before. Nothing is handed on until such a one has
 * come, and none below it is expected any more.
 *
 * <p>Unlike {@code SlidingWindow.Server}, with which Ratis' gRPC server does this, it does not need a stream that ends
 * with the first failure: the connection stays, with what goes on there.
 */
final class RequestOrder {
    /** A client needs two on a connection: to the leader and to the server. */
    private static final int MAX_OF_CONNECTION = 64;

    private static final AttributeKey<Map<Key, RequestOrder>> OF_CONNECTION =
            AttributeKey.valueOf("verbena.ratis.orders");

    private final Function<RaftClientRequest, CompletableFuture<RaftClientReply>> submitting;
    private final WaitingLimit limit;

    private final SortedMap<Long, Waiting> waiting = new TreeMap<>(); // guarded by this

    /**
     * The numbers below {@link #next} that the client sends again. They are added without this lock: requests fail on
     * threads that have locks of Ratis, for which a request that is handed on may wait.
     */
    private final NavigableSet<Long> failed = new ConcurrentSkipListSet<>();

    /** The lowest that has never been handed on. Ratis' clients begin at 1. */
    private long next; // guarded by this

    /** The client has a reply to each below this one. */
    private volatile long first; // written by the holder of this

    /**
     * Makes one for one client and connection.
     *
     * @param submitting hands a request on, and does not wait or throw
     */
    RequestOrder(Function<RaftClientRequest, CompletableFuture<RaftClientReply>> submitting, WaitingLimit limit) {
        this.submitting = submitting;
        this.limit = limit;
    }

    /** A client numbers its requests to the leader of a group, and those to a server, for themselves. */
    private record Key(ClientId client, RaftGroupId group, boolean toLeader) {
        static Key of(RaftClientRequest request) {
            return new Key(request.getClientId(), request.getRaftGroupId(), request.isToLeader());
        }
    }

    private record Waiting(RaftClientRequest request, CompletableFuture<RaftClientReply> answer) {
        int bytes() {
            return Message.getSize(request.getMessage());
        }
    }

    /** What becomes of one that has waited, to be told when the lock is released. */
    private record Outcome(CompletableFuture<RaftClientReply> of, CompletableFuture<RaftClientReply> result) {
        void tell() {
            result.whenComplete((reply, failure) -> {
                if (failure == null) {
                    of.complete(reply);
                } else {
                    of.completeExceptionally(failure);
                }
            });
        }
    }

    /**
     * Returns that of a request's client. It lives as long as the connection.
     *
     * @throws ResourceUnavailableException the connection has too many
     */
    static RequestOrder of(
            RdmaChannel connection,
            RaftClientRequest request,
            Function<RaftClientRequest, CompletableFuture<RaftClientReply>> submitting,
            WaitingLimit limit)
            throws ResourceUnavailableException {
        Map<Key, RequestOrder> all = connection.attr(OF_CONNECTION).get();
        if (all == null) {
            Map<Key, RequestOrder> made = new ConcurrentHashMap<>();
            Map<Key, RequestOrder> other = connection.attr(OF_CONNECTION).setIfAbsent(made);
            all = other == null ? made : other;
        }
        Key key = Key.of(request);
        RequestOrder found = all.get(key);
        if (found == null) {
            if (all.size() >= MAX_OF_CONNECTION) {
                throw new ResourceUnavailableException("more than " + MAX_OF_CONNECTION + " clients on a connection");
            }
            found = all.computeIfAbsent(key, absent -> new RequestOrder(submitting, limit));
        }
        return found;
    }

    /**
     * Takes a request.
     *
     * @param onCancel is given what to do when nobody waits for the reply any more, which does not take long
     * @return done with the reply, on any thread
     */
    CompletableFuture<RaftClientReply> receive(RaftClientRequest request, Consumer<Runnable> onCancel) {
        long number = request.getSlidingWindowEntry().getSeqNum();
        List<Outcome> outcomes = new ArrayList<>(0);
        CompletableFuture<RaftClientReply> answer;
        Waiting entry = null;
        synchronized (this) {
            if (request.getSlidingWindowEntry().getIsFirst()) {
                expectNoneBelow(number, outcomes);
            }
            if (isDue(number)) {
                answer = handOn(number, request);
                handOnWaiting(outcomes);
            } else {
                answer = new CompletableFuture<>();
                entry = new Waiting(request, answer);
                Waiting before = waiting.remove(number);
                if (before != null) {
                    outcomes.add(leave(before, "another one with the same number has come"));
                }
                if (limit.acquire(entry.bytes())) {
                    waiting.put(number, entry);
                } else {
                    outcomes.add(new Outcome(
                            answer,
                            CompletableFuture.failedFuture(
                                    new ResourceUnavailableException("too much waits for earlier requests"))));
                    entry = null;
                }
            }
        }
        outcomes.forEach(Outcome::tell);
        if (entry != null) {
            Waiting cancelled = entry;
            onCancel.accept(() -> cancel(number, cancelled));
        }
        return answer;
    }

    private void expectNoneBelow(long number, Collection<Outcome> outcomes) {
        next = Math.max(next, number);
        first = Math.max(first, number);
        failed.headSet(number).clear();
        SortedMap<Long, Waiting> replied = waiting.headMap(number);
        replied.values().forEach(each -> outcomes.add(leave(each, "the client has a reply to it")));
        replied.clear();
    }

    /** One that is handed on already and has not failed comes again if its reply is late: Ratis knows it. */
    private boolean isDue(long number) {
        if (number < next && !failed.contains(number)) {
            return true;
        }
        Long again = failed.ceiling(Long.MIN_VALUE); // null where first() would throw
        return number == (again == null ? next : again);
    }

    private void handOnWaiting(Collection<Outcome> outcomes) {
        Iterator<Map.Entry<Long, Waiting>> each = waiting.entrySet().iterator();
        while (each.hasNext()) {
            Map.Entry<Long, Waiting> entry = each.next();
            long number = entry.getKey();
            Waiting lowest = entry.getValue();
            if (!isDue(number)) {
                return;
            }
            each.remove();
            limit.release(lowest.bytes());
            outcomes.add(new Outcome(lowest.answer, handOn(number, lowest.request)));
        }
    }

    /** Completes when it is known whether the client sends it again. */
    private CompletableFuture<RaftClientReply> handOn(long number, RaftClientRequest request) {
        if (number == next) {
            next++;
        } else {
            failed.remove(number);
        }
        return submitting.apply(request).whenComplete((reply, failure) -> {
            if (failure != null
                    || reply.getNotLeaderException() != null
                    || reply.getLeaderNotReadyException() != null) {
                expectAgain(number);
            }
        });
    }

    /** Forgets the last number if there are more than the limit, which no client of Ratis has under way. */
    private void expectAgain(long number) {
        failed.add(number);
        if (failed.size() > limit.requests()) {
            failed.pollLast();
        }
        if (number < first) { // first has moved past it meanwhile
            failed.remove(number);
        }
    }

    private synchronized @Nullable Outcome remove(long number, Waiting cancelled) {
        return waiting.remove(number, cancelled) ? leave(cancelled, "nobody waits for the reply") : null;
    }

    private void cancel(long number, Waiting cancelled) {
        Outcome outcome = remove(number, cancelled);
        if (outcome != null) {
            outcome.tell();
        }
    }

    private Outcome leave(Waiting left, String why) {
        limit.release(left.bytes());
        return new Outcome(left.answer, CompletableFuture.failedFuture(new AlreadyClosedException(why)));
    }
}
