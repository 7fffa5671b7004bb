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
#include <pthread.h>
#include <stdio.h>
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
static int failures_asked;
static int live, device_count = 1, broken_abi, without_later, wq_without_post;
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
	failures_asked = 1;
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
	failures_asked = 0;
	device_count = 1;
	without_later = wq_without_post = 0;
	broken_abi = complete_status = complete_vendor = 0;
	refusal = REFUSE_POSITIVE;
	posted_count = post_calls = acked_events = taken_events = 0;
	logging = 1;
}

EXPORT int stub_live(void) { return live; }

/* Reads behind the end of memory, which the address sanitizer must find. */
EXPORT int stub_fault(void)
{
	volatile size_t end = 8;
	char *memory = calloc(1, end);
	int behind = memory[end];

	free(memory);
	return behind;
}
EXPORT void stub_devices(int count) { device_count = count; }
EXPORT void stub_without_later(int without) { without_later = without; }
EXPORT void stub_break_abi(int what) { broken_abi = what; }
EXPORT void stub_complete_with(int status, int vendor) { complete_status = status; complete_vendor = vendor; }
EXPORT void stub_refuse(int convention) { refusal = convention; }
EXPORT struct posted *stub_posted(int index) { return &logged[index]; }
EXPORT int stub_posted_count(void) { return posted_count; }
EXPORT int stub_post_calls(void) { return post_calls; }
EXPORT int stub_taken_events(void) { return taken_events; }
EXPORT int stub_acked_events(void) { return acked_events; }
EXPORT void stub_log(int on) { logging = on; }

static volatile int pausing, paused;

/* Holds every call that comes from now on inside of this library, until it is switched off. */
EXPORT void stub_pause(int on) { pausing = on; }

/* How many calls are held. */
EXPORT int stub_paused(void) { return __sync_fetch_and_add(&paused, 0); }

static void pause_if_asked(void)
{
	if (!pausing)
		return;
	__sync_add_and_fetch(&paused, 1);
	while (pausing)
		usleep(200);
	__sync_sub_and_fetch(&paused, 1);
}

static int failing(const char *function)
{
	pause_if_asked();
	if (!failures_asked)
		return 0;
	for (int i = 0; i < MAX_FAILURES; i++)
		if (failures[i].times && !strcmp(failures[i].function, function)) {
			failures[i].times--;
			return failures[i].error;
		}
	return 0;
}

/* What made objects name as their context, domain or type: something else if the ABI is to look broken. */
#define OF(object) (broken_abi == 7 ? NULL : (object))

#define FAIL_NULL() do { int e = failing(__func__); if (e) { errno = e; return NULL; } } while (0)
#define FAIL_ERRNO() do { int e = failing(__func__); if (e) return e; } while (0)
#define FAIL_MINUS_ONE() do { int e = failing(__func__); if (e) { errno = e; return -1; } } while (0)

/* ---- objects ---- */

struct stub_channel { struct ibv_comp_channel base; int write_fd; };
struct stub_cq { struct ibv_cq base; struct ibv_wc *ring; unsigned capacity, head, tail; int armed; unsigned events; };
struct stub_qp { struct ibv_qp base; struct ibv_qp_init_attr init; unsigned outstanding, receives; struct ibv_qp_attr attr; int mask; };
struct stub_qp_opened { struct ibv_context *context; struct ibv_qp rest; };
struct stub_srq { struct ibv_srq base; struct ibv_srq_attr attr; unsigned receives; struct ibv_tm_cap tags; unsigned tag_ops; };

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
		if (!(wc[count].src_qp & 1))
			wc[count].src_qp = 0;
		count++;
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
	struct ibv_wc wc = { .wr_id = wr_id, .status = status, .opcode = opcode, .byte_len = bytes, .wc_flags = flags, .src_qp = 0x654321,
		.pkey_index = 0xfffe, .slid = 0xfff1, .sl = 15, .dlid_path_bits = 0x81 };

	wc.imm_data = imm;
	return push((struct stub_cq *) cq, wc);
}

/* What the last ibv_modify_qp was given in a member of its struct, or as its mask; -1 for members that are not here. */
EXPORT long stub_modified(struct ibv_qp *qp, const char *member)
{
	struct ibv_qp_attr *attr = &((struct stub_qp *) qp)->attr;

#define MEMBER(name) if (!strcmp(member, #name)) return attr->name
	MEMBER(qp_state); MEMBER(cur_qp_state); MEMBER(path_mtu); MEMBER(path_mig_state); MEMBER(qkey); MEMBER(rq_psn); MEMBER(sq_psn);
	MEMBER(dest_qp_num); MEMBER(qp_access_flags); MEMBER(cap.max_send_wr); MEMBER(cap.max_inline_data); MEMBER(ah_attr.dlid);
	MEMBER(ah_attr.is_global); MEMBER(alt_ah_attr.dlid); MEMBER(alt_ah_attr.sl); MEMBER(alt_ah_attr.src_path_bits);
	MEMBER(alt_ah_attr.static_rate); MEMBER(alt_ah_attr.is_global); MEMBER(alt_ah_attr.port_num); MEMBER(alt_ah_attr.grh.sgid_index);
	MEMBER(alt_ah_attr.grh.hop_limit); MEMBER(pkey_index); MEMBER(alt_pkey_index); MEMBER(en_sqd_async_notify); MEMBER(max_rd_atomic);
	MEMBER(max_dest_rd_atomic); MEMBER(min_rnr_timer); MEMBER(port_num); MEMBER(timeout); MEMBER(retry_cnt); MEMBER(rnr_retry);
	MEMBER(alt_port_num); MEMBER(alt_timeout); MEMBER(rate_limit);
#undef MEMBER
	return strcmp(member, "mask") ? -1 : ((struct stub_qp *) qp)->mask;
}

