// SPDX-License-Identifier: GPL-2.0-or-later
#include <sys/stat.h>

#include "probes/session/priv.h"

/* --- opening --- */

static void free_probes(struct session *s)
{
	for (size_t i = 0; i < s->n_probes; i++)
		fetch_free(&s->probes[i].fetch);
	for (size_t i = 0; i < s->n_files; i++) {
		if (s->files[i].binary)
			binary_close(s->files[i].binary);
		if (s->files[i].dwarf)
			dwarf_free(s->files[i].dwarf);
		free(s->files[i].name);
	}
	if (s->btf)
		btf_types_free(s->btf);
	strv_free(&s->names);
	strv_free(&s->texts_kept);
	fetch_texts_free(&s->texts);
	free(s->probes);
	free(s->sites);
}

void session_close(struct session *s)
{
	engine_free(s->engine);
	free_probes(s);
	free(s->descriptions);
	free(s->ops);
	free(s->all_sites);
	free(s->about);
	free(s);
}

static bool is_table(enum trace_action a)
{
	return a == TRACE_COUNT || a == TRACE_HIST || a == TRACE_STATS || a == TRACE_LATENCY;
}

static int check_part(const struct session_part *p, struct error *e)
{
	if (p->action == TRACE_LATENCY && !p->between && p->spec->kind != PROBE_URETPROBE &&
	    p->spec->kind != PROBE_KRETPROBE)
		return error_set(
			e, -EINVAL,
			"latency is the time between a function's entry and its return: "
			"expected a uretprobe or kretprobe, or two probes, as in 'PROBE to "
			"PROBE'");
	if (p->when >= AX_PROBE_STATES || p->state >= AX_PROBE_STATES)
		return error_set(e, -E2BIG, "expected at most %d states", AX_PROBE_STATES - 1);
	return 0;
}

static int add_parts(struct session *s, const struct session_part *parts, size_t n, struct error *e)
{
	s->table_part = -1;
	if (!n || n > SESSION_PARTS_MAX)
		return error_set(e, -E2BIG, "expected at most %d probes at a time",
				 SESSION_PARTS_MAX);
	for (size_t i = 0; i < n; i++) {
		int r = check_part(&parts[i], e);

		if (r < 0)
			return r;
		if (is_table(parts[i].action) && s->table_part >= 0)
			return error_set(e, -EINVAL, "expected one probe that counts");
		if (is_table(parts[i].action))
			s->table_part = (int)i;
		s->parts[i] = parts[i];
		s->parts[i].buckets.fine =
			parts[i].action == TRACE_LATENCY && !parts[i].buckets.step;
	}
	s->n_parts = n;
	return 0;
}

int session_open(const struct session_part *parts, size_t n, const struct session_options *o,
		 struct session **ret, struct error *e)
{
	CLEANUP(session_closep) struct session *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return error_set(e, -ENOMEM, "out of memory");
	s->options = *o;
	r = add_parts(s, parts, n, e);
	if (r == 0)
		r = session_resolve(s, e);
	if (r < 0)
		return r;
	*ret = take_ptr(&s);
	return 0;
}

size_t session_n_probes(const struct session *s)
{
	return s->n_probes;
}

const struct session_probe *session_probe(const struct session *s, size_t i)
{
	return &s->probes[i];
}

size_t session_n_names(const struct session *s)
{
	return s->names.n;
}

const char *session_name(const struct session *s, size_t i)
{
	return i < s->names.n ? s->names.v[i] : "?";
}

const char *session_path(const struct session *s, const struct session_probe *p)
{
	return s->sites ? s->sites[p - s->probes].path : NULL;
}

/* The probes on entries, which make no records, come behind those that the text names. */
const struct fetch *session_fetch(const struct session *s, uint32_t probe)
{
	return &s->probes[probe < s->n_probes ? probe : 0].fetch;
}

struct trace_buckets session_buckets(const struct session *s)
{
	return s->parts[0].buckets;
}

const char *session_method(const struct session *s)
{
	return s->engine ? engine_method(s->engine) : "";
}

/* --- the plan --- */

/* What the part makes of what happens. */
static enum ax_probe_action action_of(const struct session_part *p)
{
	switch (p->action) {
	case TRACE_COUNT:
		return AX_ACTION_COUNT;
	case TRACE_HIST:
	case TRACE_LATENCY:
		return p->buckets.step ? AX_ACTION_LINEAR : AX_ACTION_LOG2;
	case TRACE_STATS:
		return AX_ACTION_STATS;
	case TRACE_ARM:
		return AX_ACTION_ARM;
	case TRACE_DISARM:
		return AX_ACTION_DISARM;
	case TRACE_START:
		return AX_ACTION_START;
	default:
		return AX_ACTION_RECORD;
	}
}

