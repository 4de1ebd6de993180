// SPDX-License-Identifier: GPL-2.0-or-later
#include <fnmatch.h>
#include <limits.h>

#include "probes/kernel/kallsyms.h"
#include "probes/kernel/symbols_priv.h"
#include "machine/mounts.h"
#include "base/near.h"
#include "base/strv.h"
#include "probes/kernel/tracefs.h"

/* --- names that files of the kernel list --- */

static int compare_text(const void *pa, const void *pb)
{
	return strcmp(*(char *const *)pa, *(char *const *)pb);
}

static bool is_listed(const struct strv *s, const char *name)
{
	return s->n && bsearch(&name, s->v, s->n, sizeof(*s->v), compare_text);
}

static int read_lines(const char *path, int (*f)(void *arg, char *line), void *arg)
{
	autofile FILE *file = *path ? fopen(path, "re") : NULL;
	autofree char *line = NULL;
	size_t max = 0;
	int r = 0;

	if (!file)
		return *path ? -errno : -ENOENT;
	while (!r && getline(&line, &max, file) >= 0) {
		line[strcspn(line, "\n")] = 0;
		r = f(arg, line);
	}
	return r;
}

struct lines {
	struct strv found;
	const char *glob; /* NULL: all */
};

/* "name" or "name [module]". The name is enough: a module's function that has the same one as
 * another is as good. */
static int on_traceable(void *arg, char *line)
{
	struct lines *l = arg;

	line[strcspn(line, " \t")] = 0;
	return fnmatch(l->glob, line, 0) ? 0 : strv_add(&l->found, line);
}

/* "0xffffffff81000000-0xffffffff81000010\tname". */
static int on_blacklisted(void *arg, char *line)
{
	struct lines *l = arg;
	char *tab = strchr(line, '\t');

	if (!tab)
		return 0;
	tab[1 + strcspn(tab + 1, " \t")] = 0;
	return strv_add(&l->found, tab + 1);
}

/* False: the file is not to be had. */
static int read_list(const char *path, int (*f)(void *arg, char *line), struct lines *l)
{
	int r = read_lines(path, f, l);

	if (r == 0 && l->found.n)
		qsort(l->found.v, l->found.n, sizeof(*l->found.v), compare_text);
	return r == -ENOMEM ? r : r == 0;
}

/* --- the symbols --- */

/* Between two symbols there is code that takes no probe, or is no longer there. */
struct forbidden {
	const char *start, *end;
	uint64_t from, to;
};

struct found {
	uint64_t address;
	size_t order;
	char *name;
	char *module;
};
struct finder {
	const char *module, *pattern;
	bool glob;
	struct found *v;
	size_t n, max;
	bool module_seen;
	struct near near;
	struct forbidden forbidden[4];
};

static void finder_free(struct finder *f)
{
	for (size_t i = 0; i < f->n; i++) {
		free(f->v[i].name);
		free(f->v[i].module);
	}
	free(f->v);
}

static bool is_glob(const char *s)
{
	return strpbrk(s, "*?[\\") != NULL;
}

/* Files of modules have a '-' where their names have a '_'. */
static bool is_module(const char *want, const char *module)
{
	if (!want)
		return true;
	if (streq(want, "vmlinux") || !*want)
		return !*module;
	for (; *want && *module; want++, module++)
		if (*want != *module && !(*want == '-' && *module == '_'))
			return false;
	return *want == *module;
}

static int keep(struct finder *f, const struct kallsym *s)
{
	struct found *p;

	if (f->n == f->max) {
		size_t more = f->max ? f->max * 2 : 16;

		p = reallocarray(f->v, more, sizeof(*p));
		if (!p)
			return -ENOMEM;
		f->v = p;
		f->max = more;
	}
	p = &f->v[f->n];
	*p = (struct found){.address = s->address,
			    .order = f->n,
			    .name = strdup(s->name),
			    .module = strdup(s->module)};
	f->n++;
	return p->name && p->module ? 0 : -ENOMEM;
}

