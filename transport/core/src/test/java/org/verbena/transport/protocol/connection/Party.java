package org.verbena.transport.protocol.connection;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.CompositeByteBuf;
import io.netty.buffer.Unpooled;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.EnumSet;
import java.util.List;
import java.util.Random;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.Framing;
import org.verbena.transport.MemoryDomain;
import org.verbena.transport.MessageClaims;
import org.verbena.transport.MessageClaims.Outcome;
import org.verbena.transport.buffer.BufferPoolOptions;
import org.verbena.transport.buffer.RegisteredBufferPool;
import org.verbena.transport.protocol.Frame;
import org.verbena.transport.protocol.MessageOptions;
import org.verbena.transport.protocol.Negotiated;
import org.verbena.transport.protocol.Role;
import org.verbena.transport.protocol.memory.MessageBuffers;

/**
 * One end of a test: a connection, its pools, its user. Every message carries its number and a pattern made from it;
 * whatever comes back is checked against what the other end sent.
 */
final class Party implements MessageListener {
    /** Plenty. */
    static final long POOL_BYTES = 4 << 20;

    final String name;
    final SimulatedEndpoint endpoint;
    final MessageOptions options;
    final RegisteredBufferPool sendPool;
    final RegisteredBufferPool receivePool;
    final MessageBuffers buffers;
    final MessageConnection connection;
    final Random random;
    Party other;

    // What was submitted and what was reported.
    int sent;
    int sentWhenInactive;
    int oneSidedAskedWhenInactive;
    int told;
    int succeeded;
    int received;
    int immediatesSent;
    int immediatesReceived;
    int active;
    int inactive;
    int pongs;
    int oneSidedAsked;
    int oneSidedTold;
    int oneSidedSucceeded;

    @Nullable Throwable oneSidedFailure;

    final List<Integer> sizes = new ArrayList<>();
    final Deque<Object> expectedOrder = new ArrayDeque<>();
    final Deque<ByteBuf> kept = new ArrayDeque<>();
    final List<Throwable> failures = new ArrayList<>();

    /** The numbers of messages that were claimed, beyond those in the order of outcomes. */
    private final Deque<Integer> claimed = new ArrayDeque<>();

    @Nullable Throwable inactiveCause;

    boolean reading = true;
    boolean keepMessages;
    boolean echo;
    boolean toggleInCallbacks;
    long deadlineNanos = MessageConnection.NO_DEADLINE;

    /** What the user does within callbacks, now and then. */
    Runnable whim = () -> {};

    /** What the user does when the connection reports another deadline. */
    Runnable onDeadline = () -> {};

    @Nullable Boolean lastWritable;

    /** STREAM: the bytes of message number {@link #received} that have arrived. */
    private int receivedOfMessage;

    int ended;
    int endsTold;

    private boolean insideListener;

    Party(
            String name,
            Role role,
            SimulatedEndpoint endpoint,
            MessageOptions options,
            Random random,
            EnumSet<MemoryDomain.Access> access,
            long poolBytes) {
        this.name = name;
        this.endpoint = endpoint;
        this.options = options;
        this.random = random;
        BufferPoolOptions poolOptions = new BufferPoolOptions(
                poolBytes, 256 << 10, 1 << 20, access, BufferPoolOptions.Exhaustion.FAIL, 0, 0, false);
        sendPool = new RegisteredBufferPool(endpoint.domain, poolOptions);
        receivePool = new RegisteredBufferPool(endpoint.domain, poolOptions);
        buffers = new MessageBuffers(sendPool, receivePool);
        connection = new MessageConnection(role, options, domain -> buffers, this, () -> endpoint.network.nowNanos);
    }

    /** Listens to the frames that are sent. */
    void onFrameSent(Consumer<Frame> sent) {
        connection.setFrameListener(new Frame.Listener() {
            @Override
            public void onFrameSent(Frame frame) {
                sent.accept(frame);
            }

            @Override
            public void onFrameReceived(Frame frame) {}
        });
    }

