/* kernel KIND N: makes the kernel hold memory of one kind, in N processes, and
 * says what ended it. With HOLD it stays. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

static char block[1 << 20];

/* Each returns how many it made; errno says what was refused. */

static long pipes(void) {
    long n = 0; int f[2];
    while (pipe(f) == 0) {
        fcntl(f[1], F_SETFL, O_NONBLOCK);
        fcntl(f[1], F_SETPIPE_SZ, 1 << 20); /* refused above what the user may have */
        for (ssize_t w; (w = write(f[1], block, 4096)) > 0;) n += w;
    }
    return n >> 20;
}

static long unixes(void) {
    long n = 0; int f[2], large = 1 << 22;
    while (socketpair(AF_UNIX, SOCK_STREAM, 0, f) == 0) {
        setsockopt(f[0], SOL_SOCKET, SO_SNDBUF, &large, sizeof large);
        for (ssize_t w; (w = send(f[0], block, 65536, MSG_DONTWAIT)) > 0;) n += w;
    }
    return n >> 20;
}

/* areas: neighbours that cannot be merged. */
static long areas(void) {
    long n = 0;
    for (char *p; (p = mmap(0, 4096, n & 1 ? PROT_READ : PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) != MAP_FAILED;) n++;
    return n;
}

/* sparse: one byte in each 2 MiB, which costs a page and a page of tables. */
static long sparse(void) {
    long n = 0;
    for (volatile char *p; n < 1 << 20 && (p = mmap(0, 1 << 30, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) != MAP_FAILED;)
        for (long i = 0; i < 1 << 30; i += 2 << 20, n++) p[i] = 1;
    return n;
}

static long notify(void) {
    long n = 0; char name[256]; int fd;
    while ((fd = inotify_init1(IN_NONBLOCK)) >= 0) {
        if (inotify_add_watch(fd, "/tmp", IN_CREATE | IN_DELETE) < 0) break;
        n++;
    }
    int first = errno;
    for (int i = 0; i < 20000; i++) {
        snprintf(name, sizeof name, "/tmp/%0200d", i);
        if (mknod(name, S_IFREG | 0600, 0) == 0) unlink(name);
    }
    errno = first;
    return n;
}

static long epolls(void) {
    long n = 0; int fds[300];
    for (int i = 0; i < 300; i++) fds[i] = eventfd(0, 0);
    for (int e; (e = epoll_create1(0)) >= 0;)
        for (int i = 0; i < 300; i++) {
            struct epoll_event ev = {.events = EPOLLIN};
            if (epoll_ctl(e, EPOLL_CTL_ADD, fds[i], &ev)) return n;
            n++;
        }
    return n;
}

static long events(void) { long n = 0; while (eventfd(0, 0) >= 0) n++; return n; }

static long timers(void) {
    long n = 0; timer_t t; struct sigevent s = {.sigev_notify = SIGEV_NONE};
    while (timer_create(CLOCK_MONOTONIC, &s, &t) == 0) n++;
    return n;
}

static long timerfds(void) { long n = 0; while (timerfd_create(CLOCK_MONOTONIC, 0) >= 0) n++; return n; }

/* locks: each second byte, so that no two are merged; a list is searched from its start. */
static long locks(void) {
    long n = 0; char name[64]; int fd;
    while (snprintf(name, sizeof name, "/tmp/l%d-%ld", getpid(), n), (fd = open(name, O_CREAT | O_RDWR, 0600)) >= 0)
        for (int i = 500; i > 0; i--, n++) {
            struct flock l = {.l_type = F_WRLCK, .l_start = 2 * i, .l_len = 1};
            if (fcntl(fd, F_SETLK, &l)) return n;
        }
    return n;
}

static long messages(void) {
    long n = 0; int q; struct { long type; char text[8000]; } m = {.type = 1};
    while ((q = msgget(IPC_PRIVATE, IPC_CREAT | 0600)) >= 0)
        while (msgsnd(q, &m, sizeof m.text, IPC_NOWAIT) == 0) n++;
    return n;
}

static long semaphores(void) { long n = 0; while (n < 4000 && semget(IPC_PRIVATE, 250, IPC_CREAT | 0600) >= 0) n++; return n; }

/* segments: that nobody maps any more. */
static long segments(void) {
    long n = 0; int id;
    while ((id = shmget(IPC_PRIVATE, 1 << 20, IPC_CREAT | 0600)) >= 0) {
        char *p = shmat(id, 0, 0);
        if (p == (void *)-1) break;
        memset(p, 1, 1 << 20);
        shmdt(p);
        n++;
    }
    return n;
}

static long dirs(void) {
    long n = 0; char name[256];
    while (snprintf(name, sizeof name, "/tmp/d%d%0200ld", getpid(), n), mkdir(name, 0700) == 0) n++;
    return n;
}

/* absent: names that are not there, and were not for any run before, in a file system of the host. */
static long absent(void) {
    char name[256]; struct stat st; struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    for (long i = 0; i < 8000 && time(0) < now.tv_sec + 8; i++) {
        snprintf(name, sizeof name, "/usr/lib/%d-%ld-%ld-%0180ld", getpid(), (long)now.tv_sec, (long)now.tv_nsec, i);
        stat(name, &st);
    }
    return 8000;
}

static long xattrs(void) {
    long n = 0; char name[64]; int fd;
    while (snprintf(name, sizeof name, "/tmp/x%d-%ld", getpid(), n), (fd = open(name, O_CREAT | O_RDWR, 0600)) >= 0) {
        close(fd);
        for (int i = 0; i < 16; i++, n++) {
            char key[32]; snprintf(key, sizeof key, "user.%d", i);
            if (setxattr(name, key, block, 60000, 0)) return n;
        }
    }
    return n;
}

static long procs(void) {
    long n = 0; int fd;
    while ((fd = open("/proc/self/maps", O_RDONLY)) >= 0) { if (read(fd, block, 64) < 0) break; n++; }
    return n;
}

/* links: answers about lo that nobody reads. */
static long links(void) {
    struct { struct nlmsghdr h; struct ifinfomsg i; } ask = {{sizeof ask, RTM_GETLINK, NLM_F_REQUEST, 1, 0}, {.ifi_index = 1}};
    struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
    long n = 0; int fd, large = 1 << 24;
    while ((fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE)) >= 0) {
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &large, sizeof large);
        for (int i = 0; i < 1 << 16; i++, n++) {
            if (sendto(fd, &ask, sizeof ask, MSG_DONTWAIT, (void *)&kernel, sizeof kernel) < 0) break;
            int e = 0; socklen_t len = sizeof e; /* ENOBUFS: one more did not fit */
            if ((i & 15) == 15 && getsockopt(fd, SOL_SOCKET, SO_ERROR, &e, &len) == 0 && e) break;
        }
    }
    return n;
}