/* Puts an asynchronous event into a context. */
EXPORT int stub_event(int type, uint64_t element)
{
	struct ibv_async_event event = { .event_type = type };

	event.element.qp = (struct ibv_qp *) (uintptr_t) element;
	return write(async_pipe[1], &event, sizeof(event)) == sizeof(event) ? 0 : -1;
}

/* The same as the benchmark does in Java: posts lists of so many work requests, polls as many. Returns how many completed. */
EXPORT long stub_loop(struct ibv_qp *qp, struct ibv_cq *cq, uint64_t addr, uint32_t lkey, long count, int batch)
{
	struct ibv_wc wc[16];
	struct ibv_sge sge[16];
	struct ibv_send_wr wr[16], *bad;
	long done = 0;

	for (long i = 0; i < count; i += batch) {
		for (int j = 0; j < batch; j++) {
			sge[j].addr = addr;
			sge[j].length = 64;
			sge[j].lkey = lkey;
			wr[j].wr_id = i + j;
			wr[j].next = j + 1 < batch ? &wr[j + 1] : NULL;
			wr[j].sg_list = &sge[j];
			wr[j].num_sge = 1;
			wr[j].opcode = IBV_WR_SEND;
			wr[j].send_flags = IBV_SEND_SIGNALED;
		}
		if (ibv_post_send(qp, wr, &bad) || ibv_poll_cq(cq, batch, wc) != batch)
			return -1;
		for (int j = 0; j < batch; j++)
			if (wc[j].status != IBV_WC_SUCCESS)
				return -1;
		if (wc[batch - 1].wr_id != (uint64_t) i + batch - 1)
			return -1;
		done += batch;
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

/* A ConnectX-8, for libraries since rdma-core 56, whose struct ends with active_speed_ex: its speed, 256 for XDR, and its width. */
#define PORT_ATTR_EX_BYTES 56
static uint32_t speed_ex;
static uint8_t width = 2;
EXPORT void stub_link(int speed, int lanes) { speed_ex = speed; width = lanes; }

/* What the function of rdma-core 62 says, in 100 Mb/s; 0 for a kernel that does not know it. */
static uint64_t effective;
EXPORT void stub_effective_speed(int speed) { effective = speed; }
EXPORT int ibv_query_port_speed(struct ibv_context *context, uint32_t port, uint64_t *speed)
{
	*speed = effective;
	return effective ? 0 : EOPNOTSUPP;
}

static int stub_query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr, size_t size)
{
	int error = failing("query_port");

	/* libibverbs leaves zero what it does not know. */
	if (error || port != 1 || size < sizeof(*attr))
		return error ? error : EINVAL;
	memset(attr, 0, size);
	if (speed_ex && size >= PORT_ATTR_EX_BYTES)
		*(uint32_t *) ((char *) attr + PORT_ATTR_EX_BYTES - 4) = speed_ex;
	attr->state = IBV_PORT_ACTIVE;
	attr->max_mtu = IBV_MTU_4096;
	attr->active_mtu = IBV_MTU_1024;
	attr->gid_tbl_len = 4;
	attr->max_msg_sz = 1u << 31;
	attr->pkey_tbl_len = 1;
	attr->active_width = width;
	attr->active_speed = 32;
	attr->link_layer = IBV_LINK_LAYER_ETHERNET;
	attr->port_cap_flags2 = 0x8001;
	return 0;
}

static void later(struct verbs_context *verbs);

EXPORT struct ibv_context *ibv_open_device(struct ibv_device *d)
{
	FAIL_NULL();
	struct verbs_context *verbs = calloc(1, sizeof(*verbs));
	struct ibv_context *context = &verbs->context;

	if (!async_pipe[0] && pipe(async_pipe))
		return NULL;
	verbs->sz = broken_abi == 2 ? 8 : broken_abi == 5 ? sizeof(*verbs) - 8 * 8 : broken_abi == 6 ? sizeof(*verbs) - offsetof(struct verbs_context, ABI_placeholder1) : sizeof(*verbs);
	verbs->query_port = stub_query_port;
	if (!without_later)
		later(verbs);
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
	pd->context = OF(context);
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

static void call(const char *name, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e);

EXPORT struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	static uint32_t key = 0x100;

	FAIL_NULL();
	if (length == SIZE_MAX)
		call(__func__, (uintptr_t) addr, length, access, 0, 0);
	struct ibv_mr *mr = calloc(1, sizeof(*mr));
	mr->context = pd->context;
	mr->pd = OF(pd);
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
	channel->base.context = OF(context);
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
	cq->base.context = OF(context);
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

#define EXTENDED_HANDLE 0xe0e0

EXPORT int ibv_destroy_cq(struct ibv_cq *cq)
{
	FAIL_ERRNO();
	if (cq->handle == EXTENDED_HANDLE) {
		live--;
		free(cq);
		return 0;
	}
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
	srq->base.pd = OF(pd);
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
	qp->base.context = OF(pd->context);
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
	((struct stub_qp *) qp)->mask = mask;
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

/* ---- what came later ---- */

/* The last calls of functions that only have to be called rightly: a name and up to four arguments. */
static struct { char name[48]; uint64_t argument[5]; } called;

EXPORT const char *stub_called(void) { return called.name; }
EXPORT uint64_t stub_argument(int index) { return called.argument[index]; }

static void call(const char *name, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e)
{
	strncpy(called.name, name, sizeof(called.name) - 1);
	called.argument[0] = a;
	called.argument[1] = b;
	called.argument[2] = c;
	called.argument[3] = d;
	called.argument[4] = e;
}

/* What arrived, told by C's own structs. */
static char text[1 << 16];

EXPORT const char *stub_text(void) { return text; }

#define SAY(...) do { size_t at = strlen(text); snprintf(text + at, sizeof(text) - at, __VA_ARGS__); } while (0)

static void say_bytes(const char *name, const void *bytes, size_t length)
{
	SAY(" %s=", name);
	for (size_t i = 0; i < length; i++)
		SAY("%02x", ((const uint8_t *) bytes)[i]);
}

EXPORT int ibv_fork_init(void) { FAIL_MINUS_ONE(); return 0; }
EXPORT enum ibv_fork_status ibv_is_fork_initialized(void) { return IBV_FORK_UNNEEDED; }

#define MAKE(type, context_) ({ struct type *made = calloc(1, sizeof(*made)); made->context = OF(context_); live++; made; })
#define UNMAKE(object) do { live--; free(object); } while (0)

static struct ibv_td *stub_alloc_td(struct ibv_context *context, struct ibv_td_init_attr *attr)
{
	FAIL_NULL();
	return attr->comp_mask ? NULL : MAKE(ibv_td, context);
}

static int stub_dealloc_td(struct ibv_td *td) { FAIL_ERRNO(); UNMAKE(td); return 0; }

static struct ibv_pd *stub_alloc_parent_domain(struct ibv_context *context, struct ibv_parent_domain_init_attr *attr)
{
	FAIL_NULL();
	if (!attr->pd)
		return NULL;
	return MAKE(ibv_pd, context);
}

static int dm_to(struct ibv_dm *dm, uint64_t offset, const void *host, size_t length)
{
	memcpy((char *) (dm + 1) + offset, host, length);
	return 0;
}

static int dm_from(void *host, struct ibv_dm *dm, uint64_t offset, size_t length)
{
	memcpy(host, (char *) (dm + 1) + offset, length);
	return 0;
}

static struct ibv_dm *stub_alloc_dm(struct ibv_context *context, struct ibv_alloc_dm_attr *attr)
{
	FAIL_NULL();
	struct ibv_dm *dm = calloc(1, sizeof(*dm) + attr->length);
	dm->context = context;
	dm->memcpy_to_dm = dm_to;
	dm->memcpy_from_dm = dm_from;
	dm->handle = attr->log_align_req;
	live++;
	return dm;
}

static int stub_free_dm(struct ibv_dm *dm) { FAIL_ERRNO(); UNMAKE(dm); return 0; }

static struct ibv_mr *stub_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t offset, size_t length, unsigned int access)
{
	call(__func__, offset, length, access, 0, 0);
	return ibv_reg_mr(pd, NULL, length, access);
}

static struct ibv_mr *stub_alloc_null_mr(struct ibv_pd *pd) { return ibv_reg_mr(pd, NULL, -1, 0); }

static int stub_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags, struct ibv_sge *sges, uint32_t count)
{
	FAIL_ERRNO();
	call(__func__, advice, flags, sges->addr, sges->length, count);
	return 0;
}

EXPORT int ibv_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length, int access)
{
	int error = failing(__func__);

	if (error) {
		errno = ENOMEM;
		return -error; /* one of ibv_rereg_mr_err_code */
	}
	call(__func__, flags, (uintptr_t) addr, length, access, 0);
	mr->lkey++;
	mr->rkey++;
	return 0;
}

