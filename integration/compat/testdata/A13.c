/* A13: modern system calls: ENOSYS, not EPERM or SIGSYS. An allow-list written for an older libc
 * kills or refuses (EPERM) calls that new glibc/CPython/Rust/Node make only now and then, so runs
 * fail at random. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
struct probe { const char *name; long nr, a, b, c, d, e; };
#define P(n, ...) { #n, SYS_##n, __VA_ARGS__ }
#define N(n, nr, ...) { #n, nr, __VA_ARGS__ }
static struct probe list[] = {
    N(clone3, 435, 0, 0), N(close_range, 436, 0x7ffffff0, 0x7ffffff1, 0), N(openat2, 437, -100, 0, 0, 0),
    N(pidfd_open, 434, -1, 0), N(faccessat2, 439, -100, 0, 0, 0), N(epoll_pwait2, 441, -1, 0, 0, 0, 0),
    N(futex_waitv, 449, 0, 0, 0, 0, 0), N(fchmodat2, 452, -100, 0, 0, 0), N(cachestat, 451, -1, 0, 0, 0),
#ifdef SYS_rseq
    P(rseq, 0, 0, 0, 0),
#endif
#ifdef SYS_statx
    P(statx, -1, 0, 0, 0, 0),
#endif
    P(membarrier, 0, 0, 0), P(sched_getaffinity, 0, 0, 0), P(getrandom, 0, 0, 0), P(memfd_create, 0, 0),
    P(copy_file_range, -1, 0, -1, 0, 0), P(preadv2, -1, 0, 0, 0, 0), P(prlimit64, 0, 7, 0, 0), P(pipe2, 0, 0),
    P(dup3, -1, -2, 0), P(epoll_create1, -1), P(eventfd2, 0, -1), P(timerfd_create, -1, 0), P(signalfd4, -1, 0, 8, 0),
    P(inotify_init1, -1), P(renameat2, -100, 0, -100, 0, 0), P(set_robust_list, 0, 0), P(sigaltstack, 0, 0),
    P(getcpu, 0, 0, 0), P(mincore, 0, 0, 0), P(madvise, 0, 0, 0), P(sysinfo, 0), P(times, 0), P(splice, -1, 0, -1, 0, 0),
    P(tee, -1, -1, 0, 0), P(sendfile, -1, -1, 0, 0), P(utimensat, -1, 0, 0, 0), P(fallocate, -1, 0, 0, 0),
    P(getdents64, -1, 0, 0), P(sched_yield, 0), P(mlock, 0, 0), P(fadvise64, -1, 0, 0, 0), P(sync_file_range, -1, 0, 0, 0),
    P(getxattr, 0, 0, 0, 0), P(flock, -1, 8), P(waitid, 99, 0, 0, 0, 0), P(capget, 0, 0), P(setpgid, 0, -1), P(getitimer, -1, 0),
};
int main(void) {
    int bad = 0;
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        int p[2]; if (pipe(p)) return 2;
        pid_t k = fork();
        if (k == 0) {
            errno = 0; struct probe *q = &list[i];
            syscall(q->nr, q->a, q->b, q->c, q->d, q->e, 0L);
            int e = errno; if (write(p[1], &e, sizeof e) < 0) _exit(2);
            _exit(0);
        }
        close(p[1]); int e = -1, st = 0; if (read(p[0], &e, sizeof e) < 0) e = -1;
        close(p[0]); waitpid(k, &st, 0);
        if (WIFSIGNALED(st)) { printf("  %-18s killed by signal %d\n", list[i].name, WTERMSIG(st)); bad++; }
        else if (e == EPERM) { printf("  %-18s EPERM\n", list[i].name); bad++; }
    }
    if (bad) printf("FAIL: %d of %zu calls refused the wrong way\n", bad, sizeof list / sizeof *list); else puts("PASS");
    return bad != 0;
}
