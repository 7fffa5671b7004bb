package org.verbena.verbs.memory;

import org.verbena.verbs.ffm.NativeConstant;

/**
 * The intended use of memory registered ON_DEMAND.
 *
 * <p>Source: ibv_advise_mr(3)
 */
public enum AdviceKind implements NativeConstant {
    /** It will be read: bring the pages in. */
    PREFETCH(0),
    /** It will be written: bring the pages in, writable. */
    PREFETCH_WRITE(1),
    /** Gives the device the pages that are present; faults none in. */
    PREFETCH_NO_FAULT(2);

    private final int value;

    AdviceKind(int value) {
        this.value = value;
    }

    @Override
    public int value() {
        return value;
    }

    @Override
    public String cName() {
        return "IBV_ADVISE_MR_ADVICE_" + name();
    }
}
