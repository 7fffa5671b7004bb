package org.verbena.samples.kv;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import org.verbena.api.RdmaChannel;
import org.verbena.api.RdmaClient;
import org.verbena.samples.command.CommandFailure;
import org.verbena.transport.RemoteMemory;

/**
 * A client of {@code kv-server}: reads its memory, and sends it requests to change values. {@link KvFormat} has the
 * protocol. Any thread that may wait.
 */
final class KvConnection implements AutoCloseable {
    /** How often a get reads before it gives up. */
    static final int MAX_TRIES = 64;

    /** The first tries follow each other without a pause: a put takes less than a microsecond. */
    private static final int TRIES_AT_ONCE = 8;

    private final RdmaClient client;
    private final RdmaChannel channel;
    private final KvFormat.Geometry geometry;
    private final RemoteMemory memory;

    KvConnection(String provider, String host, int port) throws InterruptedException {
        client = RdmaClient.builder().provider(provider).reconnect(false).connect(host, port);
        channel = client.channel();
        try {
            ByteBuffer opened = ask(new byte[] {KvFormat.OPEN});
            geometry = new KvFormat.Geometry(opened.getInt(), opened.getInt());
            byte[] token = new byte[RemoteMemory.ENCODED_BYTES];
            opened.position(opened.limit() - token.length).get(token);
            memory = RemoteMemory.decode(token);
        } catch (RuntimeException | InterruptedException failure) {
            client.close();
            throw failure;
        }
    }

    /** Reads a value, without the server's program; empty if there is no such key. */
    Optional<byte[]> get(byte[] key) throws InterruptedException {
        for (int probe = 0; probe < KvFormat.PROBES; probe++) {
            KvFormat.Item item = read(geometry.offsetOf(key, probe));
            if (item.isNone()) {
                break;
            }
            if (item.isOf(key)) {
                return Optional.of(item.value());
            }
        }
        return Optional.empty();
    }

    private KvFormat.Item read(long offsetBytes) throws InterruptedException {
        ByteBuf into = channel.alloc().buffer(geometry.slotBytes(), geometry.slotBytes());
        try {
            for (int tries = 0; tries < MAX_TRIES; tries++) {
                if (tries >= TRIES_AT_ONCE) {
                    TimeUnit.MILLISECONDS.sleep(1);
                }
                channel.read(memory, offsetBytes, into.clear()).sync();
                KvFormat.Item item = KvFormat.Item.read(into.nioBuffer());
                if (item != null) {
                    return item;
                }
            }
        } finally {
            into.release();
        }
        throw new CommandFailure("the data read was torn " + MAX_TRIES
                + " times: the key is put all the time, or the server's memory is damaged");
    }

    /**
     * Sets a value.
     *
     * @throws CommandFailure if the server refuses
     */
    void put(byte[] key, byte[] value) throws InterruptedException {
        ask(new byte[] {KvFormat.PUT, (byte) key.length}, key, value);
    }

    /** How many requests the server's program has served, this one among them. */
    long requestsServed() throws InterruptedException {
        return ask(new byte[] {KvFormat.OPEN}).position(2 * Integer.BYTES).getLong();
    }

    /** Sends a request and returns the rest of the answer. */
    private ByteBuffer ask(byte[]... request) throws InterruptedException {
        ByteBuf answer = client.request(Unpooled.wrappedBuffer(request)).sync().getNow();
        try {
            byte kind = answer.isReadable() ? answer.readByte() : 0;
            if (kind == KvFormat.FAILED) {
                throw new CommandFailure("the server refuses: " + answer.toString(StandardCharsets.UTF_8));
            }
            if (kind != KvFormat.OK) {
                throw new CommandFailure(channel.remoteAddress() + " does not answer as a kv-server does; is it one?");
            }
            return ByteBuffer.wrap(ByteBufUtil.getBytes(answer));
        } finally {
            answer.release();
        }
    }

    @Override
    public void close() {
        client.close();
    }
}