/* Options of sockets, as many as each takes. */
static long options(int family, int type, int level, int name, void *value, int size, unsigned *counter) {
    long n = 0;
    for (int fd; (fd = socket(family, type, 0)) >= 0;) {
        long before = n;
        while (n - before < 4096 && (++*counter, setsockopt(fd, level, name, value, size) == 0)) n++;
        if (n == before) return n; /* not one: the answer is in errno */
    }
    return n;
}

static long keys(void) {
    struct { struct sockaddr_storage to; unsigned char flags, prefix; unsigned short size; int device; char key[80]; } key = {.size = 80};
    struct sockaddr_in *to = (void *)&key.to;
    to->sin_family = AF_INET;
    return options(AF_INET, SOCK_STREAM, IPPROTO_TCP, 14 /* TCP_MD5SIG */, &key, sizeof key, &to->sin_addr.s_addr);
}

static long labels(void) {
    struct { struct in6_addr to; unsigned label; unsigned char action, share; unsigned short flags, expires, linger; unsigned pad; } label =
        {.to = IN6ADDR_LOOPBACK_INIT, .action = 0, .share = 1, .flags = 1, .expires = 60, .linger = 1};
    unsigned none = 0;
    return options(AF_INET6, SOCK_DGRAM, IPPROTO_IPV6, 32 /* IPV6_FLOWLABEL_MGR */, &label, sizeof label, &none);
}

static long headers(void) {
    static char header[8 * 255] = {0, 254};
    unsigned none = 0;
    return options(AF_INET6, SOCK_DGRAM, IPPROTO_IPV6, 59 /* IPV6_DSTOPTS */, header, sizeof header, &none);
}

static long groups(void) {
    struct ipv6_mreq group = {.ipv6mr_interface = 1};
    group.ipv6mr_multiaddr.s6_addr[0] = 0xff;
    group.ipv6mr_multiaddr.s6_addr[1] = 0x12;
    return options(AF_INET6, SOCK_DGRAM, IPPROTO_IPV6, IPV6_ADD_MEMBERSHIP, &group, sizeof group, &group.ipv6mr_multiaddr.s6_addr32[3]);
}

/* corks: datagrams that wait for their end. */
static long corks(int part) {
    struct sockaddr_in to = {AF_INET, htons(9), {htonl(INADDR_LOOPBACK)}, {0}};
    long n = 0;
    for (int fd; (fd = socket(AF_INET, SOCK_DGRAM, 0)) >= 0; n++) {
        int large = 1 << 20;
        setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &large, sizeof large);
        if (sendto(fd, block, 60000, MSG_MORE | MSG_DONTWAIT, (void *)&to, sizeof to) < 0) break;
        struct sockaddr nobody = {.sa_family = AF_UNSPEC};
        if (part && connect(fd, &nobody, sizeof nobody)) break;
    }
    return n;
}

/* parted: the same in sockets that are in no table any more. */
static long parted(void) { return corks(1); }