static int stub_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr)
{
	FAIL_ERRNO();
	call(__func__, attr->attr_mask, attr->moderate.cq_count, attr->moderate.cq_period, 0, 0);
	return 0;
}

static int stub_query_rt_values(struct ibv_context *context, struct ibv_values_ex *values)
{
	FAIL_ERRNO();
	if (values->comp_mask != IBV_VALUES_MASK_RAW_CLOCK)
		return EINVAL;
	values->raw_clock.tv_sec = 3;
	values->raw_clock.tv_nsec = 4;
	return 0;
}

static int stub_query_device_ex(struct ibv_context *context, const struct ibv_query_device_ex_input *input,
				struct ibv_device_attr_ex *attr, size_t size)
{
	FAIL_ERRNO();
	memset(attr, 0, sizeof(*attr));
	attr->odp_caps.general_caps = IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT;
	attr->odp_caps.per_transport_caps.rc_odp_caps = 0x1f;
	attr->hca_core_clock = 156000;
	attr->tm_caps.max_num_tags = 64;
	attr->tm_caps.max_sge = 2;
	attr->cq_mod_caps.max_cq_period = 65535;
	attr->max_dm_size = 1 << 20;
	attr->pci_atomic_caps.compare_swap = 7;
	attr->xrc_odp_caps = 3;
	attr->phys_port_cnt_ex = 300;
	return ibv_query_device(context, &attr->orig_attr);
}

static int stub_modify_qp_rate_limit(struct ibv_qp *qp, struct ibv_qp_rate_limit_attr *attr)
{
	FAIL_ERRNO();
	call(__func__, attr->rate_limit, attr->max_burst_sz, attr->typical_pkt_sz, attr->comp_mask, 0);
	return 0;
}