static void note_forbidden(struct finder *f, const struct kallsym *s)
{
	for (size_t i = 0; i < ARRAY_SIZE(f->forbidden); i++) {
		struct forbidden *p = &f->forbidden[i];

		if (!*s->module && streq(s->name, p->start))
			p->from = s->address;
		else if (!*s->module && streq(s->name, p->end))
			p->to = s->address;
	}
}

static bool is_forbidden(const struct finder *f, uint64_t address)
{
	for (size_t i = 0; i < ARRAY_SIZE(f->forbidden); i++)
		if (address >= f->forbidden[i].from && address < f->forbidden[i].to)
			return true;
	return false;
}

static int on_symbol(void *arg, const struct kallsym *s)
{
	struct finder *f = arg;

	note_forbidden(f, s);
	/* what the kernel made itself: programs of BPF, trampolines of ftrace */
	if (!kallsym_is_code(s) || starts_with(s->module, "__builtin__") || streq(s->module, "bpf"))
		return 0;
	/* a cold part is jumped to: it has neither arguments nor a return address */
	if (f->glob && strstr(s->name, ".cold") && !strstr(f->pattern, ".cold"))
		return 0;
	/* the room before a function, for those who patch it */
	if (starts_with(s->name, "__pfx_") || !is_module(f->module, s->module))
		return 0;
	f->module_seen = true;
	if (f->glob ? fnmatch(f->pattern, s->name, 0) == 0 : streq(f->pattern, s->name))
		return keep(f, s);
	return 0;
}

/* Another look, since only who mistyped has to wait for it. */
static int on_near_symbol(void *arg, const struct kallsym *s)
{
	struct finder *f = arg;

	if (kallsym_is_code(s) && is_module(f->module, s->module))
		near_look(&f->near, s->name);
	return 0;
}

static int compare(const void *pa, const void *pb)
{
	const struct found *a = pa, *b = pb;

	if (a->address != b->address)
		return a->address < b->address ? -1 : 1;
	return a->order < b->order ? -1 : 1;
}

static int report(struct finder *f, const struct lines *traceable, const struct lines *blacklist,
		  size_t *told,
		  int (*tell)(void *arg, const char *name, const char *module, uint64_t address),
		  void *arg)
{
	int r = 0;

	*told = 0;
	if (f->n)
		qsort(f->v, f->n, sizeof(*f->v), compare);
	for (size_t i = 0; !r && i < f->n; i++) {
		const struct found *p = &f->v[i];

		/* who names one function is told by the kernel why it takes no probe there */
		if (f->glob &&
		    ((traceable && !is_listed(&traceable->found, p->name)) ||
		     is_listed(&blacklist->found, p->name) || is_forbidden(f, p->address)))
			continue;
		++*told;
		r = tell(arg, p->name, p->module, p->address);
	}
	return r;
}

static int no_match(const struct kernel_files *k, struct finder *f, struct error *e)
{
	near_start(&f->near, f->pattern);
	if (f->module && !f->module_seen)
		return error_set(e, -ENOENT,
				 "the kernel has no module '%.60s' with functions: is it loaded?",
				 f->module);
	if (f->glob)
		return error_set(e, -ENOENT,
				 "no function of %s%.60s that takes probes matches '%.100s'",
				 f->module && *f->module ? "the module " : "the kernel",
				 f->module ? f->module : "", f->pattern);
	kallsyms_read(k->symbols, on_near_symbol, f);
	return error_set(e, -ENOENT, "the kernel has no function %.100s%s%s%s%s%s", f->pattern,
			 f->module && *f->module ? " in its module " : "",
			 f->module ? f->module : "", *f->near.name ? "; did you mean '" : "",
			 f->near.name, *f->near.name ? "'?" : "");
}

static void lines_free(struct lines *l)
{
	strv_free(&l->found);
}

