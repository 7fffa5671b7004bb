package org.verbena.api;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import io.netty.buffer.UnpooledByteBufAllocator;
import io.netty.channel.ChannelConfig;
import io.netty.channel.ChannelOption;
import io.netty.channel.DefaultMessageSizeEstimator;
import io.netty.channel.FixedRecvByteBufAllocator;
import io.netty.channel.WriteBufferWaterMark;
import io.netty.channel.socket.DatagramChannelConfig;
import io.netty.channel.socket.ServerSocketChannelConfig;
import io.netty.channel.socket.SocketChannelConfig;
import io.netty.channel.socket.nio.NioChannelOption;
import io.netty.channel.socket.nio.NioSocketChannel;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.verbena.api.datagram.RdmaDatagramChannel;
import org.verbena.api.ladder.LadderOptions;
import org.verbena.transport.Framing;
import org.verbena.transport.PreSharedKeys;
import org.verbena.transport.SendCompletion;
import org.verbena.transport.spi.Patience;

/** Every option of every kind of channel, by its table. */
@Timeout(120)
@SuppressWarnings("deprecation") // Netty's old options too
class OptionsTest {
    private static final int ANY = Integer.MAX_VALUE;

    /** Least and most of every number of {@link RdmaChannelOption} and of those of Netty's that are checked here. */
    private static final Map<ChannelOption<?>, int[]> BOUNDS = Map.ofEntries(
            Map.entry(RdmaChannelOption.SEND_DEPTH, new int[] {1, 65536}),
            Map.entry(RdmaChannelOption.RECEIVE_DEPTH, new int[] {-1, 65536}),
            Map.entry(RdmaChannelOption.RECEIVE_BUFFER_BYTES, new int[] {-1, ANY}),
            Map.entry(RdmaChannelOption.MAX_MESSAGE_BYTES, new int[] {1, ANY}),
            Map.entry(RdmaChannelOption.RENDEZVOUS_THRESHOLD_BYTES, new int[] {-1, ANY}),
            Map.entry(RdmaChannelOption.MAX_RENDEZVOUS, new int[] {1, 1024}),
            Map.entry(RdmaChannelOption.MAX_INLINE_BYTES, new int[] {0, 65536}),
            Map.entry(RdmaChannelOption.REGISTER_THRESHOLD_BYTES, new int[] {0, ANY}),
            Map.entry(RdmaChannelOption.MAX_SGES, new int[] {-1, 256}),
            Map.entry(RdmaChannelOption.READ_DEPTH, new int[] {0, 128}),
            Map.entry(RdmaChannelOption.RETRY_COUNT, new int[] {0, 7}),
            Map.entry(RdmaChannelOption.RNR_RETRY_COUNT, new int[] {0, 7}),
            Map.entry(RdmaChannelOption.MIN_RNR_TIMER_MICROS, new int[] {-1, 655_360}),
            Map.entry(RdmaChannelOption.ACK_TIMEOUT_MICROS, new int[] {-1, 17_179_869}),
            Map.entry(RdmaChannelOption.CLOSE_TIMEOUT_MILLIS, new int[] {1, ANY}),
            Map.entry(RdmaChannelOption.KEEP_ALIVE_MILLIS, new int[] {0, ANY}),
            Map.entry(RdmaChannelOption.PLAIN_TCP_AFTER_MILLIS, new int[] {0, ANY}),
            Map.entry(ChannelOption.IP_TOS, new int[] {0, 255}),
            Map.entry(ChannelOption.SO_BACKLOG, new int[] {1, ANY}),
            Map.entry(ChannelOption.SO_SNDBUF, new int[] {1, ANY}),
            Map.entry(ChannelOption.SO_RCVBUF, new int[] {1, ANY}));

    /** A value other than the default of each option that is neither a number nor a flag. */
    private static final List<Object> SAMPLES = List.of(
            PreSharedKeys.of("key", new byte[32]),
            SendCompletion.POSTED,
            new byte[] {1, 2},
            LadderOptions.DEFAULTS,
            UnpooledByteBufAllocator.DEFAULT,
            new FixedRecvByteBufAllocator(77),
            new DefaultMessageSizeEstimator(3),
            new WriteBufferWaterMark(1000, 2000));

