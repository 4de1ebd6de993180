// SPDX-License-Identifier: GPL-2.0-or-later
/* From the names in a probe's text to places. */
#include <fnmatch.h>
#include <glob.h>
#include <limits.h>
#include <sys/stat.h>

#include "probes/session/resolve.h"

bool resolve_is_glob(const char *s)
{
	return s && strpbrk(s, "*?[");
}

/* Of a file's name, which may have such characters itself. */
bool session_is_glob(const char *name)
{
	return resolve_is_glob(name) && access(name, F_OK);
}

int resolve_no_memory(struct resolver *r)
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

const char *resolve_keep(struct resolver *r, const char *text)
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

int resolve_add(struct resolver *r, const char *name, struct session_probe **ret,
		struct engine_site **site)
{
	struct session *s = r->s;
	autofree char *own = NULL;
	int index;

	if (s->plan.later && s->n_probes == s->room)
		return error_set(r->e, -ENOSPC, "there is no room for so many more probes");
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
			return resolve_no_memory(r);
		}
		name = own;
	}
	index = add_name(s, name);
	if (index < 0 || grow(s) < 0)
		return resolve_no_memory(r);
	*ret = &s->probes[s->n_probes];
	**ret = (struct session_probe){.part = r->index,
				       .name = (uint32_t)index,
				       .attached = true,
				       .entry_of = (uint32_t)s->n_probes};
	*site = &s->sites[s->n_probes];
	**site = (struct engine_site){.path = r->file ? binary_path(r->file->binary) : NULL,
				      .fd = r->file ? binary_fd(r->file->binary) : -1};
	s->n_probes++;
	return 0;
}

struct fetch_place resolve_place(const struct resolver *r, const struct session_probe *p)
{
	const struct session_part *part = r->part;

	return (struct fetch_place){
		.machine = r->file ? binary_machine(r->file->binary) : NATIVE_MACHINE,
		.binary = r->file ? r->file->binary : NULL,
		.dwarf = r->file ? r->file->dwarf : NULL,
		.given = r->s->given,
		.btf = r->s->btf,
		.go = p->go,
		.apps = r->s->options.apps,
		.all_parameters =
			part->all_parameters || (part->action == TRACE_WATCH && !r->spec->n_args),
		.many = r->many,
		.by_name = r->many && part->action != TRACE_WATCH &&
			   (part->action != TRACE_COUNT || part->table || r->spec->n_by ||
			    r->spec->n_args),
		.name = p->name,
		.between = part->between,
		.on = part->on,
		.variable = part->variable,
		.kind = part->kind,
		.texts = &r->s->options.texts,
		.adds = part->adds,
		.likes = part->likes,
		.n_likes = part->n_likes,
	};
}

int resolve_compile(struct resolver *r, struct session_probe *p, const struct fetch_place *place)
{
	const struct fetch_result *result = r->part->result;
	int err = result ? fetch_check_result(r->spec, place, result, r->e) : 0;

	if (err < 0)
		return err;
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

/* One of many that has not what is asked for: it is there only to be told. */
static void leave_out(struct resolver *r, struct session_probe *p, const struct spot *spot)
{
	p->placed = true;
	p->place = (struct place){.offset = spot->offset, .cost = PLACE_REFUSED};
	snprintf(p->place.why, sizeof(p->place.why), "%.255s", r->e->text);
	*r->e = (struct error){0};
	judge(r, p);
}

static int add_spot(struct resolver *r, const struct spot *spot, struct session_probe **ret)
{
	struct session *s = r->s;
	struct fetch_place place;
	struct session_probe *p;
	struct engine_site *site;
	int err = resolve_add(r, spot->name, &p, &site);

	if (err < 0)
		return err;
	p->go = binary_is_go(r->file->binary);
	p->is_return = r->spec->kind == PROBE_URETPROBE && !at_rets(r);
	place = resolve_place(r, p);
	place.offset = is_return_kind(r->spec->kind) ? spot->begin : spot->offset;
	place.function = spot->function ? spot->function->name : NULL;
	place.at_entry = r->spec->kind == PROBE_UPROBE && spot->function && spot->function->name &&
			 spot->offset == spot->function->offset;
	*ret = p;
	site->offset = spot->begin;
	err = resolve_compile(r, p, &place);
	if (err == -ENODATA && r->many) {
		leave_out(r, p, spot);
		return 0;
	}
	if (err < 0)
		return err;
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
	r->many = r->files || resolve_is_glob(p->symbol);
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
		 l->line);
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
	if (r->spec->symbol)
		err = dwarf_statements(r->file->dwarf, r->spec->source, r->spec->symbol, on_line, r,
				       r->e);
	else
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
		r->r = resolve_no_memory(r);
		return r->r;
	}
	r->r = resolve_add(r, name, &p, &site);
	if (r->r)
		return r->r;
	place = resolve_place(r, p);
	place.usdt = u;
	place.offset = u->offset;
	r->r = resolve_compile(r, p, &place);
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

	r->many = r->files || !p->symbol || resolve_is_glob(p->symbol) || resolve_is_glob(p->group);
	err = binary_usdts(r->file->binary, p->group ? p->group : "*", p->symbol ? p->symbol : "*",
			   on_usdt, r, r->e);
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

