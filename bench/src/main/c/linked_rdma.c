/*
 * The stub library of transport/verbs' tests, whose connections within a process are linked, with a shorter way for data: a send is copied
 * into the peer's next receive at once, and nothing is checked. So whole connections run in one process without a device, and what is left
 * is the cost of the program.
 *
 * Posting and polling take no lock here: one thread, the completion loop, does both for both ends. linked_echo is the same in C.
 */
#define LINKED
#include "stub_rdma.c"
#include <dlfcn.h>
#include <limits.h>

#define RING 256

/* Says what a program did that this library cannot do. */
#define REFUSE(what) (fprintf(stderr, "linked_rdma.c: %s\n", what), (abort)())

/* stub0 is of the family mlx5 if sysfs/ is beside this library, which says so as the kernel does. */
__attribute__((constructor)) static void begin(void)
{
	char sysfs[PATH_MAX];
	Dl_info self;

	stub_reset();
	stub_link(1);
	if (!dladdr(stub_reset, &self))
		REFUSE("it does not know where it is");
	char *end = strrchr(self.dli_fname, '/');
	snprintf(sysfs, sizeof(sysfs), "%.*s/sysfs", end ? (int) (end - self.dli_fname) : 1, end ? self.dli_fname : ".");
	if (!access(sysfs, F_OK) && stub_personality("mlx5", sysfs))
		REFUSE("it has no mlx5");
}

struct receives { struct { uint64_t id, addr; uint32_t length; } ring[1 << 12]; unsigned head, tail; };
struct end { struct stub_qp *peer; struct receives *receives; };

static struct receives *receives_of_srq(struct ibv_srq *srq)
{
	if (!srq->srq_context)
		srq->srq_context = calloc(1, sizeof(struct receives));
	return srq->srq_context;
}

static struct end *end_of(struct ibv_qp *qp)
{
	if (!qp->qp_context) {
		struct end *end = calloc(1, sizeof(*end));
		end->receives = qp->srq ? receives_of_srq(qp->srq) : calloc(1, sizeof(*end->receives));
		qp->qp_context = end;
	}
	return qp->qp_context;
}

static void receive(struct receives *receives, struct ibv_recv_wr *wr)
{
	unsigned size = sizeof(receives->ring) / sizeof(receives->ring[0]);

	for (; wr; wr = wr->next) {
		unsigned i = receives->tail++ % size;
		receives->ring[i].id = wr->wr_id;
		receives->ring[i].addr = wr->num_sge ? wr->sg_list[0].addr : 0;
		receives->ring[i].length = wr->num_sge ? wr->sg_list[0].length : 0;
	}
	if (receives->tail - receives->head > size)
		REFUSE("more receives than fit");
}

static int linked_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	receive(end_of(qp)->receives, wr);
	return 0;
}

static int linked_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	receive(receives_of_srq(srq), wr);
	return 0;
}

static int linked_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct end *end = end_of(qp);
	struct stub_qp *peer = end->peer ? end->peer : (end->peer = existing(((struct stub_qp *) qp)->peer));

	if (!peer)
		REFUSE("a send without a peer");
	struct receives *receives = end_of(&peer->base)->receives;
	for (; wr; wr = wr->next) {
		if (wr->opcode == IBV_WR_RDMA_WRITE && !wr->num_sge) { /* nothing, whose completion is that of what went before */
			if (wr->send_flags & IBV_SEND_SIGNALED)
				push(qp->send_cq, (struct ibv_wc) { .wr_id = wr->wr_id, .opcode = IBV_WC_RDMA_WRITE, .qp_num = qp->qp_num });
			continue;
		}
		if (wr->opcode == IBV_WR_BIND_MW) {
			push(qp->send_cq, (struct ibv_wc) { .wr_id = wr->wr_id, .opcode = IBV_WC_BIND_MW, .qp_num = qp->qp_num });
			continue;
		}
		if (wr->opcode != IBV_WR_SEND && wr->opcode != IBV_WR_SEND_WITH_IMM)
			REFUSE("only sends are carried");
		if (receives->head == receives->tail)
			REFUSE("the receiver is not ready");
		unsigned i = receives->head++ % (sizeof(receives->ring) / sizeof(receives->ring[0]));
		uint32_t bytes = 0;
		for (int j = 0; j < wr->num_sge; j++) {
			if (bytes + wr->sg_list[j].length > receives->ring[i].length)
				REFUSE("a send is longer than the receive");
			memcpy((char *) (uintptr_t) receives->ring[i].addr + bytes, (void *) (uintptr_t) wr->sg_list[j].addr,
			       wr->sg_list[j].length);
			bytes += wr->sg_list[j].length;
		}
		push(peer->base.recv_cq, (struct ibv_wc) { .wr_id = receives->ring[i].id, .opcode = IBV_WC_RECV, .byte_len = bytes,
			.imm_data = wr->imm_data, .wc_flags = wr->opcode == IBV_WR_SEND ? 0 : IBV_WC_WITH_IMM,
			.qp_num = peer->base.qp_num });
		if (wr->send_flags & IBV_SEND_SIGNALED)
			push(qp->send_cq, (struct ibv_wc) { .wr_id = wr->wr_id, .opcode = IBV_WC_SEND, .qp_num = qp->qp_num });
	}
	return 0;
}

