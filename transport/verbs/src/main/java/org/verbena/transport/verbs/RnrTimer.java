package org.verbena.transport.verbs;

/**
 * The encoding of {@code min_rnr_timer}: how long a peer waits before it repeats a send that found no receive.
 *
 * <p>Source: IBTA 1.4, table 46; ibv_modify_qp(3)
 */
final class RnrTimer {
    /**
     * 0.64 ms, as libfabric and the ping-pong programs of rdma-core have it: after a longer pause a burst is long over.
     */
    static final int DEFAULT_CODE = 12;

    /** Microseconds by code, from code 1 on; code 0 is the longest of all. */
    private static final int[] MICROS = {
        10, 20, 30, 40, 60, 80, 120, 160, 240, 320, 480, 640, 960, 1280, 1920, 2560, 3840, 5120, 7680, 10_240, 15_360,
        20_480, 30_720, 40_960, 61_440, 81_920, 122_880, 163_840, 245_760, 327_680, 491_520
    };

    private RnrTimer() {}

    /**
     * The shortest time that is not below the one asked for.
     *
     * @param micros 1 to 655360
     * @return the code, 0 to 31
     */
    static int code(int micros) {
        for (int i = 0; i < MICROS.length; i++) {
            if (micros <= MICROS[i]) {
                return i + 1;
            }
        }
        return 0;
    }
}
