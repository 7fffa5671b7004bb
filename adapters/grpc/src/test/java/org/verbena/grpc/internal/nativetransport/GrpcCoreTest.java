package org.verbena.grpc.internal.nativetransport;

import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.grpc.Status;
import java.lang.reflect.Method;
import org.junit.jupiter.api.Test;

/** What is called by name, since not all supported versions of gRPC have it. */
class GrpcCoreTest {
    /** As gRPC's of 1.78 and before. */
    interface Listener {
        void transportShutdown(Status status);
    }

    @Test
    void aFailureOfGrpcReachesTheCallerAsItIs() throws Exception {
        Method method = Listener.class.getMethod("transportShutdown", Status.class);
        for (Throwable failure : new Throwable[] {new ArithmeticException("of a listener"), new AssertionError()}) {
            Listener listener = status -> {
                if (failure instanceof Error error) {
                    throw error;
                }
                throw (RuntimeException) failure;
            };
            assertThatThrownBy(() -> GrpcCore.call(method, listener, Status.OK)).isSameAs(failure);
        }
    }
}
