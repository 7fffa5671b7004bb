/*
 * Part of stub_rdma.c: queue pairs of this process that reach each other, after stub_link(1). What is posted is done at once, in the order
 * in which it was posted, by the thread that posts it or, where it waits for a receive, by the one that posts that; or later, by the
 * device's own thread (stub_quirk). What reads and atomics return is there a little later.
 *
 * Checked as adapters check it: keys, bounds and rights of regions and windows on both sides, the protection domain, lengths, and that a
 * receive is there. A refused operation ends both queue pairs. On InfiniBand and RoCE its completion says why; on iWARP a send or a write
 * is done when TCP has it, and what the peer refuses flushes the rest.
 *
 * Left out: loss (so no retries run out: what a peer that has ended does not answer waits for the end of its sender), the order of
 * the bytes of one transfer, MTUs and packets, the limits of reads under way, and sends with invalidate, which the provider does not post.
 */

static int linked;
EXPORT void stub_link(int on) { linked = on; }

static struct stub_qp *existing(uint32_t number)
{
	struct stub_qp *qp = number ? qp_of(number) : NULL;

	return qp && qp->base.qp_num == number ? qp : NULL;
}

static int is_iwarp(struct stub_qp *qp) { return qp->base.context->device->transport_type == IBV_TRANSPORT_IWARP; }

/* On iWARP the library does not know when the kernel has connected a queue pair, and none looks. */
static int is_before(struct stub_qp *qp, enum ibv_qp_state state) { return !is_iwarp(qp) && qp->base.state < state; }

/* ---- memory ---- */

/* Regions by their local keys; remote ones differ in one bit, so that neither is taken for the other. */
#define REGIONS (1 << 16)
#define REGION_KEY (1u << 28)
static struct { struct ibv_mr *mr; int access; } regions[REGIONS];

/* Windows: the key that each has, the region that it is bound into, and the queue pair that it is for. */
#define WINDOWS 4096
static struct window { struct ibv_mw *mw; uint32_t key; struct ibv_mr *mr; uint64_t addr, length; int access; struct stub_qp *qp; } windows[WINDOWS];

static int is_within(uint64_t addr, uint64_t length, uint64_t in, uint64_t bytes)
{
	return addr >= in && length <= bytes && addr - in <= bytes - length;
}

static struct ibv_pd *origin(struct ibv_pd *pd) { return ((struct stub_pd *) pd)->of ? ((struct stub_pd *) pd)->of : pd; }

/* The region that a key names, if a queue pair may use it so. */
static struct ibv_mr *region(struct stub_qp *qp, uint32_t key, int right)
{
	struct ibv_mr *mr = regions[key % REGIONS].mr;

	return mr && (mr->lkey == key || mr->rkey == key) && origin(mr->pd) == origin(qp->base.pd)
		&& (regions[key % REGIONS].access & right) == right ? mr : NULL;
}

/* Whether the peer of a queue pair may do that to memory of its side. */
static int is_open(struct stub_qp *qp, uint32_t key, uint64_t addr, uint64_t length, int right)
{
	struct ibv_mr *mr = key & REGION_KEY ? region(qp, key, right) : NULL;

	if (mr)
		return mr->rkey == key && is_within(addr, length, (uint64_t) mr->addr, mr->length);
	for (int i = 0; i < WINDOWS; i++)
		if (windows[i].mw && windows[i].mr && windows[i].key == key)
			return windows[i].qp == qp && windows[i].access & right && is_within(addr, length, windows[i].addr, windows[i].length);
	return 0;
}