/* errors: the ICMP answers of closed ports, which are kept for whoever asked for them. */
static long errors(void) {
    struct sockaddr_in four = {AF_INET, htons(9), {htonl(INADDR_LOOPBACK)}, {0}};
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(9), .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    long n = 0;
    for (int i = 0; i < 2; i++) {
        int on = 1, fd = socket(i ? AF_INET6 : AF_INET, SOCK_DGRAM, 0);
        if (setsockopt(fd, i ? SOL_IPV6 : SOL_IP, i ? 25 : 11 /* IP_RECVERR */, &on, sizeof on)) return -1;
        for (int k = 0; k < 100; k++) sendto(fd, block, 500, MSG_DONTWAIT, i ? (void *)&six : (void *)&four, i ? sizeof six : sizeof four);
        char control[512];
        struct iovec data = {block, 500};
        struct msghdr m = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
        while (recvmsg(fd, &m, MSG_ERRQUEUE | MSG_DONTWAIT) >= 0) n++;
    }
    return n;
}

/* backlog: connections with data that nobody accepts, and whose other end is closed. */
static long backlog(void) {
    long n = 0;
    for (int many = 0; many < 100; many++) {
        struct sockaddr_in at = {AF_INET, 0, {htonl(INADDR_LOOPBACK)}, {0}};
        socklen_t len = sizeof at;
        int l = socket(AF_INET, SOCK_STREAM, 0), large = 1 << 22;
        setsockopt(l, SOL_SOCKET, SO_RCVBUF, &large, sizeof large);
        if (l < 0 || listen(l, 4096)) return n;
        getsockname(l, (void *)&at, &len);
        for (int i = 0; i < 4096; i++, n++) {
            int c = socket(AF_INET, SOCK_STREAM, 0);
            fcntl(c, F_SETFL, O_NONBLOCK);
            /* Over the loopback it is there at once, or not at all: the queue is full. */
            if (c < 0 || (connect(c, (void *)&at, sizeof at) && errno != EINPROGRESS)) { close(c); break; }
            int k = 0;
            while (k < 64 && send(c, block, 65536, MSG_DONTWAIT) > 0) k++;
            close(c);
            if (k == 0) break;
        }
    }
    return n;
}

/* reset: the same, but a hundred, and their other end has reset them: they are in no table. */
static long reset(void) {
    struct sockaddr_in at = {AF_INET, 0, {htonl(INADDR_LOOPBACK)}, {0}};
    struct linger now = {1, 0};
    socklen_t len = sizeof at;
    int l = socket(AF_INET, SOCK_STREAM, 0), large = 1 << 22;
    setsockopt(l, SOL_SOCKET, SO_RCVBUF, &large, sizeof large);
    if (l < 0 || listen(l, 4096)) return -1;
    getsockname(l, (void *)&at, &len);
    for (int n = 0; n < 100; n++) {
        int c = socket(AF_INET, SOCK_STREAM, 0);
        if (c < 0 || connect(c, (void *)&at, sizeof at)) return n;
        for (int k = 0; k < 64 && send(c, block, 65536, MSG_DONTWAIT) > 0; k++);
        setsockopt(c, SOL_SOCKET, SO_LINGER, &now, sizeof now);
        close(c);
    }
    return 100;
}

/* filters: as long as a filter may be. */
static long filters(void) {
    static struct sock_filter f[4096];
    for (int i = 0; i < 4095; i++) f[i] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_IMM, 0);
    f[4095] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog p = {4096, f};
    long n = 0;
    while (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &p) == 0) n++;
    return n;
}

static long make(const char *kind) {
    if (!strcmp(kind, "corks")) return corks(0);
#define KIND(k) if (!strcmp(kind, #k)) return k();
    KIND(pipes) KIND(unixes) KIND(areas) KIND(sparse) KIND(notify) KIND(epolls) KIND(events) KIND(timers) KIND(timerfds)
    KIND(messages) KIND(semaphores) KIND(segments) KIND(dirs) KIND(absent) KIND(xattrs) KIND(procs) KIND(links) KIND(parted) KIND(keys) KIND(labels) KIND(headers) KIND(groups)
    KIND(errors) KIND(backlog) KIND(reset) KIND(filters) KIND(locks)
    errno = EINVAL;
    return -1;
}

int main(int argc, char **argv) {
    int many = argc > 2 ? atoi(argv[2]) : 1, up[2];
    signal(SIGPIPE, SIG_IGN);
    if (pipe(up)) return 2;
    for (int i = 0; i < many; i++) {
        if (fork() != 0) continue;
        errno = 0;
        long n = make(argv[1]);
        char line[80];
        write(up[1], line, snprintf(line, sizeof line, "%s %ld %s\n", argv[1], n, strerrorname_np(errno)));
        for (;;) pause();
    }
    close(up[1]);
    for (int i = 0; i < many; i++) {
        char c;
        do { if (read(up[0], &c, 1) != 1) return 3; write(1, &c, 1); } while (c != '\n');
    }
    if (getenv("HOLD")) for (;;) pause();
    return 0;
}
