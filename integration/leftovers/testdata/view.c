// What a program can see of its own confinement, a line each, so that two runs
// can be compared. Arguments: the host's namespaces as readlink shows them.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

extern char **environ;

static char text[1 << 16];

static char *slurp(const char *path) {
	size_t have = 0;
	ssize_t n;
	int fd = open(path, O_RDONLY);
	text[0] = 0;
	if (fd < 0) {
		snprintf(text, sizeof text, "(%s)\n", strerror(errno));
		return text;
	}
	while (have + 1 < sizeof text && (n = read(fd, text + have, sizeof text - 1 - have)) > 0)
		have += n;
	text[have] = 0;
	close(fd);
	return text;
}

static void status(void) {
	static const char *fields[] = {"Uid", "Gid", "Groups", "Cap", "NoNewPrivs", "Seccomp", "SigBlk", "SigIgn", "SigCgt", "Threads"};
	for (char *line = strtok(slurp("/proc/self/status"), "\n"); line; line = strtok(NULL, "\n"))
		for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
			if (!strncmp(line, fields[i], strlen(fields[i])))
				printf("%s\n", line);
}

// Point, options and type of each mount: devices and paths differ.
static void mounts(void) {
	for (char *line = strtok(slurp("/proc/self/mountinfo"), "\n"); line; line = strtok(NULL, "\n")) {
		char point[512], options[512];
		char *type = strstr(line, " - ");
		if (sscanf(line, "%*s %*s %*s %*s %511s %511s", point, options) == 2 && type)
			printf("mount %s %s %.*s\n", point, options, (int)strcspn(type + 3, " "), type + 3);
	}
}

static void limits(void) {
	static const char *files[] = {
		"memory.max", "memory.swap.max", "memory.oom.group", "pids.max", "cpu.max", "memory/memory.limit_in_bytes",
		"memory/memory.memsw.limit_in_bytes", "memory/memory.kmem.tcp.limit_in_bytes", "pids/pids.max", "cpu/cpu.cfs_quota_us",
	};
	for (int i = 0; i < 16; i++) {
		struct rlimit r;
		getrlimit(i, &r);
		// Init's own processes count as well, and Go starts as many threads as it likes.
		if (i == RLIMIT_NPROC && r.rlim_cur == r.rlim_max && r.rlim_max < 1000)
			puts("rlimit of processes set");
		else
			printf("rlimit %d %ld %ld\n", i, (long)r.rlim_cur, (long)r.rlim_max);
	}
	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		char path[128];
		snprintf(path, sizeof path, "/sys/fs/cgroup/%s", files[i]);
		printf("%s: %s", path, slurp(path));
	}
	printf("cgroup:\n%s", slurp("/proc/self/cgroup"));
}

static void place(int argc, char **argv) {
	static const char *namespaces[] = {"user", "mnt", "pid", "net", "ipc", "uts", "cgroup"};
	char link[256], cwd[256];
	struct stat st;
	for (int i = 0; i < 7; i++) {
		char path[64];
		snprintf(path, sizeof path, "/proc/self/ns/%s", namespaces[i]);
		ssize_t n = readlink(path, link, sizeof link - 1);
		link[n < 0 ? 0 : n] = 0;
		const char *whose = n < 0 ? "unknown" : "own";
		for (int a = 1; a < argc; a++)
			if (!strcmp(argv[a], link))
				whose = "HOST";
		printf("namespace %s %s\n", namespaces[i], whose);
	}
	printf("cwd %s\n", getcwd(cwd, sizeof cwd) ? cwd : "?");
	for (char **e = environ; *e; e++)
		printf("env %s\n", *e);
	for (int fd = 0; fd < 1024; fd++)
		if (!fstat(fd, &st))
			printf("fd %d mode %o\n", fd, st.st_mode);
	printf("session %d nice %d oom %s", getsid(0) == getpid(), getpriority(PRIO_PROCESS, 0), slurp("/proc/self/oom_score_adj"));
	printf("host %sdomain %s", slurp("/proc/sys/kernel/hostname"), slurp("/proc/sys/kernel/domainname"));
}

static void kernel(void) {
	static const char *quotas[] = {"inotify_instances", "inotify_watches", "user_namespaces", "net_namespaces", "cgroup_namespaces", "fanotify_groups"};
	struct ifreq r = {.ifr_name = "lo"};
	int s = socket(AF_INET, SOCK_DGRAM, 0);
	for (size_t i = 0; i < sizeof quotas / sizeof *quotas; i++) {
		char path[128];
		snprintf(path, sizeof path, "/proc/sys/user/max_%s", quotas[i]);
		printf("%s %s", path, slurp(path));
	}
	printf("lo %s\n", ioctl(s, SIOCGIFFLAGS, &r) ? strerror(errno) : r.ifr_flags & IFF_UP ? "up" : "down");
	printf("securebits %d pdeathsig", prctl(PR_GET_SECUREBITS));
	int sig = -1;
	prctl(PR_GET_PDEATHSIG, &sig);
	printf(" %d parent %d\n", sig, getppid());
	printf("unshare %s\n", syscall(SYS_unshare, 0x10000000) ? strerror(errno) : "done");
	printf("kill init %s\n", kill(1, SIGTERM) ? strerror(errno) : "done");
	printf("init %s\n", access("/proc/1/exe", F_OK) ? strerror(errno) : "there");
	printf("write to the root %s\n", mkdir("/new", 0700) ? strerror(errno) : "done");
}

int main(int argc, char **argv) {
	status();
	mounts();
	limits();
	place(argc, argv);
	kernel();
	puts("end");
	return fflush(stdout) ? 1 : 0;
}
