package org.verbena.bench.peers.contenders;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufAllocator;
import java.util.List;

/** What the frameworks on Netty have in common. */
final class Nettys {
    /** As many as requests are outstanding at most, where a connection takes one at a time. */
    static final int CONNECTIONS = 64;

    static final List<String> JVM_FLAGS = List.of(
            "--enable-native-access=ALL-UNNAMED",
            "--sun-misc-unsafe-memory-access=allow", // else Netty does without Unsafe since Java 24
            "--add-opens=java.base/java.nio=ALL-UNNAMED",
            "--add-opens=java.base/jdk.internal.misc=ALL-UNNAMED",
            "-Dio.netty.tryReflectionSetAccessible=true"); // buffers without a Cleaner

    private Nettys() {}

    /** A message: the payload, with the sequence number in place of its first 8 bytes. */
    static ByteBuf message(ByteBufAllocator allocator, long sequence, byte[] payload) {
        return allocator.directBuffer(payload.length).writeLong(sequence).writeBytes(payload, 8, payload.length - 8);
    }
}
