/* tree OP ARG...: processes and threads of the unusual kinds. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char stack[64][65536] __attribute__((aligned(64)));
static size_t much;

static void *take(size_t n) {
    volatile char *p = mmap(0, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (size_t i = 0; i < n; i += 4096) p[i] = 1;
    return (void *)p;
}

/* without a first thread: it ends, and is a zombie as long as the others run. */
static void *other(void *arg) {
    if (much) take(much);
    for (;;) pause();
    return arg;
}

static void leaderless(int threads) {
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 16384);
    for (int i = 0; i < threads; i++) {
        pthread_t t;
        if (pthread_create(&t, &small, other, 0)) break;
    }
    syscall(SYS_exit, 0); /* this thread alone, and quietly */
}

#define THREAD (CLONE_VM | CLONE_FS | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM)

/* relay: no first thread, and each of the others starts the next one and ends. */
static volatile pid_t busy[64]; /* the kernel clears it when that stack is free again */

static int runner(void *arg) {
    long n = (long)arg + 1;
    int i = n % 64;
    if (n == 1000) take(much); /* the first thread has long ended */
    while (busy[i]) sched_yield();
    busy[i] = 1;
    while (clone(runner, stack[i] + sizeof stack[0], THREAD | CLONE_FILES | CLONE_CHILD_CLEARTID, (void *)n, 0, 0, &busy[i]) < 0) sched_yield();
    return 0;
}

static void relay(void) {
    runner(0);
    syscall(SYS_exit, 0);
}

/* own: a thread with a table of descriptors of its own, in which memory is. */
static int own(void *arg) {
    int fd = syscall(SYS_memfd_create, "own", 0);
    static char block[1 << 20];
    for (size_t i = 0; i < much; i += sizeof block) syscall(SYS_write, fd, block, sizeof block);
    for (;;) syscall(SYS_ppoll, 0, 0, 0, 0);
    return *(int *)arg;
}

/* vforked: the parent waits uninterruptibly (but for SIGKILL) until its child has ended. */
static void vforked(long mb, long ms) {
    take((size_t)mb << 20);
    signal(SIGTERM, SIG_IGN);
    if (vfork() == 0) {
        struct timespec t = {ms / 1000, ms % 1000 * 1000000};
        if (ms < 0) for (;;) syscall(SYS_ppoll, 0, 0, 0, 0);
        syscall(SYS_nanosleep, &t, 0);
        _exit(0);
    }
    printf("shared %ld\n", mb);
}

/* cycle: stdout on its way through a socket that is itself on its way. */
static void cycle(void) {
    int s[2], carry[3];
    socketpair(AF_UNIX, SOCK_STREAM, 0, s);
    carry[0] = 1; carry[1] = s[0]; carry[2] = s[1];
    union { struct cmsghdr h; char buf[CMSG_SPACE(sizeof carry)]; } c;
    struct iovec v = {"x", 1};
    struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = &c, .msg_controllen = sizeof c};
    c.h.cmsg_level = SOL_SOCKET; c.h.cmsg_type = SCM_RIGHTS; c.h.cmsg_len = CMSG_LEN(sizeof carry);
    memcpy(CMSG_DATA(&c.h), carry, sizeof carry);
    puts("sent"); fflush(stdout);
    if (sendmsg(s[0], &m, 0) != 1) perror("sendmsg");
    _exit(0);
}

static int ends(void *arg) { return *(int *)arg; }

/* odd: children that tell their parent nothing, and children of its parent's; far more than the limit. */
static void odd(long n) {
    static int zero;
    for (long i = 0; i < n; i++) {
        int flags = i % 2 ? CLONE_PARENT | SIGCHLD : 0;
        /* No room: init has yet to reap. If it never does, the clock ends this. */
        while (clone(ends, stack[0] + sizeof stack[0], flags, &zero) < 0) sched_yield();
        pid_t p = fork();
        if (p == 0) { /* one more like that, which is left to init */
            clone(ends, stack[1] + sizeof stack[1], 0, &zero);
            _exit(0);
        }
        while (waitpid(-1, 0, __WALL) > 0);
    }
    printf("odd %ld\n", n);
}

/* many: as many as may be, each of which ignores what can be ignored, in sessions of their own. */
static void many(void) {
    for (int s = 1; s < 32; s++) signal(s, SIG_IGN);
    long n = 1;
    for (pid_t p; (p = fork()) >= 0; n++)
        if (p == 0) { setsid(); if (n % 2) raise(SIGSTOP); for (;;) pause(); }
    printf("many %ld\n", n); fflush(stdout);
    kill(-1, SIGTERM);
    for (;;) pause();
}

int main(int argc, char **argv) {
    const char *op = argv[1];
    long a = argc > 2 ? atol(argv[2]) : 0, b = argc > 3 ? atol(argv[3]) : 0;
    static int zero;
    if (!strcmp(op, "leaderless")) { much = (size_t)b << 20; leaderless(a); }
    else if (!strcmp(op, "relay")) { much = (size_t)a << 20; relay(); }
    else if (!strcmp(op, "own")) {
        much = (size_t)a << 20;
        clone(own, stack[0] + sizeof stack[0], THREAD, &zero);
        for (;;) pause();
    }
    else if (!strcmp(op, "vforked")) vforked(a, b);
    else if (!strcmp(op, "cycle")) cycle();
    else if (!strcmp(op, "odd")) odd(a);
    else if (!strcmp(op, "many")) many();
    else { fprintf(stderr, "tree: %s?\n", op); return 2; }
    return 0;
}
