/* hog OP ARG...: uses up one thing and says how much of it there was. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void say(const char *what, long n) { printf("%s %ld\n", what, n); fflush(stdout); }

static void touch(volatile char *p, size_t n) { for (size_t i = 0; i < n; i += 4096) p[i] = 1; }

/* forks: children that only wait, until the kernel refuses; counts this process as well. */
static void forks(int hold) {
    long n = 1;
    for (;;) {
        pid_t p = fork();
        if (p == 0) for (;;) pause();
        if (p < 0) break;
        n++;
    }
    if (errno != EAGAIN) perror("fork");
    say("tasks", n);
    if (hold) for (;;) pause();
}

static void *waiting(void *arg) { for (;;) pause(); return arg; }

static void threads(void) {
    pthread_attr_t small; pthread_attr_init(&small); pthread_attr_setstacksize(&small, 16384);
    long n = 1; pthread_t t; int e;
    while ((e = pthread_create(&t, &small, waiting, 0)) == 0) n++;
    if (e != EAGAIN) fprintf(stderr, "pthread_create: %s\n", strerror(e));
    say("tasks", n);
}

/* churn: far more children than the limit, one at a time: none may count when it is gone. */
static void churn(long n) {
    for (long i = 0; i < n; i++) {
        pid_t p = fork();
        if (p == 0) _exit(0);
        if (p < 0) { perror("fork"); exit(1); }
        /* A double fork leaves the second one to init. */
        waitpid(p, 0, 0);
        p = fork();
        if (p == 0) { if (fork() == 0) _exit(0); _exit(0); }
        if (p > 0) waitpid(p, 0, 0);
    }
    say("churned", n);
}

static void burn_ms(long ms) {
    struct timespec t;
    do clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t); while (t.tv_sec * 1000 + t.tv_nsec / 1000000 < ms);
}

/* burners N: N double-forked daemons that burn for ever, while their parent sleeps. */
static void burners(long n) {
    for (long i = 0; i < n; i++) {
        if (fork() == 0) { setsid(); if (fork() == 0) for (;;); _exit(0); }
        wait(0);
    }
    for (;;) pause();
}

/* brief MS: children of MS ms each, for ever; with ignore nobody waits for them. */
static void brief(long ms, int ignore) {
    if (ignore) signal(SIGCHLD, SIG_IGN);
    for (;;) {
        pid_t p = fork();
        if (p == 0) { burn_ms(ms); _exit(0); }
        waitpid(p, 0, 0);
    }
}

static void *spin(void *arg) { for (;;); return arg; }

