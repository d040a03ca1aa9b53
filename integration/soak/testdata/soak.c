/* soak OP ARG: the hostile and the careless programs of the soak, each of
   which prints only what it always prints. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <arpa/inet.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void say(const char *what, long n) { printf("%s %ld\n", what, n); fflush(stdout); }

static void hold(long mb) {
    size_t n = (size_t)mb << 20;
    volatile char *p = mmap(0, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) { perror("mmap"); exit(1); }
    for (size_t i = 0; i < n; i += 4096) p[i] = 1;
    say("held", mb);
}

static void pauses(void) { for (;;) pause(); }

/* family: children that hold too much together, and a parent that would outlive them. */
static void family(long mb) {
    for (int i = 0; i < 4; i++)
        if (fork() == 0) { fclose(stdout); hold(mb / 4); pauses(); }
    while (wait(0) > 0);
    say("outlived", mb);
}

static void forks(void) {
    long n = 1;
    for (;;) {
        pid_t p = fork();
        if (p == 0) pauses();
        if (p < 0) break;
        n++;
    }
    if (errno != EAGAIN) perror("fork");
    say("tasks", n);
}

static void burn(long ms) {
    struct timespec t;
    do clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t); while (t.tv_sec * 1000 + t.tv_nsec / 1000000 < ms);
    say("burnt", ms);
}

static void *spin(void *arg) { for (;;); return arg; }

static void spinners(void) {
    pthread_t t;
    for (int i = 0; i < 3; i++) pthread_create(&t, 0, spin, 0);
    spin(0);
}

/* daemons: double-forked, in sessions of their own, deaf to every signal. */
static void daemons(long n) {
    for (long i = 0; i < n; i++) {
        if (fork() == 0) {
            setsid();
            if (fork() == 0) {
                for (int s = 1; s < 32; s++) signal(s, SIG_IGN);
                pauses();
            }
            _exit(0);
        }
        wait(0);
    }
    say("daemons", n);
}

/* killall: of four, this one is left; init is none of them. */
static void killall(void) {
    int n = 0;
    for (int i = 0; i < 3; i++)
        if (fork() == 0) pauses();
    kill(-1, SIGKILL);
    while (wait(0) > 0) n++;
    say("killed", n);
}

static void tell(const char *what, long got) {
    printf("%s %s\n", what, got >= 0 ? "OK" : strerrorname_np(errno));
}

static void refused(void) {
    tell("unshare", syscall(SYS_unshare, 0x10000000));
    tell("mount", syscall(SYS_mount, "none", "/tmp", "tmpfs", 0, 0));
    tell("ptrace", syscall(SYS_ptrace, 0, 0, 0, 0));
    tell("add_key", syscall(SYS_add_key, "user", "soak", "x", 1, -4));
    tell("keyctl", syscall(SYS_keyctl, 1, "soak"));
    tell("bpf", syscall(SYS_bpf, 0, 0, 0));
    tell("io_uring", syscall(425, 1, 0));
    tell("clone3", syscall(435, 0, 0));
    tell("vsock", socket(40, SOCK_STREAM, 0));
    tell("raw", socket(AF_INET, SOCK_RAW, 1));
}

/* foreign: the 32-bit door of a 64-bit kernel. */
static void foreign(void) {
#ifdef __x86_64__
    long r;
    __asm__ volatile("int $0x80" : "=a"(r) : "a"(20L) : "memory");
    say("foreign", r);
#endif
}

static void dial(const char *name, const char *ip, long port) {
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};
    inet_pton(AF_INET, ip, &a.sin_addr);
    tell(name, connect(socket(AF_INET, SOCK_STREAM, 0), (void *)&a, sizeof a));
}

/* network: the host's own listeners, and the world. */
static void network(long port) {
    struct sockaddr_un u = {.sun_family = AF_UNIX};
    static const char abstract[] = "sandglass-soak";
    memcpy(u.sun_path + 1, abstract, sizeof abstract - 1);
    dial("loopback", "127.0.0.1", port);
    dial("world", "192.0.2.1", 80);
    tell("abstract", connect(socket(AF_UNIX, SOCK_STREAM, 0), (void *)&u, offsetof(struct sockaddr_un, sun_path) + sizeof abstract));
}

/* ipc: objects that outlive their maker, of every kind there is. */
static void ipc(void) {
    int m = shmget(4711, 1 << 20, IPC_CREAT | 0600);
    char *p = shmat(m, 0, 0);
    if (p == (void *)-1) { perror("shm"); exit(1); }
    memset(p, 1, 1 << 20);
    int q = msgget(4711, IPC_CREAT | 0600);
    struct { long type; char text[64]; } message = {1, "soak"};
    if (q < 0 || msgsnd(q, &message, sizeof message.text, 0)) { perror("msg"); exit(1); }
    if (semget(4711, 4, IPC_CREAT | 0600) < 0) { perror("sem"); exit(1); }
    if (mq_open("/soak", O_CREAT | O_RDWR, 0600, 0) < 0) { perror("mq"); exit(1); }
    int f = shm_open("/soak", O_CREAT | O_RDWR, 0600);
    if (f < 0 || ftruncate(f, 1 << 20)) { perror("shm_open"); exit(1); }
    puts("made");
}

/* ask sends the name server inside one question for an address, and returns the
   answer's code; ip is then the address, if there is one. */
