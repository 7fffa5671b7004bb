/*
 * A libibverbs without a device: it exports the functions that Verbena binds, and a context whose operations run in memory.
 *
 * A queue pair's work requests complete at once, in order, into its completion queue: success, or what stub_complete_with says. What was
 * posted can be looked at with stub_posted. Any function can be told to fail with an errno (stub_fail). Objects that have been made and not
 * given back are counted (stub_live).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <infiniband/verbs.h>

#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

#define EXPORT __attribute__((visibility("default")))
#define MAX_FAILURES 16
#define RING (1 << 14)
#define MAX_LOGGED_SGES 8

/* ---- what tests steer ---- */

static struct { char function[64]; int error; int times; } failures[MAX_FAILURES];
static int live, device_count = 1, broken_abi;
static int complete_status, complete_vendor;
static enum { REFUSE_POSITIVE, REFUSE_NEGATIVE, REFUSE_MINUS_ONE, REFUSE_ZERO } refusal;

static struct posted {
	uint64_t wr_id, remote_addr, compare_add, swap;
	uint32_t opcode, flags, imm, rkey, num_sge, call;
	struct ibv_sge sge[MAX_LOGGED_SGES];
	uint8_t first_bytes[8];
} logged[RING];
static unsigned posted_count, post_calls, acked_events, taken_events;
static int logging = 1;

EXPORT void stub_fail(const char *function, int error, int times)
{
	for (int i = 0; i < MAX_FAILURES; i++)
		if (!failures[i].times || !strcmp(failures[i].function, function)) {
			strncpy(failures[i].function, function, sizeof(failures[i].function) - 1);
			failures[i].error = error;
			failures[i].times = times;
			return;
		}
}

EXPORT void stub_reset(void)
{
	memset(failures, 0, sizeof(failures));
	device_count = 1;
	broken_abi = complete_status = complete_vendor = 0;
	refusal = REFUSE_POSITIVE;
	posted_count = post_calls = acked_events = taken_events = 0;
	logging = 1;
}

EXPORT int stub_live(void) { return live; }
EXPORT void stub_devices(int count) { device_count = count; }
EXPORT void stub_break_abi(int what) { broken_abi = what; }
EXPORT void stub_complete_with(int status, int vendor) { complete_status = status; complete_vendor = vendor; }
EXPORT void stub_refuse(int convention) { refusal = convention; }
EXPORT struct posted *stub_posted(int index) { return &logged[index]; }
EXPORT int stub_posted_count(void) { return posted_count; }
EXPORT int stub_post_calls(void) { return post_calls; }
EXPORT int stub_taken_events(void) { return taken_events; }
EXPORT int stub_acked_events(void) { return acked_events; }
EXPORT void stub_log(int on) { logging = on; }

static int failing(const char *function)
{
	for (int i = 0; i < MAX_FAILURES; i++)
		if (failures[i].times && !strcmp(failures[i].function, function)) {
			failures[i].times--;
			return failures[i].error;
		}
	return 0;
}

#define FAIL_NULL() do { int e = failing(__func__); if (e) { errno = e; return NULL; } } while (0)
#define FAIL_ERRNO() do { int e = failing(__func__); if (e) return e; } while (0)
#define FAIL_MINUS_ONE() do { int e = failing(__func__); if (e) { errno = e; return -1; } } while (0)

/* ---- objects ---- */

struct stub_channel { struct ibv_comp_channel base; int write_fd; };
struct stub_cq { struct ibv_cq base; struct ibv_wc *ring; unsigned capacity, head, tail; int armed; unsigned events; };
struct stub_qp { struct ibv_qp base; struct ibv_qp_init_attr init; unsigned outstanding, receives; struct ibv_qp_attr attr; };
struct stub_srq { struct ibv_srq base; struct ibv_srq_attr attr; unsigned receives; };

static struct ibv_device device = { .node_type = IBV_NODE_CA, .transport_type = IBV_TRANSPORT_IB, .name = "stub0",
	.dev_name = "uverbs0", .dev_path = "/sys/class/infiniband_verbs/uverbs0", .ibdev_path = "/sys/class/infiniband/stub0" };
static int async_pipe[2];

static struct stub_qp *qps[64]; /* to find who a completion frees a slot of */

static int push(struct stub_cq *cq, struct ibv_wc wc)
{
	if (cq->tail - cq->head == cq->capacity)
		return -1;
	cq->ring[cq->tail++ % cq->capacity] = wc;
	if (cq->armed && cq->base.channel) {
		struct ibv_cq *self = &cq->base;
		cq->armed = 0;
		if (write(((struct stub_channel *) cq->base.channel)->write_fd, &self, sizeof(self)) != sizeof(self))
			return -1;
	}
	return 0;
}

