// SPDX-License-Identifier: GPL-2.0-or-later
/* From the names in a probe's text to places. */
#include <elf.h>
#include <glob.h>
#include <limits.h>

#include "probes/kernel/symbols.h"
#include "probes/session/priv.h"
#include "probes/kernel/tracefs.h"

#if defined(__aarch64__)
#define NATIVE_MACHINE EM_AARCH64
#else
#define NATIVE_MACHINE EM_X86_64
#endif

struct resolver {
	struct session *s;
	struct error *e;
	const struct session_part *part;
	const struct probe_spec *spec;
	uint32_t index;		   /* of the part */
	struct session_file *file; /* NULL: the kernel */
	int r;			   /* an error in a callback */
	bool many;		   /* the name is a glob: what cannot be probed is left out */
	bool files;		   /* so is the file's */
};

static bool is_glob(const char *s)
{
	return s && strpbrk(s, "*?[");
}

static int out_of_memory(struct resolver *r)
{
	return error_set(r->e, -ENOMEM, "out of memory");
}

/* The number of a name, which is added if it is new. */
static int add_name(struct session *s, const char *name)
{
	int r;

	/* places come sorted by where they are, so the same name mostly comes again at once */
	for (size_t i = s->names.n; i-- > 0 && s->names.n - i < 64;)
		if (streq(s->names.v[i], name))
			return (int)i;
	r = strv_add(&s->names, name);
	return r < 0 ? r : (int)s->names.n - 1;
}

/* A copy that lives as long as the session. */
static const char *keep_text(struct resolver *r, const char *text)
{
	struct strv *kept = &r->s->texts_kept;

	if (kept->n && streq(kept->v[kept->n - 1], text))
		return kept->v[kept->n - 1];
	return strv_add(kept, text) < 0 ? NULL : kept->v[kept->n - 1];
}

static int grow(struct session *s)
{
	size_t size = s->size_probes ? s->size_probes * 2 : 16;
	struct session_probe *v;
	struct engine_site *sites;

	if (s->n_probes < s->size_probes)
		return 0;
	v = realloc(s->probes, size * sizeof(*v));
	if (v)
		s->probes = v;
	sites = realloc(s->sites, size * sizeof(*sites));
	if (sites)
		s->sites = sites;
	if (!v || !sites)
		return -ENOMEM;
	s->size_probes = size;
	return 0;
}

static int add_probe(struct resolver *r, const char *name, struct session_probe **ret,
		     struct engine_site **site)
{
	struct session *s = r->s;
	autofree char *own = NULL;
	int index;

	if (s->n_probes == SESSION_PLACES_MAX)
		return error_set(r->e, -E2BIG, "this names more than %d places: narrow it down",
				 SESSION_PLACES_MAX);
	/* ftrace's lines may give one: that is what people look for then */
	if (r->part->spec->name)
		name = r->part->spec->name;
	if (r->files) { /* each file may have one of that name */
		if (asprintf(&own, "%s:%s", strrchr(binary_path(r->file->binary), '/') + 1, name) <
		    0) {
			own = NULL;
			return out_of_memory(r);
		}
		name = own;
	}
	index = add_name(s, name);
	if (index < 0 || grow(s) < 0)
		return out_of_memory(r);
	*ret = &s->probes[s->n_probes];
	**ret = (struct session_probe){.part = r->index,
				       .name = (uint32_t)index,
				       .attached = true,
				       .entry_of = (uint32_t)s->n_probes};
	*site = &s->sites[s->n_probes];
	**site = (struct engine_site){.path = r->file ? binary_path(r->file->binary) : NULL};
	s->n_probes++;
	return 0;
}

/* What the part wants of a place; the caller adds what it knows of it. */
static struct fetch_place place_of(const struct resolver *r, const struct session_probe *p)
{
	const struct session_part *part = r->part;

	return (struct fetch_place){
		.machine = r->file ? binary_machine(r->file->binary) : NATIVE_MACHINE,
		.binary = r->file ? r->file->binary : NULL,
		.dwarf = r->file ? r->file->dwarf : NULL,
		.btf = r->s->btf,
		.go = p->go,
		.apps = r->s->options.apps,
		.all_parameters = part->all_parameters,
		.by_name = r->many && part->action != TRACE_WATCH &&
			   (part->action != TRACE_COUNT || r->spec->n_by || r->spec->n_args),
		.name = p->name,
		.between = part->between,
		.on = part->on,
	};
}

