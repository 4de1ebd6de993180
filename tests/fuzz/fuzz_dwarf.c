// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Any bytes as a program with debug data: all functions, some lines, all variables at the entries
 * and behind them, and the members of their types, some levels deep. What is said of a place fits
 * into what holds it, and what is refused is explained.
 */
#include <elf.h>
#include <sys/mman.h>

#include "probes/types/given.h"
#include "probes/types/shape.h"

#define PLACES_MAX 64
#define TYPES_MAX  200
#define INPUT_MAX  (64u << 10)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
const char *__lsan_default_suppressions(void);

/* libelf 0.188 forgets what it read of some broken files; of good ones the unit test sees that
 * nothing is left. */
const char *__lsan_default_suppressions(void)
{
	return "leak:libelf";
}

static void check(bool good)
{
	if (!good)
		abort();
}

struct walk {
	struct dwarf *d;
	uint64_t offsets[PLACES_MAX];
	size_t n;
	unsigned types;
};

static void walk_type(struct walk *w, const struct ctype *t, unsigned depth);

struct level {
	struct walk *w;
	unsigned depth;
};

static int on_member(void *arg, const struct ctype_member *m)
{
	struct level *l = arg;

	check(m->bits <= 64 && m->bit < 8);
	walk_type(l->w, &m->type, l->depth + 1);
	return l->w->types >= TYPES_MAX;
}

/* Whatever a type says, its shape ends. */
static void check_shape(const struct ctype *t)
{
	struct shape *s = NULL;
	int64_t value;

	if (shape_make(t, &s) == 0) {
		check(shape_is_sound(s));
		shape_free(s);
	}
	ctype_enumerator(t, "RED", &value);
}

static void walk_type(struct walk *w, const struct ctype *t, unsigned depth)
{
	struct level l = {w, depth};
	struct ctype_member m;
	struct ctype target;
	char text[64], near[16];

	if (depth > 6 || ++w->types >= TYPES_MAX)
		return;
	ctype_describe(t, text, sizeof(text));
	check(*text);
	ctype_write(t, "name", text, sizeof(text));
	check(*text);
	if (depth < 2)
		check_shape(t);
	if (t->kind == CTYPE_POINTER || t->kind == CTYPE_ARRAY) {
		if (ctype_target(t, &target) == 0)
			walk_type(w, &target, depth + 1);
	} else if ((t->kind == CTYPE_STRUCT || t->kind == CTYPE_UNION) && t->source) {
		t->source->members(t->source, t, on_member, &l);
		ctype_find_member(t, "nme", &m, near, sizeof(near));
	}
}

static int on_variable(void *arg, const struct dwarf_variable *v)
{
	const struct where *w = &v->where;

	check(w->n_pieces >= 1 && w->n_pieces <= WHERE_PIECES && w->n_items <= WHERE_ITEMS);
	for (size_t i = 0; i < w->n_pieces; i++) {
		const struct where_piece *p = &w->pieces[i];

		check(p->kind == WHERE_NOWHERE ? p->why != NULL && !p->n : p->n > 0);
		check((size_t)p->first + p->n <= w->n_items);
	}
	for (size_t i = 0; i < w->n_items; i++)
		check((w->items[i].op == WHERE_REGISTER) == (w->items[i].reg != NULL));
	walk_type(arg, &v->type, 0);
	return 0;
}

static void add_place(struct walk *w, uint64_t offset)
{
	if (w->n < PLACES_MAX)
		w->offsets[w->n++] = offset;
}

static int on_function(void *arg, const struct dwarf_function *f)
{
	check(f->name && f->linkage && f->source);
	add_place(arg, f->offset);
	add_place(arg, f->offset + f->size / 2);
	return 0;
}

static int on_line(void *arg, const struct dwarf_line *l)
{
	check(l->source != NULL);
	add_place(arg, l->offset);
	return 0;
}

static void explained(int r, const struct error *e)
{
	check(r >= 0 || (e->code && *e->text));
}

static void walk_place(struct walk *w, uint64_t offset)
{
	struct error e = {0};
	struct dwarf_variable v = {0};
	struct prototype p;
	char text[300];
	int r;

	w->types = 0;
	explained(dwarf_variables(w->d, offset, false, on_variable, w, &e), &e);
	e = (struct error){0};
	explained(dwarf_variable(w->d, offset, "counter", &v, &e), &e);
	e = (struct error){0};
	explained(dwarf_parameter(w->d, offset, 1, &v, &e), &e);
	e = (struct error){0};
	explained(dwarf_return_value(w->d, offset, &v, &e), &e);
	e = (struct error){0};
	r = dwarf_prototype(w->d, offset, &p, &e);
	explained(r, &e);
	if (r == 0) {
		memset(text, '!', sizeof(text));
		prototype_write(&p, NULL, text, sizeof(text));
		check(memchr(text, '\0', sizeof(text)) != NULL);
	}
}

/* Where the seed go-types has some. */
static void walk_go_types(struct walk *w)
{
	const char *name;
	struct ctype t;

	for (uint64_t at = 0x401100; at < 0x401200; at += 8)
		if (dwarf_go_type(w->d, at, &name, &t) == 0) {
			check(*name);
			walk_type(w, &t, 0);
		}
}

/* As a file of --types: an object's debug data is relocated, and BTF is taken, too. */
static void walk_given(const char *path)
{
	static const char *const names[] = {"work", "add", "main", "f"};
	struct walk w = {0};
	struct given_types *g;
	struct error e = {0};
	int r = given_types_open(path, &g, &e);

	explained(r, &e);
	if (r < 0)
		return;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		e = (struct error){0};
		explained(given_types_parameters(g, EM_X86_64, names[i], on_variable, &w, &e), &e);
	}
	given_types_free(g);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct walk w = {0};
	struct error e = {0};
	uint32_t below, above;
	char path[64];
	int fd;

	if (size > INPUT_MAX)
		return -1;
	fd = memfd_create("fuzz", MFD_CLOEXEC);
	check(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	check(dwarf_new(path, &w.d) == 0);
	explained(dwarf_functions(w.d, "*", NULL, on_function, &w, NULL, &e), &e);
	for (uint32_t line = 1; line < 12; line++) {
		e = (struct error){0};
		explained(dwarf_lines(w.d, "t.c", line, on_line, &w, &e), &e);
	}
	e = (struct error){0};
	explained(dwarf_statements(w.d, "*", NULL, on_line, &w, &e), &e);
	dwarf_lines_with(w.d, "t.c", 5, "counter", &below, &above);
	for (size_t i = 0; i < w.n; i++)
		walk_place(&w, w.offsets[i]);
	walk_go_types(&w);
	dwarf_free(w.d);
	walk_given(path);
	close(fd);
	return 0;
}
