package org.verbena.api.internal.loop;

import io.netty.channel.EventLoop;
import io.netty.channel.IoEventLoop;
import io.netty.channel.IoEventLoopGroup;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.provider.ProviderSet;
import org.verbena.transport.spi.LoopClock;
import org.verbena.transport.spi.RdmaProvider;

/**
 * What the loops of a group have in common: their provider, why it was chosen, and the groups of the other providers
 * that a server listens with. The static methods return that for any loop, even of another kind of group. Any thread.
 */
public final class LoopGroup {
    private final ProviderSet providers;
    private final RdmaProvider provider;
    private final LoopClock clock;
    private final long transferBudgetBytes;

    // Written once, before the first channel is registered.
    private volatile @Nullable IoEventLoopGroup loops;
    private volatile List<LoopGroup> companions = List.of();

    /**
     * Creates the part of loops that are not made yet.
     *
     * @param providers the first is that of the loops
     * @param transferBudgetBytes how much the channels of a loop may have in flight, for each device
     */
    public LoopGroup(ProviderSet providers, long transferBudgetBytes) {
        this.providers = providers;
        this.transferBudgetBytes = transferBudgetBytes;
        provider = providers.first().provider();
        clock = provider.clock();
    }

    /** The loops are made, and those of the other providers. */
    public void begin(IoEventLoopGroup made, List<LoopGroup> others) {
        loops = made;
        companions = List.copyOf(others);
    }

    public RdmaProvider provider() {
        return provider;
    }

    public ProviderSet providers() {
        return providers;
    }

    public LoopClock clock() {
        return clock;
    }

    long transferBudgetBytes() {
        return transferBudgetBytes;
    }

    /** The group that a loop is of; null if it is of another kind. */
    static @Nullable LoopGroup of(EventLoop loop) {
        return loop instanceof RdmaEventLoop rdma ? rdma.group() : null;
    }

    /** The clock of a loop. */
    public static LoopClock clockOf(EventLoop loop) {
        LoopGroup group = of(loop);
        return group == null ? LoopClock.system() : group.clock;
    }

    /** The provider of a loop; null if it is of another kind of group. */
    public static @Nullable RdmaProvider providerOf(EventLoop loop) {
        LoopGroup group = of(loop);
        return group == null ? null : group.provider;
    }

    /** The providers of a loop and its companions; null if it is of another kind of group. */
    public static @Nullable ProviderSet providersOf(EventLoop loop) {
        LoopGroup group = of(loop);
        return group == null ? null : group.providers;
    }

    /** Why the provider of a loop was chosen. */
    public static String reasonOf(EventLoop loop) {
        LoopGroup group = of(loop);
        return group == null ? "" : group.providers.first().reason();
    }

    /** A loop of this provider: the given one if it suits, else one of its companions; null if there is none. */
    public static @Nullable IoEventLoop loopFor(EventLoop loop, RdmaProvider wanted) {
        LoopGroup group = of(loop);
        if (group == null) {
            return null;
        }
        if (group.provider.equals(wanted)) {
            return (IoEventLoop) loop;
        }
        for (LoopGroup companion : group.companions) {
            IoEventLoopGroup theirs = companion.loops;
            if (theirs != null && companion.provider.equals(wanted)) {
                return theirs.next();
            }
        }
        return null;
    }
}
