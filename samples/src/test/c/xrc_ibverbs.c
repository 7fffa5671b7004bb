/*
 * A libibverbs with one device that has extended reliable connections and little else, for programs of one machine: what C's
 * ibv_xsrq_pingpong and verbena's call, messages included. Each process has a LID, which is the name of a Unix datagram socket; messages
 * are datagrams. A shared receive queue's number has its process's LID in it, so that a message for another process of the same XRC domain
 * is passed on, as an adapter does that both processes use.
 *
 * It is stricter than an adapter: attributes that a step needs must be exactly those that the kernel's table has, a packet must have the
 * sequence number that is due, completions that nobody has room for and objects that nobody gives back end the process with status 70.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
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

#define EXPORT __attribute__((visibility("default")))
#define MAX_OBJECTS 512
#define MAX_WAITING 4096
#define MAX_MESSAGE 65536

static void fatal(const char *what, long a, long b)
{
	fprintf(stderr, "simulated device: %s (0x%lx, 0x%lx)\n", what, a, b);
	_exit(70);
}

struct packet {
	uint32_t passed_on, receiver, sender, psn, srqn, bytes;
	uint64_t domain;
	char payload[MAX_MESSAGE];
};

struct xcq { struct ibv_cq base; struct ibv_wc *ring; unsigned head, tail, taken, acked; int armed; };
struct xchannel { struct ibv_comp_channel base; int write_fd; };
struct xdomain { struct ibv_xrcd base; uint64_t id; int users; };
struct xsrq {
	struct ibv_srq base;
	uint32_t number, depth;
	struct xdomain *domain;
	struct xcq *cq;
	struct { uint64_t id; struct ibv_sge sge; } *ring;
	unsigned head, tail;
};
struct xqp {
	struct ibv_qp base;
	struct xdomain *domain;
	uint32_t depth, out, destination, lid, send_psn, receive_psn;
};

static struct ibv_device device = { .node_type = IBV_NODE_CA, .transport_type = IBV_TRANSPORT_IB, .name = "xrc0",
	.dev_name = "uverbs0", .dev_path = "/sys/class/infiniband_verbs/uverbs0", .ibdev_path = "/sys/class/infiniband/xrc0" };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct xqp *qps[MAX_OBJECTS];
static struct xsrq *srqs[MAX_OBJECTS];
static struct packet *waiting[MAX_WAITING];
static int waiting_count, live, sock = -1, async_pipe[2];
static uint16_t lid;

/* ---- between processes */

static socklen_t name_of(uint16_t of, struct sockaddr_un *address)
{
	memset(address, 0, sizeof(*address));
	address->sun_family = AF_UNIX;
	return offsetof(struct sockaddr_un, sun_path) + 1
		+ sprintf(address->sun_path + 1, "verbena-xrc-%u", of);
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
	cq->ring[cq->tail++ % cq->base.cqe] = wc;
	if (cq->armed && cq->base.channel) {
		struct xcq *self = cq;
		cq->armed = 0;
		if (write(((struct xchannel *) cq->base.channel)->write_fd, &self, sizeof(self)) != sizeof(self))
			fatal("no event", errno, 0);
	}
}

