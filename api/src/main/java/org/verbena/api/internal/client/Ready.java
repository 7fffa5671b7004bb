package org.verbena.api.internal.client;

import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.util.List;
import java.util.concurrent.ThreadLocalRandom;
import org.jspecify.annotations.Nullable;
import org.verbena.api.internal.request.Messenger;

/** The connections of a client that are up, and how one is chosen among them. Does not change. Any thread. */
final class Ready {
    static final Ready NONE = new Ready(List.of(), List.of());

    private final Messenger[] messengers;

    /** Of their addresses, which are the same in all clients. */
    private final long[] hashes;

    Ready(List<Messenger> messengers, List<SocketAddress> addresses) {
        this.messengers = messengers.toArray(Messenger[]::new);
        hashes = addresses.stream().mapToLong(Ready::hash).toArray();
    }

    private static long hash(SocketAddress address) {
        if (!(address instanceof InetSocketAddress internet) || internet.isUnresolved()) {
            return address.hashCode();
        }
        long hash = internet.getPort();
        for (byte each : internet.getAddress().getAddress()) {
            hash = mix(hash * 31 + each);
        }
        return hash;
    }

    /** The finisher of SplitMix64: each bit of the result depends on all. */
    private static long mix(long value) {
        long mixed = (value ^ value >>> 30) * 0xbf58476d1ce4e5b9L;
        mixed = (mixed ^ mixed >>> 27) * 0x94d049bb133111ebL;
        return mixed ^ mixed >>> 31;
    }

    boolean isEmpty() {
        return messengers.length == 0;
    }

    boolean isWritable() {
        for (Messenger messenger : messengers) {
            if (messenger.channel().isWritable()) {
                return true;
            }
        }
        return false;
    }

    /** The less loaded of two; null if there is none. */
    @Nullable Messenger pick() {
        return switch (messengers.length) {
            case 0 -> null;
            case 1 -> messengers[0];
            default -> lessLoaded();
        };
    }

    private Messenger lessLoaded() {
        ThreadLocalRandom random = ThreadLocalRandom.current();
        int one = random.nextInt(messengers.length);
        int other = random.nextInt(messengers.length - 1);
        if (other >= one) {
            other++;
        }
        return messengers[one].burden() <= messengers[other].burden() ? messengers[one] : messengers[other];
    }

    /** Whether the others that have answered at all do so within this time, and there is one. */
    boolean answerWithin(long nanos, Messenger except) {
        boolean isKnown = false;
        for (Messenger each : messengers) {
            if (each != except && each.requests().hasAnswered()) {
                if (!each.requests().answersWithin(nanos)) {
                    return false;
                }
                isKnown = true;
            }
        }
        return isKnown;
    }

    /**
     * One of the address to which the key belongs: the one with the highest hash of both, so that the others keep their
     * keys when it goes. The least loaded of its connections. Null if none is usable.
     */
    @Nullable Messenger pick(long keyHash) {
        return pick(keyHash, null);
    }

    private @Nullable Messenger pick(long keyHash, @Nullable Messenger except) {
        Messenger best = null;
        long highest = 0;
        for (int i = 0; i < messengers.length; i++) {
            Messenger each = messengers[i];
            if (each == except || !each.isUsable()) {
                continue;
            }
            long rank = mix(hashes[i] ^ mix(keyHash));
            if (best == null || rank > highest || (rank == highest && each.load() < best.load())) {
                best = each;
                highest = rank;
            }
        }
        return best;
    }

    /** As the plan says, without those that are lost or left but still listed; null if there is none. */
    @Nullable Messenger pickOpen(CallPlan plan) {
        if (plan.keyed()) {
            return pick(plan.keyHash());
        }
        Messenger picked = pick();
        return picked == null || picked.isUsable() ? picked : pickOtherThan(picked, plan);
    }

    /**
     * Another that is usable: of another address if there is one, and, if the plan has a key, the one that would have
     * the key without the first. Null if there is none.
     */
    @Nullable Messenger pickOtherThan(Messenger first, CallPlan plan) {
        if (plan.keyed()) {
            return pick(plan.keyHash(), first);
        }
        int own = 0;
        while (own < messengers.length && messengers[own] != first) {
            own++;
        }
        Messenger sameAddress = null;
        int from = messengers.length < 2 ? 0 : ThreadLocalRandom.current().nextInt(messengers.length);
        for (int i = 0; i < messengers.length; i++) {
            int at = (from + i) % messengers.length;
            Messenger other = messengers[at];
            if (other == first || !other.isUsable()) {
                continue;
            }
            if (own == messengers.length || hashes[at] != hashes[own]) {
                return other;
            }
            sameAddress = other;
        }
        return sameAddress;
    }
}
