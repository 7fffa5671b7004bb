/*
 * A libibverbs with one device that has what few adapters have, and little else, for programs of one machine: what C's ibv_rc_pingpong,
 * ibv_srq_pingpong, ibv_xsrq_pingpong and verbena's call, messages included. Each process has a LID, which is the name of a Unix datagram
 * socket; messages are datagrams. A shared receive queue's number has its process's LID in it, so that a message for another process of the
 * same XRC domain is passed on, as an adapter does that both processes use.
 *
 * It is stricter than an adapter: attributes that a step needs must be exactly those that the kernel's table has, a packet must have the
 * sequence number that is due, completions that nobody has room for and objects that nobody gives back end the process with status 70.
 * A piece of a work request must lie in its memory region, whose addresses count as they were registered to.
 *
 * Environment: SIMULATED_LACKS has what the device lacks, of the words in lacks() below. When the device is closed it prints a line that begins
 * with "simulated device:" and has what was asked of it, for programs to be compared by.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <infiniband/verbs.h>

#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

#define EXPORT __attribute__((visibility("default")))
#define MAX_OBJECTS 512
#define MAX_WAITING 4096
#define MAX_MESSAGE 65536
#define MAX_INLINE 64
#define DEVICE_MEMORY_BYTES 8192
/* The clock begins shortly before its 48 bits run over. */
#define CLOCK_MASK 0xffffffffffffULL
#define CLOCK_START (CLOCK_MASK - 100)

static void fatal(const char *what, long a, long b)
{
	fprintf(stderr, "simulated device: %s (0x%lx, 0x%lx)\n", what, a, b);
	_exit(70);
}

static int lacks(const char *what)
{
	const char *list = getenv("SIMULATED_LACKS");

	/* odp, odp-recv, odp-srq, odp-xrc, implicit, prefetch, timestamps, dm, builder */
	for (size_t length = strlen(what); list && (list = strstr(list, what)); list += length)
		if (list[length] == 0 || list[length] == ' ')
			return 1;
	return 0;
}

/* What was asked of the device. */
static struct {
	unsigned access, wc_flags, sends, built, inlined, prefetched, prefetch_flags, dm_bytes, to_dm, from_dm;
	int everything;
} seen;

struct packet {
	uint32_t passed_on, receiver, sender, psn, srqn, bytes;
	uint64_t domain;
	char payload[MAX_MESSAGE];
};

struct entry { struct ibv_wc wc; uint64_t timestamp; };
struct xcq {
	union { struct ibv_cq base; struct ibv_cq_ex extended; };
	struct entry *ring, current;
	uint64_t clock;
	unsigned head, tail, taken, acked, receives;
	int armed;
};
struct xdm { struct ibv_dm base; size_t length; char *bytes; };
struct xmr { struct ibv_mr base; struct xdm *dm; uint64_t address, length; unsigned access; };
struct xring { struct { uint64_t id; struct ibv_sge sge; } *slots; uint32_t depth; unsigned head, tail; };
struct xchannel { struct ibv_comp_channel base; int write_fd; };
struct xdomain { struct ibv_xrcd base; uint64_t id; int users; };
struct xsrq {
	struct ibv_srq base;
	uint32_t number;
	struct xdomain *domain;
	struct xcq *cq;
	struct xring receives;
};
struct xqp {
	union { struct ibv_qp base; struct ibv_qp_ex ex; };
	struct ibv_send_wr building;
	struct ibv_sge building_sge;
	char building_inline[MAX_INLINE];
	int building_count, has_builder;
	struct xring receives;
	struct xdomain *domain;
	uint32_t depth, out, destination, lid, send_psn, receive_psn;
};

static struct ibv_device device = { .node_type = IBV_NODE_CA, .transport_type = IBV_TRANSPORT_IB, .name = "sim0",
	.dev_name = "uverbs0", .dev_path = "/sys/class/infiniband_verbs/uverbs0", .ibdev_path = "/sys/class/infiniband/sim0" };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct xqp *qps[MAX_OBJECTS];
static struct xsrq *srqs[MAX_OBJECTS];
static struct xmr *mrs[MAX_OBJECTS];
static struct packet *waiting[MAX_WAITING];
static int waiting_count, live, sock = -1, async_pipe[2];
static uint16_t lid;

/* ---- between processes */

static socklen_t name_of(uint16_t of, struct sockaddr_un *address)
{
	memset(address, 0, sizeof(*address));
	address->sun_family = AF_UNIX;
	return offsetof(struct sockaddr_un, sun_path) + 1
		+ sprintf(address->sun_path + 1, "verbena-simulated-%u", of);
}

static int transmit(uint16_t to, const struct packet *packet)
{
	struct sockaddr_un address;
	socklen_t length = name_of(to, &address);

	return sendto(sock, packet, offsetof(struct packet, payload) + packet->bytes, 0, (void *) &address, length) < 0;
}

