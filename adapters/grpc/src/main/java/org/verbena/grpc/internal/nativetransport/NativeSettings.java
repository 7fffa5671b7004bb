package org.verbena.grpc.internal.nativetransport;

import io.grpc.internal.GrpcUtil;
import io.netty.channel.ChannelOption;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.verbena.api.RdmaChannelOption;
import org.verbena.grpc.internal.wire.Frames;
import org.verbena.grpc.internal.wire.Settings;
import org.verbena.transport.SendCompletion;

/** What a builder has set, of either end. */
public final class NativeSettings {
    /** For times: no limit. */
    public static final long NEVER = Long.MAX_VALUE;

    /** DATA of the largest size and some that follow fit, so that a large message waits for nobody. */
    private static final int WINDOW_BYTES = 4 << 20;

    /** Calls that a peer may have open at once: more than a program has threads, and a bound on what it costs. */
    private static final int MAX_STREAMS = 10_000;

    private final Map<ChannelOption<?>, Object> options = new LinkedHashMap<>();

    /** How much DATA a call of the peer may send ahead, in bytes. */
    public int windowBytes = WINDOW_BYTES;

    /** How many calls the peer may have open. */
    public int maxStreams = MAX_STREAMS;

    /** The longest message. */
    public int maxMessageBytes = GrpcUtil.DEFAULT_MAX_MESSAGE_SIZE;

    /** The longest metadata of a frame. */
    public int maxFieldsBytes = GrpcUtil.DEFAULT_MAX_HEADER_LIST_SIZE;

    /** After how long without a frame a PING is sent; {@link #NEVER} for not at all. */
    public long keepAliveNanos = NEVER;

    /** How long its answer may take. */
    public long keepAliveTimeoutNanos = GrpcUtil.DEFAULT_KEEPALIVE_TIMEOUT_NANOS;

    /** Whether PINGs are sent while there is no call. */
    public boolean keepAliveWithoutCalls;

    /** How often clients may send PING. Server only. */
    public long permitKeepAliveNanos = TimeUnit.MINUTES.toNanos(5);

    /** Whether clients may send PING while they have no call. Server only. */
    public boolean permitKeepAliveWithoutCalls;

    /** When a connection without calls is closed. Server only. */
    public long maxIdleNanos = NEVER;

    /** When a connection takes no more calls. Server only. */
    public long maxAgeNanos = NEVER;

    /** How long its calls may take from then on. Server only. */
    public long maxAgeGraceNanos = NEVER;

    /** How many bytes of answers may wait for the clients of all servers of the process. Server only. */
    long maxUnsentBytes = Runtime.getRuntime().maxMemory() / 4;

    /** How long a client may take to answer GOAWAY. Server only. */
    long goAwayNanos = TimeUnit.SECONDS.toNanos(10);

    /** Creates the defaults. */
    public NativeSettings() {
        options.put(RdmaChannelOption.REGISTERED_ALLOCATOR, true);
        options.put(RdmaChannelOption.SEND_COMPLETION, SendCompletion.POSTED); // replies show what has arrived
        options.put(RdmaChannelOption.MAX_MESSAGE_BYTES, Frames.MAX_MESSAGE_BYTES);
    }

    /** What later changes of this do not change. */
    public NativeSettings copy() {
        NativeSettings copy = new NativeSettings();
        copy.options.putAll(options);
        copy.windowBytes = windowBytes;
        copy.maxStreams = maxStreams;
        copy.maxMessageBytes = maxMessageBytes;
        copy.maxFieldsBytes = maxFieldsBytes;
        copy.keepAliveNanos = keepAliveNanos;
        copy.keepAliveTimeoutNanos = keepAliveTimeoutNanos;
        copy.keepAliveWithoutCalls = keepAliveWithoutCalls;
        copy.permitKeepAliveNanos = permitKeepAliveNanos;
        copy.permitKeepAliveWithoutCalls = permitKeepAliveWithoutCalls;
        copy.maxIdleNanos = maxIdleNanos;
        copy.maxAgeNanos = maxAgeNanos;
        copy.maxAgeGraceNanos = maxAgeGraceNanos;
        copy.maxUnsentBytes = maxUnsentBytes;
        copy.goAwayNanos = goAwayNanos;
        return copy;
    }

    /** Sets an option of the channels. */
    public <T> void option(ChannelOption<T> option, T value) {
        options.put(option, value);
    }

    /** The options of the channels. */
    Map<ChannelOption<?>, Object> options() {
        return options;
    }

    /** What this end announces. */
    Settings announced(boolean client) {
        return new Settings(Frames.VERSION, Frames.VERSION, windowBytes, client ? 0 : maxStreams);
    }
}
