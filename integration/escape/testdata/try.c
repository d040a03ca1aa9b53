/* try OP...: does each forbidden thing in a child of its own and prints "OP RESULT": OK, an errno's name, or SIGn.
 *
 *   open:r|w|rw|path:PATH  mkdir:PATH  mknod:PATH  unlink:PATH  chmod:OCTAL:PATH  chown:PATH  exec:PATH  rename:A:B
 *   creat:OCTAL:PATH  mkfifo:OCTAL:PATH
 *   write:PATH:TEXT  read:PATH  list:PATH (entries, sorted by the caller)  readlink:PATH
 *   connect:IP:PORT  unix:@NAME|PATH  socket:FAMILY:TYPE:PROTO  kill:PID:SIG  ptrace:PID  prlimit:PID:RES:VALUE
 *   rlimit:RES:VALUE  unshare:HEX  clone:HEX  sethostname:NAME  setns:PATH  mount:FSTYPE:PATH  remount:PATH  umount:PATH
 *   bind:A:B  pidfd:PID:SIG  getfd:PID:FD  nice:PID  affinity:PID  sys:NR[:ARG...]  ioctl:HEX  setuid:N  setgroups:N
 *   option:FAMILY:TYPE:LEVEL:NAME[:SIZE] (of a socket)  evict:PATH  nowait:PATH (a byte, from the page cache alone)
 *   stamp (a TCP segment that asks for its time: the answer)
 *   fcntl:PATH:CMD:ARG  deleg:PATH  openioctl:PATH:HEX  shmget:KEY shmat:ID ids  mqopen:NAME  raise:SIG
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static char *f[8];
static int nf;

static long hex(int i) { return i < nf ? strtol(f[i], 0, 16) : 0; }
static long num(int i) { return i < nf ? strtol(f[i], 0, 0) : 0; }
static long oct(int i) { return i < nf ? strtol(f[i], 0, 8) : 0; }
static int is(const char *s) { return !strcmp(f[0], s); }

static int unix_connect(const char *name) {
    struct sockaddr_un a = { .sun_family = AF_UNIX };
    size_t n = strlen(name);
    memcpy(a.sun_path, name, n);
    if (name[0] == '@') a.sun_path[0] = 0; else n++;
    return connect(socket(AF_UNIX, SOCK_STREAM, 0), (void *)&a, offsetof(struct sockaddr_un, sun_path) + n);
}

static int inet_connect(const char *ip, int port) {
    struct sockaddr_in6 a6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
    struct sockaddr_in a4 = { .sin_family = AF_INET, .sin_port = htons(port) };
    if (inet_pton(AF_INET6, ip, &a6.sin6_addr) == 1) return connect(socket(AF_INET6, SOCK_STREAM, 0), (void *)&a6, sizeof a6);
    inet_pton(AF_INET, ip, &a4.sin_addr);
    return connect(socket(AF_INET, SOCK_STREAM, 0), (void *)&a4, sizeof a4);
}

static int stamp(void) {
    struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
    socklen_t n = sizeof a;
    int l = socket(AF_INET, SOCK_STREAM, 0), s = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(l, (void *)&a, n) || listen(l, 1) || getsockname(l, (void *)&a, &n) || connect(s, (void *)&a, n)) return -1;
    char c[CMSG_SPACE(4)] = { 0 }, x = 0, answer[512];
    struct iovec v = { &x, 1 };
    struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1, .msg_control = c, .msg_controllen = sizeof c };
    *CMSG_FIRSTHDR(&m) = (struct cmsghdr){ CMSG_LEN(4), SOL_SOCKET, 37 /* SO_TIMESTAMPING */ };
    *(int *)CMSG_DATA(CMSG_FIRSTHDR(&m)) = 1 << 1 | 1 << 8 | 1 << 9; /* when it left, was queued, was acknowledged */
    if (sendmsg(s, &m, 0) < 0 || read(accept(l, 0, 0), &x, 1) != 1) return -1;
    m = (struct msghdr){ .msg_control = answer, .msg_controllen = sizeof answer };
    return recvmsg(s, &m, MSG_ERRQUEUE);
}