EXPORT int ibv_query_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	FAIL_ERRNO();
	ece->vendor_id = 0x15b3;
	ece->options = 0x30000002;
	return 0;
}

EXPORT int ibv_set_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	FAIL_ERRNO();
	call(__func__, ece->vendor_id, ece->options, ece->comp_mask, 0, 0);
	return 0;
}

static struct ibv_xrcd *stub_open_xrcd(struct ibv_context *context, struct ibv_xrcd_init_attr *attr)
{
	FAIL_NULL();
	call(__func__, attr->comp_mask, attr->fd, attr->oflags, 0, 0);
	return MAKE(ibv_xrcd, context);
}

static int stub_close_xrcd(struct ibv_xrcd *xrcd) { FAIL_ERRNO(); UNMAKE(xrcd); return 0; }

static struct ibv_srq *stub_create_srq_ex(struct ibv_context *context, struct ibv_srq_init_attr_ex *attr)
{
	FAIL_NULL();
	call(__func__, attr->comp_mask, attr->srq_type, (uintptr_t) attr->xrcd, (uintptr_t) attr->cq, 0);
	struct stub_srq *srq = calloc(1, sizeof(*srq));
	srq->base.context = context;
	srq->base.pd = OF(attr->pd);
	srq->attr = attr->attr;
	if (attr->comp_mask & IBV_SRQ_INIT_ATTR_TM)
		srq->tags = attr->tm_cap;
	live++;
	return &srq->base;
}

/* As many operations as were asked for when the queue was created; tags are called 7, 8 ... */
static int stub_post_srq_ops(struct ibv_srq *ibsrq, struct ibv_ops_wr *op, struct ibv_ops_wr **bad)
{
	struct stub_srq *srq = (struct stub_srq *) ibsrq;
	int error = failing(__func__);

	text[0] = 0;
	for (; op; op = op->next) {
		if (error || srq->tag_ops == srq->tags.max_ops) {
			*bad = op;
			return error ? error : ENOMEM;
		}
		SAY("[id=%llu op=%u flags=%d unexpected=%u", (unsigned long long) op->wr_id, op->opcode, op->flags, op->tm.unexpected_cnt);
		if (op->opcode == IBV_WR_TAG_ADD) {
			SAY(" receive=%llu tag=%llx mask=%llx", (unsigned long long) op->tm.add.recv_wr_id,
			    (unsigned long long) op->tm.add.tag, (unsigned long long) op->tm.add.mask);
			for (int i = 0; i < op->tm.add.num_sge; i++)
				SAY(" %llx+%u/%x", (unsigned long long) op->tm.add.sg_list[i].addr, op->tm.add.sg_list[i].length,
				    op->tm.add.sg_list[i].lkey);
			op->tm.handle = 7 + srq->tag_ops;
		} else if (op->opcode == IBV_WR_TAG_DEL) {
			SAY(" handle=%u", op->tm.handle);
		}
		SAY("]");
		srq->tag_ops++;
	}
	return 0;
}

/* As if all operations had completed. */
EXPORT int stub_tag_ops_done(struct ibv_srq *srq) { return ((struct stub_srq *) srq)->tag_ops = 0; }

static int stub_get_srq_num(struct ibv_srq *srq, uint32_t *number) { FAIL_ERRNO(); *number = 0x4242; return 0; }

static struct ibv_qp *stub_open_qp(struct ibv_context *context, struct ibv_qp_open_attr *attr)
{
	FAIL_NULL();
	call(__func__, attr->comp_mask, attr->qp_num, attr->qp_type, (uintptr_t) attr->xrcd, 0);
	return (struct ibv_qp *) MAKE(stub_qp_opened, context);
}

/* A queue pair that builds work requests: what is called is noted. */
#define WR(name, parameters, ...) static void name parameters { call(#name, __VA_ARGS__); }
#define QP struct ibv_qp_ex *qp
WR(wr_atomic_cmp_swp, (QP, uint32_t rkey, uint64_t addr, uint64_t compare, uint64_t swap), rkey, addr, compare, swap, qp->wr_id)
WR(wr_atomic_fetch_add, (QP, uint32_t rkey, uint64_t addr, uint64_t add), rkey, addr, add, 0, qp->wr_id)
WR(wr_bind_mw, (QP, struct ibv_mw *mw, uint32_t rkey, const struct ibv_mw_bind_info *info), rkey, info->addr, info->length, info->mw_access_flags, qp->wr_id)
WR(wr_local_inv, (QP, uint32_t rkey), rkey, 0, 0, 0, qp->wr_id)
WR(wr_rdma_read, (QP, uint32_t rkey, uint64_t addr), rkey, addr, 0, 0, qp->wr_id)
WR(wr_rdma_write, (QP, uint32_t rkey, uint64_t addr), rkey, addr, qp->wr_flags, 0, qp->wr_id)
WR(wr_rdma_write_imm, (QP, uint32_t rkey, uint64_t addr, __be32 imm), rkey, addr, be32toh(imm), 0, qp->wr_id)
WR(wr_send, (QP), qp->wr_flags, 0, 0, 0, qp->wr_id)
WR(wr_send_imm, (QP, __be32 imm), be32toh(imm), 0, 0, 0, qp->wr_id)
WR(wr_send_inv, (QP, uint32_t rkey), rkey, 0, 0, 0, qp->wr_id)
WR(wr_send_tso, (QP, void *header, uint16_t size, uint16_t mss), *(uint8_t *) header, size, mss, 0, qp->wr_id)
WR(wr_set_ud_addr, (QP, struct ibv_ah *ah, uint32_t qpn, uint32_t qkey), qpn, qkey, (uintptr_t) ah, 0, qp->wr_id)
WR(wr_set_xrc_srqn, (QP, uint32_t srqn), srqn, 0, 0, 0, qp->wr_id)
WR(wr_set_inline_data, (QP, void *addr, size_t length), *(uint8_t *) addr, length, 0, 0, qp->wr_id)
WR(wr_set_inline_data_list, (QP, size_t count, const struct ibv_data_buf *list), count, list[0].length, list[1].length, *(uint8_t *) list[1].addr, qp->wr_id)
WR(wr_set_sge, (QP, uint32_t lkey, uint64_t addr, uint32_t length), lkey, addr, length, 0, qp->wr_id)
WR(wr_set_sge_list, (QP, size_t count, const struct ibv_sge *list), count, list[0].length, list[1].addr, list[1].lkey, qp->wr_id)
WR(wr_start, (QP), 0, 0, 0, 0, 0)
WR(wr_abort, (QP), 0, 0, 0, 0, 0)
WR(wr_atomic_write, (QP, uint32_t rkey, uint64_t addr, const void *value), rkey, addr, *(uint64_t *) value, 0, qp->wr_id)
WR(wr_flush, (QP, uint32_t rkey, uint64_t addr, size_t length, uint8_t type, uint8_t level), rkey, addr, length, type << 8 | level, qp->wr_id)
static int wr_complete(QP) { call("wr_complete", 0, 0, 0, 0, 0); return failing("wr_complete"); }

