package org.verbena.api;

import io.netty.channel.Channel;
import io.netty.channel.ChannelConfig;
import io.netty.channel.ChannelOption;
import io.netty.channel.WriteBufferWaterMark;
import java.util.Locale;
import java.util.Map;
import java.util.function.BooleanSupplier;
import java.util.function.Function;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;
import org.verbena.api.internal.option.ConnectionSettings;
import org.verbena.api.internal.option.OptionRow;
import org.verbena.api.internal.option.TableConfig;
import org.verbena.api.internal.request.Frames;
import org.verbena.transport.Framing;
import org.verbena.transport.PreSharedKeys;
import org.verbena.transport.protocol.MessageOptions;
import org.verbena.transport.spi.EndpointOptions;
import org.verbena.transport.spi.RdmaProvider;

/**
 * The options of a channel: Netty's, and those of {@link RdmaChannelOption}. Any thread.
 *
 * @param <C> the interface that setters return
 */
class RdmaChannelConfig<C extends ChannelConfig> extends TableConfig<C> implements ConnectionSettings {

    /**
     * Bytes that wait or are under way before a channel turns unwritable, and at which it turns writable again. More
     * than a socket's 64 KiB, because here what is under way counts as well, as it does in a socket's own buffer.
     */
    static final WriteBufferWaterMark DEFAULT_WATER_MARK = new WriteBufferWaterMark(512 << 10, 1 << 20);

    /**
     * Whether the messages are frames of the short form, which clients and servers set: this end announces it, and
     * accepts messages that are longer by a frame's header.
     */
    static final ChannelOption<Boolean> SHORT_FORM = ChannelOption.valueOf(RdmaChannelConfig.class, "SHORT_FORM");

    /** The rows of a channel of messages. */
    static final Map<ChannelOption<?>, OptionRow<?>> MESSAGE_ROWS = withConnection(
            TableConfig.ROWS, Framing.MESSAGE, once(SHORT_FORM, false).unlisted());

    /** Matches the name of an option in messages of {@link MessageOptions} and {@link EndpointOptions}. */
    private static final Pattern LOWER_NAME = Pattern.compile("\\b[a-z]+([A-Z][a-z]+)+\\b");

    private final BooleanSupplier hasStarted;

    RdmaChannelConfig(RdmaChannel channel) {
        this(MESSAGE_ROWS, channel, channel::hasStarted, channel::stopReading);
    }

    /**
     * Creates the options of a channel.
     *
     * @param table its rows, by option
     * @param channel whose they are
     * @param hasStarted whether the options of the connection have been read
     * @param stopReading called when auto-read is switched off
     */
    RdmaChannelConfig(
            Map<ChannelOption<?>, OptionRow<?>> table,
            Channel channel,
            BooleanSupplier hasStarted,
            Runnable stopReading) {
        super(table, ofNetty(channel, stopReading).setWriteBufferWaterMark(DEFAULT_WATER_MARK));
        this.hasStarted = hasStarted;
    }

