// Asks for refusals: "count" 1000 in each of eight threads while a timer
// interrupts them, "for ever", or one under a "name" that steers terminals.
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

static int forever, refused, otherwise;

static void *ask(void *arg) {
    for (long i = 0; forever || i < 1000; i++) {
        long r;
        do { r = syscall(SYS_personality, 0xffff0000 + i % 100); } while (r < 0 && errno == EINTR);
        __atomic_add_fetch(r == -1 && errno == EPERM ? &refused : &otherwise, 1, __ATOMIC_SEQ_CST);
    }
    return arg;
}

static void tick(int s) { (void)s; }

int main(int argc, char **argv) {
    if (argc > 1 && !strcmp(argv[1], "name")) {
        prctl(PR_SET_NAME, "\033[2J\ne");
        syscall(SYS_mount, 0, 0, 0, 0, 0);
        return 0;
    }
    forever = argc > 1 && !strcmp(argv[1], "for ever");
    struct sigaction a = { .sa_handler = tick };
    sigaction(SIGALRM, &a, 0);
    struct itimerval every = { { 0, 5000 }, { 0, 5000 } };
    setitimer(ITIMER_REAL, &every, 0);
    pthread_t t[8];
    for (int i = 0; i < 8; i++) pthread_create(&t[i], 0, ask, 0);
    for (int i = 0; i < 8; i++) pthread_join(t[i], 0);
    printf("%d refused, %d otherwise\n", refused, otherwise);
    return 0;
}
