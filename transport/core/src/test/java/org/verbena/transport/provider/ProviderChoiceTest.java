package org.verbena.transport.provider;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.netty.channel.IoEventLoop;
import io.netty.channel.IoHandlerFactory;
import java.net.InetSocketAddress;
import java.util.List;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.verbena.transport.CompletionLoopOptions;
import org.verbena.transport.ProviderUnavailableException;
import org.verbena.transport.spi.Endpoint;
import org.verbena.transport.spi.EndpointHandler;
import org.verbena.transport.spi.EndpointOptions;
import org.verbena.transport.spi.ListenOptions;
import org.verbena.transport.spi.Listener;
import org.verbena.transport.spi.ListenerHandler;
import org.verbena.transport.spi.LocalBinding;
import org.verbena.transport.spi.ProviderCounters;
import org.verbena.transport.spi.RdmaProvider;

class ProviderChoiceTest {
    private static final InetSocketAddress LOOPBACK = new InetSocketAddress("127.0.0.1", 7471);

    private final RdmaProvider hardware =
            new Named("hardware", 1, null, address -> address.getAddress().isAnyLocalAddress());
    private final RdmaProvider broken =
            new Named("broken", 0, new UnsatisfiedLinkError("libx.so is missing. Install libx."), address -> true);
    private final RdmaProvider software = new Named("software", 2, null, address -> true);

    @Test
    void automaticTakesTheFirstThatServes() {
        assertThat(ProviderChoice.choose("auto", null, List.of(broken, hardware, software))
                        .provider())
                .isSameAs(hardware);
    }

    private static ProviderSet set(String names, @Nullable InetSocketAddress address, RdmaProvider... providers) {
        return ProviderSet.choose(names, address, List.of(providers));
    }

    @Test
    void aSetHasWhatIsNamedInThatOrderAndAllOfItIsRequired() {
        ProviderSet both = set("software + hardware", LOOPBACK, hardware, software);
        assertThat(both.names()).isEqualTo("software+hardware");
        assertThat(both.required()).containsExactlyInAnyOrder("software", "hardware");
        assertThat(set("auto+software", null, hardware, software).names()).isEqualTo("hardware+software");
        assertThat(set("auto+software", LOOPBACK, hardware, software).names()).isEqualTo("software");
        assertThat(set("auto", LOOPBACK, hardware, software).names()).isEqualTo("software");
    }

    @Test
    void allAreThoseThatServeAndNoneIsRequired() {
        ProviderSet all = set("all", null, broken, hardware, software);
        assertThat(all.names()).isEqualTo("hardware+software");
        assertThat(all.required()).isEmpty();
        assertThat(set("all", LOOPBACK, broken, hardware, software).names()).isEqualTo("software");
        assertThat(all.isLadder()).isFalse();
        assertThat(set("ladder", null, broken, hardware, software))
                .isEqualTo(new ProviderSet(all.choices(), all.required(), true));
        assertThat(set("ladder+software", null, hardware, software).isLadder()).isTrue();
        ProviderSet some = set("all+software", null, hardware, software);
        assertThat(some.names()).isEqualTo("hardware+software");
        assertThat(some.required()).containsExactly("software");
    }

    @Test
    void aSetNeedsEachThatIsNamed() {
        assertThatThrownBy(() -> set("software+broken", LOOPBACK, broken, software))
                .isInstanceOf(ProviderUnavailableException.class)
                .hasMessageContaining("libx.so is missing");
        assertThatThrownBy(() -> set("software+", LOOPBACK, software)).isInstanceOf(ProviderUnavailableException.class);
        assertThatThrownBy(() -> set("all", LOOPBACK, broken, hardware))
                .isInstanceOf(ProviderUnavailableException.class)
                .hasMessageContaining("hardware does not serve");
    }

    @Test
    void clientsTakeWhatJoinsTheChoiceWhereItReachesAServer() {
        Named near = new Named("near", 3, null, address -> true);
        List<RdmaProvider> all = List.of(hardware, software, near);
        assertThat(ProviderChoice.chooseForClient(LOOPBACK, all).provider()).isSameAs(near);
        ProviderChoice other = ProviderChoice.chooseForClient(new InetSocketAddress("127.0.0.1", 7472), all);
        assertThat(other.provider()).isSameAs(software);
        assertThat(other.reason()).contains("near reaches no server at /127.0.0.1:7472");
        assertThat(set("all", LOOPBACK, hardware, software, near).names()).contains("software+near");
    }

    @Test
    void serversListenWithWhatJoinsTheChoiceIfTheyCan() {
        Named near = new Named("near", 3, null, address -> true);
        ProviderSet both = set("auto", LOOPBACK, hardware, software, near);
        assertThat(both.names()).isEqualTo("software+near");
        assertThat(both.required()).containsExactly("software");
        assertThat(set("software", LOOPBACK, hardware, software, near).names()).isEqualTo("software");
        Named unusable = new Named("near", 3, new UnsupportedOperationException("not here"), address -> true);
        assertThat(set("auto", LOOPBACK, software, unusable).names()).isEqualTo("software");
    }

