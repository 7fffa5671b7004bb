package org.verbena.transport.protocol.connection;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.MemoryDomain;
import org.verbena.transport.RegisteredMemory;
import org.verbena.transport.WorkStatus;
import org.verbena.transport.protocol.wire.Wire;
import org.verbena.transport.spi.Endpoint;
import org.verbena.transport.spi.EndpointHandler;
import org.verbena.transport.spi.ScatterGatherList;
import org.verbena.transport.spi.WorkRequest;

/** A peer that can do the handshake and then sends what a test wants, valid or not. */
final class Rogue implements EndpointHandler {
    static final Wire.Hello HELLO_ACK = new Wire.Hello.Builder()
            .versions(1, 1)
            .framing(1)
            .features(7)
            .receiveBufferBytes(256)
            .window(6, 6)
            .maxMessageBytes(1 << 20)
            .maxRendezvous(1)
            .build();
    private static final int SLOT = 1024;
    private static final int RECEIVES = 16;

    private final Consumer<Rogue> onFrame;
    private final WorkRequest request = new WorkRequest(1);
    private final ScatterGatherList list = new ScatterGatherList(1);
    final List<Integer> typesHeard = new ArrayList<>();
    int flagsHeard;
    Wire.@Nullable Hello helloAck = HELLO_ACK;
    boolean answers;
    Endpoint endpoint;
    private MemorySegment memory;
    private RegisteredMemory region;
    private int nextSlot = RECEIVES;

    // The next header.
    int flags;
    int control;
    int grant = 6;
    int done;

    Rogue(Consumer<Rogue> onFrame) {
        this.onFrame = onFrame;
    }

    @Override
    public void onPrepared(Endpoint prepared) {
        endpoint = prepared;
        memory = Arena.ofAuto().allocate(64L * SLOT, 64);
        region = prepared.memoryDomain()
                .register(memory, Set.of(MemoryDomain.Access.LOCAL_WRITE, MemoryDomain.Access.REMOTE_READ));
        for (int i = 0; i < RECEIVES; i++) {
            receive(i);
        }
        prepared.flush();
    }

    private void receive(int slot) {
        list.clear().add(region, (long) slot * SLOT, SLOT);
        endpoint.postReceive(slot, list);
    }

    @Override
    public void onConnected(Endpoint connected, byte[] privateData) {
        // The acceptor waits for HELLO.
    }

    @Override
    public void onSendCompletion(Endpoint from, long workId, WorkStatus status, int lengthBytes) {
        // Ignored.
    }

    @Override
    public void onReceiveCompletion(
            Endpoint from, long workId, WorkStatus status, int lengthBytes, int flags, int immediateData) {
        if (status != WorkStatus.SUCCESS) {
            return;
        }
        int type = memory.get(ValueLayout.JAVA_BYTE, workId * SLOT);
        typesHeard.add(type);
        flagsHeard |= memory.get(ValueLayout.JAVA_BYTE, workId * SLOT + 1);
        receive((int) workId);
        if (type == Wire.HELLO && helloAck != null && answersHello()) {
            ByteBuf hello = Unpooled.buffer(Wire.HELLO_BYTES);
            hello.writeLong((long) Wire.HELLO_ACK << 56).writeLong(0).writeZero(Wire.HELLO_BYTES - 16);
            helloAck.write(hello, Wire.HEADER_BYTES);
            post(hello);
        } else if (type >= Wire.STATE) {
            control++;
            onFrame.accept(this);
        }
    }

    private boolean answersHello() {
        return answers;
    }

    @Override
    public void onCompletionsHandled(Endpoint from) {
        from.flush();
    }

    @Override
    public void onDisconnected(Endpoint from, @Nullable Throwable cause) {
        region.close();
    }

    /** Acknowledges a control frame, and does nothing else. */
    void acknowledge() {
        type(Wire.ACK, 0, 0);
    }

    /** Sends a frame of zeros. */
    void type(int type, int length, int payload) {
        ByteBuf frame = header(type, length);
        frame.writeZero(payload);
        post(frame);
        endpoint.flush();
    }

    /** Sends a frame that says it has so many messages, with these lengths and so many zeros. */
    void packed(int count, int payload, int... lengths) {
        ByteBuf frame = header(Wire.PACKED, count);
        for (int length : lengths) {
            frame.writeInt(length);
        }
        frame.writeZero(payload);
        post(frame);
        endpoint.flush();
    }

    /** Says that its receives are longer from one frame on. */
    void longer(int bytes, int from) {
        post(header(Wire.LONGER, bytes).writeInt(from));
        endpoint.flush();
    }

    void advertise(int length, int pieceLength) {
        ByteBuf frame = header(Wire.RENDEZVOUS, length);
        frame.writeLong(region.address()).writeInt(region.remoteKey()).writeInt(pieceLength);
        post(frame);
        endpoint.flush();
    }

    void bytes(int count) {
        post(Unpooled.buffer().writeZero(count));
        endpoint.flush();
    }

    private ByteBuf header(int type, int length) {
        ByteBuf frame = Unpooled.buffer();
        frame.writeByte(type)
                .writeByte(flags)
                .writeShort(control)
                .writeInt(grant)
                .writeInt(done)
                .writeInt(length);
        return frame;
    }

    private void post(ByteBuf frame) {
        int slot = nextSlot;
        nextSlot = slot == 63 ? RECEIVES : slot + 1;
        int length = frame.readableBytes();
        for (int i = 0; i < length; i++) {
            memory.set(ValueLayout.JAVA_BYTE, (long) slot * SLOT + i, frame.getByte(i));
        }
        frame.release();
        request.asSend(0, 0).buffers().add(region, (long) slot * SLOT, length);
        endpoint.post(request);
    }
}
