// SPDX-License-Identifier: GPL-2.0-or-later
/* Processes, what they have mapped, and the names of their addresses. */
#include <inttypes.h>
#include <limits.h>

#include "base/search.h"
#include "probes/process/priv.h"

#define PROCESSES_MAX 4096
#define BUCKETS	      1024
#define MAPPINGS_MAX  (1u << 17)
#define CHECK_NS      100000000ull  /* how often it is looked whether it is still the same */
#define WAIT_MAX_NS   3200000000ull /* for those whose addresses are never found */
#define JIT_NS	      10000000ull
#define JIT_ALL_MAX   (512u << 20) /* bytes that maps of all processes may take */
#define GONE_MAX      4096	   /* what a process had mapped before is kept so often */

struct mapping {
	uint64_t from, to, offset;
	const char *name;    /* NULL: anonymous */
	struct mapped *file; /* of code; NULL: none that can be read */
	bool code;
};

/* A process from one exec to the next. */
struct identity {
	unsigned long long started, code, stack;
};

struct process {
	struct process *next; /* in its bucket */
	int pid;
	struct identity identity;
	struct mapping *v; /* sorted */
	size_t n, max;
	uint64_t checked_at, read_at, jit_at, used;
	uint64_t wait; /* until what it has mapped is read again for an unknown address */
	struct jit jit;
};

struct processes {
	struct process *buckets[BUCKETS];
	size_t n;
	uint64_t used;
	struct names names;
	struct files files;
	struct kernel_names kernel;
	struct rows *rows;
};

int processes_new(struct processes **ret)
{
	*ret = calloc(1, sizeof(**ret));
	return *ret ? 0 : -ENOMEM;
}

static void drop_mappings(struct processes *p, struct process *one)
{
	for (size_t i = 0; i < one->n; i++)
		if (one->v[i].file)
			files_put(&p->files, one->v[i].file);
	free(one->v);
	one->v = NULL;
	one->n = one->max = 0;
}

static struct process **find(struct processes *p, int pid)
{
	struct process **at = &p->buckets[(unsigned)pid % BUCKETS];

	while (*at && (*at)->pid != pid)
		at = &(*at)->next;
	return at;
}

static void drop(struct processes *p, struct process **at)
{
	struct process *one = *at;

	*at = one->next;
	drop_mappings(p, one);
	jit_free(&one->jit);
	free(one);
	p->n--;
}

void processes_free(struct processes *p)
{
	for (size_t i = 0; i < BUCKETS; i++)
		while (p->buckets[i])
			drop(p, &p->buckets[i]);
	files_free(&p->files);
	names_free(&p->names);
	kernel_names_free(&p->kernel);
	rows_free(p->rows);
	free(p);
}

void processes_forget(struct processes *p, int pid)
{
	struct process **at = find(p, pid);

	if (*at)
		drop(p, at);
}

/* -ESRCH: it ended, also if nobody waited for it yet. */
static int read_identity(int pid, struct identity *ret)
{
	autofree char *text = NULL;
	const char *p;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	if (file_read(path, 4096, &text) < 0)
		return -ESRCH;
	p = strrchr(text, ')'); /* the name before it can have anything in it */
	if (!p || sscanf(p + 1,
			 " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d "
			 "%*d %llu %*u %*d %*u %llu %*u %llu",
			 &ret->started, &ret->code, &ret->stack) != 3)
		return -ESRCH;
	return ret->stack ? 0 : -ESRCH;
}

static bool same_identity(const struct identity *a, const struct identity *b)
{
	return a->started == b->started && a->code == b->code && a->stack == b->stack;
}

/* --- what it has mapped --- */

static struct mapping *add_mapping(struct process *one)
{
	size_t more = one->max ? one->max * 2 : 32;
	struct mapping *v;

	if (one->n < one->max)
		return &one->v[one->n++];
	if (more > MAPPINGS_MAX)
		return NULL;
	v = reallocarray(one->v, more, sizeof(*v));
	if (!v)
		return NULL;
	one->v = v;
	one->max = more;
	return &one->v[one->n++];
}

static const char *shown_name(struct processes *p, char *path)
{
	static const char deleted[] = " (deleted)";
	size_t len = strlen(path);

	if (!len)
		return NULL;
	if (len > sizeof(deleted) && streq(path + len - strlen(deleted), deleted))
		path[len - strlen(deleted)] = 0;
	return names_intern(&p->names, path);
}