static int compile(struct resolver *r, struct session_probe *p, const struct fetch_place *place)
{
	return fetch_compile(r->spec, r->part->action, place, &r->s->texts, &p->fetch, r->e);
}

/* A place that was refused is left out of many, and an error if it is the only one. */
static void judge(struct resolver *r, struct session_probe *p)
{
	if (p->place.cost != PLACE_REFUSED)
		return;
	p->attached = false;
	r->s->n_refused++;
}

/* --- functions --- */

static bool is_return_kind(enum probe_kind k)
{
	return k == PROBE_URETPROBE || k == PROBE_KRETPROBE;
}

/* Where in the file, and with which name: the function's, or the place's number. */
struct spot {
	const struct symbol *function; /* NULL: none is known there */
	const char *name;
	uint64_t offset;
	uint64_t begin; /* of the function, where its parameters are */
	bool exact;
};

/* A uretprobe changes return addresses: on a stack that Go moves, or where C++'s exceptions look
 * for their handlers, that ends the program. */
static bool at_rets(const struct resolver *r)
{
	return r->part->at_rets || r->file->throws || binary_is_go(r->file->binary);
}

static int add_spot(struct resolver *r, const struct spot *spot, struct session_probe **ret)
{
	struct session *s = r->s;
	struct fetch_place place;
	struct session_probe *p;
	struct engine_site *site;
	int err = add_probe(r, spot->name, &p, &site);

	if (err < 0)
		return err;
	p->go = binary_is_go(r->file->binary);
	p->is_return = r->spec->kind == PROBE_URETPROBE && !at_rets(r);
	place = place_of(r, p);
	place.offset = is_return_kind(r->spec->kind) ? spot->begin : spot->offset;
	place.at_entry = r->spec->kind == PROBE_UPROBE && spot->function && spot->function->name &&
			 spot->offset == spot->function->offset;
	err = compile(r, p, &place);
	if (err < 0)
		return err;
	site->offset = spot->begin;
	site->semaphore = r->spec->semaphore;
	p->placed = true;
	p->semaphore = r->spec->semaphore;
	err = binary_place(r->file->binary, spot->function, spot->offset,
			   spot->exact || s->options.exact ||
				   (p->fetch.needs_exact && !r->part->move),
			   &p->place, r->e);
	if (err < 0)
		return err;
	judge(r, p);
	*ret = p;
	return 0;
}

/* One of many that cannot be probed: it is there only to be told. */
static int add_refused(struct resolver *r, const struct spot *spot, const char *why)
{
	struct session_probe *p;
	int err = add_spot(r, spot, &p);

	if (err < 0 || !p->attached)
		return err;
	p->place.cost = PLACE_REFUSED;
	snprintf(p->place.why, sizeof(p->place.why), "%s", why);
	judge(r, p);
	return 0;
}

/* All of the function's returns are probed, and the entry once. */
static int add_rets(struct resolver *r, const struct symbol *f, struct spot *spot)
{
	autofree uint64_t *offsets = NULL;
	struct place entry = {0};
	size_t n, first = r->s->n_probes;
	int err = binary_returns(r->file->binary, f, &offsets, &n, r->e);

	if (err == -ENOENT && r->many)
		return add_refused(r, spot,
				   "it has no return of its own: it never returns, or "
				   "ends by jumping to another function");
	if (err == 0)
		err = binary_place(r->file->binary, f, f->offset, false, &entry, r->e);
	if (err < 0)
		return err;
	spot->exact = true;
	for (size_t i = 0; i < n; i++) {
		struct session_probe *p;

		spot->offset = offsets[i];
		err = add_spot(r, spot, &p);
		if (err < 0)
			return err;
		p->entry_of = (uint32_t)first;
		r->s->sites[r->s->n_probes - 1].offset = entry.offset;
	}
	return 0;
}

