package org.verbena.grpc.internal.resolver;

import io.grpc.NameResolver;
import io.grpc.NameResolverProvider;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.URISyntaxException;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** Targets {@code verbena:///host:port[,host:port...]}: servers of which gRPC's load balancer picks. gRPC loads it. */
public final class VerbenaNameResolverProvider extends NameResolverProvider {
    private static final String SCHEME = "verbena";

    /** Below DNS, so that a target without a scheme stays a name of DNS. */
    private static final int PRIORITY = 4;

    /** Made by gRPC. */
    public VerbenaNameResolverProvider() {}

    @Override
    protected boolean isAvailable() {
        return true;
    }

    @Override
    protected int priority() {
        return PRIORITY;
    }

    @Override
    public String getDefaultScheme() {
        return SCHEME;
    }

    @Override
    public @Nullable NameResolver newNameResolver(URI target, NameResolver.Args args) {
        return SCHEME.equals(target.getScheme()) ? new VerbenaNameResolver(servers(target), args) : null;
    }

    private static List<InetSocketAddress> servers(URI target) {
        String path = target.getPath();
        if (path == null || !path.startsWith("/") || target.getAuthority() != null) {
            throw malformed(target, null);
        }
        List<InetSocketAddress> servers = new ArrayList<>();
        for (String server : path.substring(1).split(",", -1)) {
            servers.add(server(target, server));
        }
        return servers;
    }

    private static InetSocketAddress server(URI target, String text) {
        try {
            URI parsed = new URI(null, text, null, null, null).parseServerAuthority();
            if (parsed.getHost() != null && parsed.getPort() > 0 && parsed.getPort() <= 0xffff) {
                return InetSocketAddress.createUnresolved(parsed.getHost(), parsed.getPort());
            }
            throw malformed(target, null);
        } catch (URISyntaxException noServer) {
            throw malformed(target, noServer);
        }
    }

    private static IllegalArgumentException malformed(URI target, @Nullable Throwable cause) {
        return new IllegalArgumentException(
                "write the target " + target + " as verbena:///host:port or verbena:///host:port,host:port, each with"
                        + " its port, and %5B and %5D around an IPv6 address",
                cause);
    }
}