    private enum Kind {
        MESSAGES(() -> new RdmaChannel().config()),
        STREAM(() -> new RdmaSocketChannel().config()),
        LADDER(() -> new LadderSocketChannel().config()),
        SERVER(() -> new RdmaServerChannel().config()),
        SERVER_SOCKET(() -> new RdmaServerSocketChannel().config()),
        DATAGRAMS(() -> new RdmaDatagramChannel().config()),
        PLAIN(() -> new PlainSocketChannelConfig(new NioSocketChannel().config(), () -> {}));

        private final Supplier<ChannelConfig> options;

        Kind(Supplier<ChannelConfig> options) {
            this.options = options;
        }

        ChannelConfig make() {
            return options.get();
        }

        boolean isStream() {
            return this == STREAM || this == LADDER;
        }
    }

    @SuppressWarnings("unchecked") // tests set what they have read
    private static ChannelOption<Object> untyped(ChannelOption<?> option) {
        return (ChannelOption<Object>) option;
    }

    /** A datagram channel's receives do not adapt to its peers. */
    private static int[] bounds(Kind kind, ChannelOption<?> option) {
        return kind == Kind.DATAGRAMS && option.equals(RdmaChannelOption.RECEIVE_DEPTH)
                ? new int[] {1, 65536}
                : BOUNDS.get(option);
    }

    /** Another value that an option takes. */
    private static Object another(ChannelConfig config, ChannelOption<?> option, Object now) {
        if (option.equals(RdmaChannelOption.FRAMING)) {
            return now == Framing.MESSAGE ? Framing.RAW : now;
        }
        if (option.equals(ChannelOption.IP_TOS)) {
            return 16; // kernels mask the lowest bits
        }
        if (now instanceof Boolean flag) {
            return !flag;
        }
        if (now instanceof Integer number) {
            int[] bounds = BOUNDS.get(option);
            return number == ANY || bounds != null && number == bounds[1] ? number - 1 : number + 1;
        }
        for (Object sample : SAMPLES) {
            if (sampleFits(option, now, sample)) {
                return sample;
            }
        }
        throw new AssertionError("no sample for " + option + " of " + config);
    }

    private static boolean sampleFits(ChannelOption<?> option, Object now, Object sample) {
        if (now != null) {
            return Stream.of(
                            io.netty.buffer.ByteBufAllocator.class,
                            io.netty.channel.RecvByteBufAllocator.class,
                            io.netty.channel.MessageSizeEstimator.class,
                            WriteBufferWaterMark.class,
                            SendCompletion.class)
                    .anyMatch(type -> type.isInstance(now) && type.isInstance(sample));
        }
        return option.equals(RdmaChannelOption.PRE_SHARED_KEYS) && sample instanceof PreSharedKeys
                || option.equals(RdmaChannelOption.LADDER) && sample instanceof LadderOptions
                || isPrivateData(option) && sample instanceof byte[];
    }

    private static boolean isPrivateData(ChannelOption<?> option) {
        return option.equals(RdmaChannelOption.CONNECT_PRIVATE_DATA)
                || option.equals(RdmaChannelOption.ACCEPT_PRIVATE_DATA);
    }

    @ParameterizedTest
    @EnumSource
    void takesEachOptionAndGivesItBack(Kind kind) {
        for (ChannelOption<?> option : kind.make().getOptions().keySet()) {
            if (option instanceof NioChannelOption) {
                continue; // the kernel's own, some of which a socket has only once it is connected
            }
            ChannelConfig config = kind.make();
            Object value = another(config, option, config.getOption(option));
            if (kind.isStream() && isPrivateData(option)) {
                assertThatThrownBy(() -> config.setOption(untyped(option), value))
                        .isInstanceOf(IllegalArgumentException.class);
                assertThat(config.getOption(option)).isNull();
                continue;
            }
            assertThat(config.setOption(untyped(option), value))
                    .as("%s", option)
                    .isTrue();
            assertThat(config.getOption(untyped(option))).as("%s", option).isEqualTo(value);
            assertThat(config.getOptions().get(option)).as("%s", option).isEqualTo(value);
            assertThat(kind.make().setOptions(Map.of(option, value)))
                    .as("%s", option)
                    .isTrue();
        }
    }

