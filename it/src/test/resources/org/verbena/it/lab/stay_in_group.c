/*
 * Preloaded into a sender of a multicast group: it leaves the group, and destroys its queue pair, no sooner than it is
 * sent SIGTERM. Built by MulticastSender.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>

struct rdma_cm_id;
struct sockaddr;

static sigset_t terminate;

/* Blocked from the start, so that it does not end the process if it comes before the wait. */
__attribute__((constructor)) static void block_terminate(void) {
  sigemptyset(&terminate);
  sigaddset(&terminate, SIGTERM);
  sigprocmask(SIG_BLOCK, &terminate, NULL);
}

int rdma_leave_multicast(struct rdma_cm_id *id, struct sockaddr *address) {
  int (*leave)(struct rdma_cm_id *, struct sockaddr *) = dlsym(RTLD_NEXT, "rdma_leave_multicast");
  int signal_number;

  sigwait(&terminate, &signal_number);
  return leave(id, address);
}
