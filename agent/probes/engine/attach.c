// SPDX-License-Identifier: GPL-2.0-or-later
/* Attaching the interpreter to functions and tracepoints. */
#include <fcntl.h>
#include <signal.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "probes/engine/link.h"
#include "probes/engine/priv.h"

#define ENOTSUPP_ERRNO 524 /* the kernel's own; no libc knows it */

static int out_of_memory(struct error *e)
{
	return error_set(e, -ENOMEM, "out of memory");
}

/* --- links --- */

static int keep_fd(struct engine *g, int fd)
{
	if (g->n_link_fds == g->max_link_fds) {
		size_t n = g->max_link_fds ? g->max_link_fds * 2 : 8;
		int *v = realloc(g->link_fds, n * sizeof(*v));

		if (!v) {
			close(fd);
			return -ENOMEM;
		}
		g->link_fds = v;
		g->max_link_fds = n;
	}
	g->link_fds[g->n_link_fds++] = fd;
	return 0;
}

static int keep_link(struct engine *g, struct bpf_link *link)
{
	if (g->n_links == g->max_links) {
		size_t n = g->max_links ? g->max_links * 2 : 8;
		struct bpf_link **v = realloc(g->links, n * sizeof(struct bpf_link *));

		if (!v) {
			bpf_link__destroy(link);
			return -ENOMEM;
		}
		g->links = v;
		g->max_links = n;
	}
	g->links[g->n_links++] = link;
	return 0;
}

static int program_fd(const struct engine *g, enum engine_program which)
{
	return bpf_program__fd(g->programs[which]);
}

static int too_many(size_t n, const char *lacks, struct error *e)
{
	return error_set(e, -E2BIG,
			 "%zu probes at a time would take minutes to detach, since there is no %s: "
			 "expected at most %d",
			 n, lacks, ENGINE_PERF_LINKS_MAX);
}

/*
 * Returns a link of a perf event. Not by libbpf: when its own are closed, it switches the event
 * off, also for those who have the link pinned.
 */
static int link_event(struct engine *g, enum engine_program which, int event, uint64_t cookie)
{
	LIBBPF_OPTS(bpf_link_create_opts, opts, .perf_event.bpf_cookie = cookie);
	int link = bpf_link_create(program_fd(g, which), event, BPF_PERF_EVENT, &opts);

	if (link < 0)
		return link;
	if (ioctl(event, PERF_EVENT_IOC_ENABLE, 0)) {
		int r = -errno;

		close(link);
		return r;
	}
	return link;
}

/* The link, which owns the event then. */
static int keep_link_of(struct engine *g, enum engine_program which, int fd, uint64_t cookie)
{
	autoclose int event = fd;
	int link = link_event(g, which, event, cookie);

	return link < 0 ? link : keep_fd(g, link);
}

