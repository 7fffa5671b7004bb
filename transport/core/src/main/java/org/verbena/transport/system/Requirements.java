package org.verbena.transport.system;

import java.lang.foreign.MemorySegment;
import java.security.CodeSource;
import org.jspecify.annotations.Nullable;

/**
 * What this library needs of the JVM and of Netty. Checked before loading classes that could not be loaded without it,
 * so that the program gets a sentence and not the name of a class. This class refers to none of Netty's. Any thread.
 */
public final class Requirements {
    /** The release of which the least update is named below. */
    private static final int RELEASE_WITH_PINNING_FAULT = 25;

    /** The first update in which G1 leaves pinned objects where they are (JDK-8377811). */
    private static final int UPDATE_WITHOUT_PINNING_FAULT = 3;

    /** Before it a method that a channel of Verbena overrides was final. */
    private static final String MIN_NETTY = "4.2.11";

    private static final String OLDER_NETTY = "([0-3]|4\\.[01])\\..*|4\\.2\\.([0-9]|10)\\..*";

    private Requirements() {}

    /**
     * A jar of Netty's.
     *
     * @param artifact its name
     * @param anchor a class that every version has
     * @param marker a class that came with 4.2
     */
    private record Jar(String artifact, String anchor, String marker) {}

    /** The marker of the buffers is their anchor: only the manifest distinguishes 4.1 and 4.2. */
    private static final Jar[] JARS = {
        new Jar("netty-common", "io.netty.util.Version", "io.netty.util.concurrent.ThreadAwareExecutor"),
        new Jar("netty-buffer", "io.netty.buffer.ByteBuf", "io.netty.buffer.ByteBuf"),
        new Jar("netty-transport", "io.netty.channel.Channel", "io.netty.channel.MultiThreadIoEventLoopGroup"),
    };

    /** Asked once for the process. */
    private static final class Answer {
        static final @Nullable String UNMET = ask();

        private Answer() {}

        private static @Nullable String ask() {
            String netty = unmetNetty(Requirements.class.getClassLoader());
            return netty != null ? netty : deniedNativeAccess();
        }
    }

    /**
     * Why nothing of this library can work in this JVM.
     *
     * @return a sentence with what to do, or null if all that it needs is there
     */
    public static @Nullable String unmet() {
        return Answer.UNMET;
    }

    /**
     * The version of Netty that is there.
     *
     * @return such as {@code 4.2.20.Final}; where Netty is a module or packed into another jar, which have no version,
     *     4.2 if that is met
     */
    public static String nettyVersion() {
        Class<?> anchor = find(JARS[0].anchor, Requirements.class.getClassLoader());
        String version = anchor == null ? null : anchor.getPackage().getImplementationVersion();
        return version == null ? "4.2" : version;
    }

    /**
     * What works here and should be changed nevertheless.
     *
     * @param version of Java
     * @return a sentence with what to do, or null
     */
    public static @Nullable String warning(Runtime.Version version) {
        return version.feature() == RELEASE_WITH_PINNING_FAULT
                        && version.interim() == 0
                        && version.update() < UPDATE_WITHOUT_PINNING_FAULT
                ? "Java " + version
                        + " has the fault JDK-8377811: its collector G1 may move an array that native code is"
                        + " using, which spoils data; update to 25.0.3 or newer, or choose -XX:+UseParallelGC or"
                        + " -XX:+UseZGC"
                : null;
    }

    /**
     * The message for a JVM that refuses native access.
     *
     * @param module that was refused
     * @return a sentence with the flag to set
     */
    public static String nativeAccessDenied(Module module) {
        return "native access is denied" + (module.isNamed() ? " to the module " + module.getName() : "")
                + ": start the JVM with --enable-native-access="
                + (module.isNamed()
                        ? "org.verbena.transport, and of org.verbena.transport.shm, org.verbena.verbs and org.verbena.cm"
                                + " those that the program has, all in one list with commas"
                        : "ALL-UNNAMED");
    }

    @SuppressWarnings("restricted") // whether this is allowed is the question
    private static @Nullable String deniedNativeAccess() {
        try {
            MemorySegment ignored = MemorySegment.NULL.reinterpret(1);
            return null;
        } catch (IllegalCallerException denied) {
            return nativeAccessDenied(Requirements.class.getModule());
        }
    }

    /** An older Netty on the class path, whole or in part: another library's parent or platform often puts it there. */
    static @Nullable String unmetNetty(@Nullable ClassLoader loader) {
        for (Jar jar : JARS) {
            Class<?> anchor = find(jar.anchor, loader);
            if (anchor == null) {
                return "Netty " + MIN_NETTY + " or newer is needed, but " + jar.artifact + " is missing: add io.netty:"
                        + jar.artifact + " to the class path";
            }
            String version = anchor.getPackage().getImplementationVersion();
            boolean isOlder = version != null && isTooOld(version);
            if (isOlder || find(jar.marker, loader) == null) {
                return "Netty " + MIN_NETTY + " or newer is needed, but " + jar.artifact + " is "
                        + (version == null ? "older" : version) + place(anchor)
                        + ": have the build take all of Netty from io.netty:netty-bom 4.2 (mvn dependency:tree or"
                        + " gradle dependencyInsight says what asks for the other; with Spring Boot 3 set the property"
                        + " netty.version)";
            }
        }
        return null;
    }

    static boolean isTooOld(String netty) {
        return netty.matches(OLDER_NETTY);
    }

    private static @Nullable Class<?> find(String name, @Nullable ClassLoader loader) {
        try {
            return Class.forName(name, false, loader);
        } catch (ClassNotFoundException | LinkageError absent) {
            return null;
        }
    }

    private static String place(Class<?> anchor) {
        CodeSource source = anchor.getProtectionDomain().getCodeSource();
        return source == null || source.getLocation() == null
                ? ""
                : " (" + source.getLocation().getPath() + ")";
    }
}
