/* A30: tracing one's own children. LeakSanitizer, gdb, strace and crash handlers trace their OWN
 * child; where ptrace is refused the program ends with a fatal sanitizer error although its real
 * work passed; where the filter kills, it looks like a crash. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void) {
    pid_t k = fork(); int st = 0;
    if (k == 0) {
        if (ptrace(PTRACE_TRACEME, 0, 0, 0) < 0) _exit(errno == EPERM || errno == ENOSYS ? 40 : 41);
        raise(SIGSTOP); _exit(0);
    }
    waitpid(k, &st, 0);
    if (WIFSTOPPED(st)) { ptrace(PTRACE_CONT, k, 0, 0); waitpid(k, &st, 0); puts("PASS traced"); return 0; }
    if (WIFEXITED(st) && WEXITSTATUS(st) == 40) { puts("PASS refused"); return 0; }
    printf("FAIL: child status %x\n", st); return 1;
}
