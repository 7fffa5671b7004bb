package org.verbena.api.internal.memory;

import io.netty.buffer.ByteBufAllocator;
import io.netty.util.concurrent.EventExecutor;
import java.util.EnumSet;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.function.Function;
import org.verbena.transport.BufferPoolMetrics;
import org.verbena.transport.MemoryDomain;
import org.verbena.transport.MemoryDomain.Access;
import org.verbena.transport.buffer.BufferPoolOptions;
import org.verbena.transport.buffer.RegisteredBufferPool;
import org.verbena.transport.protocol.memory.MessageBuffers;
import org.verbena.transport.spi.OptionProperties;

/**
 * The registered buffers of one device, for all its channels: one pool to receive into, one to send from, so that
 * neither can starve the other. Pools live as long as the process, unless their device is lost; their options come from
 * system properties ({@link BufferPoolOptions#ofSystemProperties()}).
 */
public final class ChannelBuffers {
    /**
     * Whether peers may read and write all of the pools' memory, so that no rendezvous needs a key of its own. Only for
     * peers that may see and change each other's messages, because a key can be guessed or kept.
     */
    private static final String TRUSTED_PEERS = "org.verbena.buffers.trustedPeers";

    private static final ConcurrentMap<MemoryDomain, ChannelBuffers> BY_DOMAIN = new ConcurrentHashMap<>();

    public static final MessageBuffers.Source SOURCE = domain -> of(domain).messages;

    private final RegisteredBufferPool sending;
    private final RegisteredBufferPool receiving;
    private final MessageBuffers messages;

    private ChannelBuffers(MemoryDomain domain) {
        BufferPoolOptions options = BufferPoolOptions.ofSystemProperties();
        boolean trusted = OptionProperties.flag(TRUSTED_PEERS, false);
        sending = new RegisteredBufferPool(domain, options.withAccess(rights(trusted, Access.REMOTE_READ)));
        receiving = new RegisteredBufferPool(domain, options.withAccess(rights(trusted, Access.REMOTE_WRITE)));
        messages = new MessageBuffers(sending, receiving);
    }

    private static Set<Access> rights(boolean trusted, Access remote) {
        return trusted ? EnumSet.of(Access.LOCAL_WRITE, remote) : EnumSet.of(Access.LOCAL_WRITE);
    }

    public static ChannelBuffers of(MemoryDomain domain) {
        ChannelBuffers known = BY_DOMAIN.get(domain);
        if (known != null) {
            return known;
        }
        ChannelBuffers made = new ChannelBuffers(domain);
        known = BY_DOMAIN.putIfAbsent(domain, made);
        if (known != null) {
            return known;
        }
        domain.whenLost(() -> {
            BY_DOMAIN.remove(domain);
            made.close();
        });
        return made;
    }

    /** Frees unused memory now, and the rest when it is released. */
    private void close() {
        sending.close();
        receiving.close();
    }

    /** The sending pool, from which handlers allocate. */
    public ByteBufAllocator allocator() {
        return sending.allocator();
    }

    /** Gives a loop caches of its own. */
    public void attach(EventExecutor loop) {
        sending.attach(loop);
        receiving.attach(loop);
    }

    /** The bytes in buffers now, on all devices; 0 when all buffers have been released. */
    public static long usedBytes() {
        long sum = 0;
        for (ChannelBuffers buffers : BY_DOMAIN.values()) {
            sum += buffers.sending.metrics().usedBytes()
                    + buffers.receiving.metrics().usedBytes();
        }
        return sum;
    }

    public static BufferPoolMetrics sendBuffers(Set<MemoryDomain> domains) {
        return sum(domains, buffers -> buffers.sending);
    }

    public static BufferPoolMetrics receiveBuffers(Set<MemoryDomain> domains) {
        return sum(domains, buffers -> buffers.receiving);
    }

    private static BufferPoolMetrics sum(
            Set<MemoryDomain> domains, Function<ChannelBuffers, RegisteredBufferPool> which) {
        BufferPoolMetrics sum = BufferPoolMetrics.NONE;
        for (MemoryDomain domain : domains) {
            ChannelBuffers buffers = BY_DOMAIN.get(domain);
            if (buffers != null) {
                sum = sum.plus(which.apply(buffers).metrics());
            }
        }
        return sum;
    }

    /** The pools' metrics as text, for exception messages. */
    public static String describe() {
        StringBuilder text = new StringBuilder();
        for (ChannelBuffers buffers : BY_DOMAIN.values()) {
            text.append("sending ")
                    .append(buffers.sending.metrics())
                    .append(", receiving ")
                    .append(buffers.receiving.metrics());
        }
        return text.toString();
    }
}
