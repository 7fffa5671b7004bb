package org.verbena.api;

import io.netty.buffer.ByteBufAllocator;
import io.netty.channel.Channel;
import io.netty.channel.ChannelConfig;
import io.netty.channel.ChannelOption;
import io.netty.channel.DefaultChannelConfig;
import io.netty.channel.WriteBufferWaterMark;
import java.util.HashMap;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.BooleanSupplier;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.Framing;
import org.verbena.transport.protocol.MessageOptions;
import org.verbena.transport.PreSharedKeys;
import org.verbena.transport.spi.EndpointOptions;
import org.verbena.transport.spi.RdmaProvider;

/** The options of a channel: Netty's, and those of {@link RdmaChannelOption}. Any thread. */
class RdmaChannelConfig extends DefaultChannelConfig {

    /**
     * Bytes that wait or are under way before a channel turns unwritable, and at which it turns writable again. More than a socket's 64 KiB,
     * because here what is under way counts as well, as it does in a socket's own buffer.
     */
    static final WriteBufferWaterMark DEFAULT_WATER_MARK = new WriteBufferWaterMark(512 << 10, 1 << 20);

    /** Least, most and default of each integer option. */
    private record Range(int least, int most, int preset) {}

    private static final Map<ChannelOption<?>, Range> RANGES = new HashMap<>();

    static {
        EndpointOptions endpoint = EndpointOptions.DEFAULTS;
        MessageOptions messages = MessageOptions.DEFAULTS;
        int any = Integer.MAX_VALUE;
        RANGES.put(RdmaChannelOption.SEND_DEPTH, new Range(1, 1 << 16, endpoint.sendDepth()));
        RANGES.put(
                RdmaChannelOption.RECEIVE_DEPTH,
                new Range(MessageOptions.DEVICE_DEFAULT, 1 << 16, messages.receiveDepth()));
        RANGES.put(
                RdmaChannelOption.RECEIVE_BUFFER_BYTES,
                new Range(MessageOptions.DEVICE_DEFAULT, any, messages.receiveBufferBytes()));
        RANGES.put(RdmaChannelOption.MAX_MESSAGE_BYTES, new Range(1, any, messages.maxMessageBytes()));
        RANGES.put(
                RdmaChannelOption.RENDEZVOUS_THRESHOLD_BYTES,
                new Range(MessageOptions.DEVICE_DEFAULT, any, messages.rendezvousThresholdBytes()));
        RANGES.put(RdmaChannelOption.MAX_RENDEZVOUS, new Range(1, 1024, messages.maxRendezvous()));
        RANGES.put(RdmaChannelOption.MAX_INLINE_BYTES, new Range(0, 1 << 16, endpoint.maxInlineBytes()));
        RANGES.put(RdmaChannelOption.REGISTER_THRESHOLD_BYTES, new Range(0, any, messages.registerThresholdBytes()));
        RANGES.put(RdmaChannelOption.MAX_SGES, new Range(MessageOptions.DEVICE_DEFAULT, 256, endpoint.maxSges()));
        RANGES.put(RdmaChannelOption.READ_DEPTH, new Range(0, 128, endpoint.readDepth()));
        RANGES.put(RdmaChannelOption.RETRY_COUNT, new Range(0, 7, endpoint.retryCount()));
        RANGES.put(RdmaChannelOption.RNR_RETRY_COUNT, new Range(0, 7, endpoint.rnrRetryCount()));
        RANGES.put(
                RdmaChannelOption.MIN_RNR_TIMER_MICROS,
                new Range(
                        EndpointOptions.DEVICE_DEFAULT,
                        EndpointOptions.MAX_RNR_TIMER_MICROS,
                        endpoint.minRnrTimerMicros()));
        RANGES.put(RdmaChannelOption.CLOSE_TIMEOUT_MILLIS, new Range(1, any, messages.closeTimeoutMillis()));
        RANGES.put(RdmaChannelOption.KEEP_ALIVE_MILLIS, new Range(0, any, messages.keepAliveMillis()));
        RANGES.put(ChannelOption.IP_TOS, new Range(0, 255, endpoint.trafficClass()));
    }

