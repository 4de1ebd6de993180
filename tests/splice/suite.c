// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Runs every behaviour on plain TCP, on members of a sockhash and on redirected connections, over
 * IPv4 and IPv6, blocking and not, and prints what was seen, a line for each difference in what
 * programs see:
 *
 *   suite [NAME]                  prints the table, of all or of what has NAME in its name
 *   suite --compare FILE EARLIER [NAME]   TAP: whether each behaviour is as FILE has it, or EARLIER
 *
 * With --slow N before them, it waits N times as long: for machines that are emulated. Columns,
 * divided by tabs: behaviour, in which variants, by TCP, as member ("=": as TCP), redirected ("=":
 * as TCP). Needs root; works in a network namespace and a cgroup of its own.
 */
#include <errno.h>
#include <fcntl.h>
#include <mntent.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "behaviours.h"
#include "splice.h"
#include "splice.skel.h"

#define TEXT_MAX    160
#define HANG_MS	    4000  /* a run that takes longer hangs: the longest that does not takes 2 s */
#define KNOWN_MS    1000  /* for what is known to hang */
#define PATIENCE_MS 30000 /* for what is known not to hang, on a busy machine */
#define VARIANTS    4
#define BEHAVIOURS  256

static const struct behaviour *const tables[] = {
	gate_blocked,	 gate_ends,	  gate_ring,	    gate_reading,      gate_writing,
	gate_splice,	 behaviours_read, behaviours_wait,  behaviours_end,    behaviours_write,
	behaviours_full, behaviours_move, behaviours_uring, behaviours_option, behaviours_layer,
};

static const struct {
	const char *name;
	int family;
	bool nonblock;
} variants[VARIANTS] = {
	{"IPv4, blocking", AF_INET, false},
	{"IPv4, non-blocking", AF_INET, true},
	{"IPv6, blocking", AF_INET6, false},
	{"IPv6, non-blocking", AF_INET6, true},
};

struct result {
	const struct behaviour *b;
	int limit_ms[MODES][VARIANTS]; /* of a run */
	char text[MODES][VARIANTS][TEXT_MAX];
};

static struct result results[BEHAVIOURS];
static size_t n_results;
static char cgroup[4096];
static char (*texts)[TEXT_MAX]; /* of each variant, shared with its process */

__attribute__((format(printf, 1, 2), noreturn)) static void die(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(1);
}

/* --- a place of its own --- */

static void loopback_up(void)
{
	struct ifreq ifr = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (unshare(CLONE_NEWNET) < 0)
		die("cannot make a network namespace: %m");
	close(fd);
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (ioctl(fd, SIOCSIFFLAGS, &ifr) < 0)
		die("cannot set lo up: %m");
	close(fd);
}

/* The kernel stamps what comes while somebody wants that, and takes a while to begin: we always do.
 */
static void want_stamps(void)
{
	int on = 1, fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (setsockopt(fd, SOL_SOCKET, SO_TIMESTAMP, &on, sizeof(on)) < 0)
		die("cannot have time stamps: %m");
}

static void leave_cgroup(void)
{
	char path[4200];
	int fd;

	snprintf(path, sizeof(path), "%s/../cgroup.procs", cgroup);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd >= 0 && write(fd, "0", 1) == 1)
		close(fd);
	for (int i = 0; i < 50 && rmdir(cgroup) < 0 && errno == EBUSY; i++)
		pause_ms(20);
}

static void enter_cgroup(void)
{
	FILE *mounts = setmntent("/proc/self/mounts", "re");
	struct mntent *m;
	char path[4200];
	int fd;

	while (mounts && (m = getmntent(mounts)) && strcmp(m->mnt_type, "cgroup2") != 0)
		;
	if (!mounts || !m)
		die("no cgroup2 is mounted: mount -t cgroup2 none /sys/fs/cgroup");
	snprintf(cgroup, sizeof(cgroup), "%s/splice-suite-%d", m->mnt_dir, getpid());
	endmntent(mounts);
	if (mkdir(cgroup, 0755) < 0)
		die("cannot make %s: %m", cgroup);
	atexit(leave_cgroup);
	snprintf(path, sizeof(path), "%s/cgroup.procs", cgroup);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, "0", 1) != 1)
		die("cannot enter %s: %m", cgroup);
	close(fd);
}

