package org.verbena.transport.soft.uring;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/** A kernel that does what a test says: it notes operations, and completes them when, and as, it is told. */
@SuppressWarnings("restricted") // reads what would be sent
final class FakeRing implements Ring {
    /** An operation that was given to it. */
    record Operation(String kind, int descriptor, long id, long address, int bytes) {}

    final List<Operation> operations = new ArrayList<>();
    final Set<Integer> provided = new HashSet<>();
    private final Arena arena = Arena.ofShared();
    private final MemorySegment buffers = arena.allocate((long) BUFFERS * BUFFER_STRIDE);
    private final ArrayDeque<long[]> ready = new ArrayDeque<>();
    private Completions completions;
    private int submitted;
    private long enters;
    boolean closed;
    boolean closedIdle;

    FakeRing() {
        for (int i = 0; i < BUFFERS; i++) {
            provided.add(i);
        }
    }

    /** The last operation of a kind for a stream's number that has not ended. */
    Operation pending(String kind) {
        Operation found = null;
        for (Operation operation : operations) {
            if (operation.kind.equals(kind)) {
                found = operation;
            }
        }
        if (found == null) {
            throw new AssertionError("no " + kind + " among " + operations);
        }
        return found;
    }

    boolean isPending(String kind) {
        return operations.stream().anyMatch(operation -> operation.kind.equals(kind));
    }

    /** The kernel does not have the operations from this on. */
    void unsubmit(int first) {
        submitted = first;
    }

    /** The next look finds this. */
    void complete(Operation operation, int result, int flags) {
        if ((flags & MORE) == 0) {
            operations.remove(operation);
        }
        ready.add(new long[] {operation.id, result, flags});
    }

    /** Bytes come for a receive. */
    void receive(Operation operation, byte[] bytes, boolean more) {
        int buffer = provided.iterator().next();
        provided.remove(buffer);
        MemorySegment.copy(
                bytes, 0, buffers, ValueLayout.JAVA_BYTE, (long) buffer * BUFFER_STRIDE + HEADROOM_BYTES, bytes.length);
        complete(operation, bytes.length, 1 | (more ? MORE : 0) | buffer << 16);
    }

    byte[] sent(Operation send) {
        return MemorySegment.ofAddress(send.address).reinterpret(send.bytes).toArray(ValueLayout.JAVA_BYTE);
    }

    @Override
    public void start(Completions to) {
        completions = to;
    }

    @Override
    public MemorySegment buffers() {
        return buffers;
    }

    @Override
    public void provide(int buffer) {
        if (!provided.add(buffer)) {
            throw new AssertionError("buffer " + buffer + " was given back twice");
        }
    }

    @Override
    public void receive(int descriptor, long id) {
        operations.add(new Operation("receive", descriptor, id, 0, 0));
    }

    @Override
    public int send(int descriptor, long address, int bytes, long id) {
        operations.add(new Operation("send", descriptor, id, address, bytes));
        return operations.size() - 1;
    }

    @Override
    public boolean lengthen(int ticket, int bytes) {
        if (ticket < submitted || ticket >= operations.size()) {
            return false;
        }
        Operation was = operations.get(ticket);
        operations.set(ticket, new Operation(was.kind, was.descriptor, was.id, was.address, bytes));
        return true;
    }

    @Override
    public void poll(int descriptor, int events, long id) {
        operations.add(new Operation(events == 1 ? "readable" : "writable", descriptor, id, 0, 0));
    }

    @Override
    public void read(int descriptor, long address, long id) {
        operations.add(new Operation("read", descriptor, id, address, Long.BYTES));
    }

    @Override
    public void cancel(long target, long id) {
        operations.add(new Operation("cancel", -1, id, target, 0));
    }

    @Override
    public void cancelAll(long id) {
        operations.add(new Operation("cancel all", -1, id, 0, 0));
    }

    @Override
    public void submit() {
        submitted = operations.size();
    }

    @Override
    public void submitLast(int descriptor) {
        submitted = operations.size();
    }

    @Override
    public void look() {
        enters++;
        while (!ready.isEmpty()) {
            long[] next = ready.remove();
            completions.completed(next[0], (int) next[1], (int) next[2]);
        }
        submitted = operations.size();
    }

    /** Also cancels what it was told to. */
    @Override
    public void await(long nanos) {
        cancelTold();
        look();
    }

    /** The cancellations take effect. */
    void cancelTold() {
        for (Operation cancel : List.copyOf(operations)) {
            if (cancel.kind.startsWith("cancel")) {
                complete(cancel, 0, 0);
                for (Operation target : List.copyOf(operations)) {
                    if (cancel.kind.equals("cancel all") || target.id == cancel.address && target.descriptor >= 0) {
                        complete(target, -125, 0);
                    }
                }
            }
        }
    }

    @Override
    public long enters() {
        return enters;
    }

    @Override
    public void close(boolean idle) {
        closed = true;
        closedIdle = idle;
    }
}