/* A window is free when it is bound, the binding names it by its last key, and lies within a region that is made for it. */
static int bind_window(struct stub_qp *qp, struct ibv_send_wr *wr)
{
	struct ibv_mw_bind_info *to = &wr->bind_mw.bind_info;

	for (int i = 0; i < WINDOWS; i++)
		if (windows[i].mw == wr->bind_mw.mw) {
			if (windows[i].mr || windows[i].key != windows[i].mw->rkey || windows[i].key >> 8 != wr->bind_mw.rkey >> 8
			    || windows[i].key == wr->bind_mw.rkey || !region(qp, to->mr->lkey, IBV_ACCESS_MW_BIND)
			    || !is_within(to->addr, to->length, (uint64_t) to->mr->addr, to->mr->length))
				break;
			windows[i].key = wr->bind_mw.rkey;
			windows[i].mr = to->mr;
			windows[i].addr = to->addr;
			windows[i].length = to->length;
			windows[i].access = to->mw_access_flags;
			windows[i].qp = qp;
			return 0;
		}
	return EINVAL;
}

static int invalidate_window(uint32_t key)
{
	for (int i = 0; i < WINDOWS; i++)
		if (windows[i].mw && windows[i].mr && windows[i].key == key) {
			windows[i].mr = NULL;
			return 0;
		}
	return EINVAL;
}

/* The part of registered memory that a key opens now, "ADDRESS LENGTH" in decimal; empty for none. */
EXPORT const char *stub_opened(uint32_t key)
{
	static char text[64];

	text[0] = 0;
	LOCKED(for (int i = 0; i < WINDOWS; i++)
		if (windows[i].mw && windows[i].mr && windows[i].key == key)
			snprintf(text, sizeof(text), "%lu %lu", windows[i].addr, windows[i].length));
	return text;
}

/* ---- what is posted ---- */

static void keep_list(struct stub_work *work, int count, struct ibv_sge *list)
{
	if (count > SGES)
		abort();
	work->sges = count;
	memcpy(work->list, list, count * sizeof(*list));
}

/*
 * libcxgb4 makes one request of a chain of exactly a write of at most 4 elements and a send of 16 bytes (qp.c, c4iw_post_send; t4.h,
 * T4_WRITE_CMPL_MAX_SGL, T4_WRITE_CMPL_MAX_CQE), and rings one doorbell. It looks at the first elements before it looks whether there are
 * any, takes IBV_SEND_INLINE of the send only (build_rdma_write_cmpl), and neither its fence nor its solicited event (post_write_cmpl).
 * Both keep their places in the queue, and their completions.
 */
static int joined;
EXPORT int stub_joined(void) { return joined; }

static int joins_with_next(struct ibv_context *context, struct ibv_send_wr *wr)
{
	int joins = of_device(context)->vendor == 0x1425 && wr && wr->next && !wr->next->next && wr->opcode == IBV_WR_RDMA_WRITE
		&& wr->sg_list[0].length && wr->num_sge <= 4 && wr->next->opcode == IBV_WR_SEND
		&& wr->next->sg_list[0].length == 16 && wr->next->num_sge == 1;

	joined += joins;
	return joins;
}

/* Keeps what is to be done; what is inline is read now, and not later, unless the library does not look at that flag. */
static int keep_send(struct stub_work *work, struct ibv_send_wr *wr, int ignores_inline)
{
	work->operation = wr->opcode;
	keep_list(work, wr->num_sge, wr->sg_list);
	switch (wr->opcode) {
	case IBV_WR_SEND_WITH_IMM:
		work->immediate = wr->imm_data;
		break;
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		work->immediate = wr->imm_data;
		/* fall through */
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_READ:
		work->address = wr->wr.rdma.remote_addr;
		work->key = wr->wr.rdma.rkey;
		break;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		work->address = wr->wr.atomic.remote_addr;
		work->key = wr->wr.atomic.rkey;
		work->compare_add = wr->wr.atomic.compare_add;
		work->swap = wr->wr.atomic.swap;
		break;
	case IBV_WR_SEND:
	case IBV_WR_BIND_MW:
	case IBV_WR_LOCAL_INV:
		break;
	default:
		return EOPNOTSUPP;
	}
	if (wr->send_flags & IBV_SEND_INLINE && !ignores_inline) {
		char *to = work->inlined = malloc(work->bytes + 1);
		for (int i = 0; i < wr->num_sge; to += wr->sg_list[i++].length)
			memcpy(to, (void *) wr->sg_list[i].addr, wr->sg_list[i].length);
	}
	return 0;
}

