// What libc.py does, for a C library that no Python comes with.
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CHECK(x) do { if (!(x)) { printf("FAIL line %d: %s: %s\n", __LINE__, #x, strerror(errno)); exit(1); } } while (0)

static void *count(void *n) { __atomic_add_fetch((int *)n, 1, __ATOMIC_SEQ_CST); return 0; }
static volatile int alarmed;
static void on_alarm(int s) { alarmed = s; }

int main(void) {
    setvbuf(stdout, 0, _IONBF, 0);
    int n = 0, status;
    pthread_t t[8];
    for (int i = 0; i < 8; i++) CHECK(pthread_create(&t[i], 0, count, &n) == 0);
    for (int i = 0; i < 8; i++) pthread_join(t[i], 0);
    CHECK(n == 8);
    pid_t pid = fork();
    if (!pid) _exit(7);
    CHECK(waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == 7);
    char *args[] = { "sh", "-c", "exit 3", 0 }, *env[] = { 0 };
    CHECK(posix_spawn(&pid, "/bin/sh", 0, 0, args, env) == 0 && waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == 3);
    CHECK(system("exit 2") == 2 << 8);
    FILE *p = popen("echo hi", "r"); char line[8] = "";
    CHECK(p && fgets(line, sizeof line, p) && !strcmp(line, "hi\n") && pclose(p) == 0);
    struct stat st; struct timespec times[2] = { { 1, 0 }, { 2, 0 } };
    int fd = open("/tmp/f", O_RDWR | O_CREAT, 0640);
    CHECK(fd >= 0 && write(fd, "abc", 3) == 3 && fchmod(fd, 0600) == 0 && utimensat(AT_FDCWD, "/tmp/f", times, 0) == 0);
    CHECK(rename("/tmp/f", "/tmp/g") == 0 && symlink("g", "/tmp/l") == 0 && stat("/tmp/l", &st) == 0 && st.st_mtime == 2 && (st.st_mode & 07777) == 0600);
    CHECK(faccessat(AT_FDCWD, "/tmp/g", R_OK, AT_EACCESS) == 0 && chmod("/tmp/g", 04755) == -1 && errno == EPERM);
    CHECK(fchmodat(AT_FDCWD, "/tmp/g", 0640, AT_SYMLINK_NOFOLLOW) == 0 || errno == EOPNOTSUPP);
    CHECK(mkdir("/tmp/d", 0700) == 0 && opendir("/tmp/d") && rmdir("/tmp/d") == 0);
    int s[2]; CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s) == 0 && send(s[0], "x", 1, 0) == 1);
    struct pollfd w = { s[1], POLLIN, 0 }; CHECK(poll(&w, 1, 9000) == 1);
    struct epoll_event e = { .events = EPOLLIN }; int ep = epoll_create1(EPOLL_CLOEXEC);
    CHECK(epoll_ctl(ep, EPOLL_CTL_ADD, s[1], &e) == 0 && epoll_wait(ep, &e, 1, 9000) == 1);
    struct timespec short_time = { 0, 1000000 }; char random[4];
    CHECK(nanosleep(&short_time, 0) == 0 && clock_gettime(CLOCK_MONOTONIC, &short_time) == 0 && getrandom(random, 4, 0) == 4);
    signal(SIGALRM, on_alarm); alarm(1); pause(); CHECK(alarmed == SIGALRM);
    void *big = malloc(32 << 20); CHECK(big); memset(big, 1, 32 << 20); big = realloc(big, 48 << 20); CHECK(big); free(big);
    puts("PASS");
    return 0;
}