/* Whether the packet is dealt with; otherwise it waits for a receive, or for its queue pair to be ready. */
static int take(struct packet *p)
{
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
	if (srq->head == srq->tail)
		return 0;
	struct ibv_sge *into = &srq->ring[srq->head % srq->depth].sge;
	struct ibv_wc wc = { .wr_id = srq->ring[srq->head++ % srq->depth].id, .opcode = IBV_WC_RECV, .byte_len = p->bytes,
		.qp_num = p->receiver };
	if (p->bytes > into->length)
		wc.status = IBV_WC_LOC_LEN_ERR;
	else
		memcpy((void *) (uintptr_t) into->addr, p->payload, p->bytes);
	complete(srq->cq, wc);
	return 1;
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

static int poll_cq(struct ibv_cq *ibcq, int entries, struct ibv_wc *wc)
{
	struct xcq *cq = (struct xcq *) ibcq;
	int count = 0;

	pthread_mutex_lock(&lock);
	for (; count < entries && cq->head != cq->tail; count++) {
		wc[count] = cq->ring[cq->head++ % ibcq->cqe];
		if (wc[count].opcode == IBV_WC_SEND) {
			/* As on a device: a polled completion frees its work request and those before it. */
			qps[wc[count].qp_num % MAX_OBJECTS]->out -= wc[count].src_qp;
			wc[count].src_qp = 0;
		}
	}
	pthread_mutex_unlock(&lock);
	return count;
}

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
		if (ibqp->qp_type != IBV_QPT_XRC_SEND || ibqp->state != IBV_QPS_RTS || wr->opcode != IBV_WR_SEND
		    || wr->num_sge != 1 || wr->sg_list->length > MAX_MESSAGE) {
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
		packet->srqn = wr->qp_type.xrc.remote_srqn;
		packet->bytes = wr->sg_list->length;
		packet->domain = 0;
		memcpy(packet->payload, (void *) (uintptr_t) wr->sg_list->addr, packet->bytes);
		qp->send_psn = (qp->send_psn + 1) & 0xffffff;
		pthread_mutex_unlock(&lock);

		int failed = transmit(qp->lid, packet);
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

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	*bad = wr;
	return EINVAL;
}

static int post_srq_recv(struct ibv_srq *ibsrq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct xsrq *srq = (struct xsrq *) ibsrq;
	int result = 0;

	pthread_mutex_lock(&lock);
	for (; wr; wr = wr->next) {
		if (srq->tail - srq->head == srq->depth || wr->num_sge != 1) {
			*bad = wr;
			result = ENOMEM;
			break;
		}
		srq->ring[srq->tail % srq->depth].id = wr->wr_id;
		srq->ring[srq->tail++ % srq->depth].sge = *wr->sg_list;
	}
	progress();
	pthread_mutex_unlock(&lock);
	return result;
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
	srq->depth = attr->attr.max_wr;
	srq->ring = calloc(srq->depth, sizeof(*srq->ring));
	srq->number = (uint32_t) lid << 8 | next;
	srqs[next++] = srq;
	live++;
	return &srq->base;
}

static int get_srq_num(struct ibv_srq *srq, uint32_t *number) { *number = ((struct xsrq *) srq)->number; return 0; }

EXPORT int ibv_destroy_srq(struct ibv_srq *ibsrq)
{
	struct xsrq *srq = (struct xsrq *) ibsrq;

	srq->domain->users--;
	srqs[srq->number & 0xff] = NULL;
	free(srq->ring);
	free(srq);
	live--;
	return 0;
}

static struct ibv_qp *create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr)
{
	static uint32_t next = 1;
	struct xqp *qp = calloc(1, sizeof(*qp));
	int receiver = attr->qp_type == IBV_QPT_XRC_RECV;

	if (receiver ? attr->comp_mask != IBV_QP_INIT_ATTR_XRCD || !attr->xrcd || attr->send_cq || attr->recv_cq
			|| attr->cap.max_send_wr || attr->cap.max_recv_wr
		     : attr->qp_type != IBV_QPT_XRC_SEND || attr->comp_mask != IBV_QP_INIT_ATTR_PD || !attr->pd || !attr->send_cq
			|| attr->recv_cq || attr->srq || attr->cap.max_recv_wr || next == MAX_OBJECTS) {
		errno = EINVAL;
		return NULL;
	}
	qp->base.context = context;
	qp->base.qp_type = attr->qp_type;
	/* 24 bits: a LID of 15, and which of the process's. */
	qp->base.qp_num = (uint32_t) lid << 9 | next;
	if (receiver) {
		qp->domain = (struct xdomain *) attr->xrcd;
		qp->domain->users++;
	} else {
		qp->base.pd = attr->pd;
		qp->base.send_cq = attr->send_cq;
		qp->depth = attr->cap.max_send_wr;
	}
	qps[next++] = qp;
	live++;
	return &qp->base;
}

EXPORT struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_init_attr_ex extended = { .comp_mask = IBV_QP_INIT_ATTR_PD, .pd = pd };

	memcpy(&extended, attr, sizeof(*attr));
	return create_qp_ex(pd->context, &extended);
}

EXPORT int ibv_modify_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int mask)
{
	struct xqp *qp = (struct xqp *) ibqp;
	int receiver = ibqp->qp_type == IBV_QPT_XRC_RECV, needs;

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
		if (!receiver)
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
	pthread_mutex_unlock(&lock);
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
	if (channel)
		channel->refcnt++;
	live++;
	return &cq->base;
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

EXPORT struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	struct ibv_mr *mr = calloc(1, sizeof(*mr));

	mr->context = pd->context;
	mr->pd = pd;
	mr->addr = addr;
	mr->length = length;
	mr->lkey = mr->rkey = 1;
	live++;
	return mr;
}

EXPORT struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned int access)
{
	return ibv_reg_mr(pd, addr, length, access);
}

EXPORT int ibv_dereg_mr(struct ibv_mr *mr) { live--; free(mr); return 0; }

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
	if (live || waiting_count)
		fatal("objects that nobody gave back, messages that nobody took", live, waiting_count);
	free((char *) context - offsetof(struct verbs_context, context));
	return 0;
}