static int place_function(struct resolver *r, const struct symbol *f, uint64_t offset, bool exact)
{
	const char *name = f && f->name ? f->demangled ? f->demangled : f->name : NULL;
	struct spot spot = {.function = f,
			    .name = name,
			    .offset = offset,
			    .begin = f && f->name ? f->offset : offset,
			    .exact = exact};
	struct session_probe *p;
	char buf[32];

	if (!name) {
		snprintf(buf, sizeof(buf), "0x%llx", (unsigned long long)offset);
		spot.name = buf;
	}
	if (r->spec->kind == PROBE_URETPROBE && at_rets(r)) {
		if (!name)
			return error_set(r->e, -ENOTSUP,
					 "%.200s is a %s program, and no function begins at "
					 "0x%llx: expected a function whose returns can be found",
					 binary_path(r->file->binary),
					 binary_is_go(r->file->binary) ? "Go" : "C++",
					 (unsigned long long)offset);
		return add_rets(r, f, &spot);
	}
	if (r->spec->kind == PROBE_URETPROBE && name && function_keeps_return(name)) {
		if (r->many)
			return add_refused(r, &spot, "it needs its return address as it is");
		return error_set(r->e, -ENOTSUP,
				 "%.100s needs its return address as it is, and a probe on its "
				 "return would change that: expected uprobe:",
				 name);
	}
	return add_spot(r, &spot, &p);
}

static int on_function(void *arg, const struct symbol *f)
{
	struct resolver *r = arg;
	uint64_t extra = r->spec->offset;

	if (f->size && extra >= f->size) {
		if (r->many)
			return 0;
		r->r = error_set(r->e, -EINVAL, "%.100s has only %llu bytes, +%llu is behind it",
				 f->name, (unsigned long long)f->size, (unsigned long long)extra);
	} else {
		r->r = place_function(r, f, f->offset + extra, extra != 0);
	}
	return r->r;
}

static int resolve_offset(struct resolver *r, uint64_t offset, bool exact)
{
	struct symbol f = {0};

	if (binary_symbolise(r->file->binary, offset, &f) < 0)
		return place_function(r, NULL, offset, true);
	return place_function(r, &f, offset, exact || offset != f.offset);
}

static int resolve_functions(struct resolver *r)
{
	const struct probe_spec *p = r->spec;
	int err = 0;

	if (r->part->offsets) {
		r->many = true;
		for (size_t i = 0; err == 0 && i < r->part->n_offsets; i++)
			err = resolve_offset(r, r->part->offsets[i], false);
		return err;
	}
	if (!p->symbol)
		return resolve_offset(r, p->offset, true);
	r->many = r->files || is_glob(p->symbol);
	err = binary_functions(r->file->binary, p->symbol, on_function, r, r->e);
	return r->r < 0 ? r->r : err;
}

/* --- lines --- */

static int on_line(void *arg, const struct dwarf_line *l)
{
	struct resolver *r = arg;
	const char *function = l->inlined ? l->inlined : l->function ? l->function : "?";
	struct spot spot = {.offset = l->offset, .begin = l->offset, .exact = true};
	struct session_probe *p;
	char name[256];

	snprintf(name, sizeof(name), "%.80s:%u",
		 strrchr(r->spec->source, '/') ? strrchr(r->spec->source, '/') + 1
					       : r->spec->source,
		 r->spec->line);
	if (l->function)
		snprintf(name + strlen(name), sizeof(name) - strlen(name), "(%.120s)", function);
	spot.name = name;
	r->r = add_spot(r, &spot, &p);
	return r->r;
}

static int resolve_line(struct resolver *r)
{
	int err;

	r->many = true;
	err = dwarf_lines(r->file->dwarf, r->spec->source, r->spec->line, on_line, r, r->e);
	return r->r < 0 ? r->r : err;
}

/* --- USDT --- */

static int on_usdt(void *arg, const struct usdt *u)
{
	struct resolver *r = arg;
	autofree char *name = NULL;
	struct fetch_place place;
	struct session_probe *p;
	struct engine_site *site;

	if (asprintf(&name, "%s:%s", u->provider, u->name) < 0) {
		name = NULL;
		r->r = out_of_memory(r);
		return r->r;
	}
	r->r = add_probe(r, name, &p, &site);
	if (r->r)
		return r->r;
	place = place_of(r, p);
	place.usdt = u;
	place.offset = u->offset;
	r->r = compile(r, p, &place);
	if (r->r < 0)
		return r->r;
	site->offset = u->offset;
	site->semaphore = u->semaphore;
	p->semaphore = u->semaphore;
	p->placed = true;
	r->r = binary_place(r->file->binary, NULL, u->offset, true, &p->place, r->e);
	if (r->r == 0)
		judge(r, p);
	return r->r;
}