static void add_ops(struct session *s, const struct ax_probe_op *v, size_t n, struct ax_probe *d)
{
	d->first_op = (uint32_t)s->plan.n_ops;
	d->n_ops = (uint32_t)n;
	if (n)
		memcpy(s->ops + s->plan.n_ops, v, n * sizeof(*v));
	s->plan.n_ops += n;
}

/* Two probes that a time is between have the session's number, others their own. */
static uint32_t pair_of(const struct session *s, const struct session_probe *p)
{
	const struct session_part *part = &s->parts[p->part];

	return part->between || part->action == TRACE_START ? UINT32_MAX : p->entry_of;
}

static uint32_t flags_of(const struct session *s, const struct session_probe *p)
{
	const struct session_part *part = &s->parts[p->part];
	uint32_t flags = 0;

	if (p->fetch.paired)
		flags |= AX_PROBE_PAIRED;
	if (p->fetch.n_values && p->fetch.values[0].type == VALUE_SIGNED)
		flags |= AX_PROBE_SIGNED;
	if (part->spec->kind == PROBE_URETPROBE || part->spec->kind == PROBE_KRETPROBE)
		flags |= AX_PROBE_RETURN;
	if (p->is_return)
		flags |= AX_PROBE_POPPED;
	if (p->go)
		flags |= AX_PROBE_GO;
	if (part->per_thread)
		flags |= AX_PROBE_PER_THREAD;
	if (!part->on)
		flags |= AX_PROBE_BY_THREAD;
	if (part->buckets.fine)
		flags |= AX_PROBE_FINE;
	return flags;
}

/* Words of the table's keys that this probe does not fill, since others of its part have longer
 * ones (a text where it has a number). */
static uint32_t key_padding(const struct session *s, const struct session_probe *p)
{
	return (int)p->part == s->table_part ? s->key_words - p->fetch.key_words : 0;
}

static void add_padding(struct session *s, const struct session_probe *p, struct ax_probe *d)
{
	uint32_t n = key_padding(s, p);

	for (uint32_t i = 0; i < n; i++)
		s->ops[s->plan.n_ops++] = (struct ax_probe_op){
			.code = AX_CODE_CONST,
			.flags = AX_OP_KEY,
			.size = 8,
			.to = (uint8_t)(p->fetch.key_words + i),
		};
	d->n_ops += n;
	d->key_words += n;
}

/* Its return is told by the kernel, which gives up where calls are nested too deeply. */
static bool is_nested(const struct session *s, const struct session_probe *p)
{
	return p->is_return && s->parts[p->part].spec->kind == PROBE_URETPROBE;
}

/* A probe on the function's entry belongs to it. */
static bool has_entry(const struct session *s, const struct session_probe *p)
{
	return (p->fetch.paired || is_nested(s, p)) && &s->probes[p->entry_of] == p;
}

static void describe(struct session *s, size_t i)
{
	const struct session_probe *p = &s->probes[i];
	const struct session_part *part = &s->parts[p->part];
	struct ax_probe *d = &s->descriptions[i];

	*d = (struct ax_probe){
		.action = action_of(part),
		.flags = flags_of(s, p),
		.n_values = (uint32_t)(p->fetch.n_values + p->fetch.n_hidden),
		.key_words = p->fetch.key_words,
		.pair = pair_of(s, p),
		.n_buckets = part->buckets.n,
		.when = part->when,
		.state = part->state,
		.least = part->buckets.least,
		.step = part->buckets.step,
	};
	add_ops(s, p->fetch.ops, p->fetch.n_ops, d);
	add_padding(s, p, d);
	if (!has_entry(s, p))
		return;
	d = &s->descriptions[s->n_probes + i];
	*d = (struct ax_probe){
		.action = p->fetch.paired ? AX_ACTION_ENTRY : AX_ACTION_LOOK,
		.pair = (uint32_t)i,
		.when = part->when,
		.flags = (p->go ? AX_PROBE_GO : 0) | (part->per_thread ? AX_PROBE_PER_THREAD : 0) |
			 (is_nested(s, p) ? AX_PROBE_NESTED : 0),
	};
	add_ops(s, p->fetch.entry_ops, p->fetch.n_entry_ops, d);
}

