package org.verbena.disni;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.Map;
import java.util.function.Consumer;
import org.verbena.verbs.CompletionChannel;
import org.verbena.verbs.CompletionQueue;
import org.verbena.verbs.Context;
import org.verbena.verbs.MemoryRegion;
import org.verbena.verbs.ProtectionDomain;
import org.verbena.verbs.QueuePair;
import org.verbena.verbs.ReceiveQueue;
import org.verbena.verbs.SendQueue;
import org.verbena.verbs.device.ExtendedDeviceAttributes;
import org.verbena.verbs.memory.AccessFlag;
import org.verbena.verbs.memory.AdviceKind;

/** What DiSNI asks of libibverbs. Any thread, as with C. */
public final class Devices {
    /** A wait is made of shorter ones, so that a channel can be closed during one that has no end. */
    private static final long SLICE_MILLIS = 1000;

    final Handles handles = new Handles();

    /** The numbers of devices, which the process keeps open. Guarded by itself; as many as there are devices. */
    private final Map<Context, Handle> contexts = new HashMap<>();

    /** For {@code RdmaProviderNat}, which makes one in a process. */
    public Devices() {}

    private <T> T object(long number, Class<T> type) throws IOException {
        return type.cast(handles.get(number, type).object);
    }

    /** Gives a new object a number, or closes it. */
    <T> long add(T made, Consumer<T> closing) throws IOException {
        try {
            return handles.add(made).number;
        } catch (IOException tooMany) {
            closing.accept(made);
            throw tooMany;
        }
    }

    /** Takes an object's number away and closes it, now or when nothing depends on it any more. */
    @SuppressWarnings("unchecked") // the caller found the handle by its type
    <T> void close(String method, Handle handle, Consumer<T> closing) throws IOException {
        Calls.run(method, () -> handles.close(handle, () -> closing.accept((T) handle.object)));
    }

    /** The number of a device. */
    long number(Context device) throws IOException {
        synchronized (contexts) {
            contexts.keySet().removeIf(known -> !known.isOpen());
            Handle known = contexts.get(device);
            if (known == null) {
                known = handles.add(device);
                contexts.put(device, known);
            }
            return known.number;
        }
    }

    public int commandFd(long context) throws IOException {
        Context device = object(context, Context.class);
        return Calls.call("getContextFd", device::commandFd);
    }

    public int completionVectors(long context) throws IOException {
        Context device = object(context, Context.class);
        return Calls.call("getContextNumCompVectors", device::completionVectors);
    }

    /**
     * What reliable connections can do with memory that is not pinned.
     *
     * @return bits {@code IBV_ODP_SUPPORT_*}, or -1 if the device has no on-demand paging
     */
    public int onDemandOperations(long context) throws IOException {
        Context device = object(context, Context.class);
        try {
            ExtendedDeviceAttributes attributes = device.queryDeviceExtended();
            return attributes.hasOnDemandPaging() ? attributes.reliableOdp() : -1;
        } catch (RuntimeException unknown) {
            return -1;
        }
    }

    public long allocateDomain(long context) throws IOException {
        Context device = object(context, Context.class);
        return Calls.call("allocPd", () -> add(device.allocateProtectionDomain(), ProtectionDomain::close));
    }

    public int domainHandle(long domain) throws IOException {
        ProtectionDomain asked = object(domain, ProtectionDomain.class);
        return Calls.call("getPdHandle", asked::handle);
    }

    public int deallocateDomain(long domain) throws IOException {
        close("deallocPd", handles.get(domain, ProtectionDomain.class), ProtectionDomain::close);
        return 0;
    }

    public long createChannel(long context) throws IOException {
        Context device = object(context, Context.class);
        return Calls.call("createCompChannel", () -> add(device.createCompletionChannel(), CompletionChannel::close));
    }

    public int destroyChannel(long channel) throws IOException {
        close("destroyCompChannel", handles.get(channel, CompletionChannel.class), CompletionChannel::close);
        return 0;
    }

    public long createQueue(long context, long channel, int entries, int vector) throws IOException {
        Context device = object(context, Context.class);
        CompletionChannel events = object(channel, CompletionChannel.class);
        return Calls.call(
                "createCQ", () -> add(device.createCompletionQueue(entries, events, vector), CompletionQueue::close));
    }

    public int destroyQueue(long queue) throws IOException {
        close("destroyCQ", handles.get(queue, CompletionQueue.class), CompletionQueue::close);
        return 0;
    }

    /**
     * Registers memory.
     *
     * @param domain where
     * @param address of it; 0 with the length -1 and {@code IBV_ACCESS_ON_DEMAND} for the address space
     * @param length bytes
     * @param access bits {@code IBV_ACCESS_*}
     * @param localKey address of an int
     * @param remoteKey address of an int
     * @param handle address of an int
     * @return its number
     */
    public long register(long domain, long address, int length, int access, long localKey, long remoteKey, long handle)
            throws IOException {
        ProtectionDomain protection = object(domain, ProtectionDomain.class);
        EnumSet<AccessFlag> rights = rights(access);
        boolean all = address == 0 && length == -1;
        return Calls.call("regMr", () -> {
            MemoryRegion region;
            if (all) {
                if (!rights.contains(AccessFlag.ON_DEMAND)) {
                    throw new IOException("regMr: the address space needs IBV_ACCESS_ON_DEMAND");
                }
                region = protection.registerAddressSpace(rights);
            } else {
                MemorySegment memory = CallerMemory.at(address, length);
                region = protection.registerMemory(memory, rights);
            }
            try {
                CallerMemory.writeInt(localKey, region.localKey());
                CallerMemory.writeInt(remoteKey, region.remoteKey());
                CallerMemory.writeInt(handle, region.handle());
            } catch (IOException noRoom) {
                region.close();
                throw noRoom;
            }
            return add(region, MemoryRegion::close);
        });
    }

