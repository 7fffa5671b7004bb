package org.verbena.disni;

import java.io.IOException;

/** How calls end: DiSNI's callers expect an {@link IOException} where Verbena's objects throw unchecked ones. */
final class Calls {
    private Calls() {}

    /** A call of Verbena's. */
    @FunctionalInterface
    interface Call<T> {
        T make() throws IOException;
    }

    /** A call of Verbena's without a result. */
    @FunctionalInterface
    interface Action {
        void take() throws IOException;
    }

    static <T> T call(String method, Call<T> call) throws IOException {
        try {
            return call.make();
        } catch (RuntimeException refused) {
            throw failed(method, refused);
        }
    }

    static void run(String method, Action action) throws IOException {
        try {
            action.take();
        } catch (RuntimeException refused) {
            throw failed(method, refused);
        }
    }

    static IOException failed(String method, RuntimeException cause) {
        return new IOException(method + ": " + cause.getMessage(), cause);
    }
}
