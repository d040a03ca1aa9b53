/* A14: address-space reservations (Go, sanitizers). A memory limit made with RLIMIT_AS (or
 * RLIMIT_DATA) kills Go, sanitizer and hardened-malloc programs at start: they reserve gigabytes
 * of address space they never touch. */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
int main(void) {
    size_t gib = 1UL << 30, sizes[] = { 1, 64, 1024 };
    for (int i = 0; i < 3; i++) {
        void *p = mmap(NULL, sizes[i] * gib, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (p == MAP_FAILED) { printf("FAIL: cannot reserve %zu GiB of address space\n", sizes[i]); return 1; }
        if (mprotect(p, 8 << 20, PROT_READ | PROT_WRITE)) { puts("FAIL: mprotect"); return 1; }
        memset(p, 1, 8 << 20);
        munmap(p, sizes[i] * gib);
    }
    puts("PASS"); return 0;
}