static int open_event(struct perf_event_attr *attr, int pid)
{
	int fd;

	attr->size = sizeof(*attr);
	attr->sample_period = 1;
	/* The program runs for all processes on all CPUs, wherever the event is. */
	fd = (int)syscall(__NR_perf_event_open, attr, pid ? pid : -1, pid ? -1 : 0, -1,
			  PERF_FLAG_FD_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* --- functions of programs --- */

#define FILE_NAME 32

/*
 * The file that was read, also where another one has taken its path since, as when it is built: a
 * breakpoint in the midst of an instruction there would end whoever executes it.
 */
static const char *name_file(const struct engine_site *s, char name[FILE_NAME])
{
	snprintf(name, FILE_NAME, "/proc/self/fd/%d", s->fd);
	return name;
}

/*
 * With the file mapped executable somewhere, the kernel looks at the instructions when it attaches,
 * and refuses those that cannot be probed; else it would attach, and nothing would ever happen.
 */
static void map_file(struct engine *g, const char *path)
{
	autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct mapping *v = realloc(g->mappings, (g->n_mappings + 1) * sizeof(*v));
	struct stat st;
	void *p;

	if (!v)
		return;
	g->mappings = v;
	if (fd < 0 || fstat(fd, &st) || st.st_size <= 0)
		return;
	p = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	if (p == MAP_FAILED)
		return;
	v[g->n_mappings++] = (struct mapping){.at = p, .bytes = (size_t)st.st_size};
}

static int attach_multi(struct engine *g, const struct engine_site *const *sites, size_t n, int pid)
{
	autofree uint64_t *v = calloc(3 * n, sizeof(*v));
	char name[FILE_NAME];
	struct link_uprobes u = {.path = name_file(sites[0], name),
				 .offsets = v,
				 .cookies = v + n,
				 .n = (uint32_t)n,
				 .is_return = sites[0]->is_return,
				 .pid = pid};

	if (!v)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		v[i] = sites[i]->offset;
		v[n + i] = sites[i]->probe;
		v[2 * n + i] = sites[i]->semaphore;
		if (sites[i]->semaphore)
			u.semaphores = v + 2 * n;
	}
	return link_uprobes(program_fd(g, PROGRAM_USER), &u);
}

static int site_failed(const struct engine_site *s, int r, struct error *e)
{
	if (r == -ENOTSUPP_ERRNO || r == -EOPNOTSUPP)
		return error_set(e, -ENOTSUP,
				 "the kernel cannot probe the instruction at 0x%llx of %.200s: "
				 "'ax trace explain' shows it; choose the next one",
				 (unsigned long long)s->offset, s->path);
	return error_set(e, r, "attaching at 0x%llx of %.200s failed: %s",
			 (unsigned long long)s->offset, s->path, strerror(-r));
}

/* The kernel does not say which of many it was. */
static int find_failing(struct engine *g, const struct engine_site *const *sites, size_t n, int r,
			struct error *e)
{
	for (size_t i = 0; i < n; i++) {
		int fd = attach_multi(g, &sites[i], 1, 0);

		if (fd < 0)
			return site_failed(sites[i], fd, e);
		close(fd);
	}
	return error_set(e, r, "attaching to %.300s failed: %s", sites[0]->path, strerror(-r));
}

/* Of one file, all on entries or all on returns. */
static int attach_user_multi(struct engine *g, const struct engine_site *const *sites, size_t n,
			     struct error *e)
{
	int pid = link_has_uprobe_pid() ? g->plan->pid : 0;
	int fd = attach_multi(g, sites, n, pid);

	if (fd == -ESRCH && pid)
		return error_set(e, fd, "process %d has ended", pid);
	if (fd < 0)
		return find_failing(g, sites, n, fd, e);
	return keep_fd(g, fd) < 0 ? out_of_memory(e) : 0;
}

/* A number in a file of sysfs about the kernel's perf events; -ENODEV: it has no such events. */
static int event_number(const char *path, const char *format)
{
	autofile FILE *f = fopen(path, "re");
	int v;

	return f && fscanf(f, format, &v) == 1 ? v : -ENODEV;
}

#define UPROBE_EVENTS "/sys/bus/event_source/devices/uprobe/"
#define REF_CTR_SHIFT 32 /* of a semaphore's offset in perf_event_attr.config */

static int attach_user_single(struct engine *g, const struct engine_site *s, struct error *e)
{
	int type = event_number(UPROBE_EVENTS "type", "%d");
	int bit = event_number(UPROBE_EVENTS "format/retprobe", "config:%d");
	char name[FILE_NAME];
	struct perf_event_attr attr = {.type = (uint32_t)type,
				       .config = (s->is_return ? 1ull << (bit & 63) : 0) |
						 s->semaphore << REF_CTR_SHIFT,
				       .uprobe_path = (uint64_t)(uintptr_t)name_file(s, name),
				       .probe_offset = s->offset};
	int fd, r;

	if (type < 0 || bit < 0)
		return site_failed(s, -ENODEV, e);
	fd = open_event(&attr, g->plan->pid);
	if (fd < 0)
		return site_failed(s, fd, e);
	r = keep_link_of(g, PROGRAM_USER, fd, s->probe);
	return r < 0 ? site_failed(s, r, e) : 0;
}

static int attach_user(struct engine *g, const struct engine_site *const *sites, size_t n,
		       struct error *e)
{
	char name[FILE_NAME];
	size_t needed = 0;
	int r = 0;

	map_file(g, name_file(sites[0], name));
	if (g->user_multi)
		return attach_user_multi(g, sites, n, e);
	for (size_t i = 0; i < n; i++)
		needed += !sites[i]->is_optional;
	if (g->n_link_fds + needed > ENGINE_PERF_LINKS_MAX)
		return too_many(needed, "uprobe_multi link (Linux 6.6)", e);
	for (size_t i = 0; r == 0 && i < n; i++)
		if (!sites[i]->is_optional || g->plan->n_sites <= ENGINE_PERF_LINKS_MAX)
			r = attach_user_single(g, sites[i], e);
	return r;
}

/* --- functions of the kernel --- */

static int kernel_failed(const struct engine_site *s, int r, struct error *e)
{
	const char *name = s->name ? s->name : "that address";

	if (r == -ENOENT || r == -ESRCH || r == -EINVAL || r == -EADDRNOTAVAIL)
		return error_set(e, r,
				 "the kernel takes no probe on %.100s: it is not there, not a "
				 "function's instruction, or one that must not be probed",
				 name);
	if (r == -EOPNOTSUPP || r == -ENODEV)
		return error_set(e, -ENOTSUP,
				 "this kernel has no kprobes (CONFIG_KPROBES): 'ax trace list "
				 "tracepoint:*' shows what it has instead");
	return error_set(e, r, "attaching to the kernel's %.100s failed: %s", name, strerror(-r));
}

static int attach_kernel_multi(struct engine *g, const struct engine_site *const *sites, size_t n,
			       struct error *e)
{
	autofree unsigned long *addresses = calloc(n, sizeof(*addresses));
	autofree const char **names = calloc(n, sizeof(*names));
	autofree __u64 *cookies = calloc(n, sizeof(*cookies));
	LIBBPF_OPTS(bpf_kprobe_multi_opts, opts, .cookies = cookies, .cnt = n,
		    .retprobe = sites[0]->is_return);
	bool hidden = false;
	struct bpf_link *link;

	if (!addresses || !names || !cookies)
		return out_of_memory(e);
	for (size_t i = 0; i < n; i++) {
		names[i] = sites[i]->name;
		addresses[i] = sites[i]->address;
		cookies[i] = sites[i]->probe;
		hidden |= !sites[i]->address;
	}
	/* Several functions can have one name, which the kernel then does not take. */
	if (hidden)
		opts.syms = names;
	else
		opts.addrs = addresses;
	link = bpf_program__attach_kprobe_multi_opts(g->programs[PROGRAM_KERNEL], NULL, &opts);
	if (!link)
		return kernel_failed(sites[0], -errno, e);
	return keep_link(g, link) < 0 ? out_of_memory(e) : 0;
}

#define KPROBE_EVENTS "/sys/bus/event_source/devices/kprobe/"

static int attach_kernel_single(struct engine *g, const struct engine_site *s, struct error *e)
{
	int type = event_number(KPROBE_EVENTS "type", "%d");
	int bit = event_number(KPROBE_EVENTS "format/retprobe", "config:%d");
	struct perf_event_attr attr = {.type = (uint32_t)type,
				       .config = s->is_return ? 1ull << (bit & 63) : 0,
				       .kprobe_func = (uint64_t)(uintptr_t)s->name,
				       .probe_offset = s->offset};
	int fd, r;

	if (type < 0 || bit < 0)
		return kernel_failed(s, -ENODEV, e);
	fd = open_event(&attr, 0);
	if (fd < 0)
		return kernel_failed(s, fd, e);
	r = keep_link_of(g, PROGRAM_KERNEL, fd, s->probe);
	return r < 0 ? kernel_failed(s, r, e) : 0;
}

static int attach_kernel(struct engine *g, const struct engine_site *const *sites, size_t n,
			 struct error *e)
{
	int r = 0;

	if (g->kernel_multi)
		return attach_kernel_multi(g, sites, n, e);
	if (g->n_link_fds + n > ENGINE_PERF_LINKS_MAX)
		return too_many(n, "kprobe_multi link (Linux 5.18)", e);
	for (size_t i = 0; r == 0 && i < n; i++)
		r = attach_kernel_single(g, sites[i], e);
	return r;
}

/* --- tracepoints --- */

/* The event outlives the link (close.c), by a descriptor that is none of the first ones. */
static int attach_classic(struct engine *g, const struct engine_site *s, int least)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_TRACEPOINT, .config = s->id};
	int fd = open_event(&attr, 0), event, link;

	if (fd < 0)
		return fd;
	event = g->plan->pin ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, least);
	if (event < 0)
		return keep_link_of(g, PROGRAM_CLASSIC, fd, s->probe);
	link = link_event(g, PROGRAM_CLASSIC, fd, s->probe);
	close(fd);
	if (link >= 0)
		return engine_keep_event(g, link, event);
	close(event);
	return link;
}