/* ---- doing it ---- */

/* Whether all elements of a list lie in regions of this side with a right. */
static int has_right(struct stub_qp *qp, struct stub_work *work, int right)
{
	for (int i = 0; i < work->sges; i++) {
		struct ibv_sge *sge = &work->list[i];
		struct ibv_mr *mr = region(qp, sge->lkey, right);
		if (sge->length && (!mr || mr->lkey != sge->lkey || !is_within(sge->addr, sge->length, (uint64_t) mr->addr, mr->length)))
			return 0;
	}
	return 1;
}

static void gather(struct stub_work *work, char *to)
{
	if (work->inlined)
		memcpy(to, work->inlined, work->bytes);
	for (int i = 0; !work->inlined && i < work->sges; to += work->list[i++].length)
		memcpy(to, (void *) work->list[i].addr, work->list[i].length);
}

static void scatter(struct stub_work *work, const char *from, uint32_t bytes)
{
	for (int i = 0; i < work->sges && bytes; i++) {
		uint32_t part = work->list[i].length < bytes ? work->list[i].length : bytes;
		memcpy((void *) work->list[i].addr, from, part);
		from += part;
		bytes -= part;
	}
}

/*
 * After stub_reorder_writes, peers' writes into memory of relaxed ordering land so late that the first of two is seen last, though it has
 * completed before the second was posted: ibv_reg_mr(3), "back-to-back network writes that target the same memory region leave the region
 * in an unknown state".
 */
static int reorders_writes;
static struct { uint64_t address; uint32_t bytes; char data[64]; } late;
EXPORT void stub_reorder_writes(int on) { LOCKED(reorders_writes = on; late.bytes = 0); }

static int is_relaxed(uint32_t key)
{
	struct ibv_mr *mr = key & REGION_KEY ? regions[key % REGIONS].mr : NULL;

	for (int i = 0; !mr && i < WINDOWS; i++)
		if (windows[i].mw && windows[i].key == key)
			mr = windows[i].mr;
	return mr && regions[mr->lkey % REGIONS].access & IBV_ACCESS_RELAXED_ORDERING;
}

static void write_to_peer(struct stub_work *work, const char *data)
{
	memcpy((char *) work->address, data, work->bytes);
	if (!reorders_writes || work->bytes > sizeof(late.data) || !is_relaxed(work->key))
		return;
	if (late.address == work->address && late.bytes == work->bytes)
		memcpy((char *) work->address, late.data, late.bytes);
	late.address = work->address;
	late.bytes = work->bytes;
	memcpy(late.data, data, work->bytes);
}

static uint64_t room(struct stub_work *work)
{
	uint64_t bytes = 0;

	for (int i = 0; i < work->sges; i++)
		bytes += work->list[i].length;
	return bytes;
}

/* The receive that a message of the peer takes; NULL if there is none. */
static struct stub_work *next_receive(struct stub_qp *qp)
{
	struct stub_srq *srq = (struct stub_srq *) qp->base.srq;

	if (srq)
		return srq->head == srq->tail ? NULL : &srq->ring[srq->head % SRQ_DEPTH];
	return qp->receives.head == qp->receives.tail ? NULL : &qp->receives.ring[qp->receives.head % DEPTH];
}

static void received(struct stub_qp *qp, int status)
{
	struct stub_srq *srq = (struct stub_srq *) qp->base.srq;

	if (srq)
		push_shared(qp, &srq->ring[srq->head++ % SRQ_DEPTH], status, 0);
	else
		complete_first(qp, &qp->receives, qp->base.recv_cq, status, 0);
}

