package org.verbena.api.internal.datagram;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.ChannelPromise;
import io.netty.channel.DefaultChannelPromise;
import io.netty.channel.embedded.EmbeddedChannel;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.verbena.api.datagram.RdmaDatagramAddress;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.DatagramPeer;
import org.verbena.transport.MemoryDomain;
import org.verbena.transport.spi.DatagramCapabilities;
import org.verbena.transport.spi.DatagramDestination;
import org.verbena.transport.spi.DatagramEndpoint;
import org.verbena.transport.spi.ScatterGatherList;

/** The look-ups of a channel, on an endpoint that answers when the test says so. */
class DatagramDestinationsTest {
    private static final InetSocketAddress SERVER = new InetSocketAddress("10.0.0.1", 7471);

    /** A look-up. */
    static final class Destination implements DatagramDestination {
        @Nullable DatagramPeer peer;

        private boolean isClosed;

        @Override
        public boolean isReady() {
            return peer != null && !isClosed;
        }

        @Override
        public @Nullable DatagramPeer peer() {
            return peer;
        }

        @Override
        public void close() {
            isClosed = true;
        }
    }

    /** Starts look-ups, and does nothing else. */
    static class LookUps implements DatagramEndpoint {
        final List<Destination> started = new ArrayList<>();

        private Destination started() {
            Destination destination = new Destination();
            started.add(destination);
            return destination;
        }

        @Override
        public DatagramDestination resolve(InetSocketAddress address, int timeoutMillis) {
            return started();
        }

        @Override
        public DatagramDestination resolve(DatagramPeer peer) {
            return started();
        }

        private static UnsupportedOperationException notNeeded() {
            return new UnsupportedOperationException("not needed here");
        }

        @Override
        public DatagramDestination join(InetSocketAddress group, int timeoutMillis) {
            throw notNeeded();
        }

        @Override
        public DatagramCapabilities capabilities() {
            throw notNeeded();
        }

        @Override
        public MemoryDomain memoryDomain() {
            throw notNeeded();
        }

        @Override
        public InetSocketAddress localAddress() {
            throw notNeeded();
        }

        @Override
        public DatagramPeer self() {
            throw notNeeded();
        }

        @Override
        public boolean postReceive(long workId, ScatterGatherList buffers) {
            throw notNeeded();
        }

        @Override
        public boolean post(
                long workId,
                ScatterGatherList buffers,
                DatagramDestination destination,
                boolean hasImmediateData,
                int immediateData) {
            throw notNeeded();
        }

        @Override
        public int freeSendSlots() {
            throw notNeeded();
        }

        @Override
        public void flush() {}

        @Override
        public void close() {}
    }

    private final LookUps lookUps = new LookUps();
    private final List<String> written = new ArrayList<>();
    private final EmbeddedChannel channel = new EmbeddedChannel();
    private long waitingBytes;

    private long nowNanos;

    private final DatagramDestinations destinations = new DatagramDestinations(
            new DatagramDestinations.Host() {
                @Override
                public DatagramEndpoint endpoint0() {
                    return lookUps;
                }

                @Override
                public @Nullable DatagramPeer named0(InetSocketAddress address) {
                    return address instanceof RdmaDatagramAddress known ? known.peer() : null;
                }

                @Override
                public int timeoutMillis0() {
                    return 1_000;
                }

                @Override
                public void writeReady0(Outgoing outgoing, ChannelPromise promise, boolean isFlushed) {
                    written.add(outgoing.content().readableBytes() + (isFlushed ? " flushed" : ""));
                    outgoing.release();
                    promise.trySuccess();
                }

                @Override
                public void onWaiting0(long bytes) {
                    waitingBytes = bytes;
                }
            },
            () -> nowNanos);

    private ChannelPromise write(InetSocketAddress to, ByteBuf content) {
        ChannelPromise promise = new DefaultChannelPromise(channel);
        DatagramDestinations.Entry entry = destinations.find(to);
        destinations.await(entry, new Outgoing(content, entry, false, 0), promise);
        return promise;
    }

    private static ByteBuf bytes(int count) {
        return Unpooled.wrappedBuffer(new byte[count]);
    }

    private Destination found(int index, int queuePairNumber) {
        Destination destination = lookUps.started.get(index);
        destination.peer = DatagramPeer.of(SERVER.getAddress(), queuePairNumber);
        assertThat(destinations.onResolved(destination, null)).isTrue();
        return destination;
    }

    @Test
    void writesWaitForOneLookUpAndLeaveInOrder() {
        write(SERVER, bytes(1));
        write(new InetSocketAddress("10.0.0.1", 7471), bytes(2));
        destinations.flush();
        write(SERVER, bytes(3));
        assertThat(lookUps.started).hasSize(1);
        assertThat(waitingBytes).isEqualTo(6);
        found(0, 17);
        assertThat(written).containsExactly("1 flushed", "2 flushed", "3");
        assertThat(waitingBytes).isZero();
        assertThat(destinations.find(SERVER).ready()).isSameAs(lookUps.started.get(0));
    }

    @Test
    void aFailedLookUpFailsWhatWaitsAndTheNextWriteTriesAgain() {
        ByteBuf content = bytes(1);
        ChannelPromise promise = write(SERVER, content);
        ConnectionException cause = new ConnectionException.Unreachable("nobody listens");
        assertThat(destinations.onResolved(lookUps.started.get(0), cause)).isTrue();
        assertThat(promise.cause()).isSameAs(cause);
        assertThat(content.refCnt()).isZero();
        write(SERVER, bytes(1));
        assertThat(lookUps.started).hasSize(2);
        found(1, 17);
        assertThat(written).hasSize(1);
    }

