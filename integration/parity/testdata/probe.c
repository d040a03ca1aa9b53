// Prints what a program sees of its sandbox, a "KEY: VALUE" on each line, then
// "ready", and waits for the end of its input. Nothing of the host is changed:
// system calls are asked for under a filter that keeps them from being made.
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static const char *name(int e) { return e ? strerrorname_np(e) : "ok"; }

static void status(void) {
	const char *want[] = {"Umask", "Uid", "Gid", "Groups", "NStgid", "NSpgid", "NSsid", "SigBlk", "SigIgn", "SigCgt", "CapInh", "CapPrm", "CapEff",
		"CapBnd", "CapAmb", "NoNewPrivs", "Seccomp", "Seccomp_filters", "Speculation_Store_Bypass", "SpeculationIndirectBranch", 0};
	char line[4096];
	FILE *f = fopen("/proc/self/status", "r");
	while (f && fgets(line, sizeof line, f))
		for (int i = 0; want[i]; i++) {
			size_t n = strlen(want[i]);
			if (strncmp(line, want[i], n) || line[n] != ':') continue;
			char *v = line + n + 1;
			printf("status %s:", want[i]);
			for (char *w = strtok(v, " \t\n"); w; w = strtok(0, " \t\n")) printf(" %s", w);
			printf("\n");
		}
	if (f) fclose(f);
}

static void process(void) {
	struct utsname u;
	uname(&u);
	printf("uts nodename: %s\nuts domainname: %s\n", u.nodename, u.domainname);
	printf("process securebits: %#x\n", prctl(PR_GET_SECUREBITS));
	printf("process dumpable: %d\n", prctl(PR_GET_DUMPABLE));
	printf("process keeps caps: %d\n", prctl(PR_GET_KEEPCAPS));
	printf("process child subreaper: "); int v = -1; prctl(PR_GET_CHILD_SUBREAPER, &v); printf("%d\n", v);
	printf("process nice: %d\nprocess policy: %d\n", getpriority(PRIO_PROCESS, 0), sched_getscheduler(0));
	printf("process io priority: %ld\n", syscall(SYS_ioprio_get, 1, 0));
	char buf[64] = "", cwd[4096];
	FILE *f = fopen("/proc/self/oom_score_adj", "r");
	if (f) { if (fgets(buf, sizeof buf, f)) buf[strcspn(buf, "\n")] = 0; fclose(f); }
	printf("process oom_score_adj: %s\nprocess cwd: %s\n", buf, getcwd(cwd, sizeof cwd));
	long keyring = syscall(SYS_keyctl, 0 /* GET_KEYRING_ID */, -3 /* session */, 0);
	printf("process session keyring: %s\n", keyring < 0 ? name(errno) : "there is one");
	const char *limits[] = {"cpu", "fsize", "data", "stack", "core", "rss", "nproc", "nofile", "memlock", "as", "locks", "sigpending", "msgqueue", "nice",
		"rtprio", "rttime"};
	for (int i = 0; i < 16; i++) {
		struct rlimit r;
		getrlimit(i, &r);
		printf("rlimit %s: %lld %lld\n", limits[i], (long long)r.rlim_cur, (long long)r.rlim_max);
	}
	for (char **e = environ; *e; e++) {
		char *eq = strchr(*e, '=');
		printf("env %.*s: %s\n", (int)(eq - *e), *e, eq + 1);
	}
}

static void namespaces(void) {
	const char *ns[] = {"user", "mnt", "pid", "net", "ipc", "uts", "cgroup", "time", 0};
	for (int i = 0; ns[i]; i++) {
		char path[64], to[64] = "";
		snprintf(path, sizeof path, "/proc/self/ns/%s", ns[i]);
		if (readlink(path, to, sizeof to - 1) > 0) printf("ns %s: %s\n", ns[i], to);
	}
}

static void mounts(void) {
	char line[4096], target[2048], opts[256], prop[256], *rest;
	FILE *f = fopen("/proc/self/mountinfo", "r");
	while (f && fgets(line, sizeof line, f)) {
		if (sscanf(line, "%*s %*s %*s %*s %2047s %255s %255[^\n]", target, opts, prop) != 3) continue;
		rest = strstr(line, " - ");
		char type[64] = "";
		sscanf(rest + 3, "%63s", type);
		printf("mount %s: %s", target, type);
		for (char *o = strtok(opts, ","); o; o = strtok(0, ","))
			if (strcmp(o, "relatime")) printf(" %s", o);
		char *shared = strstr(prop, "shared:"), *master = strstr(prop, "master:");
		char *dash = strstr(prop, "- ");
		if (shared && shared < dash) printf(" shared");
		if (master && master < dash) printf(" slave");
		printf("\n");
	}
	if (f) fclose(f);
}

static void size(const char *path) {
	struct statvfs s;
	if (statvfs(path, &s) == 0) printf("size %s: %llu bytes %llu inodes\n", path, (unsigned long long)s.f_blocks * s.f_frsize, (unsigned long long)s.f_files);
}

static void writable(const char *dir) {
	char path[4096];
	snprintf(path, sizeof path, "%s/parity-probe", dir);
	int fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
	printf("write %s: %s\n", dir, fd >= 0 ? "ok" : name(errno));
	if (fd >= 0) { close(fd); unlink(path); }
}

