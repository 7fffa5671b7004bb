package org.verbena.api.internal.request;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufAllocator;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import io.netty.buffer.UnpooledByteBufAllocator;
import io.netty.channel.EventLoop;
import io.netty.util.concurrent.EventExecutor;
import io.netty.util.concurrent.Future;
import io.netty.util.concurrent.Promise;
import java.net.SocketAddress;
import java.util.Iterator;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Flow;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.api.internal.loop.LoopFuture;
import org.verbena.api.internal.loop.VirtualNotifier;
import org.verbena.api.service.MessageStream;
import org.verbena.api.service.Metadata;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.spi.LoopClock;

/**
 * One end of a stream. All its work is done in turns, of which there is one at a time: on the loop of the connection
 * once there is one. A client's stream has none until its request has begun, and may get another one if that could not
 * begin it.
 *
 * <pre>{@code
 * program -- send --> OutgoingItems -- as far as the peer's credit goes --> Outgoing
 * program <-- receive, onNext -- IncomingItems <-- as far as this end's credit goes -- Streams
 * }</pre>
 */
public final class ItemStream implements MessageStream {
    private static final Logger LOG = LoggerFactory.getLogger(Messenger.class);

    /** The request that a stream belongs to. */
    interface Owner {
        /** Tells the peer that this end sends nothing more. On the loop. */
        void end0();

        /** Fails the request: a message is lost, or more of them than may be. Any thread. */
        void breakOff(Throwable cause);

        /** A message is sent: what goes with the first one is known now. Any thread. */
        default void sending() {}

        /** What goes with the first message. On the loop. */
        default Headers firstHeaders0() {
            return Headers.NONE;
        }
    }

    /**
     * A stream's place on a connection, and the credit that both ends have there. A client's stream that gets another
     * place begins there with none. On its loop only.
     */
    static final class Place {
        private final Messenger messenger;
        private final long number;
        private final Owner owner;

        /** What this end may send. */
        long creditMessages;

        long creditBytes;

        /** Whether this end has sent its last. */
        boolean ended;

        /** Whether a message is lost, so that no further one may go or come, nor an end as if there were no hole. */
        boolean broken;

        /** Messages that were written, and neither sent nor lost. */
        int unsent;

        /** Whether the headers of the first message were sent, or there are none. */
        private boolean headed;

        /** What the peer has sent with its first message; null before that. */
        private @Nullable Metadata received;

        /** Whether the peer has sent a message. */
        private boolean hasReceived;

        /** Whether the peer has had credit. */
        boolean opened;

        /** What the peer may send. */
        long grantedMessages;

        long grantedBytes;

        /**
         * Creates one.
         *
         * @param number of the frames that it sends
         */
        Place(Messenger messenger, long number, Owner owner) {
            this.messenger = messenger;
            this.number = number;
            this.owner = owner;
        }

        Messenger messenger() {
            return messenger;
        }

        /** Whether the end may follow what was written: nothing of that can be lost any more. */
        boolean hasSentAll() {
            return !ended && !broken && unsent == 0;
        }

        Owner owner() {
            return owner;
        }

        private EventLoop loop() {
            return messenger.channel().eventLoop();
        }

        /** Writes what goes in front of the first message, if it has not; false if there is no memory for it. */
        boolean writeHeaders0() {
            if (headed) {
                return true;
            }
            headed = true;
            Headers headers = owner.firstHeaders0();
            if (headers.isEmpty()) {
                return true;
            }
            ByteBuf payload;
            try {
                payload = messenger.outgoing().headersOf(headers);
            } catch (RuntimeException | Error noMemory) {
                broken = true;
                owner.breakOff(noMemory);
                return false;
            }
            write0(Frames.ITEMS_HEADERS, payload);
            return true;
        }

        /** Writes a frame without which the stream cannot go on. */
        Future<Void> write0(int kind, ByteBuf payload) {
            Future<Void> sent = messenger.outgoing().write(kind, number, payload);
            sent.addListener(done -> {
                if (!done.isSuccess()) {
                    broken = true;
                    owner.breakOff(done.cause());
                }
            });
            return sent;
        }
    }

    /** Gives it up for the program. */
    private volatile @Nullable Runnable canceller;

    private final OutgoingItems outgoing;
    private final IncomingItems incoming;
    private final VirtualNotifier elsewhere;
    private final Promise<Void> outcome;

