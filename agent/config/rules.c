// SPDX-License-Identifier: GPL-2.0-or-later
/* Nodes to rules, sets, classes and what else a list has but balancers. */
#include "config/rules.h"
#include "rules/key.h"

/* The words with commas between, as "expected" has them. */
static const char *list_words(const char *const *words, size_t n, char *buf, size_t size)
{
	size_t len = 0;

	buf[0] = '\0';
	for (size_t i = 0; i < n && len < size; i++)
		len += (size_t)snprintf(buf + len, size - len, "%s%s",
					i == 0	     ? ""
					: i == n - 1 ? " or "
						     : ", ",
					words[i]);
	return buf;
}

/* The index of the word that is written there, or -1 after a report. */
static int read_word(struct reader *r, const struct node *n, const char *const *words, size_t count)
{
	char what[64], hint[96];
	const char *text = scalar_text(r, n, list_words(words, count, what, sizeof(what)));
	int i = text ? value_word(text, words, count) : -1;

	if (text && i < 0)
		reject(r, n, "%s%s", what, value_hint(text, words, count, hint));
	return i;
}

void list_read_mode(struct reader *r, const struct node *n, void *to)
{
	int i = read_word(r, n, xdp_mode_names, ARRAY_SIZE(xdp_mode_names));

	if (i >= 0)
		((struct list_reading *)to)->list.mode = (enum xdp_mode)i;
}

void list_read_default(struct reader *r, const struct node *n, void *to)
{
	int i = read_word(r, n, ax_verdict_names, AX_VERDICT_DROP + 1);

	if (i >= 0)
		((struct list_reading *)to)->list.default_action = (enum ax_verdict)i;
}

void list_read_priority(struct reader *r, const struct node *n, void *to)
{
	static const char what[] = "a number of 1 to 65535 (lower runs earlier, 50 is usual)";
	const char *text = scalar_text(r, n, what);
	uint64_t priority;

	if (!text)
		return;
	if (value_number(text, PRIORITY_MAX, &priority) < 0 || priority == 0)
		reject(r, n, "%s", what);
	else
		((struct list_reading *)to)->list.priority = (uint32_t)priority;
}

void list_read_direction(struct reader *r, const struct node *n, void *to)
{
	int i = read_word(r, n, xdp_direction_names, ARRAY_SIZE(xdp_direction_names));

	if (i >= 0)
		((struct list_reading *)to)->list.direction = (enum xdp_direction)i;
}

void list_read_track(struct reader *r, const struct node *n, void *to)
{
	int i = read_word(r, n, list_track_names, ARRAY_SIZE(list_track_names));

	if (i >= 0)
		((struct list_reading *)to)->list.track = (enum list_track)i;
}

static void read_class(struct reader *r, const struct node *n, void *to)
{
	int i = read_word(r, n, policy_names, ARRAY_SIZE(policy_names));

	if (i >= 0)
		*(uint8_t *)to = (uint8_t)i;
}

void list_read_classes(struct reader *r, const struct node *n, void *to)
{
	struct list_reading *l = to;
	struct key keys[AX_REASON_POLICIES - 1];

	for (unsigned i = 1; i < AX_REASON_POLICIES; i++)
		keys[i - 1] = (struct key){rule_reasons[i].name, read_class, i};
	read_mapping(r, n, keys, ARRAY_SIZE(keys), l->list.policy);
}

/* --- sets --- */

struct set_reading {
	struct list_reading *list;
	struct rule_set_def set;
	bool known; /* its kind is */
};

static int add_element(void *arg, char *item, struct rule_fault *f)
{
	struct set_reading *s = arg;
	struct prefix p;
	struct range port;
	int r;

	if (!s->known) {
		/* a prefix with host bits is meant as one */
		s->set.kind = prefix_parse(item, &p) == -EINVAL &&
					      value_range(item, UINT16_MAX, false, &port) == 0
				      ? SET_PORTS
				      : SET_PREFIXES;
		s->known = true;
	}
	if (s->set.n == SET_ELEMENTS_MAX)
		return fault_set(f, NULL, "at most %u elements in a set", SET_ELEMENTS_MAX);
	if (s->set.kind == SET_PORTS) {
		if (value_range(item, UINT16_MAX, false, &port) < 0)
			return fault_set(f, NULL, "a port of 0 to 65535 or a range of them");
		r = array_grow(&s->set.ports, s->set.n, sizeof(port));
		if (r == 0)
			s->set.ports[s->set.n++] = port;
		return r;
	}
	r = value_prefix(item, &p, f);
	if (r == -EINVAL && !*f->want)
		fault_set(f, NULL, "a prefix such as 10.0.0.0/8 or fd00::/8, or an address");
	if (r == 0)
		r = array_grow(&s->set.prefixes, s->set.n, sizeof(p));
	if (r == 0)
		s->set.prefixes[s->set.n++] = p;
	return r;
}

