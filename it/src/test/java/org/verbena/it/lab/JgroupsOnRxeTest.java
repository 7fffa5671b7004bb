package org.verbena.it.lab;

import org.junit.jupiter.api.Tag;
import org.verbena.jgroups.JgroupsSuite;

/** JGroups on verbs over soft RoCE. */
@Tag("lab")
@Tag("lab-full")
class JgroupsOnRxeTest extends JgroupsSuite {
    @Override
    protected String provider() {
        return "verbs";
    }

    @Override
    protected String host() {
        return LabDevice.RXE.address();
    }
}
