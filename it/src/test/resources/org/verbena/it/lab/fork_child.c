/* A child that has this process's memory and does nothing with it. */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

int fork_child(void) {
  int child = fork();
  while (child == 0) pause();
  return child;
}

void end_child(int child) {
  kill(child, SIGKILL);
  waitpid(child, 0, 0);
}
