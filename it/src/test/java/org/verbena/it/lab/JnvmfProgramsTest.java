package org.verbena.it.lab;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** jNVMf as Maven Central has it, in a JVM of its own, without DiSNI's C library, with the kernel's target of NVMe. */
@Tag("lab")
@Tag("lab-long")
@Tag("lab-full")
@Timeout(300)
class JnvmfProgramsTest {
    /** A program starts a JVM and loads all of the bindings, in a guest where the first to do so takes a minute. */
    private static final Duration LONG = Duration.ofSeconds(240);

    private static PeerProgram start(Class<?> program, List<String> flags, String... arguments) {
        List<String> command = new ArrayList<>(PeerProgram.javaCommand(program.getName(), arguments));
        // jNVMf asks sun.nio.ch.DirectBuffer for the addresses of buffers. Linux' target is what jNVMf calls legacy:
        // each command must say that it has a descriptor, and the sizes of the queues' entries come before the
        // controller is enabled.
        command.addAll(1, List.of("--add-exports=java.base/sun.nio.ch=ALL-UNNAMED", "-Djnvmf.legacy=true"));
        command.addAll(1, flags);
        return PeerProgram.start(command);
    }

    @ParameterizedTest
    @EnumSource
    void readsFromTheKernelsTargetWhatItWrote(LabDevice device) throws IOException {
        try (NvmeTarget target = new NvmeTarget(device.address());
                PeerProgram client =
                        start(NvmeBlocks.class, List.of(), device.address(), "" + NvmeTarget.PORT, NvmeTarget.NAME)) {
            assertThat(client.awaitExit(LONG)).as(client.output()).isZero();
            byte[] disk = Files.readAllBytes(target.disk());
            assertThat(disk).hasSize(NvmeTarget.DISK_MEBIBYTES << 20);
            int blocks = 0;
            for (int[] extent : NvmeBlocks.EXTENTS) {
                blocks += extent[1];
            }
            assertThat(client.output())
                    .contains("model Linux")
                    .contains("namespaces 1 blocks " + disk.length / NvmeBlocks.BLOCK_BYTES)
                    .contains("compared " + blocks * NvmeBlocks.BLOCK_BYTES + " bytes")
                    .endsWith("done");
            assertOnlyWritten(disk);
        }
    }

    /** The kernel's own view: what was written is there, and what was not is as it was. */
    private static void assertOnlyWritten(byte[] disk) {
        byte[] expected = new byte[disk.length];
        for (int[] extent : NvmeBlocks.EXTENTS) {
            int end = (extent[0] + extent[1]) * NvmeBlocks.BLOCK_BYTES;
            for (int i = extent[0] * NvmeBlocks.BLOCK_BYTES; i < end; i++) {
                expected[i] = NvmeBlocks.written(i);
            }
        }
        assertThat(disk).isEqualTo(expected);
    }

    @ParameterizedTest
    @EnumSource
    void passesItsOwnTests(LabDevice device) throws IOException {
        List<String> properties = List.of(
                "-DdestinationAddress=" + device.address(),
                "-DlocalAddress=" + device.address(),
                "-Dport=" + NvmeTarget.PORT,
                "-Dnqn=" + NvmeTarget.NAME);
        try (NvmeTarget target = new NvmeTarget(device.address());
                PeerProgram client = start(NvmeOwnTests.class, properties)) {
            assertThat(client.awaitExit(LONG)).as(client.output()).isZero();
            assertThat(client.output()).contains("passed 23 failed 0");
            assertThat(target.disk()).exists();
        }
    }
}