EXPORT struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *qp) { FAIL_NULL(); return (struct ibv_qp_ex *) qp; }

static struct ibv_qp *stub_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr)
{
	static uint32_t number = 0x8000;
	struct { struct ibv_qp_ex ex; void *flush; } *qp;

	FAIL_NULL();
	qp = calloc(1, sizeof(*qp));
	call(__func__, attr->comp_mask, attr->create_flags, attr->send_ops_flags, attr->max_tso_header, (uintptr_t) attr->xrcd);
	if (attr->comp_mask & IBV_QP_INIT_ATTR_RX_HASH) {
		text[0] = 0;
		SAY("table=%p send_cq=%p recv_cq=%p srq=%p function=%u fields=%llx", attr->rwq_ind_tbl, attr->send_cq, attr->recv_cq,
		    attr->srq, attr->rx_hash_conf.rx_hash_function, (unsigned long long) attr->rx_hash_conf.rx_hash_fields_mask);
		say_bytes("key", attr->rx_hash_conf.rx_hash_key, attr->rx_hash_conf.rx_hash_key_len);
	}
	qp->ex.qp_base.context = OF(context);
	qp->ex.qp_base.pd = attr->pd;
	qp->ex.qp_base.qp_type = attr->qp_type;
	qp->ex.qp_base.qp_num = number++;
#define SET(name) qp->ex.name = name
	SET(wr_atomic_cmp_swp); SET(wr_atomic_fetch_add); SET(wr_bind_mw); SET(wr_local_inv); SET(wr_rdma_read); SET(wr_rdma_write);
	SET(wr_rdma_write_imm); SET(wr_send); SET(wr_send_imm); SET(wr_send_inv); SET(wr_send_tso); SET(wr_set_ud_addr);
	SET(wr_set_xrc_srqn); SET(wr_set_inline_data); SET(wr_set_inline_data_list); SET(wr_set_sge); SET(wr_set_sge_list);
	SET(wr_start); SET(wr_complete); SET(wr_abort); SET(wr_atomic_write);
	/* Where rdma-core 45 and later have wr_flush: right behind. */
	*(void **) ((char *) &qp->ex.wr_atomic_write + sizeof(void *)) = wr_flush;
	live++;
	return &qp->ex.qp_base;
}

EXPORT struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	FAIL_NULL();
	call(__func__, attr->grh.sgid_index, attr->grh.hop_limit, attr->dlid, attr->is_global, attr->port_num);
	return MAKE(ibv_ah, pd->context);
}

EXPORT int ibv_destroy_ah(struct ibv_ah *ah) { FAIL_ERRNO(); UNMAKE(ah); return 0; }

static struct ibv_mw *stub_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	FAIL_NULL();
	struct ibv_mw *mw = MAKE(ibv_mw, pd->context);
	mw->pd = pd;
	mw->type = broken_abi == 7 ? 0 : type;
	mw->rkey = 0x12ff;
	return mw;
}

static int stub_dealloc_mw(struct ibv_mw *mw) { FAIL_ERRNO(); UNMAKE(mw); return 0; }

/* An extended completion queue: a plain one whose ring is read one by one. */
struct stub_cq_ex { struct ibv_cq_ex ex; struct ibv_wc wc; int waiting, polling, flags; };

static int start_poll(struct ibv_cq_ex *cq, struct ibv_poll_cq_attr *attr)
{
	struct stub_cq_ex *self = (struct stub_cq_ex *) cq;
	int error = failing("start_poll");

	if (error || attr->comp_mask)
		return error ? error : EINVAL;
	if (!self->waiting)
		return ENOENT;
	self->waiting--;
	self->polling++;
	cq->wr_id = self->wc.wr_id;
	cq->status = self->wc.status;
	return 0;
}