/* "from-to perms offset dev inode  path" */
static void add_line(struct processes *p, struct process *one, char *line)
{
	unsigned long long from, to, offset;
	char perms[8];
	struct mapping *m;
	char *path;
	int at = 0;

	line[strcspn(line, "\n")] = 0;
	if (sscanf(line, "%llx-%llx %7s %llx %*s %*s %n", &from, &to, perms, &offset, &at) != 4 ||
	    !at)
		return;
	path = line + at;
	m = one->n ? &one->v[one->n - 1] : NULL;
	/* a heap in a thousand pieces is one */
	if (m && !*path && !m->name && !m->code && !strchr(perms, 'x') && m->to == from) {
		m->to = to;
		return;
	}
	m = add_mapping(one);
	if (!m)
		return;
	*m = (struct mapping){.from = from, .to = to, .offset = offset};
	m->code = strchr(perms, 'x') != NULL;
	if (m->code && *path == '/')
		m->file = files_get(&p->files, one->pid, from, to, path);
	else if (streq(path, "[vdso]"))
		m->file = files_vdso(&p->files);
	m->name = shown_name(p, path);
}

static int compare(const void *a, const void *b)
{
	const struct mapping *x = a, *y = b;

	return x->from < y->from ? -1 : x->from > y->from;
}

static bool is_free(const struct process *one, size_t n, uint64_t from, uint64_t to)
{
	size_t above =
		search_above(one->v, n, sizeof(*one->v), offsetof(struct mapping, from), to - 1);

	return !above || one->v[above - 1].to <= from;
}

/* Addresses were taken when something was there that is not any more: programs that come to their
 * end give back their memory before. What is mapped in its place now counts alone. */
static void keep_gone(struct process *fresh, struct process *before)
{
	size_t n = fresh->n, gone = 0;

	for (size_t i = 0; i < before->n && gone < GONE_MAX; i++) {
		struct mapping *old = &before->v[i], *m;

		if (!old->code || !is_free(fresh, n, old->from, old->to))
			continue;
		m = add_mapping(fresh);
		if (!m)
			break;
		*m = *old;
		old->file = NULL; /* what was its is m's now */
		gone++;
	}
	if (gone)
		qsort(fresh->v, fresh->n, sizeof(*fresh->v), compare);
}

/* Code that is in no file. */
static bool may_have_jit(const struct process *one)
{
	for (size_t i = 0; i < one->n; i++)
		if (one->v[i].code && !one->v[i].file &&
		    !(one->v[i].name && starts_with(one->v[i].name, "[v")))
			return true;
	return false;
}

/* What it had is kept if it has ended by now. */
static void read_maps(struct processes *p, struct process *one)
{
	struct process fresh = {.pid = one->pid};
	autofree char *line = NULL;
	autofile FILE *f = NULL;
	size_t len = 0;
	char path[64];

	one->read_at = time_mono_ns();
	snprintf(path, sizeof(path), "/proc/%d/maps", one->pid);
	f = fopen(path, "re");
	while (f && getline(&line, &len, f) >= 0)
		add_line(p, &fresh, line);
	if (!fresh.n) {
		drop_mappings(p, &fresh);
		return;
	}
	keep_gone(&fresh, one);
	drop_mappings(p, one);
	one->v = fresh.v;
	one->n = fresh.n;
	one->max = fresh.max;
	/* once the process has ended nothing leads to the file */
	if (may_have_jit(one))
		jit_open(&one->jit, one->pid);
}

/* --- which process it is --- */

static void drop_oldest(struct processes *p)
{
	struct process **oldest = NULL;

	for (size_t i = 0; i < BUCKETS; i++)
		for (struct process **at = &p->buckets[i]; *at; at = &(*at)->next)
			if (!oldest || (*at)->used < (*oldest)->used)
				oldest = at;
	if (oldest)
		drop(p, oldest);
}

static struct process *add_process(struct processes *p, int pid)
{
	struct process *one, **at;

	if (p->n >= PROCESSES_MAX)
		drop_oldest(p);
	one = calloc(1, sizeof(*one));
	if (!one)
		return NULL;
	one->pid = pid;
	one->jit = JIT_NONE;
	at = find(p, pid);
	*at = one;
	p->n++;
	return one;
}

/* It is the process with this number now, if it changed since the last look. */
static void check_identity(struct processes *p, struct process *one, uint64_t now)
{
	struct identity id;

	one->checked_at = now;
	if (read_identity(one->pid, &id) || same_identity(&id, &one->identity))
		return;
	drop_mappings(p, one);
	jit_free(&one->jit);
	one->identity = id;
	one->wait = 0;
	read_maps(p, one);
}

static struct process *get(struct processes *p, int pid)
{
	struct process *one = *find(p, pid);
	uint64_t now = time_mono_ns();

	if (!one) {
		one = add_process(p, pid);
		if (one)
			check_identity(p, one, now);
	} else if (now - one->checked_at >= CHECK_NS) {
		check_identity(p, one, now);
	}
	if (one)
		one->used = ++p->used;
	return one;
}

void processes_note(struct processes *p, int pid)
{
	get(p, pid);
}

void processes_note_again(struct processes *p, int pid)
{
	struct process *one = get(p, pid);

	if (one)
		read_maps(p, one);
}

/* --- addresses --- */

