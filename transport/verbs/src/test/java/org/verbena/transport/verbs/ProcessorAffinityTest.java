package org.verbena.transport.verbs;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.channel.IoEventLoop;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.BitSet;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.verbena.cm.Cm;
import org.verbena.transport.CompletionLoopOptions;
import org.verbena.transport.ffm.CpuAffinity;
import org.verbena.transport.spi.Patience;
import org.verbena.transport.spi.RecordingEndpointHandler;
import org.verbena.verbs.Context;
import org.verbena.verbs.Device;
import org.verbena.verbs.device.NodeType;
import org.verbena.verbs.device.TransportType;

/** Threads are kept near their device where there are several NUMA nodes, by what a sysfs of the test says. */
@Timeout(240)
class ProcessorAffinityTest {
    @TempDir
    Path sysfs;

    private MultiThreadIoEventLoopGroup group;
    private VerbsProvider provider;
    private IoEventLoop loop;
    private RecordingEndpointHandler client;

    @BeforeEach
    void install() throws Exception {
        StubDevice.install();
    }

    @AfterEach
    void end() {
        System.clearProperty(ProcessorAffinity.PROPERTY);
        ProcessorAffinity.nodes = ProcessorAffinity.NODES;
        if (group != null) {
            Patience.await("the loop ended", group.shutdownGracefully(0, 5, TimeUnit.SECONDS));
            client.assertNoViolations();
            StubDevice.close(provider);
        }
        StubDevice.become(Families.IDEAL);
    }

    private Device device(String node, String processors) throws Exception {
        Path device = Files.createDirectories(sysfs.resolve("x0").resolve("device"));
        Files.writeString(device.resolve("numa_node"), node + "\n");
        Files.writeString(device.resolve("local_cpulist"), processors + "\n");
        return new Device(
                "x0",
                "uverbs0",
                0,
                0,
                NodeType.CA,
                TransportType.IB,
                sysfs.resolve("x0").toString());
    }

    private void nodes(String online) throws Exception {
        ProcessorAffinity.nodes = Files.writeString(sysfs.resolve("online"), online + "\n");
    }

    private static BitSet processors(int... numbers) {
        BitSet set = new BitSet();
        for (int number : numbers) {
            set.set(number);
        }
        return set;
    }

    @Test
    void readsTheProcessorsOfADevice() throws Exception {
        assertThat(device("1", "8-10,24").localProcessors()).isEqualTo(processors(8, 9, 10, 24));
        assertThat(device("1", "").localProcessors().isEmpty()).isTrue();
        assertThat(device("1", "3-1").localProcessors().isEmpty()).isTrue();
        assertThat(device("1", "many").localProcessors().isEmpty()).isTrue();
        Files.delete(sysfs.resolve("x0/device/local_cpulist"));
        Device without = new Device(
                "x0",
                "uverbs0",
                0,
                0,
                NodeType.CA,
                TransportType.IB,
                sysfs.resolve("x0").toString());
        assertThat(without.localProcessors().isEmpty()).isTrue();
    }

    @Test
    void oneNodeOrNoneIsNoReasonToPlaceAnything() throws Exception {
        nodes("0-1");
        assertThat(ProcessorAffinity.near(device("1", "1"))).isEqualTo(processors(1));
        assertThat(ProcessorAffinity.near(device("-1", "0-1")).isEmpty()).isTrue();
        nodes("0");
        assertThat(ProcessorAffinity.near(device("0", "0-1")).isEmpty()).isTrue();
        ProcessorAffinity.nodes = sysfs.resolve("missing");
        assertThat(ProcessorAffinity.near(device("0", "0")).isEmpty()).isTrue();
    }

    @Test
    void theProgramCanTurnItOff() throws Exception {
        nodes("0-1");
        System.setProperty(ProcessorAffinity.PROPERTY, "off");
        assertThat(ProcessorAffinity.near(device("1", "1")).isEmpty()).isTrue();
    }

    /** The last processor that this thread may run on, as the only one of the device's node. */
    private int connectFarFromTheRest() {
        BitSet allowed = CpuAffinity.get();
        Assumptions.assumeTrue(allowed.cardinality() > 1, "one processor");
        int last = allowed.length() - 1;
        StubDevice.localProcessors = String.valueOf(last);
        StubDevice.become("mlx5");
        provider = new VerbsProvider();
        group = new MultiThreadIoEventLoopGroup(1, provider.newIoHandlerFactory(CompletionLoopOptions.DEFAULTS));
        loop = group.next();
        client = new RecordingEndpointHandler("client", loop);
        provider.connect(loop, StubDevice.ROCE, StubDevice.options(false, 60_000), client);
        client.awaitConnected();
        return last;
    }

    private static Context stub0() {
        return Cm.devices().stream()
                .filter(each -> each.device().name().equals("stub0"))
                .findFirst()
                .orElseThrow();
    }

    @Test
    void loopsStayNearTheirDevice() throws Exception {
        nodes("0-1");
        BitSet before = CpuAffinity.get();
        int last = connectFarFromTheRest();
        assertThat(Patience.await("its processors", loop.submit(CpuAffinity::get)))
                .isEqualTo(processors(last));
        IoEventLoop connections = provider.connectionLoopOf(stub0()).loop();
        assertThat(Patience.await("its processors", connections.submit(CpuAffinity::get)))
                .isEqualTo(processors(last));
        assertThat(Patience.await(
                        "its processors", provider.connectionLoop().loop().submit(CpuAffinity::get)))
                .isEqualTo(before);
        assertThat(CpuAffinity.get()).isEqualTo(before);
    }

    @Test
    void loopsStayWhereTheyAreWithOneNode() throws Exception {
        nodes("0");
        BitSet before = CpuAffinity.get();
        connectFarFromTheRest();
        assertThat(Patience.await("its processors", loop.submit(CpuAffinity::get)))
                .isEqualTo(before);
    }

    /** The kernel gives the first completion vectors of mlx5 to processors of its node. */
    @Test
    void completionVectorsAreThoseOfTheNode() throws Exception {
        nodes("0-1");
        connectFarFromTheRest();
        assertThat(StubDevice.call("stub_last_vector")).isZero();
        VerbsDevice device = provider.devices().of(stub0());
        assertThat(device.nextVector()).isZero();
        assertThat(device.nextVector()).isZero();
    }
}
