package org.verbena.transport.protocol.memory;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.buffer.ByteBuf;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.verbena.transport.MemoryDomain;
import org.verbena.transport.buffer.BufferPoolOptions;
import org.verbena.transport.buffer.CountingMemoryDomain;
import org.verbena.transport.buffer.RegisteredBufferPool;

/** Peers that announce messages and never send them: what they hold leaves room for others. */
class HoardedMemoryTest {
    private static final int POOL_BYTES = 8 << 20;
    private static final int RECEIVE_BYTES = 64 << 10;
    private static final int MESSAGE_BYTES = 250_000;

    private final CountingMemoryDomain domain = new CountingMemoryDomain();
    private final RegisteredBufferPool sendPool = pool();
    private final RegisteredBufferPool receivePool = pool();
    private final MessageBuffers buffers = new MessageBuffers(sendPool, receivePool);
    private final HeldByUser account = new HeldByUser(() -> {});
    private final List<Peer> waiting = new ArrayList<>();
    private final List<ByteBuf> hoard = new ArrayList<>();

    private RegisteredBufferPool pool() {
        return new RegisteredBufferPool(
                domain,
                BufferPoolOptions.DEFAULTS
                        .withChunkBytes(1 << 20)
                        .withMaxRegisteredBytes(POOL_BYTES)
                        .withAccess(Set.of(MemoryDomain.Access.LOCAL_WRITE)));
    }

    private final class Peer implements MessageBuffers.Waiter {
        private final long network;
        private final AtomicInteger told = new AtomicInteger();

        Peer(long network) {
            this.network = network;
        }

        @Override
        public long network() {
            return network;
        }

        @Override
        public void onMemoryFreed() {
            told.incrementAndGet();
        }

        @Nullable ByteBuf tryMessage(int bytes) {
            return buffers.tryAllocateMessage(bytes, this, account);
        }
    }

    /** As many messages as there is memory for, each of a connection of its own; the last one waits. */
    private void hoard(int addresses) {
        for (int i = 0; ; i++) {
            Peer peer = new Peer(1 + i % addresses);
            ByteBuf message = peer.tryMessage(MESSAGE_BYTES);
            if (message == null) {
                waiting.add(peer);
                return;
            }
            hoard.add(message);
        }
    }

    @AfterEach
    void nothingIsLost() {
        waiting.forEach(buffers::forgetMessage);
        hoard.forEach(ByteBuf::release);
        assertThat(receivePool.metrics().usedBytes()).isZero();
        ByteBuf all = new Peer(9).tryMessage(buffers.promise(POOL_BYTES));
        assertThat(all).as("the longest message that may be promised").isNotNull();
        all.release();
        sendPool.close();
        receivePool.close();
        assertThat(domain.registeredBytes()).isZero();
    }

    @Test
    void newConnectionsFindReceivesBesideHoardsOfManyAddresses() {
        hoard(100);
        List<ByteBuf> receives = new ArrayList<>();
        for (int client = 0; client < 8; client++) {
            assertThat(buffers.reserveReceives(3, RECEIVE_BYTES, false)).isTrue();
            for (int i = 0; i < 3; i++) {
                ByteBuf receive = buffers.tryAllocateReceive(RECEIVE_BYTES);
                assertThat(receive).as("receive %d of client %d", i, client).isNotNull();
                receives.add(receive);
            }
        }
        receives.forEach(ByteBuf::release);
        buffers.unreserveReceives(24, RECEIVE_BYTES);
    }

    @Test
    void oneAddressLeavesOthersHalfOfTheReceivesForSpeed() {
        List<MessageBuffers.Reservation> hoarded = reserveAll(1);
        List<MessageBuffers.Reservation> others = reserveAll(2);
        assertThat(others).hasSizeGreaterThan(2).hasSizeGreaterThanOrEqualTo(hoarded.size());
        MessageBuffers.Reservation needed = buffers.reservation(3);
        assertThat(needed.reserve(3, RECEIVE_BYTES, true)).isFalse();
        assertThat(needed.reserve(3, RECEIVE_BYTES, false))
                .as("what is needed for progress")
                .isTrue();
        others.forEach(MessageBuffers.Reservation::release);
        assertThat(reserveAll(1)).as("it has its share").isEmpty();
        needed.release();
        hoarded.forEach(MessageBuffers.Reservation::release);
        assertThat(buffers.reservation(1).reserve(hoarded.size() + 1, RECEIVE_BYTES, true))
                .as("one connection has no share")
                .isTrue();
    }

    /** A receive for each connection, as long as there are some. */
    private List<MessageBuffers.Reservation> reserveAll(long network) {
        List<MessageBuffers.Reservation> all = new ArrayList<>();
        MessageBuffers.Reservation next = buffers.reservation(network);
        while (next.reserve(1, RECEIVE_BYTES, true)) {
            all.add(next);
            next = buffers.reservation(network);
        }
        return all;
    }

    @Test
    void othersGetMessagesBesideTheHoardOfOneAddress() {
        hoard(1);
        assertThat(hoard).hasSizeGreaterThan(8);
        Peer other = new Peer(2);
        ByteBuf message = other.tryMessage(MESSAGE_BYTES);
        assertThat(message).as("it need not wait behind the hoarder").isNotNull();
        message.release();
    }

    @Test
    void memoryOfAnAddressThatComesBackReachesWhoWaitsForItsShare() {
        hoard(1);
        Peer first = waiting.getFirst();
        first.told.set(0);
        hoard.removeLast().release();
        assertThat(first.told.get()).isPositive();
        ByteBuf message = first.tryMessage(MESSAGE_BYTES);
        assertThat(message).isNotNull();
        message.release();
    }
}
