package org.verbena.samples.command;

import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import com.google.gson.TypeAdapter;
import com.google.gson.TypeAdapterFactory;
import com.google.gson.reflect.TypeToken;
import com.google.gson.stream.JsonReader;
import com.google.gson.stream.JsonWriter;
import java.io.IOException;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** Writes records, maps, collections and their elements as JSON; other values, such as addresses, as text. */
public final class Json {
    private static final Gson GSON = new GsonBuilder()
            .setPrettyPrinting()
            .serializeNulls()
            .disableHtmlEscaping()
            .registerTypeAdapterFactory(new Text())
            .create();

    private Json() {}

    /** Numbers that do not fit a double's 53 bits are written exactly; readers that use doubles round them. */
    public static String of(@Nullable Object value) {
        return GSON.toJson(value) + "\n";
    }

    private static final class Text implements TypeAdapterFactory {
        @Override
        public <T> @Nullable TypeAdapter<T> create(Gson gson, TypeToken<T> type) {
            Class<? super T> raw = type.getRawType();
            boolean isJson = raw.isPrimitive()
                    || raw.isRecord()
                    || raw == Object.class
                    || raw == Boolean.class
                    || Number.class.isAssignableFrom(raw)
                    || Map.class.isAssignableFrom(raw)
                    || Iterable.class.isAssignableFrom(raw);
            return isJson
                    ? null
                    : new TypeAdapter<T>() {
                        @Override
                        public void write(JsonWriter out, @Nullable T value) throws IOException {
                            out.value(value == null ? null : value.toString());
                        }

                        @Override
                        public T read(JsonReader in) {
                            throw new UnsupportedOperationException("it is only written");
                        }
                    };
        }
    }
}
