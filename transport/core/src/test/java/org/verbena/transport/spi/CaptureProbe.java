package org.verbena.transport.spi;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.channels.FileChannel.MapMode;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashSet;
import java.util.Set;

/** Connects to a port until a capture's file shows it: everything that passed there before is then in the file, too. */
public final class CaptureProbe {
    private CaptureProbe() {}

    /**
     * Returns once the file has a packet of one of this call's own connections, which carry no data.
     *
     * @param file what dumpcap writes
     * @param port where packets are captured, whether anybody listens there or not
     */
    public static void awaitSeen(Path file, InetSocketAddress port) {
        Set<Integer> wanted = new HashSet<>();
        Patience.until("the capture sees a connection to " + port, () -> {
            wanted.add(knock(port) << 16 | port.getPort());
            return shows(file, wanted);
        });
    }

    /** A connection's own port. */
    private static int knock(InetSocketAddress port) {
        try (Socket socket = new Socket()) {
            socket.bind(new InetSocketAddress(port.getAddress(), 0));
            int own = socket.getLocalPort();
            try {
                socket.connect(port, (int) Patience.LIMIT.toMillis());
            } catch (IOException refused) {
                return own;
            }
            return own;
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** Whether one of these pairs of ports, as a TCP header begins, is in the file. */
    private static boolean shows(Path file, Set<Integer> ports) {
        if (!Files.exists(file)) {
            return false;
        }
        try (FileChannel channel = FileChannel.open(file)) {
            ByteBuffer bytes = channel.map(MapMode.READ_ONLY, 0, channel.size());
            for (int i = 0; i <= bytes.limit() - Integer.BYTES; i++) {
                if (ports.contains(bytes.getInt(i))) {
                    return true;
                }
            }
            return false;
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
