// SPDX-License-Identifier: GPL-2.0-or-later
/* Source files: the code of their lines and functions. */
#include <fnmatch.h>
#include <limits.h>

#include "probes/types/dwarf_priv.h"

#define FOUND_MAX 100000

/* --- names --- */

/* Without "//", "." and what ".." takes back. */
static void normalise(const char *path, char *buf, size_t size)
{
	bool absolute = *path == '/';
	size_t n = 0;

	*buf = '\0';
	while (*path) {
		size_t len = strcspn(path, "/");

		if (len == 2 && path[0] == '.' && path[1] == '.' && strchr(buf, '/')) {
			n = (size_t)(strrchr(buf, '/') - buf);
			buf[n] = '\0';
		} else if (len && !(len == 1 && *path == '.')) {
			if (n + len + 2 > size)
				return;
			if (n || absolute)
				buf[n++] = '/';
			memcpy(buf + n, path, len);
			n += len;
			buf[n] = '\0';
		}
		path += len;
		path += *path == '/';
	}
}

/* Does a path have this name, which may be only its end, or a glob? */
static bool source_matches(const char *path, const char *name)
{
	char full[PATH_MAX + 1], *buf = full + 1;
	const char *tail;
	size_t len, want = strlen(name);

	full[0] = '/';
	normalise(*path ? path : ".", buf, PATH_MAX);
	while (starts_with(name, "./")) {
		name += 2;
		want -= 2;
	}
	if (strpbrk(name, "*?[")) {
		if (!strchr(name, '/') && strrchr(buf, '/'))
			return fnmatch(name, strrchr(buf, '/') + 1, 0) == 0;
		return fnmatch(name, buf, 0) == 0;
	}
	len = strlen(buf);
	if (want > len)
		return false;
	tail = buf + len - want;
	return streq(tail, name) && (tail == buf || tail[-1] == '/' || *name == '/');
}

/* The same name mostly comes many times in a row. */
struct source_match {
	const char *name, *last;
	bool matches;
};

static bool matches(struct source_match *m, const char *path)
{
	if (path != m->last) {
		m->last = path;
		m->matches = path && source_matches(path, m->name);
	}
	return m->matches;
}

static int no_source(struct dwarf *d, const char *source, struct error *e)
{
	return error_set(e, -ENOENT,
			 "no code of %.200s is of a source file %.200s, as its debug data says",
			 d->path, source);
}

/* --- lines --- */

struct found_line {
	uint64_t address;
	const char *source;
};
struct line_search {
	struct dwarf *d;
	struct source_match match;
	uint32_t line, below, above; /* the nearest lines with code, 0: none */
	bool any;		     /* the file has code */
	struct found_line *v;
	size_t n, max;
};

static int add_line(struct line_search *s, uint64_t address, const char *source)
{
	if (s->n == s->max) {
		size_t more = s->max ? s->max * 2 : 16;
		struct found_line *bigger =
			more <= FOUND_MAX * 2 ? realloc(s->v, more * sizeof(*bigger)) : NULL;

		if (!bigger)
			return -ENOMEM;
		s->v = bigger;
		s->max = more;
	}
	s->v[s->n++] = (struct found_line){address, source};
	return 0;
}

static void note_near(struct line_search *s, uint32_t line)
{
	if (line < s->line && line > s->below)
		s->below = line;
	if (line > s->line && (!s->above || line < s->above))
		s->above = line;
}

struct row {
	uint64_t address;
	const char *source;
	uint32_t line;
	bool statement, end;
};

static bool read_row(Dwarf_Lines *lines, size_t i, struct row *ret)
{
	Dwarf_Line *l = dwarf_onesrcline(lines, i);
	Dwarf_Addr address;
	int line;

	if (!l || dwarf_lineaddr(l, &address) || dwarf_lineno(l, &line) ||
	    dwarf_linebeginstatement(l, &ret->statement) || dwarf_lineendsequence(l, &ret->end))
		return false;
	ret->address = address;
	ret->line = (uint32_t)line;
	ret->source = dwarf_linesrc(l, NULL, NULL);
	return true;
}

/* A statement of the line begins where the row before is of another one: rows of the same line in a
 * row are parts of one statement. */
static int search_unit(struct line_search *s, struct dwarf_unit *u)
{
	Dwarf_Lines *lines;
	size_t n;
	bool inside = false;
	int r = 0;

	if (dwarf_getsrclines(&u->die, &lines, &n))
		return 0;
	for (size_t i = 0; r == 0 && i < n; i++) {
		struct row row;
		uint64_t offset;
		bool here;

		if (!read_row(lines, i, &row))
			continue;
		here = !row.end && row.line && matches(&s->match, row.source);
		if (here && row.statement && dwarf_to_offset(s->d, row.address, &offset)) {
			s->any = true;
			note_near(s, row.line);
			if (row.line == s->line && !inside)
				r = add_line(s, row.address, row.source);
		}
		if (!here || row.line != s->line)
			inside = false;
		else if (row.statement)
			inside = true;
	}
	return r;
}