/* --- one run --- */

__attribute__((noreturn)) static void run_child(const struct behaviour *b, int variant)
{
	struct run r = {.family = variants[variant].family,
			.nonblock = variants[variant].nonblock,
			.client = -1,
			.server = -1,
			.text = texts[variant],
			.room = TEXT_MAX};
	int e;

	setpgid(0, 0);
	r.listener = listener_open(r.family);
	if (r.listener < 0)
		die("cannot listen: %s", strerrorname_np(-r.listener));
	if (!(b->flags & ALONE)) {
		e = pair_open(&r, &r.client, &r.server);
		if (e < 0) {
			said(&r, "no pair: %s", strerrorname_np(-e));
			_exit(0);
		}
	}
	b->run(&r);
	_exit(0);
}

/* Ends the run with all the processes that it left behind. */
static void run_end(pid_t pid, int limit_ms, const char *said, char ret[TEXT_MAX])
{
	struct pollfd p = {.fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN};
	bool hangs = poll(&p, 1, limit_ms) == 0;
	const char *how = "";
	int status = 0;

	kill(-pid, SIGKILL);
	waitpid(pid, &status, 0);
	close(p.fd);
	if (hangs)
		how = "hangs";
	else if (WIFSIGNALED(status))
		how = "crashes";
	snprintf(ret, TEXT_MAX, "%.140s%s%s", said, *how && *said ? " " : "", how);
}

static bool is_for(const struct behaviour *b, int variant)
{
	return !variants[variant].nonblock || !(b->flags & BLOCKING_ONLY);
}

/* A behaviour in all variants at once: they mostly wait. */
static void run_variants(struct result *r, enum mode mode)
{
	pid_t pids[VARIANTS] = {0};
	int64_t start;

	memset(texts, 0, sizeof(*texts) * VARIANTS);
	fflush(NULL);
	for (int v = 0; v < VARIANTS; v++) {
		if (!is_for(r->b, v))
			continue;
		pids[v] = fork();
		if (pids[v] == 0)
			run_child(r->b, v);
		setpgid(pids[v], pids[v]);
	}
	start = clock_ms();
	for (int v = 0; v < VARIANTS; v++) {
		int64_t left = start + (int64_t)r->limit_ms[mode][v] * slowness - clock_ms();

		if (pids[v])
			run_end(pids[v], left > 0 ? (int)left : 0, texts[v], r->text[mode][v]);
	}
}

static void run_mode(enum mode mode)
{
	for (size_t i = 0; i < n_results; i++)
		run_variants(&results[i], mode);
}

/* --- with the programs --- */

static uint64_t counted(struct splice *s, __u32 what)
{
	uint64_t n = 0;

	bpf_map__lookup_elem(s->maps.counts, &what, sizeof(what), &n, sizeof(n), 0);
	return n;
}

