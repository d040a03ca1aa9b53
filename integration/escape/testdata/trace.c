// Traces its own child, lets it call mount in the place of getpid, and reads its
// memory; then tries the same with init.
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int number = 1;

static const char *name(long r) { return r >= 0 ? "OK" : strerrorname_np(errno); }

static long peek(pid_t pid, int *to) {
    struct iovec l = { to, sizeof *to }, r = { (void *)&number, sizeof *to };
    return syscall(SYS_process_vm_readv, pid, &l, 1, &r, 1, 0);
}

int main(void) {
    pid_t pid = fork();
    if (!pid) {
        number = 42;
        if (ptrace(PTRACE_TRACEME, 0, 0, 0)) { printf("PTRACE_TRACEME %s\n", name(-1)); fflush(stdout); _exit(1); }
        raise(SIGSTOP);
        long r = syscall(SYS_getpid);
        _exit(r < 0 ? errno : 0);
    }
    int status, seen = 0;
    waitpid(pid, &status, 0);
    if (WIFEXITED(status)) return WEXITSTATUS(status);
    peek(pid, &seen);
    ptrace(PTRACE_SETOPTIONS, pid, 0, PTRACE_O_TRACESYSGOOD);
    for (int entry = 1; ptrace(PTRACE_SYSCALL, pid, 0, 0) == 0 && waitpid(pid, &status, 0) == pid && !WIFEXITED(status); entry = !entry) {
        struct user_regs_struct r;
        ptrace(PTRACE_GETREGS, pid, 0, &r);
        if (entry && r.orig_rax == SYS_getpid) {
            r.orig_rax = SYS_mount;
            ptrace(PTRACE_SETREGS, pid, 0, &r);
        }
    }
    errno = WEXITSTATUS(status);
    printf("traced child: mount %s, read %d\n", strerrorname_np(errno), seen);
    printf("init: seize %s, ", name(ptrace(PTRACE_SEIZE, 1, 0, 0)));
    printf("read %s\n", name(peek(1, &seen)));
    printf("unshare %s\n", name(unshare(CLONE_NEWUSER)));
    return 0;
}
