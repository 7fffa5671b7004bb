package org.verbena.it.lab;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** How much memory this process has from malloc(3), in all of its arenas. */
@SuppressWarnings("restricted") // downcalls
final class NativeHeap {
    private static final Pattern FREE =
            Pattern.compile("<total type=\"(?:fast|rest)\" count=\"\\d+\" size=\"(\\d+)\"/>");
    private static final Pattern SYSTEM = Pattern.compile("<system type=\"current\" size=\"(\\d+)\"/>");
    private static final Pattern MAPPED = Pattern.compile("<total type=\"mmap\" count=\"\\d+\" size=\"(\\d+)\"/>");

    private NativeHeap() {}

    /** The least of some readings: the JVM's compiler takes and gives back megabytes at any time. */
    static long minInUseBytes() throws IOException, InterruptedException {
        long min = Long.MAX_VALUE;
        for (int i = 0; i < 20; i++) {
            min = Math.min(min, inUseBytes());
            Thread.sleep(20);
        }
        return min;
    }

    /** What is handed out: what malloc has from the system less what is free in it. Source: malloc_info(3) */
    static long inUseBytes() throws IOException {
        Path file = Files.createTempFile("malloc", ".xml");
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment stream = (MemorySegment) function(
                            "fopen",
                            FunctionDescriptor.of(ValueLayout.ADDRESS, ValueLayout.ADDRESS, ValueLayout.ADDRESS))
                    .invokeExact(arena.allocateFrom(file.toString()), arena.allocateFrom("w"));
            int ignored = (int) function(
                            "malloc_info",
                            FunctionDescriptor.of(ValueLayout.JAVA_INT, ValueLayout.JAVA_INT, ValueLayout.ADDRESS))
                    .invokeExact(0, stream);
            ignored = (int) function("fclose", FunctionDescriptor.of(ValueLayout.JAVA_INT, ValueLayout.ADDRESS))
                    .invokeExact(stream);
        } catch (IOException | RuntimeException | Error e) {
            throw e;
        } catch (Throwable impossible) {
            throw new AssertionError(impossible);
        }
        String text = Files.readString(file);
        Files.delete(file);
        // The sums over all arenas come after the last of them.
        String sums = text.substring(text.lastIndexOf("</heap>"));
        return sum(SYSTEM, sums) + sum(MAPPED, sums) - sum(FREE, sums);
    }

    private static long sum(Pattern pattern, String text) {
        long sum = 0;
        for (Matcher matcher = pattern.matcher(text); matcher.find(); ) {
            sum += Long.parseLong(matcher.group(1));
        }
        return sum;
    }

    private static java.lang.invoke.MethodHandle function(String name, FunctionDescriptor descriptor) {
        Linker linker = Linker.nativeLinker();
        return linker.downcallHandle(linker.defaultLookup().find(name).orElseThrow(), descriptor);
    }
}