    /** Another connection of the same process. */
    Party(String name, Role role, SimulatedEndpoint endpoint, Party sibling) {
        this.name = name;
        this.endpoint = endpoint;
        this.options = sibling.options;
        this.random = sibling.random;
        sendPool = sibling.sendPool;
        receivePool = sibling.receivePool;
        buffers = sibling.buffers;
        connection = new MessageConnection(role, options, domain -> buffers, this, () -> endpoint.network.nowNanos);
    }

    static Party of(String name, Role role, SimulatedEndpoint endpoint, MessageOptions options) {
        return of(name, role, endpoint, options, POOL_BYTES);
    }

    static Party of(String name, Role role, SimulatedEndpoint endpoint, MessageOptions options, long poolBytes) {
        return new Party(
                name,
                role,
                endpoint,
                options,
                endpoint.network.random,
                EnumSet.of(MemoryDomain.Access.LOCAL_WRITE),
                poolBytes);
    }

    /** Frees the memory that no buffer lives in. */
    void trimPools() {
        sendPool.trim();
        receivePool.trim();
    }

    /** A message in registered memory, whole. */
    void sendPooled(int length) {
        int number = sent++;
        sizes.add(length);
        ByteBuf pooled = sendPool.allocate(Math.max(1, length));
        connection.send(fill(pooled, number, 0, length), this::told, number);
    }

    /** A message on the heap, which goes in fragments. */
    void sendHeap(int length) {
        int number = sent++;
        sizes.add(length);
        connection.send(fill(Unpooled.buffer(Math.max(1, length)), number, 0, length), this::told, number);
    }

    /** As {@link #sendHeap}, of a message that nobody awaits. */
    void sendUnawaited(int length) {
        int number = sent++;
        sizes.add(length);
        connection.sendUnawaited(fill(Unpooled.buffer(Math.max(1, length)), number, 0, length), this::told, number);
    }

    /** A message that fills these buffers. */
    void sendSges(List<ByteBuf> pieces) {
        int number = sent++;
        CompositeByteBuf composite = Unpooled.compositeBuffer(pieces.size());
        int length = 0;
        for (ByteBuf piece : pieces) {
            int bytes = piece.capacity();
            composite.addComponent(true, fill(piece, number, length, bytes));
            length += bytes;
        }
        sizes.add(length);
        connection.send(composite, this::told, number);
    }

    static byte pattern(int number, int index) {
        return (byte) (number * 31 + index * 7 + (index >>> 8));
    }

    /** A message of one of the kinds of memory that users have. */
    ByteBuf message(int number, int length) {
        return switch (random.nextInt(6)) {
            case 0 -> fill(Unpooled.directBuffer(Math.max(1, length)), number, 0, length);
            case 1 -> fill(Unpooled.buffer(Math.max(1, length)), number, 0, length);
            case 2 -> composite(number, length);
            default -> {
                ByteBuf pooled = sendPool.tryAllocate(length + 3, Integer.MAX_VALUE);
                if (pooled == null) {
                    yield fill(Unpooled.directBuffer(Math.max(1, length)), number, 0, length);
                }
                // Not at the start of its block, as real messages are not.
                pooled.writeZero(3).skipBytes(3);
                fill(pooled, number, 0, length);
                yield random.nextBoolean() ? pooled : pooled.slice();
            }
        };
    }

    private ByteBuf composite(int number, int length) {
        CompositeByteBuf composite = Unpooled.compositeBuffer(Integer.MAX_VALUE);
        int at = 0;
        while (at < length) {
            int part = Math.min(length - at, 1 + random.nextInt(Math.max(1, length / 2)));
            ByteBuf piece = random.nextInt(4) == 0 ? null : sendPool.tryAllocate(part, part);
            if (piece == null) {
                piece = random.nextBoolean() ? Unpooled.directBuffer(part) : Unpooled.buffer(part);
            }
            composite.addComponent(true, fill(piece, number, at, part));
            at += part;
        }
        return composite;
    }

    private static ByteBuf fill(ByteBuf buffer, int number, int from, int length) {
        for (int i = 0; i < length; i++) {
            buffer.writeByte(pattern(number, from + i));
        }
        return buffer;
    }

    void send(int length) {
        int number = sent++;
        sizes.add(length);
        connection.send(message(number, length), this::told, number);
    }

