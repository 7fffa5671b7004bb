/*
 * libibverbs and librdmacm without a device, in one library: two devices in memory, and peers that accept whoever connects.
 *
 * stub0 is a RoCE device and serves addresses 10.0.0.x, stub1 an iWARP device for 10.0.1.x. Connects to 10.0.x.250 block in
 * rdma_connect until stub_unblock, and those to 10.0.x.251 in rdma_resolve_route; stub_block makes any call of one device block. stub_hold_events loses the events of one type. What happens on a connection is up to the test: stub_receive and stub_complete make
 * completions. Any function can be told to fail (stub_fail), for all devices ("name") or
 * for one ("name:stub0"), at once or after so many calls. As adapters do, destroying a queue pair throws away what it left in
 * completion queues. What was made and not given back is counted (stub_leaks). A device that stub_remove takes away is open until no
 * list of rdma_get_devices has it; added again it is another one.
 *
 * stub_personality makes stub0 behave as an adapter family does, with its limits and its driver's habits: the table is below. Without
 * that it is an ideal RoCE device.
 *
 * After stub_link, connects reach who listens in this process or are refused, and work is done between the queue pairs of both ends: see
 * link.c. stub_quirk makes the device late, forgetful and unreliable. With LINKED defined (bench/src/main/c/linked_rdma.c), sends are
 * carried without the stub's checks and locks.
 *
 * It also stands in for the C library where the provider waits: eventfd, epoll and sockets are the kernel's, counted, and can be told to fail.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <infiniband/ib.h>

#undef ibv_query_port
#undef ibv_reg_mr

#define EXPORT __attribute__((visibility("default")))
#define DEVICES 2
#define DEPTH 512
#define SRQ_DEPTH 4096
#define MAX_QPS 2048
#define CQ_DEPTH (1 << 14)
#define GIDS 6

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t unblocked = PTHREAD_COND_INITIALIZER;
/* Says where, since what a test shows of a library that ends it is nothing. */
#define abort() (fprintf(stderr, "stub_rdma.c:%d: %s\n", __LINE__, strerror(errno)), (abort)())
#define LOCKED(...) do { pthread_mutex_lock(&lock); __VA_ARGS__; pthread_mutex_unlock(&lock); } while (0)

/* ---- what tests steer ---- */

static struct { char function[64]; int error, skip, times; } failures[16];
static struct { char function[64]; int count; } calls[96];
static int failed;
static struct { char function[32], thread[32]; } threads[64];
static int removed[2];
static int blocked, blocking, hold_sends, hold_flushes, hold_events, failed_epoll, epoll_error, ports_down, cleaned, lost_event = -1;
static unsigned thread_count;
static int kernel_polls, kernel_posts, binds, invalidations, locked_doorbells, send_posts, send_completions, relaxed, thread_domains;

/* The function of one device, "ibv_create_qp:stub0", that blocks until stub_unblock; empty for none. */
static char block[64];

/*
 * Quirks: how many of a thousand chances each one takes, from stub_quirk on. work, flush: what is posted, or flushed, is done by the
 * device's own thread, later. slow: a command takes 100 ms. late, twice, lost: a completion event comes up to 20 ms later, again, never.
 * cm-late, cm-twice: the same of rdma_cm's. cm-moved: the address of a connection changes, each 200 us. fail: a call fails. break: a
 * queue pair fails, each 200 us.
 */
enum { WORK, FLUSH, SLOW, LATE, TWICE_TOLD, LOST, CM_LATE, CM_TWICE, CM_MOVED, FAIL, BREAK, QUIRKS };
static const char *quirk_names[] = { "work", "flush", "slow", "late", "twice", "lost", "cm-late", "cm-twice", "cm-moved", "fail", "break" };
static int quirks[QUIRKS], indulged[QUIRKS];
static uint64_t chances = 1;

static unsigned draw(void) /* xorshift64, George Marsaglia */
{
	chances ^= chances << 13;
	chances ^= chances >> 7;
	chances ^= chances << 17;
	return chances >> 33;
}

static int chance(int quirk)
{
	int is = quirks[quirk] && (int) (draw() % 1000) < quirks[quirk];

	indulged[quirk] += is;
	return is;
}

static int is_one_of(const char *function, const char *const *names)
{
	for (; *names; names++)
		if (!strcmp(*names, function))
			return 1;
	return 0;
}

static int modify_errno(void);

/* What a quirk makes of a call. Under the lock, which a slow command does not keep. */
static int quirky(const char *function)
{
	static const char *const slow[] = { "ibv_reg_mr", "ibv_modify_qp", "ibv_create_qp", "ibv_create_cq", "ibv_destroy_qp", NULL };
	static const char *const fragile[] = { "ibv_reg_mr", "ibv_modify_qp", "ibv_create_qp", "ibv_create_cq", "rdma_create_id",
		"rdma_create_event_channel", "rdma_resolve_addr", "rdma_resolve_route", "rdma_connect", "rdma_accept", "rdma_migrate_id",
		"modify_init", "modify_accept", "modify_reply", "modify_end", "post_send", "post_recv", NULL };
	static const int errors[] = { ENOMEM, EAGAIN, EINVAL, EIO };

	if (is_one_of(function, slow) && chance(SLOW)) {
		pthread_mutex_unlock(&lock);
		usleep(100000);
		pthread_mutex_lock(&lock);
	}
	if (!is_one_of(function, fragile) || !chance(FAIL))
		return 0;
	failed++;
	return strstr(function, "modify") && modify_errno() ? modify_errno() : errors[draw() % 4];
}

static int failing(const char *function, const char *device)
{
	char both[128];

	for (int i = 0; i < 96; i++) {
		if (!calls[i].count)
			strncpy(calls[i].function, function, sizeof(calls[i].function) - 1);
		if (!strcmp(calls[i].function, function)) {
			calls[i].count++;
			break;
		}
	}
	snprintf(both, sizeof(both), "%s:%s", function, device);
	if (!strcmp(block, both)) {
		blocked++;
		while (!strcmp(block, both))
			pthread_cond_wait(&unblocked, &lock);
		blocked--;
	}
	for (int i = 0; i < 16; i++)
		if (failures[i].times && (!strcmp(failures[i].function, function) || !strcmp(failures[i].function, both))) {
			if (failures[i].skip-- > 0)
				continue;
			failures[i].times--;
			failed++;
			return failures[i].error;
		}
	return quirky(function);
}

/* Fails so many times, after so many calls that go well. */
EXPORT void stub_fail_later(const char *function, int error, int skip, int times)
{
	LOCKED(for (int i = 0; i < 16; i++)
		if (!failures[i].times) {
			memset(failures[i].function, 0, sizeof(failures[i].function));
			strncpy(failures[i].function, function, sizeof(failures[i].function) - 1);
			failures[i].error = error;
			failures[i].skip = skip;
			failures[i].times = times;
			break;
		});
}

EXPORT void stub_fail(const char *function, int error, int times) { stub_fail_later(function, error, 0, times); }

/* Reads behind the end of memory, which the address sanitizer must find. */
EXPORT int stub_fault(void)
{
	volatile size_t end = 8;
	char *memory = calloc(1, end);
	int behind = memory[end];

	free(memory);
	return behind;
}