static void async(int device, int type, struct stub_qp *qp);

/* It takes no more receives of its shared queue, which it says once. */
static void last_told(struct stub_qp *qp)
{
	if (qp->base.srq && !qp->last_told++)
		async(qp->base.context->device - devices, IBV_EVENT_QP_LAST_WQE_REACHED, qp);
}

/* A queue pair ends, by what it or its peer did. */
static void break_off(struct stub_qp *qp)
{
	if (qp->in_error)
		return;
	to_error(qp);
	last_told(qp);
}

/* The peer asks for what it may not have: its queue pair here ends with an event. */
static int refused(struct stub_qp *peer)
{
	break_off(peer);
	async(peer->base.context->device - devices, IBV_EVENT_QP_ACCESS_ERR, peer);
	return IBV_WC_REM_ACCESS_ERR;
}

#define WAITS -1

/* Puts a message, or the news of a write, into the peer's next receive. */
static int deliver(struct stub_qp *qp, struct stub_qp *peer, struct stub_work *work, const char *data)
{
	struct stub_work *receive = next_receive(peer);
	int is_write = work->operation == IBV_WR_RDMA_WRITE_WITH_IMM;

	if (!is_write && work->bytes > room(receive)) {
		received(peer, IBV_WC_LOC_LEN_ERR);
		break_off(peer);
		return IBV_WC_REM_INV_REQ_ERR;
	}
	if (!is_write && !has_right(peer, receive, IBV_ACCESS_LOCAL_WRITE)) {
		received(peer, IBV_WC_LOC_PROT_ERR);
		break_off(peer);
		return IBV_WC_REM_OP_ERR;
	}
	if (!is_write)
		scatter(receive, data, work->bytes);
	receive->bytes = work->bytes;
	receive->opcode = is_write ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV;
	if (work->operation != IBV_WR_SEND) {
		receive->flags = IBV_WC_WITH_IMM;
		receive->immediate = work->immediate;
	}
	received(peer, IBV_WC_SUCCESS);
	return IBV_WC_SUCCESS;
}

/* ---- answers, which come later ---- */

/*
 * Reads and atomics are answered while what was posted behind them is under way: a send without a fence takes what its memory has before.
 * Completions keep their order.
 */
static void land(struct stub_qp *qp)
{
	while (qp->sends.head != qp->sends.begun) {
		struct stub_work *work = &qp->sends.ring[qp->sends.head % DEPTH];
		if (work->answer)
			scatter(work, work->answer, work->bytes);
		complete_first(qp, &qp->sends, qp->base.send_cq, IBV_WC_SUCCESS, 0);
	}
}

static pthread_cond_t asked = PTHREAD_COND_INITIALIZER;

static void *run_answers(void *unused)
{
	for (;;) {
		LOCKED(while (!unanswered)
			       pthread_cond_wait(&asked, &lock));
		usleep(50);
		LOCKED(for (int i = 0; i < MAX_QPS; i++)
			       if (qps[i] && !qps[i]->in_error)
				       land(qps[i]));
	}
	return NULL;
}

static void keep_answer(struct stub_work *work, const void *data)
{
	static int runs;
	pthread_t thread;

	work->answer = malloc(work->bytes + 1);
	memcpy(work->answer, data, work->bytes);
	unanswered++;
	if (!runs++ && pthread_create(&thread, NULL, run_answers, NULL))
		abort();
	pthread_cond_signal(&asked);
}

