/* B18: core dump of a huge address space. Where core_pattern is a pipe, RLIMIT_CORE does not stop
 * the dump: a crashing program with terabytes mapped keeps the kernel walking its mappings, cannot
 * be killed, and lands in the host's crash store. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
int main(void) {
    size_t gib = 1UL << 30; int n = 0;
    for (int i = 0; i < 32; i++) {
        char *p = mmap(NULL, 1024 * gib, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (p == MAP_FAILED) break;
        p[0] = 1; n++;
    }
    printf("mapped %d TiB\n", n); fflush(stdout);
    abort();
}
