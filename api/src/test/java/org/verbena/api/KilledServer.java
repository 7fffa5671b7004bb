package org.verbena.api;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.verbena.transport.spi.Patience;

/**
 * A server in a process that will be killed. It notes the number of each request in a file before it does anything
 * else, so that what it had begun is known when it is gone.
 */
final class KilledServer {
    /** The request's number, and the port of the server that keeps it for ever: the others answer it. */
    static final int REQUEST_BYTES = Long.BYTES + Integer.BYTES;

    private static final String READY = "killed server is ready";

    /** A JVM that starts needs a minute and more of an emulated processor, and gets a part of it. */
    private static final Duration START_LIMIT = Patience.LIMIT.multipliedBy(4);

    final int port;
    private final Path begun;
    private final Process process;

    /** Completed with its last line, null, if it ends before it listens. */
    private final CompletableFuture<String> ready;

    /** What was read of the file. */
    private final Map<Long, Integer> all = new HashMap<>();

    private long readBytes;

    private KilledServer(int port, Path begun, Process process) {
        this.port = port;
        this.begun = begun;
        this.process = process;
        ready = CompletableFuture.supplyAsync(
                this::readUntilReady, task -> Thread.ofPlatform().daemon().start(task));
    }

    /**
     * Starts one, which may not listen yet.
     *
     * @param work how long each request takes, without the processor
     */
    static KilledServer start(String provider, String host, int port, Path begun, Duration work) throws IOException {
        Files.createFile(begun);
        Process process = TrafficPeer.java(
                List.of("-Xmx256m"),
                KilledServer.class,
                provider,
                host,
                String.valueOf(port),
                begun.toString(),
                String.valueOf(work.toNanos()));
        return new KilledServer(port, begun, process);
    }

    private String readUntilReady() {
        try {
            String line = process.inputReader().readLine();
            while (line != null && !line.equals(READY)) {
                line = process.inputReader().readLine();
            }
            return line;
        } catch (IOException unreadable) {
            throw new UncheckedIOException(unreadable);
        }
    }

    /** Waits until it listens. */
    void awaitReady() {
        if (Patience.await("the server listens", ready, START_LIMIT) == null) {
            throw new AssertionError("the server has ended before it listened");
        }
    }

    /** How often it has begun each request. For one thread. */
    Map<Long, Integer> begun() {
        ByteBuffer numbers = ByteBuffer.allocate(64 << 10);
        try (FileChannel file = FileChannel.open(begun)) {
            while (file.read(numbers, readBytes) > 0) {
                numbers.flip();
                while (numbers.remaining() >= Long.BYTES) {
                    all.merge(numbers.getLong(), 1, Integer::sum);
                    readBytes += Long.BYTES;
                }
                numbers.clear();
            }
        } catch (IOException unreadable) {
            throw new UncheckedIOException(unreadable);
        }
        return all;
    }

    /** Whether it has begun any. */
    boolean isUsed() {
        return begun.toFile().length() > 0;
    }

    /** SIGKILL, and waits until it is gone. */
    void kill() throws InterruptedException {
        process.destroyForcibly();
        process.waitFor();
    }

    /** The process. It ends when its parent does. */
    public static void main(String... arguments) throws IOException {
        int port = Integer.parseInt(arguments[2]);
        long workNanos = Long.parseLong(arguments[4]);
        FileChannel begun =
                FileChannel.open(Path.of(arguments[3]), StandardOpenOption.WRITE, StandardOpenOption.APPEND);
        RdmaServer.builder()
                .provider(arguments[0])
                .threadsPerProvider(1)
                .virtualThreads(true)
                .bind(arguments[1], port, MessageHandler.ofBytes((exchange, message) -> {
                    ByteBuffer request = ByteBuffer.wrap(message);
                    begun.write(request.slice(0, Long.BYTES));
                    if (request.getInt(Long.BYTES) != port) {
                        exchange.channel()
                                .eventLoop()
                                .schedule(() -> exchange.reply(message), workNanos, TimeUnit.NANOSECONDS);
                    }
                }));
        System.out.println(READY);
        while (System.in.read() >= 0) {
            // the parent writes nothing
        }
        Runtime.getRuntime().halt(0);
    }
}
