package org.verbena.jgroups;

/** Members' connections in shared memory. */
class ShmPeerConnectionsTest extends PeerConnectionsSuite {
    @Override
    String provider() {
        return "shm";
    }
}
