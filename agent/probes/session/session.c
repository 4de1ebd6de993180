// SPDX-License-Identifier: GPL-2.0-or-later
#include <sys/stat.h>

#include "probes/session/priv.h"

/* --- opening --- */

static void free_probes(struct session *s)
{
	for (size_t i = 0; i < s->n_probes; i++)
		fetch_free(&s->probes[i].fetch);
	session_free_dynamics(s);
	for (size_t i = 0; i < s->n_files; i++) {
		if (s->files[i].binary)
			binary_close(s->files[i].binary);
		if (s->files[i].dwarf)
			dwarf_free(s->files[i].dwarf);
		free(s->files[i].name);
	}
	if (s->btf)
		btf_types_free(s->btf);
	if (s->given)
		given_types_free(s->given);
	strv_free(&s->names);
	strv_free(&s->texts_kept);
	fetch_texts_free(&s->texts);
	free(s->probes);
	free(s->sites);
}

void session_close(struct session *s)
{
	engine_free(s->engine);
	if (s->follow)
		follow_close(s->follow);
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
	if (!n || n > SESSION_SCRIPT_MAX)
		return error_set(e, -E2BIG, "expected at most %d probes at a time",
				 SESSION_SCRIPT_MAX);
	for (size_t i = 0; i < n; i++) {
		int r = check_part(&parts[i], e);

		if (r < 0)
			return r;
		s->tables |= parts[i].table;
		if (is_table(parts[i].action) && !parts[i].table && s->table_part >= 0)
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
	s->in_order = o->script;
	r = add_parts(s, parts, n, e);
	if (r == 0 && o->types)
		r = given_types_open(o->types, &s->given, e);
	if (r == 0)
		r = session_resolve(s, e);
	if (r < 0)
		return r;
	s->room = s->n_probes;
	*ret = take_ptr(&s);
	return 0;
}

size_t session_max_probes(const struct session *s)
{
	return s->room > s->n_probes ? s->room : s->n_probes;
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
	if (probe >= s->n_probes)
		probe = 0;
	/* what was left out fetches nothing */
	for (size_t i = 0; i < s->n_probes; i++) {
		const struct session_probe *p = &s->probes[(probe + i) % s->n_probes];

		if (p->attached)
			return &p->fetch;
	}
	return &s->probes[0].fetch;
}

struct trace_buckets session_buckets(const struct session *s)
{
	return s->parts[0].buckets;
}

const char *session_method(const struct session *s)
{
	return s->engine ? engine_method(s->engine) : "";
}

size_t session_n_places(const struct session *s)
{
	return s->n_places;
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
	case TRACE_SET:
		return AX_ACTION_SET;
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

/* Two probes that a time is between have the session's number, which no pair of an entry and its
 * return has: a probe may have both. */
static uint32_t timer_of(const struct session_part *part)
{
	return UINT32_MAX - part->timer;
}

static uint32_t flags_of(const struct session *s, const struct session_probe *p)
{
	const struct session_part *part = &s->parts[p->part];
	uint32_t flags = 0;

	if (p->fetch.paired)
		flags |= AX_PROBE_PAIRED;
	/* (who counts from below 0 on means a signed one, whatever its type says) */
	if (part->buckets.least < 0 ||
	    (p->fetch.n_values &&
	     (p->fetch.values[0].type == VALUE_SIGNED || p->fetch.values[0].type == VALUE_ERRNO)))
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
	if (part->stops)
		flags |= AX_PROBE_STOPS;
	if (part->follows)
		flags |= AX_PROBE_FOLLOWS;
	if (part->anywhere)
		flags |= AX_PROBE_ANYWHERE;
	if (part->action == TRACE_HIST)
		flags |= AX_PROBE_ONLY_COUNTS;
	return flags;
}

static bool fills_table(const struct session *s, const struct session_probe *p)
{
	return s->tables ? is_table(s->parts[p->part].action) : (int)p->part == s->table_part;
}

/* Of its key: with the table's number. */
static uint32_t own_words(const struct session *s, const struct session_probe *p)
{
	return p->fetch.key_words + s->tables;
}

/* Words of the table's keys that this probe does not fill, since others of its part have longer
 * ones (a text where it has a number). */
static uint32_t key_padding(const struct session *s, const struct session_probe *p)
{
	return fills_table(s, p) ? s->key_words - own_words(s, p) : 0;
}

static void add_zero(struct session *s, uint32_t word, struct ax_probe *d)
{
	s->ops[s->plan.n_ops++] = (struct ax_probe_op){
		.code = AX_CODE_CONST, .flags = AX_OP_KEY, .size = 8, .to = (uint8_t)word};
	d->n_ops++;
}

static void add_padding(struct session *s, const struct session_probe *p, struct ax_probe *d)
{
	uint32_t n = key_padding(s, p);

	for (uint32_t i = 0; i < n; i++)
		if (!s->tables || own_words(s, p) + i >= AX_PROBE_KEY_SHORT)
			add_zero(s, own_words(s, p) + i, d);
	d->key_words += n;
}

static bool is_of_key(const struct ax_probe_op *op)
{
	return op->flags & AX_OP_KEY || op->code == AX_CODE_KEY_STRING ||
	       op->code == AX_CODE_KEY_COMM;
}

/* The key that the probe makes comes behind the number of its table. */
static void add_table(struct session *s, const struct session_probe *p, struct ax_probe *d)
{
	uint32_t at = d->n_ops;

	if (!s->tables || !fills_table(s, p))
		return;
	for (uint32_t i = 0; i < d->n_ops; i++)
		if (is_of_key(&s->ops[d->first_op + i]))
			s->ops[d->first_op + i].to++;
	while (at && s->ops[d->first_op + at - 1].code != AX_CODE_FILTER)
		at--;
	memmove(&s->ops[d->first_op + at + 1], &s->ops[d->first_op + at],
		(d->n_ops - at) * sizeof(*s->ops));
	s->ops[d->first_op + at] = (struct ax_probe_op){
		.code = AX_CODE_TABLE, .size = 8, .value = s->parts[p->part].table};
	s->plan.n_ops++;
	d->n_ops++;
	d->key_words++;
}

/* Its return is told by the kernel, which gives up where calls are nested too deeply. */
static bool is_nested(const struct session *s, const struct session_probe *p)
{
	return p->is_return && s->parts[p->part].spec->kind == PROBE_URETPROBE;
}

/* A probe on the function's entry belongs to it. */
static bool has_entry(const struct session *s, const struct session_probe *p)
{
	bool nested = is_nested(s, p) && !s->parts[p->part].follows;

	return (p->fetch.paired || nested) && &s->probes[p->entry_of] == p;
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
		.pair = p->entry_of,
		.timer = timer_of(part),
		.n_buckets = part->buckets.n,
		.when = part->when,
		.state = part->state,
		.least = part->buckets.least,
		.step = part->buckets.step,
	};
	add_ops(s, p->fetch.ops, p->fetch.n_ops, d);
	add_table(s, p, d);
	add_padding(s, p, d);
	if (!has_entry(s, p))
		return;
	d = &s->descriptions[s->room + i];
	*d = (struct ax_probe){
		.action = p->fetch.paired ? AX_ACTION_ENTRY : AX_ACTION_LOOK,
		.pair = (uint32_t)i,
		.when = part->when,
		.flags = (p->go ? AX_PROBE_GO : 0) | (part->per_thread ? AX_PROBE_PER_THREAD : 0) |
			 (part->anywhere ? AX_PROBE_ANYWHERE : 0) |
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
	site->probe = (uint32_t)(s->room + i);
	/* of several returns the place is that of one; sites have the function's own beginning */
	if (p->placed && p->is_return)
		site->offset = p->place.offset;
}

uint32_t session_key_words_of(const struct session *s, size_t i)
{
	return fills_table(s, &s->probes[i]) ? own_words(s, &s->probes[i]) : 0;
}

size_t session_ops_of(const struct session *s, size_t i)
{
	const struct session_probe *p = &s->probes[i];

	return p->fetch.n_ops + p->fetch.n_entry_ops + key_padding(s, p) + 1;
}

/* What is behind `by` in a file that nobody has yet may be numbers or texts. */
static uint32_t most_key_words(const struct session *s, const struct session_part *part)
{
	size_t n = part->spec->n_by + (part->action == TRACE_COUNT ? part->spec->n_args : 0);
	size_t words = n * (AX_PROBE_KEY_TEXT / 8) + 2 + s->tables;

	if (!n || !is_table(part->action))
		return is_table(part->action) ? s->tables : 0;
	return words < AX_PROBE_KEY - 1 ? (uint32_t)words : AX_PROBE_KEY - 2;
}

static int allocate(struct session *s)
{
	size_t n_ops = 1;

	for (size_t i = 0; i < s->n_probes; i++)
		if (session_key_words_of(s, i) > s->key_words)
			s->key_words = session_key_words_of(s, i);
	for (size_t i = 0; i < s->n_parts; i++)
		if (session_waits(s, (uint32_t)i) && most_key_words(s, &s->parts[i]) > s->key_words)
			s->key_words = most_key_words(s, &s->parts[i]);
	for (size_t i = 0; i < s->n_probes; i++)
		n_ops += session_ops_of(s, i);
	if (s->options.follow)
		session_make_room(s, &n_ops);
	s->descriptions = calloc(2 * s->room + 1, sizeof(*s->descriptions));
	s->ops = calloc(n_ops, sizeof(*s->ops));
	s->all_sites = calloc(2 * s->room + 1, sizeof(*s->all_sites));
	return s->descriptions && s->ops && s->all_sites ? 0 : -ENOMEM;
}

static void needs_of_part(struct session *s, const struct session_part *part)
{
	struct engine_plan *plan = &s->plan;

	plan->actions |= 1u << action_of(part);
	plan->paired |= part->between;
	plan->states |= part->per_thread && part->state;
	plan->records |= part->action == TRACE_WATCH || part->action == TRACE_PRINT;
	plan->maps |= part->kind == VARIABLE_MAP;
	plan->texts_set |=
		part->variable && variable_is_text(&s->options.texts, part->kind, part->variable);
	if (part->kind == VARIABLE_THREAD && part->variable > plan->config.thread_variables)
		plan->config.thread_variables = part->variable;
}

static void needs_of(struct session *s, const struct session_probe *p)
{
	s->plan.paired |= p->fetch.paired;
	s->plan.stacks |= p->fetch.needs_stacks;
	s->plan.config.copies |= p->fetch.needs_copies && !s->options.frame_pointers;
}

static bool reads_memory(uint8_t code)
{
	switch (code) {
	case AX_CODE_USER:
	case AX_CODE_TEXT_EQ:
	case AX_CODE_STRING:
	case AX_CODE_BUFFER:
	case AX_CODE_KEY_STRING:
	case AX_CODE_SET_TEXT:
	case AX_CODE_TEXT_EQ_LONG:
	case AX_CODE_STRING_LONG:
	case AX_CODE_KEY_STRING_LONG:
		return true;
	default:
		return false;
	}
}

/* Programs that may sleep are for functions of programs, and take no call stacks. (6.0) */
static bool can_sleep(const struct session *s)
{
	bool reads = s->plan.later, user = s->plan.later;

	for (size_t i = 0; i < s->n_probes; i++)
		user |= s->sites[i].kind == SITE_USER;
	for (size_t i = 0; i < s->plan.n_ops; i++)
		reads |= reads_memory(s->ops[i].code);
	return user && reads && !s->plan.stacks;
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

void session_plan_probe(struct session *s, size_t i)
{
	describe(s, i);
	needs_of(s, &s->probes[i]);
	if (s->probes[i].attached)
		add_sites(s, i);
}

/* Whose events they are. */
static void plan_scope(struct session *s)
{
	const struct session_options *o = &s->options;
	struct engine_plan *p = &s->plan;
	bool tree = o->pid && (o->follow || o->n_pids > 1);

	p->config.pid = tree ? 0 : (uint32_t)o->pid;
	p->pid = tree ? 0 : o->pid;
	p->config.tree = tree;
	p->tree = tree ? follow_tree(s->follow) : -1;
	p->config.scope = o->scope;
	find_pid_namespace(&p->config);
}

static void plan_records(struct session *s)
{
	struct engine_plan *p = &s->plan;

	p->config.ordered = s->in_order && p->records;
	p->config.copies &= p->records && !s->options.flight && !s->options.pin;
	p->ring_bytes = s->options.ring_bytes;
	p->config.flight_slots = s->options.flight;
	p->config.flight_bytes = s->options.flight ? SESSION_FLIGHT_BYTES : 0;
	p->pin = s->options.pin;
	p->about = s->about;
}

static int make_plan(struct session *s)
{
	struct engine_plan *p = &s->plan;
	bool entries = p->later, buckets = false, stats = false;

	p->key_words = s->key_words;
	for (size_t i = 0; i < s->n_probes; i++) {
		session_plan_probe(s, i);
		entries |= has_entry(s, &s->probes[i]);
	}
	for (size_t i = 0; i < s->n_parts; i++) {
		needs_of_part(s, &s->parts[i]);
		buckets |= s->parts[i].action == TRACE_HIST || s->parts[i].action == TRACE_LATENCY;
		stats |= s->parts[i].action == TRACE_STATS;
	}
	if (buckets)
		p->key_words++;
	else if (stats && !p->key_words)
		p->key_words = 1; /* a key there must be, all of it 0 */
	p->probes = s->descriptions;
	p->n_probes = (entries ? 2 : 1) * s->room;
	p->n_used = s->n_probes;
	p->ops = s->ops;
	p->texts = s->texts.v;
	p->n_texts = s->texts.n;
	p->sites = s->all_sites;
	p->sleeps = can_sleep(s);
	plan_scope(s);
	plan_records(s);
	return session_chain(s, 0);
}

/* --- attaching --- */

/* What is refused is left out, but not everything may be. */
int session_check(const struct session *s, struct error *e)
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
		if (!some && session_waits(s, (uint32_t)part))
			continue;
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

int session_load(struct session *s, struct error *e)
{
	int r = session_check(s, e);

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
	r = session_open_follow(s, e);
	if (r < 0)
		return r;
	if (allocate(s) < 0 || make_plan(s) < 0)
		return error_set(e, -ENOMEM, "out of memory");
	return engine_load(&s->plan, &s->engine, e);
}

int session_attach(struct session *s, struct error *e)
{
	int r = s->engine ? 0 : session_load(s, e);

	if (r == 0 && !s->options.disabled)
		r = engine_attach(s->engine, e);
	/* behind probes on what it looks at, who are to know that a process was followed */
	return r < 0 || !s->follow ? r : session_attach_follow(s, e);
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

int session_run(struct session *s, uint32_t part)
{
	for (size_t i = 0; i < s->n_probes; i++)
		if (s->probes[i].part == part)
			return engine_run(s->engine, (uint32_t)i);
	return -ENOENT;
}

void session_detach(struct session *s)
{
	if (s->engine)
		engine_detach(s->engine);
}

uint64_t session_settled_ns(struct session *s)
{
	return engine_settled_ns(s->engine);
}

bool session_has_settled(const struct session *s)
{
	return engine_has_settled(s->engine);
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

int session_stack_copies(struct session *s, int (*f)(void *arg, const struct ax_stack_copy *c),
			 void *arg)
{
	return s->engine ? engine_stack_copies(s->engine, f, arg) : 0;
}