    @ParameterizedTest
    @EnumSource(
            names = {"PLAIN"},
            mode = EnumSource.Mode.EXCLUDE) // its numbers are the kernel's
    void refusesWhatIsOutOfBounds(Kind kind) {
        for (ChannelOption<?> option : kind.make().getOptions().keySet()) {
            ChannelConfig config = kind.make();
            Object preset = config.getOption(option);
            int[] bounds = bounds(kind, option);
            if (bounds == null) {
                assertThat(preset instanceof Integer && RdmaChannelOption.isOneOf(option))
                        .as("%s has bounds in this test", option)
                        .isFalse();
                continue;
            }
            ChannelOption<Object> number = untyped(option);
            assertThatThrownBy(() -> config.setOption(number, bounds[0] - 1))
                    .as("%s", option)
                    .isInstanceOf(IllegalArgumentException.class);
            if (bounds[1] < ANY) {
                assertThatThrownBy(() -> config.setOption(number, bounds[1] + 1))
                        .as("%s", option)
                        .isInstanceOf(IllegalArgumentException.class);
            }
            assertThat(config.getOption(option)).as("%s", option).isEqualTo(preset);
            for (int bound : bounds) {
                assertThat(config.setOption(number, bound)).isTrue();
                assertThat(config.getOption(option)).isEqualTo(bound);
            }
        }
    }

    @ParameterizedTest
    @EnumSource
    void refusesNullAndLeavesTheRestToNetty(Kind kind) {
        ChannelConfig config = kind.make();
        ChannelOption<Integer> unknown = ChannelOption.valueOf(OptionsTest.class, "UNKNOWN");
        assertThat(config.setOption(unknown, 1)).isFalse();
        assertThat(config.getOption(unknown)).isNull();
        assertThat(config.getOptions()).doesNotContainKey(unknown);
        for (ChannelOption<?> option : config.getOptions().keySet()) {
            Object preset = config.getOption(option);
            assertThat(catchThrowable(() -> config.setOption(option, null)))
                    .as("%s", option)
                    .isInstanceOfAny(NullPointerException.class, IllegalArgumentException.class);
            assertThat(config.getOption(untyped(option))).isEqualTo(preset);
        }
    }

    @Test
    void onlyServersKnowAServersOptions() {
        for (ChannelOption<?> option : List.of(ChannelOption.SO_BACKLOG, RdmaChannelOption.PLAIN_TCP)) {
            assertThat(new RdmaChannel().config().getOption(option)).isNull();
            assertThat(new RdmaSocketChannel().config().getOption(option)).isNull();
        }
        assertThat(new RdmaServerChannel().config().setOption(RdmaChannelOption.PLAIN_TCP, true))
                .isFalse();
        assertThat(new RdmaSocketChannel().config().setOption(RdmaChannelOption.LADDER, LadderOptions.DEFAULTS))
                .isFalse();
        assertThat(new RdmaChannel().config().setOption(ChannelOption.TCP_NODELAY, true))
                .isFalse();
    }

    @Test
    void aStreamWithoutASharedQueueHasReceivesOfItsOwnSize() {
        ChannelConfig config = new RdmaSocketChannel().config();
        assertThat(config.getOption(RdmaChannelOption.RECEIVE_BUFFER_BYTES)).isEqualTo(63 << 10);
        config.setOption(RdmaChannelOption.SHARED_RECEIVE_QUEUE, true);
        assertThat(config.getOption(RdmaChannelOption.RECEIVE_BUFFER_BYTES)).isEqualTo(-1);
        assertThat(config.getOption(RdmaChannelOption.RENDEZVOUS_THRESHOLD_BYTES))
                .isEqualTo(ANY);
        assertThat(config.getOption(RdmaChannelOption.MAX_SGES)).isEqualTo(-1);
        config.setOption(ChannelOption.SO_LINGER, -7);
        assertThat(config.getOption(ChannelOption.SO_LINGER)).isEqualTo(-1);
    }

