package org.verbena.transport.verbs;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.verbena.cm.CmException;
import org.verbena.transport.spi.ConnectionException;
import org.verbena.verbs.VerbsException;
import org.verbena.verbs.ffm.Errno;

class ConnectFailuresTest {
    private static final String WHAT = "connecting to 192.0.2.1:7471 failed while resolving the address";

    private static Throwable of(int errno) {
        CmException refused = new CmException("rdma_resolve_addr(...)", errno);
        Throwable failure = ConnectFailures.of(WHAT, refused);
        assertThat(failure)
                .hasMessageStartingWith(WHAT)
                .hasMessageContaining(Errno.name(errno))
                .hasCause(refused);
        return failure;
    }

    @ParameterizedTest
    @ValueSource(ints = {Errno.ENETUNREACH, Errno.EHOSTUNREACH, Errno.ENODEV, Errno.EADDRNOTAVAIL})
    void callsItUnreachableWhereNoWayLeads(int errno) {
        assertThat(of(errno)).isExactlyInstanceOf(ConnectionException.Unreachable.class);
    }

    @Test
    void callsItRejectedAndTimedOutAsTheSystemDoes() {
        assertThat(of(Errno.ECONNREFUSED)).isExactlyInstanceOf(ConnectionException.Rejected.class);
        assertThat(of(Errno.ETIMEDOUT)).isExactlyInstanceOf(ConnectionException.TimedOut.class);
        assertThat(of(Errno.EINVAL)).isExactlyInstanceOf(ConnectionException.class);
    }

    @Test
    void keepsWhatHasWordsAlready() {
        ConnectionException known = new ConnectionException("sendDepth 65536 is over the limit");
        assertThat(ConnectFailures.of(WHAT, known)).isSameAs(known);
    }

    @Test
    void wrapsTheRest() {
        VerbsException refused = new VerbsException("ibv_create_cq(cqe=8)", Errno.ENOMEM, "");
        assertThat(ConnectFailures.of(WHAT, refused))
                .isExactlyInstanceOf(ConnectionException.class)
                .hasMessageStartingWith(WHAT)
                .hasCause(refused);
    }
}