    /** The name of an option in messages of {@link MessageOptions} and {@link EndpointOptions}. */
    private static final Pattern LOWER_NAME = Pattern.compile("\\b[a-z]+([A-Z][a-z]+)+\\b");

    /** The values that were set; other options have their defaults. */
    private final Map<ChannelOption<?>, Object> values = new ConcurrentHashMap<>();

    // Written by any thread before the connection is made, by the loop when it is; read by any.
    private volatile @Nullable ByteBufAllocator userAllocator;
    private volatile @Nullable ByteBufAllocator registeredAllocator;

    /** Written by the loop before the options are read there. */
    private int headerBytes;

    private final Framing preset;
    private final BooleanSupplier hasStarted;
    private final Runnable stopReading;

    /**
     * Creates the options of a channel.
     *
     * @param channel whose they are
     * @param preset its framing unless another is set
     * @param hasStarted whether the options of the connection have been read
     * @param stopReading called when auto-read is switched off
     */
    RdmaChannelConfig(Channel channel, Framing preset, BooleanSupplier hasStarted, Runnable stopReading) {
        super(channel);
        this.preset = preset;
        this.hasStarted = hasStarted;
        this.stopReading = stopReading;
        setWriteBufferWaterMark(DEFAULT_WATER_MARK);
    }

    RdmaChannelConfig(AbstractRdmaChannel channel, Framing preset) {
        this(channel, preset, channel::hasStarted, channel::stopReading);
    }

    private int get(ChannelOption<Integer> option) {
        Object value = values.get(option);
        if (value != null) {
            return (Integer) value;
        }
        Range range = RANGES.get(option);
        if (range == null) {
            throw new AssertionError(option);
        }
        return preset(option, range.preset);
    }

    /** An option's default. */
    int preset(ChannelOption<Integer> option, int usual) {
        return usual;
    }

    Framing framing() {
        return (Framing) values.getOrDefault(RdmaChannelOption.FRAMING, preset);
    }

    boolean sharedReceiveQueue() {
        return (Boolean) values.getOrDefault(
                RdmaChannelOption.SHARED_RECEIVE_QUEUE, EndpointOptions.DEFAULTS.sharedReceiveQueue());
    }

    /** The keys that the ends prove to each other; null for none. */
    @Nullable PreSharedKeys preSharedKeys() {
        return (PreSharedKeys) values.get(RdmaChannelOption.PRE_SHARED_KEYS);
    }

    /**
     * What goes to the peer with the connect request or its acceptance.
     *
     * @param option {@code CONNECT_PRIVATE_DATA} or {@code ACCEPT_PRIVATE_DATA}
     * @param ofProtocol what the framing sends there
     * @throws IllegalArgumentException the option is set, and the framing has its own
     */
    byte[] privateData(ChannelOption<byte[]> option, byte[] ofProtocol) {
        byte[] chosen = (byte[]) values.get(option);
        if (chosen == null) {
            return ofProtocol;
        }
        if (framing() != Framing.RAW) {
            throw new IllegalArgumentException(
                    option + " needs framing RAW: framing " + framing() + " has its handshake in the private data");
        }
        return chosen;
    }

    private static boolean isPrivateData(ChannelOption<?> option) {
        return option.equals(RdmaChannelOption.CONNECT_PRIVATE_DATA)
                || option.equals(RdmaChannelOption.ACCEPT_PRIVATE_DATA);
    }

    private boolean registeredAllocatorWanted() {
        return (Boolean) values.getOrDefault(RdmaChannelOption.REGISTERED_ALLOCATOR, false);
    }

    /** In Netty, 0 means no limit. */
    private int connectTimeoutMillis() {
        int millis = getConnectTimeoutMillis();
        return millis == 0 ? Integer.MAX_VALUE : millis;
    }

    /** The time limit for closing. */
    int closeTimeoutMillis() {
        return get(RdmaChannelOption.CLOSE_TIMEOUT_MILLIS);
    }

    /** {@code SO_LINGER}: 0 for closing at once, more for the time that closing may take at most, -1 for no such limit. */
    int lingerSeconds() {
        return -1;
    }

