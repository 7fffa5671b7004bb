package org.verbena.transport.protocol.connection;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.EnumSet;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.transport.Framing;
import org.verbena.transport.MemoryDomain;
import org.verbena.transport.PreSharedKeys;
import org.verbena.transport.RdmaException;
import org.verbena.transport.RegisteredMemory;
import org.verbena.transport.WorkStatus;
import org.verbena.transport.buffer.BufferPoolOptions;
import org.verbena.transport.buffer.RegisteredBufferPool;
import org.verbena.transport.protocol.MessageOptions;
import org.verbena.transport.protocol.Negotiated;
import org.verbena.transport.protocol.Role;
import org.verbena.transport.protocol.connection.SimulatedNetwork.Device;
import org.verbena.transport.protocol.handshake.Authentication;
import org.verbena.transport.protocol.memory.MessageBuffers;
import org.verbena.transport.protocol.wire.Wire;
import org.verbena.transport.spi.Endpoint;
import org.verbena.transport.spi.EndpointHandler;
import org.verbena.transport.spi.ScatterGatherList;
import org.verbena.transport.spi.WorkRequest;

/**
 * A peer that knows the message protocol's frames, handshake and proofs included, and gets some of them wrong. Whatever
 * it sends, the connection continues or ends with a cause that names the violation; each operation has one outcome, the
 * end is reported once, and all memory is released. A peer that got nothing wrong is not cut off.
 *
 * <p>{@code -Dverbena.fuzz.frameExecutions=} sets how long it runs, {@code -Dverbena.fuzz.seed=} repeats a run.
 */
@Timeout(value = 12, unit = TimeUnit.HOURS)
class FrameFuzzTest {
    private static final int EXECUTIONS = Integer.getInteger("verbena.fuzz.frameExecutions", 4_000);
    private static final int SLOT = 512;
    private static final int SLOTS = 64;
    private static final int RECEIVES = 16;
    private static final int FRAGMENT = 240;

    private static final MessageOptions OPTIONS = MessageOptions.DEFAULTS
            .withReceives(8, Wire.HEADER_BYTES + FRAGMENT)
            .withMaxMessageBytes(4_000)
            .withRendezvousThresholdBytes(1_000);

    private static final PreSharedKeys KEYS = PreSharedKeys.of("fuzz", new byte[32]);
    /** One execution runs after another, and what their frames hold besides headers does not matter. */
    private static final MemorySegment PEER_MEMORY = Arena.ofAuto().allocate((long) SLOTS * SLOT, 64);

    private static final int[] EDGES = {0, 1, -1, 15, 16, 17, 255, 256, Integer.MAX_VALUE, Integer.MIN_VALUE};

    /** How executions ended. */
    private final TreeMap<String, Integer> ends = new TreeMap<>();

    /** How many frames the peers have sent. */
    private long frames;

    @Test
    void aPeerWithWrongFramesEndsOnlyItsOwnConnection() {
        long seed =
                Long.getLong("verbena.fuzz.seed", ThreadLocalRandom.current().nextLong());
        System.out.println("FrameFuzzTest: -Dverbena.fuzz.seed=" + seed);
        Random seeds = new Random(seed);
        long startNanos = System.nanoTime();
        for (int i = 0; i < EXECUTIONS; i++) {
            long one = seeds.nextLong();
            try {
                execute(new Random(one));
            } catch (AssertionError | Exception failure) {
                throw new AssertionError("execution " + i + ", of seed " + one, failure);
            }
        }
        System.out.printf(
                "%d executions with %d frames, %.0f executions a second: %s%n",
                EXECUTIONS, frames, EXECUTIONS / ((System.nanoTime() - startNanos) / 1e9), ends);
        if (EXECUTIONS >= 1_000) {
            assertThat(ends).containsKeys("in good order", "ProtocolException", "AuthenticationException");
        }
    }

