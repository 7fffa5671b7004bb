package org.verbena.verbs.device;

import org.jspecify.annotations.Nullable;

/**
 * The drivers of RDMA devices, and what is special about each: the one place for facts that no query returns.
 *
 * <p>A fact is from the driver's source: the providers of rdma-core 65 (providers/NAME) and the kernel's drivers.
 * {@link #OTHER} has the value that is safe for every driver. {@code docs/adapters.md} lists what is known about each
 * family and where it was run.
 */
public enum DriverFamily {
    /** Nvidia ConnectX-4 and later, BlueField: mlx5. */
    MLX5("Nvidia mlx5", "", true),

    /** Nvidia ConnectX-3: mlx4. */
    MLX4("Nvidia mlx4", "", true),

    /**
     * Intel E810, E830 and X722: irdma. The device's parent is the Ethernet function, so its driver is that of the
     * network.
     */
    IRDMA("Intel irdma", "", true),

    /**
     * Broadcom NetXtreme: bnxt_re. The kernel announces memory windows, and the library has no function to make one.
     * When the kernel refuses to resize a completion queue the library frees the ring in use (bnxt_re/verbs.c,
     * bnxt_re_resize_cq), so Verbena never resizes one.
     */
    BNXT_RE("Broadcom bnxt_re", "it announces memory windows and makes none: Verbena uses plain regions here", true),

    /** Alibaba eRDMA: erdma. A receive has one element, and that is what the kernel reports; a send has six. */
    ERDMA("Alibaba eRDMA", "a receive has one scatter/gather element", true),

    /** Amazon EFA: efa. Only datagrams and SRD. */
    EFA("Amazon EFA", "no reliable connections by rdma_cm: Verbena uses soft here", true),

    /** Microsoft Azure: mana. What is posted inline is read later, by its key (mana/wr.c). */
    MANA("Microsoft MANA", "connections only where rdma_cm finds the device; else Verbena uses soft here", false),

    /**
     * Huawei Kunpeng: hns. Polling a completion with an error modifies the queue pair by a system call
     * (hns/hns_roce_u_hw_v2.c, hns_roce_flush_cqe).
     */
    HNS("Huawei hns", "polling an error enters the kernel, so polls are ordinary calls here", false),

    /** Chelsio: cxgb4. Polling may modify a shared receive queue by a system call (cxgb4/cq.c). */
    CXGB4("Chelsio cxgb4", "polling may enter the kernel, so polls are ordinary calls here", false),

    /** Cornelis Omni-Path: hfi1. Its first ABI polls by a system call (hfi1verbs/hfiverbs.c). */
    HFI1(
            "Cornelis hfi1",
            "InfiniBand: rdma_cm finds it by the address of an IPoIB interface; without one, connect by hand",
            false),

    /** AMD Pensando: ionic. Nobody has looked whether its polls may be critical calls. */
    IONIC("AMD Pensando ionic", "polls are ordinary calls here", false),

    /** Marvell FastLinQ: qedr. A poll prints what it does not understand (qedr/qelr_verbs.c). */
    QEDR("Marvell qedr", "polls are ordinary calls here", false),

    /** Soft RoCE of Linux: rdma_rxe. It has no parent device, but a vendor id. */
    SOFT_ROCE("soft RoCE (rxe)", "", true),

    /** Soft iWARP of Linux: siw. It has no parent device, but a vendor id. */
    SOFT_IWARP("soft iWARP (siw)", "", true),

    /** Any other: what is not known to be safe is not done. */
    OTHER("a driver that Verbena does not know", "polls are ordinary calls here, and nothing is sent inline", false);

    private static final int SOFT_ROCE_VENDOR = 0xffffff;
    private static final int SOFT_IWARP_VENDOR = 0x626d74;

    private final String title;
    private final String consequence;
    private final boolean pollsInUserSpace;

    DriverFamily(String title, String consequence, boolean pollsInUserSpace) {
        this.title = title;
        this.consequence = consequence;
        this.pollsInUserSpace = pollsInUserSpace;
    }