    /**
     * Replaces a lower layer's name of an option by the name that users set.
     *
     * @return the same exception if its message has no such name
     */
    static IllegalArgumentException byOptionName(IllegalArgumentException complaint) {
        String text = String.valueOf(complaint.getMessage());
        Matcher names = LOWER_NAME.matcher(text);
        String named = names.replaceAll(name -> {
            String option = name.group().replaceAll("([A-Z])", "_$1").toUpperCase(Locale.ROOT);
            return ChannelOption.exists(RdmaChannelOption.class.getName() + '#' + option) ? option : name.group();
        });
        return named.equals(text) ? complaint : new IllegalArgumentException(named, complaint);
    }

    /** What a program of this library puts in front of each message of its user, whose bytes the limit counts. */
    void reserveHeader0(int bytes) {
        headerBytes = bytes;
    }

    MessageOptions messageOptions() {
        try {
            return newMessageOptions();
        } catch (IllegalArgumentException complaint) {
            throw byOptionName(complaint);
        }
    }

    private MessageOptions newMessageOptions() {
        return new MessageOptions.Builder()
                .framing(framing())
                .receiveDepth(get(RdmaChannelOption.RECEIVE_DEPTH))
                .receiveBufferBytes(get(RdmaChannelOption.RECEIVE_BUFFER_BYTES))
                .maxMessageBytes((int)
                        Math.min((long) get(RdmaChannelOption.MAX_MESSAGE_BYTES) + headerBytes, Integer.MAX_VALUE))
                .rendezvousThresholdBytes(get(RdmaChannelOption.RENDEZVOUS_THRESHOLD_BYTES))
                .maxRendezvous(get(RdmaChannelOption.MAX_RENDEZVOUS))
                .maxInlineBytes(get(RdmaChannelOption.MAX_INLINE_BYTES))
                .registerThresholdBytes(get(RdmaChannelOption.REGISTER_THRESHOLD_BYTES))
                .helloTimeoutMillis(connectTimeoutMillis())
                .closeTimeoutMillis(closeTimeoutMillis())
                .keepAliveMillis(get(RdmaChannelOption.KEEP_ALIVE_MILLIS))
                .build();
    }

    /** The largest value of {@link RdmaChannelOption#RECEIVE_DEPTH} if it is not set. */
    int greatestReceiveDepth(RdmaProvider provider) {
        return MessageOptions.GREATEST_DEFAULT_DEPTH;
    }

    EndpointOptions endpointOptions(RdmaProvider provider, byte[] privateData) {
        int depth = get(RdmaChannelOption.RECEIVE_DEPTH);
        int sges = get(RdmaChannelOption.MAX_SGES);
        return new EndpointOptions.Builder()
                .connectTimeoutMillis(connectTimeoutMillis())
                .sendDepth(get(RdmaChannelOption.SEND_DEPTH))
                .receiveDepth(depth == MessageOptions.DEVICE_DEFAULT ? greatestReceiveDepth(provider) : depth)
                .maxSges(sges == MessageOptions.DEVICE_DEFAULT ? provider.usualSges() : sges)
                .maxInlineBytes(get(RdmaChannelOption.MAX_INLINE_BYTES))
                .readDepth(get(RdmaChannelOption.READ_DEPTH))
                .retryCount(get(RdmaChannelOption.RETRY_COUNT))
                .rnrRetryCount(get(RdmaChannelOption.RNR_RETRY_COUNT))
                .minRnrTimerMicros(get(RdmaChannelOption.MIN_RNR_TIMER_MICROS))
                .trafficClass(get(ChannelOption.IP_TOS))
                .sharedReceiveQueue(sharedReceiveQueue())
                .privateData(privateData)
                .build();
    }

    /** The allocator that the program has set; null if it has set none. */
    final @Nullable ByteBufAllocator chosenAllocator() {
        return userAllocator;
    }

    /** The device is known now: channels without a chosen allocator allocate its registered memory. */
    void registeredAllocator(ByteBufAllocator allocator) {
        registeredAllocator = allocator;
    }

    @Override
    public ByteBufAllocator getAllocator() {
        ByteBufAllocator chosen = userAllocator;
        ByteBufAllocator registered = registeredAllocator;
        if (registered != null && (chosen == null || registeredAllocatorWanted())) {
            return registered;
        }
        return chosen == null ? super.getAllocator() : chosen;
    }