static int show(const char *path) {
    char buf[65536]; int fd = open(path, O_RDONLY | O_NONBLOCK), n;
    if (fd < 0) return -1;
    while ((n = read(fd, buf, sizeof buf)) > 0) fwrite(buf, 1, n, stdout);
    return n;
}

static int list(const char *path) {
    DIR *d = opendir(path); struct dirent *e;
    if (!d) return -1;
    while ((e = readdir(d))) if (strcmp(e->d_name, ".") && strcmp(e->d_name, "..")) printf("entry %s\n", e->d_name);
    return 0;
}

static int put(const char *path, const char *text) {
    int fd = open(path, O_WRONLY);
    return fd < 0 ? -1 : write(fd, text, strlen(text));
}

static int files(void) {
    if (is("open")) {
        int m = !strcmp(f[1], "r") ? O_RDONLY : !strcmp(f[1], "w") ? O_WRONLY : !strcmp(f[1], "rw") ? O_RDWR : O_PATH;
        return open(f[2], m | O_NONBLOCK);
    }
    if (is("mkdir")) return mkdir(f[1], 0777);
    if (is("mknod")) return mknod(f[1], S_IFBLK | 0600, 0x800);
    if (is("unlink")) return unlink(f[1]);
    if (is("chmod")) return chmod(f[2], oct(1));
    if (is("creat")) return open(f[2], O_CREAT | O_WRONLY, oct(1));
    if (is("mkfifo")) return syscall(SYS_mknodat, AT_FDCWD, f[2], S_IFIFO | oct(1), 0);
    if (is("chown")) return chown(f[1], 0, 0);
    if (is("exec")) return execl(f[1], f[1], NULL);
    if (is("rename")) return rename(f[1], f[2]);
    if (is("write")) return put(f[1], f[2]);
    if (is("read")) return show(f[1]);
    if (is("list")) return list(f[1]);
    if (is("readlink")) { char b[4096]; int n = readlink(f[1], b, sizeof b); if (n > 0) printf("link %.*s\n", n, b); return n; }
    errno = 0; return -2;
}

static int namespaces(void) {
    if (is("unshare")) return unshare(hex(1));
    if (is("clone")) return syscall(SYS_clone, hex(1) | SIGCHLD, 0, 0, 0, 0);
    if (is("sethostname")) return sethostname(f[1], strlen(f[1]));
    if (is("setns")) return setns(open(f[1], O_RDONLY), 0);
    if (is("mount")) return mount(f[1], f[2], f[1], 0, 0);
    if (is("remount")) return mount(0, f[1], 0, MS_REMOUNT | MS_BIND, 0);
    if (is("bind")) return mount(f[1], f[2], 0, MS_BIND, 0);
    if (is("umount")) return umount2(f[1], MNT_DETACH);
    if (is("setuid")) return setresuid(num(1), num(1), num(1));
    if (is("setgroups")) { gid_t g = num(1); return setgroups(1, &g); }
    errno = 0; return -2;
}

/* forks N children that stay, and says how many there were before the first refusal. */
static int forks(int n) {
    int made = 0, e = 0;
    for (; made < n; made++) {
        pid_t k = fork();
        if (k < 0) { e = errno; break; }
        if (!k) { pause(); _exit(0); }
    }
    printf("forked %d\n", made);
    errno = e;
    return e ? -1 : 0;
}

static int processes(void) {
    if (is("kill")) return kill(num(1), num(2));
    if (is("raise")) return raise(num(1));
    if (is("ptrace")) return ptrace(PTRACE_SEIZE, num(1), 0, 0);
    if (is("prlimit")) { struct rlimit r = { num(3), num(3) }; return syscall(SYS_prlimit64, num(1), num(2), &r, 0); }
    if (is("rlimit")) { struct rlimit r = { num(2), num(2) }; return setrlimit(num(1), &r); }
    if (is("pidfd")) return syscall(SYS_pidfd_send_signal, syscall(SYS_pidfd_open, num(1), 0), num(2), 0, 0);
    if (is("getfd")) return syscall(438, syscall(SYS_pidfd_open, num(1), 0), num(2), 0);
    if (is("nice")) return setpriority(PRIO_PROCESS, num(1), 19);
    if (is("affinity")) { cpu_set_t c; CPU_ZERO(&c); CPU_SET(0, &c); return sched_setaffinity(num(1), sizeof c, &c); }
    if (is("forks")) return forks(num(1));
    if (is("ids")) { printf("ids %d %d %d %d\n", getuid(), geteuid(), getgid(), getegid()); return 0; }
    if (is("shmat")) return shmat(num(1), 0, 0) == (void *)-1 ? -1 : 0;
    if (is("shmget")) return shmget(num(1), 1, 0);
    errno = 0; return -2;
}