static void end_poll(struct ibv_cq_ex *cq) { ((struct stub_cq_ex *) cq)->polling--; }
#define READ(type, name, value) static type name(struct ibv_cq_ex *cq) { return ((struct stub_cq_ex *) cq)->value; }
READ(enum ibv_wc_opcode, read_opcode, wc.opcode)
READ(uint32_t, read_vendor_err, wc.vendor_err)
READ(uint32_t, read_byte_len, wc.byte_len)
READ(__be32, read_imm_data, wc.imm_data)
READ(uint32_t, read_qp_num, wc.qp_num)
READ(uint32_t, read_src_qp, wc.src_qp)
READ(unsigned int, read_wc_flags, wc.wc_flags)
static uint32_t read_slid(struct ibv_cq_ex *cq) { return 0xfff1; }
static uint8_t read_sl(struct ibv_cq_ex *cq) { return 15; }
static uint8_t read_dlid_path_bits(struct ibv_cq_ex *cq) { return 0x81; }
static uint64_t read_completion_ts(struct ibv_cq_ex *cq) { return 0x123456789abcdef0ULL; }
static uint16_t read_cvlan(struct ibv_cq_ex *cq) { return 0xf123; }
static uint32_t read_flow_tag(struct ibv_cq_ex *cq) { return 0xabcdef; }
static void read_tm_info(struct ibv_cq_ex *cq, struct ibv_wc_tm_info *info) { info->tag = 77; info->priv = 78; }
static uint64_t read_completion_wallclock_ns(struct ibv_cq_ex *cq) { return 1234567890123456789ULL; }

static struct ibv_cq_ex *stub_create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr)
{
	FAIL_NULL();
	call(__func__, attr->cqe, attr->comp_vector, attr->wc_flags, attr->comp_mask, attr->comp_mask & 1 ? attr->flags : 0);
	struct stub_cq_ex *cq = calloc(1, sizeof(*cq));
	cq->ex.context = OF(context);
	cq->ex.cqe = attr->cqe;
	cq->ex.handle = EXTENDED_HANDLE;
#define SET_READ(name) cq->ex.name = name
	SET_READ(start_poll); SET_READ(end_poll); SET_READ(read_opcode); SET_READ(read_vendor_err); SET_READ(read_byte_len);
	SET_READ(read_imm_data); SET_READ(read_qp_num); SET_READ(read_src_qp); SET_READ(read_wc_flags); SET_READ(read_slid);
	SET_READ(read_sl); SET_READ(read_dlid_path_bits); SET_READ(read_completion_ts); SET_READ(read_cvlan);
	SET_READ(read_flow_tag); SET_READ(read_tm_info); SET_READ(read_completion_wallclock_ns);
	live++;
	return &cq->ex;
}

/* Makes an extended queue have a completion, once more for each call. */
EXPORT int stub_complete_ex(struct stub_cq_ex *cq, uint64_t wr_id, int status, int opcode, uint32_t bytes, uint32_t imm)
{
	cq->wc = (struct ibv_wc) { .wr_id = wr_id, .status = status, .opcode = opcode, .byte_len = bytes, .qp_num = 5, .src_qp = 6,
		.wc_flags = cq->flags ? cq->flags : 2, .vendor_err = 9, .imm_data = imm };
	return ++cq->waiting;
}

/* The flags that completions of an extended queue have from now on. */
EXPORT int stub_complete_flags(struct stub_cq_ex *cq, int flags) { return cq->flags = flags; }

EXPORT int stub_polling(struct stub_cq_ex *cq) { return cq->polling; }

/* ---- steering ---- */

#define BOTH(spec, field) do { say_bytes(#field, &spec.val.field, sizeof(spec.val.field)); \
		say_bytes("&", &spec.mask.field, sizeof(spec.mask.field)); } while (0)

/* Takes a part out of a rule, of the size that its type has. */
#define PART(struct_) struct struct_ part; if (size != sizeof(part)) return 0; memcpy(&part, at, sizeof(part))

static int say_part(uint32_t type, uint16_t size, const char *at)
{
	if (type & IBV_FLOW_SPEC_INNER)
		SAY(" inner");
	switch (type & ~IBV_FLOW_SPEC_INNER) {
	case IBV_FLOW_SPEC_ETH: { PART(ibv_flow_spec_eth);
		SAY(" eth"); BOTH(part, dst_mac); BOTH(part, src_mac); BOTH(part, ether_type); BOTH(part, vlan_tag); return 1; }
	case IBV_FLOW_SPEC_IPV4: { PART(ibv_flow_spec_ipv4);
		SAY(" ipv4"); BOTH(part, src_ip); BOTH(part, dst_ip); return 1; }
	case IBV_FLOW_SPEC_IPV4_EXT: { PART(ibv_flow_spec_ipv4_ext);
		SAY(" ipv4_ext"); BOTH(part, src_ip); BOTH(part, dst_ip); BOTH(part, proto); BOTH(part, tos); BOTH(part, ttl);
		BOTH(part, flags); return 1; }
	case IBV_FLOW_SPEC_IPV6: { PART(ibv_flow_spec_ipv6);
		SAY(" ipv6"); BOTH(part, src_ip); BOTH(part, dst_ip); BOTH(part, flow_label); BOTH(part, next_hdr);
		BOTH(part, traffic_class); BOTH(part, hop_limit); return 1; }
	case IBV_FLOW_SPEC_TCP: case IBV_FLOW_SPEC_UDP: { PART(ibv_flow_spec_tcp_udp);
		SAY(type & 1 ? " udp" : " tcp"); BOTH(part, dst_port); BOTH(part, src_port); return 1; }
	case IBV_FLOW_SPEC_VXLAN_TUNNEL: { PART(ibv_flow_spec_tunnel); SAY(" vxlan"); BOTH(part, tunnel_id); return 1; }
	case IBV_FLOW_SPEC_GRE: { PART(ibv_flow_spec_gre);
		SAY(" gre"); BOTH(part, c_ks_res0_ver); BOTH(part, protocol); BOTH(part, key); return 1; }
	case IBV_FLOW_SPEC_MPLS: { PART(ibv_flow_spec_mpls); SAY(" mpls"); BOTH(part, label); return 1; }
	case IBV_FLOW_SPEC_ESP: { PART(ibv_flow_spec_esp); SAY(" esp"); BOTH(part, spi); BOTH(part, seq); return 1; }
	case IBV_FLOW_SPEC_ACTION_TAG: { PART(ibv_flow_spec_action_tag); SAY(" tag=%x", part.tag_id); return 1; }
	case IBV_FLOW_SPEC_ACTION_DROP: { PART(ibv_flow_spec_action_drop); SAY(" drop"); return 1; }
	case IBV_FLOW_SPEC_ACTION_HANDLE: { PART(ibv_flow_spec_action_handle); SAY(" handle=%p", part.action); return 1; }
	case IBV_FLOW_SPEC_ACTION_COUNT: { PART(ibv_flow_spec_counter_action); SAY(" count=%p", part.counters); return 1; }
	}
	return 0;
}