/* How many calls have failed, and how many were made of each function, "ibv_reg_mr 2 poll_cq 700", since stub_reset. */
EXPORT int stub_failed(void) { return failed; }
EXPORT const char *stub_all_calls(void)
{
	static char text[4096];

	text[0] = 0;
	LOCKED(for (int i = 0; i < 96 && calls[i].count; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%.63s %d", text[0] ? " " : "", calls[i].function, calls[i].count));
	return text;
}

/* ---- what was made and not given back ---- */

static struct { const char *kind; int count; } live[24];

/* Under the lock. */
static void counted(const char *kind, int change)
{
	for (int i = 0; i < 24; i++) {
		if (!live[i].kind)
			live[i].kind = kind;
		if (!strcmp(live[i].kind, kind)) {
			live[i].count += change;
			return;
		}
	}
	abort();
}

/* Kinds and counts, "ibv_mr 2 rdma_cm_id 1"; empty if there is nothing. */
EXPORT const char *stub_leaks(void)
{
	static char text[4096];

	text[0] = 0;
	LOCKED(for (int i = 0; i < 24; i++)
		if (live[i].kind && live[i].count)
			snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s %d", text[0] ? " " : "", live[i].kind, live[i].count));
	return text;
}

/* Notes the thread that makes a call. */
static void note(const char *function)
{
	unsigned i = thread_count++ % 64;

	strncpy(threads[i].function, function, sizeof(threads[i].function) - 1);
	pthread_getname_np(pthread_self(), threads[i].thread, sizeof(threads[i].thread));
}

/* The threads that have called a function, one behind the other, each once. */
EXPORT const char *stub_threads_of(const char *function)
{
	static char names[4096];

	names[0] = 0;
	LOCKED(for (int i = 0; i < 64; i++)
		if (!strcmp(threads[i].function, function) && !strstr(names, threads[i].thread)) {
			strcat(names, threads[i].thread);
			strcat(names, " ");
		});
	return names;
}

EXPORT void stub_reset(void)
{
	LOCKED(memset(failures, 0, sizeof(failures)); memset(threads, 0, sizeof(threads)); thread_count = 0;
	       memset(calls, 0, sizeof(calls)); failed = kernel_polls = kernel_posts = binds = invalidations = locked_doorbells = send_posts = send_completions = relaxed = 0;
	       memset(removed, 0, sizeof(removed));
	       blocking = 1; hold_sends = hold_flushes = ports_down = cleaned = 0; hold_events = failed_epoll = lost_event = -1);
}

EXPORT void stub_hold_sends(int hold) { hold_sends = hold; }
/* Events of that type of the connection manager get lost from now on; -1 for none. */
EXPORT void stub_hold_events(int type) { hold_events = type; }
EXPORT int stub_cleaned(void) { return cleaned; }
EXPORT int stub_blocked(void) { return blocked; }
EXPORT void stub_port_down(int down) { ports_down = down; }
EXPORT void stub_unblock(void) { LOCKED(blocking = 0; block[0] = 0; pthread_cond_broadcast(&unblocked)); }

/* A firmware that does not answer: calls of that function of one device, "ibv_create_qp:stub0", block until stub_unblock. */
EXPORT void stub_block(const char *function) { LOCKED(snprintf(block, sizeof(block), "%s", function)); }

#define FAIL_NULL(device) do { int e = failing(__func__, device); if (e) { pthread_mutex_unlock(&lock); errno = e; return NULL; } } while (0)
#define FAIL_ERRNO(device) do { int e = failing(__func__, device); if (e) { pthread_mutex_unlock(&lock); return e; } } while (0)
#define FAIL_MINUS_ONE(device) do { int e = failing(__func__, device); if (e) { pthread_mutex_unlock(&lock); errno = e; return -1; } } while (0)

/* ---- devices ---- */

struct stub_channel { struct ibv_comp_channel base; int write_fd; };
struct stub_cq { struct ibv_cq base; int unmapped; struct ibv_wc ring[CQ_DEPTH]; unsigned head, tail, events; int armed; };
/* A work request: what its completion says, and, where queue pairs are linked, what is to be done. */
#define SGES 8
struct stub_work {
	uint64_t id;
	uint32_t bytes;
	int opcode, signalled;
	unsigned flags;
	uint32_t immediate;
	enum ibv_wr_opcode operation;
	uint64_t address, compare_add, swap;
	uint32_t key;
	int sges, fenced;
	struct ibv_sge list[SGES];
	char *inlined, *answer;
};
/* Sends are done up to begun, and not reported from head on: a read before them has not been answered. */
struct stub_queue { struct stub_work ring[DEPTH]; unsigned head, begun, tail, reported; };
struct stub_srq { struct ibv_srq base; struct stub_work ring[SRQ_DEPTH]; unsigned head, tail, in_cqs; };
struct stub_pd { struct ibv_pd base; struct ibv_td *td; struct ibv_pd *of; };
/* peer is the number of the queue pair that it is linked with, and rnr_retries what that one's side wants of this one; 7 is for ever. */
struct stub_qp {
	struct ibv_qp base;
	unsigned send_sges, receive_sges;
	struct stub_queue sends, receives;
	int in_error, locks_doorbell, last_told, connected;
	uint32_t peer;
	int rnr_retries;
};
/* An id: whether it is bound, and, where they are linked, the other end's id until the end, and the queue pair. */
struct stub_id { struct rdma_cm_id base; int bound, established, leaving, asks, connect_error; struct stub_id *peer; uint32_t number; int rnr_retries; };

/*
 * Adapter families. What each does is from the sources of rdma-core 65 (providers/NAME, read at 691953d8) and, for limits that only the
 * kernel knows, of Linux (drivers/infiniband/hw/NAME). docs/adapters.md says which of it is known how, and DriverSourcesTest compares
 * it with the sources' constants. An errno of -1 means that it works.
 */
enum resizing { RESIZES, REFUSES, UNMAPS };
/* What creating a queue pair with more inline bytes than there are does; LESS grants fewer, and IGNORED never looks at IBV_SEND_INLINE. */
enum inlining { REFUSED, LESS, IGNORED };
/* How depths and completion queues are rounded and written back. */
enum rounding { EXACT, POWER, POWER_LESS_ONE, QUANTA_4, QUANTA_2, TWICE, SIXTEEN_LESS_TWO };
static const struct personality {
	const char *name;
	uint32_t vendor;
	enum ibv_node_type node;
	enum ibv_transport_type transport;
	uint8_t link_layer;
	int connects;        /* has RC queue pairs, and rdma_cm finds it by an address */
	int reliable;        /* has RC queue pairs, whatever rdma_cm finds */
	int no_datagrams;    /* has no UD queue pairs */
	int max_sge;         /* as the kernel reports it: the smaller one of the two that follow */
	int send_sges, receive_sges, read_sges, max_inline;
	enum inlining inlining;
	int max_wr, max_srq;
	int windows;         /* what it announces: type 2B */
	int alloc_errno, bind_errno;
	enum resizing resizing;
	enum rounding depths, cqes;
	int kernel_poll;     /* polls an error by a system call */
	int kernel_post;     /* posts to a queue pair in error by a system call */
	int post_errno;      /* what posting to a queue pair in error returns, 0 if it is flushed */
	int post_knows;      /* since the library knows of the error, and not only of its own ibv_modify_qp */
	int early_errno;     /* what a send before RTS returns, 0 if it is taken; it waits there, whatever the adapter does with it */
	int reset_errno;     /* what a receive in RESET returns, 0 if it is taken */
	int fences_sends;    /* a fence counts for sends only */
	int silent;          /* refuses too many elements or requests without setting errno */
	int dedicated;       /* queue pairs with a doorbell register of their own, others lock one; 0 if there are no such locks */
	int flushes_done;    /* flushes all behind the last completion, what was done included */
	int blames_oldest;   /* reports an error of the first of those */
	int no_atomics;
	int reads_in, reads_out; /* under way, 16 if 0 */
	int version_1;       /* has GIDs of RoCE version 1 as well */
	int ports;           /* 1 if 0 */
	int lid;             /* on Ethernet */
	int modify_errno;    /* what modifying a queue pair returns when the firmware refuses it or does not answer; 0 if that is not known */
} personalities[] = {
#define ROCE .node = IBV_NODE_CA, .transport = IBV_TRANSPORT_IB, .link_layer = IBV_LINK_LAYER_ETHERNET, .connects = 1, .reliable = 1
#define IWARP .node = IBV_NODE_RNIC, .transport = IBV_TRANSPORT_IWARP, .link_layer = IBV_LINK_LAYER_ETHERNET, .connects = 1, .reliable = 1
#define INFINIBAND .node = IBV_NODE_CA, .transport = IBV_TRANSPORT_IB, .link_layer = IBV_LINK_LAYER_INFINIBAND, .reliable = 1
#define WINDOWS_WORK .windows = 1, .alloc_errno = -1, .bind_errno = -1
#define NO_WINDOWS .alloc_errno = EOPNOTSUPP, .bind_errno = EINVAL
	/* The ideal device: vendor id of rxe, so polls are quick ones. */
	{ .name = "", .vendor = 0xffffff, ROCE, .max_sge = 4, .send_sges = 4, .receive_sges = 4, .read_sges = 1, .max_inline = 8192,
	  .max_wr = DEPTH, .max_srq = 16, .alloc_errno = -1, .bind_errno = -1, .early_errno = EINVAL, .reset_errno = EINVAL },
	/* No family: less of everything than any default. */
	{ .name = "small", .vendor = 0xffffff, ROCE, .max_sge = 2, .send_sges = 3, .receive_sges = 2, .read_sges = 1, .max_inline = 48,
	  .max_wr = 16, NO_WINDOWS, .resizing = REFUSES },
	/* mlx5/mlx5.c: 16 doorbell registers, 4 of which need no lock (get_total_uuars, get_num_low_lat_uuars). Completions of a destroyed
	   queue pair go (cq.c, __mlx5_cq_clean), as on each stub. verbs.c rounds: mlx5_calc_sq_wq_size (max_post), mlx5_calc_rq_size,
	   create_cq (ncqe - 1); set_qp_operational_state takes no elements of a queue that is not ready. Limits are the firmware's; the
	   kernel's MLX5_SET_SGE_RD is 30 (main.c, MLX5_MAX_SGE_RD). */
#define MLX5_EARLY .early_errno = ENOMEM, .reset_errno = EINVAL, .modify_errno = EINVAL
	{ .name = "mlx5", .vendor = 0x2c9, ROCE, .max_sge = 30, .send_sges = 30, .receive_sges = 32, .read_sges = 30, .max_inline = 828,
	  .max_wr = 32768, .max_srq = 8388608, WINDOWS_WORK, .depths = POWER, .cqes = POWER_LESS_ONE, .dedicated = 4, .version_1 = 1,
	  MLX5_EARLY },
	/* The same on InfiniBand, with an IPoIB interface. */
	{ .name = "mlx5-ib", .vendor = 0x2c9, INFINIBAND, .connects = 1, .max_sge = 30, .send_sges = 30, .receive_sges = 32, .read_sges = 30,
	  .max_inline = 828, .max_wr = 32768, .max_srq = 8388608, WINDOWS_WORK, .depths = POWER, .cqes = POWER_LESS_ONE, .dedicated = 4, MLX5_EARLY },
	/* mlx4/mlx4.c has alloc_mw, qp.c binds type 2, cq.c cleans; verbs.c rounds (mlx4_create_qp_ex, create_cq). Limits are the
	   firmware's; no thread domains in its table. ConnectX-3 has two ports on one device. */
	{ .name = "mlx4", .vendor = 0x2c9, ROCE, .max_sge = 32, .send_sges = 32, .receive_sges = 32, .read_sges = 30, .max_inline = 832,
	  .max_wr = 16351, .max_srq = 65472, WINDOWS_WORK, .depths = POWER, .cqes = POWER_LESS_ONE, .version_1 = 1, .ports = 2,
	  .modify_errno = EINVAL },
	/* bnxt_re/verbs.c, bnxt_re_resize_cq; main.c has no alloc_mw: libibverbs' dummy answers EOPNOTSUPP. An error is given to the
	   oldest without a completion (bnxt_re_poll_err_scqe), and all behind it are flushed; bnxt_re_check_qp_limits refuses without an
	   errno; bnxt_re_create_cq takes twice as many entries. Atomics are for hosts whose PCIe has them: the kernel's ib_verbs.c,
	   bnxt_re_query_device, which also reports 6 elements of a read. */
	{ .name = "bnxt_re", .vendor = 0x14e4, ROCE, .max_sge = 6, .send_sges = 6, .receive_sges = 6, .read_sges = 6, .max_inline = 96,
	  .max_wr = 8191, .max_srq = 65536, .windows = 1, NO_WINDOWS, .resizing = UNMAPS, .cqes = TWICE, .silent = 1, .flushes_done = 1,
	  .blames_oldest = 1, .no_atomics = 1, .version_1 = 1, .modify_errno = EIO },
	/* irdma/user.h: 13 fragments, 101 bytes inline; uk.c, irdma_uk_cq_poll_cmpl, flushes from the tail of the queue on, which
	   completions move; uverbs.c, irdma_ucreate_qp, writes back what quanta of 32 bytes hold, less 258; irdma_upost_send asks the kernel
	   for a flush in error. The kernel's verbs.c, irdma_query_device, announces windows, but none of type 2, on this hardware;
	   irdma_query_port has LID 1; icrdma_hw.h has 13 elements of a read, 32 and 64 under way. */
#define E810 .max_sge = 13, .send_sges = 13, .receive_sges = 13, .read_sges = 13, .max_inline = 101, .max_wr = 4063, NO_WINDOWS, \
	.depths = QUANTA_4, .kernel_post = 1, .flushes_done = 1, .blames_oldest = 1, .no_atomics = 1, .reads_in = 32, .reads_out = 64, .lid = 1, \
	.modify_errno = ETIMEDOUT
	{ .name = "irdma-roce", .vendor = 0x8086, ROCE, E810 },
	{ .name = "irdma-iwarp", .vendor = 0x8086, IWARP, .no_datagrams = 1, E810 },
	/* irdma/i40iw_hw.h: 3 fragments, 48 bytes inline, 1 element of a read, and (2048 - 258) / 2 requests (I40IW_MAX_QP_WRS). */
	{ .name = "x722", .vendor = 0x8086, IWARP, .no_datagrams = 1, .max_sge = 3, .send_sges = 3, .receive_sges = 3, .read_sges = 1,
	  .max_inline = 48, .max_wr = 895, NO_WINDOWS, .resizing = REFUSES, .depths = QUANTA_2, .kernel_post = 1, .flushes_done = 1,
	  .blames_oldest = 1, .no_atomics = 1, .lid = 1, .modify_errno = ETIMEDOUT },
	/* erdma/erdma_verbs.h: 6 and 1; erdma_hw.h: 96 bytes inline; no resize_cq, create_srq and create_ah in erdma.c; erdma_verbs.c,
	   erdma_post_send and erdma_post_recv, return -EIO behind an ibv_modify_qp; erdma_create_cq rounds. Of the kernel, erdma_verbs.h:
	   1 element of a read, 128 under way. */
#define ERDMA .no_datagrams = 1, .max_sge = 1, .send_sges = 6, .receive_sges = 1, .read_sges = 1, .max_inline = 96, .max_wr = 8192, NO_WINDOWS, \
	.resizing = REFUSES, .cqes = POWER, .post_errno = -EIO, .reads_in = 128, .reads_out = 128, .modify_errno = ETIME
	{ .name = "erdma", .vendor = 0x1ded, IWARP, ERDMA },
	/* Linux 6.14: erdma_hw.h, ERDMA_PROTO_ROCEV2, with node type CA. */
	{ .name = "erdma-roce", .vendor = 0x1ded, ROCE, ERDMA },
	/* efa/verbs.c, create_qp: UD and SRD only; the kernel's node type is unspecified. */
	{ .name = "efa", .vendor = 0x1d0f, .node = IBV_NODE_UNSPECIFIED, .transport = IBV_TRANSPORT_UNSPECIFIED,
	  .link_layer = IBV_LINK_LAYER_UNSPECIFIED, .max_sge = 1, .send_sges = 2, .receive_sges = 1, .max_inline = 32, .max_wr = 4096, NO_WINDOWS,
	  .resizing = REFUSES },
	/* mana/qp.c, mana_create_qp, on an Ethernet device: raw packets. */
	{ .name = "mana", .vendor = 0x1414, ROCE, .connects = 0, .reliable = 0, .no_datagrams = 1, .max_sge = 1, .send_sges = 30, .receive_sges = 15,
	  .max_wr = 4096, .alloc_errno = -1, .bind_errno = EINVAL, .resizing = REFUSES },
	/* The same with an RNIC (mana_create_qp_rnic; Linux 6.10). wr.c never looks at IBV_SEND_INLINE, and nobody takes max_inline_data
	   back; it has no binding and no atomics, and takes nothing in error: EINVAL. Its limits are the firmware's; cq.c rounds. */
	{ .name = "mana-rc", .vendor = 0x1414, ROCE, .no_datagrams = 1, .max_sge = 15, .send_sges = 30, .receive_sges = 15, .read_sges = 15,
	  .max_inline = 1 << 30, .inlining = IGNORED, .max_wr = 4096, .alloc_errno = -1, .bind_errno = EINVAL, .resizing = REFUSES, .cqes = POWER,
	  .post_errno = EINVAL, .post_knows = 1, .early_errno = EINVAL, .reset_errno = EINVAL, .no_atomics = 1, .modify_errno = EPROTO },
	/* hns/hns_roce_u_hw_v2.c, hns_roce_flush_cqe; hns_roce_u_v2_post_send modifies a queue pair in error. HIP08 has 32 bytes inline, and
	   hns_roce_u_verbs.c, get_max_inline_data, grants what there is. Its windows are not announced as type 2. */
	{ .name = "hns", .vendor = 0x19e5, ROCE, .max_sge = 64, .send_sges = 64, .receive_sges = 64, .read_sges = 1, .max_inline = 32,
	  .inlining = LESS, .max_wr = 32768, .max_srq = 65536, NO_WINDOWS, .resizing = REFUSES, .depths = POWER, .cqes = POWER, .kernel_poll = 1,
	  .kernel_post = 1, .early_errno = EINVAL, .reset_errno = EINVAL, .version_1 = 1, .modify_errno = EBUSY },
	/* cxgb4/t4.h: 4 elements in a receive, 17 in a send, 272 bytes inline; qp.c, build_rdma_read: one in a read; c4iw_post_send and
	   c4iw_post_receive return -EINVAL in error; cq.c flushes from the last completion on (c4iw_flush_sq). dev.c has create_srq, which T6
	   with its firmware has and T5 has not, and no resize_cq; cq.c may modify a shared receive queue in a poll. c4iw_post_send looks at
	   the fence of sends only. */
#define CHELSIO .vendor = 0x1425, IWARP, .no_datagrams = 1, .max_sge = 4, .send_sges = 17, .receive_sges = 4, .read_sges = 1, \
	.max_inline = 272, .max_wr = 8190, NO_WINDOWS, .resizing = REFUSES, .cqes = SIXTEEN_LESS_TWO, .kernel_poll = 1, \
	.post_errno = -EINVAL, .post_knows = 1, .flushes_done = 1, .no_atomics = 1, .fences_sends = 1, .modify_errno = EIO
	{ .name = "cxgb4", CHELSIO, .max_srq = 256 },
	{ .name = "cxgb4-t5", CHELSIO },
	/* ionic/ionic_verbs.c: makes and binds windows, no shared receive queue and no resize_cq in its table; ionic_create_qp_ex writes back
	   masks, and strides of 512 bytes. The kernel's ionic_ibdev.c, ionic_query_device: type 2B, 8 elements (IONIC_SPEC_HIGH), 16 reads. */
	{ .name = "ionic", .vendor = 0x1dd8, ROCE, .max_sge = 8, .send_sges = 8, .receive_sges = 8, .read_sges = 8, .max_inline = 480,
	  .max_wr = 0xffff, WINDOWS_WORK, .resizing = REFUSES, .depths = POWER_LESS_ONE, .cqes = POWER, .early_errno = EINVAL, .reset_errno = EINVAL,
	  .modify_errno = EINVAL },
	/* qedr/rdma_common.h: 4 elements; roce_common.h: 256 bytes inline; no alloc_mw, no resize_cq and no create_ah in qelr_main.c;
	   qelr_post_send takes work in error. Atomics are for hosts whose PCIe has them. */
	{ .name = "qedr", .vendor = 0x1077, ROCE, .no_datagrams = 1, .max_sge = 4, .send_sges = 4, .receive_sges = 4, .read_sges = 4, .max_inline = 256,
	  .max_wr = 32767, .max_srq = 8192, NO_WINDOWS, .resizing = REFUSES, .cqes = POWER, .no_atomics = 1, .version_1 = 1,
	  .early_errno = -EINVAL, .reset_errno = -EINVAL, .modify_errno = EBUSY },
	/* hfi1 is InfiniBand; here no IPoIB interface gives it an address. */
	{ .name = "hfi1", .vendor = 0x1175, INFINIBAND, .max_sge = 96, .send_sges = 96, .receive_sges = 96, .read_sges = 96, .max_wr = 16351,
	  .max_srq = 1024, NO_WINDOWS },
}, *played = personalities;

static const struct personality *of_device(struct ibv_context *context);

static struct ibv_device devices[DEVICES] = {
	{ .node_type = IBV_NODE_CA, .transport_type = IBV_TRANSPORT_IB, .name = "stub0", .dev_name = "uverbs0",
	  .dev_path = "/sys/class/infiniband_verbs/uverbs0", .ibdev_path = "/sys/class/infiniband/stub0" },
	{ .node_type = IBV_NODE_RNIC, .transport_type = IBV_TRANSPORT_IWARP, .name = "stub1", .dev_name = "uverbs1",
	  .dev_path = "/sys/class/infiniband_verbs/uverbs1", .ibdev_path = "/sys/class/infiniband/stub1" } };
static struct ibv_context *contexts[DEVICES];
static int listed[DEVICES]; /* in how many lists a context is */
static int async_pipes[DEVICES][2];
static struct stub_qp *qps[MAX_QPS];
static uint32_t next_number = 1;

static const struct personality *of_device(struct ibv_context *context)
{
	return context->device == devices ? played : personalities;
}

/*
 * What stub0 is from now on: -1 if there is no such family. sysfs is where it is described, NULL for nowhere. Call it while the device is
 * away, so that nobody has what it was.
 */
EXPORT int stub_personality(const char *name, const char *sysfs)
{
	for (unsigned i = 0; i < sizeof(personalities) / sizeof(*personalities); i++)
		if (!strcmp(personalities[i].name, name)) {
			played = &personalities[i];
			devices[0].node_type = played->node;
			devices[0].transport_type = played->transport;
			snprintf(devices[0].ibdev_path, sizeof(devices[0].ibdev_path), "%s/stub0", sysfs);
			return 0;
		}
	return -1;
}

/* What the table says of a family; -1000 if that is nothing. */
EXPORT int stub_fact(const char *family, const char *fact)
{
	for (unsigned i = 0; i < sizeof(personalities) / sizeof(*personalities); i++) {
		const struct personality *is = &personalities[i];
#define FACT(field) if (!strcmp(is->name, family) && !strcmp(#field, fact)) return is->field
		FACT(vendor); FACT(node); FACT(no_datagrams); FACT(send_sges); FACT(receive_sges); FACT(read_sges); FACT(max_inline);
		FACT(max_wr); FACT(max_srq); FACT(windows); FACT(alloc_errno); FACT(resizing); FACT(dedicated); FACT(post_errno); FACT(no_atomics);
		FACT(reads_in); FACT(reads_out); FACT(version_1); FACT(ports); FACT(lid); FACT(modify_errno); FACT(flushes_done);
		FACT(early_errno); FACT(reset_errno); FACT(fences_sends); FACT(post_knows);
#undef FACT
	}
	return -1000;
}

static int modify_errno(void) { return played->modify_errno; }

/* System calls that polls have made. */
EXPORT int stub_kernel_polls(void) { return kernel_polls; }

/* System calls that posts to queue pairs in error have made. */
EXPORT int stub_kernel_posts(void) { return kernel_posts; }

static int ports_of(struct ibv_context *context) { return of_device(context)->ports ? of_device(context)->ports : 1; }
static const char *name_of(struct ibv_context *context) { return context->device->name; }
static struct stub_qp *qp_of(uint32_t number) { return qps[number % MAX_QPS]; }

/* Of the events of completion queues one gets lost after so many, as adapters lose interrupts; -1 for none. */
EXPORT void stub_lose_event(int after) { LOCKED(lost_event = after); }
EXPORT int stub_lost_event(void) { return lost_event < 0; }

/* Events that come later: of a completion queue, or of rdma_cm in order of their ids. */
#define LATER 1024
static struct { uint64_t due; struct ibv_cq *cq; struct rdma_cm_event *event; } later[LATER];
static int later_count;

static uint64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000ull + time.tv_nsec / 1000;
}

static void put_off(struct ibv_cq *cq, struct rdma_cm_event *event)
{
	if (later_count == LATER)
		abort();
	later[later_count].due = now() + draw() % 20000;
	later[later_count].cq = cq;
	later[later_count++].event = event;
}

static int is_put_off(struct rdma_cm_id *id)
{
	for (int i = 0; i < later_count; i++)
		if (later[i].event && later[i].event->id == id)
			return 1;
	return 0;
}

static void drop_later(int i) { memmove(&later[i], &later[i + 1], (--later_count - i) * sizeof(*later)); }

static void tell_of(struct ibv_cq *cq)
{
	if (write(((struct stub_channel *) cq->channel)->write_fd, &cq, sizeof(cq)) != sizeof(cq))
		abort();
}

static void push(struct ibv_cq *ibcq, struct ibv_wc wc)
{
	struct stub_cq *cq = (struct stub_cq *) ibcq;

	if (cq->tail - cq->head == CQ_DEPTH)
		abort();
	cq->ring[cq->tail++ % CQ_DEPTH] = wc;
	if (cq->armed && cq->base.channel) {
		cq->armed = 0;
		if (lost_event >= 0 && lost_event-- == 0)
			return;
		if (chance(LOST))
			return;
		if (chance(LATE)) {
			put_off(ibcq, NULL);
			return;
		}
		tell_of(ibcq);
		if (chance(TWICE_TOLD))
			tell_of(ibcq);
	}
}

/* 1 keeps a poll in such a system call until it is 0 again; after twenty seconds it is 2, and the poll returns. */
static volatile int poll_held;
EXPORT int stub_hold_kernel_polls(int hold) { int before = poll_held; poll_held = hold; return before; }

static int stub_poll_cq(struct ibv_cq *ibcq, int entries, struct ibv_wc *wc)
{
	struct stub_cq *cq = (struct stub_cq *) ibcq;
	int count = 0;

	pthread_mutex_lock(&lock);
	int error = failing("poll_cq", name_of(ibcq->context));
	if (cq->unmapped) /* the library reads memory that it has given back */
		abort();
	while (!error && count < entries && cq->head != cq->tail) {
		wc[count] = cq->ring[cq->head++ % CQ_DEPTH];
		if (wc[count].status && wc[count].status != IBV_WC_WR_FLUSH_ERR && of_device(ibcq->context)->kernel_poll) {
			kernel_polls++;
			for (int i = 0; poll_held == 1; i++) {
				usleep(1000);
				if (i == 20000)
					poll_held = 2;
			}
		}
		if (wc[count].wc_flags & (1u << 31)) { /* of a shared receive queue */
			wc[count].wc_flags &= ~(1u << 31);
			struct stub_qp *qp = qp_of(wc[count].qp_num);
			if (qp)
				((struct stub_srq *) qp->base.srq)->in_cqs--;
		}
		count++;
	}
	pthread_mutex_unlock(&lock);
	return error ? -error : count;
}

static int stub_req_notify_cq(struct ibv_cq *ibcq, int solicited_only)
{
	struct stub_cq *cq = (struct stub_cq *) ibcq;
	int error;

	LOCKED(error = failing("req_notify_cq", name_of(ibcq->context)); if (!error) cq->armed = 1);
	return error;
}

static struct ibv_wc completion(struct stub_qp *qp, struct stub_work *work, int status, int vendor)
{
	return (struct ibv_wc) { .wr_id = work->id, .status = status, .vendor_err = vendor, .opcode = work->opcode,
		.byte_len = work->bytes, .qp_num = qp->base.qp_num, .wc_flags = work->flags, .imm_data = work->immediate };
}

static int unanswered;

/* Of its data. */
static void forget(struct stub_work *work)
{
	free(work->inlined);
	work->inlined = NULL;
	unanswered -= work->answer != NULL;
	free(work->answer);
	work->answer = NULL;
}

/* Completes the first of a queue; what was not signalled completes without a word if all is well. */
static int complete_first(struct stub_qp *qp, struct stub_queue *queue, struct ibv_cq *cq, int status, int vendor)
{
	if (queue->head == queue->tail)
		return -1;
	struct stub_work *work = &queue->ring[queue->head++ % DEPTH];
	if ((int) (queue->begun - queue->head) < 0)
		queue->begun = queue->head;
	forget(work);
	if (work->signalled || status) {
		queue->reported = queue->head;
		send_completions += queue == &qp->sends;
		push(cq, completion(qp, work, status, vendor));
	}
	return 0;
}

/* Of a shared receive queue. */
static void push_shared(struct stub_qp *qp, struct stub_work *work, int status, int told_as)
{
	struct ibv_wc wc = completion(qp, work, status, 0);

	wc.wc_flags |= 1u << 31;
	((struct stub_srq *) qp->base.srq)->in_cqs++;
	if (told_as)
		wc.qp_num = told_as;
	push(qp->base.recv_cq, wc);
}

static void flush(struct stub_qp *qp)
{
	if (of_device(qp->base.context)->flushes_done)
		qp->sends.head = qp->sends.reported;
	while (!complete_first(qp, &qp->sends, qp->base.send_cq, IBV_WC_WR_FLUSH_ERR, 0))
		;
	while (!complete_first(qp, &qp->receives, qp->base.recv_cq, IBV_WC_WR_FLUSH_ERR, 0))
		;
}

/* Its error state: on a device nobody has to ask for that when an operation has failed. */
static void to_error(struct stub_qp *qp)
{
	qp->in_error = 1;
	if (!hold_flushes && !chance(FLUSH))
		flush(qp);
}

/* Since stub_reset: calls that post sends, how many of them took the lock of a doorbell register, and completions of sends. */
EXPORT int stub_send_posts(void) { return send_posts; }
EXPORT int stub_locked_doorbells(void) { return locked_doorbells; }
EXPORT int stub_send_completions(void) { return send_completions; }

/* Bindings that were posted, and invalidations. */
EXPORT int stub_binds(void) { return binds; }
EXPORT int stub_invalidations(void) { return invalidations; }

#include "link.c"

/* irdma/uk.c, irdma_uk_rdma_write, _rdma_read and _post_receive: a list of no elements counts as its first one unless it is NULL. */
static int reads_an_element_of_none(struct ibv_context *context, int num_sge, const struct ibv_sge *list)
{
	return of_device(context)->vendor == 0x8086 && !num_sge && list && (list[0].length || list[0].lkey);
}

/* What posting to a queue pair in error returns; 0 if it is flushed, by the kernel if the library asks that. */
static int refuses_in_error(struct stub_qp *qp)
{
	const struct personality *is = of_device(qp->base.context);

	if (qp->base.qp_type != IBV_QPT_RC || !(qp->base.state == IBV_QPS_ERR || (is->post_knows && qp->in_error)))
		return 0;
	kernel_posts += is->kernel_post;
	return is->post_errno;
}

static int stub_post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	static const int opcodes[] = { IBV_WC_RDMA_WRITE, IBV_WC_RDMA_WRITE, IBV_WC_SEND, IBV_WC_SEND, IBV_WC_RDMA_READ,
		IBV_WC_COMP_SWAP, IBV_WC_FETCH_ADD, IBV_WC_LOCAL_INV, IBV_WC_BIND_MW, IBV_WC_SEND };
	struct stub_qp *qp = (struct stub_qp *) ibqp;
	struct ibv_send_wr *joined = joins_with_next(ibqp->context, wr) ? wr : NULL;

	pthread_mutex_lock(&lock);
	int error = failing("post_send", name_of(ibqp->context));
	if (!error)
		error = refuses_in_error(qp);
	if (!error && is_before(qp, IBV_QPS_RTS))
		error = of_device(ibqp->context)->early_errno;
	send_posts++;
	locked_doorbells += qp->locks_doorbell;
	for (; wr && !error; wr = wr->next) {
		struct stub_work work = { .id = wr->wr_id, .opcode = opcodes[wr->opcode],
			.signalled = !!(wr->send_flags & IBV_SEND_SIGNALED) };
		for (int i = 0; i < wr->num_sge; i++)
			work.bytes += wr->sg_list[i].length;
		if (wr->opcode == IBV_WR_BIND_MW) {
			binds++;
			if (of_device(ibqp->context)->bind_errno > 0 || (error = failing("bind_mw", name_of(ibqp->context)))) {
				error = error ? error : of_device(ibqp->context)->bind_errno;
				break;
			}
			if ((error = bind_window(qp, wr)))
				break;
		}
		if (wr->opcode == IBV_WR_LOCAL_INV) {
			invalidations++;
			if ((error = failing("local_inv", name_of(ibqp->context))) || (error = invalidate_window(wr->invalidate_rkey)))
				break;
		}
		if (linked && (error = keep_send(&work, wr, of_device(ibqp->context)->inlining == IGNORED || wr == joined)))
			break;
		work.fenced = wr->send_flags & IBV_SEND_FENCE && !joined
			&& (!of_device(ibqp->context)->fences_sends || work.opcode == IBV_WC_SEND);
		if (wr->num_sge > (int) qp->send_sges
		    || (wr->opcode == IBV_WR_RDMA_READ && wr->num_sge > of_device(ibqp->context)->read_sges)
		    || ((work.opcode == IBV_WC_RDMA_WRITE || work.opcode == IBV_WC_RDMA_READ)
			&& reads_an_element_of_none(ibqp->context, wr->num_sge, wr->sg_list))) {
			error = EINVAL;
			break;
		}
		if (qp->sends.tail - qp->sends.head == DEPTH) {
			error = ENOMEM;
			break;
		}
		qp->sends.ring[qp->sends.tail++ % DEPTH] = work;
		if (qp->in_error && !hold_flushes)
			complete_first(qp, &qp->sends, ibqp->send_cq, IBV_WC_WR_FLUSH_ERR, 0);
		else if (linked && ibqp->qp_type == IBV_QPT_RC && chance(WORK))
			continue; /* by the device's thread */
		else if (linked && ibqp->qp_type == IBV_QPT_RC)
			carry(qp);
		else if (!hold_sends && !is_before(qp, IBV_QPS_RTS))
			complete_first(qp, &qp->sends, ibqp->send_cq, 0, 0);
	}
	if (error)
		*bad = wr;
	pthread_mutex_unlock(&lock);
	return error;
}

static int stub_post_recv(struct ibv_qp *ibqp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct stub_qp *qp = (struct stub_qp *) ibqp;

	pthread_mutex_lock(&lock);
	int error = failing("post_recv", name_of(ibqp->context));
	if (!error)
		error = refuses_in_error(qp);
	if (!error && is_before(qp, IBV_QPS_INIT))
		error = of_device(ibqp->context)->reset_errno;
	for (struct ibv_recv_wr *each = wr; each && !error; each = each->next)
		if (each->num_sge > (int) qp->receive_sges
		    || reads_an_element_of_none(ibqp->context, each->num_sge, each->sg_list))
			error = EINVAL;
	if (error) {
		*bad = wr;
		pthread_mutex_unlock(&lock);
		return error;
	}
	for (; wr; wr = wr->next) {
		struct stub_work *work = &qp->receives.ring[qp->receives.tail++ % DEPTH];
		*work = (struct stub_work) { .id = wr->wr_id, .opcode = IBV_WC_RECV, .signalled = 1 };
		if (linked)
			keep_list(work, wr->num_sge, wr->sg_list);
		if (qp->in_error && !hold_flushes)
			complete_first(qp, &qp->receives, ibqp->recv_cq, IBV_WC_WR_FLUSH_ERR, 0);
	}
	if (linked)
		carry(existing(qp->peer));
	pthread_mutex_unlock(&lock);
	return 0;
}

static int stub_post_srq_recv(struct ibv_srq *ibsrq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct stub_srq *srq = (struct stub_srq *) ibsrq;
	int error;

	LOCKED(error = failing("post_srq_recv", name_of(ibsrq->context));
	       if (error)
		       *bad = wr;
	       for (; wr && !error; wr = wr->next) {
		       struct stub_work *work = &srq->ring[srq->tail++ % SRQ_DEPTH];
		       *work = (struct stub_work) { .id = wr->wr_id, .opcode = IBV_WC_RECV };
		       if (linked)
			       keep_list(work, wr->num_sge, wr->sg_list);
	       }
	       for (int i = 0; linked && !error && i < MAX_QPS; i++)
		       if (qps[i] && qps[i]->base.srq == ibsrq)
			       carry(existing(qps[i]->peer)));
	return error;
}

/* ---- what the peer, the device and the network do ---- */

/* An asynchronous event of a queue pair. */
static void async(int device, int type, struct stub_qp *qp)
{
	struct ibv_async_event event = { .event_type = type, .element.qp = &qp->base };

	if (write(async_pipes[device][1], &event, sizeof(event)) != sizeof(event))
		abort();
}

/* The queue pair that was made last, whether one is there, and how many receives it, or its shared queue, has. */
EXPORT int stub_last_number(void) { return next_number - 1; }
EXPORT int stub_exists(int number) { return !!qp_of(number); }
EXPORT int stub_receives(int number)
{
	struct stub_qp *qp = qp_of(number);
	struct stub_srq *srq = (struct stub_srq *) qp->base.srq;

	return srq ? srq->tail - srq->head : qp->receives.tail - qp->receives.head;
}

/* Whether the next receive of a queue pair makes an event. */
EXPORT int stub_is_armed(int number)
{
	int armed;

	LOCKED(armed = ((struct stub_cq *) qp_of(number)->base.recv_cq)->armed);
	return armed;
}

/* A message comes in; told as of another queue pair if its number is not 0. */
EXPORT int stub_receive(int number, int bytes, int told_as)
{
	int result = 0;

	pthread_mutex_lock(&lock);
	struct stub_qp *qp = qp_of(number);
	struct stub_srq *srq = qp ? (struct stub_srq *) qp->base.srq : NULL;
	if (!qp || (srq && srq->head == srq->tail)) {
		result = -1;
	} else if (srq) {
		struct stub_work *work = &srq->ring[srq->head++ % SRQ_DEPTH];
		work->bytes = bytes;
		push_shared(qp, work, 0, told_as);
	} else {
		qp->receives.ring[qp->receives.head % DEPTH].bytes = bytes;
		result = complete_first(qp, &qp->receives, qp->base.recv_cq, 0, 0);
	}
	pthread_mutex_unlock(&lock);
	return result;
}

/* The first send that is out completes; a failed one takes the queue pair to its error state. */
EXPORT int stub_complete(int number, int status, int vendor)
{
	int result = -1;

	LOCKED(struct stub_qp *qp = qp_of(number);
	       if (qp) {
		       result = complete_first(qp, &qp->sends, qp->base.send_cq, status, vendor);
		       if (status)
			       qp->in_error = 1;
	       });
	return result;
}

/* A completion with any id. */
EXPORT void stub_stray(int number, uint64_t id)
{
	struct stub_qp *qp = qp_of(number);
	struct stub_work work = { .id = id };

	LOCKED(push(qp->base.send_cq, completion(qp, &work, 0, 0)));
}

/* Keeps what a queue pair in its error state has, until it is let go. */
EXPORT void stub_hold_flushes(int hold)
{
	LOCKED(hold_flushes = hold; for (int i = 0; !hold && i < MAX_QPS; i++) if (qps[i] && qps[i]->in_error) flush(qps[i]));
}

/* ---- libibverbs ---- */

EXPORT struct ibv_device **ibv_get_device_list(int *count)
{
	struct ibv_device **list;

	pthread_mutex_lock(&lock);
	FAIL_NULL("");
	list = calloc(DEVICES + 1, sizeof(*list));
	*count = 0;
	for (int i = 0; i < DEVICES; i++)
		if (!removed[i])
			list[(*count)++] = &devices[i];
	pthread_mutex_unlock(&lock);
	return list;
}

EXPORT void ibv_free_device_list(struct ibv_device **list) { free(list); }
EXPORT const char *ibv_get_device_name(struct ibv_device *d) { return d->name; }
EXPORT int ibv_get_device_index(struct ibv_device *d) { return d - devices; }
EXPORT __be64 ibv_get_device_guid(struct ibv_device *d) { return htobe64(0x020456fffe789abcULL + (d - devices)); }

static int stub_query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr, size_t size)
{
	pthread_mutex_lock(&lock);
	int error = failing("ibv_query_port", name_of(context));
	if (error) {
		pthread_mutex_unlock(&lock);
		return error;
	}
	if (port < 1 || port > ports_of(context)) {
		pthread_mutex_unlock(&lock);
		return EINVAL;
	}
	memset(attr, 0, size);
	attr->state = ports_down ? IBV_PORT_DOWN : IBV_PORT_ACTIVE;
	attr->max_msg_sz = 1u << 31;
	attr->link_layer = of_device(context)->link_layer;
	attr->active_mtu = IBV_MTU_1024;
	attr->max_mtu = IBV_MTU_4096;
	attr->active_width = 2; /* 4 lanes of 25 Gb/s */
	attr->active_speed = 32;
	attr->gid_tbl_len = GIDS;
	attr->lid = attr->link_layer == IBV_LINK_LAYER_INFINIBAND ? 7 : of_device(context)->lid;
	pthread_mutex_unlock(&lock);
	return 0;
}