static int other(void) {
    if (is("connect")) return inet_connect(f[1], num(2));
    if (is("unix")) return unix_connect(f[1]);
    if (is("socket")) return socket(num(1), num(2), num(3));
    if (is("ioctl")) { long x[8] = { 0 }; return ioctl(0, strtoull(f[1], 0, 16), x); }
    if (is("ioctlraw")) { long x[8] = { 0 }; return syscall(SYS_ioctl, 0, strtoull(f[1], 0, 16), x); }
    if (is("openioctl")) { long x[8] = { 0 }; return ioctl(open(f[1], O_RDONLY), strtoull(f[2], 0, 16), x); }
    if (is("option")) { long x[32] = { 1 }; return setsockopt(socket(num(1), num(2), 0), num(3), num(4), x, nf > 5 ? num(5) : 4); }
    if (is("stamp")) return stamp();
    if (is("evict")) { errno = posix_fadvise(open(f[1], O_RDONLY), 0, 0, POSIX_FADV_DONTNEED); return errno ? -1 : 0; }
    if (is("nowait")) { char c; struct iovec v = { &c, 1 }; return preadv2(open(f[1], O_RDONLY), &v, 1, 0, RWF_NOWAIT); }
    if (is("fcntl")) return fcntl(open(f[1], O_RDONLY), num(2), num(3));
    if (is("deleg")) { short d[4] = { 0, 0, F_RDLCK, 0 }; return fcntl(open(f[1], O_RDONLY | O_DIRECTORY), 1040, d); }
    if (is("sys")) return syscall(num(1), num(2), num(3), num(4), num(5), num(6), num(7));
    fprintf(stderr, "no such op: %s\n", f[0]); exit(99);
}

static void one(char *arg) {
    int p[2], st = 0, e = 0;
    if (pipe(p)) exit(98);
    fflush(stdout);
    pid_t k = fork();
    if (k < 0) { printf("%s FORK-%s\n", arg, strerrorname_np(errno)); return; }
    if (!k) {
        char *copy = strdup(arg), *s;
        for (nf = 0; nf < 8 && (s = strsep(&copy, ":")); nf++) f[nf] = s;
        /* an IPv6 address has colons of its own: connect:[::1]:80 */
        if (is("connect") && f[1][0] == '[') { char *a = strdup(arg + 9), *z = strchr(a, ']'); *z = 0; f[1] = a; f[2] = z + 2; nf = 3; }
        errno = 0;
        int r = files();
        if (r == -2) r = namespaces();
        if (r == -2) r = processes();
        if (r == -2) r = other();
        e = r < 0 ? errno : 0;
        fflush(stdout);
        if (write(p[1], &e, sizeof e) < 0) _exit(97);
        _exit(0);
    }
    close(p[1]);
    int got = read(p[0], &e, sizeof e);
    close(p[0]);
    while (waitpid(k, &st, 0) < 0 && errno == EINTR) ;
    if (WIFSIGNALED(st)) printf("%s SIG%d\n", arg, WTERMSIG(st));
    else if (got != sizeof e) printf("%s EXIT%d\n", arg, WEXITSTATUS(st));
    else printf("%s %s\n", arg, e ? strerrorname_np(e) : "OK");
}

int main(int argc, char **argv) {
    setvbuf(stdout, 0, _IOLBF, 0);
    for (int i = 1; i < argc; i++) one(argv[i]);
    return 0;
}
