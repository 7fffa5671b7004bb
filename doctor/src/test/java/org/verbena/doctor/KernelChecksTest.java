package org.verbena.doctor;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What the kernel's files say, in folders made up for it. */
class KernelChecksTest {
    @TempDir
    private Path root;

    private KernelChecks checks;

    @BeforeEach
    void makeChecks() {
        checks = new KernelChecks(new SystemFiles(root));
    }

    private void write(String path, String text) throws IOException {
        Path file = root.resolve(path);
        Files.createDirectories(file.getParent());
        Files.writeString(file, text);
    }

    private void load(String... modules) throws IOException {
        for (String module : modules) {
            Files.createDirectories(root.resolve("sys/module/" + module));
        }
    }

    private void addDevice() throws IOException {
        Files.createDirectories(root.resolve("sys/class/infiniband/mlx5_0"));
        Files.createDirectories(root.resolve("sys/class/infiniband_verbs/uverbs0"));
        write("sys/class/infiniband_verbs/abi_version", "6\n");
    }

    private void limit(String limit, String effectiveCapabilities) throws IOException {
        write("proc/self/limits", """
                Limit                     Soft Limit           Hard Limit           Units
                Max open files            1024                 1048576              files
                Max locked memory         %s              unlimited            bytes
                """.formatted(limit));
        write("proc/self/status", "Name:\tjava\nVmLck:\t      12 kB\nCapEff:\t" + effectiveCapabilities + "\n");
    }

    @Test
    void namesMissingModules() throws IOException {
        assertThat(checks.modules().verdict()).isEqualTo(Verdict.FAILURE);
        assertThat(checks.modules().evidence()).contains("ib_core", "rdma_ucm");
        load("ib_core", "ib_uverbs", "rdma_cm");
        assertThat(checks.modules())
                .isEqualTo(Finding.failure("kernel modules", "not loaded: rdma_ucm", "modprobe rdma_ucm"));
    }

    @Test
    void saysThatThereIsNoDevice() throws IOException {
        load("ib_core", "ib_uverbs", "rdma_cm", "rdma_ucm");
        assertThat(checks.modules().verdict()).isEqualTo(Verdict.FAILURE);
        assertThat(checks.modules().evidence()).contains("there is no device");
        assertThat(checks.modules().remedy()).contains("rdma link add");
        assertThat(checks.nodes().verdict()).isEqualTo(Verdict.SKIPPED);
    }

    @Test
    void findsDevicesWithTheirNodes() throws IOException {
        load("ib_core", "ib_uverbs", "rdma_cm", "rdma_ucm");
        addDevice();
        write("dev/infiniband/uverbs0", "");
        write("dev/infiniband/rdma_cm", "");
        assertThat(checks.modules()).isEqualTo(Finding.ok("kernel modules", "loaded; devices: mlx5_0"));
        assertThat(checks.nodes())
                .isEqualTo(Finding.ok("device nodes", "/dev/infiniband/uverbs0, /dev/infiniband/rdma_cm"));
    }

    @Test
    void namesNodesThatAContainerDoesNotHave() throws IOException {
        addDevice();
        write(".dockerenv", "");
        Finding nodes = checks.nodes();
        assertThat(nodes.verdict()).isEqualTo(Verdict.FAILURE);
        assertThat(nodes.evidence()).isEqualTo("missing: /dev/infiniband/uverbs0, /dev/infiniband/rdma_cm");
        assertThat(nodes.remedy()).isEqualTo("in containers pass --device=/dev/infiniband");
    }

    @Test
    void takesTheEffectiveLimitOfLockedMemory() throws IOException {
        limit("65536", "0000000000000000");
        assertThat(checks.lockedMemory().verdict()).isEqualTo(Verdict.FAILURE);
        assertThat(checks.lockedMemory().evidence()).startsWith("limit 64 KiB, locked now 12 kB, without CAP_IPC_LOCK");
        limit("8388608", "0000000000000000");
        assertThat(checks.lockedMemory().verdict()).isEqualTo(Verdict.WARNING);
        limit("65536", "0000000000004000");
        assertThat(checks.lockedMemory().verdict()).isEqualTo(Verdict.OK);
        limit("unlimited", "0000000000000000");
        assertThat(checks.lockedMemory()).isEqualTo(Finding.ok("locked memory", "limit unlimited, locked now 12 kB"));
    }

    @Test
    void tellsAContainerHowToRaiseTheLimit() throws IOException {
        limit("65536", "0000000000000000");
        assertThat(checks.lockedMemory().remedy()).contains("/etc/security/limits.conf");
        write("proc/self/cgroup", "0::/kubepods/burstable/pod1\n");
        assertThat(checks.lockedMemory().remedy()).contains("--ulimit memlock=-1", "IPC_LOCK");
    }

    @Test
    void skipsWhatItCannotRead() {
        assertThat(checks.lockedMemory().verdict()).isEqualTo(Verdict.SKIPPED);
    }
}
