/* burn WAY: uses CPU time for ever, where a count of it could be passed. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void burn(clockid_t clock, long ms) {
    struct timespec t, u;
    clock_gettime(clock, &t);
    do clock_gettime(clock, &u); while ((u.tv_sec - t.tv_sec) * 1000 + (u.tv_nsec - t.tv_nsec) / 1000000 < ms);
}

/* zombies: children that have burnt and that nobody waits for until no more can be made. */
static void zombies(void) {
    for (;;) {
        pid_t p = fork();
        if (p == 0) { burn(CLOCK_PROCESS_CPUTIME_ID, 5); _exit(0); }
        if (p < 0) while (waitpid(-1, 0, 0) > 0);
    }
}

/* parents: each burns for a moment, leaves a child to init, and ends. */
static void parents(void) {
    for (;;) {
        burn(CLOCK_PROCESS_CPUTIME_ID, 5);
        if (fork() > 0) _exit(0);
    }
}

/* siblings: children of our parent, which is not us. */
static void siblings(void) {
    for (;;) {
        long p = syscall(SYS_clone, CLONE_PARENT | SIGCHLD, 0, 0, 0, 0);
        if (p == 0) { burn(CLOCK_PROCESS_CPUTIME_ID, 5); _exit(0); }
        sched_yield();
    }
}

static void *moment(void *arg) { burn(CLOCK_THREAD_CPUTIME_ID, 5); return arg; }

static void threads(void) {
    pthread_t t;
    for (;;) if (pthread_create(&t, 0, moment, 0) == 0) pthread_join(t, 0);
}

/* leaderless: the first thread ends, another goes on. */
static void *forever(void *arg) { for (;;); return arg; }

static void leaderless(void) {
    pthread_t t;
    pthread_create(&t, 0, forever, 0);
    pthread_exit(0);
}

static void system_time(void) {
    static char block[1 << 20];
    int fd = open("/dev/zero", O_RDONLY);
    for (;;) if (read(fd, block, sizeof block) < 0) exit(1);
}

/* idle: the lowest priority that there is. */
static void idle(void) {
    struct sched_param p = {0};
    if (sched_setscheduler(0, SCHED_IDLE, &p)) { perror("SCHED_IDLE"); exit(1); }
    setpriority(PRIO_PROCESS, 0, 19);
    for (;;);
}

static void vforks(char **argv) {
    for (;;) {
        pid_t p = vfork();
        if (p == 0) { execl(argv[0], argv[0], "once", (char *)0); _exit(1); }
        waitpid(p, 0, 0);
    }
}

static void handler(int n) { burn(CLOCK_PROCESS_CPUTIME_ID, n ? 3 : 0); }

/* timers: a process that only ever waits, and is interrupted. */
static void timers(void) {
    struct itimerval every = {{0, 4000}, {0, 4000}};
    signal(SIGALRM, handler);
    setitimer(ITIMER_REAL, &every, 0);
    for (;;) pause();
}

/* share MS: says when it begins and when it has had its time, and waits. */
static void share(long ms) {
    char c;
    puts("begin"); fflush(stdout);
    burn(CLOCK_PROCESS_CPUTIME_ID, ms);
    puts("end"); fflush(stdout);
    while (read(0, &c, 1) > 0);
}

int main(int argc, char **argv) {
    const char *way = argv[1];
    if (!strcmp(way, "zombies")) zombies();
    else if (!strcmp(way, "parents")) { if (fork() == 0) parents(); for (;;) pause(); }
    else if (!strcmp(way, "siblings")) { if (fork() == 0) siblings(); for (;;) waitpid(-1, 0, 0); }
    else if (!strcmp(way, "threads")) threads();
    else if (!strcmp(way, "leaderless")) leaderless();
    else if (!strcmp(way, "system")) system_time();
    else if (!strcmp(way, "idle")) idle();
    else if (!strcmp(way, "reexec")) { burn(CLOCK_PROCESS_CPUTIME_ID, 5); execv(argv[0], argv); }
    else if (!strcmp(way, "vforks")) vforks(argv);
    else if (!strcmp(way, "once")) burn(CLOCK_PROCESS_CPUTIME_ID, 5);
    else if (!strcmp(way, "timers")) timers();
    else if (!strcmp(way, "bomb")) { puts("bomb"); fflush(stdout); for (;;) fork(); }
    else if (!strcmp(way, "share")) share(argc > 2 ? atol(argv[2]) : 0);
    else return 2;
    return 0;
}
