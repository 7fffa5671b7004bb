package org.verbena.grpc.internal.resolver;

import io.grpc.Attributes;
import io.grpc.EquivalentAddressGroup;
import io.grpc.NameResolver;
import io.grpc.Status;
import io.grpc.StatusOr;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.net.UnknownHostException;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.Executor;
import org.jspecify.annotations.Nullable;

/**
 * Finds the addresses of several servers. Each server is one group of addresses, and has its own host and port as its
 * authority. A server whose name cannot be resolved is left out as long as another can.
 */
final class VerbenaNameResolver extends NameResolver {
    private final List<InetSocketAddress> servers;
    private final Args args;

    /** Looking up a name may take long. */
    private final Executor lookups;

    // In gRPC's synchronization context only.
    private @Nullable Listener2 listener;
    private boolean resolving;

    /**
     * Looks up nothing yet.
     *
     * @param servers unresolved
     * @param args of the channel
     */
    VerbenaNameResolver(List<InetSocketAddress> servers, Args args) {
        this.servers = List.copyOf(servers);
        this.args = args;
        lookups = Objects.requireNonNullElse(args.getOffloadExecutor(), Thread::startVirtualThread);
    }

    @Override
    public String getServiceAuthority() {
        return authority(servers.getFirst());
    }

    private static String authority(InetSocketAddress server) {
        return server.getHostString() + ':' + server.getPort();
    }

    @Override
    public void start(Listener2 to) {
        listener = to;
        resolve();
    }

    @Override
    public void refresh() {
        resolve();
    }

    private void resolve() {
        if (!resolving && listener != null) {
            resolving = true;
            try {
                lookups.execute(() -> {
                    StatusOr<List<EquivalentAddressGroup>> found = lookUp();
                    args.getSynchronizationContext().execute(() -> report(found));
                });
            } catch (RuntimeException | Error noThread) { // gRPC asks again later
                report(StatusOr.fromStatus(Status.UNAVAILABLE
                        .withDescription("no thread looks up " + servers)
                        .withCause(noThread)));
            }
        }
    }

    private void report(StatusOr<List<EquivalentAddressGroup>> found) {
        resolving = false;
        Listener2 to = listener;
        if (to == null) {
            return; // shut down in the meantime
        }
        if (found.hasValue()) {
            to.onResult(ResolutionResult.newBuilder().setAddressesOrError(found).build());
        } else {
            to.onError(found.getStatus());
        }
    }

    private StatusOr<List<EquivalentAddressGroup>> lookUp() {
        List<EquivalentAddressGroup> found = new ArrayList<>();
        Throwable failure = null;
        for (InetSocketAddress server : servers) {
            try {
                List<SocketAddress> addresses = new ArrayList<>();
                for (InetAddress address : InetAddress.getAllByName(server.getHostString())) {
                    addresses.add(new InetSocketAddress(address, server.getPort()));
                }
                found.add(new EquivalentAddressGroup(
                        addresses,
                        Attributes.newBuilder()
                                .set(EquivalentAddressGroup.ATTR_AUTHORITY_OVERRIDE, authority(server))
                                .build()));
            } catch (UnknownHostException | RuntimeException | Error unknown) { // also from a resolver of the program's
                failure = unknown;
            }
        }
        if (found.isEmpty()) {
            return StatusOr.fromStatus(Status.UNAVAILABLE
                    .withDescription("no host of " + servers + " can be resolved")
                    .withCause(failure));
        }
        return StatusOr.fromValue(found);
    }

    @Override
    public void shutdown() {
        listener = null;
    }
}
