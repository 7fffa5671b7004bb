package org.verbena.it;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.buffer.ByteBuf;
import io.netty.util.concurrent.Future;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.concurrent.TimeUnit;
import org.verbena.api.RdmaChannel;
import org.verbena.api.RdmaClient;
import org.verbena.api.ServerMemory;
import org.verbena.transport.RemoteMemory;
import org.verbena.transport.spi.Patience;

/** Clients of a server that answers every request with its token for one counter. */
public final class FleetTokens {
    private FleetTokens() {}

    /** Asks for the token that fits the client. */
    public static RemoteMemory of(RdmaClient client) throws Exception {
        return RemoteMemory.decode(client.request(new byte[0]).get(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS));
    }

    /** Adds 1 to the counter that has this value, with the client's token or, without atomics, at the server. */
    public static void assertCounts(RdmaClient client, RemoteMemory token, ServerMemory counter, long value) {
        RdmaChannel channel = client.channel();
        ByteBuf into = channel.alloc().buffer(Long.BYTES, Long.BYTES);
        await(channel.read(token, 0, into));
        byte[] bytes = new byte[Long.BYTES];
        into.readBytes(bytes);
        into.release();
        assertThat(MemorySegment.ofArray(bytes).get(ValueLayout.JAVA_LONG_UNALIGNED, 0))
                .isEqualTo(value);
        if (channel.capabilities().atomics()) {
            assertThat(await(channel.fetchAndAdd(token, 0, 1)).getNow()).isEqualTo(value);
        } else {
            counter.segment().set(ValueLayout.JAVA_LONG, 0, value + 1);
        }
        assertThat(counter.segment().get(ValueLayout.JAVA_LONG, 0)).isEqualTo(value + 1);
    }

    /** The token is of another device, which ends the connection. */
    public static void assertRefuses(RdmaClient client, RemoteMemory token) {
        RdmaChannel channel = client.channel();
        ByteBuf into = channel.alloc().buffer(Long.BYTES, Long.BYTES);
        Future<Void> read = channel.read(token, 0, into);
        assertThat(read.awaitUninterruptibly(Patience.LIMIT.toMillis())).isTrue();
        assertThat(read.isSuccess()).isFalse();
        into.release();
        assertThat(channel.closeFuture().awaitUninterruptibly(Patience.LIMIT.toMillis()))
                .isTrue();
    }

    private static <F extends Future<?>> F await(F future) {
        assertThat(future.awaitUninterruptibly(Patience.LIMIT.toMillis())).isTrue();
        assertThat(future.cause()).isNull();
        return future;
    }
}
