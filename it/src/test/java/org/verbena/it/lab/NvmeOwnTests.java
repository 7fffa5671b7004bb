package org.verbena.it.lab;

import static org.junit.platform.engine.discovery.DiscoverySelectors.selectClass;

import java.io.PrintWriter;
import java.util.Set;
import java.util.stream.Stream;
import org.junit.platform.engine.FilterResult;
import org.junit.platform.engine.discovery.ClassSelector;
import org.junit.platform.launcher.EngineFilter;
import org.junit.platform.launcher.LauncherDiscoveryRequest;
import org.junit.platform.launcher.PostDiscoveryFilter;
import org.junit.platform.launcher.TagFilter;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;
import org.junit.platform.launcher.listeners.SummaryGeneratingListener;

/**
 * Runs jNVMf's own tests of a target, as Maven Central has them. Left out are {@code keepAlive}, which sleeps for three
 * minutes, {@code controllerCapabilties}, which asks for a capability that Linux' target does not show (contiguous
 * queues), and {@code NvmfRdmaEndpointTest}, which is of no target and connects to an rping that may not listen yet;
 * DiSNI waits forever then.
 */
public final class NvmeOwnTests {
    private static final Set<String> LEFT_OUT = Set.of("keepAlive()", "controllerCapabilties()");

    private NvmeOwnTests() {}

    /**
     * Prints how many passed and failed.
     *
     * @param none jNVMf's tests take system properties
     */
    public static void main(String[] none) {
        LauncherDiscoveryRequest tests = LauncherDiscoveryRequestBuilder.request()
                .selectors(Stream.of("NvmeTest", "ControllerTest", "QueuePairTest", "PdMemoryPoolTest")
                        .map(name -> selectClass("com.ibm.jnvmf." + name))
                        .toArray(ClassSelector[]::new))
                .filters(
                        EngineFilter.includeEngines("junit-jupiter"),
                        TagFilter.includeTags("rdma"),
                        (PostDiscoveryFilter)
                                test -> FilterResult.includedIf(!LEFT_OUT.contains(test.getDisplayName())))
                .build();
        SummaryGeneratingListener summary = new SummaryGeneratingListener();
        LauncherFactory.create().execute(tests, summary);
        PrintWriter out = new PrintWriter(System.out, true);
        summary.getSummary().printFailuresTo(out);
        out.println("passed " + summary.getSummary().getTestsSucceededCount() + " failed "
                + summary.getSummary().getTotalFailureCount());
        System.exit(0); // jNVMf's threads go on
    }
}
