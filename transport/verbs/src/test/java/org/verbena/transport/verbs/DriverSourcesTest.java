package org.verbena.transport.verbs;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * What the stub's table says of a family is what its driver's source says, as far as that is a constant. A row names
 * the file, and the line or the function: {@code rdma-core/} is providers/ of rdma-core 65 at 691953d8, and {@code
 * linux/} drivers/infiniband/hw/ of the kernel. Who reads a newer source corrects the row first.
 */
class DriverSourcesTest {
    @ParameterizedTest
    @CsvSource({
        "mlx5, read_sges, 30, linux/mlx5 main.c mlx5_ib_query_device: MLX5_MAX_SGE_RD",
        "mlx5, dedicated, 4, rdma-core/mlx5/mlx5.c:701 get_num_low_lat_uuars",
        "mlx4, ports, 2, linux/mlx4 main.c mlx4_ib_query_device: phys_port_cnt of ConnectX-3",
        "bnxt_re, send_sges, 6, rdma-core/bnxt_re/bnxt_re-abi.h:246 BNXT_RE_STATIC_WQE_MAX_SGE",
        "bnxt_re, max_inline, 96, rdma-core/bnxt_re/bnxt_re-abi.h:331 BNXT_RE_MAX_INLINE_SIZE",
        "bnxt_re, alloc_errno, 95, rdma-core/bnxt_re/main.c: no alloc_mw",
        "irdma-roce, send_sges, 13, rdma-core/irdma/user.h:180 IRDMA_MAX_WQ_FRAGMENT_COUNT",
        "irdma-roce, max_inline, 101, rdma-core/irdma/user.h:188 IRDMA_MAX_INLINE_DATA_SIZE",
        "irdma-roce, read_sges, 13, linux/irdma/icrdma_hw.h ICRDMA_MAX_SGE_RD",
        "irdma-roce, max_wr, 4063, linux/irdma/type.h IRDMA_MAX_QP_WRS: (32768 - 258) / 8",
        "irdma-roce, reads_in, 32, linux/irdma/icrdma_hw.h ICRDMA_MAX_IRD_SIZE",
        "irdma-roce, reads_out, 64, linux/irdma/icrdma_hw.h ICRDMA_MAX_ORD_SIZE",
        "irdma-roce, windows, 0, linux/irdma/verbs.c irdma_query_device: MEM_WINDOW and no type 2",
        "irdma-roce, lid, 1, linux/irdma/verbs.c irdma_query_port",
        "irdma-roce, version_1, 0, linux/irdma/verbs.c irdma_roce_port_immutable: UDP_ENCAP",
        "irdma-iwarp, windows, 0, linux/irdma/verbs.c irdma_query_device",
        "irdma-iwarp, lid, 1, linux/irdma/verbs.c irdma_query_port",
        "x722, send_sges, 3, rdma-core/irdma/i40iw_hw.h:7 I40IW_MAX_WQ_FRAGMENT_COUNT",
        "x722, read_sges, 1, rdma-core/irdma/i40iw_hw.h:8 I40IW_MAX_SGE_RD",
        "x722, max_inline, 48, rdma-core/irdma/i40iw_hw.h:10 I40IW_MAX_INLINE_DATA_SIZE",
        "x722, max_wr, 895, rdma-core/irdma/i40iw_hw.h:28 and defs.h:25: (2048 - 258) / 2",
        "erdma, send_sges, 6, rdma-core/erdma/erdma_verbs.h:17 ERDMA_MAX_SEND_SGE",
        "erdma, receive_sges, 1, rdma-core/erdma/erdma_verbs.h:18 ERDMA_MAX_RECV_SGE",
        "erdma, max_inline, 96, rdma-core/erdma/erdma_hw.h:74 ERDMA_MAX_INLINE",
        "erdma, read_sges, 1, linux/erdma/erdma_verbs.h ERDMA_MAX_SGE_RD",
        "erdma, max_wr, 8192, linux/erdma/erdma_verbs.h ERDMA_MAX_SEND_WR",
        "erdma, reads_in, 128, linux/erdma/erdma_verbs.h ERDMA_MAX_IRD",
        "erdma, post_errno, -5, rdma-core/erdma/erdma_verbs.c:762 erdma_post_send: -EIO",
        "erdma-roce, node, 1, linux/erdma/erdma_main.c: RDMA_NODE_IB_CA with ERDMA_PROTO_ROCEV2 (6.14)",
        "erdma-roce, no_datagrams, 1, rdma-core/erdma/erdma.c: no create_ah",
        "mana-rc, post_errno, 22, rdma-core/mana/wr.c mana_ib_post_send: EINVAL",
        "mana-rc, no_atomics, 1, linux/mana/main.c mana_ib_query_device: IB_ATOMIC_NONE",
        "mana-rc, max_srq, 0, rdma-core/mana/mana.c: no create_srq",
        "cxgb4, max_wr, 8190, linux/cxgb4/device.c c4iw_alloc: 8192 - t4_eq_status_entries - 1",
        "cxgb4, receive_sges, 4, rdma-core/cxgb4/t4.h:126 T4_MAX_RECV_SGE",
        "cxgb4, send_sges, 17, rdma-core/cxgb4/t4.h:117 T4_MAX_SEND_SGE",
        "cxgb4, read_sges, 1, rdma-core/cxgb4/qp.c:340 build_rdma_read",
        "cxgb4, post_errno, -22, rdma-core/cxgb4/qp.c:492 c4iw_post_send: -EINVAL",
        "cxgb4, flushes_done, 1, rdma-core/cxgb4/cq.c:99 c4iw_flush_sq: from cidx",
        "cxgb4-t5, max_srq, 0, linux/cxgb4/provider.c c4iw_query_device: vr->srq.size",
        "erdma, no_atomics, 0, linux/erdma/erdma_verbs.c erdma_query_device: IB_ATOMIC_GLOB with CAP_FLAGS_ATOMIC",
        "mlx5, modify_errno, 22, linux/mlx5/core/cmd.c cmd_status_to_err: MLX5_CMD_STAT_BAD_QP_STATE_ERR",
        "mlx4, modify_errno, 22, linux/../net/ethernet/mellanox/mlx4/cmd.c mlx4_status_to_errno: CMD_STAT_BAD_QP_STATE",
        "bnxt_re, modify_errno, 5, linux/bnxt_re/qplib_rcfw.c __bnxt_qplib_rcfw_send_message: -EIO (6.12)",
        "mana-rc, modify_errno, 71, linux/../net/ethernet/microsoft/mana/hw_channel.c mana_hwc_send_request: -EPROTO",
        "ionic, modify_errno, 22, linux/ionic/ionic_admin.c ionic_admin_wait: ionic_v1_cqe_error, -EINVAL",
        "qedr, modify_errno, 16, linux/../net/ethernet/qlogic/qed/qed_spq.c __qed_spq_block: -EBUSY",
        "irdma-roce, modify_errno, 110, linux/irdma/utils.c irdma_wait_event: -ETIMEDOUT",
        "x722, modify_errno, 110, linux/irdma/utils.c irdma_wait_event: -ETIMEDOUT",
        "erdma, modify_errno, 62, linux/erdma/erdma_cmdq.c erdma_wait_cmd_completion: -ETIME",
        "hns, modify_errno, 16, linux/hns/hns_roce_cmd.c __hns_roce_cmd_mbox_wait: -EBUSY",
        "cxgb4, modify_errno, 5, linux/cxgb4/iw_cxgb4.h c4iw_wait_for_reply: -EIO",
        "mlx5, early_errno, 12, rdma-core/mlx5/qp.c:850 qp_state_max_gs: ENOMEM; mlx5/verbs.c:2454",
        "mlx5, reset_errno, 22, rdma-core/mlx5/qp.c:3849 qp_state_max_gs: EINVAL; mlx5/verbs.c:2453",
        "mlx4, early_errno, 0, rdma-core/mlx4/qp.c mlx4_post_send looks at no state",
        "bnxt_re, early_errno, 0, rdma-core/bnxt_re/verbs.c:2525 bnxt_re_post_send looks at no state",
        "irdma-roce, early_errno, 0, rdma-core/irdma/uverbs.c:1828 irdma_upost_send: ERR only",
        "erdma-roce, early_errno, 0, rdma-core/erdma/erdma_verbs.c:760 erdma_post_send: ERR only",
        "mana-rc, early_errno, 22, rdma-core/mana/wr.c:382 mana_ib_post_send: RTS only",
        "mana-rc, reset_errno, 22, rdma-core/mana/wr.c:150 mana_ib_post_recv",
        "hns, early_errno, 22, rdma-core/hns/hns_roce_u_hw_v2.c:880 check_qp_send",
        "hns, reset_errno, 22, rdma-core/hns/hns_roce_u_hw_v2.c:1437 check_qp_recv",
        "ionic, early_errno, 22, rdma-core/ionic/ionic_verbs.c:3130",
        "ionic, reset_errno, 22, rdma-core/ionic/ionic_verbs.c:3266",
        "qedr, early_errno, -22, rdma-core/qedr/qelr_verbs.c:1823 qelr_post_send",
        "qedr, reset_errno, -22, rdma-core/qedr/qelr_verbs.c:1967 qelr_post_recv",
        "cxgb4, fences_sends, 1, rdma-core/cxgb4/qp.c:542 c4iw_post_send: FW_RI_READ_FENCE_FLAG of sends",
        "mlx5, fences_sends, 0, rdma-core/mlx5/qp.c:858 MLX5_WQE_CTRL_FENCE of all",
        "ionic, vendor, 0x1dd8, linux/include/linux/pci_ids.h PCI_VENDOR_ID_PENSANDO",
        "ionic, windows, 1, linux/ionic/ionic_ibdev.c ionic_query_device: MEM_WINDOW_TYPE_2B",
        "ionic, read_sges, 8, linux/ionic/ionic_ibdev.c ionic_query_device: max_send_sge",
        "ionic, version_1, 0, linux/ionic/ionic_ibdev.c ionic_get_port_immutable: UDP_ENCAP",
        "ionic, max_srq, 0, rdma-core/ionic/ionic_verbs.c:3530: no create_srq",
        "qedr, vendor, 0x1077, rdma-core/qedr/qelr_main.c:53 PCI_VENDOR_ID_QLOGIC",
        "qedr, send_sges, 4, rdma-core/qedr/rdma_common.h:45 RDMA_MAX_SGE_PER_SQ_WQE",
        "qedr, receive_sges, 4, rdma-core/qedr/rdma_common.h:46 RDMA_MAX_SGE_PER_RQ_WQE",
        "qedr, max_inline, 256, rdma-core/qedr/roce_common.h:43 ROCE_REQ_MAX_INLINE_DATA_SIZE",
        "qedr, alloc_errno, 95, rdma-core/qedr/qelr_main.c:89: no alloc_mw",
        "qedr, no_datagrams, 1, rdma-core/qedr/qelr_main.c:89: no create_ah",
    })
    void theTableSaysWhatTheSourceSays(String family, String fact, String value, String source) throws Exception {
        StubDevice.install();
        assertThat(StubDevice.call("stub_fact", family, fact)).as(source).isEqualTo(Integer.decode(value));
    }
}