static void complete(struct xcq *cq, struct ibv_wc wc)
{
	if (cq->tail - cq->head == (unsigned) cq->base.cqe)
		fatal("a completion queue ran over", cq->base.cqe, 0);
	/* Receives are 5, 7 and 9 cycles apart. */
	if (wc.opcode == IBV_WC_RECV)
		cq->clock += 5 + 2 * (cq->receives++ % 3);
	cq->ring[cq->tail++ % cq->base.cqe] = (struct entry) { wc, cq->clock & CLOCK_MASK };
	if (cq->armed && cq->base.channel) {
		struct xcq *self = cq;
		cq->armed = 0;
		if (write(((struct xchannel *) cq->base.channel)->write_fd, &self, sizeof(self)) != sizeof(self))
			fatal("no event", errno, 0);
	}
}

/* Where the bytes of a piece are; the program ends if they are not in the region that the piece names. */
static char *locate(const struct ibv_sge *sge, unsigned needed)
{
	struct xmr *mr = sge->lkey < MAX_OBJECTS ? mrs[sge->lkey] : NULL;

	if (!mr || (mr->access & needed) != needed)
		fatal("a piece without a region, or one without the right", sge->lkey, needed);
	if (sge->addr < mr->address || sge->length > mr->length || sge->addr - mr->address > mr->length - sge->length)
		fatal("a piece that is outside of its region", sge->addr, sge->length);
	return mr->dm ? mr->dm->bytes + (sge->addr - mr->address) : (char *) (uintptr_t) sge->addr;
}

static int deliver(struct packet *p, struct xring *receives, struct xcq *cq)
{
	if (receives->head == receives->tail)
		return 0;
	struct ibv_sge *into = &receives->slots[receives->head % receives->depth].sge;
	struct ibv_wc wc = { .wr_id = receives->slots[receives->head++ % receives->depth].id, .opcode = IBV_WC_RECV,
		.byte_len = p->bytes, .qp_num = p->receiver };
	if (p->bytes > into->length)
		wc.status = IBV_WC_LOC_LEN_ERR;
	else
		memcpy(locate(into, IBV_ACCESS_LOCAL_WRITE), p->payload, p->bytes);
	complete(cq, wc);
	return 1;
}

static int take_reliable(struct packet *p)
{
	struct xqp *qp = p->receiver >> 9 == lid ? qps[p->receiver % MAX_OBJECTS] : NULL;

	if (!qp)
		return 1; /* It is gone: the sender has more than it needs to end. */
	if (qp->base.state != IBV_QPS_RTR && qp->base.state != IBV_QPS_RTS)
		return 0;
	if (qp->base.qp_type != IBV_QPT_RC || qp->destination != p->sender)
		fatal("a packet of a stranger", p->sender, qp->destination);
	if (qp->receive_psn != p->psn) /* One before it waits for a receive. */
		return 0;
	struct xsrq *srq = (struct xsrq *) qp->base.srq;
	if (!deliver(p, srq ? &srq->receives : &qp->receives, (struct xcq *) qp->base.recv_cq))
		return 0;
	qp->receive_psn = (qp->receive_psn + 1) & 0xffffff;
	return 1;
}

/* Whether the packet is dealt with; otherwise it waits for a receive, or for its queue pair to be ready. */
static int take(struct packet *p)
{
	if (!p->srqn)
		return take_reliable(p);
	if (!p->passed_on) {
		struct xqp *qp = p->receiver >> 9 == lid ? qps[p->receiver % MAX_OBJECTS] : NULL;
		if (!qp || qp->base.qp_type != IBV_QPT_XRC_RECV)
			fatal("a packet for what is no XRC receiver", p->receiver, p->sender);
		if (qp->base.state != IBV_QPS_RTR && qp->base.state != IBV_QPS_RTS)
			return 0;
		if (qp->destination != p->sender)
			fatal("a packet of a stranger", p->sender, qp->destination);
		if (qp->receive_psn != p->psn)
			fatal("not the packet that is due", p->psn, qp->receive_psn);
		qp->receive_psn = (qp->receive_psn + 1) & 0xffffff;
		p->passed_on = 1;
		p->domain = qp->domain->id;
	}
	if (p->srqn >> 8 != lid) {
		if (transmit(p->srqn >> 8, p))
			fatal("a message for a process that is gone", p->srqn, errno);
		return 1;
	}
	struct xsrq *srq = srqs[p->srqn & 0xff];
	if (!srq || srq->domain->id != p->domain)
		fatal("a message for a queue of another domain", p->srqn, p->domain);
	return deliver(p, &srq->receives, srq->cq);
}

static void progress(void)
{
	int left = 0;

	for (int i = 0; i < waiting_count; i++)
		if (take(waiting[i]))
			free(waiting[i]);
		else
			waiting[left++] = waiting[i];
	waiting_count = left;
}

