package org.verbena.jgroups;

/** Members' connections on the software provider. */
class SoftPeerConnectionsTest extends PeerConnectionsSuite {
    @Override
    String provider() {
        return "soft";
    }
}
