package org.verbena.jgroups;

import org.junit.jupiter.api.Tag;

/** JGroups in shared memory. */
@Tag("full")
class ShmJgroupsTest extends JgroupsSuite {
    @Override
    protected String provider() {
        return "shm";
    }
}
