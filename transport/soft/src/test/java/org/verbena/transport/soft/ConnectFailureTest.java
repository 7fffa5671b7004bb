package org.verbena.transport.soft;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.net.BindException;
import java.net.ConnectException;
import java.net.InetSocketAddress;
import java.net.NoRouteToHostException;
import java.net.SocketException;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.verbena.transport.ConnectionException;

/** Why connecting failed, in whatever language the system says so. */
class ConnectFailureTest {
    private static final InetSocketAddress PEER = new InetSocketAddress("127.0.0.1", 7471);

    private static ConnectionException failure(Exception e, long seconds) {
        return TcpChannels.connectFailure(PEER, e, TimeUnit.SECONDS.toNanos(seconds));
    }

    @Test
    void aRefusalComesBeforeTheSystemGivesUp() {
        for (String text : new String[] {"Connection refused", "Connexion refus\u00e9e", null}) {
            assertThat(failure(new ConnectException(text), 0))
                    .isInstanceOf(ConnectionException.Rejected.class)
                    .hasMessageContaining("nobody listens there");
        }
        assertThat(failure(new ConnectException("Connexion termin\u00e9e par expiration"), 100_000_000))
                .isInstanceOf(ConnectionException.TimedOut.class);
    }

    @Test
    void noRouteIsAClassAndNoNetworkIsNone() {
        assertThat(failure(new NoRouteToHostException("Aucun chemin"), 0))
                .isInstanceOf(ConnectionException.Unreachable.class);
        assertThat(failure(new SocketException("Le r\u00e9seau n'est pas accessible"), 0))
                .isInstanceOf(ConnectionException.Unreachable.class);
    }

    @Test
    void whatIsOfThisSideIsNeither() {
        assertThat(failure(new BindException("Cannot assign requested address"), 0))
                .isExactlyInstanceOf(ConnectionException.class);
        assertThat(failure(new IOException("refused, timed out, unreachable"), 0))
                .isExactlyInstanceOf(ConnectionException.class);
    }
}
