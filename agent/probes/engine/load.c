// SPDX-License-Identifier: GPL-2.0-or-later
/* The interpreter: loading it with what it is to do. */
#include <linux/membarrier.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "probes/btf/few_types.h"
#include "probes/engine/link.h"
#include "probes/engine/priv.h"
#include "interpreter.skel.h"

const char *const engine_map_names[MAPS] = {
	[MAP_PROBES] = "probes",
	[MAP_SCRATCHES] = "scratches",
	[MAP_OPS] = "ops",
	[MAP_TEXTS] = "texts",
	[MAP_HITS] = "hits",
	[MAP_COUNTERS] = "probe_counters",
	[MAP_RECORDS] = "records",
	[MAP_AT_WORK] = "at_work",
	[MAP_TABLE] = "table",
	[MAP_CALLS] = "calls",
	[MAP_STACKS] = "stacks",
	[MAP_STACK_COPIES] = "stack_copies",
	[MAP_FLIGHT] = "flight",
	[MAP_FLIGHT_NUMBER] = "flight_number",
	[MAP_STATES] = "states",
	[MAP_THREAD_STATES] = "thread_states",
	[MAP_ABOUT] = "about",
	[MAP_GLOBALS] = "globals",
	[MAP_THREAD_VARIABLES] = "thread_variables",
	[MAP_TEXT_VARIABLES] = "text_variables",
	[MAP_TREE] = "tree",
};

static struct bpf_map *map_of(const struct engine *g, enum engine_map which)
{
	return bpf_object__find_map_by_name(g->skel->obj, engine_map_names[which]);
}

const char *engine_method(const struct engine *g)
{
	bool tracepoint = g->uses[PROGRAM_RAW] || g->uses[PROGRAM_CLASSIC];

	if (g->uses[PROGRAM_USER] + g->uses[PROGRAM_KERNEL] + g->uses[PROGRAM_CLOCK] + tracepoint >
	    1)
		return "several kinds of links";
	if (g->uses[PROGRAM_CLOCK])
		return "a clock on each processor";
	if (g->uses[PROGRAM_USER])
		return g->user_multi ? "uprobe_multi link" : "perf events";
	if (g->uses[PROGRAM_KERNEL])
		return g->kernel_multi ? "kprobe_multi link" : "perf events";
	if (!tracepoint)
		return "ax alone";
	return g->uses[PROGRAM_RAW] ? "raw tracepoint" : "perf event on the tracepoint";
}

/* --- loading --- */

static int on_ring(void *ctx, void *data, size_t size)
{
	struct engine *g = ctx;
	const struct ax_probe_record *r = data;

	if (size < sizeof(*r) || size < sizeof(*r) + r->n_values * sizeof(r->values[0]))
		return 0;
	return g->on_record(g->arg, r, size);
}

static int fill(const struct engine *g, enum engine_map which, const void *v, size_t from, size_t n,
		size_t size)
{
	for (uint32_t i = (uint32_t)from; i < n; i++) {
		int r = bpf_map_update_elem(g->maps[which], &i, (const char *)v + i * size,
					    BPF_ANY);

		if (r < 0)
			return r;
	}
	return 0;
}

/* In pages, so that a text that is a little longer still fits what was pinned. */
static uint32_t about_size(const char *about)
{
	return ((uint32_t)strlen(about) / 4096 + 1) * 4096;
}

static int fill_about(const struct engine *g, const char *about)
{
	autofree char *buf = about ? calloc(1, about_size(about)) : NULL;

	if (!about)
		return 0;
	if (!buf)
		return -ENOMEM;
	strcpy(buf, about);
	return fill(g, MAP_ABOUT, buf, 0, 1, about_size(about));
}

static uint32_t flags_of(const struct engine_plan *p, const struct ax_probe *d)
{
	return d->flags | (engine_is_quick(p, d) ? AX_PROBE_QUICK : 0);
}

static int fill_probes(const struct engine *g, size_t from, size_t n)
{
	int r = 0;

	for (uint32_t i = (uint32_t)from; r == 0 && i < n; i++) {
		struct ax_probe d = g->plan->probes[i];

		d.flags = flags_of(g->plan, &d);
		r = bpf_map_update_elem(g->maps[MAP_PROBES], &i, &d, BPF_ANY);
	}
	return r;
}

