package org.verbena.jgroups;

/** JGroups on the software provider. */
class SoftJgroupsTest extends JgroupsSuite {
    @Override
    protected String provider() {
        return "soft";
    }
}