    /** What the other end has sent with its first message, and with its end. */
    private final Promise<Metadata> metadata;

    private final Promise<Metadata> trailers;

    /** Null until it has begun. Written by the loop. */
    private volatile @Nullable Place place;

    /** How often a turn was asked for. Who raises it from 0 sees to it that there is one. */
    private final AtomicInteger wakes = new AtomicInteger();

    /** Why it was given up before it had begun; null for another reason. */
    private volatile @Nullable Throwable broken;

    // Written once, the failure first. Read by any thread.
    private volatile @Nullable Throwable failure;
    private volatile boolean over;

    /** Whether this is the end that answers the request. */
    private final boolean answers;

    private ItemStream(boolean answers, LoopClock clock, UnsentItems unsent) {
        this.answers = answers;
        elsewhere = VirtualNotifier.of(clock);
        outcome = elsewhere.newPromise();
        metadata = elsewhere.newPromise();
        trailers = elsewhere.newPromise();
        outgoing = new OutgoingItems(this, unsent);
        incoming = new IncomingItems(this, !answers);
    }

    /**
     * Makes the end of the client that begins it.
     *
     * @param clock the client's
     * @param unsent what waits to be sent: on the connection that it begins on, probably, or where there is none
     */
    public static ItemStream ofClient(LoopClock clock, UnsentItems unsent) {
        return new ItemStream(false, clock, unsent);
    }

    /** Makes the end of the handler that answers it, if it accepts it. */
    static ItemStream ofHandler(LoopClock clock, Runnable canceller, UnsentItems unsent, Metadata received) {
        ItemStream stream = new ItemStream(true, clock, unsent);
        stream.canceller = canceller;
        stream.metadata.setSuccess(received);
        return stream;
    }

    /** The client has its request, with which it ends. Called once, before the program has the stream. */
    public ItemStream begun(Future<Void> request) {
        canceller = () -> request.cancel(false);
        request.addListener((Future<Void> done) -> ended(done.cause()));
        return this;
    }

    /** Begins on a connection, which knows nothing of it. On the loop. */
    void begin0(Place here) {
        place = here;
        wake();
    }

    /** The handler wants it, and messages may come. Any thread. */
    ItemStream accept() {
        if (incoming.accept()) {
            wake();
        }
        return this;
    }

    // ---- turns

    /** There is something to do. Any thread. */
    void wake() {
        if (wakes.getAndIncrement() == 0 && !moved(place, true)) {
            turn();
        }
    }

    /** Returns whether the event loop runs the turn, later, when more may wait. Without a loop it runs here. */
    private boolean moved(@Nullable Place here, boolean anyway) {
        if (here == null || (!anyway && here.loop().inEventLoop())) {
            return false;
        }
        try {
            here.loop().execute(this::turn);
            return true;
        } catch (RejectedExecutionException ended) {
            LOG.trace("{}: the event loop has ended", here.messenger().channel(), ended);
            return false;
        }
    }

    private void turn() {
        int seen = wakes.get();
        do {
            Place here = place;
            if (moved(here, false)) {
                return;
            }
            boolean isOver = over;
            try {
                outgoing.turn0(here, isOver);
                incoming.turn0(here, isOver);
            } catch (Throwable thrown) { // for want of memory: there must be further turns
                breakOff(thrown);
            }
            seen = wakes.addAndGet(-seen);
        } while (seen != 0);
    }

    // ---- frames

    /** A message has arrived; takes ownership of it. On the loop. */
    void item0(long correlation, ByteBuf message) {
        Place here = place;
        if (here == null || !incoming.take0(here, message.readableBytes())) {
            message.release();
            throw Frames.breach(Frames.ITEM, correlation, "came without credit, or after the end");
        }
        if (!here.hasReceived) {
            here.hasReceived = true;
            metadata.trySuccess(Metadata.EMPTY); // unless it has come before
        }
        last0(message);
    }

    /** The headers of the first message have arrived. On the loop. */
    void headers0(long correlation, Headers headers) {
        Place here = place;
        if (here == null || here.hasReceived || here.received != null) {
            throw Frames.breach(Frames.ITEMS_HEADERS, correlation, "came twice, or behind the first message");
        }
        here.received = headers.metadata();
        metadata.trySuccess(headers.metadata());
    }

