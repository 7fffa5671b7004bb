package org.verbena.testing;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.MemoryDomain.Access;
import org.verbena.transport.WorkStatus;
import org.verbena.transport.software.ConnectionMemory;
import org.verbena.transport.software.Placement;
import org.verbena.transport.software.SoftwareDomain;
import org.verbena.transport.software.SoftwareMemory;
import org.verbena.transport.spi.EndpointHandler;

/** Does what the peer asks for, in this end's receives and memory. Not thread-safe; confined to the loop's thread. */
final class PeerRequests {
    private static final VarHandle LONG = ValueLayout.JAVA_LONG.varHandle();

    private final InProcessEndpoint owner;
    private final SoftwareDomain domain;
    private final ConnectionMemory own;
    private final Placement receive = new Placement();
    private String denial = "";

    PeerRequests(InProcessEndpoint owner, SoftwareDomain domain, ConnectionMemory own) {
        this.owner = owner;
        this.domain = domain;
        this.own = own;
    }

    Placement receiveInProgress() {
        return receive;
    }

    void onMessage(Delivery message) {
        int bytes = message.lengthBytes();
        if (!owner.takeReceive(receive)) {
            notReady(message, "a message of " + bytes + " bytes");
            return;
        }
        if (bytes > receive.capacityBytes()) {
            owner.receiveTooSmall();
            owner.refuse(
                    WorkStatus.REMOTE_INVALID_REQUEST_ERROR,
                    message.request(),
                    "a message of " + bytes + " bytes for a receive of " + receive.capacityBytes());
            return;
        }
        receive.place(MemorySegment.ofArray(message.bytes()), 0, bytes);
        if (message.flags() == EndpointHandler.WITH_INVALIDATE && !invalidate(message.key())) {
            deny(message, "a key to invalidate");
            return;
        }
        owner.onReceived(receive, bytes, message.flags(), message.word());
    }

    private boolean invalidate(int key) {
        SoftwareMemory memory = domain.find(key);
        if (memory == null || !memory.isOwnOf(own) || !memory.invalidate()) {
            denial = "it is not a key that only this peer was given";
            return false;
        }
        return true;
    }

    void onWrite(Delivery write) {
        if (write.lengthBytes() > 0) {
            SoftwareMemory target = enter(write, Access.REMOTE_WRITE);
            if (target == null) {
                deny(write, "a write");
                return;
            }
            try {
                MemorySegment.copy(
                        write.bytes(),
                        0,
                        target.segment(),
                        ValueLayout.JAVA_BYTE,
                        write.address() - target.address(),
                        write.lengthBytes());
            } finally {
                target.exit();
            }
        }
        if (write.flags() == 0) {
            return;
        }
        if (!owner.takeReceive(receive)) {
            notReady(write, "a write with immediate data");
            return;
        }
        owner.onReceived(
                receive,
                write.lengthBytes(),
                EndpointHandler.WITH_IMMEDIATE | EndpointHandler.REMOTE_WRITE,
                write.word());
    }

    void onRead(Delivery read) {
        byte[] bytes = new byte[read.lengthBytes()];
        if (bytes.length > 0) {
            SoftwareMemory source = enter(read, Access.REMOTE_READ);
            if (source == null) {
                deny(read, "a read");
                return;
            }
            try {
                MemorySegment.copy(
                        source.segment(),
                        ValueLayout.JAVA_BYTE,
                        read.address() - source.address(),
                        bytes,
                        0,
                        bytes.length);
            } finally {
                source.exit();
            }
        }
        owner.answer(Delivery.answer(read.request(), bytes));
    }

    void onAtomic(Delivery atomic) {
        SoftwareMemory target = enter(atomic, Access.REMOTE_ATOMIC);
        if (target == null) {
            deny(atomic, "an atomic");
            return;
        }
        long old;
        try {
            long at = atomic.address() - target.address();
            old = atomic.kind() == Delivery.Kind.FETCH_AND_ADD
                    ? (long) LONG.getAndAdd(target.segment(), at, atomic.operand())
                    : (long) LONG.compareAndExchange(target.segment(), at, atomic.operand(), atomic.swap());
        } finally {
            target.exit();
        }
        owner.answer(Delivery.answer(atomic.request(), old));
    }

    /** Finds memory that the peer may use, and begins its visit; null with a {@link #denial}. */
    private @Nullable SoftwareMemory enter(Delivery request, Access right) {
        SoftwareMemory memory = domain.find(request.key());
        if (!own.isAllowed()) {
            denial = "the peer has not proved its pre-shared key yet";
        } else if (memory == null) {
            denial = "nothing is registered with this key";
        } else if (!memory.isFor(own)) {
            denial = "the memory is for other peers";
        } else if (!memory.allows(right)) {
            denial = "the memory was registered without " + right;
        } else if (!memory.contains(request.address(), request.lengthBytes())) {
            denial = "it exceeds the memory of " + memory.lengthBytes() + " bytes at 0x"
                    + Long.toHexString(memory.address());
        } else if (!memory.tryEnter()) {
            denial = "the memory is closed, or its key was invalidated";
        } else {
            return memory;
        }
        return null;
    }

    private void deny(Delivery request, String what) {
        owner.refuse(WorkStatus.REMOTE_ACCESS_ERROR, request.request(), what + ": " + denial);
    }

    private void notReady(Delivery request, String what) {
        owner.refuse(WorkStatus.RECEIVER_NOT_READY_RETRY_EXCEEDED, request.request(), what + ": no receive is posted");
    }
}
