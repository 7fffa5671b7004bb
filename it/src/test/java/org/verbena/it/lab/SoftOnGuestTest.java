package org.verbena.it.lab;

import static org.assertj.core.api.Assertions.assertThat;

import java.net.InetAddress;
import java.net.InetSocketAddress;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.verbena.transport.soft.SoftOptions;
import org.verbena.transport.soft.SoftProvider;
import org.verbena.transport.spi.ProviderContract;
import org.verbena.transport.spi.RdmaProvider;
import org.verbena.transport.spi.WorkRequest;

/** The software provider keeps the contract with what it chooses on the guest's kernel, older than most hosts'. */
@Tag("lab")
@Tag("lab-full")
class SoftOnGuestTest extends ProviderContract {
    private static final RdmaProvider PROVIDER = new SoftProvider(SoftOptions.DEFAULTS.with(o -> {
        o.io = SoftOptions.Io.AUTO;
        o.handshakeTimeoutMillis = 10_000; // the guest is some ten times slower than a host
    }));

    @Override
    protected RdmaProvider provider() {
        return PROVIDER;
    }

    @Override
    protected InetSocketAddress listenAddress() {
        return new InetSocketAddress(InetAddress.getLoopbackAddress(), 0);
    }

    @Override
    protected int connectionCount() {
        return Integer.getInteger("verbena.test.connections", 200);
    }

    @Override
    protected boolean reportsRemoteAccessErrors(WorkRequest.Opcode opcode) {
        return opcode != WorkRequest.Opcode.WRITE;
    }

    @Test
    void whatItChoosesWorks() {
        System.out.println("Linux " + System.getProperty("os.version") + ": " + PROVIDER.description());
        assertThat(PROVIDER.description()).endsWith("on io_uring");
    }
}