    private void execute(Random random) throws Exception {
        boolean isRight = random.nextInt(4) == 0;
        boolean accepts = random.nextBoolean();
        PreSharedKeys keys = random.nextInt(3) == 0 ? KEYS : null;
        MessageOptions options = random.nextInt(3) == 0 ? OPTIONS.withFraming(Framing.STREAM) : OPTIONS;
        Device device = random.nextBoolean() ? Device.VERBS : Device.IWARP;
        SimulatedNetwork network = new SimulatedNetwork(random, device, device);
        network.endsOnOverrun = !isRight;
        SimulatedEndpoint endpoint = accepts ? network.right : network.left;
        Victim victim = new Victim(network, endpoint, accepts ? Role.ACCEPTOR : Role.INITIATOR, options, keys);
        Peer peer = new Peer(random, isRight, options, accepts ? Role.INITIATOR : Role.ACCEPTOR, keys);
        byte[] mine = victim.connection.privateData();
        byte[] others = peer.privateData();
        if (accepts) {
            network.connect(peer, others, victim.connection, mine);
        } else {
            network.connect(victim.connection, mine, peer, others);
        }
        settle(network);
        int turns = random.nextInt(12);
        for (int i = 0; i < turns && victim.inactive == 0; i++) {
            if (random.nextInt(3) == 0) {
                victim.send(random.nextInt(random.nextBoolean() ? 100 : 4_000));
            }
            peer.turn();
            settle(network);
        }
        Throwable cause = victim.cause;
        if (victim.inactive == 0) {
            victim.connection.close();
            settle(network);
        }
        for (int i = 0; i < 4 && victim.inactive == 0; i++) {
            network.nowNanos += TimeUnit.SECONDS.toNanos(11);
            victim.connection.onDeadline(network.nowNanos);
            settle(network);
        }
        assertThat(victim.inactive).as("how often the end was reported").isOne();
        assertThat(victim.told).as("outcomes of %d messages", victim.sent).isEqualTo(victim.sent);
        Throwable last = victim.cause;
        if (last != null && !(last instanceof RdmaException)) {
            throw new AssertionError("it ended with a cause that no peer should be able to produce", last);
        }
        if (isRight && cause instanceof RdmaException) {
            throw new AssertionError("a peer that got nothing wrong was cut off", cause);
        }
        ends.merge(last == null ? "in good order" : last.getClass().getSimpleName(), 1, Integer::sum);
        frames += peer.framesSent;
        victim.checkMemory();
    }

    private static void settle(SimulatedNetwork network) {
        while (network.step()) {
            // until nothing can happen
        }
    }

    /** The end under attack: it accepts what comes. */
    private static final class Victim implements MessageListener {
        final SimulatedEndpoint endpoint;
        final RegisteredBufferPool sendPool;
        final RegisteredBufferPool receivePool;
        final MessageConnection connection;
        int sent;
        int told;
        int inactive;

        @Nullable Throwable cause;

        Victim(
                SimulatedNetwork network,
                SimulatedEndpoint endpoint,
                Role role,
                MessageOptions options,
                @Nullable PreSharedKeys keys) {
            this.endpoint = endpoint;
            BufferPoolOptions pools = new BufferPoolOptions(
                    1 << 20,
                    256 << 10,
                    1 << 20,
                    EnumSet.of(MemoryDomain.Access.LOCAL_WRITE, MemoryDomain.Access.REMOTE_WRITE),
                    BufferPoolOptions.Exhaustion.FAIL,
                    0,
                    0,
                    false);
            sendPool = new RegisteredBufferPool(endpoint.domain, pools);
            receivePool = new RegisteredBufferPool(endpoint.domain, pools);
            MessageBuffers buffers = new MessageBuffers(sendPool, receivePool);
            connection = new MessageConnection(role, options, domain -> buffers, this, () -> network.nowNanos);
            if (keys != null) {
                connection.authenticate(keys);
            }
        }

        void send(int bytes) {
            sent++;
            connection.send(Unpooled.buffer(Math.max(1, bytes)).writeZero(bytes), (context, failure) -> told++, null);
            connection.flush();
        }

        @Override
        public void onActive(MessageConnection from, Negotiated negotiated) {}

