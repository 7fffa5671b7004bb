package org.verbena.verbs;

import java.lang.foreign.MemorySegment;
import org.verbena.verbs.ffm.IbvAhAttr;
import org.verbena.verbs.ffm.IbvGrh;
import org.verbena.verbs.ffm.LibIbverbs;
import org.verbena.verbs.ffm.Ranges;

/**
 * The resolved destination of a datagram, for {@link SendQueue#to}. It must stay open until the sends that use it have
 * completed.
 *
 * <p>Source: ibv_create_ah(3)
 */
public final class AddressHandle extends VerbsObject {
    private final ProtectionDomain domain;

    private AddressHandle(long address, ProtectionDomain domain) {
        super(address, domain);
        this.domain = domain;
    }

    static AddressHandle create(ProtectionDomain domain, AddressVector address) {
        return make(domain, arena -> {
            MemorySegment attr = arena.allocate(IbvAhAttr.LAYOUT);
            address.write(attr, 0);
            long ah = Calls.create(
                    "ibv_create_ah",
                    address.toString(),
                    errno -> LibIbverbs.createAh(errno, domain.nativeAddress(), attr.address()));
            return own(ah, made -> new AddressHandle(made, domain), LibIbverbs::destroyAh);
        });
    }

    static AddressHandle createForAnswer(
            ProtectionDomain domain,
            int port,
            WorkCompletions completions,
            int index,
            MemorySegment globalRouteHeader) {
        Ranges.check("port", port, 1, 255);
        return make(domain, arena -> {
            MemorySegment grh = arena.allocate(IbvGrh.LAYOUT);
            MemorySegment.copy(globalRouteHeader, 0, grh, 0, IbvGrh.SIZE);
            long ah = Calls.create(
                    "ibv_create_ah_from_wc",
                    "port=" + port,
                    errno -> LibIbverbs.createAhFromWc(
                            errno, domain.nativeAddress(), completions.addressOf(index), grh.address(), (byte) port));
            return own(ah, made -> new AddressHandle(made, domain), LibIbverbs::destroyAh);
        });
    }

    /**
     * The protection domain that it was created on.
     *
     * @return the protection domain
     */
    public ProtectionDomain domain() {
        return domain;
    }

    @Override
    protected void destroy(long closing) {
        Calls.check("ibv_destroy_ah", toString(), LibIbverbs.destroyAh(closing));
    }

    @Override
    public String toString() {
        return "AddressHandle of " + domain.context().device().name();
    }
}