static int attach_raw(struct engine *g, const struct engine_site *s)
{
	int fd = link_raw_tracepoint(program_fd(g, PROGRAM_RAW), s->name, s->probe);

	return fd < 0 ? fd : keep_fd(g, fd);
}

/*
 * Where descriptors of events go (*from): above what is allowed, if that is little, which stays for
 * others. It may be less again once they are there: true if it was raised, from *own. Without room
 * for them, links own their events.
 */
#define EVENTS_FROM 4096
static bool make_room(struct rlimit *own, int *from)
{
	struct rlimit most;

	*from = EVENTS_FROM;
	if (getrlimit(RLIMIT_NOFILE, own) || own->rlim_cur >= 2 * EVENTS_FROM)
		return false;
	most = (struct rlimit){.rlim_cur = own->rlim_max, .rlim_max = own->rlim_max};
	setrlimit(RLIMIT_NOFILE, &most);
	*from = (int)own->rlim_cur;
	return true;
}

static int attach_tracepoints(struct engine *g, const struct engine_site *const *sites, size_t n,
			      struct error *e)
{
	struct rlimit own;
	int from, r = 0;
	bool raised;

	if (!g->uses[PROGRAM_RAW] && g->n_link_fds + g->n_events + n > ENGINE_TRACEPOINTS_MAX)
		return error_set(e, -E2BIG,
				 "%zu tracepoints with their fields, or of the category syscalls, "
				 "at a time are too many: expected at most %d, or a count without "
				 "fields of others",
				 n, ENGINE_TRACEPOINTS_MAX);
	raised = make_room(&own, &from);
	for (size_t i = 0; r == 0 && i < n; i++) {
		const struct engine_site *s = sites[i];

		r = g->uses[PROGRAM_RAW] ? attach_raw(g, s) : attach_classic(g, s, from);
		if (r < 0)
			error_set(e, r, "attaching to tracepoint %.64s:%.64s failed: %s",
				  s->category, s->name, strerror(-r));
	}
	if (raised)
		setrlimit(RLIMIT_NOFILE, &own);
	return r;
}

