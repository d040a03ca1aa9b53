/* floor [-n] PROGRAM ARG...: what the kernel alone takes for a sandbox. Clones into
 * the seven namespaces, makes the root of ops[] (floor.go writes that table from a
 * real run), pivots into it and executes PROGRAM. -n: the namespaces alone.
 *
 * No control of sandglass's is here: it keeps its capabilities, has no filter, no
 * limits, and checks nothing but that each call worked. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MS_RDONLY_NOSUID_NODEV_NOEXEC (1 | 2 | 4 | 8)
#define MS_BIND_ 4096
#define MS_REC_ 16384
#define MS_PRIVATE_ (1 << 18)

static void die(const char *what, const char *name) {
	fprintf(stderr, "floor: %s %s: %s\n", what, name, strerror(errno));
	_exit(1);
}

static void try(long r, const char *what, const char *name) {
	if (r < 0)
		die(what, name);
}

static void mount_(const char *from, const char *to, const char *type, unsigned long flags, const char *data) {
	try(syscall(SYS_mount, from, to, type, flags, data), "mount", to);
}

static void set(const char *to, unsigned long long attr) {
	struct mount_attr a = {.attr_set = attr};
	try(syscall(SYS_mount_setattr, AT_FDCWD, to, 0, &a, sizeof a), "mount_setattr", to);
}

static void make(const struct op *op) {
	int fd;
	switch (op->kind) {
	case DIR:
		try(mkdir(op->to, 0755), "mkdir", op->to);
		return;
	case FILE_:
		try(fd = open(op->to, O_CREAT | O_WRONLY | O_CLOEXEC, 0644), "open", op->to);
		close(fd);
		return;
	case LINK:
		try(symlink(op->from, op->to), "symlink", op->to);
		return;
	case BIND: /* one of the host's */
		mount_(op->from, op->to, NULL, MS_BIND_, NULL);
		set(op->to, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID);
		return;
	case FREEZE:
		set(op->to, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
		return;
	case PROC:
		mount_("proc", op->to, "proc", MS_RDONLY_NOSUID_NODEV_NOEXEC & ~1, "hidepid=ptraceable");
		return;
	case INNER: /* of the new root's own */
		mount_(op->from, op->to, NULL, MS_BIND_, NULL);
		return;
	case MASK:
		mount_(".file", op->to, NULL, MS_BIND_, NULL);
		return;
	case MASKDIR:
		mount_(".dir", op->to, NULL, MS_BIND_, NULL);
		return;
	case TMPFS:
		mount_("tmpfs", op->to, "tmpfs", 2 | 4, "size=67108864,nr_inodes=16384");
	}
}

static void root(void) {
	int fd;
	mount_(NULL, "/", NULL, MS_REC_ | MS_PRIVATE_, NULL);
	mount_("tmpfs", "/tmp", "tmpfs", 2 | 4, "size=4194304,nr_inodes=16384");
	try(chdir("/tmp"), "chdir", "/tmp");
	try(fd = open(".file", O_CREAT | O_WRONLY | O_CLOEXEC, 0444), "open", ".file");
	close(fd);
	try(mkdir(".dir", 0555), "mkdir", ".dir");
	for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
		make(&ops[i]);
	try(syscall(SYS_pivot_root, ".", "."), "pivot_root", ".");
	try(syscall(SYS_umount2, ".", 2), "umount", "."); /* MNT_DETACH */
}

static void put(int pid, const char *file, const char *text) {
	char name[64];
	snprintf(name, sizeof name, "/proc/%d/%s", pid, file);
	int fd = open(name, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		die("write", name);
	close(fd);
}

int main(int argc, char **argv) {
	int bare = argc > 1 && !strcmp(argv[1], "-n"), go[2], status;
	char **program = argv + 1 + bare, map[64], c;
	if (!*program || pipe2(go, O_CLOEXEC))
		return 2;
	unsigned long flags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP;
	pid_t pid = syscall(SYS_clone, flags | SIGCHLD, NULL, NULL, NULL, NULL);
	try(pid, "clone", "");
	if (pid == 0) {
		close(go[1]);
		if (read(go[0], &c, 1) != 1) /* until the ids are mapped */
			_exit(1);
		umask(0);
		if (!bare)
			root();
		execv(program[0], program);
		die("execve", program[0]);
	}
	snprintf(map, sizeof map, "65534 %d 1", geteuid());
	put(pid, "uid_map", map);
	put(pid, "setgroups", "deny");
	snprintf(map, sizeof map, "65534 %d 1", getegid());
	put(pid, "gid_map", map);
	if (write(go[1], "x", 1) != 1 || waitpid(pid, &status, 0) != pid)
		return 2;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