    @Override
    public ChannelConfig setAllocator(ByteBufAllocator allocator) {
        super.setAllocator(allocator);
        userAllocator = allocator;
        return this;
    }

    @Override
    public Map<ChannelOption<?>, Object> getOptions() {
        Map<ChannelOption<?>, Object> options = getOptions(
                super.getOptions(),
                RdmaChannelOption.FRAMING,
                RdmaChannelOption.SHARED_RECEIVE_QUEUE,
                RdmaChannelOption.REGISTERED_ALLOCATOR,
                RdmaChannelOption.PRE_SHARED_KEYS,
                RdmaChannelOption.CONNECT_PRIVATE_DATA,
                RdmaChannelOption.ACCEPT_PRIVATE_DATA);
        for (ChannelOption<?> option : RANGES.keySet()) {
            options.put(option, getOption(option));
        }
        return options;
    }

    @Override
    @SuppressWarnings({"unchecked", "NullAway"}) // the option's type says what its value is; Netty gives null for none
    public <T> T getOption(ChannelOption<T> option) {
        if (RANGES.containsKey(option)) {
            return (T) Integer.valueOf(get((ChannelOption<Integer>) option));
        }
        if (option.equals(RdmaChannelOption.FRAMING)) {
            return (T) framing();
        }
        if (option.equals(RdmaChannelOption.SHARED_RECEIVE_QUEUE)) {
            return (T) Boolean.valueOf(sharedReceiveQueue());
        }
        if (option.equals(RdmaChannelOption.REGISTERED_ALLOCATOR)) {
            return (T) Boolean.valueOf(registeredAllocatorWanted());
        }
        if (option.equals(RdmaChannelOption.PRE_SHARED_KEYS)) {
            return (T) preSharedKeys();
        }
        if (isPrivateData(option)) {
            byte[] chosen = (byte[]) values.get(option);
            return (T) (chosen == null ? null : chosen.clone());
        }
        return super.getOption(option);
    }

    @Override
    public <T> boolean setOption(ChannelOption<T> option, T value) {
        validate(option, value);
        Range range = RANGES.get(option);
        if (range != null) {
            int number = (Integer) value;
            if (number < range.least || number > range.most) {
                throw new IllegalArgumentException(
                        option + " " + number + " is not within " + range.least + " to " + range.most);
            }
        } else if (!option.equals(RdmaChannelOption.FRAMING)
                && !option.equals(RdmaChannelOption.SHARED_RECEIVE_QUEUE)
                && !option.equals(RdmaChannelOption.REGISTERED_ALLOCATOR)
                && !option.equals(RdmaChannelOption.PRE_SHARED_KEYS)
                && !isPrivateData(option)) {
            return super.setOption(option, value);
        }
        checkFraming(option, value);
        if (hasStarted.getAsBoolean() && !isTakenLate(option)) {
            throw new IllegalStateException(
                    option + " is read when the connection is made, and this one has been: set it on the bootstrap");
        }
        values.put(option, value instanceof byte[] bytes ? bytes.clone() : value);
        return true;
    }

    /** Whether an option may be set to the same value once the connection exists. */
    boolean isTakenLate(ChannelOption<?> option) {
        return false;
    }

    /** A channel's class says whether it carries messages or bytes. */
    private <T> void checkFraming(ChannelOption<T> option, T value) {
        if (option.equals(RdmaChannelOption.FRAMING) && (preset == Framing.STREAM) != (value == Framing.STREAM)) {
            throw new IllegalArgumentException("an " + channel.getClass().getSimpleName() + " cannot use framing "
                    + value + ": STREAM is RdmaSocketChannel's, MESSAGE and RAW are RdmaChannel's");
        }
        if (isPrivateData(option) && preset == Framing.STREAM) {
            throw new IllegalArgumentException(option + " needs an RdmaChannel with framing RAW, and this is an "
                    + channel.getClass().getSimpleName());
        }
    }

    @Override
    protected void autoReadCleared() {
        stopReading.run();
    }
}