/*
 * On RoCE each port has a GID of its link-local address first, then one of its IPv4 address 10.0.N.1, of the second port 10.0.N.129, and one
 * of a VLAN of another network namespace: of version 1, where there is that, before version 2 (core/roce_gid_mgmt.c, ib_cache_gid_set_default_gid).
 * On iWARP it is the MAC address, and of no version (erdma_query_gid, qedr_iw_query_gid).
 */
EXPORT ssize_t _ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries, size_t max,
				    uint32_t flags, size_t size)
{
	const struct personality *is = of_device(context);
	size_t count = 0;

	for (int port = 1; port <= ports_of(context); port++)
		for (int index = 0, address = 0; address < 3; address++)
			for (int version = is->version_1 ? 1 : 2; version <= 2; version++) {
				struct ibv_gid_entry *entry = &entries[count];
				if (is->link_layer == IBV_LINK_LAYER_INFINIBAND || is->transport == IBV_TRANSPORT_IWARP) {
					address = 2;
					version = 2;
				}
				if (count == max)
					return -EINVAL;
				memset(entry, 0, sizeof *entry);
				entry->gid_index = index++;
				entry->port_num = port;
				entry->gid_type = version == 1 ? IBV_GID_TYPE_ROCE_V1 : IBV_GID_TYPE_ROCE_V2;
				count++;
				if (is->transport == IBV_TRANSPORT_IWARP) {
					entry->gid_type = IBV_GID_TYPE_IB;
					memcpy(entry->gid.raw, "\x02\x04\x56\x78\x9a\xbc", 6);
				} else if (!address || is->link_layer == IBV_LINK_LAYER_INFINIBAND) { /* names the port, not an IP address */
					entry->gid_type = is->link_layer == IBV_LINK_LAYER_INFINIBAND ? IBV_GID_TYPE_IB : entry->gid_type;
					entry->gid.global.subnet_prefix = htobe64(0xfe80000000000000ULL);
					entry->gid.global.interface_id = htobe64(0x020456fffe789abcULL + port);
				} else {
					entry->ndev_ifindex = address == 2 ? INT32_MAX : 0;
					entry->gid.raw[10] = entry->gid.raw[11] = 0xff;
					entry->gid.raw[12] = 10;
					entry->gid.raw[13] = address == 2;
					entry->gid.raw[14] = context->device - devices;
					entry->gid.raw[15] = port == 1 ? 1 : 129;
				}
			}
	return count;
}