    /**
     * The end of the other end has arrived. On the loop, before the stream is over.
     *
     * @param last what it has sent with its end
     * @return all that it has sent beside its messages; the latter replaces the former
     */
    Metadata headersEnded0(Metadata last) {
        Place here = place;
        Metadata first = here == null ? null : here.received;
        if (first == null && (here == null || !here.hasReceived)) { // the only ones
            metadata.trySuccess(last);
        }
        trailers.trySuccess(last);
        try {
            return first == null ? last : first.with(last);
        } catch (IllegalArgumentException tooMuch) {
            return last;
        }
    }

    /** As {@link #item0}, without credit. */
    void last0(ByteBuf message) {
        Place here = place;
        if (over || (here != null && here.broken)) {
            message.release();
        } else if (incoming.isAwaited0() && wakes.compareAndSet(0, 1)) {
            incoming.deliver0(message);
            turn();
        } else {
            keep0(message);
        }
    }

    /** Keeps a copy of a message, since its memory is the receiver's, which may need it for others. */
    private void keep0(ByteBuf message) {
        ByteBuf copy;
        try {
            copy = Unpooled.wrappedBuffer(ByteBufUtil.getBytes(message));
        } catch (OutOfMemoryError noMemory) {
            lost0(noMemory);
            return;
        } finally {
            message.release();
        }
        Throwable refusal = incoming.keep0(copy);
        if (refusal == null) {
            wakeReader();
        } else {
            lost0(refusal);
        }
    }

    /** A message that came is lost: what follows it must not be taken for what follows the one before. */
    private void lost0(Throwable cause) {
        Place here = place;
        if (here != null) {
            here.broken = true;
        }
        breakOff(cause);
    }

    /** A message is lost, or the program has broken a rule: it cannot go on. Any thread. */
    void breakOff(Throwable cause) {
        Place here = place;
        if (here != null) {
            here.owner().breakOff(cause);
        } else {
            broken = cause;
            cancel();
        }
    }

    /** The program cannot make a message of what it sends, or read what it has received. Any thread. */
    void fail(Throwable cause) {
        incoming.discard();
        breakOff(cause);
    }

    /** The message of the request is the first of the stream's; a copy. Before it is accepted. */
    void first(ByteBuf message) {
        Throwable refusal = incoming.first(message);
        if (refusal != null) {
            breakOff(refusal);
        }
    }

    /** The peer takes more. On the loop. */
    void credit0(long correlation, long messages, long bytes) {
        Place here = place;
        if (here != null && !OutgoingItems.credit0(here, messages, bytes)) {
            throw Frames.breach(Frames.ITEM_CREDIT, correlation, "gives more credit than there can be");
        }
        wake();
    }

    /** The peer sends nothing more. On the loop. */
    void peerEnded0(long correlation) {
        if (!incoming.end0()) {
            throw Frames.breach(Frames.END, correlation, "came twice");
        }
        wakeReader();
    }

    private void wakeReader() {
        synchronized (incoming) {
            incoming.notifyAll();
        }
        if (incoming.isSubscribed()) {
            wake();
        }
    }

    // ---- the end

    /** Ends it with its request, which has failed or not. Any thread; only the first call has an effect. */
    void ended(@Nullable Throwable cause) {
        synchronized (this) {
            if (over) {
                return;
            }
            Throwable early = broken;
            failure = cause instanceof CancellationException && early != null ? early : cause;
            over = true;
        }
        Throwable why = failure;
        if (answers && why != null) {
            incoming.discard(); // nobody waits for what the handler would make of it
        }
        incoming.forget();
        if (why == null) {
            metadata.trySuccess(Metadata.EMPTY);
            trailers.trySuccess(Metadata.EMPTY);
            outcome.trySuccess(null);
        } else {
            metadata.tryFailure(why);
            trailers.tryFailure(why);
            outcome.tryFailure(why);
        }
        wakeReader();
        wake();
    }

    boolean isOver() {
        return over;
    }

    /** Why it has failed; null if it has not. */
    @Nullable Throwable failure() {
        return failure;
    }

