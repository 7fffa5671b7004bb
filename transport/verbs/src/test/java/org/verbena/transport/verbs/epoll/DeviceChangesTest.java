package org.verbena.transport.verbs.epoll;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

class DeviceChangesTest {
    /** What a device's removal looks like, the lab shows; here none is removed. */
    @Test
    void doesNotBlock() {
        try (DeviceChanges changes = new DeviceChanges()) {
            assertThat(changes.fd()).isPositive();
            assertThat(changes.takeRemovals()).isFalse();
        }
    }
}