static int fill_from(struct engine *g, const struct engine_from *from)
{
	const struct engine_plan *p = g->plan;
	size_t half = p->n_probes / 2;
	int r = fill_probes(g, from->probe, from->end);

	if (r == 0)
		r = fill_probes(g, half + from->probe, half + from->end);
	if (r == 0)
		r = fill(g, MAP_OPS, p->ops, from->op, p->n_ops, sizeof(*p->ops));
	return r < 0 ? r : fill(g, MAP_TEXTS, p->texts, from->text, p->n_texts, sizeof(*p->texts));
}

static int fill_maps(struct engine *g, const struct engine_plan *p)
{
	struct engine_from all = {.end = p->n_used};
	int r;

	for (unsigned i = 0; i < MAPS; i++)
		g->maps[i] = bpf_map__fd(map_of(g, i));
	if (p->later)
		return fill_from(g, &all);
	r = fill_probes(g, 0, p->n_probes);
	if (r == 0)
		r = fill(g, MAP_OPS, p->ops, 0, p->n_ops, sizeof(*p->ops));
	if (r == 0)
		r = fill(g, MAP_TEXTS, p->texts, 0, p->n_texts, sizeof(*p->texts));
	return r == 0 ? fill_about(g, p->about) : r;
}

static uint32_t at_least_one(size_t n)
{
	return n ? (uint32_t)n : 1;
}

static size_t n_at_work(const struct engine *g)
{
	return (size_t)g->n_cpus * AX_PROBE_WORK;
}

static size_t ring_pages_size(void)
{
	return 2 * (size_t)sysconf(_SC_PAGESIZE);
}

static int map_at_work(struct engine *g)
{
	void *at = mmap(NULL, n_at_work(g) * sizeof(*g->at_work), PROT_READ, MAP_SHARED,
			g->maps[MAP_AT_WORK], 0);

	if (at == MAP_FAILED)
		return -errno;
	g->at_work = at;
	at = mmap(NULL, ring_pages_size(), PROT_READ, MAP_SHARED, g->maps[MAP_RECORDS], 0);
	if (at == MAP_FAILED)
		return -errno;
	g->ring_pages = at;
	return 0;
}

/* What the probes do not need takes no memory. */
static int size_maps(struct engine *g, const struct engine_plan *p)
{
	const struct {
		enum engine_map which;
		uint32_t entries;
	} sizes[] = {
		{MAP_PROBES, at_least_one(p->n_probes)},
		{MAP_SCRATCHES, p->sleeps ? AX_PROBE_SLEEPERS : AX_PROBE_SLOTS},
		{MAP_HITS, at_least_one(p->n_probes)},
		{MAP_AT_WORK, p->config.ordered ? (uint32_t)n_at_work(g) : 1},
		{MAP_OPS, at_least_one(p->later ? p->max_ops : p->n_ops)},
		{MAP_TEXTS, at_least_one(p->later ? p->max_texts : p->n_texts)},
		{MAP_FLIGHT, at_least_one(p->config.flight_slots)},
		{MAP_STACKS, p->stacks ? ENGINE_STACKS : 1},
		{MAP_THREAD_STATES, p->states ? ENGINE_THREAD_STATES : 1},
		{MAP_THREAD_VARIABLES, p->maps			    ? ENGINE_MAP_VARIABLES
				       : p->config.thread_variables ? ENGINE_THREAD_VARIABLES
								    : 1},
		{MAP_TEXT_VARIABLES, p->texts_set ? ENGINE_TEXT_VARIABLES : 1},
	};
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(sizes); i++)
		r = bpf_map__set_max_entries(map_of(g, sizes[i].which), sizes[i].entries);
	if (r == 0 && p->key_words)
		r = bpf_map__set_key_size(map_of(g, MAP_TABLE),
					  p->key_words * (uint32_t)sizeof(uint64_t));
	else if (r == 0)
		r = bpf_map__set_max_entries(map_of(g, MAP_TABLE), 1);
	if (r == 0 && !p->paired)
		r = bpf_map__set_max_entries(map_of(g, MAP_CALLS), 1);
	if (r == 0 && (!p->records || p->config.flight_slots))
		r = bpf_map__set_max_entries(map_of(g, MAP_RECORDS),
					     (uint32_t)sysconf(_SC_PAGESIZE));
	else if (r == 0 && p->ring_bytes)
		r = bpf_map__set_max_entries(map_of(g, MAP_RECORDS), p->ring_bytes);
	if (r == 0 && p->config.copies)
		r = bpf_map__set_max_entries(map_of(g, MAP_STACK_COPIES), ENGINE_STACK_COPIES);
	else if (r == 0)
		r = bpf_map__set_autocreate(map_of(g, MAP_STACK_COPIES), false);
	if (r == 0 && p->config.flight_slots)
		r = bpf_map__set_value_size(map_of(g, MAP_FLIGHT),
					    (uint32_t)sizeof(struct ax_probe_flight) +
						    p->config.flight_bytes);
	if (r == 0 && p->about)
		r = bpf_map__set_value_size(map_of(g, MAP_ABOUT), about_size(p->about));
	return r;
}