static int resolve_usdt(struct resolver *r)
{
	const struct probe_spec *p = r->spec;
	int err;

	r->many = r->files || !p->symbol || is_glob(p->symbol) || is_glob(p->group);
	err = binary_usdts(r->file->binary, p->group ? p->group : "*", p->symbol ? p->symbol : "*",
			   on_usdt, r, r->e);
	return r->r < 0 ? r->r : err;
}

/* --- the kernel's functions --- */

static int add_kernel_function(struct resolver *r, const char *function, const char *module,
			       uint64_t address, uint64_t offset)
{
	struct session_probe *p;
	struct engine_site *site;
	struct fetch_place place;
	char number[32];
	int err;

	snprintf(number, sizeof(number), "0x%llx", (unsigned long long)offset);
	err = add_probe(r, function ? function : number, &p, &site);
	if (err < 0)
		return err;
	p->is_return = r->spec->kind == PROBE_KRETPROBE;
	place = place_of(r, p);
	place.function = function && !offset ? function : NULL;
	place.module = module && *module ? module : NULL;
	err = compile(r, p, &place);
	if (err < 0)
		return err;
	site->kind = SITE_KERNEL;
	site->offset = offset;
	site->address = address;
	site->name = function ? keep_text(r, function) : NULL;
	return function && !site->name ? out_of_memory(r) : 0;
}

static int on_kernel_function(void *arg, const char *name, const char *module, uint64_t address)
{
	struct resolver *r = arg;

	r->r = add_kernel_function(r, name, module, address, r->spec->offset);
	return r->r;
}

static int resolve_kernel(struct resolver *r)
{
	const struct probe_spec *p = r->spec;
	int err;

	if (!p->symbol)
		return add_kernel_function(r, NULL, NULL, 0, p->offset);
	r->many = is_glob(p->symbol);
	err = kernel_functions(p->group, p->symbol, on_kernel_function, r, r->e);
	return r->r < 0 ? r->r : err;
}

/* --- tracepoints --- */

struct tracepoint_resolver {
	struct resolver *r;
	int tracefs;
};

static int add_tracepoint(struct resolver *r, const struct format *f, const char *category)
{
	struct fetch_place place;
	struct session_probe *p;
	struct engine_site *site;
	char full[256];
	int err;

	snprintf(full, sizeof(full), "%s:%s", category, f->name);
	err = add_probe(r, full, &p, &site);
	if (err < 0)
		return err;
	place = place_of(r, p);
	place.format = f;
	err = compile(r, p, &place);
	if (err < 0)
		return err;
	site->kind = SITE_TRACEPOINT;
	site->id = f->id;
	site->category = keep_text(r, category);
	site->name = keep_text(r, f->name);
	return site->category && site->name ? 0 : out_of_memory(r);
}

static int on_tracepoint(void *arg, const char *category, const char *name)
{
	struct tracepoint_resolver *t = arg;
	struct format format = {0};

	t->r->r = tracefs_format(t->tracefs, category, name, &format, t->r->e);
	if (t->r->r == 0)
		t->r->r = add_tracepoint(t->r, &format, category);
	format_free(&format);
	return t->r->r;
}

static int resolve_tracepoints(struct resolver *r)
{
	const struct probe_spec *p = r->spec;
	autoclose int tracefs = tracefs_open(r->e);
	struct tracepoint_resolver t = {.r = r, .tracefs = tracefs};
	int err;

	if (tracefs < 0)
		return tracefs;
	r->many = is_glob(p->symbol) || is_glob(p->group);
	err = tracefs_tracepoints(tracefs, p->group ? p->group : "*", p->symbol, on_tracepoint, &t,
				  r->e);
	return r->r < 0 ? r->r : err;
}

/* --- the whole --- */

static int check_machine(struct resolver *r)
{
	uint16_t machine = binary_machine(r->file->binary);

	if (machine == NATIVE_MACHINE)
		return 0;
	return error_set(r->e, -ENOTSUP,
			 "%.200s is for another kind of processor than this kernel's (ELF machine "
			 "%u): expected a 64-bit program of this machine",
			 binary_path(r->file->binary), machine);
}