static int stub_poll_cq(struct ibv_cq *ibcq, int entries, struct ibv_wc *wc)
{
	struct stub_cq *cq = (struct stub_cq *) ibcq;
	int count = 0;
	int error = failing("poll_cq");

	if (error)
		return -error;
	while (count < entries && cq->head != cq->tail) {
		wc[count] = cq->ring[cq->head++ % cq->capacity];
		struct stub_qp *qp = qps[wc[count].qp_num % 64];
		if (qp && !(wc[count].src_qp & 1))
			qp->outstanding -= wc[count].src_qp >> 1; /* slots that this completion frees */
		wc[count++].src_qp = 0;
	}
	return count;
}

static int stub_req_notify_cq(struct ibv_cq *ibcq, int solicited_only)
{
	int error = failing("req_notify_cq");

	if (error)
		return error;
	((struct stub_cq *) ibcq)->armed = 1 + solicited_only;
	return 0;
}

static int refuse(int error, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	switch (refusal) {
	case REFUSE_NEGATIVE: *bad = wr; return -error;
	case REFUSE_MINUS_ONE: *bad = NULL; errno = error; return -1;
	case REFUSE_ZERO: *bad = wr; return 0;
	default: *bad = wr; return error;
	}
}

static int stub_post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct stub_qp *qp = (struct stub_qp *) ibqp;
	static unsigned unsignalled[64];
	int error = failing("post_send");

	post_calls++;
	if (error)
		return refuse(error, wr, bad);
	for (; wr; wr = wr->next) {
		if (qp->outstanding == qp->init.cap.max_send_wr)
			return refuse(ENOMEM, wr, bad);
		qp->outstanding++;
		if (logging && posted_count < RING) {
			struct posted *p = &logged[posted_count];
			memset(p, 0, sizeof(*p));
			p->wr_id = wr->wr_id;
			p->opcode = wr->opcode;
			p->flags = wr->send_flags;
			p->imm = wr->imm_data;
			p->num_sge = wr->num_sge;
			p->call = post_calls;
			p->remote_addr = wr->wr.rdma.remote_addr;
			p->rkey = wr->wr.rdma.rkey;
			if (wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP || wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
				p->compare_add = wr->wr.atomic.compare_add;
				p->swap = wr->wr.atomic.swap;
				p->rkey = wr->wr.atomic.rkey;
			}
			for (int i = 0; i < wr->num_sge && i < MAX_LOGGED_SGES; i++)
				p->sge[i] = wr->sg_list[i];
			if (wr->num_sge && wr->sg_list[0].length)
				memcpy(p->first_bytes, (void *) (uintptr_t) wr->sg_list[0].addr,
				       wr->sg_list[0].length < 8 ? wr->sg_list[0].length : 8);
			posted_count++;
		}
		unsigned *pending = &unsignalled[ibqp->qp_num % 64];
		++*pending;
		if (qp->init.sq_sig_all || (wr->send_flags & IBV_SEND_SIGNALED) || complete_status) {
			static const enum ibv_wc_opcode opcodes[] = { IBV_WC_RDMA_WRITE, IBV_WC_RDMA_WRITE, IBV_WC_SEND, IBV_WC_SEND,
				IBV_WC_RDMA_READ, IBV_WC_COMP_SWAP, IBV_WC_FETCH_ADD, IBV_WC_LOCAL_INV, IBV_WC_BIND_MW, IBV_WC_SEND,
				IBV_WC_TSO };
			struct ibv_wc wc = { .wr_id = wr->wr_id, .status = complete_status, .vendor_err = complete_vendor,
				.opcode = opcodes[wr->opcode % 11], .qp_num = ibqp->qp_num, .src_qp = *pending << 1 };
			for (int i = 0; i < wr->num_sge; i++)
				wc.byte_len += wr->sg_list[i].length;
			*pending = 0;
			push((struct stub_cq *) ibqp->send_cq, wc);
		}
	}
	return 0;
}

static int post_receives(struct ibv_recv_wr *wr, struct ibv_recv_wr **bad, unsigned *receives, unsigned depth)
{
	post_calls++;
	for (; wr; wr = wr->next) {
		if (*receives == depth) {
			*bad = wr;
			return ENOMEM;
		}
		++*receives;
		if (logging && posted_count < RING) {
			struct posted *p = &logged[posted_count++];
			memset(p, 0, sizeof(*p));
			p->wr_id = wr->wr_id;
			p->opcode = 128;
			p->num_sge = wr->num_sge;
			p->call = post_calls;
			for (int i = 0; i < wr->num_sge && i < MAX_LOGGED_SGES; i++)
				p->sge[i] = wr->sg_list[i];
		}
	}
	return 0;
}