bool engine_map_is_kept(enum engine_map which)
{
	switch (which) {
	case MAP_HITS:
	case MAP_COUNTERS:
	case MAP_TABLE:
	case MAP_STACKS:
	case MAP_FLIGHT:
	case MAP_FLIGHT_NUMBER:
	case MAP_ABOUT:
		return true;
	default:
		return false;
	}
}

/* A text of another length needs another map. */
static void drop_about(const struct engine *g, const char *path)
{
	autoclose int fd = bpf_obj_get(path);
	struct bpf_map_info info = {0};
	uint32_t len = sizeof(info);

	if (fd >= 0 && !bpf_obj_get_info_by_fd(fd, &info, &len) &&
	    info.value_size != bpf_map__value_size(map_of(g, MAP_ABOUT)))
		unlink(path);
}

/* Maps that are there already are taken, if they are alike. */
static int pin_maps(struct engine *g, const char *pin)
{
	for (unsigned i = 0; pin && i < MAPS; i++) {
		autofree char *path = NULL;
		int r;

		if (!engine_map_is_kept(i))
			continue;
		if (asprintf(&path, "%s/%s", pin, engine_map_names[i]) < 0)
			return -ENOMEM;
		if (i == MAP_ABOUT)
			drop_about(g, path);
		r = bpf_map__set_pin_path(map_of(g, i), path);
		if (r < 0)
			return r;
	}
	return 0;
}

static void choose_programs(struct engine *g)
{
	struct bpf_program *each;

	g->programs[PROGRAM_USER] =
		g->plan->sleeps ? g->skel->progs.ax_function_sleeping : g->skel->progs.ax_function;
	g->programs[PROGRAM_KERNEL] = g->skel->progs.ax_kernel_function;
	g->programs[PROGRAM_CLASSIC] = g->skel->progs.ax_tracepoint;
	g->programs[PROGRAM_RAW] = g->skel->progs.ax_raw_tracepoint;
	g->programs[PROGRAM_CLOCK] = g->skel->progs.ax_clock;
	g->programs[PROGRAM_FORGET] = g->skel->progs.ax_forget;
	g->programs[PROGRAM_RENUMBER] = g->skel->progs.ax_renumber;
	g->programs[PROGRAM_SELF] = g->skel->progs.ax_self;
	bpf_object__for_each_program (each, g->skel->obj)
		bpf_program__set_autoload(each, false);
	for (unsigned i = 0; i < PROGRAMS; i++)
		bpf_program__set_autoload(g->programs[i], g->uses[i]);
	if (g->user_multi)
		bpf_program__set_expected_attach_type(g->programs[PROGRAM_USER],
						      (enum bpf_attach_type)LINK_UPROBE_MULTI);
	if (g->kernel_multi)
		bpf_program__set_expected_attach_type(g->programs[PROGRAM_KERNEL],
						      BPF_TRACE_KPROBE_MULTI);
}

