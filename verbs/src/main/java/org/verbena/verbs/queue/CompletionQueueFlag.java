package org.verbena.verbs.queue;

import org.verbena.verbs.ffm.NativeConstant;

/**
 * Special ways to create a completion queue.
 *
 * <p>Source: ibv_create_cq_ex(3)
 */
public enum CompletionQueueFlag implements NativeConstant {
    /** One thread at a time uses it, its queue pairs' receives included: the library may leave out its locks. */
    SINGLE_THREADED(1),
    /** The program never has more completions in it than it holds: the device need not check. */
    IGNORE_OVERRUN(2);

    private final int value;

    CompletionQueueFlag(int value) {
        this.value = value;
    }

    @Override
    public int value() {
        return value;
    }

    @Override
    public String cName() {
        return "IBV_CREATE_CQ_ATTR_" + name();
    }
}
