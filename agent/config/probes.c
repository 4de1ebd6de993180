// SPDX-License-Identifier: GPL-2.0-or-later
/* The config's section probes:, and what can be said of a named probe without a look at the
 * machine. */
#include "base/values.h"
#include "config/probes.h"
#include "config/read.h"
#include "probes/text/action.h"
#include "probes/text/latency.h"

/* --- values --- */

/* They are directories of a bpf filesystem, which takes no dots. */
int config_probe_check_name(const char *name, struct error *e)
{
	size_t n = strlen(name);

	if (n && n <= CONFIG_PROBE_NAME_MAX &&
	    strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == n)
		return 0;
	return error_set(e, -EINVAL,
			 "'%.80s' is no name for a probe: expected 1 to %d letters, digits, '_' "
			 "or '-'",
			 name, CONFIG_PROBE_NAME_MAX);
}

static const char *const action_names[] = {
	[TRACE_WATCH] = "watch", [TRACE_COUNT] = "count",     [TRACE_HIST] = "hist",
	[TRACE_STATS] = "stats", [TRACE_LATENCY] = "latency",
};
#define ACTIONS "watch, count, hist, stats or latency"

const char *config_probe_action_name(uint32_t action)
{
	return action < ARRAY_SIZE(action_names) ? action_names[action] : "?";
}

int config_probe_parse_action(const char *s, uint32_t *ret, struct error *e)
{
	for (uint32_t i = 0; i < ARRAY_SIZE(action_names); i++) {
		if (streq(s, action_names[i])) {
			*ret = i;
			return 0;
		}
	}
	return error_set(e, -EINVAL, "'%.60s' is no action of probes: expected " ACTIONS, s);
}

int config_probe_parse_linear(const char *s, int64_t ret[3], struct error *e)
{
	long long least, most, step;
	int end = 0;

	if (sscanf(s, "%lld,%lld,%lld%n", &least, &most, &step, &end) != 3 || s[end] ||
	    least >= most || step <= 0 ||
	    ((unsigned long long)most - (unsigned long long)least) / (unsigned long long)step >=
		    TRACE_BUCKETS_MAX)
		return error_set(e, -EINVAL,
				 "'%.60s' are no linear buckets: expected LEAST,GREATEST,STEP with "
				 "at most %d steps, as in 0,100,10",
				 s, TRACE_BUCKETS_MAX);
	ret[0] = least;
	ret[1] = most;
	ret[2] = step;
	return 0;
}

/* Probes are attached again by others, who are in other directories. */
static int make_absolute(struct probe_spec *spec, const char *dir, struct error *e)
{
	char *path;

	if (!spec->file || spec->file[0] == '/' || !strchr(spec->file, '/'))
		return 0;
	if (!dir)
		return error_set(e, -EINVAL,
				 "'%.200s' may be another file for the agent: expected an absolute "
				 "path, or the name of a program or library",
				 spec->file);
	if (asprintf(&path, "%s/%s", dir, spec->file) < 0)
		return error_set(e, -ENOMEM, "out of memory");
	free(spec->file);
	spec->file = path;
	return 0;
}

static int make_latency_absolute(struct latency *l, const char *dir, struct error *e)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(l->specs); i++) {
		r = make_absolute(&l->specs[i], dir, e);
		r = r ? r : make_absolute(&l->on[i], dir, e);
	}
	return r;
}

/* Parses and makes canonical; the spec is the caller's. */
static int take_text(char **text, const char *dir, struct probe_spec *spec, struct error *e)
{
	char *canonical;
	int r = probe_parse(*text, spec, e);

	r = r < 0 ? r : make_absolute(spec, dir, e);
	if (r < 0)
		return r;
	canonical = probe_format(spec);
	if (!canonical)
		return error_set(e, -ENOMEM, "out of memory");
	free(*text);
	*text = canonical;
	return 0;
}

