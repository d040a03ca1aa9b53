/* quota: takes of each thing that the kernel counts for a user until it refuses,
   and says how many there were. With an argument it then holds them until end of file. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static void say(const char *what, long n) {
    printf("%s %ld %s\n", what, n, errno == EMFILE ? "EMFILE" : errno == ENOSPC ? "ENOSPC" : errno == EAGAIN ? "EAGAIN" : strerror(errno));
    fflush(stdout);
}

int main(int argc, char **argv) {
    char path[64];
    int fd, last = -1;
    long n = 0;
    while ((fd = inotify_init1(0)) >= 0) last = fd, n++;
    say("instances", n);
    for (n = 0;; n++) {
        snprintf(path, sizeof path, "/tmp/%ld", n);
        if (mkdir(path, 0700) != 0 || inotify_add_watch(last, path, IN_ALL_EVENTS) < 0) break;
    }
    say("watches", n);
    struct sigevent none = {.sigev_notify = SIGEV_NONE};
    timer_t timer;
    /* A signal on its way to init (its runtime sends itself some) holds one of
       the same count for a moment: the last one is asked for again. */
    n = 0;
    for (int again = 0; again < 100; again++, nanosleep(&(struct timespec){0, 1000000}, NULL))
        while (timer_create(CLOCK_MONOTONIC, &none, &timer) == 0) n++;
    say("timers", n);
    for (n = 0;; n++) {
        snprintf(path, sizeof path, "/q%ld", n);
        if (mq_open(path, O_CREAT | O_RDWR, 0600, NULL) == (mqd_t)-1) break;
    }
    say("queues", n);
    for (n = 0; open("/dev/ptmx", O_RDWR | O_NOCTTY) >= 0;) n++;
    say("terminals", n);
    puts("taken");
    fflush(stdout);
    char c;
    if (argc > 1) while (read(0, &c, 1) > 0) {}
    return 0;
}