    /**
     * Adds the rows of a connection to others.
     *
     * @param others the other rows
     * @param framing the framing unless another is set
     * @param more rows in place of a connection's usual ones
     */
    static Map<ChannelOption<?>, OptionRow<?>> withConnection(
            Map<ChannelOption<?>, OptionRow<?>> others, Framing framing, OptionRow<?>... more) {
        EndpointOptions endpoint = EndpointOptions.DEFAULTS;
        MessageOptions messages = MessageOptions.DEFAULTS;
        int any = Integer.MAX_VALUE;
        Map<ChannelOption<?>, OptionRow<?>> rows = OptionRow.table(
                others,
                framing(framing),
                number(RdmaChannelOption.SEND_DEPTH, 1, 1 << 16, endpoint.sendDepth()),
                number(
                        RdmaChannelOption.RECEIVE_DEPTH,
                        MessageOptions.DEVICE_DEFAULT,
                        1 << 16,
                        messages.receiveDepth()),
                receiveBufferBytes(config -> messages.receiveBufferBytes()),
                number(RdmaChannelOption.MAX_MESSAGE_BYTES, 1, any, messages.maxMessageBytes()),
                rendezvousThresholdBytes(messages.rendezvousThresholdBytes()),
                number(RdmaChannelOption.MAX_RENDEZVOUS, 1, 1024, messages.maxRendezvous()),
                number(RdmaChannelOption.MAX_INLINE_BYTES, 0, 1 << 16, endpoint.maxInlineBytes()),
                number(RdmaChannelOption.REGISTER_THRESHOLD_BYTES, 0, any, messages.registerThresholdBytes()),
                maxSges(endpoint.maxSges()),
                number(RdmaChannelOption.READ_DEPTH, 0, 128, endpoint.readDepth()),
                number(RdmaChannelOption.RETRY_COUNT, 0, 7, endpoint.retryCount()),
                number(RdmaChannelOption.RNR_RETRY_COUNT, 0, 7, endpoint.rnrRetryCount()),
                number(
                        RdmaChannelOption.MIN_RNR_TIMER_MICROS,
                        EndpointOptions.DEVICE_DEFAULT,
                        EndpointOptions.MAX_RNR_TIMER_MICROS,
                        endpoint.minRnrTimerMicros()),
                number(
                        RdmaChannelOption.ACK_TIMEOUT_MICROS,
                        EndpointOptions.DEVICE_DEFAULT,
                        EndpointOptions.MAX_ACK_TIMEOUT_MICROS,
                        endpoint.ackTimeoutMicros()),
                number(RdmaChannelOption.CLOSE_TIMEOUT_MILLIS, 1, any, messages.closeTimeoutMillis()),
                number(RdmaChannelOption.KEEP_ALIVE_MILLIS, 0, any, messages.keepAliveMillis()),
                number(ChannelOption.IP_TOS, 0, 255, endpoint.trafficClass()),
                once(RdmaChannelOption.SEND_COMPLETION, messages.sendCompletion()),
                once(RdmaChannelOption.SHARED_RECEIVE_QUEUE, endpoint.sharedReceiveQueue()),
                once(RdmaChannelOption.REGISTERED_ALLOCATOR, false),
                once(RdmaChannelOption.PRE_SHARED_KEYS, null),
                privateData(RdmaChannelOption.CONNECT_PRIVATE_DATA, framing),
                privateData(RdmaChannelOption.ACCEPT_PRIVATE_DATA, framing));
        return OptionRow.table(rows, more);
    }

    private static <T> OptionRow<T> once(ChannelOption<T> option, @Nullable T preset) {
        return OptionRow.kept(option, preset).untilStarted();
    }

    private static OptionRow<Integer> number(ChannelOption<Integer> option, int min, int max, int preset) {
        return number(option, min, max, config -> preset);
    }

    private static OptionRow<Integer> number(
            ChannelOption<Integer> option, int min, int max, Function<TableConfig<?>, Integer> preset) {
        return OptionRow.within(OptionRow.computed(option, preset).untilStarted(), min, max);
    }

    static OptionRow<Integer> receiveBufferBytes(Function<TableConfig<?>, Integer> preset) {
        return number(RdmaChannelOption.RECEIVE_BUFFER_BYTES, MessageOptions.DEVICE_DEFAULT, Integer.MAX_VALUE, preset);
    }

    static OptionRow<Integer> rendezvousThresholdBytes(int preset) {
        return number(
                RdmaChannelOption.RENDEZVOUS_THRESHOLD_BYTES, MessageOptions.DEVICE_DEFAULT, Integer.MAX_VALUE, preset);
    }

    static OptionRow<Integer> maxSges(int preset) {
        return number(RdmaChannelOption.MAX_SGES, MessageOptions.DEVICE_DEFAULT, 256, preset);
    }

    /** A channel's class says whether it carries messages or bytes. */
    private static OptionRow<Framing> framing(Framing preset) {
        return once(RdmaChannelOption.FRAMING, preset).checked((config, framing) -> {
            if ((preset == Framing.STREAM) != (framing == Framing.STREAM)) {
                throw new IllegalArgumentException("a channel of "
                        + (preset == Framing.STREAM ? "bytes" : "messages") + " cannot use framing " + framing
                        + ": STREAM is RdmaSocketChannel's, MESSAGE and RAW are RdmaChannel's");
            }
        });
    }

    private static OptionRow<byte[]> privateData(ChannelOption<byte[]> option, Framing preset) {
        return RdmaChannelConfig.<byte[]>once(option, null).as(byte[]::clone).checked((config, data) -> {
            if (preset == Framing.STREAM) {
                throw new IllegalArgumentException(
                        option + " needs an RdmaChannel with framing RAW, and this is a channel of bytes");
            }
        });
    }

    @Override
    protected final boolean hasStarted() {
        return hasStarted.getAsBoolean();
    }

    Framing framing() {
        return get(RdmaChannelOption.FRAMING);
    }

    @Override
    public final @Nullable PreSharedKeys preSharedKeys() {
        return getOption(RdmaChannelOption.PRE_SHARED_KEYS);
    }

