/* A01: clone3 refused with EPERM. A filter that answers EPERM to clone3 makes every thread
 * creation fail (new glibc only falls back on ENOSYS). */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#ifndef SYS_clone3
#define SYS_clone3 435
#endif
static void *body(void *arg) { *(int *)arg += 1; return arg; }
int main(void) {
    errno = 0;
    syscall(SYS_clone3, (void *)0, (size_t)0);
    int e = errno;
    if (e != ENOSYS && e != EINVAL) { printf("FAIL: clone3 probe answered %s\n", strerror(e)); return 1; }
    pthread_t t[8]; int v[8] = {0}, sum = 0;
    for (int i = 0; i < 8; i++) {
        int r = pthread_create(&t[i], NULL, body, &v[i]);
        if (r) { printf("FAIL: pthread_create %d: %s\n", i, strerror(r)); return 1; }
    }
    for (int i = 0; i < 8; i++) { pthread_join(t[i], NULL); sum += v[i]; }
    printf(sum == 8 ? "PASS\n" : "FAIL: threads lost\n");
    return sum != 8;
}
