package org.verbena.verbs;

import java.lang.foreign.MemorySegment;
import org.verbena.verbs.ffm.IbvTdInitAttr;
import org.verbena.verbs.ffm.VerbsContext;
import org.verbena.verbs.ffm.VerbsOps;

/**
 * A thread domain: objects created on it, through a {@link Context#allocateParentDomain parent domain}, are used by one
 * thread at a time.
 *
 * <p>Source: ibv_alloc_td(3)
 */
public final class ThreadDomain extends VerbsObject {
    private final Context context;

    private ThreadDomain(long address, Context context) {
        super(address, context);
        this.context = context;
    }

    static ThreadDomain allocate(Context context) {
        return make(context, arena -> {
            MemorySegment function = context.extendedOperation("ibv_alloc_td", VerbsContext.ALLOC_TD);
            MemorySegment free = context.extendedOperation("ibv_dealloc_td", VerbsContext.DEALLOC_TD);
            MemorySegment attr = arena.allocate(IbvTdInitAttr.LAYOUT);
            long td = Calls.create(
                    "ibv_alloc_td",
                    context.device().name(),
                    errno -> VerbsOps.allocTd(function, errno, context.nativeAddress(), attr.address()));
            return own(td, made -> new ThreadDomain(made, context), refused -> VerbsOps.deallocTd(free, refused));
        });
    }

    @Override
    protected void destroy(long closing) {
        Calls.check(
                "ibv_dealloc_td",
                toString(),
                VerbsOps.deallocTd(context.extendedOperation("ibv_dealloc_td", VerbsContext.DEALLOC_TD), closing));
    }

    @Override
    public String toString() {
        return "ThreadDomain of " + context.device().name();
    }
}
