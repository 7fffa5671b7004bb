package org.verbena.transport.soft.uring;

import io.netty.channel.IoHandlerContext;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.Selector;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import java.util.function.IntSupplier;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.ffm.Errno;
import org.verbena.transport.ffm.ErrnoException;
import org.verbena.transport.ffm.IoUring;
import org.verbena.transport.system.SelectorDescriptor;

/** Whether io_uring works in this process, which is tried once with real sockets. Any thread. */
public final class SocketIo {
    private static final Path SETTING = Path.of("/proc/sys/kernel/io_uring_disabled");
    private static final long PATIENCE_NANOS = TimeUnit.SECONDS.toNanos(5);

    private SocketIo() {}

    private static final class Answer {
        static final @Nullable String CAUSE = tried();

        private Answer() {}
    }

    /**
     * Why io_uring cannot be used here.
     *
     * @return null if it can
     */
    public static @Nullable String unavailabilityCause() {
        return Answer.CAUSE;
    }

    /**
     * Makes the ring of a loop.
     *
     * @param selector of the loop, not used yet
     * @param selectNow handles what the selector finds at once, and returns how much that was
     * @return not started
     * @throws IOException the kernel refuses it
     */
    public static RingLoop newLoop(Selector selector, IntSupplier selectNow) throws IOException {
        int descriptor = SelectorDescriptor.of(selector);
        return RingLoop.on(new KernelRing(), descriptor, selectNow);
    }

    private static @Nullable String tried() {
        String cause = IoUring.unavailabilityCause();
        if (cause != null) {
            return cause;
        }
        try (Selector selector = Selector.open()) {
            RingLoop loop = newLoop(selector, () -> 0);
            try {
                loop.start();
                tryPair(loop);
            } finally {
                loop.close();
            }
            return null;
        } catch (ErrnoException refused) {
            return why(refused);
        } catch (IOException | RuntimeException refused) {
            return String.valueOf(refused.getMessage());
        } catch (LinkageError refused) {
            return refused.toString();
        }
    }

    /** Two bytes go through a connection to this process. */
    private static void tryPair(RingLoop loop) throws IOException {
        try (ServerSocketChannel server = ServerSocketChannel.open()) {
            server.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0));
            try (SocketChannel client = SocketChannel.open(server.getLocalAddress());
                    SocketChannel accepted = server.accept()) {
                client.configureBlocking(false);
                accepted.configureBlocking(false);
                Trial trial = new Trial();
                RingStream receiver = loop.add(accepted, trial);
                RingStream sender = loop.add(client, trial);
                try {
                    receiver.receive();
                    sender.write(new ByteBuffer[] {ByteBuffer.wrap(new byte[] {1, 2})}, 0, 1);
                    trial.await(loop);
                } finally {
                    sender.close();
                    receiver.close();
                }
            }
        }
    }

    /** Short, since it is part of what the provider says of itself. */
    private static String why(ErrnoException refused) {
        return switch (refused.errno()) {
            case Errno.EPERM -> whyForbidden();
            case Errno.ENOSYS -> "the kernel has none, or a sandbox (seccomp) hides it";
            case Errno.EINVAL -> "it needs Linux 6.1 or newer";
            case Errno.ENOMEM -> "the limit of locked memory (ulimit -l) is too low";
            default -> String.valueOf(refused.getMessage());
        };
    }

    private static String whyForbidden() {
        String setting;
        try {
            setting = Files.readString(SETTING).strip();
        } catch (IOException olderKernel) {
            setting = "0";
        }
        return setting.equals("0") ? "a sandbox (seccomp) forbids it" : "sysctl kernel.io_uring_disabled is " + setting;
    }

    private static final class Trial implements RingStream.Owner {
        private int received;
        private @Nullable Throwable failure;

        void await(RingLoop loop) throws IOException {
            long deadline = System.nanoTime() + PATIENCE_NANOS;
            while (received < 2 && failure == null && deadline - System.nanoTime() > 0) {
                loop.turn(new Waiting(deadline));
            }
            if (received != 2) {
                throw new IOException("a connection that was tried did not work", failure);
            }
        }

        @Override
        public void onReceived(ByteBuffer buffer, MemorySegment segment, int from, int bytes) {
            received += bytes == 2 && buffer.get(from) == 1 && buffer.get(from + 1) == 2 ? bytes : bytes + 2;
        }

        @Override
        public void onEnded(@Nullable IOException cause) {
            failure = cause == null ? new IOException("the connection ended") : cause;
        }

        @Override
        public void onReadable() {}

        @Override
        public void onWritable() {}

        @Override
        public void onFailure(Throwable cause) {
            failure = cause;
        }
    }

    private record Waiting(long deadlineNanos) implements IoHandlerContext {
        @Override
        public boolean canBlock() {
            return true;
        }

        @Override
        public long delayNanos(long currentTimeNanos) {
            return Math.max(0, deadlineNanos - currentTimeNanos);
        }
    }
}
