/* Prints how many thousand times a second this machine's time stamp counter counts, which is the guest's counter too. */
#include <stdio.h>
#include <time.h>
#include <x86intrin.h>

struct sample {
  long long nanos;
  unsigned long long ticks;
};

static long long now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC_RAW, &time);
  return time.tv_sec * 1000000000LL + time.tv_nsec;
}

/* The one of many that was interrupted the least: the machine may be busy. */
static struct sample take(void) {
  struct sample best = {0, 0};
  long long least = 1LL << 62;
  for (int i = 0; i < 100; i++) {
    long long before = now();
    unsigned long long ticks = __rdtsc();
    long long after = now();
    if (after - before < least) {
      least = after - before;
      best = (struct sample){before + least / 2, ticks};
    }
  }
  return best;
}

int main(void) {
  struct timespec pause = {0, 100000000};
  struct sample first = take();
  nanosleep(&pause, NULL);
  struct sample last = take();
  printf("%.0f\n", (last.ticks - first.ticks) * 1e6 / (last.nanos - first.nanos));
}