static int stub_post_recv(struct ibv_qp *ibqp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct stub_qp *qp = (struct stub_qp *) ibqp;

	return post_receives(wr, bad, &qp->receives, qp->init.cap.max_recv_wr);
}

static int stub_post_srq_recv(struct ibv_srq *ibsrq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct stub_srq *srq = (struct stub_srq *) ibsrq;

	return post_receives(wr, bad, &srq->receives, srq->attr.max_wr);
}

/* Puts a completion into a queue as it is. */
EXPORT int stub_complete(struct ibv_cq *cq, uint64_t wr_id, int status, int opcode, uint32_t bytes, uint32_t flags, uint32_t imm)
{
	struct ibv_wc wc = { .wr_id = wr_id, .status = status, .opcode = opcode, .byte_len = bytes, .wc_flags = flags, .src_qp = 1 };

	wc.imm_data = imm;
	return push((struct stub_cq *) cq, wc);
}

/* Puts an asynchronous event into a context. */
EXPORT int stub_event(int type, uint64_t element)
{
	struct ibv_async_event event = { .event_type = type };

	event.element.qp = (struct ibv_qp *) (uintptr_t) element;
	return write(async_pipe[1], &event, sizeof(event)) == sizeof(event) ? 0 : -1;
}

/* The same loop as the benchmark's, in C: posts and polls one at a time. Returns how many completions came. */
EXPORT long stub_loop(struct ibv_qp *qp, struct ibv_cq *cq, uint64_t addr, uint32_t lkey, long count)
{
	struct ibv_wc wc[16];
	long done = 0;

	for (long i = 0; i < count; i++) {
		struct ibv_sge sge = { .addr = addr, .length = 64, .lkey = lkey };
		struct ibv_send_wr wr = { .wr_id = i, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
			.send_flags = IBV_SEND_SIGNALED }, *bad = NULL;

		if (ibv_post_send(qp, &wr, &bad))
			return -1;
		done += ibv_poll_cq(cq, 16, wc);
	}
	return done;
}

/* ---- the exported functions ---- */

EXPORT struct ibv_device **ibv_get_device_list(int *count)
{
	FAIL_NULL();
	struct ibv_device **list = calloc(device_count + 1, sizeof(*list));
	for (int i = 0; i < device_count; i++)
		list[i] = &device;
	*count = device_count;
	live++;
	return list;
}

EXPORT void ibv_free_device_list(struct ibv_device **list) { live--; free(list); }
EXPORT const char *ibv_get_device_name(struct ibv_device *d) { return broken_abi == 1 ? d->name + 8 : d->name; }
EXPORT int ibv_get_device_index(struct ibv_device *d) { return 7; }
EXPORT __be64 ibv_get_device_guid(struct ibv_device *d) { return htobe64(0x020456fffe789abcULL); }

static int stub_query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr, size_t size)
{
	int error = failing("query_port");

	if (error || port != 1 || size != sizeof(*attr))
		return error ? error : EINVAL;
	memset(attr, 0, sizeof(*attr));
	attr->state = IBV_PORT_ACTIVE;
	attr->max_mtu = IBV_MTU_4096;
	attr->active_mtu = IBV_MTU_1024;
	attr->gid_tbl_len = 4;
	attr->max_msg_sz = 1u << 31;
	attr->pkey_tbl_len = 1;
	attr->active_width = 2;
	attr->active_speed = 32;
	attr->link_layer = IBV_LINK_LAYER_ETHERNET;
	attr->port_cap_flags2 = 0x8001;
	return 0;
}

EXPORT struct ibv_context *ibv_open_device(struct ibv_device *d)
{
	FAIL_NULL();
	struct verbs_context *verbs = calloc(1, sizeof(*verbs));
	struct ibv_context *context = &verbs->context;

	if (!async_pipe[0] && pipe(async_pipe))
		return NULL;
	verbs->sz = broken_abi == 2 ? 8 : broken_abi == 5 ? sizeof(*verbs) - 8 * 8 : sizeof(*verbs);
	verbs->query_port = stub_query_port;
	context->device = broken_abi == 3 ? NULL : d;
	context->abi_compat = broken_abi == 4 ? NULL : (void *) UINTPTR_MAX;
	context->num_comp_vectors = 2;
	context->async_fd = async_pipe[0];
	context->ops.poll_cq = stub_poll_cq;
	context->ops.req_notify_cq = stub_req_notify_cq;
	context->ops.post_send = stub_post_send;
	context->ops.post_recv = stub_post_recv;
	context->ops.post_srq_recv = stub_post_srq_recv;
	live++;
	return context;
}