static void *receive(void *unused)
{
	for (;;) {
		struct packet *packet = malloc(sizeof(*packet));
		if (recv(sock, packet, sizeof(*packet), 0) < (ssize_t) offsetof(struct packet, payload))
			fatal("no packet", errno, 0);
		pthread_mutex_lock(&lock);
		if (waiting_count == MAX_WAITING)
			fatal("too many packets wait", waiting_count, 0);
		waiting[waiting_count++] = packet;
		progress();
		pthread_mutex_unlock(&lock);
	}
	return unused;
}

/* ---- the data path */

static int pop(struct xcq *cq, struct entry *into)
{
	if (cq->head == cq->tail)
		return 0;
	*into = cq->ring[cq->head++ % cq->base.cqe];
	if (into->wc.opcode == IBV_WC_SEND) {
		/* As on a device: a polled completion frees its work request and those before it. */
		qps[into->wc.qp_num % MAX_OBJECTS]->out -= into->wc.src_qp;
		into->wc.src_qp = 0;
	}
	return 1;
}

static int poll_cq(struct ibv_cq *ibcq, int entries, struct ibv_wc *wc)
{
	struct xcq *cq = (struct xcq *) ibcq;
	struct entry entry;
	int count = 0;

	if (cq->extended.start_poll)
		fatal("ibv_poll_cq of a queue that was created by ibv_create_cq_ex", 0, 0);
	pthread_mutex_lock(&lock);
	for (; count < entries && pop(cq, &entry); count++)
		wc[count] = entry.wc;
	pthread_mutex_unlock(&lock);
	if (!count)
		sched_yield(); /* to whom it waits for: programs poll without a pause, and processors are few */
	return count;
}

static int next_poll(struct ibv_cq_ex *extended)
{
	struct xcq *cq = (struct xcq *) extended;

	pthread_mutex_lock(&lock);
	int popped = pop(cq, &cq->current);
	pthread_mutex_unlock(&lock);
	if (!popped) {
		sched_yield();
		return ENOENT;
	}
	extended->wr_id = cq->current.wc.wr_id;
	extended->status = cq->current.wc.status;
	return 0;
}

static int start_poll(struct ibv_cq_ex *cq, struct ibv_poll_cq_attr *attr) { return attr->comp_mask ? EINVAL : next_poll(cq); }
static void end_poll(struct ibv_cq_ex *cq) {}
static enum ibv_wc_opcode read_opcode(struct ibv_cq_ex *cq) { return ((struct xcq *) cq)->current.wc.opcode; }
static uint32_t read_vendor_err(struct ibv_cq_ex *cq) { return ((struct xcq *) cq)->current.wc.vendor_err; }
static unsigned read_wc_flags(struct ibv_cq_ex *cq) { return ((struct xcq *) cq)->current.wc.wc_flags; }
static uint64_t read_completion_ts(struct ibv_cq_ex *cq) { return ((struct xcq *) cq)->current.timestamp; }

static int req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	pthread_mutex_lock(&lock);
	((struct xcq *) cq)->armed = 1;
	pthread_mutex_unlock(&lock);
	return solicited_only ? EINVAL : 0;
}

static int post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct xqp *qp = (struct xqp *) ibqp;
	static uint32_t unsignalled[MAX_OBJECTS];
	struct packet *packet;

	for (; wr; wr = wr->next) {
		int xrc = ibqp->qp_type == IBV_QPT_XRC_SEND, inlined = !!(wr->send_flags & IBV_SEND_INLINE);
		if (ibqp->qp_type == IBV_QPT_XRC_RECV || ibqp->state != IBV_QPS_RTS || wr->opcode != IBV_WR_SEND
		    || wr->num_sge != 1 || wr->sg_list->length > (inlined ? MAX_INLINE : MAX_MESSAGE)) {
			*bad = wr;
			return EINVAL;
		}
		packet = malloc(sizeof(*packet));
		pthread_mutex_lock(&lock);
		if (qp->out == qp->depth) {
			pthread_mutex_unlock(&lock);
			free(packet);
			*bad = wr;
			return ENOMEM;
		}
		qp->out++;
		packet->passed_on = 0;
		packet->receiver = qp->destination;
		packet->sender = ibqp->qp_num;
		packet->psn = qp->send_psn;
		packet->srqn = xrc ? wr->qp_type.xrc.remote_srqn : 0;
		packet->bytes = wr->sg_list->length;
		packet->domain = 0;
		memcpy(packet->payload, inlined ? (char *) (uintptr_t) wr->sg_list->addr : locate(wr->sg_list, 0), packet->bytes);
		seen.sends++;
		seen.inlined += inlined;
		qp->send_psn = (qp->send_psn + 1) & 0xffffff;
		pthread_mutex_unlock(&lock);

		/* A reliable connection's packets are repeated for long when the peer is gone, and nobody waits for that. */
		int failed = transmit(qp->lid, packet) && xrc;
		free(packet);
		pthread_mutex_lock(&lock);
		uint32_t *before = &unsignalled[ibqp->qp_num % MAX_OBJECTS];
		++*before;
		if (failed || (wr->send_flags & IBV_SEND_SIGNALED)) {
			struct ibv_wc wc = { .wr_id = wr->wr_id, .opcode = IBV_WC_SEND, .qp_num = ibqp->qp_num, .src_qp = *before,
				.status = failed ? IBV_WC_RETRY_EXC_ERR : IBV_WC_SUCCESS };
			*before = 0;
			complete((struct xcq *) ibqp->send_cq, wc);
		}
		pthread_mutex_unlock(&lock);
	}
	return 0;
}

