package org.verbena.api.service;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * Small values that go with a request or a reply beside its message, by name: a token, a tenant, the context of a
 * trace. Immutable; start from {@link #EMPTY}.
 *
 * <pre>{@code
 * Metadata metadata = Metadata.EMPTY.with("tenant", "blue").with("token", bytes);
 * }</pre>
 *
 * <p>Names consist of 1 to 200 of the characters {@code a} to {@code z}, {@code 0} to {@code 9}, {@code .}, {@code _}
 * and {@code -}, and each occurs once. Values are bytes; a text is its UTF-8. There are at most {@value #MAX_ENTRIES}
 * entries, and {@value #MAX_BYTES} bytes of names and values, with 3 bytes more for each entry.
 */
public final class Metadata {
    /** The most entries. */
    public static final int MAX_ENTRIES = 56;

    /** The most bytes: of all names and values, and 3 for each entry. */
    public static final int MAX_BYTES = 7 << 10;

    /** The longest name. */
    private static final int MAX_NAME_CHARS = 200;

    /** What an entry takes beside its name and value: their lengths. */
    private static final int ENTRY_BYTES = 3;

    /** Without entries. */
    public static final Metadata EMPTY = new Metadata(Map.of(), 0);

    /** In the order in which they were added. Arrays are never given away. */
    private final Map<String, byte[]> entries;

    private final int bytes;

    private Metadata(Map<String, byte[]> entries, int bytes) {
        this.entries = entries;
        this.bytes = bytes;
    }

    /**
     * Creates metadata with these entries.
     *
     * @param entries values by name; copied
     * @return in the order of the map
     * @throws IllegalArgumentException a name is none, or there are too many entries or bytes
     */
    public static Metadata of(Map<String, byte[]> entries) {
        Map<String, byte[]> all = LinkedHashMap.newLinkedHashMap(entries.size());
        int sum = 0;
        for (Map.Entry<String, byte[]> each : entries.entrySet()) {
            checkName("the name of metadata", each.getKey());
            all.put(each.getKey(), each.getValue().clone());
            sum += ENTRY_BYTES + each.getKey().length() + each.getValue().length;
        }
        return all.isEmpty() ? EMPTY : checked(all, sum);
    }

    /**
     * The same with an entry, in place of the one that has this name.
     *
     * @param name what it is called
     * @param value any text
     * @return changed metadata
     * @throws IllegalArgumentException the name is none, or there would be too many entries or bytes
     */
    public Metadata with(String name, String value) {
        return put(name, value.getBytes(StandardCharsets.UTF_8));
    }

    /**
     * As {@link #with(String, String)}.
     *
     * @param name what it is called
     * @param value any bytes; copied
     * @return changed metadata
     * @throws IllegalArgumentException the name is none, or there would be too many entries or bytes
     */
    public Metadata with(String name, byte[] value) {
        return put(name, value.clone());
    }

    private Metadata put(String name, byte[] value) {
        checkName("the name of metadata", name);
        Map<String, byte[]> all = new LinkedHashMap<>(entries);
        byte[] before = all.put(name, value);
        int size = ENTRY_BYTES + name.length();
        return checked(all, bytes + size + value.length - (before == null ? 0 : size + before.length));
    }

    private static Metadata checked(Map<String, byte[]> all, int bytes) {
        if (all.size() > MAX_ENTRIES || bytes > MAX_BYTES) {
            throw new IllegalArgumentException("metadata of " + all.size() + " entries and " + bytes
                    + " bytes is over the limit of " + MAX_ENTRIES + " entries and " + MAX_BYTES
                    + " bytes: send what is longer in the message");
        }
        return new Metadata(all, bytes);
    }

    /**
     * The same with all entries of another one, in place of those that have their names.
     *
     * @param more what to add
     * @return changed metadata
     * @throws IllegalArgumentException there would be too many entries or bytes
     */
    public Metadata with(Metadata more) {
        if (isEmpty() || more.isEmpty()) {
            return isEmpty() ? more : this;
        }
        Map<String, byte[]> all = new LinkedHashMap<>(entries);
        all.putAll(more.entries);
        int sum = 0;
        for (Map.Entry<String, byte[]> each : all.entrySet()) {
            sum += ENTRY_BYTES + each.getKey().length() + each.getValue().length;
        }
        return checked(all, sum);
    }

    /**
     * Checks whether a text may name an entry, a service or a method.
     *
     * @param what the text is, for the exception
     * @param name the text
     * @return the text
     * @throws IllegalArgumentException it may not
     */
    static String checkName(String what, String name) {
        boolean valid = !name.isEmpty() && name.length() <= MAX_NAME_CHARS;
        for (int i = 0; valid && i < name.length(); i++) {
            valid = isNameByte(name.charAt(i));
        }
        if (!valid) {
            throw new IllegalArgumentException(what + " is \"" + name + "\", and must be 1 to " + MAX_NAME_CHARS
                    + " of the characters a to z, 0 to 9, '.', '_' and '-'");
        }
        return name;
    }

    /**
     * Tells whether names may have this character.
     *
     * @param c an ASCII character
     * @return true for lower-case letters, digits, {@code .}, {@code _} and {@code -}
     */
    public static boolean isNameByte(int c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
    }

    /**
     * Returns a value as text.
     *
     * @param name of the entry
     * @return its bytes as UTF-8; null if there is no such entry
     */
    public @Nullable String text(String name) {
        byte[] value = entries.get(Objects.requireNonNull(name, "the name is null"));
        return value == null ? null : new String(value, StandardCharsets.UTF_8);
    }

    /**
     * Returns a value.
     *
     * @param name of the entry
     * @return a copy of its bytes; null if there is no such entry
     */
    public byte @Nullable [] bytes(String name) {
        byte[] value = entries.get(Objects.requireNonNull(name, "the name is null"));
        return value == null ? null : value.clone();
    }

    /**
     * Returns the names of all entries, in the order in which they were added.
     *
     * @return unmodifiable
     */
    public Set<String> names() {
        return Collections.unmodifiableSet(entries.keySet());
    }

    /**
     * Returns whether there are no entries.
     *
     * @return true if there are none
     */
    public boolean isEmpty() {
        return entries.isEmpty();
    }

    /**
     * Returns how many of {@link #MAX_BYTES} it takes.
     *
     * @return the bytes of all names and values, and 3 for each entry
     */
    public int sizeBytes() {
        return bytes;
    }

    /**
     * Compares the entries, not their order.
     *
     * @param other anything
     * @return true for metadata with the same names and values
     */
    @Override
    public boolean equals(@Nullable Object other) {
        if (!(other instanceof Metadata same) || bytes != same.bytes || !names().equals(same.names())) {
            return false;
        }
        return entries.entrySet().stream()
                .allMatch(entry -> Arrays.equals(entry.getValue(), same.entries.get(entry.getKey())));
    }

    @Override
    public int hashCode() {
        return names().hashCode();
    }

    /** Only the names: values may be secrets. */
    @Override
    public String toString() {
        return names().toString();
    }
}
