package org.verbena.transport.verbs;

import org.verbena.transport.spi.EndpointOptions;

/**
 * The encoding of a queue pair's {@code timeout}: how long it waits for an acknowledgement before it sends again, as
 * the exponent of 4.096 us times a power of two. Devices may wait up to four times as long.
 *
 * <p>Source: IBTA 1.4, 9.7.6.1.3; ibv_modify_qp(3), rdma_set_option(3)
 */
final class AckTimeout {
    /**
     * 268 ms, for RoCE by rdma_cm, where the kernel has no subnet manager to ask and takes half a second. It is short,
     * since only this timer repeats the last packet of a message if that is lost. It is not shorter, since eight
     * attempts must outlast a bond that fails over or a link that flaps, which takes a second or two: eight attempts of
     * 67 ms end after 0.54 s.
     */
    static final int ROCE_EXPONENT = 16;

    /** 67 ms, the value of rdma-core's ping-pong programs, where queue pairs are connected by hand. */
    static final int BY_HAND_EXPONENT = 14;

    private static final int MAX_EXPONENT = 31;
    private static final double UNIT_MICROS = 4.096;

    private AckTimeout() {}

    /**
     * The shortest time that is not below the one asked for.
     *
     * @param micros {@link EndpointOptions#ackTimeoutMicros()}, or its default
     * @param otherwise the exponent that stands for the default
     * @return 1 to 31
     */
    static int exponent(int micros, int otherwise) {
        if (micros == EndpointOptions.DEVICE_DEFAULT) {
            return otherwise;
        }
        int exponent = 1;
        while (exponent < MAX_EXPONENT && UNIT_MICROS * (1L << exponent) < micros) {
            exponent++;
        }
        return exponent;
    }
}