#define CODE_BIT(c) (UINT64_C(1) << (c))
/* Where compilers have variables. */
#define VARIABLE_CODES                                                              \
	(CODE_BIT(AX_CODE_CONST) | CODE_BIT(AX_CODE_CTX) | CODE_BIT(AX_CODE_USER) | \
	 CODE_BIT(AX_CODE_EXTEND) | CODE_BIT(AX_CODE_ADD) | CODE_BIT(AX_CODE_SUB) | \
	 CODE_BIT(AX_CODE_AND) | CODE_BIT(AX_CODE_SHL) | CODE_BIT(AX_CODE_SHR))

static void allow_later(const struct engine_plan *p, struct ax_probe_config *config)
{
	config->codes |= VARIABLE_CODES;
	config->actions |= p->actions;
	config->flags |= AX_PROBE_CHAINED;
	config->registers = ~UINT64_C(0);
	if (!p->any)
		return;
	config->codes = ~(p->stacks ? 0 : CODE_BIT(AX_CODE_STACK));
	config->actions |= 1u << AX_ACTION_ENTRY | 1u << AX_ACTION_LOOK;
	config->flags = ~(engine_keys_are_short(p) ? 0 : (uint32_t)AX_PROBE_QUICK);
}

/* Of a tracepoint's record they are none, which does no harm. */
static uint64_t registers_of(const struct ax_probe_op *op)
{
	return op->value / 8 < AX_PROBE_REGISTERS ? UINT64_C(1) << op->value / 8 : 0;
}

/* Half of the time to the first event would be the verifier's: it leaves out what is known to be
 * never used. */
static struct ax_probe_config config_of(const struct engine_plan *p)
{
	struct ax_probe_config config = p->config;

	for (size_t i = 0; i < p->n_ops; i++) {
		config.codes |= UINT64_C(1) << p->ops[i].code;
		if (p->ops[i].code == AX_CODE_CTX)
			config.registers |= registers_of(&p->ops[i]);
	}
	for (size_t i = 0; i < p->n_probes; i++) {
		config.actions |= 1u << p->probes[i].action;
		config.flags |= flags_of(p, &p->probes[i]);
	}
	if (p->later)
		allow_later(p, &config);
	config.short_keys = engine_keys_are_short(p);
	if (config.flags & (AX_PROBE_NESTED | AX_PROBE_STOPS) || config.thread_variables)
		engine_find_offsets(&config);
	return config;
}

/* The verifier gives up (EAGAIN) at a signal, and libbpf after five of them: a timer of the
 * caller's may tick more often than a busy machine takes to verify. */
static int load_undisturbed(struct interpreter *skel)
{
	sigset_t all, before;
	int r;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = interpreter__load(skel);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return r;
}

/* The kernel's own types are read whole by libbpf, which would be half of the time to the first
 * event and of the memory. Only copies of stacks need some of them. */
static const char *types_for(const struct engine_plan *p, struct few_types *types)
{
	return p->config.copies ? few_types_path(interpreter__elf_bytes, types)
				: few_types_none(types);
}

static int load_skeleton(struct engine *g, const struct engine_plan *p)
{
	CLEANUP(few_types_close) struct few_types types = FEW_TYPES_NONE;
	LIBBPF_OPTS(bpf_object_open_opts, opts, .btf_custom_path = types_for(p, &types));
	int r;

	g->skel = interpreter__open_opts(&opts);
	if (!g->skel)
		return -errno;
	*(struct ax_probe_config *)&g->skel->rodata->config = config_of(p);
	choose_programs(g);
	r = size_maps(g, p);
	if (r == 0 && p->config.tree)
		r = bpf_map__reuse_fd(map_of(g, MAP_TREE), p->tree);
	if (r == 0)
		r = pin_maps(g, p->pin);
	if (r == 0)
		r = load_undisturbed(g->skel);
	return r == 0 ? fill_maps(g, p) : r;
}

/* Of tracepoints, those of system calls are made by the kernel without raw ones. */
static enum engine_program program_for(const struct engine_site *s, bool raw)
{
	if (s->kind == SITE_USER)
		return PROGRAM_USER;
	if (s->kind == SITE_KERNEL)
		return PROGRAM_KERNEL;
	if (s->kind == SITE_SELF)
		return PROGRAM_SELF;
	if (s->kind == SITE_CLOCK)
		return PROGRAM_CLOCK;
	return raw && !s->has_fields && !streq(s->category, "syscalls") ? PROGRAM_RAW
									: PROGRAM_CLASSIC;
}

