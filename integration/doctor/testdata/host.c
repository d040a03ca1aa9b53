/* Starts a command on a poorer host, by a seccomp filter: host RULE... -- COMMAND...
 *
 * A rule is NAME=ERRNO, NAME one of the calls below, or "newns": clone with a
 * flag for a new namespace, as Docker's own profile refuses it. The filter is
 * inherited by everything below. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef __x86_64__
#define ARCH AUDIT_ARCH_X86_64
#else
#define ARCH AUDIT_ARCH_AARCH64
#endif

static const struct { const char *name; unsigned nr; } calls[] = {
	{"unshare", SYS_unshare}, {"setns", SYS_setns}, {"mount", SYS_mount}, {"umount2", SYS_umount2}, {"pivot_root", SYS_pivot_root},
	{"sethostname", SYS_sethostname}, {"seccomp", SYS_seccomp}, {"prlimit64", SYS_prlimit64}, {"capset", SYS_capset},
	/* the same numbers on every machine */
	{"pidfd_send_signal", 424}, {"open_tree", 428}, {"move_mount", 429}, {"fsopen", 430}, {"fsmount", 432}, {"clone3", 435},
	{"close_range", 436}, {"openat2", 437}, {"mount_setattr", 442}, {"landlock_create_ruleset", 444}, {"landlock_restrict_self", 446},
};
static const struct { const char *name; unsigned value; } errors[] = {
	{"EPERM", EPERM}, {"EACCES", EACCES}, {"EINVAL", EINVAL}, {"ENOSYS", ENOSYS}, {"EOPNOTSUPP", EOPNOTSUPP},
};

#define NEWNS 0x7E020000 /* every CLONE_NEW flag */

static struct sock_filter filter[128];
static unsigned short length;

static void add(unsigned short code, unsigned char jt, unsigned char jf, unsigned k)
{
	filter[length++] = (struct sock_filter){code, jt, jf, k};
}

static void load(unsigned at) { add(BPF_LD | BPF_W | BPF_ABS, 0, 0, at); }

static void rule(const char *text)
{
	char name[64];
	const char *eq = strchr(text, '=');
	unsigned answer = 0;
	if (!eq || eq - text >= (long)sizeof name) { fprintf(stderr, "host: not a rule: %s\n", text); exit(2); }
	memcpy(name, text, eq - text);
	name[eq - text] = 0;
	for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
		if (!strcmp(eq + 1, errors[i].name)) answer = SECCOMP_RET_ERRNO | errors[i].value;
	if (answer && !strcmp(name, "newns")) {
		add(BPF_JMP | BPF_JEQ | BPF_K, 0, 4, SYS_clone);
		load(offsetof(struct seccomp_data, args[0]));
		add(BPF_JMP | BPF_JSET | BPF_K, 0, 1, NEWNS);
		add(BPF_RET | BPF_K, 0, 0, answer);
		load(offsetof(struct seccomp_data, nr));
		return;
	}
	for (size_t i = 0; answer && i < sizeof calls / sizeof *calls; i++)
		if (!strcmp(name, calls[i].name)) {
			add(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, calls[i].nr);
			add(BPF_RET | BPF_K, 0, 0, answer);
			return;
		}
	fprintf(stderr, "host: unknown rule: %s\n", text);
	exit(2);
}

int main(int argc, char **argv)
{
	int i = 1;
	load(offsetof(struct seccomp_data, arch));
	add(BPF_JMP | BPF_JEQ | BPF_K, 1, 0, ARCH);
	add(BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW);
	load(offsetof(struct seccomp_data, nr));
	for (; i < argc && strcmp(argv[i], "--"); i++) rule(argv[i]);
	add(BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW);
	if (i + 1 >= argc) { fprintf(stderr, "host: no command\n"); return 2; }
	struct sock_fprog prog = {length, filter};
	/* Not where it can do without: set-user-id programs below go on working for root. */
	if (geteuid() != 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) { perror("host: no_new_privs"); return 2; }
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog, 0, 0)) { perror("host: seccomp"); return 2; }
	execvp(argv[i + 1], argv + i + 1);
	perror(argv[i + 1]);
	return 127;
}
