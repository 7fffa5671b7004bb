package org.verbena.verbs.address;

import org.verbena.verbs.ffm.LibIbverbs;
import org.verbena.verbs.ffm.NativeConstant;

/**
 * A limit for the rate of an address, as {@code AddressVector.staticRate()} returns it.
 *
 * <p>Source: ibv_rate_to_mbps(3)
 */
public enum Rate implements NativeConstant {
    /** No limit. */
    RATE_MAX(0),
    /** 2.5 Gbit/s. */
    RATE_2_5_GBPS(2),
    /** 5 Gbit/s. */
    RATE_5_GBPS(5),
    /** 10 Gbit/s. */
    RATE_10_GBPS(3),
    /** 20 Gbit/s. */
    RATE_20_GBPS(6),
    /** 30 Gbit/s. */
    RATE_30_GBPS(4),
    /** 40 Gbit/s. */
    RATE_40_GBPS(7),
    /** 60 Gbit/s. */
    RATE_60_GBPS(8),
    /** 80 Gbit/s. */
    RATE_80_GBPS(9),
    /** 120 Gbit/s. */
    RATE_120_GBPS(10),
    /** 14 Gbit/s. */
    RATE_14_GBPS(11),
    /** 56 Gbit/s. */
    RATE_56_GBPS(12),
    /** 112 Gbit/s. */
    RATE_112_GBPS(13),
    /** 168 Gbit/s. */
    RATE_168_GBPS(14),
    /** 25 Gbit/s. */
    RATE_25_GBPS(15),
    /** 100 Gbit/s. */
    RATE_100_GBPS(16),
    /** 200 Gbit/s. */
    RATE_200_GBPS(17),
    /** 300 Gbit/s. */
    RATE_300_GBPS(18),
    /** 28 Gbit/s. */
    RATE_28_GBPS(19),
    /** 50 Gbit/s. */
    RATE_50_GBPS(20),
    /** 400 Gbit/s. */
    RATE_400_GBPS(21),
    /** 600 Gbit/s. */
    RATE_600_GBPS(22),
    /** 800 Gbit/s. */
    RATE_800_GBPS(23),
    /** 1200 Gbit/s. */
    RATE_1200_GBPS(24);

    private final int value;

    Rate(int value) {
        this.value = value;
    }

    /**
     * The rate as a multiple of 2.5 Gbit/s.
     *
     * @return the multiple, -1 for those that are none
     */
    public int multiple() {
        return LibIbverbs.rateToMult(value);
    }

    /**
     * The rate in megabits per second.
     *
     * @return megabits a second, -1 for RATE_MAX
     */
    public int megabitsPerSecond() {
        return LibIbverbs.rateToMbps(value);
    }

    /**
     * Finds the rate that is a multiple of 2.5 Gbit/s.
     *
     * @param multiple 1, 2, 4 ...
     * @return the rate; RATE_MAX if there is none
     */
    public static Rate ofMultiple(int multiple) {
        return of(LibIbverbs.multToIbvRate(multiple));
    }

    /**
     * Finds the rate of a number of megabits per second.
     *
     * @param megabitsPerSecond 2500, 5000 ...
     * @return the rate; RATE_MAX if there is none
     */
    public static Rate ofMegabitsPerSecond(int megabitsPerSecond) {
        return of(LibIbverbs.mbpsToIbvRate(megabitsPerSecond));
    }

    @Override
    public int value() {
        return value;
    }

    @Override
    public String cName() {
        return "IBV_" + name();
    }

    /**
     * The constant of a C value.
     *
     * @param value as C has it
     * @return the constant
     * @throws IllegalArgumentException a value that has none
     */
    public static Rate of(int value) {
        for (Rate constant : values()) {
            if (constant.value == value) {
                return constant;
            }
        }
        throw new IllegalArgumentException("no IBV_* has the value " + value);
    }
}