static void build_start(struct ibv_qp_ex *ex) { ((struct xqp *) ex)->building_count = 0; }
static void build_abort(struct ibv_qp_ex *ex) { ((struct xqp *) ex)->building_count = 0; }

static void build_send(struct ibv_qp_ex *ex)
{
	struct xqp *qp = (struct xqp *) ex;

	if (qp->building_count++)
		fatal("more than one work request in a batch, which has room for one", qp->building_count, 0);
	qp->building = (struct ibv_send_wr) { .wr_id = ex->wr_id, .send_flags = ex->wr_flags, .opcode = IBV_WR_SEND };
}

static void build_sge(struct ibv_qp_ex *ex, uint32_t lkey, uint64_t addr, uint32_t length)
{
	struct xqp *qp = (struct xqp *) ex;

	qp->building_sge = (struct ibv_sge) { .addr = addr, .length = length, .lkey = lkey };
	qp->building.sg_list = &qp->building_sge;
	qp->building.num_sge = 1;
}

static void build_inline(struct ibv_qp_ex *ex, void *addr, size_t length)
{
	struct xqp *qp = (struct xqp *) ex;

	if (!(qp->building.send_flags & IBV_SEND_INLINE) || length > MAX_INLINE)
		fatal("inline data of a work request that is not so, or too long", qp->building.send_flags, length);
	memcpy(qp->building_inline, addr, length);
	build_sge(ex, 0, (uintptr_t) qp->building_inline, length);
}

static int build_complete(struct ibv_qp_ex *ex)
{
	struct xqp *qp = (struct xqp *) ex;
	struct ibv_send_wr *bad;

	if (qp->building_count != 1)
		return EINVAL;
	seen.built++;
	return post_send(&qp->base, &qp->building, &bad);
}

static int post_receives(struct xring *receives, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	int result = 0;

	pthread_mutex_lock(&lock);
	for (; wr; wr = wr->next) {
		if (receives->tail - receives->head == receives->depth || wr->num_sge != 1) {
			*bad = wr;
			result = ENOMEM;
			break;
		}
		receives->slots[receives->tail % receives->depth].id = wr->wr_id;
		receives->slots[receives->tail++ % receives->depth].sge = *wr->sg_list;
	}
	progress();
	pthread_mutex_unlock(&lock);
	return result;
}

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	return post_receives(&((struct xqp *) qp)->receives, wr, bad);
}

static int post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	return post_receives(&((struct xsrq *) srq)->receives, wr, bad);
}

static void make_ring(struct xring *ring, uint32_t depth)
{
	ring->depth = depth;
	ring->slots = calloc(depth, sizeof(*ring->slots));
}

/* ---- objects */

static struct ibv_xrcd *open_xrcd(struct ibv_context *context, struct ibv_xrcd_init_attr *attr)
{
	struct stat file;
	struct xdomain *domain = calloc(1, sizeof(*domain));

	if (attr->comp_mask != (IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS)
	    || (attr->fd >= 0 && fstat(attr->fd, &file))) {
		errno = EINVAL;
		return NULL;
	}
	domain->base.context = context;
	domain->id = attr->fd >= 0 ? file.st_ino : ~(uint64_t) lid;
	live++;
	return &domain->base;
}

static int close_xrcd(struct ibv_xrcd *xrcd)
{
	if (((struct xdomain *) xrcd)->users)
		return EBUSY;
	live--;
	free(xrcd);
	return 0;
}

static struct ibv_srq *create_srq_ex(struct ibv_context *context, struct ibv_srq_init_attr_ex *attr)
{
	static uint32_t next = 1;
	struct xsrq *srq = calloc(1, sizeof(*srq));

	if (attr->comp_mask != (IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ)
	    || attr->srq_type != IBV_SRQT_XRC || !attr->pd || !attr->xrcd || !attr->cq || next > 0xff) {
		errno = EINVAL;
		return NULL;
	}
	srq->base.context = context;
	srq->base.pd = attr->pd;
	srq->domain = (struct xdomain *) attr->xrcd;
	srq->domain->users++;
	srq->cq = (struct xcq *) attr->cq;
	make_ring(&srq->receives, attr->attr.max_wr);
	srq->number = (uint32_t) lid << 8 | next;
	srqs[next++] = srq;
	live++;
	return &srq->base;
}