    private static EnumSet<AccessFlag> rights(int access) throws IOException {
        EnumSet<AccessFlag> rights = EnumSet.noneOf(AccessFlag.class);
        int left = access;
        for (AccessFlag flag : AccessFlag.values()) {
            if ((access & flag.value()) != 0) {
                rights.add(flag);
                left &= ~flag.value();
            }
        }
        if (left != 0) {
            throw new IOException("regMr: unknown access 0x" + Integer.toHexString(left));
        }
        return rights;
    }

    public int prefetch(long region, long address, int length) throws IOException {
        MemoryRegion advised = object(region, MemoryRegion.class);
        Calls.run(
                "expPrefetchMr",
                () -> advised.advise(AdviceKind.PREFETCH_WRITE, false, address - advised.address(), length));
        return 0;
    }

    public void deregister(long region) throws IOException {
        close("deregMr", handles.get(region, MemoryRegion.class), MemoryRegion::close);
    }

    public int queuePairNumber(long queuePair) throws IOException {
        return object(queuePair, QueuePair.class).number();
    }

    /** Finds out whether a queue pair is open, for a call that does nothing else. */
    public void checkQueuePair(long queuePair) throws IOException {
        handles.get(queuePair, QueuePair.class);
    }

    /**
     * Posts to a send queue.
     *
     * @param queuePair whose
     * @param workRequests address of the first {@code ibv_send_wr}
     */
    public void postSends(long queuePair, long workRequests) throws IOException {
        Handle handle = handles.get(queuePair, QueuePair.class);
        int errno;
        handle.lock.lock();
        try {
            SendQueue queue = ((QueuePair) handle.object).sendQueue();
            CallerMemory.checkElements(workRequests, queue.maxSges());
            errno = queue.tryPostNative(workRequests);
        } catch (RuntimeException closed) {
            throw Calls.failed("postSend", closed);
        } finally {
            handle.lock.unlock();
        }
        if (errno != 0) {
            throw refused("ibv_post_send", errno);
        }
    }

    /**
     * Posts to a receive queue.
     *
     * @param queuePair whose
     * @param workRequests address of the first {@code ibv_recv_wr}
     */
    public void postReceives(long queuePair, long workRequests) throws IOException {
        Handle handle = handles.get(queuePair, QueuePair.class);
        int errno;
        handle.receiveLock.lock();
        try {
            ReceiveQueue queue = ((QueuePair) handle.object).receiveQueue();
            CallerMemory.checkElements(workRequests, queue.maxSges());
            errno = queue.tryPostNative(workRequests);
        } catch (RuntimeException closed) {
            throw Calls.failed("postRecv", closed);
        } finally {
            handle.receiveLock.unlock();
        }
        if (errno != 0) {
            throw refused("ibv_post_recv", errno);
        }
    }

    private static IOException refused(String function, int errno) {
        return new IOException(
                function + " refused with errno " + errno + (errno == ENOMEM ? ": the queue is full" : ""));
    }

    private static final int ENOMEM = 12;

    /**
     * Takes completions.
     *
     * @param queue whose
     * @param capacity the most to take
     * @param completions address of as many {@code ibv_wc}
     * @return how many there were
     */
    public int poll(long queue, int capacity, long completions) throws IOException {
        Handle handle = handles.get(queue, CompletionQueue.class);
        if (completions == 0) {
            throw new IOException("no memory: the call was freed");
        }
        handle.lock.lock();
        try {
            return ((CompletionQueue) handle.object).pollNative(completions, capacity);
        } catch (RuntimeException broken) {
            throw Calls.failed("pollCQ", broken);
        } finally {
            handle.lock.unlock();
        }
    }

    public int requestNotify(long queue, boolean solicitedOnly) throws IOException {
        Handle handle = handles.get(queue, CompletionQueue.class);
        handle.lock.lock();
        try {
            ((CompletionQueue) handle.object).requestNotify(solicitedOnly);
            return 0;
        } catch (RuntimeException refused) {
            throw Calls.failed("reqNotifyCQ", refused);
        } finally {
            handle.lock.unlock();
        }
    }

    /** Verbena's queues acknowledge their events themselves, so a wrong count holds up nobody. */
    public int acknowledge(long queue) throws IOException {
        handles.get(queue, CompletionQueue.class);
        return 0;
    }

    /**
     * Waits for a completion queue to have something.
     *
     * @param channel of it
     * @param timeoutMillis how long; negative waits forever
     * @return 0, or -1 if nothing came
     */
    public int awaitEvent(long channel, int timeoutMillis) throws IOException {
        Handle handle = handles.get(channel, CompletionChannel.class);
        CompletionChannel events = (CompletionChannel) handle.object;
        long end = System.nanoTime() + timeoutMillis * 1_000_000L;
        while (true) {
            long slice = SLICE_MILLIS * 1_000_000;
            long left = timeoutMillis < 0 ? slice : Math.max(0, end - System.nanoTime());
            handle.lock.lock();
            try {
                if (events.awaitEvent(Duration.ofNanos(Math.min(left, slice))) != null) {
                    return 0;
                }
            } catch (RuntimeException closed) {
                throw Calls.failed("getCqEvent", closed);
            } finally {
                handle.lock.unlock();
            }
            if (timeoutMillis >= 0 && left <= slice) {
                return -1;
            }
            handles.get(channel, CompletionChannel.class);
        }
    }
}