static int check_arming(char **text, const char *dir, struct error *e)
{
	CLEANUP(probe_spec_free) struct probe_spec spec = {0};
	int r = take_text(text, dir, &spec, e);

	if (r == 0 && (spec.n_args || spec.n_by))
		return error_set(e, -EINVAL,
				 "'%.100s': a probe that arms or disarms has no values, only a "
				 "condition",
				 *text);
	return r;
}

static int take_latency(char **text, const char *dir, struct error *e)
{
	CLEANUP(latency_free) struct latency l = {0};
	char *canonical;
	int r = latency_parse(*text, &l, e);

	r = r < 0 ? r : make_latency_absolute(&l, dir, e);
	if (r < 0)
		return r;
	canonical = latency_format(&l);
	if (!canonical)
		return error_set(e, -ENOMEM, "out of memory");
	free(*text);
	*text = canonical;
	return 0;
}

static int check_action(const struct config_probe *p, const struct probe_spec *spec,
			struct error *e)
{
	bool histogram = p->action == TRACE_HIST || p->action == TRACE_LATENCY;

	if ((p->action == TRACE_HIST || p->action == TRACE_STATS) && spec->n_args != 1)
		return error_set(e, -EINVAL, "%s is about one value: expected it behind the probe",
				 config_probe_action_name(p->action));
	if (p->linear[2] && !histogram)
		return error_set(e, -EINVAL, "linear is about buckets: expected hist or latency");
	if (p->last != CONFIG_PROBE_LAST && p->action != TRACE_WATCH)
		return error_set(e, -EINVAL,
				 "last is the number of records that are kept: expected watch");
	return 0;
}

static int check_options(const struct config_probe *p, struct error *e)
{
	if ((p->pid != 0) + (p->app != NULL) + (p->cgroup != NULL) > 1)
		return error_set(e, -EINVAL,
				 "pid, app and cgroup each say which processes: expected one");
	if (!p->last || p->last > CONFIG_PROBE_LAST_MAX)
		return error_set(e, -EINVAL, "%u records cannot be kept: expected 1 to %d", p->last,
				 CONFIG_PROBE_LAST_MAX);
	if (p->pid > INT32_MAX)
		return error_set(e, -EINVAL, "%u is no number of a process", p->pid);
	if (p->disarmed_by.n && !p->armed_by.n)
		return error_set(e, -EINVAL,
				 "disarmed-by takes back what armed-by did: expected that with it");
	if (p->per_thread && !p->armed_by.n)
		return error_set(e, -EINVAL, "per-thread is about armed-by: expected that with it");
	if (p->armed_by.n + p->disarmed_by.n > CONFIG_PROBE_ARMS_MAX)
		return error_set(e, -E2BIG, "expected at most %d probes that arm or disarm",
				 CONFIG_PROBE_ARMS_MAX);
	return 0;
}

int config_probe_check(struct config_probe *p, const char *dir, struct error *e)
{
	CLEANUP(probe_spec_free) struct probe_spec spec = {0};
	int r;

	if (p->action == TRACE_LATENCY)
		r = take_latency(&p->probe, dir, e);
	else
		r = take_text(&p->probe, dir, &spec, e);
	if (r == 0)
		r = check_action(p, &spec, e);
	if (r == 0)
		r = check_options(p, e);
	for (size_t i = 0; r == 0 && i < p->armed_by.n; i++)
		r = check_arming(&p->armed_by.v[i], dir, e);
	for (size_t i = 0; r == 0 && i < p->disarmed_by.n; i++)
		r = check_arming(&p->disarmed_by.v[i], dir, e);
	return r;
}

/* --- reading --- */

struct section {
	struct config *config;
	struct registry names;
};

#define UNKNOWN UINT32_MAX /* an action */

/* One entry, and what has to be said of it as a whole. */
struct entry {
	struct config_probe probe;
	const struct node *name, *text, *text_key;
};

static void read_text(struct reader *r, const struct node *n, const char *what, char **to)
{
	const char *text = scalar_text(r, n, what);

	if (!text)
		return;
	free(*to);
	*to = strdup(text);
	have(r, *to);
}