    @Test
    void automaticSaysWhyOthersWereSkipped() {
        ProviderChoice choice = ProviderChoice.choose("auto", LOOPBACK, List.of(broken, hardware, software));
        assertThat(choice.provider()).isSameAs(software);
        assertThat(choice.reason())
                .contains("broken cannot work here: libx.so is missing. Install libx.")
                .contains("hardware does not serve /127.0.0.1:7471");
    }

    @Test
    void automaticSaysWhatToAddForDevices() {
        RdmaProvider verbs = new Named("verbs", 1, null, address -> false);
        assertThat(ProviderChoice.choose("auto", null, List.of(software)).reason())
                .contains("RDMA devices")
                .contains("org.verbena:verbena-transport-verbs");
        assertThat(ProviderChoice.choose("auto", null, List.of(verbs, software)).reason())
                .contains("verbs has no device that is up")
                .doesNotContain("verbena-transport-verbs");
    }

    @Test
    void namesTheJarOfAMissingProvider() {
        assertThatThrownBy(() -> ProviderChoice.choose("verbs", LOOPBACK, List.of(software)))
                .isInstanceOf(ProviderUnavailableException.class)
                .hasMessageContaining("add org.verbena:verbena-transport-verbs");
        assertThatThrownBy(() -> ProviderChoice.choose("soft", LOOPBACK, List.of(hardware)))
                .hasMessageContaining("add org.verbena:verbena-transport-soft");
    }

    @Test
    void automaticFailsWhereNothingServes() {
        assertThatThrownBy(() -> ProviderChoice.choose("auto", LOOPBACK, List.of(broken, hardware)))
                .isInstanceOf(ProviderUnavailableException.class)
                .hasMessageContaining("libx.so is missing")
                .hasMessageContaining("does not serve");
        assertThatThrownBy(() -> ProviderChoice.choose("auto", null, List.of()))
                .hasMessageContaining("add org.verbena:verbena-transport-soft");
    }

    @Test
    void aNameNeverFallsBack() {
        assertThatThrownBy(() -> ProviderChoice.choose("broken", LOOPBACK, List.of(broken, hardware, software)))
                .isInstanceOf(ProviderUnavailableException.class)
                .hasCauseInstanceOf(UnsatisfiedLinkError.class)
                .hasMessageContaining("Install libx.");
        assertThat(ProviderChoice.choose("hardware", LOOPBACK, List.of(hardware, software))
                        .provider())
                .isSameAs(hardware);
    }

    @Test
    void anUnknownNameListsTheProviders() {
        assertThatThrownBy(() -> ProviderChoice.choose("warp", LOOPBACK, List.of(hardware, software)))
                .hasMessageContaining("no RDMA provider warp")
                .hasMessageContaining("[hardware, software]");
    }

    @Test
    void thePropertyNamesTheDefault() {
        String before = System.getProperty(ProviderChoice.PROPERTY);
        try {
            System.clearProperty(ProviderChoice.PROPERTY);
            assertThat(ProviderChoice.configured()).isEqualTo("auto");
            System.setProperty(ProviderChoice.PROPERTY, "soft");
            assertThat(ProviderChoice.configured()).isEqualTo("soft");
        } finally {
            if (before == null) {
                System.clearProperty(ProviderChoice.PROPERTY);
            } else {
                System.setProperty(ProviderChoice.PROPERTY, before);
            }
        }
    }

    /** Answers the questions of the choice and does nothing else. */
    private record Named(
            String name, int rank, @Nullable Throwable unavailabilityCause, Predicate<InetSocketAddress> served)
            implements RdmaProvider {

        @Override
        public boolean joinsAuto() {
            return name.equals("near");
        }

        @Override
        public boolean reaches(InetSocketAddress remoteAddress) {
            return !name.equals("near") || remoteAddress.equals(LOOPBACK);
        }

        @Override
        public boolean serves(InetSocketAddress address) {
            return served.test(address);
        }

        @Override
        public String description() {
            return name;
        }

        @Override
        public ProviderCounters counters() {
            throw new AssertionError();
        }

        @Override
        public IoHandlerFactory newIoHandlerFactory(CompletionLoopOptions options) {
            throw new AssertionError();
        }

        @Override
        public Endpoint connect(
                IoEventLoop loop, InetSocketAddress remoteAddress, EndpointOptions options, EndpointHandler handler) {
            throw new AssertionError();
        }

        @Override
        public LocalBinding bind(InetSocketAddress localAddress) {
            throw new AssertionError();
        }

        @Override
        public Listener listen(
                IoEventLoop loop, InetSocketAddress localAddress, ListenOptions options, ListenerHandler handler) {
            throw new AssertionError();
        }
    }
}
