// SPDX-License-Identifier: GPL-2.0-or-later
/* Files, lines and values of processes' instructions. */
#include <elf.h>
#include <limits.h>
#include <sys/stat.h>

#include "tools/trace/step/step.h"

#define MAPPINGS_KEPT  32
#define PROCESSES_KEPT 32
#define FILES_MAX      64
#define PLACES_MAX     2048

/* Processes may have others under the same name, in other root directories or one after the other.
 */
struct file {
	char path[sizeof(((struct step_mapping *)0)->path)];
	dev_t dev;
	ino_t ino;
	struct timespec changed;
	struct binary *binary; /* NULL: it cannot be read */
	struct dwarf *dwarf;
	bool no_lines;
};
struct mapping {
	struct step_mapping m;
	struct file *file; /* NULL: in none, or nobody has looked yet */
};
/* What a process has mapped, as far as it was asked for. */
struct view {
	int pid;
	struct mapping v[MAPPINGS_KEPT];
	size_t n, next;
};
/* Of one place in a file, whichever process comes there. */
struct place_values {
	const struct file *file;
	uint64_t offset;
	struct fetch fetch[PROBE_ARGS_MAX];
	bool known[PROBE_ARGS_MAX];
};
struct step_places {
	const struct step_request *q;
	struct view views[PROCESSES_KEPT];
	size_t n_views, next_view;
	struct file files[FILES_MAX];
	size_t n_files;
	struct place_values *values;
	size_t n_values;
	struct fetch_texts texts;
	bool was_known[PROBE_ARGS_MAX];
	struct error why[PROBE_ARGS_MAX];
};

int step_places_new(const struct step_request *q, struct step_places **ret)
{
	struct step_places *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->q = q;
	if (q->n_values)
		p->values = calloc(PLACES_MAX, sizeof(*p->values));
	*ret = p;
	return p->values || !q->n_values ? 0 : -ENOMEM;
}

static void drop_values(struct step_places *p)
{
	for (size_t i = 0; i < p->n_values; i++)
		for (size_t j = 0; j < p->q->n_values; j++)
			fetch_free(&p->values[i].fetch[j]);
	p->n_values = 0;
}

/* With what points to them. */
static void drop_files(struct step_places *p)
{
	drop_values(p);
	p->n_views = p->next_view = 0;
	for (size_t i = 0; i < p->n_files; i++) {
		if (p->files[i].binary)
			binary_close(p->files[i].binary);
		if (p->files[i].dwarf)
			dwarf_free(p->files[i].dwarf);
	}
	p->n_files = 0;
}

void step_places_free(struct step_places *p)
{
	drop_files(p);
	fetch_texts_free(&p->texts);
	free(p->values);
	free(p);
}

void step_places_look_again(struct step_places *p, int pid)
{
	for (size_t i = 0; i < p->n_views; i++)
		if (p->views[i].pid == pid)
			p->views[i].n = p->views[i].next = 0;
}

/* --- where it is --- */

static struct view *view_of(struct step_places *p, int pid)
{
	struct view *v;

	for (size_t i = 0; i < p->n_views; i++)
		if (p->views[i].pid == pid)
			return &p->views[i];
	v = &p->views[p->next_view];
	p->next_view = (p->next_view + 1) % PROCESSES_KEPT;
	if (p->n_views < PROCESSES_KEPT)
		p->n_views++;
	*v = (struct view){.pid = pid};
	return v;
}

static struct mapping *mapping_at(struct step_places *p, int pid, uint64_t address)
{
	struct view *view = view_of(p, pid);
	struct mapping *m;

	for (size_t i = 0; i < view->n; i++)
		if (address >= view->v[i].m.from && address < view->v[i].m.to)
			return &view->v[i];
	m = &view->v[view->next];
	if (step_mapping(pid, address, &m->m) < 0)
		return NULL;
	m->file = NULL;
	view->next = (view->next + 1) % MAPPINGS_KEPT;
	if (view->n < MAPPINGS_KEPT)
		view->n++;
	return m;
}

bool step_places_is_kernels(struct step_places *p, int pid, uint64_t address)
{
	const struct mapping *m = mapping_at(p, pid, address);

	return m && starts_with(m->m.path, "[uprobes");
}

static bool same_file(const struct file *f, const char *path, const struct stat *st)
{
	return f->dev == st->st_dev && f->ino == st->st_ino &&
	       f->changed.tv_sec == st->st_ctim.tv_sec &&
	       f->changed.tv_nsec == st->st_ctim.tv_nsec && streq(f->path, path);
}

