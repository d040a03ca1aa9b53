/* Starts a command on a host with another root: enter ROOT UID GID COMMAND...
 *
 * ROOT becomes the root of a mount namespace of its own, as a distribution's is
 * at boot and not as chroot(2) makes it, for there are no user namespaces in a
 * chroot. This host's /proc, /sys and /dev are below it where it has these. */
#define _GNU_SOURCE
#include <errno.h>
#include <grp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

static void must(int failed, const char *what)
{
	if (failed) { fprintf(stderr, "enter: "); perror(what); exit(2); }
}

int main(int argc, char **argv)
{
	static const char *shown[] = {"proc", "sys", "dev"};
	char to[4096], from[16];
	if (argc < 5) { fprintf(stderr, "usage: enter ROOT UID GID COMMAND...\n"); return 2; }
	must(unshare(CLONE_NEWNS), "unshare");
	must(mount("", "/", NULL, MS_REC | MS_PRIVATE, NULL), "private mounts");
	must(mount(argv[1], argv[1], NULL, MS_BIND | MS_REC, NULL), argv[1]);
	for (int i = 0; i < 3; i++) {
		snprintf(from, sizeof from, "/%s", shown[i]);
		snprintf(to, sizeof to, "%s/%s", argv[1], shown[i]);
		must(access(to, F_OK) == 0 && mount(from, to, NULL, MS_BIND | MS_REC, NULL), to);
	}
	must(chdir(argv[1]), argv[1]);
	must(syscall(SYS_pivot_root, ".", ".") != 0, "pivot_root");
	must(umount2(".", MNT_DETACH), "umount");
	must(chdir("/"), "/");
	must(setgroups(0, NULL) || setresgid(atoi(argv[3]), atoi(argv[3]), atoi(argv[3])) || setresuid(atoi(argv[2]), atoi(argv[2]), atoi(argv[2])), "ids");
	execv(argv[4], argv + 4);
	must(1, argv[4]);
}
