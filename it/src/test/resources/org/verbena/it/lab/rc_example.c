/*
 * The conversation of RDMA_RC_example (RDMA Aware Networks Programming, chapter 8), which no distribution packages, by its description: the
 * same struct on the wire, the same points, the same queue pair attributes and buffer size. rc_example DEVICE GID_INDEX PORT [SERVER]
 */
#include <arpa/inet.h>
#include <endian.h>
#include <infiniband/verbs.h>
#include <netdb.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct end {
  uint64_t address;
  uint32_t key, number;
  uint16_t lid;
  uint8_t gid[16];
} __attribute__((packed));

enum { LENGTH = 15 };
static char buffer[LENGTH];
static int peer;
static struct ibv_qp *qp;
static struct ibv_cq *cq;
static struct ibv_mr *mr;

static void need(int holds, const char *what) {
  if (!holds) {
    perror(what);
    exit(1);
  }
}

static void tell(const void *mine, void *its, size_t bytes) {
  need(write(peer, mine, bytes) == (ssize_t)bytes, "write");
  for (size_t got = 0; got < bytes;) {
    ssize_t more = read(peer, (char *)its + got, bytes - got);
    need(more > 0, "the peer closed");
    got += more;
  }
}

static void point(char name) {
  char other;
  tell(&name, &other, 1);
}

static void completed(void) {
  struct ibv_wc wc;
  int count;
  for (time_t end = time(NULL) + 60; (count = ibv_poll_cq(cq, 1, &wc)) == 0;) need(time(NULL) < end, "no completion");
  need(count == 1, "ibv_poll_cq");
  if (wc.status != IBV_WC_SUCCESS) {
    fprintf(stderr, "%s\n", ibv_wc_status_str(wc.status));
    exit(1);
  }
}

static void post(enum ibv_wr_opcode opcode, const struct end *to) {
  struct ibv_sge piece = {.addr = (uintptr_t)buffer, .length = LENGTH, .lkey = mr->lkey};
  struct ibv_send_wr work = {.sg_list = &piece, .num_sge = 1, .opcode = opcode, .send_flags = IBV_SEND_SIGNALED}, *bad;
  work.wr.rdma.remote_addr = be64toh(to->address);
  work.wr.rdma.rkey = ntohl(to->key);
  need(ibv_post_send(qp, &work, &bad) == 0, "ibv_post_send");
  completed();
}

static void put(const char *text) {
  memset(buffer, 0, LENGTH);
  memcpy(buffer, text, strlen(text) < LENGTH ? strlen(text) : LENGTH - 1);
}

int main(int argc, char **argv) {
  need(argc == 4 || argc == 5, "rc_example DEVICE GID_INDEX PORT [SERVER]");
  const char *server = argc == 5 ? argv[4] : NULL;
  int count, gid_index = atoi(argv[2]);
  struct ibv_context *device = NULL;
  struct ibv_device **devices = ibv_get_device_list(&count);
  for (int i = 0; i < count; i++)
    if (strcmp(ibv_get_device_name(devices[i]), argv[1]) == 0) device = ibv_open_device(devices[i]);
  need(device != NULL, "no such device");
  struct ibv_pd *pd = ibv_alloc_pd(device);
  cq = ibv_create_cq(device, 1, NULL, NULL, 0);
  put(server ? "" : "SEND operation");
  mr = ibv_reg_mr(pd, buffer, LENGTH, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE);
  need(cq != NULL && mr != NULL, "ibv_reg_mr");
  struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC, .sq_sig_all = 1, .send_cq = cq, .recv_cq = cq,
      .cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1}};
  qp = ibv_create_qp(pd, &init);
  need(qp != NULL, "ibv_create_qp");

  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(atoi(argv[3]))};
  int sock = socket(AF_INET, SOCK_STREAM, 0), on = 1;
  if (server) {
    need(inet_pton(AF_INET, server, &address.sin_addr) == 1, "the server is no IPv4 address");
    need(connect(sock, (struct sockaddr *)&address, sizeof address) == 0, "connect");
    peer = sock;
  } else {
    setsockopt(sock, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    need(bind(sock, (struct sockaddr *)&address, sizeof address) == 0 && listen(sock, 1) == 0, "bind");
    peer = accept(sock, NULL, NULL);
    need(peer >= 0, "accept");
  }

  struct ibv_port_attr port;
  union ibv_gid gid;
  need(ibv_query_port(device, 1, &port) == 0 && ibv_query_gid(device, 1, gid_index, &gid) == 0, "ibv_query_gid");
  struct end mine = {htobe64((uintptr_t)buffer), htonl(mr->rkey), htonl(qp->qp_num), htons(port.lid), {0}}, its;
  memcpy(mine.gid, &gid, 16);
  tell(&mine, &its, sizeof mine);

  struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1,
      .qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE};
  need(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0, "INIT");
  if (server) {
    struct ibv_sge piece = {.addr = (uintptr_t)buffer, .length = LENGTH, .lkey = mr->lkey};
    struct ibv_recv_wr work = {.sg_list = &piece, .num_sge = 1}, *bad;
    need(ibv_post_recv(qp, &work, &bad) == 0, "ibv_post_recv");
  }
  struct ibv_qp_attr rtr = {.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_256, .dest_qp_num = ntohl(its.number),
      .max_dest_rd_atomic = 1, .min_rnr_timer = 0x12,
      .ah_attr = {.dlid = ntohs(its.lid), .port_num = 1, .is_global = 1, .grh = {.hop_limit = 1, .sgid_index = gid_index}}};
  memcpy(&rtr.ah_attr.grh.dgid, its.gid, 16);
  need(ibv_modify_qp(qp, &rtr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN
                                   | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0, "RTR");
  struct ibv_qp_attr rts = {.qp_state = IBV_QPS_RTS, .timeout = 0x12, .retry_cnt = 6, .rnr_retry = 0, .max_rd_atomic = 1};
  need(ibv_modify_qp(qp, &rts, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN
                                   | IBV_QP_MAX_QP_RD_ATOMIC) == 0, "RTS");
  point('Q');

  if (server) {
    completed();
    printf("Message is: '%.*s'\n", LENGTH, buffer);
    point('R');
    post(IBV_WR_RDMA_READ, &its);
    printf("Contents of server's buffer: '%.*s'\n", LENGTH, buffer);
    put("RDMA write operation");
    post(IBV_WR_RDMA_WRITE, &its);
    point('W');
  } else {
    post(IBV_WR_SEND, &its);
    put("RDMA read operation");
    point('R');
    point('W');
    printf("Contents of server buffer: '%.*s'\n", LENGTH, buffer);
  }
  return 0;
}