EXPORT struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	struct xsrq *srq = calloc(1, sizeof(*srq));

	srq->base.context = pd->context;
	srq->base.pd = pd;
	make_ring(&srq->receives, attr->attr.max_wr);
	live++;
	return &srq->base;
}

static int get_srq_num(struct ibv_srq *srq, uint32_t *number) { *number = ((struct xsrq *) srq)->number; return 0; }

EXPORT int ibv_destroy_srq(struct ibv_srq *ibsrq)
{
	struct xsrq *srq = (struct xsrq *) ibsrq;

	if (srq->domain) {
		srq->domain->users--;
		srqs[srq->number & 0xff] = NULL;
	}
	free(srq->receives.slots);
	free(srq);
	live--;
	return 0;
}

static int is_allowed(struct ibv_qp_init_attr_ex *attr)
{
	switch (attr->qp_type) {
	case IBV_QPT_XRC_RECV:
		return attr->comp_mask == IBV_QP_INIT_ATTR_XRCD && attr->xrcd && !attr->send_cq && !attr->recv_cq
			&& !attr->cap.max_send_wr && !attr->cap.max_recv_wr;
	case IBV_QPT_XRC_SEND:
		return attr->comp_mask == IBV_QP_INIT_ATTR_PD && attr->pd && attr->send_cq && !attr->recv_cq && !attr->srq
			&& !attr->cap.max_recv_wr;
	case IBV_QPT_RC:
		if (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS && attr->send_ops_flags != IBV_QP_EX_WITH_SEND)
			return 0;
		return (attr->comp_mask & ~IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) == IBV_QP_INIT_ATTR_PD && attr->pd && attr->send_cq
			&& attr->recv_cq;
	default:
		return 0;
	}
}

static struct ibv_qp *create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr)
{
	static uint32_t next = 1;
	struct xqp *qp = calloc(1, sizeof(*qp));

	if (!is_allowed(attr) || next == MAX_OBJECTS) {
		errno = EINVAL;
		return NULL;
	}
	if (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) {
		if (lacks("builder")) {
			errno = EOPNOTSUPP;
			return NULL;
		}
		qp->has_builder = 1;
		qp->ex.wr_start = build_start;
		qp->ex.wr_send = build_send;
		qp->ex.wr_set_sge = build_sge;
		qp->ex.wr_set_inline_data = build_inline;
		qp->ex.wr_complete = build_complete;
		qp->ex.wr_abort = build_abort;
	}
	qp->base.context = context;
	qp->base.qp_type = attr->qp_type;
	/* 24 bits: a LID of 15, and which of the process's. */
	qp->base.qp_num = (uint32_t) lid << 9 | next;
	if (attr->qp_type == IBV_QPT_XRC_RECV) {
		qp->domain = (struct xdomain *) attr->xrcd;
		qp->domain->users++;
	} else {
		qp->base.pd = attr->pd;
		qp->base.send_cq = attr->send_cq;
		qp->depth = attr->cap.max_send_wr;
	}
	if (attr->qp_type == IBV_QPT_RC) {
		qp->base.recv_cq = attr->recv_cq;
		qp->base.srq = attr->srq;
		attr->cap.max_inline_data = MAX_INLINE;
		make_ring(&qp->receives, attr->cap.max_recv_wr);
	}
	qps[next++] = qp;
	live++;
	return &qp->base;
}

EXPORT struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *qp) { return ((struct xqp *) qp)->has_builder ? &((struct xqp *) qp)->ex : NULL; }

EXPORT int ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask, struct ibv_qp_init_attr *init)
{
	if (mask != IBV_QP_CAP || qp->qp_type != IBV_QPT_RC)
		return EINVAL;
	memset(attr, 0, sizeof(*attr));
	memset(init, 0, sizeof(*init));
	attr->cap.max_inline_data = init->cap.max_inline_data = MAX_INLINE;
	return 0;
}

EXPORT struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_init_attr_ex extended = { .comp_mask = IBV_QP_INIT_ATTR_PD, .pd = pd };

	/* Not all of it: comp_mask lies where the plain struct ends in padding. */
	memcpy(&extended, attr, offsetof(struct ibv_qp_init_attr_ex, comp_mask));
	struct ibv_qp *qp = create_qp_ex(pd->context, &extended);
	attr->cap = extended.cap;
	return qp;
}

