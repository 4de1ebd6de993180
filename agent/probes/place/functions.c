// SPDX-License-Identifier: GPL-2.0-or-later
/* Functions by their names. */
#include <ctype.h>
#include <fnmatch.h>

#include "base/near.h"
#include "probes/elf/symbols.h"
#include "probes/place/place.h"
#include "probes/place/priv.h"

#define IMPLEMENTATIONS_MAX 32

/* A copy: while it is told, more symbols may be loaded. */
struct match {
	uint64_t address, size;
	const char *name, *demangled;
	bool ifunc;
	size_t order;
};
struct matches {
	struct match *v;
	size_t n, max;
};

static void matches_free(struct matches *m)
{
	free(m->v);
}

static bool is_glob(const char *s)
{
	return strpbrk(s, "*?[\\") != NULL;
}

/*
 * Demangling is slow, and most look-ups are for one name. The last part of a qualified name stands
 * as it is in the mangled one, but for what has abbreviations (in std, operators).
 */
static bool can_contain(const char *mangled, const char *pattern)
{
	static const char *const abbreviated[] = {"allocator", "basic_string", "string",
						  "istream",   "ostream",      "iostream"};
	const char *last = strrchr(pattern, ':') ? strrchr(pattern, ':') + 1 : pattern;

	if (!*last || starts_with(last, "operator"))
		return true;
	for (const char *p = last; *p; p++)
		if (!isalnum((unsigned char)*p) && *p != '_')
			return true;
	for (size_t i = 0; i < ARRAY_SIZE(abbreviated); i++)
		if (streq(last, abbreviated[i]))
			return true;
	return strstr(mangled, last) != NULL;
}

/* Parentheses and brackets of C++ are no glob, so a whole equal name matches too. */
static bool text_matches(const char *pattern, const char *text)
{
	return text && (streq(pattern, text) || fnmatch(pattern, text, 0) == 0);
}

/* GCC marks what returns a std::string of its newer ABI, as text[abi:cxx11](int): nobody writes
 * that. */
static bool matches_without_tags(const char *pattern, const char *name)
{
	autofree char *plain = name && strstr(name, "[abi:") ? strdup(name) : NULL;

	for (char *at = plain; at && (at = strstr(at, "[abi:"));) {
		const char *end = strchr(at, ']');

		if (!end)
			return false;
		memmove(at, end + 1, strlen(end + 1) + 1);
	}
	return plain && text_matches(pattern, plain);
}

static bool name_matches(struct function *f, const char *pattern, bool glob)
{
	autofree char *short_name = NULL;

	if (glob ? text_matches(pattern, f->name) : streq(pattern, f->name))
		return true;
	if (f->name[0] != '_' || (f->name[1] != 'Z' && f->name[1] != 'R'))
		return false;
	if (!glob && !can_contain(f->name, pattern))
		return false;
	if (!symbols_demangled(f))
		return false;
	if (text_matches(pattern, f->demangled) || matches_without_tags(pattern, f->demangled))
		return true;
	short_name = demangle(f->name, false);
	return text_matches(pattern, short_name) || matches_without_tags(pattern, short_name);
}

static int add_match(struct matches *m, uint64_t address, uint64_t size, struct function *f)
{
	if (m->n == m->max) {
		size_t more = m->max ? m->max * 2 : 16;
		struct match *v = reallocarray(m->v, more, sizeof(*v));

		if (!v)
			return -ENOMEM;
		m->v = v;
		m->max = more;
	}
	m->v[m->n] = (struct match){
		.address = address,
		.size = size,
		.name = f->name,
		.demangled = symbols_demangled(f),
		.ifunc = f->ifunc,
		.order = m->n,
	};
	m->n++;
	return 0;
}

/* A probe on the function that chooses would see one call, when the program starts. */
static int add_implementations(struct binary *b, struct matches *m, struct function *f)
{
	uint64_t found[IMPLEMENTATIONS_MAX];
	int n = place_implementations(b, f->address, f->size, found, ARRAY_SIZE(found));
	int r = n < 0 ? n : 0;

	for (int i = 0; !r && i < n; i++)
		r = add_match(m, found[i], symbols_size(b, found[i]), f);
	return r;
}

