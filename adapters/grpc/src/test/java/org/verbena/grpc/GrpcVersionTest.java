package org.verbena.grpc;

import static org.assertj.core.api.Assertions.assertThat;

import io.grpc.internal.GrpcUtil;
import org.junit.jupiter.api.Test;

/** Which gRPC a run has: the full run has a second one with the oldest that the native transport supports. */
class GrpcVersionTest {
    @Test
    void isTheOneThatTheBuildNames() {
        String expected = System.getProperty("grpc.expected.version");
        assertThat(expected).as("grpc.expected.version").isNotNull();
        assertThat(GrpcUtil.getGrpcBuildVersion().getImplementationVersion()).isEqualTo(expected);
    }
}