    /** Whether the program, which has used it, has failed for that reason only. */
    boolean hasFailedBy(Throwable thrown) {
        Throwable cause = failure;
        Throwable inner = thrown.getCause();
        boolean wrapped = thrown instanceof ExecutionException || thrown instanceof CompletionException;
        Throwable shown = wrapped && inner != null ? inner : thrown;
        return cause != null
                && (cause.equals(shown)
                        || (cause instanceof CancellationException && shown instanceof CancellationException)
                        || (cause instanceof ConnectionException && shown instanceof ConnectionException));
    }

    /** Why nothing more can be done with it. */
    Throwable refusal() {
        Throwable cause = failure;
        return cause == null ? new CancellationException("the stream is over") : cause;
    }

    @Nullable Place place() {
        return place;
    }

    /** The program sends a message, which will be accepted. Any thread. */
    void sending() {
        Place here = place;
        if (here != null) {
            here.owner().sending();
        }
    }

    /** Where it goes; null if it has no connection. */
    @Nullable SocketAddress peer() {
        Place here = place;
        return here == null ? null : here.messenger().channel().remoteAddress();
    }

    /** Allocates the messages that it sends. */
    ByteBufAllocator allocator() {
        Place here = place;
        return here == null
                ? UnpooledByteBufAllocator.DEFAULT
                : here.messenger().channel().alloc();
    }

    EventExecutor notifier() {
        Place here = place;
        return here == null ? elsewhere : here.messenger().notifier();
    }

    // ---- the program's side

    @Override
    public Future<Void> send(ByteBuf message) {
        return outgoing.send(message, false);
    }

    @Override
    public CompletableFuture<Void> send(byte[] message) {
        ByteBuf copy;
        try {
            copy = Frames.copyOf(allocator(), Messenger.buffer(message));
        } catch (RuntimeException | Error noMemory) {
            return LoopFuture.of(notifier().newFailedFuture(noMemory));
        }
        return LoopFuture.of(outgoing.send(copy, false));
    }

    @Override
    public void sendAll(Flow.Publisher<? extends ByteBuf> messages) {
        messages.subscribe(new PublishedItems(this, outgoing));
    }

    @Override
    public boolean isWritable() {
        return outgoing.isWritable();
    }

    @Override
    public CompletableFuture<Void> whenWritable() {
        Promise<Void> writable = notifier().newPromise();
        outgoing.await(writable);
        wake();
        return LoopFuture.of(writable);
    }

    @Override
    public void end() {
        outgoing.end();
        wake();
    }

    @Override
    public @Nullable ByteBuf receive() throws InterruptedException {
        return incoming.receive();
    }

    private byte @Nullable [] receiveBytes() throws InterruptedException {
        ByteBuf message = receive();
        if (message == null) {
            return null;
        }
        try {
            // Most are copies that nobody else has.
            return ByteBufUtil.getBytes(message, message.readerIndex(), message.readableBytes(), false);
        } finally {
            message.release();
        }
    }

    @Override
    public Iterator<byte[]> iterator() {
        return new ReceivedItems<>(this::receiveBytes);
    }

    @Override
    public Flow.Publisher<ByteBuf> messages() {
        return incoming;
    }

    @Override
    public CompletableFuture<Metadata> metadata() {
        return LoopFuture.of(copyOf(metadata));
    }

    @Override
    public CompletableFuture<Metadata> trailers() {
        return LoopFuture.of(copyOf(trailers));
    }

    @Override
    public CompletableFuture<Void> whenOver() {
        Promise<Void> seen = copyOf(outcome);
        seen.addListener(done -> {
            if (done.isCancelled()) {
                cancel();
            }
        });
        return LoopFuture.of(seen);
    }

    /** One that the program may complete. */
    private <T> Promise<T> copyOf(Promise<T> original) {
        Promise<T> copy = elsewhere.newPromise();
        if (original.isDone()) {
            end(original, copy);
        } else {
            original.addListener(done -> end(original, copy));
        }
        return copy;
    }

    private static <T> void end(Promise<T> original, Promise<T> copy) {
        Throwable cause = original.cause();
        if (cause == null) {
            copy.trySuccess(original.getNow());
        } else {
            copy.tryFailure(cause);
        }
    }

    @Override
    public void cancel() {
        Runnable giveUp = canceller;
        if (!over && giveUp != null) {
            incoming.discard();
            giveUp.run();
        }
    }

    @Override
    public void close() {
        if (!(answers ? outgoing.isEnding() : incoming.hasPeerEnded())) { // the server's end is the stream's
            cancel();
        }
    }
}