static void add_sites(struct session *s, size_t i)
{
	const struct session_probe *p = &s->probes[i];
	struct engine_site *site = &s->all_sites[s->plan.n_sites++];

	*site = s->sites[i];
	site->probe = (uint32_t)i;
	site->is_return = p->is_return;
	site->has_fields = p->fetch.needs_fields;
	if (p->placed)
		site->offset = p->place.offset;
	if (!has_entry(s, p))
		return;
	site = &s->all_sites[s->plan.n_sites++];
	*site = s->sites[i];
	site->is_return = false;
	site->is_optional = !p->fetch.paired;
	site->probe = (uint32_t)(s->n_probes + i);
	/* of several returns the place is that of one; sites have the function's own beginning */
	if (p->placed && p->is_return)
		site->offset = p->place.offset;
}

static int allocate(struct session *s)
{
	size_t n_ops = 1;

	for (size_t i = 0; i < s->n_probes; i++)
		if ((int)s->probes[i].part == s->table_part &&
		    s->probes[i].fetch.key_words > s->key_words)
			s->key_words = s->probes[i].fetch.key_words;
	for (size_t i = 0; i < s->n_probes; i++)
		n_ops += s->probes[i].fetch.n_ops + s->probes[i].fetch.n_entry_ops +
			 key_padding(s, &s->probes[i]);
	s->descriptions = calloc(2 * s->n_probes, sizeof(*s->descriptions));
	s->ops = calloc(n_ops, sizeof(*s->ops));
	s->all_sites = calloc(2 * s->n_probes, sizeof(*s->all_sites));
	return s->descriptions && s->ops && s->all_sites ? 0 : -ENOMEM;
}

static void needs_of(struct session *s, const struct session_probe *p)
{
	const struct session_part *part = &s->parts[p->part];
	struct engine_plan *plan = &s->plan;

	plan->paired |= p->fetch.paired || part->between;
	plan->stacks |= p->fetch.needs_stacks;
	plan->states |= part->per_thread && part->state;
	plan->records |= part->action == TRACE_WATCH;
}

/* Programs that may sleep are for functions of programs alone, and take no call stacks. (6.0) */
static bool can_sleep(const struct session *s)
{
	bool reads = false;

	for (size_t i = 0; i < s->n_probes; i++)
		if (s->sites[i].kind != SITE_USER)
			return false;
	for (size_t i = 0; i < s->plan.n_ops; i++)
		reads |= s->ops[i].code == AX_CODE_USER || s->ops[i].code >= AX_CODE_TEXT_EQ;
	return reads && !s->plan.stacks;
}

/* In a container, -p and the numbers that are shown are those of its own pid namespace. */
static void find_pid_namespace(struct ax_probe_config *c)
{
	const ino_t first = 0xeffffffcu; /* PROC_PID_INIT_INO of the kernel */
	struct stat st;

	if (stat("/proc/self/ns/pid", &st) || st.st_ino == first)
		return;
	c->pidns_device = st.st_dev;
	c->pidns_number = st.st_ino;
}

static int make_plan(struct session *s)
{
	struct engine_plan *p = &s->plan;
	const struct session_part *table = s->table_part < 0 ? NULL : &s->parts[s->table_part];
	bool entries = false;

	p->key_words = s->key_words;
	for (size_t i = 0; i < s->n_probes; i++) {
		describe(s, i);
		needs_of(s, &s->probes[i]);
		entries |= has_entry(s, &s->probes[i]);
		if (s->probes[i].attached)
			add_sites(s, i);
	}
	if (table && (table->action == TRACE_HIST || table->action == TRACE_LATENCY))
		p->key_words++;
	else if (table && table->action == TRACE_STATS && !p->key_words)
		p->key_words = 1; /* a key there must be, all of it 0 */
	p->probes = s->descriptions;
	p->n_probes = (entries ? 2 : 1) * s->n_probes;
	p->ops = s->ops;
	p->texts = s->texts.v;
	p->n_texts = s->texts.n;
	p->config = (struct ax_probe_config){.pid = (uint32_t)s->options.pid,
					     .cgroup_level = s->options.cgroup_level,
					     .cgroup = s->options.cgroup,
					     .flight_slots = s->options.flight,
					     .flight_bytes =
						     s->options.flight ? SESSION_FLIGHT_BYTES : 0};
	find_pid_namespace(&p->config);
	p->pid = s->options.pid;
	p->sites = s->all_sites;
	p->sleeps = can_sleep(s);
	p->pin = s->options.pin;
	p->about = s->about;
	return session_chain(s);
}