EXPORT int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port, uint32_t index, struct ibv_gid_entry *entry,
			     uint32_t flags, size_t size)
{
	struct ibv_gid_entry all[2 * GIDS];
	ssize_t count = _ibv_query_gid_table(context, all, 2 * GIDS, flags, size);

	for (int i = 0; i < count; i++)
		if (all[i].port_num == port && all[i].gid_index == index) {
			*entry = all[i];
			return 0;
		}
	return ENODATA;
}

static struct ibv_mw *stub_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type);
static int stub_dealloc_mw(struct ibv_mw *mw);
static struct ibv_pd *stub_alloc_parent_domain(struct ibv_context *context, struct ibv_parent_domain_init_attr *attr);
static struct ibv_td *stub_alloc_td(struct ibv_context *context, struct ibv_td_init_attr *attr);
static int stub_dealloc_td(struct ibv_td *td);

/* Contexts stay open as librdmacm keeps them. Under the lock. */
#ifdef LINKED
static void linked_operations(struct ibv_context *context);
#else
#define linked_operations(context)
#endif

static struct ibv_context *context_of(int i)
{
	if (contexts[i])
		return contexts[i];
	int error = failing("ibv_open_device", devices[i].name);
	if (error) {
		errno = error;
		return NULL;
	}
	struct verbs_context *verbs = calloc(1, sizeof(*verbs));
	struct ibv_context *context = &verbs->context;