    @Override
    protected boolean prefersRegistered() {
        return get(RdmaChannelOption.REGISTERED_ALLOCATOR);
    }

    @Override
    public final byte[] connectData(byte[] ofProtocol) {
        return privateData(RdmaChannelOption.CONNECT_PRIVATE_DATA, ofProtocol);
    }

    @Override
    public final byte[] acceptData(byte[] ofProtocol) {
        return privateData(RdmaChannelOption.ACCEPT_PRIVATE_DATA, ofProtocol);
    }

    private byte[] privateData(ChannelOption<byte[]> option, byte[] ofProtocol) {
        byte[] chosen = getOption(option);
        if (chosen == null) {
            return ofProtocol;
        }
        if (framing() != Framing.RAW) {
            throw new IllegalArgumentException(
                    option + " needs framing RAW: framing " + framing() + " has its handshake in the private data");
        }
        return chosen;
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

    /**
     * {@code SO_LINGER}: 0 for closing at once, more for the time that closing may take at most, -1 for no such limit.
     */
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

    private boolean isShortForm() {
        return Boolean.TRUE.equals(getOption(SHORT_FORM)); // null for a channel of bytes
    }

    @Override
    public final int announced() {
        return isShortForm() ? Frames.SHORT_FORM : 0;
    }

    @Override
    public final MessageOptions messageOptions() {
        try {
            return newMessageOptions();
        } catch (IllegalArgumentException complaint) {
            throw byOptionName(complaint);
        }
    }

    private MessageOptions newMessageOptions() {
        int headerBytes = isShortForm() ? Frames.RESERVED_BYTES : 0;
        return MessageOptions.DEFAULTS.with(o -> {
            o.framing = framing();
            o.receiveDepth = get(RdmaChannelOption.RECEIVE_DEPTH);
            o.receiveBufferBytes = get(RdmaChannelOption.RECEIVE_BUFFER_BYTES);
            o.maxMessageBytes =
                    (int) Math.min((long) get(RdmaChannelOption.MAX_MESSAGE_BYTES) + headerBytes, Integer.MAX_VALUE);
            o.rendezvousThresholdBytes = get(RdmaChannelOption.RENDEZVOUS_THRESHOLD_BYTES);
            o.maxRendezvous = get(RdmaChannelOption.MAX_RENDEZVOUS);
            o.maxInlineBytes = get(RdmaChannelOption.MAX_INLINE_BYTES);
            o.registerThresholdBytes = get(RdmaChannelOption.REGISTER_THRESHOLD_BYTES);
            o.helloTimeoutMillis = connectTimeoutMillis();
            o.closeTimeoutMillis = closeTimeoutMillis();
            o.keepAliveMillis = get(RdmaChannelOption.KEEP_ALIVE_MILLIS);
            o.sendCompletion = get(RdmaChannelOption.SEND_COMPLETION);
        });
    }

    /** The largest value of {@link RdmaChannelOption#RECEIVE_DEPTH} if it is not set. */
    int greatestReceiveDepth(RdmaProvider provider) {
        return MessageOptions.GREATEST_DEFAULT_DEPTH;
    }

    @Override
    public final EndpointOptions endpointOptions(RdmaProvider provider, byte[] privateData) {
        int depth = get(RdmaChannelOption.RECEIVE_DEPTH);
        int sges = get(RdmaChannelOption.MAX_SGES);
        return EndpointOptions.DEFAULTS.with(o -> {
            o.connectTimeoutMillis = connectTimeoutMillis();
            o.sendDepth = get(RdmaChannelOption.SEND_DEPTH);
            o.receiveDepth = depth == MessageOptions.DEVICE_DEFAULT ? greatestReceiveDepth(provider) : depth;
            o.maxSges = sges == MessageOptions.DEVICE_DEFAULT ? provider.usualSges() : sges;
            o.maxInlineBytes = get(RdmaChannelOption.MAX_INLINE_BYTES);
            o.readDepth = get(RdmaChannelOption.READ_DEPTH);
            o.retryCount = get(RdmaChannelOption.RETRY_COUNT);
            o.rnrRetryCount = get(RdmaChannelOption.RNR_RETRY_COUNT);
            o.minRnrTimerMicros = get(RdmaChannelOption.MIN_RNR_TIMER_MICROS);
            o.ackTimeoutMicros = get(RdmaChannelOption.ACK_TIMEOUT_MICROS);
            o.trafficClass = get(ChannelOption.IP_TOS);
            o.sharedReceiveQueue = get(RdmaChannelOption.SHARED_RECEIVE_QUEUE);
            o.privateData = privateData;
        });
    }
}