EXPORT int ibv_modify_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int mask)
{
	struct xqp *qp = (struct xqp *) ibqp;
	int receiver = ibqp->qp_type != IBV_QPT_XRC_SEND, sender = ibqp->qp_type != IBV_QPT_XRC_RECV, needs;

	/* What qp_state_table of the kernel's drivers/infiniband/core/verbs.c asks for. */
	switch (ibqp->state << 4 | attr->qp_state) {
	case IBV_QPS_RESET << 4 | IBV_QPS_INIT:
		needs = IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
		break;
	case IBV_QPS_INIT << 4 | IBV_QPS_RTR:
		needs = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
		if (receiver)
			needs |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
		break;
	case IBV_QPS_RTR << 4 | IBV_QPS_RTS:
		needs = IBV_QP_TIMEOUT | IBV_QP_SQ_PSN;
		if (sender)
			needs |= IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
		break;
	default:
		return EINVAL;
	}
	if (mask != (needs | IBV_QP_STATE))
		return EINVAL;
	pthread_mutex_lock(&lock);
	if (mask & IBV_QP_DEST_QPN) {
		qp->destination = attr->dest_qp_num;
		qp->receive_psn = attr->rq_psn;
		qp->lid = attr->ah_attr.dlid;
	}
	if (mask & IBV_QP_SQ_PSN)
		qp->send_psn = attr->sq_psn;
	ibqp->state = attr->qp_state;
	progress();
	pthread_mutex_unlock(&lock);
	return 0;
}

EXPORT int ibv_destroy_qp(struct ibv_qp *ibqp)
{
	struct xqp *qp = (struct xqp *) ibqp;

	pthread_mutex_lock(&lock);
	if (qp->domain)
		qp->domain->users--;
	qps[ibqp->qp_num % MAX_OBJECTS] = NULL;
	progress(); /* drops what came for it */
	pthread_mutex_unlock(&lock);
	free(qp->receives.slots);
	free(qp);
	live--;
	return 0;
}

EXPORT struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
	struct xchannel *channel = calloc(1, sizeof(*channel));
	int fds[2];

	if (pipe(fds))
		return NULL;
	channel->base.context = context;
	channel->base.fd = fds[0];
	channel->write_fd = fds[1];
	live++;
	return &channel->base;
}

EXPORT int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
	if (channel->refcnt)
		return EBUSY;
	close(channel->fd);
	close(((struct xchannel *) channel)->write_fd);
	free(channel);
	live--;
	return 0;
}

EXPORT struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context, struct ibv_comp_channel *channel, int vector)
{
	struct xcq *cq = calloc(1, sizeof(*cq));

	cq->base.context = context;
	cq->base.channel = channel;
	cq->base.cq_context = cq_context;
	cq->base.cqe = cqe;
	cq->ring = calloc(cqe, sizeof(*cq->ring));
	cq->clock = CLOCK_START;
	if (channel)
		channel->refcnt++;
	live++;
	return &cq->base;
}

static struct ibv_cq_ex *create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr)
{
	if (attr->comp_mask || attr->wc_flags != IBV_WC_EX_WITH_COMPLETION_TIMESTAMP || lacks("timestamps")) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	struct ibv_cq_ex *cq = &((struct xcq *) ibv_create_cq(context, attr->cqe, attr->cq_context, attr->channel, attr->comp_vector))->extended;
	cq->start_poll = start_poll;
	cq->next_poll = next_poll;
	cq->end_poll = end_poll;
	cq->read_opcode = read_opcode;
	cq->read_vendor_err = read_vendor_err;
	cq->read_wc_flags = read_wc_flags;
	cq->read_completion_ts = read_completion_ts;
	seen.wc_flags = attr->wc_flags;
	return cq;
}

EXPORT int ibv_destroy_cq(struct ibv_cq *ibcq)
{
	struct xcq *cq = (struct xcq *) ibcq;

	if (cq->taken != cq->acked)
		fatal("events that nobody acknowledged, for which libibverbs waits", cq->taken, cq->acked);
	if (ibcq->channel)
		ibcq->channel->refcnt--;
	free(cq->ring);
	free(cq);
	live--;
	return 0;
}

EXPORT int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context)
{
	if (read(channel->fd, cq, sizeof(*cq)) != sizeof(*cq))
		return -1;
	((struct xcq *) *cq)->taken++;
	*cq_context = (*cq)->cq_context;
	return 0;
}

EXPORT void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int count) { ((struct xcq *) cq)->acked += count; }

EXPORT struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
	struct ibv_pd *pd = calloc(1, sizeof(*pd));

	pd->context = context;
	live++;
	return pd;
}

EXPORT int ibv_dealloc_pd(struct ibv_pd *pd) { live--; free(pd); return 0; }

static struct ibv_mr *register_memory(struct ibv_pd *pd, void *addr, size_t length, unsigned access, struct xdm *dm)
{
	static uint32_t next = 1;
	struct xmr *mr = calloc(1, sizeof(*mr));

