package org.verbena.verbs.ffm;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

class SiwTest {
    private static final int STALE = 2;

    @Test
    void explainsWhatSiwLeavesWithoutAnErrno() {
        assertThat(Siw.remark(true, 0)).contains("145th page").contains("open another Context");
        assertThat(Siw.remark(true, STALE)).isEqualTo(Siw.remark(true, 0));
    }

    @Test
    void leavesOtherRefusalsAlone() {
        assertThat(Siw.remark(true, Errno.ENOMEM)).isEmpty();
        assertThat(Siw.remark(true, Errno.EOPNOTSUPP)).isEmpty();
        assertThat(Siw.remark(false, STALE)).isEmpty();
    }
}