static int find_matches(struct binary *b, const char *pattern, struct matches *m, bool *chosen)
{
	bool glob = is_glob(pattern), cold = strstr(pattern, ".cold");
	uint64_t address = 0, size = 0; /* of the last match */
	int r = 0;

	symbols_sort(b);
	for (size_t i = 0; !r && i < b->n_functions; i++) {
		struct function *f = &b->functions[i];

		/* a cold part is jumped to: it has neither arguments nor a return address */
		if (!cold && strstr(f->name, ".cold"))
			continue;
		if (!name_matches(f, pattern, glob))
			continue;
		*chosen |= f->ifunc;
		if (!m->n || f->address != address)
			size = symbols_size(b, f->address);
		address = f->address;
		r = f->ifunc ? add_implementations(b, m, f) : add_match(m, address, size, f);
	}
	return r;
}

static int compare(const void *pa, const void *pb)
{
	const struct match *a = pa, *b = pb;

	if (a->address != b->address)
		return a->address < b->address ? -1 : 1;
	/* its own name before that of what chooses it */
	if (a->ifunc != b->ifunc)
		return a->ifunc ? 1 : -1;
	return a->order < b->order ? -1 : 1;
}

static int report(struct binary *b, struct matches *m, int (*f)(void *arg, const struct symbol *s),
		  void *arg)
{
	int r = 0;

	qsort(m->v, m->n, sizeof(*m->v), compare);
	for (size_t i = 0; !r && i < m->n; i++) {
		const struct match *v = &m->v[i];
		struct symbol s = {
			.name = v->name,
			.demangled = v->demangled,
			.address = v->address,
			.size = v->size,
			.ifunc = v->ifunc,
		};

		if (i && m->v[i - 1].address == s.address)
			continue;
		if (image_offset(&b->image, s.address, true, &s.offset))
			r = f(arg, &s);
	}
	return r;
}

static bool nearest(struct binary *b, struct near *near, const char *name)
{
	near_start(near, name);
	for (size_t i = 0; i < b->n_functions; i++)
		near_look(near, b->functions[i].name);
	return *near->name;
}

static bool is_import(const struct binary *b, const char *name)
{
	for (size_t i = 0; i < b->n_imports; i++)
		if (streq(b->imports[i], name))
			return true;
	return false;
}

static int no_match(struct binary *b, const char *pattern, bool chosen, struct error *e)
{
	struct near near;

	if (!b->n_functions)
		return error_set(e, -ENOENT,
				 "%s has no names of functions: install its debug symbols, or "
				 "probe by offset (FILE:0xOFFSET)",
				 b->path);
	if (is_glob(pattern))
		return error_set(e, -ENOENT, "no function of %s matches '%.100s'", b->path,
				 pattern);
	if (chosen)
		return error_set(e, -ENOENT,
				 "%.100s in %s only chooses an implementation when a program "
				 "starts, and these are not known: name one of them",
				 pattern, b->path);
	if (is_import(b, pattern))
		return error_set(e, -ENOENT,
				 "%s only calls %.100s, which is in one of its libraries: probe it "
				 "there (as in uprobe:libc.so.6:%.100s)",
				 b->path, pattern, pattern);
	if (nearest(b, &near, pattern))
		return error_set(e, -ENOENT, "%s has no function %.100s; did you mean '%.100s'?",
				 b->path, pattern, near.name);
	return error_set(e, -ENOENT, "%s has no function %.100s%s", b->path, pattern,
			 b->has_symtab ? ""
				       : ": it is stripped; its debug symbols may know more names");
}

int binary_functions(struct binary *b, const char *glob,
		     int (*f)(void *arg, const struct symbol *s), void *arg, struct error *e)
{
	struct matches m CLEANUP(matches_free) = {0};
	bool chosen = false;
	int r = symbols_load(b);

	/* one name is most often in the file itself, and debug data are big */
	if (!r && !is_glob(glob))
		r = find_matches(b, glob, &m, &chosen);
	if (!r && !m.n) {
		r = symbols_load_more(b);
		if (!r)
			r = find_matches(b, glob, &m, &chosen);
	}
	if (r < 0)
		return error_set(e, r, "the symbols of %s cannot be read: %s", b->path,
				 strerror(-r));
	if (!m.n)
		return no_match(b, glob, chosen, e);
	return report(b, &m, f, arg);
}
