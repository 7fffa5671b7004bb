package org.verbena.api;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.bootstrap.ServerBootstrap;
import io.netty.channel.Channel;
import org.junit.jupiter.api.Test;
import org.verbena.transport.spi.Patience;

/** The stream suite on the soft provider. */
class SoftStreamTest extends RdmaStreamSuite {
    @Override
    protected String provider() {
        return "soft";
    }

    @Test
    void manyPiecesThatFillAReceiveAreNotCopied() {
        int pieceBytes = 16 << 10;
        int headerBytes = 9;
        try (Server server = new Server(
                new ServerBootstrap(), 0, channel -> channel.pipeline().addLast(new Reader()))) {
            RdmaSocketChannel client = (RdmaSocketChannel) connect(server);
            Channel peer = server.next();
            for (int i = 0; i < 3; i++) {
                client.write(client.alloc().directBuffer(headerBytes).writeZero(headerBytes));
                client.write(client.alloc().directBuffer(pieceBytes).writeZero(pieceBytes));
            }
            client.flush();
            Patience.until("it comes", () -> reader(peer).bytes == 3 * (headerBytes + pieceBytes));
            assertThat(client.statistics().copiedBytes()).isZero();
            closeBoth(client, peer);
        }
    }
}