	if (pipe2(async_pipes[i], O_CLOEXEC))
		abort();
	context->device = &devices[i];
	verbs->sz = sizeof(*verbs);
	verbs->query_port = stub_query_port;
	if (of_device(context)->dedicated) {
		verbs->alloc_parent_domain = stub_alloc_parent_domain;
		verbs->alloc_td = stub_alloc_td;
		verbs->dealloc_td = stub_dealloc_td;
	}
	context->abi_compat = (void *) UINTPTR_MAX;
	context->num_comp_vectors = 64;
	context->async_fd = async_pipes[i][0];
	context->ops.poll_cq = stub_poll_cq;
	context->ops.req_notify_cq = stub_req_notify_cq;
	context->ops.post_send = stub_post_send;
	context->ops.post_recv = stub_post_recv;
	context->ops.post_srq_recv = stub_post_srq_recv;
	context->ops.alloc_mw = stub_alloc_mw;
	context->ops.dealloc_mw = stub_dealloc_mw;
	linked_operations(context);
	return contexts[i] = context;
}

EXPORT struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	struct ibv_context *context;

	LOCKED(context = context_of(device - devices));
	return context;
}

EXPORT int ibv_close_device(struct ibv_context *context) { return 0; }

EXPORT void stub_remove(int device, int away) { LOCKED(removed[device] = away); }

/* Whatever is left on a device belongs to a context of the past from now on, which nobody closes. While the device is away. */
EXPORT void stub_abandon(int device) { LOCKED(contexts[device] = NULL; listed[device] = 0); }
EXPORT int stub_is_open(int device) { return !!contexts[device]; }

/* Something happens to a device. */
EXPORT void stub_async_device(int device, int type) { LOCKED(async(device, type, NULL)); }

/* An error of the completion queue that a queue pair's receives complete on, or of its shared receive queue: an adapter stops using it. */
EXPORT int stub_async_queue(int number, int type)
{
	struct ibv_async_event event = { .event_type = type };
	int device = -1;

	LOCKED(struct stub_qp *qp = qp_of(number);
	       if (qp) {
		       device = qp->base.context->device - devices;
		       if (type == IBV_EVENT_CQ_ERR)
			       event.element.cq = qp->base.recv_cq;
		       else
			       event.element.srq = qp->base.srq;
		       if (write(async_pipes[device][1], &event, sizeof(event)) != sizeof(event))
			       abort();
	       });
	return device;
}

/* An event of a port. */
EXPORT void stub_async_port(int device, int type, int port)
{
	struct ibv_async_event event = { .event_type = type, .element.port_num = port };

	LOCKED(if (write(async_pipes[device][1], &event, sizeof(event)) != sizeof(event)) abort());
}

/* The first receive of a queue pair comes back, flushed. */
EXPORT int stub_flush_receive(int number)
{
	int result;

	LOCKED(struct stub_qp *qp = qp_of(number);
	       result = complete_first(qp, &qp->receives, qp->base.recv_cq, IBV_WC_WR_FLUSH_ERR, 0));
	return result;
}

/* An event of a queue pair. */
EXPORT void stub_async_qp(int number, int type)
{
	LOCKED(struct stub_qp *qp = qp_of(number); if (qp) async(qp->base.context->device - devices, type, qp));
}

static int asyncs_taken;

EXPORT int stub_asyncs_taken(void) { return asyncs_taken; }

EXPORT int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
	int error = 0;

	if (read(context->async_fd, event, sizeof(*event)) != sizeof(*event))
		return -1;
	LOCKED(asyncs_taken++; error = failing(__func__, name_of(context)));
	if (error) {
		errno = error;
		return -1;
	}
	return 0;
}

EXPORT void ibv_ack_async_event(struct ibv_async_event *event) { }

EXPORT int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	pthread_mutex_lock(&lock);
	FAIL_ERRNO(name_of(context));
	const struct personality *is = of_device(context);
	memset(attr, 0, sizeof(*attr));
	attr->vendor_id = is->vendor;
	attr->max_qp = MAX_QPS;
	attr->max_qp_wr = is->max_wr;
	attr->max_cqe = CQ_DEPTH - 1;
	attr->max_sge = is->max_sge;
	attr->max_sge_rd = is->read_sges;
	attr->max_qp_rd_atom = is->reads_in ? is->reads_in : 16;
	attr->max_qp_init_rd_atom = is->reads_out ? is->reads_out : 16;
	attr->max_srq = is->max_srq;
	attr->max_srq_wr = is->max_srq ? 4096 : 0;
	attr->max_srq_sge = is->max_srq ? is->max_sge : 0;
	attr->device_cap_flags = is->windows ? IBV_DEVICE_MEM_WINDOW_TYPE_2B : 0;
	attr->max_mw = is->windows ? 8192 : 0;
	attr->atomic_cap = is->no_atomics ? IBV_ATOMIC_NONE : IBV_ATOMIC_HCA;
	attr->phys_port_cnt = ports_of(context);
	pthread_mutex_unlock(&lock);
	return 0;
}

#define MAKE(type, device) ({ struct type *made; pthread_mutex_lock(&lock); FAIL_NULL(device); \
	made = calloc(1, sizeof(*made)); counted(#type, 1); made; })
#define UNMAKE(type, object) do { counted(#type, -1); free(object); pthread_mutex_unlock(&lock); return 0; } while (0)
#define DONE(pointer) do { pthread_mutex_unlock(&lock); return pointer; } while (0)

EXPORT struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
	struct stub_pd *pd = MAKE(stub_pd, name_of(context));
	pd->base.context = context;
	DONE(&pd->base);
}

static struct ibv_pd *stub_alloc_parent_domain(struct ibv_context *context, struct ibv_parent_domain_init_attr *attr)
{
	struct stub_pd *pd = MAKE(stub_pd, name_of(context));
	pd->base.context = context;
	pd->td = attr->td;
	pd->of = attr->pd;
	DONE(&pd->base);
}

/* Only mlx5 among those that are played has them: mlx5/verbs.c, mlx5_alloc_td. */
static struct ibv_td *stub_alloc_td(struct ibv_context *context, struct ibv_td_init_attr *attr)
{
	struct ibv_td *td = MAKE(ibv_td, name_of(context));
	td->context = context;
	thread_domains++;
	DONE(td);
}

static int stub_dealloc_td(struct ibv_td *td) { pthread_mutex_lock(&lock); FAIL_ERRNO(name_of(td->context)); UNMAKE(ibv_td, td); }

EXPORT int ibv_dealloc_pd(struct ibv_pd *pd) { pthread_mutex_lock(&lock); FAIL_ERRNO(name_of(pd->context)); UNMAKE(stub_pd, pd); }

EXPORT struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	static uint32_t key = 0x100;
	struct ibv_mr *mr = MAKE(ibv_mr, name_of(pd->context));
	mr->context = pd->context;
	mr->pd = pd;
	mr->addr = addr;
	mr->length = length;
	do
		key++;
	while (regions[key % REGIONS].mr);
	mr->lkey = key;
	mr->rkey = key | REGION_KEY;
	regions[key % REGIONS].mr = mr;
	regions[key % REGIONS].access = access;
	DONE(mr);
}

/* As libibverbs does for optional flags, which kernels that do not know them never see. */
EXPORT struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned access)
{
	int error = 0;

	LOCKED(if (access & IBV_ACCESS_RELAXED_ORDERING && !(error = failing("relaxed", name_of(pd->context)))) relaxed++);
	if (error) {
		errno = error;
		return NULL;
	}
	return ibv_reg_mr(pd, addr, length, access);
}

/* Regions that were registered for relaxed ordering since stub_reset, and thread domains that were made ever. */
EXPORT int stub_thread_domains(void) { return thread_domains; }
EXPORT int stub_relaxed(void) { return relaxed; }

EXPORT int ibv_dereg_mr(struct ibv_mr *mr)
{
	pthread_mutex_lock(&lock);
	FAIL_ERRNO(name_of(mr->context));
	for (int i = 0; i < WINDOWS; i++)
		if (windows[i].mw && windows[i].mr == mr) { /* as rxe_dereg_mr */
			pthread_mutex_unlock(&lock);
			return EINVAL;
		}
	regions[mr->lkey % REGIONS].mr = NULL;
	UNMAKE(ibv_mr, mr);
}

static struct ibv_mw *stub_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	static uint32_t key = 0x1200;
	if (of_device(pd->context)->alloc_errno > 0) {
		errno = of_device(pd->context)->alloc_errno;
		return NULL;
	}
	struct ibv_mw *mw = MAKE(ibv_mw, name_of(pd->context));
	mw->context = pd->context;
	mw->pd = pd;
	mw->type = type;
	mw->rkey = key += 0x100;
	for (int i = 0; i < WINDOWS; i++)
		if (!windows[i].mw) {
			windows[i] = (struct window) { .mw = mw, .key = mw->rkey };
			break;
		}
	DONE(mw);
}

static int stub_dealloc_mw(struct ibv_mw *mw)
{
	pthread_mutex_lock(&lock);
	FAIL_ERRNO(name_of(mw->context));
	for (int i = 0; i < WINDOWS; i++)
		if (windows[i].mw == mw)
			windows[i].mw = NULL;
	UNMAKE(ibv_mw, mw);
}

EXPORT struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
	int fds[2];
	struct stub_channel *channel = MAKE(stub_channel, name_of(context));
	if (pipe2(fds, O_CLOEXEC))
		abort();
	channel->base.context = context;
	channel->base.fd = fds[0];
	channel->write_fd = fds[1];
	DONE(&channel->base);
}

EXPORT int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
	pthread_mutex_lock(&lock);
	FAIL_ERRNO(name_of(channel->context));
	syscall(SYS_close, channel->fd);
	syscall(SYS_close, ((struct stub_channel *) channel)->write_fd);
	UNMAKE(stub_channel, channel);
}

/* Of the completion queue that was made last. */
static int last_vector;
EXPORT int stub_last_vector(void) { return last_vector; }

static int power_of_two(int least)
{
	int power = 1;

	while (power < least)
		power *= 2;
	return power;
}

/* As many as the driver makes of so many; irdma/defs.h reserves 258 quanta of sends, and 1 of receives (IRDMA_SQ_RSVD, IRDMA_RQ_RSVD). */
static int rounded(enum rounding how, int least, int reserved)
{
	switch (how) {
	case POWER: return power_of_two(least);
	case POWER_LESS_ONE: return power_of_two(least + 1) - 1;
	case QUANTA_4: return (power_of_two(least * 4 + reserved) - reserved) / 4;
	case QUANTA_2: return (power_of_two(least * 2 + reserved) - reserved) / 2;
	case TWICE: return 2 * least;
	case SIXTEEN_LESS_TWO: return (least + 2 + 15) / 16 * 16 - 2;
	default: return least;
	}
}

EXPORT struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context, struct ibv_comp_channel *channel, int vector)
{
	struct stub_cq *cq = MAKE(stub_cq, name_of(context));
	cq->base.context = context;
	cq->base.channel = channel;
	cq->base.cq_context = cq_context;
	cq->base.cqe = rounded(of_device(context)->cqes, cqe, 0);
	last_vector = vector;
	DONE(&cq->base);
}

EXPORT int ibv_resize_cq(struct ibv_cq *cq, int cqe)
{
	pthread_mutex_lock(&lock);
	int error = failing(__func__, name_of(cq->context));
	enum resizing how = of_device(cq->context)->resizing;
	if (!error && how != RESIZES)
		error = how == REFUSES ? EOPNOTSUPP : ENOMEM;
	if (error && how == UNMAPS)
		((struct stub_cq *) cq)->unmapped = 1;
	if (!error)
		cq->cqe = cqe;
	DONE(error);
}

/* What nobody has read yet of a queue is gone with it: core/uverbs_main.c, ib_uverbs_release_ucq. */
static void forget_events(struct ibv_cq *cq)
{
	struct ibv_cq *others[256], *each;
	struct pollfd ready = { .fd = cq->channel ? cq->channel->fd : -1, .events = POLLIN };
	int count = 0;

	for (int i = later_count - 1; i >= 0; i--)
		if (later[i].cq == cq)
			drop_later(i);
	while (count < 256 && poll(&ready, 1, 0) == 1 && read(ready.fd, &each, sizeof(each)) == sizeof(each))
		if (each != cq)
			others[count++] = each;
	for (int i = 0; i < count; i++)
		tell_of(others[i]);
}

EXPORT int ibv_destroy_cq(struct ibv_cq *cq)
{
	pthread_mutex_lock(&lock);
	FAIL_ERRNO(name_of(cq->context));
	if (((struct stub_cq *) cq)->events) /* libibverbs waits for ever here */
		DONE(EDEADLK);
	forget_events(cq);
	UNMAKE(stub_cq, cq);
}