static void memory(const char *kind, long mb) {
    size_t n = (size_t)mb << 20;
    void *p = 0;
    if (!strcmp(kind, "anon")) p = mmap(0, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (!strcmp(kind, "shared")) p = mmap(0, n, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (!strcmp(kind, "sysv")) p = shmat(shmget(IPC_PRIVATE, n, IPC_CREAT | 0600), 0, 0);
    if (p == MAP_FAILED) { perror(kind); exit(1); }
    if (p) touch(p, n);
    if (!strcmp(kind, "tables")) {
        /* Reads of memory that is nowhere: 4 KiB of page table for each 2 MiB. */
        for (long g = 0; g < mb / 2; g++) {
            volatile char *q = mmap(0, 1 << 30, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
            if (q == MAP_FAILED) { perror(kind); exit(1); }
            for (long i = 0; i < 1 << 30; i += 2 << 20) (void)q[i];
        }
    }
    if (!strcmp(kind, "hidden")) prctl(PR_SET_DUMPABLE, 0), kind = "memfd";
    if (!strcmp(kind, "starts")) {
        /* As long as a slow host may take over the end of an execve. */
        prctl(PR_SET_DUMPABLE, 0);
        nanosleep(&(struct timespec){0, 100000000}, 0);
        prctl(PR_SET_DUMPABLE, 1);
    }
    if (!strcmp(kind, "memfd") || !strcmp(kind, "file") || !strcmp(kind, "deleted")) {
        int fd = strcmp(kind, "memfd") ? open("/tmp/hog", O_CREAT | O_RDWR, 0600) : memfd_create("hog", 0);
        if (!strcmp(kind, "deleted")) unlink("/tmp/hog");
        static char block[1 << 20];
        for (long i = 0; i < mb; i++)
            if (write(fd, block, sizeof block) != sizeof block) { perror("write"); exit(1); }
    }
    if (!strcmp(kind, "pipes")) {
        static char block[65536];
        for (long i = 0; i < mb * 16; i++) {
            int f[2];
            if (pipe(f)) { perror("pipe"); exit(1); }
            fcntl(f[1], F_SETFL, O_NONBLOCK);
            while (write(f[1], block, sizeof block) > 0);
        }
    }
    say("held", mb);
    if (getenv("HOLD")) for (;;) pause();
}

/* family N MB: N children that hold MB each, and a parent that would outlive them. */
static void family(long n, long mb) {
    for (long i = 0; i < n; i++)
        if (fork() == 0) { memory("anon", mb); for (;;) pause(); }
    int st;
    while (wait(&st) > 0);
    say("outlived", n);
}

/* share MB N: N children that share MB, which count once. */
static void shared(long mb, long n) {
    size_t len = (size_t)mb << 20;
    char *p = mmap(0, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    touch(p, len);
    for (long i = 0; i < n; i++)
        if (fork() == 0) { sleep(1); _exit(0); }
    while (wait(0) > 0);
    say("shared", mb);
}

static void opens(void) {
    long n = 3;
    while (open("/dev/null", O_RDONLY) >= 0) n++;
    if (errno != EMFILE) perror("open");
    say("open", n);
}

static void limit(const char *name, int resource) {
    struct rlimit l, more;
    getrlimit(resource, &l);
    more = l; more.rlim_max = l.rlim_max == RLIM_INFINITY ? l.rlim_max : l.rlim_max + 1; more.rlim_cur = more.rlim_max;
    printf("%s %ld %ld %s\n", name, (long)l.rlim_cur, (long)l.rlim_max, setrlimit(resource, &more) ? strerror(errno) : "raised");
}

/* fill: writes a file until it is refused; with no signal the errno is told. */
static void fill(const char *path) {
    static char block[4096];
    long n = 0; ssize_t w;
    int fd = open(path, O_CREAT | O_WRONLY, 0600);
    if (fd < 0) { perror(path); exit(1); }
    while ((w = write(fd, block, sizeof block)) > 0) n += w;
    printf("%s after %ld\n", strerror(errno), n);
}

int main(int argc, char **argv) {
    const char *op = argv[1];
    long a = argc > 2 ? atol(argv[2]) : 0, b = argc > 3 ? atol(argv[3]) : 0;
    if (!strcmp(op, "forks")) forks(0);
    else if (!strcmp(op, "hold")) forks(1);
    else if (!strcmp(op, "threads")) threads();
    else if (!strcmp(op, "churn")) churn(a);
    else if (!strcmp(op, "burn")) { burn_ms(a); say("burnt", a); }
    else if (!strcmp(op, "burners")) burners(a);
    else if (!strcmp(op, "brief")) brief(a, 0);
    else if (!strcmp(op, "ignored")) brief(a, 1);
    else if (!strcmp(op, "spinners")) { pthread_t t; for (; a > 1; a--) pthread_create(&t, 0, spin, 0); spin(0); }
    else if (!strcmp(op, "memory")) memory(argv[2], b);
    else if (!strcmp(op, "family")) family(a, b);
    else if (!strcmp(op, "share")) shared(a, b);
    else if (!strcmp(op, "opens")) opens();
    else if (!strcmp(op, "limits")) {
        limit("core", RLIMIT_CORE); limit("nofile", RLIMIT_NOFILE); limit("fsize", RLIMIT_FSIZE);
        limit("stack", RLIMIT_STACK); limit("rtprio", RLIMIT_RTPRIO);
    }
    else if (!strcmp(op, "fill")) { if (b) signal(SIGXFSZ, SIG_IGN); fill(argv[2]); }
    else { fprintf(stderr, "hog: %s?\n", op); return 2; }
    return 0;
}
