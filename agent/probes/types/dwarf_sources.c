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
	uint32_t line;
};
struct line_search {
	struct dwarf *d;
	struct source_match match;
	uint32_t line;	       /* 0: all */
	uint32_t below, above; /* the nearest lines with code, 0: none */
	bool any;	       /* the file has code */
	bool only_sources;     /* one line of each is enough */
	struct found_line *v;
	size_t n, max;
};

static int add_line(struct line_search *s, uint64_t address, const char *source, uint32_t line)
{
	if (s->n == s->max) {
		size_t more = s->max ? s->max * 2 : 16;
		struct found_line *bigger;

		if (s->n >= FOUND_MAX)
			return -E2BIG;
		bigger = realloc(s->v, more * sizeof(*bigger));
		if (!bigger)
			return -ENOMEM;
		s->v = bigger;
		s->max = more;
	}
	s->v[s->n++] = (struct found_line){address, source, line};
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

static bool is_asked(const struct line_search *s, const struct row *row)
{
	if (s->only_sources)
		return !s->n || s->v[s->n - 1].source != row->source;
	return !s->line || row->line == s->line;
}

/* A statement of a line begins where the row before is of another one: rows of the same line in a
 * row are parts of one statement. */
static int search_unit(struct line_search *s, struct dwarf_unit *u)
{
	Dwarf_Lines *lines;
	uint32_t inside = 0;
	size_t n;
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
		if (!here || row.line != inside)
			inside = 0;
		if (!here || !row.statement)
			continue;
		if (dwarf_to_offset(s->d, row.address, &offset)) {
			s->any = true;
			note_near(s, row.line);
			if (is_asked(s, &row) && !inside)
				r = add_line(s, row.address, row.source, row.line);
		}
		inside = row.line;
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
		struct dwarf_line l = {.source = s->v[i].source, .line = s->v[i].line};

		if ((i && s->v[i].address == s->v[i - 1].address) ||
		    !dwarf_to_offset(s->d, s->v[i].address, &l.offset))
			continue;
		name_line(s->d, s->v[i].address, &l);
		if (f(arg, &l))
			return;
	}
}

static int search_units(struct line_search *s, struct error *e)
{
	int r = dwarf_load(s->d, e);

	for (size_t i = 0; r == 0 && i < s->d->n_units; i++)
		r = search_unit(s, &s->d->units[i]);
	if (r == -E2BIG)
		return error_set(e, r,
				 "these are more than %d statements: expected a narrower name of "
				 "source files",
				 FOUND_MAX);
	return r == -ENOMEM ? error_set(e, r, "out of memory") : r;
}

int dwarf_lines(struct dwarf *d, const char *source, uint32_t line,
		int (*f)(void *arg, const struct dwarf_line *l), void *arg, struct error *e)
{
	struct line_search s = {.d = d, .match = {.name = source}, .line = line};
	int r = search_units(&s, e);

	if (r == 0 && !s.n)
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

/* --- all lines --- */

static int compare_sources(const char *a, const char *b)
{
	return a == b ? 0 : strcmp(a, b);
}

static int compare_statements(const void *a, const void *b)
{
	const struct found_line *x = a, *y = b;
	int r = compare_sources(x->source, y->source);

	if (r)
		return r;
	if (x->line != y->line)
		return x->line < y->line ? -1 : 1;
	return compare_lines(a, b);
}

static bool is_of(const struct dwarf_line *l, const char *glob)
{
	return !glob || (l->function && !fnmatch(glob, l->function, 0));
}

/* -ENOENT: none is of such a function. */
static int give_statements(struct line_search *s, const char *glob,
			   int (*f)(void *arg, const struct dwarf_line *l), void *arg)
{
	const struct found_line *last = NULL;
	bool any = false;

	for (size_t i = 0; i < s->n; i++) {
		const struct found_line *x = &s->v[i];
		struct dwarf_line l = {.source = x->source, .line = x->line};

		if ((last && last->address == x->address && last->line == x->line) ||
		    !dwarf_to_offset(s->d, x->address, &l.offset))
			continue;
		name_line(s->d, x->address, &l);
		if (!is_of(&l, glob))
			continue;
		any = true;
		last = x;
		if (f(arg, &l))
			return 0;
	}
	return any ? 0 : -ENOENT;
}

int dwarf_statements(struct dwarf *d, const char *source, const char *glob,
		     int (*f)(void *arg, const struct dwarf_line *l), void *arg, struct error *e)
{
	struct line_search s = {.d = d, .match = {.name = source}};
	int r = search_units(&s, e);

	if (r == 0 && !s.n)
		r = no_source(d, source, e);
	if (r == 0) {
		qsort(s.v, s.n, sizeof(*s.v), compare_statements);
		r = give_statements(&s, glob, f, arg);
		if (r < 0)
			error_set(e, r,
				  "no code of %.200s is of a function %.80s in source file %.200s, "
				  "as its debug data says",
				  d->path, glob, source);
	}
	free(s.v);
	return r;
}

int dwarf_source_files(struct dwarf *d, int (*f)(void *arg, const char *source), void *arg,
		       struct error *e)
{
	struct line_search s = {.d = d, .match = {.name = "*"}, .only_sources = true};
	char path[PATH_MAX], last[PATH_MAX] = "";
	int r = search_units(&s, e);

	if (r == 0 && s.n)
		qsort(s.v, s.n, sizeof(*s.v), compare_statements);
	for (size_t i = 0; r == 0 && i < s.n; i++) {
		if (i && s.v[i].source == s.v[i - 1].source)
			continue;
		normalise(s.v[i].source, path, sizeof(path));
		if (streq(path, last))
			continue;
		memcpy(last, path, sizeof(last));
		if (f(arg, path))
			break;
	}
	free(s.v);
	return r;
}

/* Of the rows of one address, which may be of several lines, the last that begins a statement. */
static Dwarf_Line *statement_at(struct dwarf_unit *u, uint64_t address)
{
	size_t n, from = 0, to;
	Dwarf_Lines *lines;
	struct row row;

	if (dwarf_getsrclines(&u->die, &lines, &n))
		return NULL;
	to = n;
	while (from < to) { /* behind those of the address: libdw has sorted them */
		size_t middle = from + (to - from) / 2;

		if (read_row(lines, middle, &row) && row.address <= address)
			from = middle + 1;
		else
			to = middle;
	}
	while (from-- && read_row(lines, from, &row) && row.address == address)
		if (row.statement && !row.end && row.line)
			return dwarf_onesrcline(lines, from);
	return NULL;
}

int dwarf_line_at(struct dwarf *d, uint64_t offset, struct dwarf_at *ret, struct error *e)
{
	struct dwarf_unit *u;
	Dwarf_Line *l, *statement;
	uint64_t address;
	int line, r = dwarf_load(d, e);

	if (r < 0)
		return r;
	u = dwarf_to_address(d, offset, &address) ? dwarf_unit_at(d, address) : NULL;
	l = u ? dwarf_getsrc_die(&u->die, address) : NULL;
	statement = l ? statement_at(u, address) : NULL;
	l = statement ? statement : l;
	if (!l || dwarf_lineno(l, &line) || line <= 0)
		return -ENOENT;
	*ret = (struct dwarf_at){.source = dwarf_linesrc(l, NULL, NULL),
				 .line = (uint32_t)line,
				 .begins = statement != NULL};
	return ret->source ? 0 : -ENOENT;
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
const char *dwarf_declared_in(Dwarf_Die *die)
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
	f->source = dwarf_declared_in(die);
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