EXPORT int ibv_close_device(struct ibv_context *context)
{
	FAIL_MINUS_ONE();
	live--;
	free((char *) context - offsetof(struct verbs_context, context));
	return 0;
}

EXPORT int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
	FAIL_MINUS_ONE();
	if (read(context->async_fd, event, sizeof(*event)) != sizeof(*event))
		return -1;
	taken_events++;
	return 0;
}

EXPORT void ibv_ack_async_event(struct ibv_async_event *event) { acked_events++; }

EXPORT int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	FAIL_ERRNO();
	memset(attr, 0, sizeof(*attr));
	strcpy(attr->fw_ver, "1.2.3");
	attr->node_guid = htobe64(0x1122334455667788ULL);
	attr->max_qp = 64;
	attr->max_qp_wr = RING;
	attr->device_cap_flags = IBV_DEVICE_XRC | IBV_DEVICE_MEM_WINDOW;
	attr->max_sge = 4;
	attr->max_sge_rd = 1;
	attr->atomic_cap = IBV_ATOMIC_HCA;
	attr->max_pkeys = 65535;
	attr->phys_port_cnt = 1;
	return 0;
}

EXPORT int ibv_query_port(struct ibv_context *context, uint8_t port, struct _compat_ibv_port_attr *attr)
{
	FAIL_ERRNO();
	/* The old struct ends before port_cap_flags2. */
	struct ibv_port_attr full;
	int error = stub_query_port(context, port, &full, sizeof(full));
	memcpy(attr, &full, offsetof(struct ibv_port_attr, port_cap_flags2));
	return error;
}

static void gid(struct ibv_gid_entry *entry, uint32_t port, uint32_t index)
{
	memset(entry, 0, sizeof(*entry));
	memcpy(entry->gid.raw, "\0\0\0\0\0\0\0\0\0\0\xff\xff\x0a\0\0\1", 16);
	entry->gid_index = index;
	entry->port_num = port;
	entry->gid_type = index == 1 ? IBV_GID_TYPE_ROCE_V2 : IBV_GID_TYPE_ROCE_V1;
	entry->ndev_ifindex = 3;
}

EXPORT int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port, uint32_t index, struct ibv_gid_entry *entry,
			     uint32_t flags, size_t size)
{
	FAIL_ERRNO();
	if (index > 1)
		return ENODATA;
	gid(entry, port, index);
	return 0;
}

EXPORT ssize_t _ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries, size_t max, uint32_t flags,
				    size_t size)
{
	int error = failing(__func__);

	if (error)
		return -error;
	for (size_t i = 0; i < 2 && i < max; i++)
		gid(&entries[i], 1, i);
	return 2;
}

EXPORT int ibv_query_pkey(struct ibv_context *context, uint8_t port, int index, __be16 *pkey)
{
	FAIL_MINUS_ONE();
	*pkey = htobe16(0xffff);
	return 0;
}

EXPORT int ibv_get_pkey_index(struct ibv_context *context, uint8_t port, __be16 pkey)
{
	return pkey == htobe16(0xffff) ? 0 : -1;
}

EXPORT struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
	FAIL_NULL();
	struct ibv_pd *pd = calloc(1, sizeof(*pd));
	pd->context = context;
	live++;
	return pd;
}

EXPORT int ibv_dealloc_pd(struct ibv_pd *pd)
{
	FAIL_ERRNO();
	live--;
	free(pd);
	return 0;
}

EXPORT struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	static uint32_t key = 0x100;

	FAIL_NULL();
	struct ibv_mr *mr = calloc(1, sizeof(*mr));
	mr->context = pd->context;
	mr->pd = pd;
	mr->addr = addr;
	mr->length = length;
	mr->lkey = ++key;
	mr->rkey = key | 0x10000;
	live++;
	return mr;
}

EXPORT struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned int access)
{
	FAIL_NULL();
	struct ibv_mr *mr = ibv_reg_mr(pd, addr, length, access);
	if (mr)
		mr->handle = access;
	return mr;
}

EXPORT int ibv_dereg_mr(struct ibv_mr *mr)
{
	FAIL_ERRNO();
	live--;
	free(mr);
	return 0;
}

EXPORT struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
	int fds[2];

	FAIL_NULL();
	struct stub_channel *channel = calloc(1, sizeof(*channel));
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
	FAIL_ERRNO();
	if (channel->refcnt)
		return EBUSY;
	close(channel->fd);
	close(((struct stub_channel *) channel)->write_fd);
	live--;
	free(channel);
	return 0;
}