    /** STREAM: closes this end's half. */
    void shutdownOutput() {
        int after = sent;
        connection.shutdownOutput(
                (context, cause) -> {
                    assertThat(told)
                            .as("%s: the end is reported after what was sent", name)
                            .isEqualTo(after);
                    endsTold++;
                },
                null);
    }

    /** Claims room for a message, fills it and commits it. */
    Outcome claim(int length) {
        Outcome outcome = connection.claims().tryClaim(length);
        if (outcome == Outcome.CLAIMED) {
            fillAndCommit(length);
        }
        return outcome;
    }

    /** Fills the claim that is open, and commits it. Nothing reports its outcome. */
    void fillAndCommit(int length) {
        MessageClaims claims = connection.claims();
        if (claims.buffer().refCnt() == 0) {
            return; // the connection has ended, and the claim with it
        }
        fill(claims.buffer().clear(), sent, 0, length);
        if (claims.commit()) {
            claimed.add(sent++);
            sizes.add(length);
            passOverClaimed();
        }
    }

    private void passOverClaimed() {
        while (!claimed.isEmpty() && claimed.peek() == told) {
            claimed.remove();
            told++;
            succeeded++;
        }
    }

    private void told(@Nullable Object context, @Nullable Throwable cause) {
        assertThat(inactive == 0 || told >= sentWhenInactive)
                .as("%s: outcomes come before the end", name)
                .isTrue();
        assertThat(context).as("%s: outcomes come in the order sent", name).isEqualTo(told);
        told++;
        passOverClaimed();
        if (cause == null) {
            succeeded++;
            assertThat(failures)
                    .as("%s: nothing succeeds after a failure", name)
                    .isEmpty();
        } else {
            failures.add(cause);
        }
        act();
    }

    /** Does within a callback what users do. */
    private void act() {
        boolean outer = insideListener;
        insideListener = true;
        try {
            whim.run();
        } finally {
            insideListener = outer;
        }
    }

    void oneSidedTold(@Nullable Object context, @Nullable Throwable cause) {
        // What is submitted after the end fails at once.
        assertThat(inactive == 0 || oneSidedTold >= oneSidedAskedWhenInactive)
                .as("%s: outcomes come before the end", name)
                .isTrue();
        oneSidedTold++;
        if (cause == null) {
            oneSidedSucceeded++;
            if (context instanceof Runnable check) {
                check.run();
            }
        } else {
            oneSidedFailure = cause;
        }
        act();
    }

    void setReading(boolean now) {
        reading = now;
        if (connection.setReading(now) && !insideListener) {
            connection.deliverPending();
        }
    }

    void releaseKept(int most) {
        for (int i = 0; i < most && !kept.isEmpty(); i++) {
            kept.remove().release();
        }
    }

    @Override
    public void onPrepared(MessageConnection from) {
        act();
    }

    @Override
    public void onActive(MessageConnection from, Negotiated negotiated) {
        assertThat(++active).isEqualTo(1);
        assertThat(inactive).isZero();
        act();
    }

    @Override
    public void onMessage(MessageConnection from, ByteBuf message) {
        assertThat(reading).as("%s: messages come only while reading", name).isTrue();
        assertThat(active).isEqualTo(1);
        assertThat(inactive).isZero();
        if (options.framing() == Framing.STREAM) {
            checkBytes(message);
            settleMessage(message);
            return;
        }
        int number = received++;
        assertThat(number).as("%s: no message out of nothing", name).isLessThan(other.sizes.size());
        assertThat(message.readableBytes())
                .as("%s: length of message %d", name, number)
                .isEqualTo(other.sizes.get(number));
        for (int i = 0, at = message.readerIndex(); i < message.readableBytes(); i++) {
            if (message.getByte(at + i) != pattern(number, i)) {
                throw new AssertionError(
                        name + ": message " + number + " of " + message.readableBytes() + " bytes differs at " + i);
            }
        }
        settleMessage(message);
    }

