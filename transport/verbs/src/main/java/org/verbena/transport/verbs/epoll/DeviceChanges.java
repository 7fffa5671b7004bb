package org.verbena.transport.verbs.epoll;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import org.verbena.transport.verbs.ffm.Libc;
import org.verbena.transport.verbs.ffm.LibcLibrary;
import org.verbena.verbs.ffm.Errno;

/**
 * The kernel's broadcasts of changes to devices. Only those that remove a device from libibverbs count here. The
 * connection manager reports a removal only to ids on the device, and a process may have none.
 *
 * <p>Source: netlink(7), NETLINK_KOBJECT_UEVENT
 */
public final class DeviceChanges implements AutoCloseable {
    private static final int AF_NETLINK = 16;
    private static final int SOCK_RAW = 3;
    private static final int NON_BLOCKING = 0x800;
    private static final int CLOSE_ON_EXEC = 0x80000;
    private static final int KOBJECT_UEVENT = 15;

    /** The kernel's own messages; group 2 is that of udev. */
    private static final int KERNEL_GROUP = 1;

    /** {@code struct sockaddr_nl}: family, padding, port, groups. */
    private static final int ADDRESS_BYTES = 12;

    private static final long ADDRESS_GROUPS = 8;

    /** The kernel's messages have at most 2 KiB of variables, behind their path. */
    private static final int MAX_MESSAGE_BYTES = 8192;

    /** {@code remove@/devices/virtual/infiniband_verbs/uverbs0}, then variables. */
    private static final String REMOVAL = "remove@";

    private static final String VERBS = "/infiniband_verbs/";

    private final Arena arena = Arena.ofShared();
    private final MemorySegment message = arena.allocate(MAX_MESSAGE_BYTES);
    private final int fd;

    /**
     * Listens from now on.
     *
     * @throws java.io.UncheckedIOException no descriptor is left (EMFILE), or the process may not listen
     */
    public DeviceChanges() {
        try (Arena call = Arena.ofConfined()) {
            MemorySegment errno = Errno.newCapture(call);
            int made = Libc.socket(errno, AF_NETLINK, SOCK_RAW | NON_BLOCKING | CLOSE_ON_EXEC, KOBJECT_UEVENT);
            if (made < 0) {
                arena.close();
                throw LibcLibrary.failure("socket(AF_NETLINK, SOCK_RAW, NETLINK_KOBJECT_UEVENT)", -made);
            }
            MemorySegment address = call.allocate(ADDRESS_BYTES, Integer.BYTES);
            address.set(ValueLayout.JAVA_SHORT, 0, (short) AF_NETLINK);
            address.set(ValueLayout.JAVA_INT, ADDRESS_GROUPS, KERNEL_GROUP);
            int bound = Libc.bind(errno, made, address.address(), ADDRESS_BYTES);
            if (bound < 0) {
                Libc.close(made);
                arena.close();
                throw LibcLibrary.failure("bind(NETLINK_KOBJECT_UEVENT)", -bound);
            }
            fd = made;
        }
    }

    /**
     * What to watch.
     *
     * @return the descriptor
     */
    public int fd() {
        return fd;
    }

    /**
     * Takes what has come. One thread at a time.
     *
     * @return whether a device was removed
     */
    public boolean takeRemovals() {
        boolean any = false;
        long bytes;
        while ((bytes = Libc.read(fd, message.address(), MAX_MESSAGE_BYTES)) > 0) {
            String text =
                    new String(message.asSlice(0, bytes).toArray(ValueLayout.JAVA_BYTE), StandardCharsets.ISO_8859_1);
            any |= text.startsWith(REMOVAL) && text.contains(VERBS);
        }
        return any;
    }

    @Override
    public void close() {
        Libc.close(fd);
        arena.close();
    }
}
