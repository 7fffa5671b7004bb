package org.verbena.doctor;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.DatagramSocket;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import org.jspecify.annotations.Nullable;
import org.verbena.cm.CmId;
import org.verbena.cm.EventChannel;
import org.verbena.cm.PortSpace;
import org.verbena.verbs.Context;
import org.verbena.verbs.NativeRdmaException;

/** The route that the system would use to an address; nothing is sent. */
final class Routes {
    private Routes() {}

    /** The source address that the routing table selects; nothing is sent. */
    static @Nullable InetAddress source(InetSocketAddress remote) {
        try (DatagramSocket probe = new DatagramSocket()) {
            probe.connect(new InetSocketAddress(remote.getAddress(), Math.max(1, remote.getPort())));
            InetAddress source = probe.getLocalAddress();
            return source == null || source.isAnyLocalAddress() ? null : source;
        } catch (IOException | UncheckedIOException noRoute) {
            return null;
        }
    }

    /** The device that rdma_cm uses for a local address, null if there is none. */
    static @Nullable String device(InetAddress local) {
        if (local.isLoopbackAddress()) {
            return null;
        }
        try (EventChannel channel = EventChannel.open();
                CmId id = CmId.create(channel, PortSpace.TCP)) {
            id.bind(new InetSocketAddress(local, 0));
            Context device = id.device();
            return device == null ? null : device.device().name();
        } catch (NativeRdmaException | UnsupportedOperationException none) {
            return null;
        }
    }
}
