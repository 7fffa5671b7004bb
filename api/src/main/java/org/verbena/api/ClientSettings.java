package org.verbena.api;

import io.netty.channel.ChannelOption;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.verbena.api.client.ClientInterceptor;
import org.verbena.api.client.ClientState;
import org.verbena.api.client.Target;
import org.verbena.api.internal.client.Backoff;
import org.verbena.api.internal.client.CallPlan;
import org.verbena.api.internal.client.Links;
import org.verbena.api.internal.request.NameLookup;
import org.verbena.api.internal.request.SendLimit;
import org.verbena.api.internal.request.ShortForm;
import org.verbena.api.ladder.LadderOptions;
import org.verbena.transport.CompletionLoopOptions;
import org.verbena.transport.provider.ProviderChoice;

/** What a {@link RdmaClient.Builder} says. A client has a copy that does not change. */
final class ClientSettings {
    /** Far more than a server answers in time, and some tens of MiB. */
    private static final int DEFAULT_MAX_REQUESTS = 1 << 18;

    final Map<ChannelOption<?>, Object> options = new LinkedHashMap<>();
    final List<Consumer<ClientState>> stateListeners = new ArrayList<>();
    final List<ClientInterceptor> interceptors = new ArrayList<>();
    String provider = ProviderChoice.configured();
    CompletionLoopOptions loopOptions = CompletionLoopOptions.DEFAULTS;

    /** Null for those that clients share. */
    @Nullable RdmaEventLoopGroup sharedGroup;

    /** Null for none, or for that of the loops. */
    @Nullable LadderOptions ladder;

    @Nullable Target target;

    int connections = 1;
    boolean failsFast;
    boolean idempotent;
    long hedgeNanos = CallPlan.NO_HEDGE;

    /** 0 for no limit. */
    long maxAgeNanos;

    boolean reconnects = true;
    Backoff backoff = Backoff.DEFAULTS;
    long lookUpNanos = TimeUnit.SECONDS.toNanos(30);
    long requestTimeoutNanos = TimeUnit.SECONDS.toNanos(30);

    @Nullable String localHost;

    boolean virtualThreads;
    int retries;
    SendLimit.Bounds pendingBounds = SendLimit.Bounds.DEFAULTS;
    int maxRequests = DEFAULT_MAX_REQUESTS;
    MessageHandler handler = (exchange, message) -> {
        throw new IllegalStateException("the client was built without onMessage");
    };

    NameLookup names = NameLookup.SYSTEM;

    ClientSettings copy() {
        ClientSettings copy = new ClientSettings();
        copy.options.putAll(options);
        copy.stateListeners.addAll(stateListeners);
        copy.interceptors.addAll(interceptors);
        copy.provider = provider;
        copy.loopOptions = loopOptions;
        copy.sharedGroup = sharedGroup;
        copy.ladder = ladder;
        copy.target = target;
        copy.connections = connections;
        copy.failsFast = failsFast;
        copy.idempotent = idempotent;
        copy.hedgeNanos = hedgeNanos;
        copy.maxAgeNanos = maxAgeNanos;
        copy.reconnects = reconnects;
        copy.backoff = backoff;
        copy.lookUpNanos = lookUpNanos;
        copy.requestTimeoutNanos = requestTimeoutNanos;
        copy.localHost = localHost;
        copy.virtualThreads = virtualThreads;
        copy.retries = retries;
        copy.pendingBounds = pendingBounds;
        copy.maxRequests = maxRequests;
        copy.handler = handler;
        copy.names = names;
        return copy;
    }

    int connectMillis() {
        return options.get(ChannelOption.CONNECT_TIMEOUT_MILLIS) instanceof Integer millis
                ? millis
                : ShortForm.CONNECT_MILLIS;
    }

    Links.Options linking() {
        return new Links.Options(
                connections,
                reconnects,
                failsFast,
                requestTimeoutNanos,
                connectMillis(),
                lookUpNanos,
                backoff,
                maxAgeNanos,
                pendingBounds,
                new CallPlan(idempotent, hedgeNanos, retries, false, 0),
                stateListeners,
                interceptors);
    }
}