        @Override
        public void onMessage(MessageConnection from, ByteBuf message) {
            message.release();
        }

        @Override
        public void onReadComplete(MessageConnection from) {}

        @Override
        public void onImmediate(MessageConnection from, int immediateData, int lengthBytes) {}

        @Override
        public void onWritabilityChanged(MessageConnection from, boolean writable) {}

        @Override
        public void onDeadline(MessageConnection from, long deadlineNanos) {}

        @Override
        public void onResumable(MessageConnection from) {
            from.resume();
        }

        @Override
        public void onInactive(MessageConnection from, @Nullable Throwable why) {
            inactive++;
            cause = why;
        }

        void checkMemory() throws Exception {
            endpoint.endLoop();
            assertThat(sendPool.metrics().usedBytes()).as("bytes to send from").isZero();
            assertThat(receivePool.metrics().usedBytes())
                    .as("bytes to receive into")
                    .isZero();
            sendPool.close();
            receivePool.close();
            assertThat(endpoint.domain.liveRegions()).as("regions").isZero();
        }
    }

    /** The attacking end. It keeps the state that a correct peer keeps, and then deviates from it. */
    private static final class Peer implements EndpointHandler {
        private final Random random;
        private final boolean isRight;
        private final boolean packs;
        /** Its receives grow once, which are long from the beginning. */
        private boolean mayGrow;

        private final MessageOptions options;
        private final Role role;
        private final @Nullable Authentication authentication;
        private final WorkRequest request = new WorkRequest(1);
        private final ScatterGatherList list = new ScatterGatherList(1);
        private final List<byte[]> staged = new ArrayList<>();
        private final MemorySegment memory = PEER_MEMORY;
        private Endpoint endpoint;
        private int framesSent;
        private RegisteredMemory region;
        private int nextSlot = RECEIVES;
        private boolean hasHello;
        private boolean isClosed;
        private boolean isGone;

        // The state of a correct peer.
        private int granted;
        private int messagesSent;
        private int messagesTaken;
        private int controlsSent;
        private int controlsTaken;
        private int controlsAcknowledged;
        private int leftOfMessage;

        Peer(Random random, boolean isRight, MessageOptions options, Role role, @Nullable PreSharedKeys keys) {
            this.random = random;
            this.isRight = isRight;
            this.options = options;
            this.role = role;
            packs = random.nextBoolean();
            mayGrow = random.nextBoolean();
            authentication = keys == null ? null : new Authentication(role, keys);
        }

        byte[] privateData() {
            byte[] preamble = Wire.preamble(options.framing());
            return authentication == null ? preamble : authentication.privateData(preamble);
        }

        @Override
        public void onPrepared(Endpoint prepared) {
            endpoint = prepared;
            region = prepared.memoryDomain().register(memory, Set.of(MemoryDomain.Access.values()));
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
            if (role == Role.INITIATOR) {
                if (authentication != null) {
                    authentication.takeAcceptance(privateData);
                }
                sayHello(Wire.HELLO);
            }
            post();
        }

        private void sayHello(int type) {
            ByteBuf frame = Unpooled.buffer(SLOT);
            header(frame, type, 0);
            frame.writeZero(Wire.HELLO_BYTES - Wire.HEADER_BYTES);
            Rogue.HELLO_ACK.toBuilder()
                    .framing(options.framing().wireValue())
                    .features(packs ? 7 | Wire.FEATURE_PACKS : 7)
                    .receiveBufferBytes(SLOT / 2)
                    .greatestReceiveBytes(mayGrow ? SLOT : 0)
                    .window(RECEIVES / 2, RECEIVES / 2)
                    .maxRendezvous(2)
                    .build()
                    .write(frame, Wire.HEADER_BYTES);
            if (authentication != null) {
                frame.writeBytes(authentication.prove(frame, Wire.HEADER_BYTES));
            }
            stage(frame);
            post();
        }

        @Override
        public void onSendCompletion(Endpoint from, long workId, WorkStatus status, int lengthBytes) {}