    /**
     * The family of a device.
     *
     * @param driverName the kernel driver of its parent device ({@code mlx5_core}), null if it has none
     * @param vendorId {@link DeviceAttributes#vendorId()}, which distinguishes the software devices
     * @return the family; {@link #OTHER} if it is not known
     */
    public static DriverFamily of(@Nullable String driverName, int vendorId) {
        // First, since soft RoCE of old kernels has the parent of its network interface.
        if (vendorId == SOFT_ROCE_VENDOR) {
            return SOFT_ROCE;
        }
        if (vendorId == SOFT_IWARP_VENDOR) {
            return SOFT_IWARP;
        }
        return switch (driverName == null ? "" : driverName) {
            case "mlx5_core" -> MLX5;
            case "mlx4_core" -> MLX4;
            case "ice", "i40e", "idpf" -> IRDMA;
            case "bnxt_en" -> BNXT_RE;
            case "erdma" -> ERDMA;
            case "efa" -> EFA;
            case "mana" -> MANA;
            case "hns3" -> HNS;
            case "cxgb4" -> CXGB4;
            case "hfi1" -> HFI1;
            case "ionic" -> IONIC;
            case "qede" -> QEDR;
            default -> OTHER;
        };
    }

    /**
     * What to call it.
     *
     * @return "Amazon EFA"
     */
    public String title() {
        return title;
    }

    /**
     * Its title, and what follows from the driver for a program, to be shown to people.
     *
     * @return "Amazon EFA: no reliable connections by rdma_cm: Verbena uses soft here", or the title where nothing
     *     follows
     */
    public String describe() {
        return consequence.isEmpty() ? title : title + ": " + consequence;
    }

    /**
     * Whether {@code ibv_poll_cq} never enters the kernel, so that it can be a critical call: one that blocks would
     * hold up garbage collection.
     *
     * @return false if it does, or is not known
     */
    public boolean pollsInUserSpace() {
        return pollsInUserSpace;
    }

    /**
     * Whether queue pairs without a thread domain share doorbell registers, and so locks: libmlx5 has 16 for a process,
     * of which 4 serve one queue pair each (mlx5/mlx5.c, get_num_low_lat_uuars).
     *
     * @return true if a thread domain gives its queue pairs a register of their own
     */
    public boolean sharesDoorbells() {
        return this == MLX5;
    }

    /**
     * Whether the first completion vectors are those whose interrupts come to processors of the device's NUMA node: the
     * kernel's driver spreads them by cpumask_local_spread (mlx5_core, mlx5_irq_set_affinity_hint; of others nobody has
     * looked).
     *
     * @return true if so, as many as the node has processors
     */
    public boolean hasNearVectorsFirst() {
        return this == MLX5;
    }

    /**
     * Whether the binding of a memory window may be posted behind other work. Soft RoCE repeats a binding with the
     * packets before it and fails; only Nvidia's adapters are known to allow it.
     *
     * @return false if the send queue has to be empty
     */
    public boolean bindsBehindWork() {
        return this == MLX5 || this == MLX4;
    }

    /**
     * Whether a queue pair in its error state returns only what was not done. libirdma returns as flushed all behind
     * the last completion that was polled (irdma/uk.c, irdma_uk_cq_poll_cmpl), what was done without one included.
     *
     * @return false if it does not, or is not known to
     */
    public boolean flushesOnlyWhatIsNotDone() {
        return this == MLX5 || this == MLX4 || this == SOFT_ROCE || this == SOFT_IWARP;
    }

    /**
     * Whether the data of a work request that is posted inline is read when it is posted. That a queue pair is made
     * with inline bytes does not prove it: libmana does not look at the flag (mana/wr.c).
     *
     * @return false if it is not, or is not known
     */
    public boolean hasInline() {
        return this != MANA && this != OTHER;
    }

    /**
     * Whether the library makes address handles, without which nothing sends datagrams: liberdma, libqedr and libmana
     * have no function for it (NAME/erdma.c, qelr_main.c, mana.c: no create_ah).
     *
     * @return false if it is known not to
     */
    public boolean hasAddressHandles() {
        return this != ERDMA && this != QEDR && this != MANA;
    }

    /**
     * Whether a chain of exactly a write and a send of 16 bytes becomes one request of the device, which reads the data
     * of the write later, also if it was posted inline, and looks neither at the fence nor at the event of the send
     * (cxgb4/qp.c, c4iw_post_send, build_rdma_write_cmpl, post_write_cmpl).
     *
     * @return true if an inline write has to be the last of its chain, and a send with either flag the first
     */
    public boolean joinsWriteWithSend() {
        return this == CXGB4;
    }

    /**
     * Whether the device writes memory over PCI Express, where the order of its writes costs time on some processors.
     *
     * @return false for software
     */
    public boolean isHardware() {
        return this != SOFT_ROCE && this != SOFT_IWARP;
    }
}
