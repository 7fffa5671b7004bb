package org.verbena.api;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.net.InetSocketAddress;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.verbena.transport.MemoryDomain.Access;
import org.verbena.transport.RegisteredMemory;
import org.verbena.transport.spi.HandshakeLimits;
import org.verbena.transport.spi.Patience;
import org.verbena.transport.spi.RecordingEndpointHandler;

class SoftPreSharedKeysTest extends PreSharedKeysSuite {
    @Override
    protected String provider() {
        return "soft";
    }

    /** A leaked token is useless to a client that cannot prove the key; without keys, for comparison, it works. */
    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void sharedMemoryOpensToNobodyWithoutTheKey(boolean asks) {
        try (RdmaServer server = serve(asks ? KEYS : null);
                RdmaClient honest = connect(server, asks ? KEYS : null);
                Arena arena = Arena.ofShared()) {
            Patience.until("the server knows", () -> connected.size() == 1);
            MemorySegment memory = arena.allocate(8, 8);
            try (RegisteredMemory shared = connected
                    .getFirst()
                    .sharedMemory()
                    .register(memory, Set.of(Access.LOCAL_WRITE, Access.REMOTE_WRITE))) {
                steal(server.localAddress(), shared.remote(), memory, asks);
            }
            assertThat(memory.get(ValueLayout.JAVA_LONG, 0)).isEqualTo(asks ? 0 : 42);
            assertThat(Patience.await("an answer", honest.request(new byte[] {1})))
                    .containsExactly(1);
        }
    }

    @Test
    void anAddressFullOfStrangersLeavesOthersAlone() {
        HandshakeLimits limits = new HandshakeLimits(8, 4, (int) Patience.LIMIT.toMillis());
        try (RdmaEventLoopGroup loops = limited(limits);
                Server server = new Server(askingForKeys(), loops)) {
            List<RecordingEndpointHandler> others =
                    strangers(4, server.address(), new InetSocketAddress("127.0.0.3", 0));
            List<RecordingEndpointHandler> crowd =
                    strangers(20, server.address(), new InetSocketAddress("127.0.0.2", 0));
            Patience.until("the crowd makes room for itself", () -> ended(crowd) == 16);
            assertThat(ended(others)).isZero();
            crowd.forEach(stranger -> stranger.awaitPrepared().disconnect());
            others.forEach(stranger -> stranger.awaitPrepared().disconnect());
        }
    }
}