static struct file *file_of(struct step_places *p, int pid, const char *path)
{
	char seen[PATH_MAX];
	struct stat st = {0};
	struct error e = {0};
	struct file *f;

	snprintf(seen, sizeof(seen), "/proc/%d/root%s", pid, path);
	if (stat(seen, &st) < 0)
		st = (struct stat){0};
	for (size_t i = 0; i < p->n_files; i++)
		if (same_file(&p->files[i], path, &st))
			return &p->files[i];
	if (p->n_files == FILES_MAX)
		drop_files(p);
	f = &p->files[p->n_files++];
	*f = (struct file){.dev = st.st_dev, .ino = st.st_ino, .changed = st.st_ctim};
	snprintf(f->path, sizeof(f->path), "%s", path);
	if (binary_open(path, pid, &f->binary, &e) < 0)
		f->binary = NULL;
	if (f->binary && dwarf_new(binary_path(f->binary), &f->dwarf) < 0)
		f->dwarf = NULL;
	return f;
}

/* NULL: it is in no file that can be read. */
static struct file *file_at(struct step_places *p, int pid, uint64_t address, uint64_t *offset)
{
	struct mapping *m = mapping_at(p, pid, address);
	struct file *f;

	if (!m || m->m.path[0] != '/')
		return NULL;
	*offset = address - m->m.from + m->m.offset;
	f = m->file;
	if (!f) {
		struct step_mapping copy = m->m; /* all of them may be dropped */

		f = file_of(p, pid, copy.path);
		m = mapping_at(p, pid, address);
		if (m)
			m->file = f;
	}
	return f->binary ? f : NULL;
}

int step_places_line(struct step_places *p, int pid, uint64_t address, struct dwarf_at *ret)
{
	struct error e = {0};
	uint64_t offset;
	struct file *f = file_at(p, pid, address, &offset);
	int r;

	if (!f || !f->dwarf || f->no_lines)
		return -ENOENT;
	r = dwarf_line_at(f->dwarf, offset, ret, &e);
	f->no_lines = r < 0 && r != -ENOENT;
	return r;
}

/* --- instructions --- */

#if defined(__aarch64__)
#define OWN_MACHINE EM_AARCH64
#else
#define OWN_MACHINE EM_X86_64
#endif

size_t step_places_code(struct step_places *p, int pid, int tid, uint64_t address, uint8_t *bytes,
			char *text, size_t len)
{
	uint64_t offset;
	struct file *f = file_at(p, pid, address, &offset);
	size_t n = PLACE_INSTRUCTION_MAX;

	text[0] = 0;
	/* in memory stands a breakpoint where a probe is */
	if (!f || place_bytes(f->binary, offset, bytes, &n) < 0) {
		n = PLACE_INSTRUCTION_MAX;
		while (n && step_read(tid, address, bytes, n) < 0)
			n--; /* the last ones of a page */
	}
	return n ? place_instruction(OWN_MACHINE, bytes, n, address, text, len) : 0;
}

/* --- values --- */

static void compile(struct step_places *p, struct place_values *v)
{
	const struct file *f = v->file;
	struct fetch_place place = {
		.machine = OWN_MACHINE,
		.binary = f ? f->binary : NULL,
		.dwarf = f ? f->dwarf : NULL,
		.offset = v->offset,
		.go = f && binary_is_go(f->binary),
		.stopped = true,
	};

	for (size_t i = 0; i < p->q->n_values; i++) {
		struct probe_spec spec = {.kind = PROBE_LINE, .n_args = 1};
		struct error *e = &p->why[i];

		spec.args[0] = p->q->values[i];
		v->known[i] =
			fetch_compile(&spec, TRACE_PRINT, &place, &p->texts, &v->fetch[i], e) == 0;
		p->was_known[i] |= v->known[i];
	}
}

const struct fetch *step_places_value(struct step_places *p, int pid, uint64_t address, size_t i)
{
	uint64_t offset = 0;
	const struct file *f = file_at(p, pid, address, &offset);
	struct place_values *v = NULL;

	if (!f)
		offset = 0;
	for (size_t k = 0; k < p->n_values && !v; k++)
		if (p->values[k].offset == offset && p->values[k].file == f)
			v = &p->values[k];
	if (!v) {
		if (p->n_values == PLACES_MAX)
			drop_values(p);
		v = &p->values[p->n_values++];
		*v = (struct place_values){.file = f, .offset = offset};
		compile(p, v);
	}
	return v->known[i] ? &v->fetch[i] : NULL;
}

const char *step_places_unknown(const struct step_places *p, size_t i)
{
	return p->was_known[i] || !p->why[i].code ? NULL : p->why[i].text;
}