static void read_element(struct reader *r, const struct node *n, void *to)
{
	const char *text = scalar_text(r, n, "a prefix or a port");
	struct rule_fault f = {.rule = SIZE_MAX};
	int code = text ? value_each(text, SIZE_MAX, &f, add_element, to) : 0;

	if (code == -EINVAL)
		report(r, n, f.found, "%s", f.want);
	else
		done(r, code);
}

static void read_elements(struct reader *r, const struct node *n, void *to)
{
	if (n->kind == NODE_SCALAR && !node_is_null(n))
		read_element(r, n, to);
	else
		read_list(r, n, "prefixes or ports", SIZE_MAX, read_element, to);
}

static void read_prefixes(struct reader *r, const struct node *n, void *to)
{
	((struct set_reading *)to)->known = true;
	read_elements(r, n, to);
}

static void read_ports(struct reader *r, const struct node *n, void *to)
{
	((struct set_reading *)to)->set.kind = SET_PORTS;
	read_prefixes(r, n, to);
}

static void read_file(struct reader *r, const struct node *n, void *to)
{
	const char *text = scalar_text(r, n, "a file's path");
	struct set_reading *s = to;

	if (!text)
		return;
	if (!*text) {
		reject(r, n, "a file's path");
		return;
	}
	free(s->set.file);
	s->set.file = strdup(text);
	have(r, s->set.file);
}

static void read_ports_file(struct reader *r, const struct node *n, void *to)
{
	((struct set_reading *)to)->set.kind = SET_PORTS;
	read_file(r, n, to);
}

static void read_timed(struct reader *r, const struct node *n, void *to)
{
	read_bool(r, n, &((struct set_reading *)to)->set.timed);
}

/* Nothing but that it is one. */
static void read_flows(struct reader *r, const struct node *n, void *to)
{
	struct set_reading *s = to;

	if (n->kind != NODE_LIST || n->n)
		reject(r, n, "[]: flows come for a time only, by rules or 'ax xdp set add --for'");
	s->set.kind = SET_FLOWS;
	s->known = true;
}

static void read_set_mapping(struct reader *r, const struct node *n, struct set_reading *s)
{
	static const struct key keys[] = {{"file", read_file, 0},
					  {"prefixes", read_prefixes, 0},
					  {"ports-file", read_ports_file, 0},
					  {"ports", read_ports, 0},
					  {"flows", read_flows, 0},
					  {"timed", read_timed, 0}};

	if (n->n == 1 || (n->n == 2 && node_key(n, "timed")))
		read_mapping(r, n, keys, ARRAY_SIZE(keys), s);
	else
		reject(r, n,
		       "exactly one of file, prefixes, ports-file, ports and flows, and timed if "
		       "wanted");
}

#define WANT_NAME "a name of 1 to 63 letters, digits and . _ - :"

static void read_set(struct reader *r, const struct node *key, const struct node *value, void *to)
{
	struct list_reading *l = to;
	struct set_reading s = {.list = l};

	if (!value_is_name(key->text)) {
		reject(r, key, WANT_NAME);
		return;
	}
	if (l->shared && rule_list_set(l->shared, key->text)) {
		reject(r, key, "a name that no set of the whole section has");
		return;
	}
	s.set.name = strdup(key->text);
	if (value->kind == NODE_MAPPING)
		read_set_mapping(r, value, &s);
	else
		read_elements(r, value, &s);
	if (s.set.kind == SET_FLOWS && value->n == 1) /* else `timed` says so */
		s.set.timed = true;
	if (!have(r, s.set.name) || !done(r, set_sort(&s.set)) ||
	    !done(r, array_grow(&l->list.sets, l->list.n_sets, sizeof(s.set))))
		set_free(&s.set);
	else
		l->list.sets[l->list.n_sets++] = s.set;
}

void list_read_sets(struct reader *r, const struct node *n, void *to)
{
	read_entries(r, n, "sets by name", read_set, to);
}

/* --- rules --- */

struct rule_reading {
	struct rule rule;
	uint64_t given;
};