static void run_spliced(enum mode mode)
{
	struct splice *s = splice__open();
	int cg = open(cgroup, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct bpf_link *link;

	if (!s)
		die("cannot open the programs: %m");
	s->rodata->redirect = mode == MODE_REDIRECT;
	if (splice__load(s) < 0)
		die("the kernel refuses the programs: %m");
	if (bpf_prog_attach(bpf_program__fd(s->progs.pass), bpf_map__fd(s->maps.members),
			    BPF_SK_MSG_VERDICT, 0) < 0)
		die("cannot attach to the sockhash: %m");
	link = bpf_program__attach_cgroup(s->progs.join, cg);
	if (!link)
		die("cannot attach to the cgroup: %m");
	run_mode(mode);
	if (!counted(s, SPLICE_JOINED) ||
	    !counted(s, mode == MODE_REDIRECT ? SPLICE_REDIRECTED : SPLICE_PASSED))
		die("no connection was %s: this run shows nothing",
		    mode == MODE_REDIRECT ? "redirected" : "a member");
	bpf_link__destroy(link);
	splice__destroy(s);
	close(cg);
}

/* --- what was seen --- */

static bool same(const struct result *r, int a, int b)
{
	for (int m = 0; m < MODES; m++)
		if (strcmp(r->text[m][a], r->text[m][b]) != 0)
			return false;
	return true;
}

static void put_variants(FILE *to, const struct result *r, int first, const bool *done)
{
	bool all = true;
	int n = 0;

	for (int v = 0; v < VARIANTS; v++)
		if (is_for(r->b, v))
			all = all && same(r, first, v);
	if (all) {
		fputs(r->b->flags & BLOCKING_ONLY ? "blocking" : "all", to);
		return;
	}
	for (int v = first; v < VARIANTS; v++)
		if (!done[v] && is_for(r->b, v) && same(r, first, v))
			fprintf(to, "%s%s", n++ ? "; " : "", variants[v].name);
}

/* The lines of a behaviour: one for all variants that are alike. Freed by the caller. */
static char *lines_of(const struct result *r)
{
	bool done[VARIANTS] = {false};
	char *lines = NULL;
	size_t size;
	FILE *to = open_memstream(&lines, &size);

	if (!to)
		die("no memory");
	for (int v = 0; v < VARIANTS; v++) {
		const char *tcp = r->text[MODE_TCP][v], *member = r->text[MODE_MEMBER][v],
			   *redirected = r->text[MODE_REDIRECT][v];

		if (done[v] || !is_for(r->b, v))
			continue;
		fprintf(to, "%s\t", r->b->name);
		put_variants(to, r, v, done);
		fprintf(to, "\t%s\t%s\t%s\n", tcp, strcmp(tcp, member) ? member : "=",
			strcmp(tcp, redirected) ? redirected : "=");
		for (int w = v; w < VARIANTS; w++)
			done[w] = done[w] || same(r, v, w);
	}
	fclose(to);
	return lines;
}

/* --- the table, and TAP against one that was kept --- */

static void print_table(void)
{
	puts("behaviour\tvariants\tTCP\tmember\tredirected");
	for (size_t i = 0; i < n_results; i++) {
		char *lines = lines_of(&results[i]);

		fputs(lines, stdout);
		free(lines);
	}
}

static char *read_file(const char *path)
{
	char *all = calloc(1, 1 << 20);
	FILE *f = fopen(path, "re");

	if (!f || !all)
		die("cannot read %s: %m", path);
	if (fread(all, 1, (1 << 20) - 1, f) == 0)
		die("%s is empty", path);
	fclose(f);
	return all;
}

/* The lines of that behaviour in a table: they stand together. Freed by the caller. */
static char *kept_lines(const char *table, const char *name)
{
	size_t len = strlen(name), size;
	char *lines = NULL;
	FILE *to = open_memstream(&lines, &size);

	for (const char *at = table; *at;) {
		size_t line = strcspn(at, "\n");

		if (strncmp(at, name, len) == 0 && at[len] == '\t')
			fprintf(to, "%.*s\n", (int)line, at);
		at += line + (at[line] == '\n');
	}
	fclose(to);
	return lines;
}

static void put_comment(const char *what, const char *lines)
{
	printf("# %s:\n", what);
	for (const char *at = lines; *at;) {
		size_t line = strcspn(at, "\n");

		printf("#   %.*s\n", (int)line, at);
		at += line + (at[line] == '\n');
	}
}

/* A line's column, the first of which is 0. */
static void column_of(const char *line, int column, char *ret, size_t size)
{
	while (column--) {
		line += strcspn(line, "\t\n");
		line += *line == '\t';
	}
	snprintf(ret, size, "%.*s", (int)strcspn(line, "\t\n"), line);
}

/* Whether these lines of a table have it that the behaviour hangs there. */
static bool is_to_hang(const char *lines, enum mode mode, int variant)
{
	char in[TEXT_MAX], text[TEXT_MAX];

	for (const char *at = lines; *at; at += *at == '\n') {
		column_of(at, 1, in, sizeof(in));
		column_of(at, 2 + (int)mode, text, sizeof(text));
		if (strstr(text, "hangs") &&
		    (!strchr(in, ',') || strstr(in, variants[variant].name)))
			return true;
		at += strcspn(at, "\n");
	}
	return false;
}

/* What is to hang is soon said to; the rest has the time that it needs. */
static void be_patient(const char *table)
{
	for (size_t i = 0; i < n_results; i++) {
		char *kept = kept_lines(table, results[i].b->name);

		for (int mode = 0; mode < MODES; mode++)
			for (int v = 0; v < VARIANTS; v++)
				results[i].limit_ms[mode][v] =
					is_to_hang(kept, mode, v) ? KNOWN_MS : PATIENCE_MS;
		free(kept);
	}
}

/* 0, or 1 when a behaviour is another than the tables have it. earlier: of releases before. */
static int compare(const char *table, const char *earlier)
{
	int bad = 0;

	for (size_t i = 0; i < n_results; i++) {
		const char *name = results[i].b->name;
		char *seen = lines_of(&results[i]), *kept = kept_lines(table, name);
		char *was = kept_lines(earlier, name);
		bool equal = !strcmp(seen, kept) || !strcmp(seen, was);

		printf("%s %zu - %s\n", equal ? "ok" : "not ok", i + 1, name);
		if (!equal) {
			put_comment("seen", seen);
			put_comment("kept", kept);
			put_comment("of earlier releases", was);
			bad = 1;
		}
		free(seen);
		free(kept);
		free(was);
	}
	printf("1..%zu\n", n_results);
	return bad;
}

static void add(const struct behaviour *b)
{
	struct result *r = &results[n_results++];

	r->b = b;
	for (int mode = 0; mode < MODES; mode++)
		for (int v = 0; v < VARIANTS; v++)
			r->limit_ms[mode][v] = HANG_MS;
}

static void choose(const char *part)
{
	for (size_t t = 0; t < sizeof(tables) / sizeof(*tables); t++)
		for (const struct behaviour *b = tables[t]; b->name; b++)
			if ((!part || strstr(b->name, part)) && n_results < BEHAVIOURS)
				add(b);
	if (!n_results)
		die("no behaviour has '%s' in its name", part);
}

int main(int argc, char **argv)
{
	char *table = NULL, *earlier = NULL;
	int bad = 0;

	if (argc > 2 && !strcmp(argv[1], "--slow")) {
		slowness = (unsigned)strtoul(argv[2], NULL, 10);
		if (slowness < 1 || slowness > 100)
			die("--slow wants a number from 1 to 100, not '%s'", argv[2]);
		argc -= 2, argv += 2;
	}
	if (argc > 3 && !strcmp(argv[1], "--compare")) {
		table = read_file(argv[2]);
		earlier = read_file(argv[3]);
		argc -= 3, argv += 3;
	}
	choose(argc > 1 ? argv[1] : NULL);
	libbpf_set_strict_mode(LIBBPF_STRICT_ALL);
	texts = mmap(NULL, sizeof(*texts) * VARIANTS, PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (texts == MAP_FAILED)
		die("no memory");
	if (table)
		be_patient(table);
	loopback_up();
	want_stamps();
	enter_cgroup();
	run_mode(MODE_TCP);
	run_spliced(MODE_MEMBER);
	run_spliced(MODE_REDIRECT);
	if (table)
		bad = compare(table, earlier);
	else
		print_table();
	free(table);
	free(earlier);
	return bad;
}