    /** STREAM: what was sent as messages comes in pieces of any size. */
    private void checkBytes(ByteBuf bytes) {
        assertThat(ended).as("%s: nothing comes after the end", name).isZero();
        assertThat(bytes.isReadable()).as("%s: no empty reads", name).isTrue();
        for (int at = bytes.readerIndex(); at < bytes.writerIndex(); at++) {
            assertThat(received).as("%s: no byte out of nothing", name).isLessThan(other.sizes.size());
            if (bytes.getByte(at) != pattern(received, receivedOfMessage)) {
                throw new AssertionError(name + ": byte " + receivedOfMessage + " of message " + received + " differs");
            }
            if (++receivedOfMessage == other.sizes.get(received)) {
                received++;
                receivedOfMessage = 0;
            }
        }
    }

    private void settleMessage(ByteBuf message) {
        insideListener = true;
        try {
            if (echo) {
                sizes.add(message.readableBytes());
                // An echo keeps the number: both ends count alike.
                connection.send(message, this::told, sent++);
                return;
            }
            if (keepMessages) {
                kept.add(message);
            } else {
                message.release();
            }
            if (toggleInCallbacks && random.nextInt(8) == 0) {
                setReading(false);
            }
            whim.run();
        } finally {
            insideListener = false;
        }
    }

    @Override
    public void onEnd(MessageConnection from) {
        assertThat(reading).as("%s: the end comes only while reading", name).isTrue();
        assertThat(inactive).isZero();
        assertThat(++ended).isEqualTo(1);
        act();
    }

    @Override
    public void onReadComplete(MessageConnection from) {
        if (echo || random.nextBoolean()) {
            connection.flush();
        }
        act();
    }

    @Override
    public void onImmediate(MessageConnection from, int immediateData, int lengthBytes) {
        assertThat(immediateData).isEqualTo(immediatesReceived);
        immediatesReceived++;
        act();
    }

    @Override
    public void onWritabilityChanged(MessageConnection from, boolean writable) {
        assertThat(writable).isNotEqualTo(lastWritable);
        lastWritable = writable;
        act();
    }

    @Override
    public void onDeadline(MessageConnection from, long nanos) {
        assertThat(nanos).isEqualTo(connection.nextDeadlineNanos());
        assertThat(deadlineNanos == MessageConnection.NO_DEADLINE || nanos < deadlineNanos)
                .as("%s: only an earlier deadline is reported", name)
                .isTrue();
        deadlineNanos = nanos;
        onDeadline.run();
        act();
    }

    /** Calls the connection if its deadline has come. */
    boolean tick() {
        if (deadlineNanos > endpoint.network.nowNanos) {
            return false;
        }
        deadlineNanos = MessageConnection.NO_DEADLINE;
        connection.onDeadline(endpoint.network.nowNanos);
        return true;
    }

    @Override
    public void onResumable(MessageConnection from) {
        endpoint.tasks.add(connection::resume);
    }

    @Override
    public void onPong(MessageConnection from, long nonce) {
        assertThat(nonce).isEqualTo(4711L + pongs);
        pongs++;
        act();
    }

    @Override
    public void onInactive(MessageConnection from, @Nullable Throwable cause) {
        assertThat(++inactive).as("%s: one end", name).isEqualTo(1);
        inactiveCause = cause;
        sentWhenInactive = sent;
        oneSidedAskedWhenInactive = oneSidedAsked;
        act();
    }

    /** All memory must have been released. */
    void checkMemory() throws Exception {
        releaseKept(Integer.MAX_VALUE);
        endpoint.endLoop();
        assertThat(sendPool.metrics().usedBytes())
                .as("%s: bytes of send buffers still out", name)
                .isZero();
        assertThat(receivePool.metrics().usedBytes())
                .as("%s: bytes of receive buffers still out", name)
                .isZero();
        sendPool.close();
        receivePool.close();
        assertThat(endpoint.domain.liveRegions()).as("%s: regions", name).isZero();
    }

    @Override
    public String toString() {
        return name + ": " + connection + " " + endpoint + " sent " + sent + " told " + told + " received " + received
                + " kept " + kept.size() + " " + receivePool.metrics() + " inactive " + inactive
                + (oneSidedFailure == null ? "" : " " + oneSidedFailure)
                + (inactiveCause == null ? "" : " " + inactiveCause);
    }
}