/* One program serves all tracepoints of a session. */
static void choose_methods(struct engine *g, const struct engine_plan *p, bool raw)
{
	memset(g->uses, 0, sizeof(g->uses));
	for (size_t i = 0; i < p->n_sites; i++)
		raw &= program_for(&p->sites[i], raw) != PROGRAM_CLASSIC;
	g->kernel_multi = true;
	for (size_t i = 0; i < p->n_sites; i++) {
		const struct engine_site *s = &p->sites[i];

		g->uses[program_for(s, raw)] = true;
		if (s->kind == SITE_KERNEL && (!s->name || s->offset))
			g->kernel_multi = false;
	}
	g->uses[PROGRAM_USER] |= p->later;
	g->uses[PROGRAM_FORGET] = p->config.thread_variables;
	g->uses[PROGRAM_RENUMBER] = p->config.thread_variables;
	g->user_multi = g->uses[PROGRAM_USER] && link_has_uprobe_multi();
	g->kernel_multi &= g->uses[PROGRAM_KERNEL] && link_has_kprobe_multi();
}

static int quiet(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	(void)level;
	(void)fmt;
	(void)ap;
	return 0;
}

static int load_by_method(struct engine *g, const struct engine_plan *p)
{
	libbpf_print_fn_t print = libbpf_set_print(quiet);
	int r;

	choose_methods(g, p, true);
	if (g->user_multi)
		link_expect_uprobes(&g->expecting);
	r = load_skeleton(g, p);
	if (r < 0 && g->uses[PROGRAM_RAW]) { /* cookies came with Linux 6.10 */
		interpreter__destroy(g->skel);
		choose_methods(g, p, false);
		r = load_skeleton(g, p);
	}
	libbpf_set_print(print);
	return r;
}

static int load_failed(int r, struct error *e)
{
	if (r == -EPERM)
		return error_set(e, r,
				 "loading the probes' program is not permitted: run ax as "
				 "root (or with CAP_BPF and CAP_PERFMON)");
	return error_set(e, r,
			 "loading the probes' program failed: %s ('ax doctor' tells what "
			 "the kernel lacks)",
			 strerror(-r));
}

int engine_load(const struct engine_plan *p, struct engine **ret, struct error *e)
{
	struct engine *g = calloc(1, sizeof(*g));
	int r = 0;

	if (!g)
		return error_set(e, -ENOMEM, "out of memory");
	g->plan = p;
	g->n_probes = p->n_probes;
	g->key_words = p->key_words;
	g->n_cpus = libbpf_num_possible_cpus();
	if (g->n_cpus < 0)
		r = error_set(e, g->n_cpus, "how many CPUs there may be cannot be told: %s",
			      strerror(-g->n_cpus));
	if (r == 0 && p->pin)
		r = engine_pin_directory(p->pin, e);
	if (r < 0) {
		engine_free(g);
		return r;
	}
	r = load_by_method(g, p);
	if (r == 0 && p->config.ordered)
		r = map_at_work(g);
	if (r == 0 && p->records && !p->config.flight_slots) {
		g->ring = ring_buffer__new(g->maps[MAP_RECORDS], on_ring, g, NULL);
		if (!g->ring)
			r = -errno;
	}
	if (r == 0 && p->config.copies)
		r = engine_copies_open(g);
	if (r == 0) {
		*ret = g;
		return 0;
	}
	engine_free(g);
	return load_failed(r, e);
}

int engine_attach(struct engine *g, struct error *e)
{
	libbpf_print_fn_t print = libbpf_set_print(quiet);
	int r = engine_attach_threads(g, e);

	if (r == 0)
		r = engine_attach_sites(g, 0, e);
	if (r == 0)
		*(volatile uint32_t *)&g->skel->bss->active = 1;
	if (r == 0 && g->plan->pin)
		r = engine_pin_links(g, e);
	libbpf_set_print(print);
	return r;
}

