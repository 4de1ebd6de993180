// SPDX-License-Identifier: GPL-2.0-or-later
#include <linux/bpf.h>
#include <bpf/bpf.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>

#include "probes/engine/link.h"

/* The headers that ax is built with may be older than the kernel that it runs on. */
struct attr_uprobe_multi {
	uint32_t prog_fd, target_fd, attach_type, link_flags;
	uint64_t path, offsets, ref_ctr_offsets, cookies;
	uint32_t cnt, flags, pid, pad;
};
struct attr_raw_tracepoint {
	uint64_t name;
	uint32_t prog_fd, pad;
	uint64_t cookie;
};
#define UPROBE_MULTI_RETURN 1u

static int sys_bpf(int command, void *attr, size_t size)
{
	long r = syscall(__NR_bpf, command, attr, size);

	return r < 0 ? -errno : (int)r;
}

static uint64_t address_of(const void *p)
{
	return (uint64_t)(uintptr_t)p;
}

/*
 * Calls bpf() in a process that nobody kills, with our descriptors: who is killed while the kernel
 * puts breakpoints into programs leaves those there for good that are in already. If we are killed
 * meanwhile, that process is the last to have the link, and takes them out when it ends.
 */
static int sys_bpf_apart(int command, void *attr, size_t size)
{
	int *ret =
		mmap(NULL, sizeof(*ret), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	sigset_t all;
	int r;
	long pid;

	if (ret == MAP_FAILED)
		return sys_bpf(command, attr, size);
	*ret = -EINTR; /* it did not come to its end */
	pid = syscall(SYS_clone, CLONE_FILES, 0, 0, 0, 0);
	if (pid == 0) {
		sigfillset(&all);
		sigprocmask(SIG_SETMASK, &all, NULL);
		setsid();
		*ret = sys_bpf(command, attr, size);
		_exit(0);
	}
	while (pid > 0 && waitpid((pid_t)pid, NULL, __WCLONE) < 0 && errno == EINTR)
		continue;
	r = pid > 0 ? *ret : sys_bpf(command, attr, size);
	munmap(ret, sizeof(*ret));
	return r;
}

static struct attr_uprobe_multi uprobes_attr(int prog_fd, const struct link_uprobes *u)
{
	return (struct attr_uprobe_multi){
		.prog_fd = (uint32_t)prog_fd,
		.attach_type = LINK_UPROBE_MULTI,
		.path = address_of(u->path),
		.offsets = address_of(u->offsets),
		.ref_ctr_offsets = address_of(u->semaphores),
		.cookies = address_of(u->cookies),
		.cnt = u->n,
		.flags = u->is_return ? UPROBE_MULTI_RETURN : 0,
		.pid = (uint32_t)u->pid,
	};
}

int link_uprobes(int prog_fd, const struct link_uprobes *u)
{
	struct attr_uprobe_multi attr = uprobes_attr(prog_fd, u);

	return sys_bpf_apart(BPF_LINK_CREATE, &attr, sizeof(attr));
}

static _Noreturn void close_when_told(void (*f)(void *arg), void *arg, int told)
{
	sigset_t all;
	char c;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	setsid();
	for (int fd = 0; fd <= STDERR_FILENO; fd++)
		close(fd); /* whoever reads what we write is not to wait for this */
	while (read(told, &c, 1) < 0 && errno == EINTR)
		continue;
	f(arg);
	_exit(0);
}

/* The last to close is that process: it has another number and session. */
void link_close_apart(void (*f)(void *arg), void *arg)
{
	int told[2];
	pid_t pid;

	if (pipe2(told, O_CLOEXEC) < 0) {
		f(arg);
		return;
	}
	pid = fork();
	if (pid == 0) {
		close(told[1]);
		close_when_told(f, arg, told[0]);
	}
	close(told[0]);
	f(arg);
	close(told[1]); /* or by the kernel, when we are killed */
	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		continue;
}

static int by_number(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

/* Closes what is not among these, which are sorted. */
static void keep_only(const int *fds, size_t n)
{
	unsigned next = 0;

	for (size_t i = 0; i < n; i++) {
		if ((unsigned)fds[i] > next)
			syscall(SYS_close_range, next, (unsigned)fds[i] - 1, 0);
		next = (unsigned)fds[i] + 1;
	}
	syscall(SYS_close_range, next, ~0u, 0);
}

/* What it has is closed by the kernel as it ends: nobody can keep it from that. */
static _Noreturn void end_when_told(const int *fds, size_t n, int told)
{
	sigset_t all;
	char c;

	/* the child of a process that may have threads calls nothing that takes a lock */
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	setsid();
	syscall(SYS_chdir, "/"); /* what is mounted where we are is not to be held */
	keep_only(fds, n);
	while (read(told, &c, 1) < 0 && errno == EINTR)
		continue;
	_exit(0);
}

int link_close_later(const int *fds, size_t n)
{
	autofree int *kept = calloc(n + 1, sizeof(*kept));
	int told[2];
	long pid;

	if (!kept || pipe2(told, O_CLOEXEC) < 0)
		return -errno;
	memcpy(kept, fds, n * sizeof(*kept));
	kept[n] = told[0];
	qsort(kept, n + 1, sizeof(*kept), by_number);
	pid = syscall(SYS_clone, 0, 0, 0, 0, 0);
	if (pid == 0)
		end_when_told(kept, n + 1, told[0]);
	close(told[0]);
	if (pid > 0)
		return told[1];
	close(told[1]);
	return -EAGAIN;
}

int link_raw_tracepoint(int prog_fd, const char *name, uint64_t cookie)
{
	struct attr_raw_tracepoint attr = {
		.name = address_of(name), .prog_fd = (uint32_t)prog_fd, .cookie = cookie};

	return sys_bpf(BPF_RAW_TRACEPOINT_OPEN, &attr, sizeof(attr));
}

static int load_nothing(enum bpf_prog_type type, int attach_type)
{
	const struct bpf_insn insns[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0},
		{.code = BPF_JMP | BPF_EXIT},
	};
	LIBBPF_OPTS(bpf_prog_load_opts, opts,
		    .expected_attach_type = (enum bpf_attach_type)attach_type);

	return bpf_prog_load(type, "ax_try", "GPL", insns, ARRAY_SIZE(insns), &opts);
}

static void close_others(unsigned a, unsigned b)
{
	unsigned low = a < b ? a : b, high = a < b ? b : a;

	if (low > 0)
		syscall(SYS_close_range, 0, low - 1, 0);
	if (high > low + 1)
		syscall(SYS_close_range, low + 1, high - 1, 0);
	syscall(SYS_close_range, high + 1, ~0u, 0);
}

static void *wait_for_end(void *arg)
{
	const struct link_expected *x = arg;

	while (waitpid(x->pid, NULL, __WCLONE) < 0 && errno == EINTR)
		continue;
	return NULL;
}

/* It takes no signal, which is for those who wait for one. */
static void begin_waiting(struct link_expected *x)
{
	sigset_t all, before;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	x->begun = pthread_create(&x->waits, NULL, wait_for_end, x) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void link_expect_uprobes(struct link_expected *x)
{
	/* nobody has this file in memory to be executed, so that nothing is put anywhere */
	autoclose int file = memfd_create("nothing", MFD_CLOEXEC);
	autoclose int prog = load_nothing(BPF_PROG_TYPE_KPROBE, LINK_UPROBE_MULTI);
	const uint64_t zero = 0;
	char path[32];
	const struct link_uprobes u = {.path = path, .offsets = &zero, .cookies = &zero, .n = 1};
	struct attr_uprobe_multi attr = uprobes_attr(prog, &u);
	sigset_t all;
	long pid;

	*x = (struct link_expected){0};
	if (prog < 0 || file < 0 || ftruncate(file, sysconf(_SC_PAGESIZE)))
		return;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
	sigfillset(&all);
	pid = syscall(SYS_clone, 0, 0, 0, 0, 0);
	if (pid) {
		x->pid = pid > 0 ? (int)pid : 0;
		if (x->pid)
			begin_waiting(x);
		return;
	}
	/* the child of a process that may have threads calls nothing that takes a lock */
	sigprocmask(SIG_SETMASK, &all, NULL);
	setsid();
	/* whoever waits for the end of one of them is not to wait for this */
	close_others((unsigned)prog, (unsigned)file);
	sys_bpf(BPF_LINK_CREATE, &attr, sizeof(attr));
	_exit(0);
}

void link_expected(struct link_expected *x)
{
	if (x->begun)
		pthread_join(x->waits, NULL);
	else if (x->pid)
		wait_for_end(x);
	*x = (struct link_expected){0};
}

/* A kernel that knows these links says that a directory is no file; an older one knows nothing. */
bool link_has_uprobe_multi(void)
{
	uint64_t zero = 0;
	struct link_uprobes u = {.path = "/", .offsets = &zero, .cookies = &zero, .n = 1};
	autoclose int prog = load_nothing(BPF_PROG_TYPE_KPROBE, LINK_UPROBE_MULTI);
	struct attr_uprobe_multi attr = uprobes_attr(prog, &u);

	/* there are no breakpoints that would stay */
	return prog >= 0 && sys_bpf(BPF_LINK_CREATE, &attr, sizeof(attr)) == -EBADF;
}

/* Without fprobes (CONFIG_FPROBE) it says -EOPNOTSUPP, not that there is no such function. */
bool link_has_kprobe_multi(void)
{
	const char *name = "no function of the kernel";
	LIBBPF_OPTS(bpf_link_create_opts, opts, .kprobe_multi.syms = &name, .kprobe_multi.cnt = 1);
	autoclose int prog = load_nothing(BPF_PROG_TYPE_KPROBE, BPF_TRACE_KPROBE_MULTI);
	autoclose int fd = -1;

	if (prog < 0)
		return false;
	fd = bpf_link_create(prog, 0, BPF_TRACE_KPROBE_MULTI, &opts);
	return fd == -ESRCH || fd == -ENOENT;
}

/* Before, only one thread of the process was looked at. (46ba0e49b642) */
bool link_has_uprobe_pid(void)
{
	struct utsname u;
	unsigned major, minor;

	return !uname(&u) && sscanf(u.release, "%u.%u", &major, &minor) == 2 &&
	       (major > 6 || (major == 6 && minor >= 10));
}

/* An older kernel says that it knows no such attribute, before it looks for the name. */
bool link_has_raw_tracepoint_cookie(void)
{
	autoclose int prog = load_nothing(BPF_PROG_TYPE_RAW_TRACEPOINT, 0);

	return prog >= 0 && link_raw_tracepoint(prog, "no tracepoint", 1) == -ENOENT;
}
