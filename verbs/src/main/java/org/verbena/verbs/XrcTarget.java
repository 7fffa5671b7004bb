package org.verbena.verbs;

import org.verbena.verbs.ffm.LibIbverbs;

/**
 * The receiving side of an XRC connection that another process created, opened here: the connection lives as long as
 * one process has it open.
 *
 * <p>Source: ibv_open_qp(3)
 */
public final class XrcTarget extends VerbsObject {
    /** {@code IBV_QP_OPEN_ATTR_NUM | _XRCD | _TYPE}. */
    static final int OPEN_MASK = 1 | 1 << 1 | 1 << 3;

    private final int number;

    XrcTarget(long address, XrcDomain domain, int number) {
        super(address, domain);
        this.number = number;
    }

    /**
     * Its number.
     *
     * @return 24 bits
     */
    public int number() {
        return number;
    }

    @Override
    protected boolean raisesEvents() {
        return true;
    }

    @Override
    protected void destroy(long closing) {
        Calls.check("ibv_destroy_qp", toString(), LibIbverbs.destroyQp(closing));
    }

    @Override
    public String toString() {
        return "XrcTarget " + number;
    }
}