/* The next operation of a queue: what its completion says, or that it waits. */
static int perform(struct stub_qp *qp, struct stub_work *work)
{
	static const int rights[] = {
		[IBV_WR_RDMA_WRITE] = IBV_ACCESS_REMOTE_WRITE,
		[IBV_WR_RDMA_WRITE_WITH_IMM] = IBV_ACCESS_REMOTE_WRITE,
		[IBV_WR_RDMA_READ] = IBV_ACCESS_REMOTE_READ,
		[IBV_WR_ATOMIC_CMP_AND_SWP] = IBV_ACCESS_REMOTE_ATOMIC,
		[IBV_WR_ATOMIC_FETCH_AND_ADD] = IBV_ACCESS_REMOTE_ATOMIC,
		[IBV_WR_BIND_MW] = 0,
	};
	struct stub_qp *peer = existing(qp->peer);
	int right = rights[work->operation], status = IBV_WC_SUCCESS;
	int returns = right == IBV_ACCESS_REMOTE_READ || right == IBV_ACCESS_REMOTE_ATOMIC;
	int takes_receive = !right || work->operation == IBV_WR_RDMA_WRITE_WITH_IMM;
	uint64_t old, *word = (uint64_t *) work->address;
	char *data;

	if (work->operation == IBV_WR_BIND_MW || work->operation == IBV_WR_LOCAL_INV) /* it was done when it was posted */
		return IBV_WC_SUCCESS;
	if (!work->inlined
	    && !has_right(qp, work, !returns ? 0 : is_iwarp(qp) ? IBV_ACCESS_REMOTE_WRITE : IBV_ACCESS_LOCAL_WRITE))
		return IBV_WC_LOC_PROT_ERR;
	if (!peer || peer->in_error || is_before(peer, IBV_QPS_RTR))
		return WAITS;
	if (right == IBV_ACCESS_REMOTE_ATOMIC && work->address % 8)
		return refused(peer);
	if (right && work->bytes && !is_open(peer, work->key, work->address, work->bytes, right))
		return refused(peer);
	if (takes_receive && !next_receive(peer)) {
		if (is_iwarp(qp))
			return refused(peer);
		return qp->rnr_retries == 0 ? IBV_WC_RNR_RETRY_EXC_ERR : WAITS;
	}
	data = malloc(work->bytes + 1);
	switch (right) {
	case IBV_ACCESS_REMOTE_READ:
		keep_answer(work, (char *) work->address);
		break;
	case IBV_ACCESS_REMOTE_ATOMIC:
		old = *word;
		if (work->operation == IBV_WR_ATOMIC_FETCH_AND_ADD)
			*word = old + work->compare_add;
		else if (old == work->compare_add)
			*word = work->swap;
		keep_answer(work, &old);
		break;
	default:
		gather(work, data);
		if (right)
			write_to_peer(work, data);
		if (takes_receive)
			status = deliver(qp, peer, work, data);
	}
	free(data);
	return status;
}

/* Does what a queue pair has to do, as far as it goes. Under the lock. */
static void carry(struct stub_qp *qp)
{
	while (qp && !qp->in_error && !is_before(qp, IBV_QPS_RTS) && qp->sends.begun != qp->sends.tail) {
		struct stub_work *work = &qp->sends.ring[qp->sends.begun % DEPTH];
		if (work->fenced)
			land(qp);
		int status = perform(qp, work);
		int is_unseen = status && status != IBV_WC_LOC_PROT_ERR && is_iwarp(qp);
		if (status == WAITS)
			return;
		if (status)
			land(qp);
		qp->sends.begun++;
		if (!status) {
			if (!work->answer && qp->sends.head + 1 == qp->sends.begun)
				complete_first(qp, &qp->sends, qp->base.send_cq, status, 0);
			continue;
		}
		if (!is_unseen && of_device(qp->base.context)->blames_oldest) /* the oldest without a completion is told of it */
			qp->sends.head = qp->sends.reported;
		if (!is_unseen || (work->opcode != IBV_WC_RDMA_READ && work->opcode != IBV_WC_COMP_SWAP && work->opcode != IBV_WC_FETCH_ADD))
			complete_first(qp, &qp->sends, qp->base.send_cq, is_unseen ? IBV_WC_SUCCESS : status, 0);
		break_off(qp);
	}
}