        @Override
        public void onReceiveCompletion(
                Endpoint from, long workId, WorkStatus status, int lengthBytes, int flags, int immediateData) {
            if (status != WorkStatus.SUCCESS) {
                return;
            }
            ByteBuf frame = Unpooled.wrappedBuffer(
                    memory.asSlice(workId * SLOT, lengthBytes).toArray(ValueLayout.JAVA_BYTE));
            receive((int) workId);
            if (lengthBytes < Wire.HEADER_BYTES) {
                return;
            }
            int type = frame.getUnsignedByte(0);
            controlsAcknowledged = frame.getUnsignedShort(2);
            granted = frame.getInt(4);
            if (Wire.isMessageClass(type)) {
                messagesTaken++;
            } else if (type >= Wire.STATE && type != Wire.ACK) {
                controlsTaken++;
            }
            if (type == Wire.HELLO || type == Wire.HELLO_ACK) {
                hasHello = true;
                granted = frame.getInt(Wire.HEADER_BYTES + 16);
                if (type == Wire.HELLO) {
                    if (authentication != null) {
                        authentication.refusal(frame, lengthBytes);
                    }
                    sayHello(Wire.HELLO_ACK);
                }
            }
        }

        @Override
        public void onCompletionsHandled(Endpoint from) {
            from.flush();
        }

        @Override
        public void onDisconnected(Endpoint from, @Nullable Throwable cause) {
            isGone = true;
            region.close();
        }

        /** Sends some frames. */
        void turn() {
            if (endpoint == null || isGone || isClosed || (isRight && !hasHello)) {
                return;
            }
            int count = 1 + random.nextInt(4);
            for (int i = 0; i < count && !isClosed; i++) {
                stageOne();
            }
            post();
        }

        private void stageOne() {
            boolean mayControl = ((controlsSent - controlsAcknowledged) & 0xffff) == 0;
            boolean mayMessage = granted - messagesSent > 0;
            int kind = random.nextInt(10);
            if ((kind < 7 || leftOfMessage > 0) && (mayMessage || (!isRight && random.nextInt(8) == 0))) {
                stageMessage();
            } else if (kind < 9 && mayControl) {
                int[] controls = {
                    Wire.STATE, Wire.PING, mayGrow || !isRight ? Wire.LONGER : Wire.STATE, Wire.STATE, Wire.CLOSE
                };
                int type = controls[random.nextInt(leftOfMessage > 0 ? 4 : controls.length)];
                ByteBuf frame = Unpooled.buffer(SLOT);
                header(frame, type, type == Wire.LONGER ? longerBytes() : 0);
                if (type == Wire.PING) {
                    frame.writeLong(random.nextLong());
                } else if (type == Wire.LONGER) {
                    frame.writeInt(random.nextInt(100));
                    mayGrow = false;
                }
                controlsSent++;
                isClosed = type == Wire.CLOSE;
                stage(frame);
            } else if (!isRight) {
                ByteBuf frame = Unpooled.buffer(SLOT);
                header(frame, random.nextInt(16), random.nextInt(300));
                frame.writeZero(random.nextInt(60));
                stage(frame);
            }
        }

        private int longerBytes() {
            return isRight || random.nextBoolean() ? SLOT : EDGES[random.nextInt(EDGES.length)];
        }

        private void stageMessage() {
            boolean stream = options.framing() == Framing.STREAM;
            boolean first = leftOfMessage == 0;
            if (first && random.nextInt(3) == 0 && (!isRight || (packs && !stream))) {
                stagePacked();
                return;
            }
            if (first) {
                leftOfMessage =
                        stream ? 1 + random.nextInt(FRAGMENT) : random.nextInt(random.nextBoolean() ? 241 : 2_000);
            }
            int payload = Math.min(leftOfMessage, FRAGMENT);
            ByteBuf frame = Unpooled.buffer(SLOT);
            if (!isRight && first && random.nextInt(4) == 0) {
                // A correct peer leaves nothing here to chance: the victim reads where it is told to.
                leftOfMessage = Math.max(1, leftOfMessage);
                header(frame, Wire.RENDEZVOUS, leftOfMessage);
                frame.writeLong(region.address()).writeInt(region.remoteKey()).writeInt(leftOfMessage);
                leftOfMessage = 0;
            } else {
                header(frame, first ? Wire.MESSAGE : Wire.CONTINUATION, leftOfMessage);
                frame.writeZero(payload);
                leftOfMessage -= payload;
            }
            messagesSent++;
            stage(frame);
        }

