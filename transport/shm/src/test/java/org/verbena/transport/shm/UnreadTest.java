package org.verbena.transport.shm;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.file.Path;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.verbena.transport.system.Polling;

/** What a loop keeps for a peer that does nothing has an end, and so has what it counts. */
@Timeout(120)
class UnreadTest {
    private static final int FAR_TOO_MUCH = 200_000;

    @TempDir
    Path directory;

    @Test
    void whatAPeerDoesNotReadBesideItsRingIsBounded() throws IOException {
        Path name = directory.resolve("s");
        AtomicInteger reports = new AtomicInteger();
        try (ShmFixture fixture = new ShmFixture(ShmOptions.DEFAULTS);
                ServerSocketChannel listening = ServerSocketChannel.open(StandardProtocolFamily.UNIX)) {
            listening.bind(UnixDomainSocketAddress.of(name));
            try (SocketChannel peer = SocketChannel.open(UnixDomainSocketAddress.of(name));
                    SocketChannel accepted = listening.accept()) {
                accepted.configureBlocking(false);
                ControlSocket socket = new ControlSocket(fixture.serverLoop(), accepted, counting(reports));
                for (int sent = 0; sent < FAR_TOO_MUCH && reports.get() == 0; sent++) {
                    socket.send(ByteBuffer.allocate(64));
                }
                assertThat(reports.get()).isEqualTo(1);
                assertThat(peer.isConnected()).isTrue();
            }
        }
    }

    private static ControlSocket.Owner counting(AtomicInteger reports) {
        return new ControlSocket.Owner() {
            @Override
            public void onReadable() {}

            @Override
            public void onUnread() {
                reports.incrementAndGet();
            }

            @Override
            public void onFailure(Throwable cause) {
                throw new AssertionError(cause);
            }

            @Override
            public void onLoopEnding() {}
        };
    }

    /** After two milliards of polls that found nothing it falls asleep as after a few. */
    @Test
    void theCountOfIdlePollsDoesNotWrap() {
        try (ShmFixture fixture = new ShmFixture(ShmOptions.DEFAULTS)) {
            fixture.onLoop(fixture.serverLoop(), io -> {
                Polled idle = new Polled() {
                    @Override
                    int poll() {
                        return 0;
                    }

                    @Override
                    boolean fallAsleep() {
                        return true;
                    }

                    @Override
                    void awake() {}
                };
                io.wake(idle);
                idle.idlePolls = Integer.MAX_VALUE;
                io.run(Polling.CONTEXT);
                assertThat(idle.idlePolls).isPositive();
                io.removeAwake(idle);
                return true;
            });
        }
    }
}