EXPORT int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context)
{
	pthread_mutex_lock(&lock);
	FAIL_MINUS_ONE(name_of(channel->context));
	pthread_mutex_unlock(&lock);
	if (read(channel->fd, cq, sizeof(*cq)) != sizeof(*cq))
		return -1;
	*cq_context = (*cq)->cq_context;
	LOCKED(((struct stub_cq *) *cq)->events++);
	return 0;
}

EXPORT void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int count) { LOCKED(((struct stub_cq *) cq)->events -= count); }

EXPORT struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	if (!of_device(pd->context)->max_srq) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	struct stub_srq *srq = MAKE(stub_srq, name_of(pd->context));
	srq->base.context = pd->context;
	srq->base.pd = pd;
	DONE(&srq->base);
}

EXPORT int ibv_destroy_srq(struct ibv_srq *srq) { pthread_mutex_lock(&lock); FAIL_ERRNO(name_of(srq->context)); UNMAKE(stub_srq, srq); }

EXPORT struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	const struct personality *is = of_device(pd->context);
	struct ibv_qp_cap *cap = &attr->cap;
	int all = 0, sharing = 0;
	if ((attr->qp_type == IBV_QPT_RC && !is->reliable) || (attr->qp_type == IBV_QPT_UD && is->no_datagrams)) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	int is_over = (int) cap->max_send_sge > is->send_sges || (!attr->srq && (int) cap->max_recv_sge > is->receive_sges) || (is != personalities
		&& ((int) cap->max_send_wr > is->max_wr || (!attr->srq && (int) cap->max_recv_wr > is->max_wr)));
	if (is_over || ((int) cap->max_inline_data > is->max_inline && is->inlining == REFUSED)) {
		errno = is_over && is->silent ? EAGAIN : EINVAL; /* whatever was there last: of a channel without an event */
		return NULL;
	}
	struct stub_qp *qp = MAKE(stub_qp, name_of(pd->context));
	for (int i = 0; i < MAX_QPS; i++) {
		all += qps[i] != NULL;
		sharing += qps[i] && qps[i]->base.context == pd->context && !((struct stub_pd *) qps[i]->base.pd)->td;
	}
	if (all == MAX_QPS) {
		counted("stub_qp", -1);
		free(qp);
		pthread_mutex_unlock(&lock);
		errno = ENOMEM;
		return NULL;
	}
	qp->locks_doorbell = is->dedicated && sharing >= is->dedicated && !((struct stub_pd *) pd)->td;
	cap->max_send_wr = rounded(is->depths, cap->max_send_wr, 258);
	if (!attr->srq)
		cap->max_recv_wr = rounded(is->depths, cap->max_recv_wr, 1);
	else if (is->vendor == 0x8086) { /* irdma/uverbs.c, irdma_ucreate_qp */
		cap->max_recv_sge = is->receive_sges;
		cap->max_recv_wr = 1;
	}
	if (is->inlining == LESS && cap->max_inline_data)
		cap->max_inline_data = power_of_two(cap->max_inline_data) < is->max_inline ? power_of_two(cap->max_inline_data) : is->max_inline;
	qp->send_sges = cap->max_send_sge;
	qp->receive_sges = cap->max_recv_sge;
	qp->base.context = pd->context;
	qp->base.pd = pd;
	qp->base.send_cq = attr->send_cq;
	qp->base.recv_cq = attr->recv_cq;
	qp->base.srq = attr->srq;
	qp->base.qp_type = attr->qp_type;
	while (qps[next_number % MAX_QPS])
		next_number++;
	qp->base.qp_num = next_number++;
	qps[qp->base.qp_num % MAX_QPS] = qp;
	DONE(&qp->base);
}

/* What a queue pair was last told to tell its peer; -1 for nothing. */
static int min_rnr_timer = -1;
EXPORT int stub_min_rnr_timer(void) { return min_rnr_timer; }

/* As queue pairs were last modified, or for the timeout as rdma_cm was last told; -1 for never. */
static int pkey_index = -1, service_level = -1, ack_timeout = -1;
EXPORT int stub_pkey_index(void) { return pkey_index; }
EXPORT int stub_service_level(void) { return service_level; }
EXPORT int stub_ack_timeout(void) { int before = ack_timeout; ack_timeout = -1; return before; }

/*
 * The steps of queue pairs over InfiniBand and RoCE with the attributes that each takes, and may take besides, as far as they concern this
 * library: the kernel's core/verbs.c, qp_state_table. Any state goes to RESET, and any but RESET to ERR. Drivers refuse the others with
 * EINVAL (ib_modify_qp_is_ok); mana's leaves that to the firmware.
 */
static const struct { enum ibv_qp_type type; enum ibv_qp_state from, to; int takes, may; } steps[] = {
	{ IBV_QPT_RC, IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, 0 },
	{ IBV_QPT_RC, IBV_QPS_INIT, IBV_QPS_INIT, 0, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS },
	{ IBV_QPT_RC, IBV_QPS_INIT, IBV_QPS_RTR,
	  IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
	  IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX },
	{ IBV_QPT_RC, IBV_QPS_RTR, IBV_QPS_RTS,
	  IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC,
	  IBV_QP_CUR_STATE | IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER | IBV_QP_PATH_MIG_STATE },
	{ IBV_QPT_RC, IBV_QPS_RTS, IBV_QPS_RTS, 0,
	  IBV_QP_CUR_STATE | IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER | IBV_QP_PATH_MIG_STATE },
	{ IBV_QPT_UD, IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY, 0 },
	{ IBV_QPT_UD, IBV_QPS_INIT, IBV_QPS_INIT, 0, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY },
	{ IBV_QPT_UD, IBV_QPS_INIT, IBV_QPS_RTR, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY },
	{ IBV_QPT_UD, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_SQ_PSN, IBV_QP_CUR_STATE | IBV_QP_QKEY },
	{ IBV_QPT_UD, IBV_QPS_RTS, IBV_QPS_RTS, 0, IBV_QP_CUR_STATE | IBV_QP_QKEY },
};

/*
 * Whether a driver takes a step. On iWARP it is the kernel that connects: before that nothing goes to RTS, and after it nothing back
 * (irdma/verbs.c, irdma_modify_qp; cxgb4/qp.c, c4iw_modify_qp). cxgb4's does not know RTR, and takes nothing but the way to its idle state
 * in error. Of erdma's that is not confirmed.
 */
static int takes_step(struct stub_qp *qp, enum ibv_qp_state to, int mask)
{
	enum ibv_qp_state from = qp->in_error ? IBV_QPS_ERR : qp->base.state;

	if (is_iwarp(qp)) {
		uint32_t vendor = of_device(qp->base.context)->vendor;
		if ((vendor != 0x8086 && vendor != 0x1425) || (vendor == 0x1425 && to == IBV_QPS_RTR))
			return 1;
		if (qp->in_error && vendor == 0x1425)
			return to == IBV_QPS_ERR || to == IBV_QPS_RESET;
		return to == IBV_QPS_RTS ? qp->connected && !qp->in_error : !qp->connected || to > IBV_QPS_RTS || to == IBV_QPS_RESET;
	}
	if (to == IBV_QPS_RESET || (to == IBV_QPS_ERR && from != IBV_QPS_RESET))
		return !(mask & ~IBV_QP_STATE);
	for (unsigned i = 0; i < sizeof(steps) / sizeof(*steps); i++)
		if (steps[i].type == qp->base.qp_type && steps[i].from == from && steps[i].to == to)
			return (mask & steps[i].takes) == steps[i].takes && !(mask & ~(steps[i].takes | steps[i].may | IBV_QP_STATE));
	return 0;
}

/* It is in another state, and does what it could not do before. */
static void to_state(struct stub_qp *qp, enum ibv_qp_state state)
{
	int was_ready = !is_before(qp, IBV_QPS_RTS);

	qp->base.state = state;
	if (state == IBV_QPS_ERR) {
		to_error(qp);
		last_told(qp);
	} else if (linked && !qp->in_error) {
		carry(existing(qp->peer));
		carry(qp);
	} else if (!was_ready && state == IBV_QPS_RTS && !hold_sends && !qp->in_error) {
		while (!complete_first(qp, &qp->sends, qp->base.send_cq, 0, 0))
			;
	}
}

EXPORT int ibv_modify_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int mask)
{
	struct stub_qp *qp = (struct stub_qp *) ibqp;
	const struct personality *is = of_device(ibqp->context);
	enum ibv_qp_state to = mask & IBV_QP_STATE ? attr->qp_state : ibqp->state;

	pthread_mutex_lock(&lock);
	FAIL_ERRNO(name_of(ibqp->context));
	if (!takes_step(qp, to, mask))
		DONE(is->vendor == 0x1414 ? is->modify_errno : EINVAL);
	if (mask & IBV_QP_MIN_RNR_TIMER)
		min_rnr_timer = attr->min_rnr_timer;
	if (mask & IBV_QP_PKEY_INDEX)
		pkey_index = attr->pkey_index;
	if (mask & IBV_QP_AV)
		service_level = attr->ah_attr.sl;
	if (mask & IBV_QP_TIMEOUT)
		ack_timeout = attr->timeout;
	if (mask & IBV_QP_STATE)
		to_state(qp, to);
	DONE(0);
}

/* With no more than the mask says; no library checks before. */
EXPORT int stub_modify(int number, int state, int mask)
{
	struct ibv_qp_attr attr = { .qp_state = state };

	return ibv_modify_qp(&qp_of(number)->base, &attr, mask);
}

EXPORT int ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask, struct ibv_qp_init_attr *init)
{
	attr->qp_state = qp->state;
	return 0;
}

/* Throws away what it left in a completion queue, and counts it. Under the lock. */
static void clean(struct stub_qp *qp, struct stub_cq *cq)
{
	unsigned kept = cq->head;

	for (unsigned i = cq->head; i != cq->tail; i++)
		if (cq->ring[i % CQ_DEPTH].qp_num == qp->base.qp_num)
			cleaned++;
		else
			cq->ring[kept++ % CQ_DEPTH] = cq->ring[i % CQ_DEPTH];
	cq->tail = kept;
}

EXPORT int ibv_destroy_qp(struct ibv_qp *ibqp)
{
	struct stub_qp *qp = (struct stub_qp *) ibqp;

	pthread_mutex_lock(&lock);
	FAIL_ERRNO(name_of(ibqp->context));
	clean(qp, (struct stub_cq *) ibqp->send_cq);
	if (ibqp->recv_cq != ibqp->send_cq)
		clean(qp, (struct stub_cq *) ibqp->recv_cq);
	qps[ibqp->qp_num % MAX_QPS] = NULL;
	for (unsigned i = qp->sends.head; i != qp->sends.tail; i++)
		forget(&qp->sends.ring[i % DEPTH]);
	for (int i = 0; i < WINDOWS; i++)
		if (windows[i].qp == qp)
			windows[i].qp = NULL;
	UNMAKE(stub_qp, qp);
}

EXPORT struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	struct ibv_ah *ah = MAKE(ibv_ah, name_of(pd->context));
	note(__func__);
	ah->context = pd->context;
	ah->pd = pd;
	DONE(ah);
}

EXPORT int ibv_destroy_ah(struct ibv_ah *ah) { pthread_mutex_lock(&lock); FAIL_ERRNO(name_of(ah->context)); UNMAKE(ibv_ah, ah); }

/* ---- librdmacm ---- */

/* What migrated here waits in moved, and nobody is woken for it: core/ucma.c, ucma_migrate_id, only splices lists. */
struct stub_events { struct rdma_event_channel base; int write_fd; struct rdma_cm_event *moved[64]; int moved_count; };

/* An event, with room for what the peer said. */
struct stub_event { struct rdma_cm_event base; unsigned char data[256]; };

static void tell_event(struct rdma_cm_event *event)
{
	if (write(((struct stub_events *) event->id->channel)->write_fd, &event, sizeof(event)) != sizeof(event))
		abort();
}

static void say(struct rdma_cm_id *id, struct rdma_cm_id *listener, int type, int status, struct rdma_conn_param *said, int padded)
{
	if (type == hold_events)
		return;
	struct stub_event *made = calloc(1, sizeof(*made));
	struct rdma_cm_event *event = &made->base;

	counted("rdma_cm_event", 1);
	event->id = id;
	event->listen_id = listener;
	event->event = type;
	event->status = status;
	if (id->qp_type == IBV_QPT_UD) {
		event->param.ud.qp_num = 17;
		event->param.ud.qkey = 0x01234567;
		event->param.ud.ah_attr.is_global = 1;
		event->param.ud.ah_attr.port_num = 1;
	} else
		event->param.conn.responder_resources = event->param.conn.initiator_depth = 16;
	if (said) {
		event->param.conn.responder_resources = said->initiator_depth;
		event->param.conn.initiator_depth = said->responder_resources;
		memcpy(made->data, said->private_data, said->private_data_len);
		event->param.conn.private_data_len = padded > said->private_data_len ? padded : said->private_data_len;
		event->param.conn.private_data = event->param.conn.private_data_len ? made->data : NULL;
	}
	if (is_put_off(id) || chance(CM_LATE)) {
		put_off(NULL, event);
		return;
	}
	tell_event(event);
	if ((type == RDMA_CM_EVENT_ESTABLISHED || type == RDMA_CM_EVENT_DISCONNECTED) && chance(CM_TWICE)) {
		struct stub_event *again = malloc(sizeof(*again));
		*again = *made;
		if (event->param.conn.private_data == made->data)
			again->base.param.conn.private_data = again->data;
		counted("rdma_cm_event", 1);
		tell_event(&again->base);
	}
}