static void read_name(struct reader *r, const struct node *n, void *to)
{
	static const char what[] = "a name of 1 to 63 letters, digits, '_' or '-'";
	struct entry *entry = to;

	read_text(r, n, what, &entry->probe.name);
	if (entry->probe.name && config_probe_check_name(entry->probe.name, NULL) < 0)
		reject(r, n, "%s", what);
	entry->name = n;
}

/* Sentences about a probe quote it as it is, and messages go to terminals. */
static void reject_probe(struct reader *r, const struct node *n, const char *what,
			 const struct error *e)
{
	char text[sizeof(e->text)], *p = text;

	strcpy(text, e->text);
	for (; *p; p++)
		if ((unsigned char)*p < ' ' || (unsigned char)*p >= 0x7f)
			*p = '?';
	reject(r, n, "%s: %s", what, text);
}

/* A text that parses, as it is: config_probe_check() makes it canonical. */
static bool parses(struct reader *r, const struct node *n, const char *text)
{
	CLEANUP(probe_spec_free) struct probe_spec spec = {0};
	struct error e = {0};
	int code = probe_parse(text, &spec, &e);

	code = code < 0 ? code : make_absolute(&spec, NULL, &e);
	if (code == -ENOMEM)
		done(r, code);
	else if (code < 0)
		reject_probe(r, n, "a probe", &e);
	return code == 0;
}

#define A_PROBE "a probe such as \"uretprobe:/bin/bash:readline retval:string\""

/* Its form depends on the action, which may come behind it. */
static void read_probe_text(struct reader *r, const struct node *n, void *to)
{
	struct entry *entry = to;

	read_text(r, n, A_PROBE, &entry->probe.probe);
	entry->text = n;
	entry->text_key = r->path[r->depth - 1].key;
}

static void parse_probe_text(struct reader *r, const struct entry *entry)
{
	CLEANUP(latency_free) struct latency l = {0};
	struct error e = {0};
	int code;

	path_push(r, entry->text_key, 0);
	if (entry->probe.action != TRACE_LATENCY) {
		parses(r, entry->text, entry->probe.probe);
	} else {
		code = latency_parse(entry->probe.probe, &l, &e);
		code = code < 0 ? code : make_latency_absolute(&l, NULL, &e);
		if (code == -ENOMEM)
			done(r, code);
		else if (code < 0)
			reject_probe(r, entry->text, "a probe", &e);
	}
	r->depth--;
}

static void read_arming(struct reader *r, const struct node *n, void *to)
{
	const char *text = scalar_text(r, n, A_PROBE);

	if (text && parses(r, n, text))
		done(r, strv_add(to, text));
}

/* One, or a list. */
static void read_armings(struct reader *r, const struct node *n, void *to)
{
	if (n->kind == NODE_SCALAR && !node_is_null(n))
		read_arming(r, n, to);
	else
		read_list(r, n, "probes, or a probe", CONFIG_PROBE_ARMS_MAX, read_arming, to);
}

static void read_action(struct reader *r, const struct node *n, void *to)
{
	const char *text = scalar_text(r, n, ACTIONS);

	if (!text)
		return;
	if (config_probe_parse_action(text, to, NULL) < 0) {
		reject(r, n, ACTIONS);
		*(uint32_t *)to = UNKNOWN;
	}
}

static void read_number(struct reader *r, const struct node *n, uint32_t most, const char *what,
			uint32_t *to)
{
	const char *text = scalar_text(r, n, what);
	size_t len = text ? strlen(text) : 0;

	if (!text)
		return;
	if (!len || len > 10 || strspn(text, "0123456789") != len || strtoull(text, NULL, 10) < 1 ||
	    strtoull(text, NULL, 10) > most)
		reject(r, n, "%s", what);
	else
		*to = (uint32_t)strtoull(text, NULL, 10);
}

static void read_last(struct reader *r, const struct node *n, void *to)
{
	_Static_assert(CONFIG_PROBE_LAST_MAX == 65536, "the sentence below says it");
	read_number(r, n, CONFIG_PROBE_LAST_MAX, "a number of records from 1 to 65536", to);
}

