package org.verbena.verbs;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import org.verbena.verbs.ffm.CStruct;
import org.verbena.verbs.ffm.Errno;
import org.verbena.verbs.ffm.FileDescriptors;
import org.verbena.verbs.ffm.IbvXrcdInitAttr;
import org.verbena.verbs.ffm.VerbsContext;
import org.verbena.verbs.ffm.VerbsOps;

/**
 * Ties XRC connections to the shared receive queues that they may deliver to, in one process or several.
 *
 * <p>Source: ibv_open_xrcd(3)
 */
public final class XrcDomain extends VerbsObject {
    /** As fcntl(2) has them; the same on every Linux that a JVM with FFM runs on. */
    static final int O_CREAT = 0x40;

    static final int O_EXCL = 0x80;

    /** {@code IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS}: both must be there. */
    private static final int FD_AND_OFLAGS = 3;

    /** A process that may open the file may receive into the domain's queues. */
    private static final int OWNER_AND_GROUP_READ = 0440;

    private final Context context;

    private XrcDomain(long address, Context context) {
        super(address, context);
        this.context = context;
    }

    static XrcDomain open(Context context, int fd, int openFlags) {
        return make(context, arena -> {
            MemorySegment function = context.extendedOperation("ibv_open_xrcd", VerbsContext.OPEN_XRCD);
            MemorySegment close = context.extendedOperation("ibv_close_xrcd", VerbsContext.CLOSE_XRCD);
            MemorySegment attr = arena.allocate(IbvXrcdInitAttr.LAYOUT);
            attr.set(CStruct.U32, IbvXrcdInitAttr.COMP_MASK, FD_AND_OFLAGS);
            attr.set(CStruct.I32, IbvXrcdInitAttr.FD, fd);
            attr.set(CStruct.I32, IbvXrcdInitAttr.OFLAGS, openFlags);
            long xrcd = Calls.create(
                    "ibv_open_xrcd",
                    "fd=" + fd + ", oflags=0x" + Integer.toHexString(openFlags),
                    errno -> VerbsOps.openXrcd(function, errno, context.nativeAddress(), attr.address()));
            return own(xrcd, made -> new XrcDomain(made, context), refused -> VerbsOps.closeXrcd(close, refused));
        });
    }

    /** The kernel holds on to the file's inode, so that the descriptor is not needed afterwards. */
    static XrcDomain open(Context context, Path file) {
        int fd;
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment errno = Errno.newCapture(arena);
            fd = FileDescriptors.openOrCreate(errno, arena.allocateFrom(file.toString()), OWNER_AND_GROUP_READ);
            if (fd < 0) {
                throw Failures.failure("open", file.toString(), -fd);
            }
        }
        try {
            return open(context, fd, O_CREAT);
        } finally {
            FileDescriptors.close(fd);
        }
    }

    /**
     * The context that it belongs to.
     *
     * @return the context
     */
    public Context context() {
        return context;
    }

    @Override
    protected void destroy(long closing) {
        Calls.check(
                "ibv_close_xrcd",
                toString(),
                VerbsOps.closeXrcd(context.extendedOperation("ibv_close_xrcd", VerbsContext.CLOSE_XRCD), closing));
    }

    @Override
    public String toString() {
        return "XrcDomain of " + context.device().name();
    }
}
