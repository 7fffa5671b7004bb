package org.verbena.verbs.packet;

import org.verbena.verbs.ffm.NativeConstant;

/**
 * An operation on a {@link TagList}.
 *
 * <p>Source: ibv_post_srq_ops(3)
 */
enum TagOperation implements NativeConstant {
    /** A tag is added. */
    ADD(0),
    /** A tag is removed. */
    DEL(1),
    /** Counters are synchronised. */
    SYNC(2);

    private final int value;

    TagOperation(int value) {
        this.value = value;
    }

    @Override
    public int value() {
        return value;
    }

    @Override
    public String cName() {
        return "IBV_WR_TAG_" + name();
    }
}
