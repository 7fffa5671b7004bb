package org.verbena.samples.command;

import java.lang.reflect.Method;
import java.lang.reflect.RecordComponent;
import java.util.Iterator;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** Writes records, maps, collections and what they hold as JSON, RFC 8259. */
public final class Json {
    private static final String INDENT = "  ";

    private final StringBuilder text = new StringBuilder();

    private Json() {}

    /** Numbers that do not fit a double's 53 bits come out whole; readers that use doubles round them. */
    public static String of(@Nullable Object value) {
        Json json = new Json();
        json.write(value, 0);
        return json.text.append('\n').toString();
    }

    private void write(@Nullable Object value, int depth) {
        switch (value) {
            case null -> text.append("null");
            case Boolean bool -> text.append(bool);
            case Number number -> text.append(number);
            case Map<?, ?> map -> writeObject(map.entrySet().iterator(), depth);
            case Iterable<?> items -> writeArray(items.iterator(), depth);
            case Record record -> write(components(record), depth);
            default -> writeString(value.toString());
        }
    }

    /** What a record has, by name, in its order. */
    public static Map<String, @Nullable Object> components(Record record) {
        Map<String, @Nullable Object> values = new java.util.LinkedHashMap<>();
        for (RecordComponent component : record.getClass().getRecordComponents()) {
            try {
                Method accessor = component.getAccessor();
                accessor.setAccessible(true); // records of one command alone are not public
                values.put(component.getName(), accessor.invoke(record));
            } catch (ReflectiveOperationException impossible) {
                throw new IllegalStateException(impossible);
            }
        }
        return values;
    }

    private void writeObject(Iterator<? extends Map.Entry<?, ?>> entries, int depth) {
        if (!entries.hasNext()) {
            text.append("{}");
            return;
        }
        text.append('{');
        while (entries.hasNext()) {
            Map.Entry<?, ?> entry = entries.next();
            newLine(depth + 1);
            writeString(String.valueOf(entry.getKey()));
            text.append(": ");
            write(entry.getValue(), depth + 1);
            text.append(entries.hasNext() ? "," : "");
        }
        newLine(depth);
        text.append('}');
    }

    private void writeArray(Iterator<?> items, int depth) {
        if (!items.hasNext()) {
            text.append("[]");
            return;
        }
        text.append('[');
        while (items.hasNext()) {
            newLine(depth + 1);
            write(items.next(), depth + 1);
            text.append(items.hasNext() ? "," : "");
        }
        newLine(depth);
        text.append(']');
    }

    private void newLine(int depth) {
        text.append('\n').append(INDENT.repeat(depth));
    }

    private void writeString(String string) {
        text.append('"');
        for (int i = 0; i < string.length(); i++) {
            char c = string.charAt(i);
            switch (c) {
                case '"' -> text.append("\\\"");
                case '\\' -> text.append("\\\\");
                case '\n' -> text.append("\\n");
                case '\r' -> text.append("\\r");
                case '\t' -> text.append("\\t");
                default -> {
                    if (c < 0x20) {
                        text.append(String.format("\\u%04x", (int) c));
                    } else {
                        text.append(c);
                    }
                }
            }
        }
        text.append('"');
    }
}