static struct ibv_flow *stub_create_flow(struct ibv_qp *qp, struct ibv_flow_attr *attr)
{
	const char *at = (const char *) (attr + 1), *end = (const char *) attr + attr->size;

	FAIL_NULL();
	text[0] = 0;
	SAY("type=%u priority=%u port=%u flags=%u qp=%p", attr->type, attr->priority, attr->port, attr->flags, qp);
	for (int i = 0; i < attr->num_of_specs; i++) {
		struct { uint32_t type; uint16_t size; } head;
		memcpy(&head, at, 6);
		if (attr->comp_mask || head.size > end - at || !say_part(head.type, head.size, at)) {
			errno = EINVAL;
			return NULL;
		}
		at += head.size;
	}
	if (at != end) {
		errno = EINVAL;
		return NULL;
	}
	return MAKE(ibv_flow, qp->context);
}

static int stub_destroy_flow(struct ibv_flow *flow) { FAIL_ERRNO(); UNMAKE(flow); return 0; }

static void say_esp(const struct ibv_flow_action_esp_attr *attr)
{
	text[0] = 0;
	SAY("mask=%x esn=%x", attr->comp_mask, attr->esn);
	if (attr->esp_attr)
		SAY(" spi=%x seq=%x pad=%u flags=%x limit=%llx", attr->esp_attr->spi, attr->esp_attr->seq, attr->esp_attr->tfc_pad,
		    attr->esp_attr->flags, (unsigned long long) attr->esp_attr->hard_limit_pkts);
	if (attr->keymat_len == sizeof(struct ibv_flow_action_esp_keymat_aes_gcm)) {
		const struct ibv_flow_action_esp_keymat_aes_gcm *key = attr->keymat_ptr;
		SAY(" keymat=%u algo=%u icv=%u", attr->keymat_proto, key->iv_algo, key->icv_len);
		say_bytes("iv", &key->iv, sizeof(key->iv));
		say_bytes("salt", &key->salt, sizeof(key->salt));
		say_bytes("key", key->aes_key, key->key_len);
	}
	if (attr->replay_len == sizeof(struct ibv_flow_action_esp_replay_bmp))
		SAY(" replay=%u size=%u", attr->replay_proto, ((struct ibv_flow_action_esp_replay_bmp *) attr->replay_ptr)->size);
	for (const struct ibv_flow_action_esp_encap *encap = attr->esp_encap; encap; encap = encap->next_ptr) {
		SAY(" encap=%x", encap->type);
		say_bytes("val", encap->val_ptr, encap->len);
	}
}

static struct ibv_flow_action *stub_create_flow_action_esp(struct ibv_context *context, struct ibv_flow_action_esp_attr *attr)
{
	FAIL_NULL();
	say_esp(attr);
	return MAKE(ibv_flow_action, context);
}

static int stub_modify_flow_action_esp(struct ibv_flow_action *action, struct ibv_flow_action_esp_attr *attr)
{
	FAIL_ERRNO();
	say_esp(attr);
	return 0;
}

static int stub_destroy_flow_action(struct ibv_flow_action *action) { FAIL_ERRNO(); UNMAKE(action); return 0; }

static struct ibv_counters *stub_create_counters(struct ibv_context *context, struct ibv_counters_init_attr *attr)
{
	FAIL_NULL();
	return attr->comp_mask ? NULL : MAKE(ibv_counters, context);
}

static int stub_destroy_counters(struct ibv_counters *counters) { FAIL_ERRNO(); UNMAKE(counters); return 0; }

static int stub_attach_counters(struct ibv_counters *counters, struct ibv_counter_attach_attr *attr, struct ibv_flow *flow)
{
	FAIL_ERRNO();
	call(__func__, attr->counter_desc, attr->index, attr->comp_mask, (uintptr_t) flow, (uintptr_t) counters);
	return 0;
}

static int stub_read_counters(struct ibv_counters *counters, uint64_t *values, uint32_t count, uint32_t flags)
{
	FAIL_ERRNO();
	call(__func__, (uintptr_t) counters, count, flags, 0, 0);
	for (uint32_t i = 0; i < count; i++)
		values[i] = 1000 + i;
	return 0;
}