static int compare_lines(const void *a, const void *b)
{
	const struct found_line *x = a, *y = b;

	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	return 0;
}

static int no_line(struct line_search *s, const char *source, struct error *e)
{
	if (!s->any)
		return no_source(s->d, source, e);
	if (s->below && s->above)
		return error_set(e, -ENOENT,
				 "%.200s:%u has no code: the next lines that have are %u and %u",
				 source, s->line, s->below, s->above);
	return error_set(e, -ENOENT, "%.200s:%u has no code: the %s line that has is %u", source,
			 s->line, s->below ? "last" : "next", s->below ? s->below : s->above);
}

static int refuse_several(struct line_search *s, const char *source, struct error *e)
{
	char first[PATH_MAX], other[PATH_MAX];

	for (size_t i = 1; i < s->n; i++) {
		if (s->v[i].source == s->v[0].source)
			continue;
		normalise(s->v[0].source, first, sizeof(first));
		normalise(s->v[i].source, other, sizeof(other));
		if (!streq(first, other))
			return error_set(e, -EEXIST,
					 "several source files are named %.80s, as %.140s and "
					 "%.140s: expected one with its directory",
					 source, first, other);
	}
	return 0;
}

static void name_line(struct dwarf *d, uint64_t address, struct dwarf_line *l)
{
	struct dwarf_scopes scopes;

	if (dwarf_scopes_at(d, address, &scopes))
		return;
	l->function = dwarf_name(&scopes.dies[0]);
	for (size_t i = scopes.n; --i;)
		if (dwarf_tag(&scopes.dies[i]) == DW_TAG_inlined_subroutine) {
			l->inlined = l->function;
			l->function = dwarf_name(&scopes.dies[i]);
			break;
		}
}

static void give_lines(struct line_search *s, int (*f)(void *arg, const struct dwarf_line *l),
		       void *arg)
{
	for (size_t i = 0; i < s->n; i++) {
		struct dwarf_line l = {.source = s->v[i].source};

		if ((i && s->v[i].address == s->v[i - 1].address) ||
		    !dwarf_to_offset(s->d, s->v[i].address, &l.offset))
			continue;
		name_line(s->d, s->v[i].address, &l);
		if (f(arg, &l))
			return;
	}
}

int dwarf_lines(struct dwarf *d, const char *source, uint32_t line,
		int (*f)(void *arg, const struct dwarf_line *l), void *arg, struct error *e)
{
	struct line_search s = {.d = d, .match = {.name = source}, .line = line};
	int r = dwarf_load(d, e);

	for (size_t i = 0; r == 0 && i < d->n_units; i++)
		r = search_unit(&s, &d->units[i]);
	if (r == -ENOMEM)
		error_set(e, r, "out of memory");
	else if (r == 0 && !s.n)
		r = no_line(&s, source, e);
	else if (r == 0)
		r = refuse_several(&s, source, e);
	if (r == 0) {
		qsort(s.v, s.n, sizeof(*s.v), compare_lines);
		give_lines(&s, f, arg);
	}
	free(s.v);
	return r;
}

/* --- functions --- */

/* Entries of the debug data, as libdw has them in memory. */
struct entries {
	const void **v;
	size_t n, max;
};

struct function_search {
	struct dwarf *d;
	struct source_match match;
	const char *glob;
	struct dwarf_function *v;
	size_t n, max;
	struct entries copied, abstract; /* what functions with code are of; what was inlined */
	bool any;			 /* a function is of such a file */
	unsigned depth;
};

static int add_entry(struct entries *l, const void *entry)
{
	if (l->n == l->max) {
		size_t more = l->max ? l->max * 2 : 64;
		const void **bigger = realloc(l->v, more * sizeof(*bigger));

		if (!bigger)
			return -ENOMEM;
		l->v = bigger;
		l->max = more;
	}
	l->v[l->n++] = entry;
	return 0;
}

static int compare_entries(const void *a, const void *b)
{
	uintptr_t x = (uintptr_t) * (const void *const *)a;
	uintptr_t y = (uintptr_t) * (const void *const *)b;

	return x < y ? -1 : x > y;
}

/* Those that were inlined and have no code of their own beside. */
static size_t count_inlined(struct function_search *s)
{
	size_t n = 0;

	if (s->copied.n)
		qsort(s->copied.v, s->copied.n, sizeof(*s->copied.v), compare_entries);
	for (size_t i = 0; i < s->abstract.n; i++)
		if (!s->copied.n || !bsearch(&s->abstract.v[i], s->copied.v, s->copied.n,
					     sizeof(*s->copied.v), compare_entries))
			n++;
	return n;
}

static int add_function(struct function_search *s, const struct dwarf_function *f)
{
	if (s->n == s->max) {
		size_t more = s->max ? s->max * 2 : 64;
		struct dwarf_function *bigger = realloc(s->v, more * sizeof(*bigger));

		if (!bigger)
			return -ENOMEM;
		s->v = bigger;
		s->max = more;
	}
	s->v[s->n++] = *f;
	return 0;
}

