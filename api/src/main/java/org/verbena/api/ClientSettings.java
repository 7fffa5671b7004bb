package org.verbena.api;

import io.netty.channel.ChannelOption;
import java.time.Duration;
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

    /** Far more than any device or server would use. */
    private static final int MOST_CONNECTIONS = 1024;

    private static final long MOST_BACKOFF_NANOS = TimeUnit.DAYS.toNanos(1);

    private static final MessageHandler NO_HANDLER = (exchange, message) -> {
        throw new IllegalStateException("the client was built without onMessage");
    };

    final Map<ChannelOption<?>, Object> options = new LinkedHashMap<>();
    final List<Consumer<ClientState>> stateListeners = new ArrayList<>();
    final List<Consumer<ConnectedServer>> connectionListeners = new ArrayList<>();
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

    /** 0 for never. */
    long idleNanos;

    boolean reconnects = true;
    Backoff backoff = Backoff.DEFAULTS;
    long lookUpNanos = TimeUnit.SECONDS.toNanos(30);
    long requestTimeoutNanos = TimeUnit.SECONDS.toNanos(30);

    @Nullable String localHost;

    boolean virtualThreads;
    int retries;
    SendLimit.Bounds pendingBounds = SendLimit.Bounds.DEFAULTS;
    int maxRequests = DEFAULT_MAX_REQUESTS;
    MessageHandler handler = NO_HANDLER;

    NameLookup names = NameLookup.SYSTEM;

    ClientSettings copy() {
        ClientSettings copy = new ClientSettings();
        copy.options.putAll(options);
        copy.stateListeners.addAll(stateListeners);
        copy.connectionListeners.addAll(connectionListeners);
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
        copy.idleNanos = idleNanos;
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

    void setConnections(int perAddress) {
        if (perAddress < 1 || perAddress > MOST_CONNECTIONS) {
            throw new IllegalArgumentException("connections " + perAddress + " is not within 1 to " + MOST_CONNECTIONS);
        }
        connections = perAddress;
    }

    void setBackOff(Duration least, Duration most) {
        long leastNanos = ShortForm.positive("least", least);
        long mostNanos = ShortForm.positive("most", most);
        if (mostNanos < leastNanos || mostNanos > MOST_BACKOFF_NANOS) {
            throw new IllegalArgumentException("backOff: " + most + " is not within " + least + " to 1 day");
        }
        backoff = new Backoff(leastNanos, mostNanos);
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
                reconnects && handler.equals(NO_HANDLER) ? idleNanos : 0,
                pendingBounds,
                new CallPlan(idempotent, hedgeNanos, retries, false, 0),
                stateListeners,
                interceptors);
    }
}
