/*
 * The conversation of the tutorial "Building an RDMA-capable application with IB verbs", which no distribution packages, by its description:
 * a message of 1024 bytes each way once connected, completions taken by a thread that sleeps on a completion channel, and the client
 * disconnects after its two completions. tutorial client ADDRESS PORT, or tutorial server ADDRESS PORT for one client.
 */
#include <netdb.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LENGTH = 1024, RESOLVE_MS = 500 };
static char incoming[LENGTH], outgoing[LENGTH];
static int is_client, completions;
static struct rdma_cm_id *id;
static struct ibv_pd *pd;
static struct ibv_comp_channel *channel;
static struct ibv_cq *cq;
static struct ibv_mr *incoming_mr, *outgoing_mr;

static void need(int holds, const char *what) {
  if (!holds) {
    perror(what);
    exit(1);
  }
}

static void say(const char *what) {
  printf("%s\n", what);
  fflush(stdout);
}

static void completed(struct ibv_wc *wc) {
  if (wc->status == IBV_WC_WR_FLUSH_ERR) return;
  if (wc->status != IBV_WC_SUCCESS) {
    fprintf(stderr, "completion: %s\n", ibv_wc_status_str(wc->status));
    exit(1);
  }
  if (wc->opcode & IBV_WC_RECV)
    printf("received message: %s (%u bytes)\n", incoming, wc->byte_len), fflush(stdout);
  else
    say("send completed successfully.");
  if (++completions == 2 && is_client) need(rdma_disconnect(id) == 0, "rdma_disconnect");
}

static void *take_completions(void *nothing) {
  struct ibv_cq *which;
  struct ibv_wc wc;
  for (;;) {
    void *context;
    need(ibv_get_cq_event(channel, &which, &context) == 0, "ibv_get_cq_event");
    ibv_ack_cq_events(which, 1);
    need(ibv_req_notify_cq(which, 0) == 0, "ibv_req_notify_cq");
    while (ibv_poll_cq(which, 1, &wc) > 0) completed(&wc);
  }
  return nothing;
}

static void prepare(struct rdma_cm_id *of) {
  id = of;
  need((pd = ibv_alloc_pd(id->verbs)) != NULL, "ibv_alloc_pd");
  need((channel = ibv_create_comp_channel(id->verbs)) != NULL, "ibv_create_comp_channel");
  need((cq = ibv_create_cq(id->verbs, 10, NULL, channel, 0)) != NULL, "ibv_create_cq");
  need(ibv_req_notify_cq(cq, 0) == 0, "ibv_req_notify_cq");
  pthread_t poller;
  need(pthread_create(&poller, NULL, take_completions, NULL) == 0, "pthread_create");
  struct ibv_qp_init_attr queues = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC};
  queues.cap.max_send_wr = queues.cap.max_recv_wr = 10;
  queues.cap.max_send_sge = queues.cap.max_recv_sge = 1;
  need(rdma_create_qp(id, pd, &queues) == 0, "rdma_create_qp");
  need((incoming_mr = ibv_reg_mr(pd, incoming, LENGTH, IBV_ACCESS_LOCAL_WRITE)) != NULL, "ibv_reg_mr");
  need((outgoing_mr = ibv_reg_mr(pd, outgoing, LENGTH, 0)) != NULL, "ibv_reg_mr");
  struct ibv_sge piece = {(uintptr_t)incoming, LENGTH, incoming_mr->lkey};
  struct ibv_recv_wr receive = {.sg_list = &piece, .num_sge = 1}, *bad;
  need(ibv_post_recv(id->qp, &receive, &bad) == 0, "ibv_post_recv");
}

static void send_message(void) {
  snprintf(outgoing, LENGTH, "hello from C's %s %d", is_client ? "client" : "server", (int)getpid());
  struct ibv_sge piece = {(uintptr_t)outgoing, LENGTH, outgoing_mr->lkey};
  struct ibv_send_wr send = {.sg_list = &piece, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED}, *bad;
  need(ibv_post_send(id->qp, &send, &bad) == 0, "ibv_post_send");
}

/* 0 when that was the last event. */
static int handle(struct rdma_cm_event *event) {
  struct rdma_conn_param parameters = {0};
  switch (event->event) {
    case RDMA_CM_EVENT_ADDR_RESOLVED:
      say("address resolved.");
      prepare(event->id);
      need(rdma_resolve_route(id, RESOLVE_MS) == 0, "rdma_resolve_route");
      return 1;
    case RDMA_CM_EVENT_ROUTE_RESOLVED:
      say("route resolved.");
      need(rdma_connect(id, &parameters) == 0, "rdma_connect");
      return 1;
    case RDMA_CM_EVENT_CONNECT_REQUEST:
      say("received connection request.");
      prepare(event->id);
      need(rdma_accept(id, &parameters) == 0, "rdma_accept");
      return 1;
    case RDMA_CM_EVENT_ESTABLISHED:
      say("connected. posting send...");
      send_message();
      return 1;
    case RDMA_CM_EVENT_DISCONNECTED:
      say(is_client ? "disconnected." : "peer disconnected.");
      return 0;
    default:
      fprintf(stderr, "%s, status %d\n", rdma_event_str(event->event), event->status);
      exit(1);
  }
}

int main(int argc, char **argv) {
  if (argc != 4) {
    fprintf(stderr, "usage: tutorial client|server ADDRESS PORT\n");
    return 2;
  }
  is_client = strcmp(argv[1], "client") == 0;
  struct addrinfo *address;
  need(getaddrinfo(argv[2], argv[3], NULL, &address) == 0, "getaddrinfo");
  struct rdma_event_channel *events = rdma_create_event_channel();
  need(events != NULL, "rdma_create_event_channel");
  struct rdma_cm_id *first;
  need(rdma_create_id(events, &first, NULL, RDMA_PS_TCP) == 0, "rdma_create_id");
  if (is_client) {
    need(rdma_resolve_addr(first, NULL, address->ai_addr, RESOLVE_MS) == 0, "rdma_resolve_addr");
  } else {
    need(rdma_bind_addr(first, address->ai_addr) == 0, "rdma_bind_addr");
    need(rdma_listen(first, 10) == 0, "rdma_listen");
    printf("listening on port %d.\n", ntohs(rdma_get_src_port(first))), fflush(stdout);
  }
  freeaddrinfo(address);
  int more = 1;
  while (more) {
    struct rdma_cm_event *event, copy;
    need(rdma_get_cm_event(events, &event) == 0, "rdma_get_cm_event");
    copy = *event;
    rdma_ack_cm_event(event);
    more = handle(&copy);
  }
  usleep(200 * 1000); /* for the other thread's last lines */
  rdma_destroy_qp(id);
  ibv_dereg_mr(outgoing_mr);
  ibv_dereg_mr(incoming_mr);
  rdma_destroy_id(id);
  if (!is_client) rdma_destroy_id(first);
  return completions == 2 ? 0 : 1;
}