static void tell(struct rdma_cm_id *id, int type, int status) { say(id, NULL, type, status, NULL, 0); }

static struct rdma_cm_id *ids[MAX_QPS];

static int rejected;
static unsigned char rejection[256];
static int rejection_bytes;

EXPORT int stub_rejected(void) { return rejected; }

/* A byte of the private data of the last rejection, or -1 behind its end. */
EXPORT int stub_rejection_byte(int i) { LOCKED(i = i < rejection_bytes ? rejection[i] : -1); return i; }

/* The id of a connect request. */
static struct stub_id *child_of(struct rdma_cm_id *listener)
{
	struct stub_id *child = calloc(1, sizeof(*child));

	counted("rdma_cm_id", 1);
	child->base = *listener;
	child->base.event = NULL;
	return child;
}

/* A connect request to the id that listens on a port. */
EXPORT void stub_request(int port)
{
	pthread_mutex_lock(&lock);
	for (int i = 0; i < MAX_QPS; i++) {
		struct rdma_cm_id *listener = ids[i];
		struct sockaddr_in *local = listener ? (struct sockaddr_in *) &listener->route.addr.src_addr : NULL;

		if (!listener || !listener->event || ntohs(local->sin_port) != port)
			continue;
		struct rdma_cm_id *id = &child_of(listener)->base;
		*(struct sockaddr_in *) &id->route.addr.dst_addr = *local;
		say(id, listener, RDMA_CM_EVENT_CONNECT_REQUEST, 0, NULL, 0);
	}
	pthread_mutex_unlock(&lock);
}

/* An event of the id that listens on a port. */
EXPORT void stub_cm_listener(int port, int type, int status)
{
	LOCKED(for (int i = 0; i < MAX_QPS; i++)
		if (ids[i] && ids[i]->event && ntohs(((struct sockaddr_in *) &ids[i]->route.addr.src_addr)->sin_port) == port)
			tell(ids[i], type, status));
}

/* An event of all ids on a device. */
EXPORT void stub_cm_device(int device, int type)
{
	LOCKED(for (int i = 0; i < MAX_QPS; i++)
		if (ids[i] && ids[i]->verbs && ids[i]->verbs == contexts[device])
			tell(ids[i], type, 0));
}

EXPORT struct rdma_event_channel *rdma_create_event_channel(void)
{
	int fds[2];

	struct stub_events *channel = MAKE(stub_events, "");
	if (pipe2(fds, O_CLOEXEC))
		abort();
	channel->base.fd = fds[0];
	channel->write_fd = fds[1];
	DONE(&channel->base);
}

static int take_event(struct stub_events *from, struct rdma_cm_event **event)
{
	if (!from->moved_count)
		return read(from->base.fd, event, sizeof(*event)) == sizeof(*event);
	*event = from->moved[0];
	memmove(from->moved, from->moved + 1, --from->moved_count * sizeof(*event));
	return 1;
}

static void leave(struct rdma_cm_id *id);

/* Takes what waits for an id, or for all if it is NULL, off a channel; gives it to another one, or drops it, and requests with it.
   Under the lock. */
static void move_events(struct rdma_event_channel *from, struct rdma_cm_id *id, struct rdma_event_channel *to)
{
	struct rdma_cm_event *event, *others[64];
	int count = 0;

	for (int i = later_count - 1; i >= 0 && !to; i--) { /* what comes later follows its id */
		event = later[i].event;
		if (!event || (id ? event->id != id && event->listen_id != id : event->id->channel != from))
			continue;
		drop_later(i);
		if (event->listen_id) {
			leave(event->id);
			counted("rdma_cm_id", -1);
			free(event->id);
			i = later_count; /* its end may have put off more */
		}
		counted("rdma_cm_event", -1);
		free(event);
	}
	while (count < 64 && take_event((struct stub_events *) from, &event)) {
		if (id && event->id != id && event->listen_id != id) {
			others[count++] = event;
		} else if (!to) {
			if (event->listen_id) {
				leave(event->id);
				counted("rdma_cm_id", -1);
				free(event->id);
			}
			counted("rdma_cm_event", -1);
			free(event);
		} else {
			struct stub_events *target = (struct stub_events *) to;
			if (target->moved_count == 64)
				abort();
			target->moved[target->moved_count++] = event;
		}
	}
	for (int i = 0; i < count; i++)
		if (write(((struct stub_events *) from)->write_fd, &others[i], sizeof(event)) != sizeof(event))
			abort();
}

EXPORT void rdma_destroy_event_channel(struct rdma_event_channel *channel)
{
	LOCKED(move_events(channel, NULL, NULL); syscall(SYS_close, channel->fd); syscall(SYS_close, ((struct stub_events *) channel)->write_fd);
	       counted("stub_events", -1); free(channel));
}

EXPORT int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context, enum rdma_port_space ps)
{
	pthread_mutex_lock(&lock);
	note(__func__);
	FAIL_MINUS_ONE("");
	struct rdma_cm_id *made = calloc(1, sizeof(struct stub_id));
	counted("rdma_cm_id", 1);
	made->channel = channel;
	made->context = context;
	made->ps = ps;
	made->qp_type = ps == RDMA_PS_UDP ? IBV_QPT_UD : IBV_QPT_RC;
	for (int i = 0; i < MAX_QPS; i++)
		if (!ids[i]) {
			ids[i] = made;
			break;
		}
	*id = made;
	DONE(0);
}

EXPORT int rdma_destroy_id(struct rdma_cm_id *id)
{
	pthread_mutex_lock(&lock);
	note(__func__);
	/* An id that is not given back hears of nothing more all the same. */
	for (int i = 0; i < MAX_QPS; i++)
		if (ids[i] == id)
			ids[i] = NULL;
	move_events(id->channel, id, NULL);
	leave(id);
	FAIL_MINUS_ONE("");
	UNMAKE(rdma_cm_id, id);
}

#include "link_cm.c"

/* Addresses of this machine, which stub0 has besides 10.0.0.x. */
static in_addr_t host[64];
static int host_addresses;
EXPORT void stub_host_address(const char *ip) { if (host_addresses < 64) host[host_addresses++] = inet_addr(ip); }

static int place(struct rdma_cm_id *id, struct sockaddr_in *address)
{
	int device = (ntohl(address->sin_addr.s_addr) >> 8) & 0xff;

	for (int i = 0; i < host_addresses; i++)
		if (address->sin_family == AF_INET && address->sin_addr.s_addr == host[i])
			device = 0;
	if (address->sin_family != AF_INET || device >= DEVICES || removed[device] || (!device && !played->connects)) {
		errno = ENODEV;
		return -1;
	}
	id->verbs = context_of(device);
	id->port_num = id->verbs && ports_of(id->verbs) == 2 && ntohl(address->sin_addr.s_addr) & 0x80 ? 2 : 1;
	return 0;
}

EXPORT int rdma_bind_addr(struct rdma_cm_id *id, struct sockaddr *address)
{
	static uint16_t free_port = 40000;
	struct sockaddr_in *local = (struct sockaddr_in *) &id->route.addr.src_addr;

	pthread_mutex_lock(&lock);
	note(__func__);
	FAIL_MINUS_ONE("");
	*local = *(struct sockaddr_in *) address;
	if (!local->sin_port)
		local->sin_port = htons(free_port++);
	else if (linked && is_taken(local)) {
		errno = EADDRINUSE;
		DONE(-1);
	}
	((struct stub_id *) id)->bound = 1;
	if (local->sin_family == AF_INET && !local->sin_addr.s_addr) /* of every device, and so of none */
		DONE(0);
	if (!place(id, local) && !id->verbs) {
		errno = ENODEV;
		DONE(-1);
	}
	DONE(id->verbs ? 0 : -1);
}

EXPORT int rdma_listen(struct rdma_cm_id *id, int backlog)
{
	pthread_mutex_lock(&lock);
	note(__func__);
	FAIL_MINUS_ONE(id->verbs ? name_of(id->verbs) : "");
	id->event = (struct rdma_cm_event *) -1; /* listens */
	DONE(0);
}

/* The partition and the service id of the address of InfiniBand that was resolved last, and the type of service that was set last. */
static struct sockaddr_ib resolved;
static int type_of_service;
EXPORT int stub_resolved_pkey(void) { return ntohs(resolved.sib_pkey); }
EXPORT int stub_resolved_service(void) { return be64toh(resolved.sib_sid); }
EXPORT int stub_type_of_service(void) { return type_of_service; }