int kernel_functions_from(const struct kernel_files *k, const char *module, const char *glob,
			  int (*f)(void *arg, const char *name, const char *module,
				   uint64_t address),
			  void *arg, struct error *e)
{
	struct finder finder CLEANUP(finder_free) = {
		.module = module,
		.pattern = glob,
		.glob = is_glob(glob),
		.forbidden = {{"_sinittext", "_einittext", 0, 0},
			      {"__kprobes_text_start", "__kprobes_text_end", 0, 0},
			      {"__entry_text_start", "__entry_text_end", 0, 0},
			      {"__noinstr_text_start", "__noinstr_text_end", 0, 0}},
	};
	struct lines traceable CLEANUP(lines_free) = {.glob = glob};
	struct lines blacklist CLEANUP(lines_free) = {0};
	size_t told = 0;
	int listed = 0, r;

	r = kallsyms_read(k->symbols, on_symbol, &finder);
	if (r < 0)
		return error_set(e, r, "the kernel's symbols (%s) cannot be read: %s", k->symbols,
				 strerror(-r));
	if (finder.glob && finder.n) {
		listed = read_list(k->traceable, on_traceable, &traceable);
		r = listed < 0 ? listed : read_list(k->blacklist, on_blacklisted, &blacklist);
	}
	if (r < 0)
		return error_set(e, r, "out of memory");
	r = report(&finder, listed ? &traceable : NULL, &blacklist, &told, f, arg);
	return told ? r : no_match(k, &finder, e);
}

bool kernel_probeable_from(const struct kernel_files *k, const char *name)
{
	struct lines blacklist CLEANUP(lines_free) = {0};

	return read_list(k->blacklist, on_blacklisted, &blacklist) != 1 ||
	       !is_listed(&blacklist.found, name);
}

static void find_blacklist(struct kernel_files *k)
{
	char dir[PATH_MAX];

	if (mount_find("debugfs", dir, sizeof(dir)) ||
	    snprintf(k->blacklist, sizeof(k->blacklist), "%s/kprobes/blacklist", dir) >=
		    (int)sizeof(k->blacklist))
		k->blacklist[0] = 0;
}

int kernel_functions(const char *module, const char *glob,
		     int (*f)(void *arg, const char *name, const char *module, uint64_t address),
		     void *arg, struct error *e)
{
	struct kernel_files k = {.symbols = KALLSYMS};
	struct error ignored = {0};
	autoclose int tracefs = -1;

	if (is_glob(glob)) {
		tracefs = tracefs_open(&ignored);
		if (tracefs >= 0)
			snprintf(k.traceable, sizeof(k.traceable),
				 "/proc/self/fd/%d/available_filter_functions", tracefs);
		find_blacklist(&k);
	}
	return kernel_functions_from(&k, module, glob, f, arg, e);
}

bool kernel_symbol_probeable(const char *name)
{
	struct kernel_files k = {.symbols = KALLSYMS};

	find_blacklist(&k);
	return kernel_probeable_from(&k, name);
}

/* --- anything's address --- */

struct wanted_address {
	const char *name;
	uint64_t address;
};

static int on_kernel_symbol(void *arg, const struct kallsym *s)
{
	struct wanted_address *w = arg;

	if (!streq(s->name, w->name))
		return 0;
	w->address = s->address;
	return 1;
}

int kernel_symbol_address(const char *name, uint64_t *ret, struct error *e)
{
	struct wanted_address w = {.name = name};
	int r = kallsyms_read(KALLSYMS, on_kernel_symbol, &w);

	if (r < 0)
		return error_set(e, r, "%s cannot be read: %s", KALLSYMS, strerror(-r));
	if (!r)
		return error_set(e, -ENOENT, "the kernel has no symbol %.100s", name);
	if (!w.address)
		return error_set(e, -EPERM, "the kernel hides its addresses: run ax as root");
	*ret = w.address;
	return 0;
}
