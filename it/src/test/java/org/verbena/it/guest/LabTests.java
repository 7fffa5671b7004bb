package org.verbena.it.guest;

import org.junit.platform.engine.discovery.DiscoverySelectors;
import org.junit.platform.engine.support.descriptor.MethodSource;
import org.junit.platform.launcher.TagFilter;
import org.junit.platform.launcher.TestIdentifier;
import org.junit.platform.launcher.TestPlan;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;

/**
 * How many tests the lab has; a parameterised one counts once.
 *
 * @param everyday those of each run
 * @param full those of {@link LabMode#FULL} alone
 */
public record LabTests(int everyday, int full) {
    /** Where no lab ran. */
    public static final LabTests NONE = new LabTests(0, 0);

    /** Finds them as the engine does. */
    public static LabTests all() {
        TestPlan plan = Jupiter.launcher()
                .discover(LauncherDiscoveryRequestBuilder.request()
                        .selectors(DiscoverySelectors.selectPackage("org.verbena.it.lab"))
                        .filters(TagFilter.includeTags(LabTestEngine.TAG))
                        .build());
        int everyday = 0;
        int full = 0;
        for (TestIdentifier engine : plan.getRoots()) {
            for (TestIdentifier test : plan.getDescendants(engine)) {
                if (!plan.getChildren(test).isEmpty()
                        || test.getSource()
                                .filter(MethodSource.class::isInstance)
                                .isEmpty()) {
                    continue;
                }
                if (LabTestEngine.isForTheFullRun(test)) {
                    full++;
                } else {
                    everyday++;
                }
            }
        }
        return new LabTests(everyday, full);
    }
}
