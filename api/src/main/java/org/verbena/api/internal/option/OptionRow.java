package org.verbena.api.internal.option;

import io.netty.channel.ChannelOption;
import java.util.HashMap;
import java.util.Map;
import java.util.function.BiConsumer;
import java.util.function.Function;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;

/**
 * One option of a kind of channel. A kind has a table of them, which its {@link TableConfig} reads.
 *
 * @param option its name and type
 * @param getter returns its value, else its default; null for none
 * @param setter checks a value and keeps it
 * @param isListed whether it is among a channel's options; an option that is only refused is not
 * @param <T> the type of its values
 */
public record OptionRow<T>(
        ChannelOption<T> option, Function<TableConfig<?>, @Nullable T> getter, Setter<T> setter, boolean isListed) {

    /** Sets an option. */
    @FunctionalInterface
    interface Setter<T> {
        /**
         * Sets it.
         *
         * @return false if the channel does not know the option
         * @throws IllegalArgumentException the option has no such value
         * @throws IllegalStateException the option has been read for good
         * @throws UnsupportedOperationException such a channel cannot do that
         */
        boolean set(TableConfig<?> config, T value);
    }

    /** An option that takes any value at any time. */
    public static <T> OptionRow<T> kept(ChannelOption<T> option, @Nullable T preset) {
        return computed(option, config -> preset);
    }

    /** The same, whose default depends on the other options. */
    public static <T> OptionRow<T> computed(ChannelOption<T> option, Function<TableConfig<?>, @Nullable T> preset) {
        return new OptionRow<>(
                option,
                config -> {
                    T value = config.kept(option);
                    return value == null ? preset.apply(config) : value;
                },
                (config, value) -> {
                    config.keep(option, value);
                    return true;
                },
                true);
    }

    /** A number, which must be within two bounds. */
    public static OptionRow<Integer> within(OptionRow<Integer> row, int min, int max) {
        return row.checked((config, value) -> {
            if (value < min || value > max) {
                throw new IllegalArgumentException(row.option + " " + value + " is not within " + min + " to " + max);
            }
        });
    }

    /** An option whose values, or some of them, have no meaning here; the check throws for those. */
    public static <T> OptionRow<T> refused(ChannelOption<T> option, BiConsumer<TableConfig<?>, T> check) {
        return new OptionRow<>(option, config -> null, (config, value) -> false, false).checked(check);
    }

    /** This option, whose values are checked first. */
    public OptionRow<T> checked(BiConsumer<TableConfig<?>, T> check) {
        return new OptionRow<>(
                option,
                getter,
                (config, value) -> {
                    check.accept(config, value);
                    return setter.set(config, value);
                },
                isListed);
    }

    /** This option, which is read when the connection is made and cannot be set afterwards. */
    public OptionRow<T> untilStarted() {
        return checked((config, value) -> {
            if (config.hasStarted()) {
                throw new IllegalStateException(option
                        + " is read when the connection is made, and this one has been: set it on the bootstrap");
            }
        });
    }

    /** This option, which is not among those that a channel lists. */
    public OptionRow<T> unlisted() {
        return new OptionRow<>(option, getter, setter, false);
    }

    /** This option, which keeps and returns another form of the value, such as a copy. */
    public OptionRow<T> as(UnaryOperator<T> form) {
        return new OptionRow<>(
                option,
                config -> {
                    T value = getter.apply(config);
                    return value == null ? null : form.apply(value);
                },
                (config, value) -> setter.set(config, form.apply(value)),
                isListed);
    }

    /**
     * Makes a table.
     *
     * @param inherited another's rows
     * @param rows more rows; they take the place of inherited ones for the same option
     */
    public static Map<ChannelOption<?>, OptionRow<?>> table(
            Map<ChannelOption<?>, OptionRow<?>> inherited, OptionRow<?>... rows) {
        Map<ChannelOption<?>, OptionRow<?>> table = new HashMap<>(inherited);
        for (OptionRow<?> row : rows) {
            table.put(row.option, row);
        }
        return Map.copyOf(table);
    }
}