static const char *linkage_name(Dwarf_Die *die)
{
	const char *name = dwarf_text(die, DW_AT_linkage_name);

	return name ? name : dwarf_text(die, DW_AT_MIPS_linkage_name);
}

/* dwarf_decl_file() of elfutils before 0.189 does not know that DWARF 5 counts files from 0. */
static const char *declared_in(Dwarf_Die *die)
{
	Dwarf_Attribute attr;
	Dwarf_Word index;
	Dwarf_Half version;
	Dwarf_Die unit;
	Dwarf_Files *files;
	size_t n;

	if (!dwarf_attr_integrate(die, DW_AT_decl_file, &attr) || dwarf_formudata(&attr, &index) ||
	    !dwarf_cu_die(attr.cu, &unit, &version, NULL, NULL, NULL, NULL, NULL) ||
	    (!index && version < 5) || dwarf_getsrcfiles(&unit, &files, &n) || index >= n)
		return NULL;
	return dwarf_filesrc(files, index, NULL, NULL);
}

static bool function_wanted(struct function_search *s, Dwarf_Die *die, struct dwarf_function *f)
{
	int line;

	f->name = dwarf_name(die);
	f->source = declared_in(die);
	if (!f->name || !f->source || !matches(&s->match, f->source))
		return false;
	s->any = true;
	if (s->glob && fnmatch(s->glob, f->name, 0))
		return false;
	f->linkage = linkage_name(die);
	if (!f->linkage)
		f->linkage = f->name;
	f->line = dwarf_decl_line(die, &line) ? 0 : (uint32_t)line;
	return true;
}

static const void *abstract_of(Dwarf_Die *die)
{
	Dwarf_Die origin;

	dwarf_origin(die, &origin);
	return origin.addr;
}

static int on_function(struct function_search *s, Dwarf_Die *die)
{
	struct dwarf_function f = {0};
	Dwarf_Addr entry, low, high;
	uint64_t how;
	int r;

	if (!function_wanted(s, die, &f))
		return 0;
	if (dwarf_entrypc(die, &entry)) {
		/* its code is where it was inlined: a copy with code is another entry */
		if (dwarf_number(die, DW_AT_inline, &how) &&
		    (how == DW_INL_inlined || how == DW_INL_declared_inlined))
			return add_entry(&s->abstract, abstract_of(die));
		return 0;
	}
	if (!dwarf_to_offset(s->d, entry, &f.offset))
		return 0;
	if (dwarf_lowpc(die, &low) == 0 && dwarf_highpc(die, &high) == 0 && high > low)
		f.size = high - low;
	r = add_entry(&s->copied, abstract_of(die));
	return r < 0 ? r : add_function(s, &f);
}

static int on_entry(void *arg, Dwarf_Die *die)
{
	struct function_search *s = arg;
	int r;

	switch (dwarf_tag(die)) {
	case DW_TAG_subprogram:
		return on_function(s, die);
	case DW_TAG_namespace:
	case DW_TAG_module:
	case DW_TAG_structure_type:
	case DW_TAG_class_type:
		if (s->depth == DWARF_DEPTH_MAX || !dwarf_haschildren(die))
			return 0;
		s->depth++;
		r = dwarf_children(die, on_entry, s);
		s->depth--;
		return r;
	default:
		return 0;
	}
}

static int compare_functions(const void *a, const void *b)
{
	const struct dwarf_function *x = a, *y = b;

	if (x->offset != y->offset)
		return x->offset < y->offset ? -1 : 1;
	return 0;
}

static int no_function(struct function_search *s, const char *source, struct error *e)
{
	if (!s->any)
		return no_source(s->d, source, e);
	return error_set(e, -ENOENT,
			 "%.200s has no function%s%.80s of source file %.200s that has code of "
			 "its own%s",
			 s->d->path, s->glob ? " " : "", s->glob ? s->glob : "", source,
			 count_inlined(s) ? ": all were inlined where they are called" : "");
}

int dwarf_functions(struct dwarf *d, const char *source, const char *glob,
		    int (*f)(void *arg, const struct dwarf_function *fn), void *arg,
		    size_t *inlined, struct error *e)
{
	struct function_search s = {.d = d, .match = {.name = source}, .glob = glob};
	int r = dwarf_load(d, e);

	for (size_t i = 0; r == 0 && i < d->n_units; i++)
		r = dwarf_children(&d->units[i].die, on_entry, &s);
	if (r == -ENOMEM)
		error_set(e, r, "out of memory");
	else if (r == 0 && !s.n)
		r = no_function(&s, source, e);
	if (r == 0) {
		qsort(s.v, s.n, sizeof(*s.v), compare_functions);
		for (size_t i = 0; i < s.n; i++)
			if ((!i || s.v[i].offset != s.v[i - 1].offset) && f(arg, &s.v[i]))
				break;
	}
	if (inlined)
		*inlined = count_inlined(&s);
	free(s.copied.v);
	free(s.abstract.v);
	free(s.v);
	return r;
}
