package org.verbena.verbs;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Objects;
import org.verbena.verbs.internal.Seam;

/**
 * How a queue pair spreads what it receives over other queues, instead of having receives of its own. The only
 * implementation is ReceiveHash of the module {@code org.verbena.verbs.packet}.
 *
 * <p>Source: ibv_create_qp_ex(3)
 */
public abstract class ReceiveSpreading {
    /**
     * Makes one.
     *
     * @param seam shows that the module may do so
     */
    @SuppressWarnings("exports") // other modules are not to see the type
    protected ReceiveSpreading(Seam seam) {
        Objects.requireNonNull(seam);
    }

    /**
     * What packets are spread over. It stays open as long as the queue pair.
     *
     * @return the table
     */
    public abstract PacketObject table();

    /**
     * Writes it into what a queue pair is created with.
     *
     * @param arena owns what the struct points to
     * @param attr an {@code ibv_qp_init_attr_ex}
     */
    protected abstract void write(Arena arena, MemorySegment attr);
}
