// SPDX-License-Identifier: GPL-2.0-or-later
/* From names in a probe's text to places in the kernel. */
#include "probes/kernel/symbols.h"
#include "probes/kernel/tracefs.h"
#include "probes/session/resolve.h"

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
	err = resolve_add(r, function ? function : number, &p, &site);
	if (err < 0)
		return err;
	p->is_return = r->spec->kind == PROBE_KRETPROBE;
	place = resolve_place(r, p);
	place.function = function && !offset ? function : NULL;
	place.module = module && *module ? module : NULL;
	err = resolve_compile(r, p, &place);
	if (err < 0)
		return err;
	site->kind = SITE_KERNEL;
	site->offset = offset;
	site->address = address;
	site->name = function ? resolve_keep(r, function) : NULL;
	return function && !site->name ? resolve_no_memory(r) : 0;
}

static int on_kernel_function(void *arg, const char *name, const char *module, uint64_t address)
{
	struct resolver *r = arg;

	r->r = add_kernel_function(r, name, module, address, r->spec->offset);
	return r->r;
}

int resolve_kernel(struct resolver *r)
{
	const struct probe_spec *p = r->spec;
	int err;

	if (!p->symbol)
		return add_kernel_function(r, NULL, NULL, 0, p->offset);
	r->many = resolve_is_glob(p->symbol);
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
	err = resolve_add(r, full, &p, &site);
	if (err < 0)
		return err;
	place = resolve_place(r, p);
	place.format = f;
	err = resolve_compile(r, p, &place);
	if (err < 0)
		return err;
	site->kind = SITE_TRACEPOINT;
	site->id = f->id;
	site->category = resolve_keep(r, category);
	site->name = resolve_keep(r, f->name);
	return site->category && site->name ? 0 : resolve_no_memory(r);
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

int resolve_tracepoints(struct resolver *r)
{
	const struct probe_spec *p = r->spec;
	autoclose int tracefs = tracefs_open(r->e);
	struct tracepoint_resolver t = {.r = r, .tracefs = tracefs};
	int err;

	if (tracefs < 0)
		return tracefs;
	r->many = resolve_is_glob(p->symbol) || resolve_is_glob(p->group);
	err = tracefs_tracepoints(tracefs, p->group ? p->group : "*", p->symbol, on_tracepoint, &t,
				  r->e);
	return r->r < 0 ? r->r : err;
}