    /** What is read when the connection is made cannot be set afterwards, but for what sockets take at any time. */
    @Test
    void refusesWhatIsReadOnceTheConnectionIsMade() {
        ChannelConfig messages =
                new RdmaChannelConfig<>(RdmaChannelConfig.MESSAGE_ROWS, new RdmaChannel(), () -> true, () -> {});
        ChannelConfig stream = new RdmaSocketChannelConfig(
                RdmaSocketChannelConfig.STREAM_ROWS, new RdmaSocketChannel(), () -> true, () -> {});
        for (ChannelConfig config : List.of(messages, stream)) {
            for (ChannelOption<?> option : config.getOptions().keySet()) {
                Object preset = config.getOption(option);
                Object value = another(config, option, preset);
                boolean isOnce = RdmaChannelOption.isOneOf(option)
                        || config.equals(messages) && option.equals(ChannelOption.IP_TOS);
                if (config.equals(stream) && isPrivateData(option)) {
                    continue; // never taken
                }
                if (isOnce) {
                    assertThatThrownBy(() -> config.setOption(untyped(option), value))
                            .as("%s", option)
                            .isInstanceOf(IllegalStateException.class);
                    assertThat(config.getOption(untyped(option)))
                            .as("%s", option)
                            .isEqualTo(preset);
                } else {
                    assertThat(config.setOption(untyped(option), value))
                            .as("%s", option)
                            .isTrue();
                }
            }
        }
    }

    @Test
    void copiesArrays() {
        byte[] data = {1, 2};
        ChannelConfig config = new RdmaChannel().config();
        config.setOption(RdmaChannelOption.CONNECT_PRIVATE_DATA, data);
        data[0] = 9;
        config.getOption(RdmaChannelOption.CONNECT_PRIVATE_DATA)[1] = 9;
        assertThat(config.getOption(RdmaChannelOption.CONNECT_PRIVATE_DATA)).containsExactly(1, 2);
    }

    @Test
    void aPlainConnectionTakesAnRdmaOptionWithoutEffect() {
        AtomicInteger keys = new AtomicInteger();
        ChannelConfig config = new PlainSocketChannelConfig(new NioSocketChannel().config(), keys::incrementAndGet);
        for (ChannelOption<?> option : new RdmaChannel().config().getOptions().keySet()) {
            if (RdmaChannelOption.isOneOf(option)) {
                assertThat(config.setOption(untyped(option), new byte[1])).isTrue();
                assertThat(config.getOption(option)).isNull();
            }
        }
        assertThat(keys).hasValue(1);
    }

    // ---- by name

    /** What UDP sockets have and RDMA has not. */
    private static final Set<String> REFUSED =
            Set.of("setSendBufferSize", "setReceiveBufferSize", "setTimeToLive", "setInterface", "setNetworkInterface");