static int linked_poll_cq(struct ibv_cq *ibcq, int entries, struct ibv_wc *wc)
{
	struct stub_cq *cq = (struct stub_cq *) ibcq;
	int count = 0;

	while (count < entries && cq->head != cq->tail)
		wc[count++] = cq->ring[cq->head++ % CQ_DEPTH];
	return count;
}

static void linked_operations(struct ibv_context *context)
{
	context->ops.poll_cq = linked_poll_cq;
	context->ops.post_send = linked_post_send;
	context->ops.post_recv = linked_post_recv;
	context->ops.post_srq_recv = linked_post_srq_recv;
}

/* Makes two queue pairs each other's peers. */
EXPORT void linked_pair(struct ibv_qp *one, struct ibv_qp *other)
{
	end_of(one)->peer = (struct stub_qp *) other;
	end_of(other)->peer = (struct stub_qp *) one;
}

/* ---- the same in C ---- */

#define MESSAGE_BYTES 64
#define SIDE (1ull << 32)
#define SENDS (1ull << 33)

/* One end: which slots its sends use, in order, and what it is about to post. */
struct side {
	struct ibv_qp *qp;
	uint32_t used[RING], head, tail;
	struct ibv_recv_wr receives[RING];
	struct ibv_send_wr sends[RING];
	struct ibv_sge receive_sges[RING], send_sges[RING];
	int receive_count, send_count;
};

static struct side sides[2];
static uint64_t memory;
static uint32_t memory_key;
static int window_size;

/* The first end's slots that are neither received into nor sent from. */
static uint32_t spare[RING];

static uint64_t slot_address(int s, uint32_t slot) { return memory + (s * RING + slot) * MESSAGE_BYTES; }

static void stage_receive(int s, uint32_t slot)
{
	struct side *side = &sides[s];
	int i = side->receive_count++;

	side->receive_sges[i] = (struct ibv_sge) { .addr = slot_address(s, slot), .length = MESSAGE_BYTES, .lkey = memory_key };
	side->receives[i].wr_id = s * SIDE | slot;
	side->receives[i].sg_list = &side->receive_sges[i];
	side->receives[i].num_sge = 1;
	side->receives[i].next = NULL;
	if (i)
		side->receives[i - 1].next = &side->receives[i];
}

static void stage_send(int s, uint32_t slot)
{
	struct side *side = &sides[s];
	int i = side->send_count++;

	side->used[side->tail++ % RING] = slot;
	side->send_sges[i] = (struct ibv_sge) { .addr = slot_address(s, slot), .length = MESSAGE_BYTES, .lkey = memory_key };
	side->sends[i].wr_id = SENDS | s * SIDE | side->tail;
	side->sends[i].sg_list = &side->send_sges[i];
	side->sends[i].num_sge = 1;
	side->sends[i].opcode = IBV_WR_SEND;
	side->sends[i].send_flags = 0;
	side->sends[i].next = NULL;
	if (i)
		side->sends[i - 1].next = &side->sends[i];
}

/* Receives first; one completion tells of all sends of a list. */
static int post(void)
{
	struct ibv_recv_wr *bad_receive;
	struct ibv_send_wr *bad_send;

	for (int s = 0; s < 2; s++) {
		struct side *side = &sides[s];
		if (side->receive_count && ibv_post_recv(side->qp, side->receives, &bad_receive))
			return -1;
		side->receive_count = 0;
		if (side->send_count) {
			side->sends[side->send_count - 1].send_flags = IBV_SEND_SIGNALED;
			if (ibv_post_send(side->qp, side->sends, &bad_send))
				return -1;
		}
		side->send_count = 0;
	}
	return 0;
}

/* Prepares linked_echo: memory of 2 * 256 messages, a queue pair for each end, and so many messages out at a time, at most 64. */
EXPORT int linked_start(struct ibv_qp *one, struct ibv_qp *other, uint64_t addr, uint32_t lkey, int window)
{
	memset(sides, 0, sizeof(sides));
	sides[0].qp = one;
	sides[1].qp = other;
	memory = addr;
	memory_key = lkey;
	window_size = window;
	linked_pair(one, other);
	for (int i = 0; i < window; i++)
		spare[i] = i;
	for (int s = 0; s < 2; s++)
		for (int slot = s ? 0 : window; slot < 2 * window; slot++)
			stage_receive(s, slot);
	return post();
}

/* Echoes at least so many messages between the ends, which one thread serves by turns. Returns how many arrived, both ways. */
EXPORT long linked_echo(struct ibv_cq *cq, long echoes)
{
	struct ibv_wc wc[64];
	long arrived = 0;
	int out = window_size, spares = 0, sends_out = 0;

	for (int i = 0; i < window_size; i++)
		stage_send(0, spare[i]);
	sends_out += window_size;
	while (out || sends_out) {
		if (post())
			return -1;
		int count = ibv_poll_cq(cq, 64, wc);
		for (int i = 0; i < count; i++) {
			int s = wc[i].wr_id & SIDE ? 1 : 0;
			struct side *side = &sides[s];
			if (wc[i].status)
				return -1;
			if (wc[i].wr_id & SENDS) {
				while (side->head != (uint32_t) wc[i].wr_id) {
					stage_receive(s, side->used[side->head++ % RING]);
					sends_out--;
				}
				continue;
			}
			arrived++;
			if (s || --echoes >= 0) {
				stage_send(s, (uint32_t) wc[i].wr_id);
				sends_out++;
			} else {
				spare[spares++] = (uint32_t) wc[i].wr_id;
				out--;
			}
		}
	}
	return post() ? -1 : arrived;
}
