package org.verbena.transport.shm;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.spi.LocalBinding;

class ShmProviderTest {
    private static final InetAddress LOOPBACK = InetAddress.getLoopbackAddress();

    @TempDir
    Path directory;

    private ShmProvider provider() {
        return new ShmProvider(ShmOptions.DEFAULTS.withDirectory(directory.resolve("sockets")));
    }

    @Test
    void servesThisHostAlone() {
        ShmProvider provider = provider();
        assertThat(provider.unavailabilityCause()).isNull();
        assertThat(provider.serves(new InetSocketAddress(LOOPBACK, 1))).isTrue();
        assertThat(provider.serves(new InetSocketAddress(0))).isTrue();
        assertThat(provider.serves(new InetSocketAddress("192.0.2.77", 1))).isFalse();
        assertThat(provider.serves(InetSocketAddress.createUnresolved("localhost", 1)))
                .isFalse();
    }

    @Test
    void reachesWhereASocketIsAndJoinsAutoUnlessAnOptionSaysNo() {
        ShmProvider provider = provider();
        LocalBinding bound = provider.bind(new InetSocketAddress(LOOPBACK, 0));
        InetSocketAddress address = bound.localAddress();
        assertThat(provider.reaches(address)).isTrue();
        bound.close();
        assertThat(provider.joinsAuto()).isTrue();
        System.setProperty("org.verbena.shm.auto", "false");
        try {
            assertThat(provider.joinsAuto()).isFalse();
        } finally {
            System.clearProperty("org.verbena.shm.auto");
        }
        assertThat(provider.reaches(address)).isFalse();
    }

    @Test
    void aPortOfAllAddressesIsThatOfEach() {
        ShmProvider provider = provider();
        try (LocalBinding all = provider.bind(new InetSocketAddress(0))) {
            int port = all.localAddress().getPort();
            assertThat(provider.reaches(new InetSocketAddress(LOOPBACK, port))).isTrue();
            assertThatThrownBy(() -> provider.bind(new InetSocketAddress(LOOPBACK, port)))
                    .isInstanceOf(ConnectionException.class)
                    .hasMessageContaining("already in use");
        }
        try (LocalBinding one = provider.bind(new InetSocketAddress(LOOPBACK, 0))) {
            int port = one.localAddress().getPort();
            assertThatThrownBy(() -> provider.bind(new InetSocketAddress(port))).hasMessageContaining("already in use");
            // Names begin with the port, and 1 is not the beginning of 10.
            provider.bind(new InetSocketAddress(LOOPBACK, port / 10)).close();
        }
    }

    @Test
    void usesNoDirectoryThatOthersMayWriteIn() throws IOException {
        Path open = Files.createDirectory(directory.resolve("open"));
        Files.setPosixFilePermissions(open, PosixFilePermissions.fromString("rwxrwxrwx"));
        ShmProvider provider = new ShmProvider(ShmOptions.DEFAULTS.withDirectory(open));
        assertThat(provider.unavailabilityCause())
                .hasMessageContaining("nobody else may write")
                .hasMessageContaining("org.verbena.shm.directory");
        assertThat(provider.serves(new InetSocketAddress(LOOPBACK, 1))).isFalse();
        assertThatThrownBy(() -> provider.bind(new InetSocketAddress(LOOPBACK, 0)))
                .isInstanceOf(ConnectionException.class);
    }

    @Test
    void saysWhenTheNameOfASocketIsTooLong() {
        Path deep = directory.resolve("d".repeat(110));
        ShmProvider provider = new ShmProvider(ShmOptions.DEFAULTS.withDirectory(deep));
        assertThatThrownBy(() -> provider.bind(new InetSocketAddress(LOOPBACK, 0)))
                .isInstanceOf(ConnectionException.class)
                .hasMessageContaining("too long");
    }
}
