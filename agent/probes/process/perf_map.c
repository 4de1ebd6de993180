// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Perf maps: lines of "START SIZE NAME" with hexadecimal numbers, which node --perf-basic-prof,
 * Java's agents and others append to. Code moves, so of two that overlap the later one counts.
 */
#include <ctype.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>

#include "base/search.h"
#include "probes/process/priv.h"

#define JIT_FILE_MAX  (256u << 20)
#define JIT_NAMES_MAX (64u << 20)
#define JIT_CODE_MAX  (2u << 20)
#define LINE_MAX_LEN  4096
#define OVERLAPS_MAX  64 /* how many before an address are looked at */

struct jit_code {
	uint64_t from;
	uint32_t size;
	uint32_t name;
	uint32_t order;
};

/* The number that it has in its own namespace, which is what it calls its file; and who it is. */
static int own_number(int pid, uid_t *uid)
{
	char path[64], line[512];
	autofile FILE *f = NULL;
	int found = -ENOENT;
	unsigned u;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		char *p = strrchr(line, '\t');

		if (starts_with(line, "NSpid:") && p)
			found = atoi(p + 1);
		else if (sscanf(line, "Uid: %*u %u", &u) == 1)
			*uid = u;
	}
	return found;
}

/* Anybody can put a file of that name there, or a link, or a FIFO. */
static bool is_its_own(int fd, uid_t uid)
{
	struct stat st;

	return !fstat(fd, &st) && S_ISREG(st.st_mode) && (st.st_uid == uid || st.st_uid == 0);
}

void jit_open(struct jit *j, int pid)
{
	struct open_how how = {
		.flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY,
		.resolve = RESOLVE_IN_ROOT,
	};
	char path[64];
	autoclose int root = -1, fd = -1;
	uid_t uid = (uid_t)-1;
	int number;

	if (j->fd >= 0)
		return;
	number = own_number(pid, &uid);
	if (number < 0)
		return;
	snprintf(path, sizeof(path), "/proc/%d/root", pid);
	root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", number);
	if (root >= 0)
		fd = (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
	if (fd >= 0 && is_its_own(fd, uid))
		j->fd = take_fd(&fd);
}

void jit_free(struct jit *j)
{
	close_fd(&j->fd);
	free(j->v);
	free(j->names);
	*j = JIT_NONE;
}

static bool grow(void *array, size_t *max, size_t want, size_t size, size_t limit)
{
	void **a = array;
	size_t more = *max ? *max : 1024;
	void *bigger;

	while (more < want)
		more *= 2;
	if (want > limit)
		return false;
	if (more == *max)
		return true;
	bigger = reallocarray(*a, more, size);
	if (!bigger)
		return false;
	*a = bigger;
	*max = more;
	return true;
}

static const char *number(const char *p, uint64_t *ret)
{
	const char *start = p;

	*ret = 0;
	if (starts_with(p, "0x"))
		start = p += 2;
	for (; isxdigit((unsigned char)*p) && p - start < 16; p++)
		*ret = *ret << 4 |
		       (uint64_t)(*p <= '9' ? *p - '0' : tolower((unsigned char)*p) - 'a' + 10);
	return p > start && *p == ' ' ? p + 1 : NULL;
}

static void add_line(struct jit *j, const char *line)
{
	struct jit_code c = {.order = (uint32_t)j->n};
	uint64_t size;
	size_t len;
	const char *p = number(line, &c.from);

	p = p ? number(p, &size) : NULL;
	len = p ? strlen(p) : 0;
	if (!len || !size || size > UINT32_MAX ||
	    !grow(&j->v, &j->max, j->n + 1, sizeof(*j->v), JIT_CODE_MAX) ||
	    !grow(&j->names, &j->names_max, j->names_len + len + 1, 1, JIT_NAMES_MAX))
		return;
	c.size = (uint32_t)size;
	c.name = (uint32_t)j->names_len;
	memcpy(j->names + j->names_len, p, len + 1);
	j->names_len += len + 1;
	j->v[j->n++] = c;
}

static int compare(const void *pa, const void *pb)
{
	const struct jit_code *a = pa, *b = pb;

	if (a->from != b->from)
		return a->from < b->from ? -1 : 1;
	return a->order < b->order ? -1 : a->order > b->order;
}

/* What is not yet a whole line is read again. */
static size_t add_lines(struct jit *j, char *text, size_t n)
{
	size_t done = 0;

	for (;;) {
		char *end = memchr(text + done, '\n', n - done);

		if (!end)
			return done;
		*end = 0;
		add_line(j, text + done);
		done = (size_t)(end - text) + 1;
	}
}

/* The order is that of the lines, and the array is sorted: so the numbers go on. */
void jit_read(struct jit *j)
{
	autofree char *text = NULL;
	const size_t chunk = 64u << 10;
	size_t before = j->n;

	if (j->fd < 0)
		return;
	text = malloc(chunk);
	while (text && j->at < (off_t)JIT_FILE_MAX) {
		ssize_t n = pread(j->fd, text, chunk, j->at);
		size_t done;

		if (n <= 0)
			break;
		done = add_lines(j, text, (size_t)n);
		if (!done && n > LINE_MAX_LEN)
			done = (size_t)n; /* no line is as long */
		if (!done)
			break;
		j->at += (off_t)done;
	}
	if (j->n > before)
		qsort(j->v, j->n, sizeof(*j->v), compare);
}

uint64_t jit_cost(const struct jit *j)
{
	return (uint64_t)j->at + j->max * sizeof(*j->v) + j->names_max;
}

const char *jit_find(const struct jit *j, uint64_t address, uint64_t *offset)
{
	size_t above =
		search_above(j->v, j->n, sizeof(*j->v), offsetof(struct jit_code, from), address);
	const struct jit_code *best = NULL;

	for (size_t i = above; i && above - i < OVERLAPS_MAX; i--) {
		const struct jit_code *c = &j->v[i - 1];

		if (address - c->from < c->size && (!best || c->order > best->order))
			best = c;
	}
	if (!best)
		return NULL;
	*offset = address - best->from;
	return j->names + best->name;
}