    @Test
    void knowsASenderByThePortThatItWasLookedUpAt() {
        DatagramPeer peer = DatagramPeer.of(SERVER.getAddress(), 17);
        assertThat(destinations.portOf(peer)).isZero();
        destinations.find(SERVER);
        found(0, 17);
        assertThat(destinations.portOf(peer)).isEqualTo(SERVER.getPort());
        assertThat(destinations.portOf(DatagramPeer.of(SERVER.getAddress(), 18)))
                .isZero();
        destinations.forget(SERVER);
        assertThat(destinations.portOf(peer)).isZero();
        assertThat(lookUps.started.get(0).isClosed).isTrue();
    }

    @Test
    void tellsTheQueuePairsOfAHostApart() throws Exception {
        InetAddress host = InetAddress.getByName("10.0.0.1");
        RdmaDatagramAddress first = RdmaDatagramAddress.of(host, 1);
        RdmaDatagramAddress second = RdmaDatagramAddress.of(host, 2);
        assertThat(first).as("as addresses they are equal").isEqualTo(second);
        assertThat(destinations.find(first)).isNotSameAs(destinations.find(second));
        assertThat(destinations.find(RdmaDatagramAddress.of(host, 1))).isSameAs(destinations.find(first));
        assertThat(lookUps.started).hasSize(2);
    }

    @Test
    void forgetsWhatIsUsedLeastWhenThereAreTooMany() {
        for (int i = 0; i < DatagramDestinations.MAX; i++) {
            destinations.find(new InetSocketAddress("10.0.0.1", i + 1));
        }
        destinations.find(new InetSocketAddress("10.0.0.1", 1)).use();
        destinations.find(new InetSocketAddress("10.0.0.2", 1));
        assertThat(lookUps.started.get(0).isClosed).as("used").isFalse();
        assertThat(lookUps.started.get(1).isClosed).as("used least").isTrue();
        assertThat(lookUps.started.get(2).isClosed).isFalse();
    }

    @Test
    void refusesAnotherRecipientWhileAllAreUsed() {
        for (int i = 0; i < DatagramDestinations.MAX; i++) {
            destinations.find(new InetSocketAddress("10.0.0.1", i + 1)).use();
        }
        assertThatThrownBy(() -> destinations.find(SERVER))
                .isInstanceOf(ConnectionException.class)
                .hasMessageContaining("1024 recipients");
        destinations.find(new InetSocketAddress("10.0.0.1", 5)).unuse();
        assertThat(destinations.find(SERVER)).isNotNull();
    }

    @Test
    void looksAPortUpAgainInTheBackgroundWhenItIsOld() {
        destinations.find(SERVER);
        Destination first = found(0, 17);
        nowNanos += DatagramDestinations.LIFETIME_NANOS;
        destinations.find(SERVER);
        assertThat(lookUps.started).as("not old yet").hasSize(1);
        nowNanos++;
        assertThat(destinations.find(SERVER).ready()).as("used meanwhile").isSameAs(first);
        destinations.find(SERVER);
        assertThat(lookUps.started).as("once").hasSize(2);
        Destination second = found(1, 18);
        assertThat(destinations.find(SERVER).ready()).isSameAs(second);
        assertThat(first.isClosed).isTrue();
        assertThat(destinations.peerOf(SERVER)).isEqualTo(second.peer);
        assertThat(destinations.portOf(DatagramPeer.of(SERVER.getAddress(), 18)))
                .isEqualTo(SERVER.getPort());
        assertThat(destinations.portOf(DatagramPeer.of(SERVER.getAddress(), 17)))
                .isZero();
    }

    @Test
    void aPeerThatIsNotFoundAgainIsForgotten() {
        destinations.find(SERVER);
        Destination first = found(0, 17);
        nowNanos += DatagramDestinations.LIFETIME_NANOS + 1;
        destinations.find(SERVER);
        destinations.onResolved(lookUps.started.get(1), new ConnectionException.Unreachable("nobody listens"));
        assertThat(first.isClosed).isTrue();
        write(SERVER, bytes(1));
        assertThat(lookUps.started).as("the next write asks").hasSize(3);
    }

    @Test
    void aGroupOrAKnownQueuePairIsNotLookedUpAgain() {
        InetSocketAddress multicast = new InetSocketAddress("239.1.2.3", 0);
        RdmaDatagramAddress known = RdmaDatagramAddress.of(SERVER.getAddress(), 17);
        destinations.find(multicast);
        found(0, DatagramPeer.MULTICAST);
        destinations.find(known);
        found(1, 17);
        nowNanos += 2 * DatagramDestinations.LIFETIME_NANOS;
        destinations.find(multicast);
        destinations.find(known);
        assertThat(lookUps.started).hasSize(2);
    }

    @Test
    void boundsTheWritesThatWait() {
        for (int i = 0; i < DatagramDestinations.MAX_WAITING; i++) {
            write(SERVER, bytes(0));
        }
        assertThatThrownBy(() -> write(SERVER, bytes(0)))
                .isInstanceOf(ConnectionException.class)
                .hasMessageContaining("4096 datagrams wait");
    }

    @Test
    void theEndFailsWhatWaitsAndClosesAll() {
        ByteBuf content = bytes(1);
        ChannelPromise promise = write(SERVER, content);
        IllegalStateException cause = new IllegalStateException("closed");
        destinations.close(cause);
        assertThat(promise.cause()).isSameAs(cause);
        assertThat(content.refCnt()).isZero();
        assertThat(lookUps.started.get(0).isClosed).isTrue();
        assertThat(destinations.onResolved(lookUps.started.get(0), null))
                .as("it is not known any more")
                .isFalse();
    }
}
