package org.verbena.it.docs;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.verbena.api.MessageHandler;
import org.verbena.api.RdmaServer;

/** The program of docs/moving.md that needs no device; the others run in the lab. */
@Timeout(120)
class MovingTest {
    @TempDir
    private Path out;

    @Test
    void runs() throws Exception {
        BlockingQueue<String> requests = new LinkedBlockingQueue<>();
        int port = Integer.parseInt(FrameworksTest.freePort());
        MessageHandler answer = MessageHandler.ofBytes((exchange, request) -> {
            requests.add(new String(request, UTF_8));
            exchange.reply("hello back".getBytes(UTF_8));
        });
        try (RdmaServer server = RdmaServer.bind("127.0.0.1", port, answer)) {
            MovingProgram.CHANNEL_API.compile(out, "127.0.0.1", port).run();
            assertThat(server.port()).isEqualTo(port);
        }
        assertThat(requests).containsExactly("hello");
    }
}