/* ---- spreading ---- */

struct stub_wq { struct ibv_wq base; unsigned receives, depth; };

EXPORT void stub_wq_without_post(int without) { wq_without_post = without; }

static int stub_post_wq_recv(struct ibv_wq *wq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct stub_wq *self = (struct stub_wq *) wq;

	return post_receives(wr, bad, &self->receives, self->depth);
}

static struct ibv_wq *stub_create_wq(struct ibv_context *context, struct ibv_wq_init_attr *attr)
{
	FAIL_NULL();
	struct stub_wq *wq = malloc(sizeof(*wq));
	memset(wq, 0xaa, sizeof(*wq)); /* whoever calls initialises the locks */
	text[0] = 0;
	SAY("context=%p type=%u max_wr=%u max_sge=%u pd=%p cq=%p mask=%x flags=%x", attr->wq_context, attr->wq_type, attr->max_wr,
	    attr->max_sge, attr->pd, attr->cq, attr->comp_mask, attr->create_flags);
	attr->max_wr++;
	wq->base.context = OF(context);
	wq->base.pd = attr->pd;
	wq->base.cq = attr->cq;
	wq->base.wq_num = 0x77;
	wq->base.state = IBV_WQS_RESET;
	wq->base.wq_type = attr->wq_type;
	wq->base.post_recv = wq_without_post ? NULL : stub_post_wq_recv;
	wq->receives = 0;
	wq->depth = attr->max_wr;
	live++;
	return &wq->base;
}

/* As acknowledging an event does. */
EXPORT int stub_wq_lock(struct ibv_wq *wq)
{
	int error = pthread_mutex_trylock(&wq->mutex) || pthread_cond_signal(&wq->cond) || pthread_mutex_unlock(&wq->mutex);

	return error || wq->events_completed || wq->wq_context;
}

static int stub_modify_wq(struct ibv_wq *wq, struct ibv_wq_attr *attr)
{
	FAIL_ERRNO();
	call(__func__, attr->attr_mask, attr->wq_state, attr->curr_wq_state, attr->flags, attr->flags_mask);
	if (attr->attr_mask & IBV_WQ_ATTR_STATE)
		wq->state = attr->wq_state;
	return 0;
}

static int stub_destroy_wq(struct ibv_wq *wq) { FAIL_ERRNO(); UNMAKE(wq); return 0; }

static struct ibv_rwq_ind_table *stub_create_rwq_ind_table(struct ibv_context *context, struct ibv_rwq_ind_table_init_attr *attr)
{
	FAIL_NULL();
	text[0] = 0;
	SAY("log=%u mask=%u", attr->log_ind_tbl_size, attr->comp_mask);
	for (unsigned i = 0; i < 1u << attr->log_ind_tbl_size; i++) {
		if (attr->ind_tbl[i]->wq_num != 0x77)
			return NULL;
		SAY(" %p", attr->ind_tbl[i]);
	}
	return MAKE(ibv_rwq_ind_table, context);
}

static int stub_destroy_rwq_ind_table(struct ibv_rwq_ind_table *table) { FAIL_ERRNO(); UNMAKE(table); return 0; }

static void later(struct verbs_context *verbs)
{
	verbs->post_srq_ops = stub_post_srq_ops;
	verbs->create_wq = stub_create_wq;
	verbs->modify_wq = stub_modify_wq;
	verbs->destroy_wq = stub_destroy_wq;
	verbs->create_rwq_ind_table = stub_create_rwq_ind_table;
	verbs->destroy_rwq_ind_table = stub_destroy_rwq_ind_table;
	verbs->ibv_create_flow = stub_create_flow;
	verbs->ibv_destroy_flow = stub_destroy_flow;
	verbs->create_flow_action_esp = stub_create_flow_action_esp;
	verbs->modify_flow_action_esp = stub_modify_flow_action_esp;
	verbs->destroy_flow_action = stub_destroy_flow_action;
	verbs->create_counters = stub_create_counters;
	verbs->destroy_counters = stub_destroy_counters;
	verbs->attach_counters_point_flow = stub_attach_counters;
	verbs->read_counters = stub_read_counters;
	verbs->alloc_td = stub_alloc_td;
	verbs->dealloc_td = stub_dealloc_td;
	verbs->alloc_parent_domain = stub_alloc_parent_domain;
	verbs->alloc_dm = stub_alloc_dm;
	verbs->free_dm = stub_free_dm;
	verbs->reg_dm_mr = stub_reg_dm_mr;
	verbs->alloc_null_mr = stub_alloc_null_mr;
	verbs->advise_mr = stub_advise_mr;
	verbs->modify_cq = stub_modify_cq;
	verbs->query_rt_values = stub_query_rt_values;
	verbs->query_device_ex = stub_query_device_ex;
	verbs->modify_qp_rate_limit = stub_modify_qp_rate_limit;
	verbs->open_xrcd = stub_open_xrcd;
	verbs->close_xrcd = stub_close_xrcd;
	verbs->create_srq_ex = stub_create_srq_ex;
	verbs->get_srq_num = stub_get_srq_num;
	verbs->open_qp = stub_open_qp;
	verbs->create_qp_ex = stub_create_qp_ex;
	verbs->create_cq_ex = stub_create_cq_ex;
	verbs->context.ops.alloc_mw = stub_alloc_mw;
	verbs->context.ops.dealloc_mw = stub_dealloc_mw;
}