/* The texts of a list's items with commas between them, or NULL after a report. */
static char *join_items(struct reader *r, const struct node *n, const char *what)
{
	autofree char *joined = NULL;
	size_t size;
	FILE *f = open_memstream(&joined, &size);
	bool good = true;

	if (!have(r, f))
		return NULL;
	for (size_t i = 0; i < n->n; i++) {
		const char *text;

		path_push(r, NULL, i);
		text = scalar_text(r, &n->items[i], what);
		r->depth--;
		good &= text != NULL;
		fprintf(f, "%s%s", i ? "," : "", text ? text : "");
	}
	if (fclose(f) != 0) {
		done(r, -ENOMEM);
		return NULL;
	}
	return good ? take_ptr(&joined) : NULL;
}

/* Reports at the item of a list that it is about. An item may have commas of its own. */
static void report_value(struct reader *r, const struct node *n, const struct rule_fault *f)
{
	size_t before = 0;

	for (size_t i = 0; n->kind == NODE_LIST && i < n->n; i++) {
		for (const char *p = n->items[i].text; p && (p = strchr(p, ',')); p++)
			before++;
		if (f->item <= before++) {
			path_push(r, NULL, i);
			report(r, &n->items[i], f->found, "%s", f->want);
			r->depth--;
			return;
		}
	}
	report(r, n, f->found, "%s", f->want);
}

/* The value's text, or NULL after a report. *ret is what has to be freed. */
static const char *value_text(struct reader *r, const struct node *n, const struct rule_key *key,
			      char **ret)
{
	const char *what = key->want;
	char quotes[256];

	/* without quotes the ! makes a tag, and an empty text, of it */
	if (key->field && key->field->kind == FIELD_BITS) {
		snprintf(quotes, sizeof(quotes), "%s, in quotes then", what);
		what = quotes;
	}
	if (n->kind != NODE_LIST || !key->list)
		return scalar_text(r, n, what);
	if (n->n == 0) {
		reject(r, n, "%s", what);
		return NULL;
	}
	*ret = join_items(r, n, what);
	return *ret;
}

/* The key is the one that was gone into last. */
static void read_value(struct reader *r, const struct node *n, void *to)
{
	const char *name = r->path[r->depth - 1].key->text;
	struct rule_reading *reading = to;
	autofree char *joined = NULL;
	struct rule_fault f;
	struct rule_key key;
	const char *text;
	int code;

	if (rule_key_find(name, &key) < 0) /* read_mapping() has found it among them */
		return;
	text = value_text(r, n, &key, &joined);
	if (!text)
		return;
	code = rule_set_value(&reading->rule, &key, text, &f);
	if (code == -EINVAL)
		report_value(r, n, &f);
	else
		done(r, code);
	reading->given |= 1ull << key.number;
}

static void read_rule(struct reader *r, const struct node *n, void *to)
{
	struct rule_reading reading = {0};
	const char *names[RULE_KEYS_MAX];
	struct key keys[RULE_KEYS_MAX];
	size_t n_keys = rule_key_names(names);
	struct list_reading *l = to;
	size_t before = r->errs->n;
	struct rule_fault f;

	for (size_t i = 0; i < n_keys; i++)
		keys[i] = (struct key){names[i], read_value, 0};
	if (read_mapping(r, n, keys, n_keys, &reading) && r->errs->n == before &&
	    rule_find_fault(&reading.rule, reading.given, &f) < 0)
		report(r, n, f.found, "%s", f.want);
	done(r, rule_list_insert(&l->list, SIZE_MAX, &reading.rule));
}

void list_read_rules(struct reader *r, const struct node *n, void *to)
{
	struct list_reading *l = to;

	l->rules = n;
	l->rules_key = r->path[r->depth - 1].key;
	read_list(r, n, "rules", AX_XDP_RULES_MAX, read_rule, l);
}

/* --- the whole list --- */

struct fault_place {
	struct reader *r;
	const struct list_reading *l;
	const struct node *at;
};

static int report_fault(void *arg, const struct rule_fault *f)
{
	const struct fault_place *p = arg;
	struct reader *r = p->r;
	size_t depth = r->depth;
	const struct node *at = p->at;

	/* all rules are there when no error was found before, so they have the nodes' order */
	if (f->rule != SIZE_MAX && p->l->rules && f->rule < p->l->rules->n) {
		path_push(r, p->l->rules_key, 0);
		path_push(r, NULL, f->rule);
		at = &p->l->rules->items[f->rule];
	}
	report(r, at, f->found, "%s", f->want);
	r->depth = depth;
	return 0;
}

void list_report_faults(struct reader *r, const struct list_reading *l, const struct node *at)
{
	struct fault_place p = {r, l, at};

	done(r, rule_list_each_fault(&l->list, report_fault, &p));
}
