package org.verbena.verbs.ffm;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

class SiwTest {
    private static final int SIW = 0x626d74;
    private static final int MELLANOX = 0x2c9;
    private static final int STALE = 2;

    @Test
    void explainsWhatSiwLeavesWithoutAnErrno() {
        assertThat(Siw.remark(SIW, 0)).contains("145th page").contains("open another Context");
        assertThat(Siw.remark(SIW, STALE)).isEqualTo(Siw.remark(SIW, 0));
    }

    @Test
    void leavesOtherRefusalsAlone() {
        assertThat(Siw.remark(SIW, Errno.ENOMEM)).isEmpty();
        assertThat(Siw.remark(SIW, Errno.EOPNOTSUPP)).isEmpty();
        assertThat(Siw.remark(MELLANOX, STALE)).isEmpty();
    }
}
