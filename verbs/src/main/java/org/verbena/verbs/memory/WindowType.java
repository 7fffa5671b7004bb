package org.verbena.verbs.memory;

import org.verbena.verbs.ffm.NativeConstant;

/**
 * The kinds of memory window.
 *
 * <p>Source: ibv_alloc_mw(3)
 */
public enum WindowType implements NativeConstant {
    /** Bound by a call of its own; the library chooses the key. */
    TYPE_1(1),
    /** Bound and invalidated by work requests; the caller chooses the low byte of the key. */
    TYPE_2(2);

    private final int value;

    WindowType(int value) {
        this.value = value;
    }

    @Override
    public int value() {
        return value;
    }

    @Override
    public String cName() {
        return "IBV_MW_" + name();
    }
}