EXPORT int rdma_resolve_addr(struct rdma_cm_id *id, struct sockaddr *from, struct sockaddr *to, int timeout)
{
	struct sockaddr_in *local = (struct sockaddr_in *) &id->route.addr.src_addr;

	pthread_mutex_lock(&lock);
	note(__func__);
	FAIL_MINUS_ONE("");
	if (to->sa_family == AF_IB) { /* goes by GID, and needs no IP address */
		if (played->link_layer != IBV_LINK_LAYER_INFINIBAND || id->ps != RDMA_PS_IB) {
			errno = ENODEV;
			DONE(-1);
		}
		resolved = *(struct sockaddr_ib *) to;
		memcpy(&id->route.addr.dst_storage, to, sizeof(resolved));
		id->verbs = context_of(0);
		id->port_num = 1;
		tell(id, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
		DONE(0);
	}
	*(struct sockaddr_in *) &id->route.addr.dst_addr = *(struct sockaddr_in *) to;
	if (from || !((struct stub_id *) id)->bound) {
		*local = from ? *(struct sockaddr_in *) from : *(struct sockaddr_in *) to;
		local->sin_port = htons(50000);
	}
	if (place(id, (struct sockaddr_in *) to))
		DONE(-1);
	tell(id, id->verbs ? RDMA_CM_EVENT_ADDR_RESOLVED : RDMA_CM_EVENT_ADDR_ERROR, id->verbs ? 0 : -1);
	DONE(0);
}

/* To 10.0.x.251 it blocks until stub_unblock, as where ibacm does not answer. */
EXPORT int rdma_resolve_route(struct rdma_cm_id *id, int timeout)
{
	pthread_mutex_lock(&lock);
	FAIL_MINUS_ONE("");
	if ((ntohl(((struct sockaddr_in *) &id->route.addr.dst_addr)->sin_addr.s_addr) & 0xff) == 251) {
		blocked++;
		while (blocking)
			pthread_cond_wait(&unblocked, &lock);
		blocked--;
	}
	tell(id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	DONE(0);
}

/*
 * librdmacm modifies queue pairs itself (librdmacm/cma.c): to INIT when one is made (ucma_init_conn_qp), to RTR and RTS when it accepts
 * (rdma_accept) and when it takes the answer (ucma_process_conn_resp), and to ERR or SQD before it disconnects (ucma_shutdown). What of that
 * is refused; 0 if nothing is.
 */
static int modify_of_cm(struct rdma_cm_id *id, const char *step)
{
	return id->qp_type == IBV_QPT_RC && id->qp ? failing(step, name_of(id->qp->context)) : 0;
}

/* Takes its queue pair to where it receives and sends, on iWARP in the kernel only. What of that is refused; 0 if nothing is. */
static int connect_qp(struct rdma_cm_id *id, const char *step)
{
	struct stub_qp *qp = (struct stub_qp *) id->qp;
	int error = modify_of_cm(id, step);

	if (!error && !goes_by_tcp(id) && (qp->in_error || qp->base.state != IBV_QPS_INIT))
		error = EINVAL;
	if (error)
		return error;
	qp->connected = 1;
	if (!goes_by_tcp(id)) {
		to_state(qp, IBV_QPS_RTR);
		to_state(qp, IBV_QPS_RTS);
	}
	return 0;
}

EXPORT int rdma_create_qp(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	int error;

	id->qp = ibv_create_qp(pd, attr);
	if (!id->qp)
		return -1;
	LOCKED(
		if (!(error = modify_of_cm(id, "modify_init"))) /* datagrams need no more: ucma_init_ud_qp */
			to_state((struct stub_qp *) id->qp, id->qp_type == IBV_QPT_UD ? IBV_QPS_RTS : IBV_QPS_INIT));
	if (!error)
		return 0;
	ibv_destroy_qp(id->qp);
	id->qp = NULL;
	errno = error;
	return -1;
}

EXPORT void rdma_destroy_qp(struct rdma_cm_id *id) { ibv_destroy_qp(id->qp); id->qp = NULL; }

EXPORT int rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *parameters)
{
	struct sockaddr_in *remote = (struct sockaddr_in *) &id->route.addr.dst_addr;

	pthread_mutex_lock(&lock);
	note(__func__);
	FAIL_MINUS_ONE("");
	if ((ntohl(remote->sin_addr.s_addr) & 0xff) == 250) {
		blocked++;
		while (blocking)
			pthread_cond_wait(&unblocked, &lock);
		blocked--;
		pthread_mutex_unlock(&lock);
		errno = ETIMEDOUT;
		return -1;
	}
	if (id->qp_type != IBV_QPT_UD && goes_by_tcp(id))
		((struct stub_qp *) id->qp)->connected = 1;
	((struct stub_id *) id)->asks = 1;
	if (linked && id->qp_type == IBV_QPT_RC) {
		connect_linked((struct stub_id *) id, parameters);
		DONE(0);
	}
	tell(id, RDMA_CM_EVENT_ESTABLISHED, 0);
	DONE(0);
}

/* The queue pair that a look-up was answered with last. */
static int answered;
EXPORT int stub_answered(void) { return answered; }

EXPORT int rdma_accept(struct rdma_cm_id *id, struct rdma_conn_param *parameters)
{
	pthread_mutex_lock(&lock);
	FAIL_MINUS_ONE("");
	if (id->qp_type == IBV_QPT_UD) {
		answered = parameters->qp_num;
		DONE(0);
	}
	if ((errno = connect_qp(id, "modify_accept")))
		DONE(-1);
	if (linked) {
		int outcome = accept_linked((struct stub_id *) id, parameters);
		DONE(outcome);
	}
	tell(id, RDMA_CM_EVENT_ESTABLISHED, 0);
	DONE(0);
}

/* The connection is established, whatever has become of the peer's message. */
EXPORT int rdma_notify(struct rdma_cm_id *id, enum ibv_event_type event)
{
	int held;

	pthread_mutex_lock(&lock);
	FAIL_MINUS_ONE("");
	held = hold_events;
	hold_events = -1;
	tell(id, RDMA_CM_EVENT_ESTABLISHED, 0);
	hold_events = held;
	DONE(0);
}

EXPORT int rdma_reject(struct rdma_cm_id *id, const void *data, uint8_t length)
{
	pthread_mutex_lock(&lock);
	FAIL_MINUS_ONE("");
	rejected++;
	memcpy(rejection, data, rejection_bytes = length);
	reject_linked((struct stub_id *) id, data, length);
	DONE(0);
}

EXPORT int rdma_disconnect(struct rdma_cm_id *id)
{
	pthread_mutex_lock(&lock);
	note(__func__);
	FAIL_MINUS_ONE("");
	if ((errno = modify_of_cm(id, "modify_end")))
		DONE(-1);
	if (id->qp && goes_by_tcp(id) && !takes_step((struct stub_qp *) id->qp, IBV_QPS_SQD, IBV_QP_STATE)) {
		errno = EINVAL;
		DONE(-1);
	}
	if (id->qp && goes_by_tcp(id))
		id->qp->state = IBV_QPS_SQD;
	else if (id->qp && id->qp_type == IBV_QPT_RC)
		to_state((struct stub_qp *) id->qp, IBV_QPS_ERR);
	if (linked)
		disconnect_linked((struct stub_id *) id);
	else
		tell(id, RDMA_CM_EVENT_DISCONNECTED, 0);
	DONE(0);
}

/*
 * Takes the answer to a connect request over InfiniBand or RoCE: a queue pair that cannot be brought to its next state makes CONNECT_ERROR of
 * it, with -1 for a status, and what follows is dropped (librdmacm/cma.c, rdma_get_cm_event). Returns whether the event is dropped.
 */
static int takes_answer(struct rdma_cm_event *event)
{
	struct stub_id *id = (struct stub_id *) event->id;

	if (id->connect_error)
		return event->event == RDMA_CM_EVENT_REJECTED || event->event == RDMA_CM_EVENT_DISCONNECTED
			|| event->event == RDMA_CM_EVENT_ESTABLISHED;
	if (event->event == RDMA_CM_EVENT_REJECTED && id->base.qp)
		to_state((struct stub_qp *) id->base.qp, IBV_QPS_ERR);
	if (event->event != RDMA_CM_EVENT_ESTABLISHED || !id->asks || !id->base.qp || id->base.qp_type != IBV_QPT_RC
	    || goes_by_tcp(&id->base))
		return 0;
	id->asks = 0;
	if (!connect_qp(&id->base, "modify_reply"))
		return 0;
	id->connect_error = 1;
	event->event = RDMA_CM_EVENT_CONNECT_ERROR;
	event->status = -1;
	to_state((struct stub_qp *) id->base.qp, IBV_QPS_ERR);
	return 0;
}

EXPORT int rdma_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **event)
{
	struct pollfd ready = { .fd = channel->fd, .events = POLLIN };

	struct stub_events *of = (struct stub_events *) channel;

	pthread_mutex_lock(&lock);
	if (poll(&ready, 1, 0) == 1 || of->moved_count)
		FAIL_MINUS_ONE("");
	for (;;) {
		if (of->moved_count) {
			take_event(of, event);
		} else {
			pthread_mutex_unlock(&lock);
			if (read(channel->fd, event, sizeof(*event)) != sizeof(*event))
				return -1;
			pthread_mutex_lock(&lock);
		}
		if (!takes_answer(*event))
			DONE(0);
		counted("rdma_cm_event", -1);
		free(*event);
	}
}

EXPORT int rdma_ack_cm_event(struct rdma_cm_event *event)
{
	LOCKED(counted("rdma_cm_event", -1); free(event));
	return 0;
}

/* Moves what waits for the id along with it, as the kernel does. */
EXPORT int rdma_migrate_id(struct rdma_cm_id *id, struct rdma_event_channel *channel)
{
	pthread_mutex_lock(&lock);
	FAIL_MINUS_ONE("");
	move_events(id->channel, id, channel);
	id->channel = channel;
	DONE(0);
}

EXPORT int rdma_set_option(struct rdma_cm_id *id, int level, int name, void *value, size_t length)
{
	int error;

	pthread_mutex_lock(&lock);
	FAIL_MINUS_ONE("");
	if (level == RDMA_OPTION_ID && name == RDMA_OPTION_ID_TOS)
		type_of_service = *(uint8_t *) value;
	if (level == RDMA_OPTION_ID && name == RDMA_OPTION_ID_ACK_TIMEOUT) {
		if ((error = failing("ack_timeout", ""))) {
			errno = error;
			DONE(-1);
		}
		ack_timeout = *(uint8_t *) value;
	}
	DONE(0);
}

EXPORT struct ibv_context **rdma_get_devices(int *count)
{
	struct ibv_context **list = calloc(DEVICES + 1, sizeof(*list));
	int opened = 0, error;

	LOCKED(error = failing(__func__, ""));
	if (error) {
		free(list);
		errno = error;
		return NULL;
	}
	LOCKED(for (int i = 0; i < DEVICES; i++)
		if (!removed[i] && context_of(i)) {
			list[opened++] = contexts[i];
			listed[i]++;
		});
	if (!opened) {
		free(list);
		errno = ENODEV;
		return NULL;
	}
	if (count)
		*count = opened;
	return list;
}

EXPORT void rdma_free_devices(struct ibv_context **list)
{
	LOCKED(for (int i = 0; list[i]; i++) {
		int device = list[i]->device - devices;

		if (list[i] == contexts[device] && !--listed[device] && removed[device]) {
			syscall(SYS_close, async_pipes[device][0]);
			syscall(SYS_close, async_pipes[device][1]);
			/* Not freed: whoever uses it still shall fail in the same way each time. */
			memset(list[i], 0, sizeof(*list[i]));
			contexts[device] = NULL;
		}
	});
	free(list);
}

/* ---- the C library ---- */

static char descriptors[1 << 16];

/* Counts a descriptor that was made. */
static int opened(int fd, const char *kind, char mark)
{
	if (fd >= 0 && fd < (int) sizeof(descriptors))
		LOCKED(descriptors[fd] = mark; counted(kind, 1));
	return fd;
}

EXPORT int eventfd(unsigned initial, int flags)
{
	pthread_mutex_lock(&lock);
	FAIL_MINUS_ONE("");
	pthread_mutex_unlock(&lock);
	return opened(syscall(SYS_eventfd2, initial, flags), "eventfd", 1);
}

EXPORT int socket(int domain, int type, int protocol)
{
	pthread_mutex_lock(&lock);
	FAIL_MINUS_ONE("");
	pthread_mutex_unlock(&lock);
	return opened(syscall(SYS_socket, domain, type, protocol), "socket", 3);
}

EXPORT int bind(int fd, __CONST_SOCKADDR_ARG address, socklen_t length)
{
	pthread_mutex_lock(&lock);
	FAIL_MINUS_ONE("");
	pthread_mutex_unlock(&lock);
	return syscall(SYS_bind, fd, address.__sockaddr__, length);
}

EXPORT int epoll_create1(int flags)
{
	pthread_mutex_lock(&lock);
	FAIL_MINUS_ONE("");
	pthread_mutex_unlock(&lock);
	return opened(syscall(SYS_epoll_create1, flags), "epoll", 2);
}

EXPORT int epoll_ctl(int epoll, int operation, int fd, struct epoll_event *event)
{
	pthread_mutex_lock(&lock);
	FAIL_MINUS_ONE("");
	pthread_mutex_unlock(&lock);
	return syscall(SYS_epoll_ctl, epoll, operation, fd, event);
}

/* A failure lasts for the call after it, which asks for the errno. */
EXPORT int epoll_wait(int epoll, struct epoll_event *events, int most, int timeout)
{
	int error;

	LOCKED(
		if (epoll == failed_epoll) {
			error = epoll_error;
			failed_epoll = -1;
		} else if ((error = failing(__func__, ""))) {
			epoll_error = error;
			failed_epoll = epoll;
		});
	if (error) {
		errno = error;
		return -1;
	}
	return syscall(SYS_epoll_pwait, epoll, events, most, timeout, NULL, (size_t) 8);
}

EXPORT int close(int fd)
{
	if (fd >= 0 && fd < (int) sizeof(descriptors))
		LOCKED(if (descriptors[fd]) {
			counted(descriptors[fd] == 1 ? "eventfd" : descriptors[fd] == 2 ? "epoll" : "socket", -1);
			descriptors[fd] = 0;
		});
	return syscall(SYS_close, fd);
}

/* ---- the device's own thread ---- */

/* Does what quirks have left for later: all of it at once where none is in force any more. */
static void *run_device(void *unused)
{
	for (;;) {
		usleep(200);
		pthread_mutex_lock(&lock);
		for (int i = 0; i < later_count; i++) {
			int waits = 0;
			for (int j = 0; later[i].event && j < i; j++)
				waits |= later[j].event && later[j].event->id == later[i].event->id;
			if (waits || later[i].due > now())
				continue;
			if (later[i].cq)
				tell_of(later[i].cq);
			else
				tell_event(later[i].event);
			drop_later(i--);
		}
		for (int i = 0; i < MAX_QPS; i++) {
			struct stub_qp *qp = qps[i];
			if (!qp || !linked || (qp->in_error ? chance(FLUSH) : chance(WORK)))
				continue;
			if (qp->in_error && !hold_flushes)
				flush(qp);
			else if (!qp->in_error)
				carry(qp);
		}
		for (unsigned i = draw(), left = linked && chance(CM_MOVED) ? MAX_QPS : 0; left; i++, left--)
			if (ids[i % MAX_QPS] && ((struct stub_id *) ids[i % MAX_QPS])->peer) {
				tell(ids[i % MAX_QPS], RDMA_CM_EVENT_ADDR_CHANGE, 0);
				break;
			}
		struct stub_qp *victim = NULL;
		for (unsigned i = draw(), left = linked && chance(BREAK) ? MAX_QPS : 0; left && !victim; i++, left--)
			victim = qps[i % MAX_QPS] && qps[i % MAX_QPS]->peer && !qps[i % MAX_QPS]->in_error ? qps[i % MAX_QPS] : NULL;
		if (victim) {
			complete_first(victim, &victim->sends, victim->base.send_cq, IBV_WC_RETRY_EXC_ERR, 0);
			break_off(victim);
			async(victim->base.context->device - devices, IBV_EVENT_QP_FATAL, victim);
		}
		pthread_mutex_unlock(&lock);
	}
	return NULL;
}

/* So many of a thousand from now on; the same seed, 1 or more, gives the same draws, though threads take them in their own order. */
EXPORT int stub_quirk(const char *name, int permille)
{
	static int runs;
	pthread_t thread;

	for (int i = 0; i < QUIRKS; i++)
		if (!strcmp(quirk_names[i], name)) {
			LOCKED(quirks[i] = permille;
			       if (!runs++ && pthread_create(&thread, NULL, run_device, NULL))
				       abort());
			return 0;
		}
	return -1;
}

EXPORT void stub_seed(int seed) { LOCKED(chances = seed; memset(indulged, 0, sizeof(indulged))); }

/* How often each one was indulged in since stub_seed, "work 12 flush 3". */
EXPORT const char *stub_indulged(void)
{
	static char text[512];

	text[0] = 0;
	LOCKED(for (int i = 0; i < QUIRKS; i++)
		if (indulged[i])
			snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s %d", text[0] ? " " : "", quirk_names[i], indulged[i]));
	return text;
}

EXPORT void stub_calm(void) { LOCKED(memset(quirks, 0, sizeof(quirks))); }