/* --- clocks --- */

/* It goes on while its processor has nothing to do, but then nothing is to be seen. */
static int attach_to_cpu(struct engine *g, const struct engine_site *s, int cpu)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_freq = s->offset,
		.freq = 1,
		.exclude_idle = 1,
		.disabled = 1,
	};
	int fd = (int)syscall(__NR_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : keep_link_of(g, PROGRAM_CLOCK, fd, s->probe);
}

static int attach_clock(struct engine *g, const struct engine_site *s, struct error *e)
{
	bool some = false;
	int r = 0;

	for (int cpu = 0; r == 0 && cpu < g->n_cpus; cpu++) {
		r = attach_to_cpu(g, s, cpu);
		some |= r == 0;
		r = r == -ENODEV ? 0 : r; /* it is offline */
	}
	if (r == 0 && some)
		return 0;
	r = r < 0 ? r : -ENODEV;
	return error_set(e, r,
			 "the kernel gives no clock (perf_event_open) of %llu Hz: %s; "
			 "/proc/sys/kernel/perf_event_max_sample_rate has the most that it allows",
			 (unsigned long long)s->offset, strerror(-r));
}

static int attach_clocks(struct engine *g, const struct engine_site *const *sites, size_t n,
			 struct error *e)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < n; i++)
		r = attach_clock(g, sites[i], e);
	return r;
}

/* --- all --- */

static bool alike(const struct engine_site *a, const struct engine_site *b)
{
	return a->kind == b->kind && a->is_return == b->is_return &&
	       (a->kind != SITE_USER || streq(a->path, b->path));
}

static int attach_alike(struct engine *g, const struct engine_site *const *sites, size_t n,
			struct error *e)
{
	switch (sites[0]->kind) {
	case SITE_USER:
		return attach_user(g, sites, n, e);
	case SITE_KERNEL:
		return attach_kernel(g, sites, n, e);
	case SITE_CLOCK:
		return attach_clocks(g, sites, n, e);
	default:
		return attach_tracepoints(g, sites, n, e);
	}
}

/* Without a cookie, which it needs none of. */
static int attach_plain(struct engine *g, enum engine_program which, const char *name)
{
	int fd;

	if (!g->uses[which])
		return 0;
	fd = bpf_raw_tracepoint_open(name, program_fd(g, which));
	return fd < 0 ? fd : keep_fd(g, fd);
}

int engine_attach_threads(struct engine *g, struct error *e)
{
	int r = attach_plain(g, PROGRAM_FORGET, "sched_process_exit");

	if (r == 0)
		r = attach_plain(g, PROGRAM_RENUMBER, "sched_process_exec");
	if (r < 0)
		return error_set(e, r,
				 "the end of threads cannot be watched, whose variables would "
				 "stay: %s",
				 strerror(-r));
	return 0;
}

/*
 * Of each kind and file together. Where returns need what their entries kept, entries come first:
 * else there would be returns that find nothing. Where both are records of their own, returns come
 * first: of whatever entry the kernel tells, it knows then that the return is wanted, too.
 */
int engine_attach_sites(struct engine *g, size_t first_site, struct error *e)
{
	const struct engine_plan *p = g->plan;
	autofree const struct engine_site **sites = calloc(p->n_sites + 1, sizeof(*sites));
	autofree bool *done = calloc(p->n_sites + 1, sizeof(*done));
	int r;

	if (!sites || !done)
		return out_of_memory(e);
	for (int turn = 0; turn <= 1; turn++)
		for (size_t i = first_site; i < p->n_sites; i++) {
			const struct engine_site *first = &p->sites[i];
			size_t n = 0;

			if (done[i] || first->kind == SITE_SELF ||
			    first->is_return != (p->paired ? turn : !turn))
				continue;
			for (size_t j = i; j < p->n_sites; j++)
				if (!done[j] && alike(first, &p->sites[j])) {
					sites[n++] = &p->sites[j];
					done[j] = true;
				}
			r = attach_alike(g, sites, n, e);
			if (r < 0)
				return r;
		}
	return 0;
}