static void devices(void) {
	DIR *d = opendir("/dev");
	for (struct dirent *e; d && (e = readdir(d));) {
		struct stat st;
		char path[512], to[256] = "";
		if (e->d_name[0] == '.') continue;
		snprintf(path, sizeof path, "/dev/%s", e->d_name);
		if (lstat(path, &st)) continue;
		if (S_ISLNK(st.st_mode)) { if (readlink(path, to, sizeof to - 1) > 0) printf("dev %s: link %s\n", e->d_name, to); }
		else if (S_ISDIR(st.st_mode)) printf("dev %s: directory %o\n", e->d_name, st.st_mode & 07777);
		else printf("dev %s: %s %u:%u %o\n", e->d_name, S_ISCHR(st.st_mode) ? "char" : "other", major(st.st_rdev), minor(st.st_rdev), st.st_mode & 07777);
	}
	if (d) closedir(d);
}

static void descriptors(void) {
	for (int fd = 0; fd < 1024; fd++) {
		struct stat st;
		if (fstat(fd, &st)) continue;
		printf("fd %d: %s%s\n", fd, S_ISFIFO(st.st_mode) ? "pipe" : S_ISCHR(st.st_mode) ? "device" : S_ISREG(st.st_mode) ? "file" : S_ISSOCK(st.st_mode) ? "socket" : "other",
			fcntl(fd, F_GETFL) & O_NONBLOCK ? " nonblock" : "");
	}
}

// What /proc shows of the kernel and the host: for each file whether it has
// text, is empty or is refused, and whether it opens for writing.
static void proc(const char *dir, int depth) {
	DIR *d = opendir(dir);
	if (!d) { printf("proc %s: %s\n", dir, name(errno)); return; }
	int any = 0;
	for (struct dirent *e; (e = readdir(d));) {
		char path[1024], c;
		struct stat st;
		if (e->d_name[0] == '.' || (e->d_name[0] >= '0' && e->d_name[0] <= '9' && depth == 0)) continue;
		any = 1;
		snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
		if (lstat(path, &st) || S_ISLNK(st.st_mode)) continue;
		if (S_ISDIR(st.st_mode)) { if (depth < 6) proc(path, depth + 1); continue; }
		int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
		ssize_t n = fd < 0 ? -1 : read(fd, &c, 1);
		printf("proc %s: %s\n", path, n > 0 ? "text" : n == 0 ? "empty" : name(errno));
		if (fd >= 0) close(fd);
		fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
		// A mask that takes writes is no way to the kernel.
		if (fd >= 0 && !fstat(fd, &st) && !S_ISCHR(st.st_mode)) printf("proc write %s: ok\n", path);
		if (fd >= 0) close(fd);
	}
	if (!any) printf("proc %s: no entries\n", dir);
	closedir(d);
}

// Under this filter nothing is done but exit_group. The kernel takes the
// stricter of two filters' answers; TRACE without a tracer is ENOSYS, and less
// strict than any refusal: so ENOSYS is "allowed, or ENOSYS".
static void harmless(void) {
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE),
	};
	struct sock_fprog prog = {4, code};
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog)) _exit(99);
}

static struct { volatile int next, done; volatile short answer[4096]; } *shared;

// Each pattern is one value for all six arguments.
static const unsigned long patterns[] = {0, ~0ul, 0x100000001ul};

static void verdicts(unsigned base, int count, const char *what) {
	int total = count * 3;
	shared->next = 0;
	while (shared->next < total) {
		pid_t p = fork();
		if (p == 0) {
			harmless();
			for (int i; (i = shared->next) < total; shared->next = i + 1) {
				if (base + i / 3 == SYS_exit_group) continue;
				unsigned long a = patterns[i % 3];
				long r = syscall(base + i / 3, a, a, a, a, a, a);
				shared->answer[i] = r < 0 ? errno : 0;
			}
			syscall(SYS_exit_group, 0);
		}
		int st = 0;
		waitpid(p, &st, 0);
		if (WIFEXITED(st)) {
			if (WEXITSTATUS(st) == 99) { printf("%s: no filter can be added\n", what); return; }
			break;
		}
		shared->answer[shared->next] = -WTERMSIG(st);
		shared->next = shared->next + 1;
	}
	for (int i = 0; i < total; i += 3) {
		printf("%s %d:", what, i / 3);
		for (int j = 0; j < 3; j++) {
			int a = shared->answer[i + j];
			if (a < 0) printf(" killed-%d", -a);
			else printf(" %s", name(a));
		}
		printf("\n");
	}
}

int main(void) {
	const char *dirs[] = {"/", "/usr", "/etc", "/code", "/opt", "/var", "/run", "/home", "/dev", "/dev/pts", "/proc", "/proc/sys", "/proc/self", "/sys", "/sys/fs/cgroup",
		"/sys/fs/cgroup/memory", "/work", "/home/sandbox", "/out", "/tmp", "/dev/shm", 0};
	shared = mmap(0, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	descriptors(); // first of all: the rest opens and closes some
	status(); process(); namespaces(); mounts(); devices();
	for (int i = 0; dirs[i]; i++) writable(dirs[i]);
	for (int i = 16; dirs[i]; i++) size(dirs[i]);
	proc("/proc", 0);
	fflush(stdout);
	verdicts(0, 512, "call");
#ifdef __x86_64__
	verdicts(0x40000000, 32, "x32 call");
#endif
	printf("ready\n");
	fflush(stdout);
	char c;
	while (read(0, &c, 1) > 0);
	return 0;
}