        /** Several messages in a frame, of which a peer that is not right gets count and lengths wrong. */
        private void stagePacked() {
            int count = 2 + random.nextInt(random.nextBoolean() ? 5 : 57);
            int left = FRAGMENT - count * Wire.PACKED_LENGTH_BYTES;
            boolean lies = !isRight && random.nextBoolean();
            ByteBuf frame = Unpooled.buffer(SLOT);
            header(frame, Wire.PACKED, lies && random.nextInt(4) == 0 ? EDGES[random.nextInt(EDGES.length)] : count);
            int bytes = 0;
            for (int i = 0; i < count; i++) {
                int length = random.nextInt(left - bytes + 1) / (1 + random.nextInt(4));
                frame.writeInt(lies && random.nextInt(4) == 0 ? EDGES[random.nextInt(EDGES.length)] : length);
                bytes += length;
            }
            frame.writeZero(lies ? random.nextInt(left + 1) : bytes);
            messagesSent++;
            stage(frame);
        }

        private void header(ByteBuf frame, int type, int length) {
            frame.writeByte(type)
                    .writeByte(0)
                    .writeShort(controlsTaken)
                    .writeInt(RECEIVES / 2 + messagesTaken)
                    .writeInt(0)
                    .writeInt(length);
        }

        private void stage(ByteBuf frame) {
            byte[] bytes = new byte[frame.readableBytes()];
            frame.readBytes(bytes);
            staged.add(isRight ? bytes : spoiled(bytes));
        }

        /** Often makes the frame wrong. */
        private byte[] spoiled(byte[] bytes) {
            ByteBuf frame = Unpooled.wrappedBuffer(bytes);
            switch (random.nextInt(24)) {
                case 0 -> bytes[random.nextInt(bytes.length)] ^= (byte) (1 << random.nextInt(8));
                case 1 -> bytes[random.nextInt(Wire.HEADER_BYTES)] = (byte) random.nextInt();
                case 2 -> frame.setInt(4 * random.nextInt(bytes.length / 4), EDGES[random.nextInt(EDGES.length)]);
                case 3 -> frame.setInt(4 * random.nextInt(4), frame.getInt(4) + random.nextInt(5) - 2);
                case 4 -> {
                    return Arrays.copyOf(bytes, random.nextInt(bytes.length + 1));
                }
                case 5 -> {
                    return Arrays.copyOf(bytes, Math.min(SLOT / 2, bytes.length + 1 + random.nextInt(40)));
                }
                case 6 -> random.nextBytes(bytes);
                case 7 -> staged.add(bytes.clone());
                default -> {
                    // It is sent as it is.
                }
            }
            return bytes;
        }

        private void post() {
            if (!isRight && staged.size() > 1 && random.nextInt(8) == 0) {
                Collections.shuffle(staged, random);
            }
            // Before it is connected, nothing is sent: a HELLO may come before that is known.
            while (!staged.isEmpty() && endpoint.freeSendSlots() > 0) {
                byte[] frame = staged.getFirst();
                int slot = nextSlot;
                nextSlot = slot == SLOTS - 1 ? RECEIVES : slot + 1;
                MemorySegment.copy(frame, 0, memory, ValueLayout.JAVA_BYTE, (long) slot * SLOT, frame.length);
                request.asSend(0, 0);
                if (frame.length > 0) {
                    request.buffers().add(region, (long) slot * SLOT, frame.length);
                }
                if (!endpoint.post(request)) {
                    break;
                }
                staged.removeFirst();
                framesSent++;
            }
            endpoint.flush();
        }
    }
}
