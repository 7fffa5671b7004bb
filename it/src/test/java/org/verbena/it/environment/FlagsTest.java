package org.verbena.it.environment;

import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** JVMs with other collectors, compilers and limits, and Netty with other settings: small and large echoes pass. */
@Timeout(120)
class FlagsTest {

    /**
     * What differs most from the defaults: another collector, a small heap, one processor, no fast access to memory.
     */
    @ParameterizedTest
    @ValueSource(
            strings = {
                "-XX:+UseZGC -XX:+UseCompactObjectHeaders",
                "-XX:+UseSerialGC -Xmx24m -XX:MaxDirectMemorySize=16m -XX:ActiveProcessorCount=1",
                "-Xcheck:jni -Dio.netty.noUnsafe=true -Dio.netty.allocator.type=unpooled",
            })
    void softAndShmEcho(String flags) throws Exception {
        echo(flags);
    }

    @Tag("full")
    @ParameterizedTest
    @ValueSource(
            strings = {
                "-XX:+UseParallelGC",
                "-XX:+UseShenandoahGC",
                "-XX:+UnlockExperimentalVMOptions -XX:+UseEpsilonGC -Xmx512m",
                "-XX:+UseSerialGC -Xmx64m",
                "-XX:+UseCompactObjectHeaders",
                "-XX:-UseCompressedOops",
                "-Xint",
                "-Xss256k",
                "-XX:ActiveProcessorCount=1",
                "-XX:MaxDirectMemorySize=16m",
                "--sun-misc-unsafe-memory-access=deny",
                "--sun-misc-unsafe-memory-access=allow",
                "-Dio.netty.noUnsafe=true",
                "-Dio.netty.noPreferDirect=true",
                "-Dio.netty.allocator.type=unpooled",
                "-Dio.netty.allocator.type=pooled",
                "-Dio.netty.allocator.type=adaptive",
                "-Dio.netty.leakDetection.level=paranoid",
                "-Djava.net.preferIPv4Stack=true",
                "-Djava.net.preferIPv6Addresses=true",
                "-Duser.language=tr -Duser.country=TR",
                "-Duser.language=ar -Duser.country=EG -Dstdout.encoding=US-ASCII",
                "-Dorg.verbena.buffers.hugePages=true",
                "-XX:+UnlockExperimentalVMOptions -XX:+UseSystemMemoryBarrier",
            })
    void softAndShmEchoWithOneSetting(String flags) throws Exception {
        echo(flags);
    }

    private static void echo(String flags) throws Exception {
        new ChildJvm(Stream.concat(Stream.of("--enable-native-access=ALL-UNNAMED"), List.of(flags.split(" ")).stream())
                        .toArray(String[]::new))
                .run(Echo.class, "soft", "shm")
                .succeeded("soft echoes", "shm echoes");
    }
}