static void read_pid(struct reader *r, const struct node *n, void *to)
{
	read_number(r, n, INT32_MAX, "the number of a process", to);
}

static void read_linear(struct reader *r, const struct node *n, void *to)
{
	static const char what[] = "LEAST,GREATEST,STEP of at most 1000 buckets, as in 0,100,10";
	const char *text = scalar_text(r, n, what);

	_Static_assert(TRACE_BUCKETS_MAX == 1000, "the sentence above says it");
	if (text && config_probe_parse_linear(text, to, NULL) < 0)
		reject(r, n, "%s", what);
}

static void read_app(struct reader *r, const struct node *n, void *to)
{
	char **app = to;
	const char *want;

	read_text(r, n, "the name of an app", app);
	want = *app ? want_name(*app) : NULL;
	if (want)
		reject(r, n, "%s", want);
}

static const struct key keys[] = {
	{"name", read_name, 0},
	{"probe", read_probe_text, 0},
	{"action", read_action, offsetof(struct entry, probe.action)},
	{"last", read_last, offsetof(struct entry, probe.last)},
	{"linear", read_linear, offsetof(struct entry, probe.linear)},
	{"enabled", read_bool, offsetof(struct entry, probe.enabled)},
	{"app", read_app, offsetof(struct entry, probe.app)},
	{"cgroup", read_absolute_path, offsetof(struct entry, probe.cgroup)},
	{"pid", read_pid, offsetof(struct entry, probe.pid)},
	{"armed-by", read_armings, offsetof(struct entry, probe.armed_by)},
	{"disarmed-by", read_armings, offsetof(struct entry, probe.disarmed_by)},
	{"per-thread", read_bool, offsetof(struct entry, probe.per_thread)},
	{"exact", read_bool, offsetof(struct entry, probe.exact)},
	{"types", read_absolute_path, offsetof(struct entry, probe.types)},
};

static void take_name(struct reader *r, struct section *s, const struct entry *entry)
{
	const char *name = entry->probe.name;
	struct claim c = {.key = name, .len = strlen(name), .line = entry->name->line}, earlier;
	autofree char *found = NULL;
	int taken = registry_claim(&s->names, &c, &earlier);

	if (taken <= 0) {
		done(r, taken);
		return;
	}
	if (done(r,
		 asprintf(&found, "\"%s\", which a probe has since line %u", name, earlier.line)))
		report(r, entry->name, found, "a name that no other probe has");
}

static void read_probe(struct reader *r, const struct node *n, void *to)
{
	struct section *s = to;
	struct entry entry = {.probe = {.enabled = true, .last = CONFIG_PROBE_LAST}};
	size_t before = r->errs->n;
	struct error e = {0};
	int code = 0;

	if (read_mapping(r, n, keys, ARRAY_SIZE(keys), &entry) && r->errs->n == before &&
	    (!entry.probe.name || !entry.probe.probe) && !r->out_of_memory)
		reject(r, n, "a mapping with name and probe");
	if (entry.probe.probe && entry.probe.action != UNKNOWN && !r->out_of_memory)
		parse_probe_text(r, &entry);
	if (r->errs->n == before && !r->out_of_memory)
		code = config_probe_check(&entry.probe, NULL, &e);
	if (code == -ENOMEM)
		done(r, code);
	else if (code < 0)
		reject_probe(r, n, "what goes together", &e);
	if (r->errs->n == before && !r->out_of_memory)
		take_name(r, s, &entry);
	s->config->probes[s->config->n_probes++] = entry.probe;
}

void read_probes(struct reader *r, const struct node *n, void *to)
{
	struct section s = {.config = to};

	if (n->kind == NODE_LIST && n->n > 0) {
		s.config->probes = calloc(n->n < CONFIG_PROBES_MAX ? n->n : CONFIG_PROBES_MAX,
					  sizeof(*s.config->probes));
		if (!have(r, s.config->probes))
			return;
	}
	read_list(r, n, "probes", CONFIG_PROBES_MAX, read_probe, &s);
	registry_free(&s.names);
}
