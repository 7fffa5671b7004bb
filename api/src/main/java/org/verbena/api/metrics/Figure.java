package org.verbena.api.metrics;

import io.micrometer.core.instrument.FunctionCounter;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.TimeGauge;
import io.micrometer.core.instrument.binder.BaseUnits;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import java.util.function.ToDoubleFunction;
import java.util.function.ToLongFunction;
import org.jspecify.annotations.Nullable;

/**
 * A figure of statistics as a meter.
 *
 * @param <S> the statistics, a record
 */
record Figure<S>(String name, String description, Kind kind, ToLongFunction<S> figure) {
    /** What kind of meter it is, and its unit. */
    enum Kind {
        NOW(null),
        BYTES_NOW(BaseUnits.BYTES),
        SO_FAR(null),
        BYTES_SO_FAR(BaseUnits.BYTES),
        NANOS(null);

        private final @Nullable String unit;

        Kind(@Nullable String unit) {
            this.unit = unit;
        }
    }

    /**
     * Reads figures from a table, with a line for each: name, kind, the component of the record that has it, or a sum
     * of several, and its description.
     */
    static <S> List<Figure<S>> table(Class<S> type, String lines) {
        return lines.lines()
                .map(line -> Figure.<S>of(type, line.split(" \\| ")))
                .toList();
    }

    private static <S> Figure<S> of(Class<S> type, String[] columns) {
        List<List<Method>> terms = Arrays.stream(columns[2].split("\\+"))
                .map(path -> accessors(type, path.split("\\.")))
                .toList();
        return new Figure<>(
                columns[0],
                columns[3],
                Kind.valueOf(columns[1]),
                statistics ->
                        terms.stream().mapToLong(term -> read(statistics, term)).sum());
    }

    private static List<Method> accessors(Class<?> type, String[] path) {
        List<Method> accessors = new ArrayList<>();
        Class<?> at = type;
        for (String component : path) {
            try {
                Method accessor = at.getMethod(component);
                accessors.add(accessor);
                at = accessor.getReturnType();
            } catch (NoSuchMethodException wrong) {
                throw new IllegalArgumentException(at + " has no " + component, wrong);
            }
        }
        return accessors;
    }

    private static long read(Object statistics, List<Method> accessors) {
        Object value = statistics;
        try {
            for (Method accessor : accessors) {
                value = accessor.invoke(value);
            }
        } catch (ReflectiveOperationException wrong) {
            throw new IllegalStateException(wrong);
        }
        return ((Number) value).longValue();
    }

    /**
     * Adds the meter.
     *
     * @param of the meter holds it weakly
     * @param statistics reads them from it
     */
    <T> void bind(MeterRegistry registry, String tag, String value, T of, Function<T, S> statistics) {
        ToDoubleFunction<T> read = each -> figure.applyAsLong(statistics.apply(each));
        switch (kind) {
            case NOW, BYTES_NOW ->
                Gauge.builder(name, of, read)
                        .description(description)
                        .baseUnit(kind.unit)
                        .tag(tag, value)
                        .register(registry);
            case SO_FAR, BYTES_SO_FAR ->
                FunctionCounter.builder(name, of, read)
                        .description(description)
                        .baseUnit(kind.unit)
                        .tag(tag, value)
                        .register(registry);
            case NANOS ->
                TimeGauge.builder(name, of, TimeUnit.NANOSECONDS, read)
                        .description(description)
                        .tag(tag, value)
                        .register(registry);
        }
    }
}