/* --- attaching --- */

/* What is refused is left out, but not everything may be. */
static int check_refused(const struct session *s, struct error *e)
{
	for (size_t part = 0; part < s->n_parts; part++) {
		const struct session_probe *refused = NULL;
		bool some = false;

		for (size_t i = 0; i < s->n_probes; i++)
			if (s->probes[i].part == part) {
				some |= s->probes[i].attached;
				if (!s->probes[i].attached)
					refused = &s->probes[i];
			}
		if (!some && refused)
			return error_set(
				e, -ENOTSUP, "%.80s cannot be probed at 0x%llx%s%s%s: %s",
				session_name(s, refused->name),
				(unsigned long long)refused->place.offset,
				*refused->place.instruction ? " (" : "", refused->place.instruction,
				*refused->place.instruction ? ")" : "", refused->place.why);
		if (!some)
			return error_set(e, -ENOENT, "there is nothing to probe%s",
					 s->parts[part].spec->kind == PROBE_URETPROBE
						 ? ": no function that matches has a return"
						 : "");
	}
	return 0;
}

int session_attach(struct session *s, struct error *e)
{
	int r = check_refused(s, e);

	if (r < 0)
		return r;
	if (s->options.pin) {
		s->about = session_about(s);
		if (!s->about)
			return error_set(e, -ENOMEM, "out of memory");
		if (strlen(s->about) >= ENGINE_ABOUT_MAX)
			return error_set(e, -E2BIG,
					 "this names %zu places, too many to keep: narrow it down",
					 s->n_probes);
	}
	if (allocate(s) < 0 || make_plan(s) < 0)
		return error_set(e, -ENOMEM, "out of memory");
	r = engine_load(&s->plan, &s->engine, e);
	return r < 0 || s->options.disabled ? r : engine_attach(s->engine, e);
}

int session_symbolise(struct session *s, uint32_t probe, uint64_t hit, uint64_t *address,
		      struct symbol *ret)
{
	const struct session_probe *p = &s->probes[probe < s->n_probes ? probe : 0];

	for (size_t i = 0; i < s->n_files; i++)
		if (p->placed && s->sites && s->files[i].binary &&
		    streq(binary_path(s->files[i].binary), s->sites[p - s->probes].path))
			return binary_symbolise_near(s->files[i].binary, p->place.offset, hit,
						     address, ret);
	return -ENOENT;
}

void session_detach(struct session *s)
{
	if (s->engine)
		engine_detach(s->engine);
}

int session_records(struct session *s, session_record_fn f, void *arg)
{
	return engine_records(s->engine, f, arg);
}

struct flight {
	struct session *s;
	int (*f)(void *arg, const struct ax_probe_record *r, size_t len, size_t full_len);
	void *arg;
};

static bool is_bytes(const struct fetch_shown *shown)
{
	return shown->type == VALUE_STRING || shown->type == VALUE_BUFFER;
}

/* What was cut off with the record's end is not there to be shown. */
static int on_kept(void *arg, const struct ax_probe_record *kept, size_t len, size_t full_len)
{
	const struct flight *flight = arg;
	const struct fetch *fetch = session_fetch(flight->s, kept->probe);
	autofree struct ax_probe_record *r = NULL;

	if (len >= full_len)
		return flight->f(flight->arg, kept, len, full_len);
	r = malloc(len);
	if (!r)
		return -ENOMEM;
	memcpy(r, kept, len);
	for (size_t i = 0; i < r->n_values && i < fetch->n_values; i++) {
		uint32_t off = AX_BYTES_OFF(r->values[i]), n = AX_BYTES_LEN(r->values[i]);

		if (!is_bytes(&fetch->values[i]) || (off <= len && n <= len - off))
			continue;
		if (off >= len)
			r->faults |= 1u << i;
		else
			r->values[i] = (uint64_t)off << 32 | (len - off);
	}
	return flight->f(flight->arg, r, len, full_len);
}

int session_flight(struct session *s,
		   int (*f)(void *arg, const struct ax_probe_record *r, size_t len,
			    size_t full_len),
		   void *arg, uint64_t *seen)
{
	struct flight flight = {.s = s, .f = f, .arg = arg};

	return engine_flight(s->engine, on_kept, &flight, seen);
}

int session_stack(struct session *s, uint64_t id, uint64_t *addresses, size_t max)
{
	return s->engine ? engine_stack(s->engine, id, addresses, max) : -ENOENT;
}