static int ask(const char *name, struct in_addr *ip) {
    unsigned char q[512] = {0x5a, 0x6c, 1, 0, 0, 1}, *p = q + 12;
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(53), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    for (const char *s = name; *s; s += *s == '.') {
        size_t n = strcspn(s, ".");
        *p++ = n;
        memcpy(p, s, n);
        p += n;
        s += n;
    }
    memcpy(p, "\0\0\1\0\1", 5);
    int s = socket(AF_INET, SOCK_DGRAM, 0);
    ssize_t n = -1;
    if (connect(s, (void *)&to, sizeof to) == 0 && send(s, q, p + 5 - q, 0) > 0) n = recv(s, q, sizeof q, 0);
    if (n < 12) { perror("name server"); exit(1); }
    close(s);
    memcpy(ip, q + n - 4, 4);
    return q[3] & 15;
}

/* reach is a connection to a listed host, -1 where it is refused. */
static int reach(const char *host, long port) {
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};
    int code = ask(host, &a.sin_addr), s = socket(AF_INET, SOCK_STREAM, 0);
    if (code) { printf("%s: code %d\n", host, code); exit(1); }
    if (connect(s, (void *)&a, sizeof a) == 0) return s;
    close(s);
    return -1;
}

/* begin has the server do what op says: it has read it when it says it back. */
static int begin(const char *host, long port, char op) {
    int s = reach(host, port);
    char c = 0;
    if (s < 0 || write(s, &op, 1) != 1 || read(s, &c, 1) != 1 || c != op) { perror("begin"); exit(1); }
    return s;
}

/* echo sends n bytes and reads them back, both at once. */
static void echo(const char *host, long port, long n) {
    static unsigned char out[65536], in[65536];
    int s = reach(host, port);
    long got = 0;
    for (size_t i = 0; i < sizeof out; i++) out[i] = i * 7 + i / 256;
    out[0] = 'e';
    if (fork() == 0) {
        for (long sent = 0; sent < n;) {
            size_t at = sent % sizeof out, most = sizeof out - at;
            ssize_t k = write(s, out + at, n - sent < (long)most ? (size_t)(n - sent) : most);
            if (k < 0) { perror("write"); _exit(1); }
            sent += k;
        }
        shutdown(s, SHUT_WR);
        _exit(0);
    }
    for (ssize_t k; (k = read(s, in, sizeof in - got % sizeof in)) != 0; got += k) {
        if (k < 0) { perror("read"); exit(1); }
        if (memcmp(in, out + got % sizeof out, k)) { say("wrong byte after", got); exit(1); }
    }
    close(s);
    wait(0);
    say("echoed", got);
}

/* flood: four processes with as many connections as there are, some kept open,
   until no more are taken; each counts those that were answered. */
static void flood(const char *host, long port) {
    long *answered = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < 4; i++)
        if (fork() == 0) {
            int kept[10] = {0};
            struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};
            if (ask(host, &a.sin_addr)) _exit(1);
            for (int n = 0;; n = (n + 1) % 10) {
                char c = 'h';
                int s = socket(AF_INET, SOCK_STREAM, 0);
                if (connect(s, (void *)&a, sizeof a)) {
                    if (errno == ECONNREFUSED) _exit(0);
                    close(s);
                    continue;
                }
                if (send(s, &c, 1, MSG_NOSIGNAL) == 1 && read(s, &c, 1) == 1) __atomic_add_fetch(answered, 1, __ATOMIC_SEQ_CST);
                if (kept[n]) close(kept[n]);
                kept[n] = s;
            }
        }
    while (wait(0) > 0);
    say("answered", *answered);
}

/* leave ends with connections that nobody has closed, one end has, or that are
   full, and a daemon that holds them too. */
static void leave(const char *host, long port) {
    char c;
    for (int i = 0; i < 3; i++) {
        begin(host, port, 'h');
        if (read(begin(host, port, 'w'), &c, 1) != 0) perror("an end");
        if (i > 0) shutdown(begin(host, port, 's'), SHUT_WR);
    }
    daemons(1);
}

/* unlisted asks for names that are not in the list. */
static void unlisted(long n) {
    char name[256];
    struct in_addr ip;
    long none = 0;
    for (long i = 0; i < n; i++) {
        snprintf(name, sizeof name, "n%ld.%060ld.%060ld.example", i, i, i);
        none += ask(name, &ip) == 3;
    }
    say("no such name", none);
}

int main(int argc, char **argv) {
    const char *op = argc > 1 ? argv[1] : "";
    long a = argc > 2 ? atol(argv[2]) : 0, port = argc > 3 ? atol(argv[3]) : 0;
    if (!strcmp(op, "hello")) { puts("hello from C"); return 7; }
    if (!strcmp(op, "hold")) { hold(a); return 0; }
    if (!strcmp(op, "hog")) { hold(a); pauses(); }
    if (!strcmp(op, "family")) { family(a); return 0; }
    if (!strcmp(op, "forks")) { forks(); return 0; }
    if (!strcmp(op, "bomb")) { for (;;) fork(); }
    if (!strcmp(op, "burn")) { burn(a); return 0; }
    if (!strcmp(op, "spinners")) spinners();
    if (!strcmp(op, "daemons")) { daemons(a); return 3; }
    if (!strcmp(op, "killall")) { killall(); return 4; }
    if (!strcmp(op, "refused")) { refused(); return 0; }
    if (!strcmp(op, "foreign")) { foreign(); return 0; }
    if (!strcmp(op, "network")) { network(a); return 0; }
    if (!strcmp(op, "ipc")) { ipc(); return 0; }
    if (!strcmp(op, "unlisted")) { unlisted(a); return 0; }
    if (!strcmp(op, "echo") && argc > 4) { echo(argv[2], port, atol(argv[4])); return 0; }
    if (!strcmp(op, "flood")) { flood(argv[2], port); return 0; }
    if (!strcmp(op, "leave")) { leave(argv[2], port); return 0; }
    if (!strcmp(op, "stay")) { begin(argv[2], port, 'h'); puts("ready"); fflush(stdout); pauses(); }
    fprintf(stderr, "soak: %s?\n", op);
    return 2;
}