/* The next file of the session, which is not there yet. */
static int take_file(struct session *s, const char *name, int pid, struct error *e)
{
	struct session_file *f = &s->files[s->n_files];
	struct stat st = {0};
	int err;

	if (s->n_files == SESSION_FILES_MAX)
		return error_set(e, -E2BIG, "this names more than %d files: narrow it down",
				 SESSION_FILES_MAX);
	err = binary_open(name, pid, &f->binary, e);
	if (err < 0)
		return err;
	s->n_files++;
	if (fstat(binary_fd(f->binary), &st) == 0) {
		f->dev = st.st_dev;
		f->ino = st.st_ino;
	}
	f->name = strdup(name);
	if (!f->name || dwarf_new(binary_path(f->binary), &f->dwarf) < 0 ||
	    (s->options.types && (dwarf_look_in(f->dwarf, s->options.types) < 0 ||
				  binary_look_in(f->binary, s->options.types) < 0)))
		return error_set(e, -ENOMEM, "out of memory");
	return 0;
}

static int open_file(struct resolver *r, const char *name)
{
	struct session *s = r->s;
	int err;

	for (size_t i = 0; i < s->n_files; i++)
		if (streq(s->files[i].name, name)) {
			r->file = &s->files[i];
			return 0;
		}
	err = take_file(s, name, s->options.pid, r->e);
	if (err < 0)
		return err;
	r->file = &s->files[s->n_files - 1];
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

/* Each clause of a script is a place of its own. */
static int resolve_self(struct resolver *r)
{
	struct fetch_place place;
	struct session_probe *p;
	struct engine_site *site;
	int err = resolve_add(r, r->spec->symbol, &p, &site);

	if (err < 0)
		return err;
	place = resolve_place(r, p);
	err = resolve_compile(r, p, &place);
	site->kind = SITE_SELF;
	site->offset = r->s->n_selves += !r->part->follows;
	return err;
}

static int resolve_profile(struct resolver *r)
{
	struct fetch_place place;
	struct session_probe *p;
	struct engine_site *site;
	char name[32];
	int err;

	snprintf(name, sizeof(name), "profile:%llu", (unsigned long long)r->spec->offset);
	err = resolve_add(r, name, &p, &site);
	if (err < 0)
		return err;
	place = resolve_place(r, p);
	err = resolve_compile(r, p, &place);
	site->kind = SITE_CLOCK;
	site->offset = r->spec->offset;
	return err;
}

static int resolve_part(struct resolver *r)
{
	const char *file = r->spec->file;
	int err;

	if (r->spec->kind == PROBE_SELF)
		return resolve_self(r);
	if (r->spec->kind == PROBE_PROFILE)
		return resolve_profile(r);
	if (r->spec->kind == PROBE_TRACEPOINT)
		return resolve_tracepoints(r);
	if (!file)
		return resolve_kernel(r);
	if (session_is_glob(file)) {
		err = resolve_files(r);
		return err == -ENOENT && session_waits(r->s, r->index) ? 0 : err;
	}
	err = open_file(r, file);
	if (err == -ENOENT && session_waits(r->s, r->index))
		return 0; /* not yet */
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

		if (err < 0 && s->options.failed)
			*s->options.failed = (uint32_t)i;
		if (err < 0)
			return err;
	}
	return session_align(s, 0) < 0 ? error_set(e, -ENOMEM, "out of memory") : 0;
}

/* --- later --- */

static bool is_known(const struct session *s, const struct session_file *f)
{
	for (size_t i = 0; i < s->n_files; i++)
		if (&s->files[i] != f && s->files[i].dev == f->dev && s->files[i].ino == f->ino &&
		    streq(s->files[i].name, f->name))
			return true;
	return false;
}

static void drop_last_file(struct session *s)
{
	struct session_file *f = &s->files[--s->n_files];

	if (f->binary)
		binary_close(f->binary);
	if (f->dwarf)
		dwarf_free(f->dwarf);
	free(f->name);
	*f = (struct session_file){0};
}

static bool means(const struct session_part *p, const char *name)
{
	const char *file = p->spec->file;

	return file && !p->offsets &&
	       (streq(file, name) || (resolve_is_glob(file) && !fnmatch(file, name, FNM_PATHNAME)));
}

/* Links lead to the same file: the part has probes in it already, by another name. */
static bool has_probed(const struct session *s, const struct session_part *p,
		       const struct session_file *f)
{
	for (const struct session_file *o = s->files; o < f; o++)
		if (f->ino && o->dev == f->dev && o->ino == f->ino && means(p, o->name))
			return true;
	return false;
}

int session_resolve_later(struct session *s, const char *name, int pid, const char **path,
			  struct error *e)
{
	struct error none = {0};
	struct resolver r = {.s = s, .e = e, .file = &s->files[s->n_files]};
	size_t before = s->n_probes;
	int err;

	err = take_file(s, name, pid, s->n_files == SESSION_FILES_MAX ? e : &none);
	if (err < 0 && s->n_files > (size_t)(r.file - s->files))
		drop_last_file(s);
	if (err < 0) { /* most processes have no such file */
		s->later_absent = true;
		return err == -ENOMEM ? err : 0;
	}
	if (is_known(s, r.file)) {
		drop_last_file(s);
		return 0;
	}
	*path = binary_path(r.file->binary);
	err = check_machine(&r);
	for (size_t i = 0; err >= 0 && i < s->n_parts; i++) {
		r.part = &s->parts[i];
		r.spec = s->parts[i].spec;
		r.index = (uint32_t)i;
		r.many = false;
		r.files = !streq(r.spec->file ? r.spec->file : name, name);
		r.r = 0;
		if (means(r.part, name) && !has_probed(s, r.part, r.file))
			err = resolve_in_file(&r);
	}
	return err < 0 ? err : s->n_probes > before;
}