	if (next == MAX_OBJECTS)
		fatal("too many regions", next, 0);
	mr->base.context = pd->context;
	mr->base.pd = pd;
	mr->base.addr = addr;
	mr->base.length = mr->length = length;
	mr->address = access & IBV_ACCESS_ZERO_BASED ? 0 : (uintptr_t) addr;
	mr->access = seen.access = access;
	mr->dm = dm;
	mrs[next] = mr;
	mr->base.lkey = mr->base.rkey = next++;
	live++;
	return &mr->base;
}

EXPORT struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	int all = !addr && length == SIZE_MAX;

	if ((access & ~(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND)) || (access & IBV_ACCESS_ON_DEMAND && lacks("odp"))
	    || (all && (!(access & IBV_ACCESS_ON_DEMAND) || lacks("implicit")))) {
		errno = EINVAL;
		return NULL;
	}
	seen.everything = all;
	return register_memory(pd, addr, length, access, NULL);
}

EXPORT struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned int access)
{
	return ibv_reg_mr(pd, addr, length, access);
}

static struct ibv_mr *reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *ibdm, uint64_t offset, size_t length, unsigned int access)
{
	struct xdm *dm = (struct xdm *) ibdm;

	if (offset || length != dm->length || access != (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ZERO_BASED)) {
		errno = EINVAL;
		return NULL;
	}
	return register_memory(pd, NULL, length, access, dm);
}

EXPORT int ibv_dereg_mr(struct ibv_mr *mr)
{
	mrs[mr->lkey] = NULL;
	live--;
	free(mr);
	return 0;
}

static int advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags, struct ibv_sge *sge, uint32_t count)
{
	if (lacks("prefetch"))
		return EOPNOTSUPP;
	if (count != 1 || advice != IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE)
		return EINVAL;
	locate(sge, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND);
	seen.prefetched = sge->length;
	seen.prefetch_flags = flags;
	return 0;
}

/* The processor reaches device memory by these two alone: what it holds is not in the program's buffer. */
static int memcpy_to_dm(struct ibv_dm *dm, uint64_t offset, const void *host, size_t length)
{
	if (offset > ((struct xdm *) dm)->length || length > ((struct xdm *) dm)->length - offset)
		return EINVAL;
	memcpy(((struct xdm *) dm)->bytes + offset, host, length);
	seen.to_dm += length;
	return 0;
}

static int memcpy_from_dm(void *host, struct ibv_dm *dm, uint64_t offset, size_t length)
{
	if (offset > ((struct xdm *) dm)->length || length > ((struct xdm *) dm)->length - offset)
		return EINVAL;
	memcpy(host, ((struct xdm *) dm)->bytes + offset, length);
	seen.from_dm += length;
	return 0;
}

static struct ibv_dm *alloc_dm(struct ibv_context *context, struct ibv_alloc_dm_attr *attr)
{
	struct xdm *dm = calloc(1, sizeof(*dm));

	if (attr->comp_mask || attr->log_align_req || attr->length > DEVICE_MEMORY_BYTES || lacks("dm")) {
		errno = ENOMEM;
		return NULL;
	}
	dm->base.context = context;
	dm->base.memcpy_to_dm = memcpy_to_dm;
	dm->base.memcpy_from_dm = memcpy_from_dm;
	dm->length = seen.dm_bytes = attr->length;
	dm->bytes = calloc(1, attr->length);
	live++;
	return &dm->base;
}

static int free_dm(struct ibv_dm *dm)
{
	free(((struct xdm *) dm)->bytes);
	free(dm);
	live--;
	return 0;
}

/* ---- the device */

EXPORT struct ibv_device **ibv_get_device_list(int *count)
{
	struct ibv_device **list = calloc(2, sizeof(*list));

	list[0] = &device;
	if (count)
		*count = 1;
	return list;
}

EXPORT void ibv_free_device_list(struct ibv_device **list) { free(list); }
EXPORT const char *ibv_get_device_name(struct ibv_device *d) { return d->name; }
EXPORT int ibv_get_device_index(struct ibv_device *d) { return 0; }
EXPORT __be64 ibv_get_device_guid(struct ibv_device *d) { return 1; }

static int query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr, size_t size)
{
	if (port != 1)
		return EINVAL;
	memset(attr, 0, size);
	attr->state = IBV_PORT_ACTIVE;
	attr->max_mtu = attr->active_mtu = IBV_MTU_4096;
	attr->gid_tbl_len = 1;
	attr->lid = lid;
	attr->link_layer = IBV_LINK_LAYER_INFINIBAND;
	return 0;
}

EXPORT int ibv_query_port(struct ibv_context *context, uint8_t port, struct _compat_ibv_port_attr *attr)
{
	struct ibv_port_attr full;
	int error = query_port(context, port, &full, sizeof(full));

	memcpy(attr, &full, offsetof(struct ibv_port_attr, port_cap_flags2));
	return error;
}

