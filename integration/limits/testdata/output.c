/* output WAY N: N times 'o' on stdout, by a way that is not plain write(1).
   output flood N FILE: on both streams; then makes FILE and waits for end of file. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static void die(const char *what) { perror(what); exit(1); }

static int is(const char *a, const char *b) { return strcmp(a, b) == 0; }

/* put writes n bytes in pieces, and waits where the descriptor does not. */
static void put(int fd, long n, size_t piece) {
    static char block[4096];
    memset(block, 'o', sizeof block);
    if (piece > sizeof block) piece = sizeof block;
    while (n > 0) {
        ssize_t w = write(fd, block, (size_t)n < piece ? (size_t)n : piece);
        struct pollfd p = {fd, POLLOUT, 0};
        if (w < 0 && errno == EAGAIN) { poll(&p, 1, -1); continue; }
        if (w < 0) die("write");
        n -= w;
    }
}

/* put_at opens a path that leads to a stdout. */
static void put_at(const char *path, long n) {
    int fd = open(path, O_WRONLY);
    if (fd < 0) die(path);
    put(fd, n, 4096);
}

static int file_of(long n) {
    char path[64];
    snprintf(path, sizeof path, "/tmp/%d", getpid());
    int fd = open(path, O_CREAT | O_RDWR | O_TRUNC, 0600);
    if (fd < 0) die(path);
    put(fd, n, 4096);
    lseek(fd, 0, SEEK_SET);
    return fd;
}

static void by_splice(long n) {
    int fd = file_of(n);
    while (n > 0) {
        ssize_t w = splice(fd, 0, 1, 0, n, 0);
        if (w <= 0) die("splice");
        n -= w;
    }
}

/* by_sendfile sends one file again and again: pages that are not copied. */
static void by_sendfile(int to, long n) {
    long size = n < 1 << 20 ? n : 1 << 20;
    int fd = file_of(size);
    while (n > 0) {
        off_t at = 0;
        ssize_t w = sendfile(to, fd, &at, n < size ? n : size);
        if (w <= 0) die("sendfile");
        n -= w;
    }
}

static void by_tee(long n) {
    int p[2];
    char drop[4096];
    if (pipe(p)) die("pipe");
    while (n > 0) {
        put(p[1], n < 4096 ? n : 4096, 4096);
        ssize_t w = tee(p[0], 1, n, 0);
        if (w <= 0) die("tee");
        if (read(p[0], drop, sizeof drop) != w) die("tee of less");
        n -= w;
    }
}

static void by_vmsplice(long n) {
    struct iovec v = {malloc(n), n};
    if (vmsplice(1, &v, 1, SPLICE_F_GIFT) < 0) printf("%s", errno == ENOSYS ? "ENOSYS" : strerror(errno));
}

/* by_child lets another process do it, and waits for its word that it has. */
static void by_child(const char *way, long n) {
    int done[2], pass[2];
    char c, path[64], room[CMSG_SPACE(sizeof(int))] = {0};
    struct iovec v = {&c, 1};
    struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
    if (pipe(done) || socketpair(AF_UNIX, SOCK_STREAM, 0, pass)) die("pipe");
    snprintf(path, sizeof path, "/proc/%d/fd/1", getpid());
    if (fork() == 0) {
        if (is(way, "daemon")) { setsid(); if (fork()) _exit(0); put(1, n, 4096); }
        if (is(way, "other")) { close(1); put_at(path, n); }
        if (is(way, "passed")) {
            close(1);
            if (recvmsg(pass[1], &m, 0) != 1) die("recvmsg");
            put(*(int *)CMSG_DATA(CMSG_FIRSTHDR(&m)), n, 4096);
        }
        if (write(done[1], "", 1) != 1) die("done");
        _exit(0);
    }
    if (is(way, "passed")) {
        struct cmsghdr *h = CMSG_FIRSTHDR(&m);
        *h = (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int))};
        *(int *)CMSG_DATA(h) = 1;
        if (sendmsg(pass[0], &m, 0) != 1) die("sendmsg");
    }
    if (read(done[0], &c, 1) != 1) die("child");
}

/* flood: both streams at once, a gigabyte each, from pages that nobody copies. */
static void flood(long n) {
    for (int fd = 1; fd <= 2; fd++)
        if (fork() == 0) { by_sendfile(fd, n); _exit(0); }
    while (wait(0) > 0);
}

int main(int argc, char **argv) {
    const char *way = argv[1];
    long n = argc > 2 ? atol(argv[2]) : 0;
    char c;
    if (is(way, "bytes")) put(1, n, 1);
    else if (is(way, "splice")) by_splice(n);
    else if (is(way, "sendfile")) by_sendfile(1, n);
    else if (is(way, "tee")) by_tee(n);
    else if (is(way, "vmsplice")) by_vmsplice(n);
    else if (is(way, "device")) put_at("/dev/stdout", n);
    else if (is(way, "self")) put_at("/proc/self/fd/1", n);
    else if (is(way, "thread")) put_at("/proc/thread-self/fd/1", n);
    else if (is(way, "large")) { if (fcntl(1, F_SETPIPE_SZ, 1 << 20) < 0) die("F_SETPIPE_SZ"); put(1, n, 4096); }
    else if (is(way, "packets")) { if (fcntl(1, F_SETFL, O_DIRECT)) die("O_DIRECT"); put(1, n, 100); }
    else if (is(way, "nonblock")) { if (fcntl(1, F_SETFL, O_NONBLOCK | O_ASYNC)) die("O_NONBLOCK"); put(1, n, 4096); }
    else if (is(way, "moved")) { dup2(1, 9); close(0); close(1); put(9, n, 4096); }
    else if (is(way, "daemon") || is(way, "other") || is(way, "passed")) by_child(way, n);
    else if (is(way, "flood")) {
        puts("flood"); fflush(stdout);
        flood(n);
        if (open(argv[3], O_CREAT | O_WRONLY, 0600) < 0) die(argv[3]);
        while (read(0, &c, 1) > 0);
    }
    else return 2;
    return 0;
}