    @ParameterizedTest
    @EnumSource
    void setsByNameWhatIsTheOption(Kind kind) throws Exception {
        Class<?> type = Stream.of(
                        SocketChannelConfig.class, ServerSocketChannelConfig.class, DatagramChannelConfig.class)
                .filter(one -> one.isInstance(kind.make()))
                .findAny()
                .orElse(ChannelConfig.class);
        List<String> set = new ArrayList<>();
        for (Method setter : type.getMethods()) {
            if (!setter.getName().startsWith("set")
                    || setter.getParameterCount() != 1
                    || setter.getName().equals("setOptions")
                    || setter.isBridge()
                    || setter.isDefault()) {
                continue;
            }
            ChannelConfig config = kind.make();
            if (kind == Kind.DATAGRAMS && REFUSED.contains(setter.getName())) {
                Object any = setter.getParameterTypes()[0] == int.class ? 1 : null;
                assertThatThrownBy(() -> setter.invoke(config, any))
                        .as("%s", setter)
                        .isInstanceOf(InvocationTargetException.class)
                        .cause()
                        .isInstanceOfAny(UnsupportedOperationException.class, NullPointerException.class);
                continue;
            }
            Method getter = getter(type, setter);
            Object now = getter.invoke(config);
            if (kind == Kind.DATAGRAMS
                    && Set.of("setBroadcast", "setLoopbackModeDisabled").contains(setter.getName())) {
                assertThat(setter.invoke(config, false)).isSameAs(config);
                assertThatThrownBy(() -> setter.invoke(config, true))
                        .cause()
                        .isInstanceOf(UnsupportedOperationException.class);
                continue;
            }
            Object value = now instanceof Integer || now instanceof Boolean
                    ? other(kind, setter, now)
                    : another(config, ChannelOption.ALLOCATOR, now);
            Map<ChannelOption<?>, Object> before = config.getOptions();
            assertThat(setter.invoke(config, value)).as("%s", setter).isSameAs(config);
            assertThat(getter.invoke(config)).as("%s", setter).isEqualTo(value);
            assertThat(changed(before, config.getOptions())).as("%s", setter).contains(value);
            set.add(setter.getName());
        }
        assertThat(set).contains("setAutoRead", "setAllocator", "setConnectTimeoutMillis");
    }

    private static Object other(Kind kind, Method setter, Object now) {
        if (now instanceof Boolean flag) {
            return !flag;
        }
        int number = (Integer) now;
        return switch (setter.getName()) {
            case "setWriteBufferLowWaterMark" -> number - 1;
            case "setSendBufferSize", "setReceiveBufferSize" -> kind == Kind.PLAIN ? number / 2 : number + 1;
            case "setTrafficClass" -> 16;
            default -> number + 1;
        };
    }

    private static Method getter(Class<?> type, Method setter) throws NoSuchMethodException {
        String name = setter.getName().substring(3);
        return type.getMethod((setter.getParameterTypes()[0] == boolean.class ? "is" : "get") + name);
    }

    private static List<Object> changed(Map<ChannelOption<?>, Object> before, Map<ChannelOption<?>, Object> after) {
        List<Object> values = new ArrayList<>();
        after.forEach((option, value) -> {
            if (!Objects.equals(before.get(option), value)) {
                values.add(value);
            }
        });
        return values;
    }

    @Test
    void performancePreferencesDoNothing() {
        SocketChannelConfig config = new RdmaSocketChannel().config();
        Map<ChannelOption<?>, Object> before = config.getOptions();
        assertThat(config.setPerformancePreferences(1, 2, 3)).isSameAs(config);
        assertThat(changed(before, config.getOptions())).isEmpty();
    }

    /** A setting of one thread does not undo another's. */
    @ParameterizedTest
    @EnumSource(names = {"DATAGRAMS", "SERVER_SOCKET", "STREAM"})
    void keepsWhatSeveralThreadsSet(Kind kind) throws Exception {
        ChannelConfig config = kind.make();
        List<ChannelOption<Object>> numbers = config.getOptions().keySet().stream()
                .filter(BOUNDS::containsKey)
                .map(OptionsTest::untyped)
                .toList();
        assertThat(numbers).hasSizeGreaterThan(3);
        try (ExecutorService threads = Executors.newFixedThreadPool(numbers.size())) {
            List<Future<?>> ends = new ArrayList<>();
            for (ChannelOption<Object> option : numbers) {
                ends.add(threads.submit(() -> {
                    for (int value = 1; value <= 100; value++) {
                        config.setOption(option, Math.min(value, BOUNDS.get(option)[1]));
                    }
                }));
            }
            for (Future<?> end : ends) {
                end.get(Patience.LIMIT.toMillis(), TimeUnit.MILLISECONDS);
            }
        }
        for (ChannelOption<Object> option : numbers) {
            assertThat(config.getOption(option)).as("%s", option).isEqualTo(Math.min(100, BOUNDS.get(option)[1]));
        }
    }
}