EXPORT int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	memset(attr, 0, sizeof(*attr));
	attr->device_cap_flags = IBV_DEVICE_XRC;
	attr->phys_port_cnt = 1;
	attr->max_qp_wr = attr->max_srq_wr = attr->max_cqe = 1 << 20;
	return 0;
}

static int query_device_ex(struct ibv_context *context, const struct ibv_query_device_ex_input *input, struct ibv_device_attr_ex *attr,
			   size_t size)
{
	const uint32_t both = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_SRQ_RECV;

	if (size < sizeof(*attr))
		return EINVAL;
	memset(attr, 0, size);
	ibv_query_device(context, &attr->orig_attr);
	attr->phys_port_cnt_ex = 1;
	attr->completion_timestamp_mask = lacks("timestamps") ? 0 : CLOCK_MASK;
	attr->max_dm_size = lacks("dm") ? 0 : DEVICE_MEMORY_BYTES;
	if (lacks("odp"))
		return 0;
	attr->odp_caps.general_caps = IBV_ODP_SUPPORT | (lacks("implicit") ? 0 : IBV_ODP_SUPPORT_IMPLICIT);
	attr->odp_caps.per_transport_caps.rc_odp_caps = both & ~(lacks("odp-recv") ? IBV_ODP_SUPPORT_RECV : 0)
		& ~(lacks("odp-srq") ? IBV_ODP_SUPPORT_SRQ_RECV : 0);
	attr->xrc_odp_caps = lacks("odp-xrc") ? 0 : both;
	return 0;
}

EXPORT const char *ibv_wc_status_str(enum ibv_wc_status status) { return status ? "an error" : "success"; }

EXPORT int ibv_query_gid(struct ibv_context *context, uint8_t port, int index, union ibv_gid *gid)
{
	if (port != 1 || index)
		return -1;
	gid->global.subnet_prefix = htobe64(0xfe80000000000000ULL);
	gid->global.interface_id = htobe64(lid);
	return 0;
}

EXPORT int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port, uint32_t index, struct ibv_gid_entry *entry,
			     uint32_t flags, size_t size)
{
	memset(entry, 0, size);
	entry->gid_index = index;
	entry->port_num = port;
	return ibv_query_gid(context, port, index, &entry->gid) ? ENODATA : 0;
}

EXPORT struct ibv_context *ibv_open_device(struct ibv_device *d)
{
	struct verbs_context *verbs = calloc(1, sizeof(*verbs));
	struct ibv_context *context = &verbs->context;
	struct sockaddr_un address;
	pthread_t thread;

	if (sock < 0) {
		socklen_t length;
		sock = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
		/* 15 bits, so that a queue pair's number can hold it. */
		lid = getpid() & 0x3fff;
		do {
			lid = (lid + 1) & 0x7fff;
			length = name_of(lid, &address);
		} while (lid == 0 || bind(sock, (void *) &address, length));
		if (pipe(async_pipe) || pthread_create(&thread, NULL, receive, NULL))
			return NULL;
	}
	verbs->sz = sizeof(*verbs);
	verbs->query_port = query_port;
	verbs->open_xrcd = open_xrcd;
	verbs->close_xrcd = close_xrcd;
	verbs->create_srq_ex = create_srq_ex;
	verbs->get_srq_num = get_srq_num;
	verbs->create_qp_ex = create_qp_ex;
	verbs->query_device_ex = query_device_ex;
	verbs->create_cq_ex = create_cq_ex;
	verbs->alloc_dm = alloc_dm;
	verbs->free_dm = free_dm;
	verbs->reg_dm_mr = reg_dm_mr;
	verbs->advise_mr = advise_mr;
	context->device = d;
	context->abi_compat = (void *) UINTPTR_MAX;
	context->num_comp_vectors = 1;
	context->async_fd = async_pipe[0];
	context->ops.poll_cq = poll_cq;
	context->ops.req_notify_cq = req_notify_cq;
	context->ops.post_send = post_send;
	context->ops.post_recv = post_recv;
	context->ops.post_srq_recv = post_srq_recv;
	return context;
}

EXPORT int ibv_close_device(struct ibv_context *context)
{
	pthread_mutex_lock(&lock); /* so that a packet that comes now is either dropped or waits */
	if (live || waiting_count)
		fatal("objects that nobody gave back, messages that nobody took", live, waiting_count);
	pthread_mutex_unlock(&lock);
	fprintf(stderr, "simulated device: access 0x%x%s, completion fields 0x%x, prefetched %u (0x%x), dm %u, copied there %u, and back %u, sends %u,"
		" built %u, inline %u\n", seen.access, seen.everything ? " of everything" : "", seen.wc_flags, seen.prefetched,
		seen.prefetch_flags, seen.dm_bytes, seen.to_dm, seen.from_dm, seen.sends, seen.built, seen.inlined);
	free((char *) context - offsetof(struct verbs_context, context));
	return 0;
}
