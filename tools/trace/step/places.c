// SPDX-License-Identifier: GPL-2.0-or-later
/* Files, lines and values of a process's instructions. */
#include <elf.h>

#include "tools/trace/step/step.h"

#define MAPPINGS_KEPT 32
#define FILES_MAX     64
#define PLACES_MAX    2048

struct file {
	char path[sizeof(((struct step_mapping *)0)->path)];
	struct binary *binary; /* NULL: it cannot be read */
	struct dwarf *dwarf;
	bool no_lines;
};
struct place_values {
	uint64_t address;
	struct fetch fetch[PROBE_ARGS_MAX];
	bool known[PROBE_ARGS_MAX];
};
struct step_places {
	const struct step_request *q;
	int pid;
	struct step_mapping mappings[MAPPINGS_KEPT];
	size_t n_mappings, next_mapping;
	struct file files[FILES_MAX];
	size_t n_files;
	struct place_values *values;
	size_t n_values;
	struct fetch_texts texts;
	bool was_known[PROBE_ARGS_MAX];
	struct error why[PROBE_ARGS_MAX];
};

int step_places_new(const struct step_request *q, int pid, struct step_places **ret)
{
	struct step_places *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->q = q;
	p->pid = pid;
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

static void drop_files(struct step_places *p)
{
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
	drop_values(p);
	drop_files(p);
	fetch_texts_free(&p->texts);
	free(p->values);
	free(p);
}

void step_places_look_again(struct step_places *p)
{
	p->n_mappings = p->next_mapping = 0;
}

void step_places_forget(struct step_places *p)
{
	step_places_look_again(p);
	drop_values(p);
	drop_files(p);
}

/* --- where it is --- */

static const struct step_mapping *mapping_at(struct step_places *p, uint64_t address)
{
	struct step_mapping *m;

	for (size_t i = 0; i < p->n_mappings; i++)
		if (address >= p->mappings[i].from && address < p->mappings[i].to)
			return &p->mappings[i];
	m = &p->mappings[p->next_mapping];
	if (step_mapping(p->pid, address, m) < 0)
		return NULL;
	p->next_mapping = (p->next_mapping + 1) % MAPPINGS_KEPT;
	if (p->n_mappings < MAPPINGS_KEPT)
		p->n_mappings++;
	return m;
}

bool step_places_is_kernels(struct step_places *p, uint64_t address)
{
	const struct step_mapping *m = mapping_at(p, address);

	return m && starts_with(m->path, "[uprobes");
}

static struct file *file_of(struct step_places *p, const char *path)
{
	struct error e = {0};
	struct file *f;

	for (size_t i = 0; i < p->n_files; i++)
		if (streq(p->files[i].path, path))
			return &p->files[i];
	if (p->n_files == FILES_MAX) {
		drop_values(p); /* what values point to */
		drop_files(p);
	}
	f = &p->files[p->n_files++];
	*f = (struct file){0};
	snprintf(f->path, sizeof(f->path), "%s", path);
	if (binary_open(path, p->pid, &f->binary, &e) < 0)
		f->binary = NULL;
	if (f->binary && dwarf_new(binary_path(f->binary), &f->dwarf) < 0)
		f->dwarf = NULL;
	return f;
}

/* NULL: it is in no file that can be read. */
static struct file *file_at(struct step_places *p, uint64_t address, uint64_t *offset)
{
	const struct step_mapping *m = mapping_at(p, address);
	struct file *f = m && m->path[0] == '/' ? file_of(p, m->path) : NULL;

	if (!f || !f->binary)
		return NULL;
	*offset = address - m->from + m->offset;
	return f;
}

int step_places_line(struct step_places *p, uint64_t address, struct dwarf_at *ret)
{
	struct error e = {0};
	uint64_t offset;
	struct file *f = file_at(p, address, &offset);
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

size_t step_places_code(struct step_places *p, int tid, uint64_t address, uint8_t *bytes,
			char *text, size_t len)
{
	uint64_t offset;
	struct file *f = file_at(p, address, &offset);
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
	uint64_t offset = 0;
	struct file *f = file_at(p, v->address, &offset);
	struct fetch_place place = {
		.machine = OWN_MACHINE,
		.binary = f ? f->binary : NULL,
		.dwarf = f ? f->dwarf : NULL,
		.offset = offset,
		.go = f && binary_is_go(f->binary),
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

const struct fetch *step_places_value(struct step_places *p, uint64_t address, size_t i)
{
	struct place_values *v = NULL;

	for (size_t k = 0; k < p->n_values && !v; k++)
		if (p->values[k].address == address)
			v = &p->values[k];
	if (!v) {
		if (p->n_values == PLACES_MAX)
			drop_values(p);
		v = &p->values[p->n_values++];
		*v = (struct place_values){.address = address};
		compile(p, v);
	}
	return v->known[i] ? &v->fetch[i] : NULL;
}

const char *step_places_unknown(const struct step_places *p, size_t i)
{
	return p->was_known[i] || !p->why[i].code ? NULL : p->why[i].text;
}