/* The verifier has not seen what was not to be used. */
static int check_seen(const struct engine *g, const struct engine_from *from, struct error *e)
{
	const struct ax_probe_config *seen = (const void *)&g->skel->rodata->config;
	const struct engine_plan *p = g->plan;
	bool known = true;

	for (size_t i = from->op; i < p->n_ops; i++)
		known &= seen->codes >> p->ops[i].code & 1;
	for (size_t i = from->probe; i < from->end; i++) {
		const struct ax_probe *a = &p->probes[i], *b = &p->probes[p->n_probes / 2 + i];

		known &= seen->actions >> a->action & 1 && !((a->flags | b->flags) & ~seen->flags);
		known &= !b->action || seen->actions >> b->action & 1;
	}
	return known ? 0
		     : error_set(e, -EPROTONOSUPPORT,
				 "it needs probes of another kind than at the start: start anew");
}

int engine_extend(struct engine *g, const struct engine_from *from, struct error *e)
{
	libbpf_print_fn_t print;
	int r = check_seen(g, from, e);

	if (r < 0)
		return r;
	print = libbpf_set_print(quiet);
	r = fill_from(g, from);
	if (r < 0)
		error_set(e, r, "the probes' program cannot be told of more: %s", strerror(-r));
	else
		r = engine_attach_sites(g, from->site, e);
	libbpf_set_print(print);
	return r;
}

void engine_detach(struct engine *g)
{
	if (g->skel) /* links end one after the other */
		*(volatile uint32_t *)&g->skel->bss->active = 0;
	if (g->plan && g->plan->pin)
		engine_disable(g->plan->pin);
	engine_close_links(g);
	/* Of the kinds of links only these go without waiting for programs that are running. With
	 * a grace period of RCU the sum of events is that of records. */
	if (g->uses[PROGRAM_RAW])
		syscall(__NR_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0);
}

void engine_free(struct engine *g)
{
	if (!g)
		return;
	engine_close_links(g);
	link_expected(&g->expecting);
	ring_buffer__free(g->ring);
	ring_buffer__free(g->copies);
	if (g->at_work)
		munmap((void *)g->at_work, n_at_work(g) * sizeof(*g->at_work));
	if (g->ring_pages)
		munmap((void *)g->ring_pages, ring_pages_size());
	if (g->skel)
		interpreter__destroy(g->skel);
	else
		for (unsigned i = 0; i < MAPS; i++)
			if (g->maps[i] > 0)
				close(g->maps[i]);
	free(g->link_fds);
	free(g->event_links);
	free(g->events);
	free(g->links);
	free(g->mappings);
	free(g);
}

int engine_run(struct engine *g, uint32_t probe)
{
	uint64_t ctx[1] = {probe};
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = ctx, .ctx_size_in = sizeof(ctx));

	return bpf_prog_test_run_opts(bpf_program__fd(g->programs[PROGRAM_SELF]), &opts);
}

/* The first page tells how far records were read, the second one how far they were written. */
static uint64_t ring_place(const struct engine *g, bool written)
{
	const char *page = g->ring_pages + (written ? ring_pages_size() / 2 : 0);

	return __atomic_load_n((const unsigned long *)page, __ATOMIC_ACQUIRE);
}

uint64_t engine_settled_ns(struct engine *g)
{
	uint64_t settled = time_mono_ns();

	if (!g->at_work)
		return 0;
	__sync_synchronize(); /* what begins behind this look has a later time */
	for (size_t i = 0; i < n_at_work(g); i++) {
		uint64_t since = __atomic_load_n(&g->at_work[i], __ATOMIC_ACQUIRE);

		if (since == AX_WORK_BEGINS)
			return 0;
		if (since && since < settled)
			settled = since;
	}
	g->settled_at = ring_place(g, true);
	return settled;
}

bool engine_has_settled(const struct engine *g)
{
	return g->at_work && ring_place(g, false) >= g->settled_at;
}

int engine_records(struct engine *g,
		   int (*f)(void *arg, const struct ax_probe_record *r, size_t len), void *arg)
{
	if (!g->ring)
		return 0;
	g->on_record = f;
	g->arg = arg;
	return ring_buffer__consume(g->ring);
}