static const struct mapping *mapping_at(const struct process *one, uint64_t address)
{
	size_t above = search_above(one->v, one->n, sizeof(*one->v), offsetof(struct mapping, from),
				    address);

	return above && address < one->v[above - 1].to ? &one->v[above - 1] : NULL;
}

/* The first time at once, then the less often the more was looked for in vain. */
static const struct mapping *look_again(struct processes *p, struct process *one, uint64_t address)
{
	const struct mapping *m;
	uint64_t now = time_mono_ns();

	if (now - one->read_at < one->wait)
		return NULL;
	check_identity(p, one, now);
	m = mapping_at(one, address);
	if (!m) {
		read_maps(p, one);
		m = mapping_at(one, address);
	}
	if (m || !one->wait)
		one->wait = CHECK_NS;
	else if (one->wait < WAIT_MAX_NS)
		one->wait *= 2;
	return m;
}

/* A file of many names costs a process nothing that is a link to another one's. */
static bool may_read_jit(const struct processes *p)
{
	uint64_t cost = 0;

	for (size_t i = 0; i < BUCKETS; i++)
		for (const struct process *one = p->buckets[i]; one; one = one->next)
			cost += jit_cost(&one->jit);
	return cost < JIT_ALL_MAX;
}

static const char *jit_name(struct processes *p, struct process *one, uint64_t address,
			    uint64_t *offset)
{
	const char *name = jit_find(&one->jit, address, offset);
	uint64_t now;

	if (name)
		return name;
	now = time_mono_ns();
	if (now - one->jit_at < JIT_NS)
		return NULL;
	one->jit_at = now;
	jit_open(&one->jit, one->pid);
	if (may_read_jit(p))
		jit_read(&one->jit);
	return jit_find(&one->jit, address, offset);
}

static int name_function(struct processes *p, struct process *one, const struct mapping *m,
			 uint64_t address, struct place_name *ret)
{
	uint64_t offset = address - m->from + m->offset;
	const char *name;
	struct symbol s;

	ret->file = m->name;
	ret->offset = m->file ? offset : address;
	if (m->file && mapped_symbolise(&p->files, m->file, offset, &s) == 0) {
		ret->offset = offset - s.offset;
		ret->function = names_demangled(&p->names, s.name);
		return ret->function ? 0 : -ENOMEM;
	}
	name = m->code ? jit_name(p, one, address, &offset) : NULL;
	if (name) {
		ret->offset = offset;
		ret->function = names_intern(&p->names, name);
		return ret->function ? 0 : -ENOMEM;
	}
	return m->name ? 0 : -ENOENT;
}

static const struct mapping *find_mapping(struct processes *p, struct process *one,
					  uint64_t address)
{
	const struct mapping *m = mapping_at(one, address);

	return m ? m : look_again(p, one, address);
}

int processes_symbolise(struct processes *p, int pid, uint64_t address, struct place_name *ret)
{
	struct process *one = get(p, pid);
	const struct mapping *m;

	*ret = (struct place_name){.offset = address};
	if (!one)
		return -ENOMEM;
	m = find_mapping(p, one, address);
	return m ? name_function(p, one, m, address, ret) : -ENOENT;
}

int process_code(struct processes *p, int pid, uint64_t address, struct code_place *ret)
{
	struct process *one = get(p, pid);
	const struct mapping *m = one ? find_mapping(p, one, address) : NULL;

	if (!m || (!m->code && !m->file))
		return -ENOENT;
	*ret = (struct code_place){.file = m->file, .offset = address - m->from + m->offset};
	return 0;
}

bool processes_has_code(struct processes *p, int pid, uint64_t address)
{
	struct code_place ignored;

	return process_code(p, pid, address, &ignored) == 0;
}

struct files *processes_files(struct processes *p)
{
	return &p->files;
}

struct rows **processes_rows(struct processes *p)
{
	return &p->rows;
}

int processes_kernel(struct processes *p, uint64_t address, struct place_name *ret)
{
	const char *name, *module;
	uint64_t offset;
	int r = kernel_names_find(&p->kernel, address, &name, &module, &offset);

	*ret = (struct place_name){.offset = address};
	if (r < 0)
		return r == -ENOMEM ? r : -ENOENT;
	ret->function = names_intern(&p->names, name);
	ret->file = module ? names_intern(&p->names, module) : NULL;
	ret->offset = offset;
	return ret->function && (ret->file || !module) ? 0 : -ENOMEM;
}

void place_name_text(const struct place_name *n, char *to, size_t len)
{
	const char *file = n->file ? n->file : "", *slash = strrchr(file, '/');
	char offset[32] = "";

	if (n->offset || !n->function)
		snprintf(offset, sizeof(offset), "%s0x%" PRIx64, n->function ? "+" : "", n->offset);
	if (slash && slash[1])
		file = slash + 1;
	snprintf(to, len, "%s%s%s%s%s", n->function ? n->function : "", offset, *file ? " (" : "",
		 file, *file ? ")" : "");
}
