package org.verbena.cm;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;
import org.verbena.cm.ffm.RdmaCm;
import org.verbena.cm.ffm.RdmaCmId;
import org.verbena.verbs.ProtectionDomain;
import org.verbena.verbs.QueuePair;
import org.verbena.verbs.QueuePairExtension;
import org.verbena.verbs.QueuePairOptions;
import org.verbena.verbs.device.DriverFamily;
import org.verbena.verbs.ffm.CStruct;
import org.verbena.verbs.ffm.Errno;
import org.verbena.verbs.ffm.Siw;

/** Makes the queue pairs of ids. */
final class QueuePairs {
    private QueuePairs() {}

    /**
     * Makes a queue pair. Under the lock of the id's channel.
     *
     * @param id the C struct of an id with a device
     * @param extension null for none
     * @param destroyer destroys it when it is closed
     * @throws IllegalArgumentException for a domain of another device
     */
    static QueuePair create(
            MemorySegment id,
            ProtectionDomain domain,
            QueuePairOptions options,
            @Nullable QueuePairExtension extension,
            Runnable destroyer) {
        if (domain.context().nativeAddress() != id.get(CStruct.PTR, RdmaCmId.VERBS)) {
            throw new IllegalArgumentException(
                    domain + " is not on the id's own context; allocate it on CmId.device()");
        }
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment errno = Errno.newCapture(arena);
            MemorySegment attributes =
                    extension == null ? options.toNative(arena) : QueuePair.toNative(arena, domain, options, extension);
            int result = extension == null
                    ? RdmaCm.createQp(errno, id.address(), domain.nativeAddress(), attributes.address())
                    : RdmaCm.createQpEx(errno, id.address(), attributes.address());
            if (result != 0) {
                int code = Errno.get(errno);
                throw new CmException(
                        (extension == null ? "rdma_create_qp(" : "rdma_create_qp_ex(") + options.type() + ", "
                                + options.capabilities() + (extension == null ? "" : ", " + extension) + ")",
                        code,
                        Siw.remark(domain.context().driverFamily() == DriverFamily.SOFT_IWARP, code));
            }
            try {
                QueuePairOptions granted = options.granted(attributes);
                long made = id.get(CStruct.PTR, RdmaCmId.QP);
                return extension == null
                        ? QueuePair.wrap(domain, made, granted, destroyer)
                        : QueuePair.wrap(domain, made, options, granted, extension, destroyer);
            } catch (Throwable refused) {
                RdmaCm.destroyQp(errno, id.address());
                throw refused;
            }
        }
    }
}