EXPORT struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context, struct ibv_comp_channel *channel, int vector)
{
	FAIL_NULL();
	if (vector >= context->num_comp_vectors) {
		errno = EINVAL;
		return NULL;
	}
	struct stub_cq *cq = calloc(1, sizeof(*cq));
	cq->base.context = context;
	cq->base.channel = channel;
	cq->base.cq_context = cq_context;
	cq->base.cqe = cqe;
	cq->capacity = cqe;
	cq->ring = calloc(cqe, sizeof(*cq->ring));
	if (channel)
		channel->refcnt++;
	live++;
	return &cq->base;
}

EXPORT int ibv_resize_cq(struct ibv_cq *cq, int cqe)
{
	FAIL_ERRNO();
	if (cqe < cq->cqe)
		return EINVAL;
	struct stub_cq *self = (struct stub_cq *) cq;
	struct ibv_wc *ring = calloc(cqe, sizeof(*ring));
	unsigned count = 0;
	while (self->head != self->tail)
		ring[count++] = self->ring[self->head++ % self->capacity];
	free(self->ring);
	self->ring = ring;
	self->capacity = cq->cqe = cqe;
	self->head = 0;
	self->tail = count;
	return 0;
}

EXPORT int ibv_destroy_cq(struct ibv_cq *cq)
{
	FAIL_ERRNO();
	if (((struct stub_cq *) cq)->events) /* libibverbs waits for ever here */
		return EDEADLK;
	if (cq->channel)
		cq->channel->refcnt--;
	free(((struct stub_cq *) cq)->ring);
	live--;
	free(cq);
	return 0;
}

EXPORT int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context)
{
	FAIL_MINUS_ONE();
	if (read(channel->fd, cq, sizeof(*cq)) != sizeof(*cq))
		return -1;
	*cq_context = (*cq)->cq_context;
	((struct stub_cq *) *cq)->events++;
	taken_events++;
	return 0;
}

EXPORT void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int count)
{
	((struct stub_cq *) cq)->events -= count;
	acked_events += count;
}

EXPORT struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	FAIL_NULL();
	struct stub_srq *srq = calloc(1, sizeof(*srq));
	srq->base.context = pd->context;
	srq->base.pd = pd;
	srq->attr = attr->attr;
	live++;
	return &srq->base;
}

EXPORT int ibv_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask)
{
	struct stub_srq *self = (struct stub_srq *) srq;

	FAIL_ERRNO();
	if (mask & IBV_SRQ_MAX_WR)
		self->attr.max_wr = attr->max_wr;
	if (mask & IBV_SRQ_LIMIT)
		self->attr.srq_limit = attr->srq_limit;
	return 0;
}

EXPORT int ibv_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr)
{
	FAIL_ERRNO();
	*attr = ((struct stub_srq *) srq)->attr;
	return 0;
}

EXPORT int ibv_destroy_srq(struct ibv_srq *srq)
{
	FAIL_ERRNO();
	live--;
	free(srq);
	return 0;
}

EXPORT struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	static uint32_t number = 0x11;

	FAIL_NULL();
	if (attr->cap.max_send_sge > 4 || attr->cap.max_recv_sge > 4) {
		errno = EINVAL;
		return NULL;
	}
	struct stub_qp *qp = calloc(1, sizeof(*qp));
	attr->cap.max_inline_data = attr->cap.max_inline_data > 0 && attr->cap.max_inline_data < 32 ? 32 : attr->cap.max_inline_data;
	qp->init = *attr;
	qp->base.context = pd->context;
	qp->base.pd = pd;
	qp->base.send_cq = attr->send_cq;
	qp->base.recv_cq = attr->recv_cq;
	qp->base.srq = attr->srq;
	qp->base.qp_type = attr->qp_type;
	qp->base.qp_num = number++;
	qps[qp->base.qp_num % 64] = qp;
	live++;
	return &qp->base;
}

EXPORT int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	FAIL_ERRNO();
	((struct stub_qp *) qp)->attr = *attr;
	if (mask & IBV_QP_STATE)
		qp->state = attr->qp_state;
	return 0;
}

EXPORT int ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask, struct ibv_qp_init_attr *init)
{
	FAIL_ERRNO();
	*attr = ((struct stub_qp *) qp)->attr;
	attr->qp_state = qp->state;
	*init = ((struct stub_qp *) qp)->init;
	return 0;
}

EXPORT int ibv_destroy_qp(struct ibv_qp *qp)
{
	FAIL_ERRNO();
	qps[qp->qp_num % 64] = NULL;
	live--;
	free(qp);
	return 0;
}