static int open_file(struct resolver *r, const char *name)
{
	struct session *s = r->s;
	struct session_file *f;
	int err;

	for (size_t i = 0; i < s->n_files; i++)
		if (streq(s->files[i].name, name)) {
			r->file = &s->files[i];
			return 0;
		}
	if (s->n_files == SESSION_FILES_MAX)
		return error_set(r->e, -E2BIG, "this names more than %d files: narrow it down",
				 SESSION_FILES_MAX);
	f = &s->files[s->n_files];
	err = binary_open(name, s->options.pid, &f->binary, r->e);
	if (err < 0)
		return err;
	s->n_files++;
	f->name = strdup(name);
	if (!f->name)
		return out_of_memory(r);
	r->file = f;
	if (dwarf_new(binary_path(f->binary), &f->dwarf) < 0)
		return out_of_memory(r);
	return check_machine(r);
}

static int resolve_in_file(struct resolver *r)
{
	if (r->spec->kind == PROBE_URETPROBE)
		r->file->throws = binary_throws(r->file->binary);
	switch (r->spec->kind) {
	case PROBE_USDT:
		return resolve_usdt(r);
	case PROBE_LINE:
		return resolve_line(r);
	default:
		return resolve_functions(r);
	}
}

/* Links lead to the same file. */
static bool is_new_file(const struct resolver *r)
{
	for (const struct session_file *f = r->s->files; f < r->file; f++)
		if (f->binary && streq(binary_path(f->binary), binary_path(r->file->binary)))
			return false;
	return true;
}

/* One of many files: some are no programs, or have nothing that matches. */
static int resolve_one_of(struct resolver *r, const char *name)
{
	size_t before = r->s->n_probes;
	int err = open_file(r, name);

	if (err < 0)
		return err == -ENOMEM || err == -E2BIG ? err : -ENOENT;
	err = is_new_file(r) ? resolve_in_file(r) : 0;
	r->r = 0;
	for (; err < 0 && r->s->n_probes > before; r->s->n_probes--)
		fetch_free(&r->s->probes[r->s->n_probes - 1].fetch);
	return err;
}

static int resolve_files(struct resolver *r)
{
	struct error first = {0}, own = {0}, *e = r->e;
	char root[32] = "", pattern[PATH_MAX];
	size_t before = r->s->n_probes;
	glob_t g = {0};
	int err;

	if (r->s->options.pid && r->spec->file[0] == '/')
		snprintf(root, sizeof(root), "/proc/%d/root", r->s->options.pid);
	snprintf(pattern, sizeof(pattern), "%s%s", root, r->spec->file);
	err = glob(pattern, 0, NULL, &g) ? -ENOENT : 0;
	if (err < 0)
		error_set(e, err, "no file matches '%.200s'", r->spec->file);
	r->files = true;
	r->e = &own;
	for (size_t i = 0; err == 0 && i < g.gl_pathc; i++) {
		err = resolve_one_of(r, g.gl_pathv[i] + strlen(root));
		if (err < 0 && !first.code)
			first = own;
		err = err == -ENOENT ? 0 : err;
	}
	r->e = e;
	globfree(&g);
	if (first.code && (err < 0 || r->s->n_probes == before)) {
		*e = first;
		return first.code;
	}
	return err;
}

static int resolve_part(struct resolver *r)
{
	const char *file = r->spec->file;
	int err;

	if (r->spec->kind == PROBE_TRACEPOINT)
		return resolve_tracepoints(r);
	if (!file)
		return resolve_kernel(r);
	if (is_glob(file) && access(file, F_OK))
		return resolve_files(r);
	err = open_file(r, file);
	return err < 0 ? err : resolve_in_file(r);
}

int session_resolve(struct session *s, struct error *e)
{
	if (btf_types_new(&s->btf) < 0)
		return error_set(e, -ENOMEM, "out of memory");
	for (size_t i = 0; i < s->n_parts; i++) {
		struct resolver r = {.s = s,
				     .e = e,
				     .part = &s->parts[i],
				     .spec = s->parts[i].spec,
				     .index = (uint32_t)i};
		int err = resolve_part(&r);

		if (err < 0)
			return err;
	}
	return session_align(s) < 0 ? error_set(e, -ENOMEM, "out of memory") : 0;
}
