// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A rule list in the arena: a header, everything but the sets as lines of text, then the sets in
 * binary. It is read on the machine that wrote it, so numbers are in its byte order.
 */
#include "base/values.h"
#include "rules/key.h"
#include "rules/priv.h"

#include <arpa/inet.h>

#define STATE_MAGIC 0x31737861 /* "axs1": changes whenever the form does */

struct state_header {
	uint32_t magic;
	uint32_t text_len;
	uint32_t n_sets;
};

/* In front of each set's name, behind which come its runs. */
struct state_set {
	uint8_t name_len;
	uint8_t kind;
	uint16_t timed; /* 0 or 1 */
	uint32_t n;
};

/* Neighbours of one form: 4 and 1 bytes for IPv4, 16 and 1 for IPv6, 2 and 2 for ports. */
enum run_form { RUN_IPV4, RUN_IPV6, RUN_PORTS };
struct state_run {
	uint32_t form; /* enum run_form */
	uint32_t n;
};
static const size_t run_size[] = {[RUN_IPV4] = 5, [RUN_IPV6] = 17, [RUN_PORTS] = 4};

/* --- saving --- */

static void save_balancer(const struct balancer *b, FILE *f)
{
	char addr[ADDR_STRLEN];

	fprintf(f, "balancer %s %s %u", b->name, balance_mode_names[b->mode], b->gue_port);
	fprintf(f, " %s", addr_is_zero(&b->source4) ? "-" : addr_format(&b->source4, addr));
	fprintf(f, " %s", addr_is_zero(&b->source6) ? "-" : addr_format(&b->source6, addr));
	fprintf(f, " %s", b->service ? b->service : "-");
	/* what former versions do not know is only written where it says something */
	if (b->affinity != BALANCE_BY_FLOW)
		fprintf(f, " %s", balance_affinity_names[b->affinity]);
	putc_unlocked('\n', f);
	for (size_t i = 0; i < b->n; i++) {
		const struct balance_backend *x = &b->backends[i];

		fprintf(f, "backend %s %u %u %d %d", addr_format(&x->addr, addr), x->port,
			x->weight, x->drain, x->down);
		if (x->has_quic_id)
			fprintf(f, " %u", x->quic_id);
		putc_unlocked('\n', f);
	}
}

static int save_text(const struct rule_list *l, FILE *f)
{
	fprintf(f, "list %s %u %s%s", xdp_mode_names[l->mode], l->priority,
		ax_verdict_names[l->default_action],
		l->direction == DIRECTION_EGRESS ? " egress" : "");
	/* (as with balancers) */
	if (l->track != TRACK_AUTO)
		fprintf(f, " track %s", list_track_names[l->track]);
	putc_unlocked('\n', f);
	for (unsigned i = 1; i < AX_REASON_POLICIES; i++)
		fprintf(f, "class %s %s\n", rule_reasons[i].name, policy_names[l->policy[i]]);
	for (size_t i = 0; i < l->n_balancers; i++)
		save_balancer(&l->balancers[i], f);
	for (size_t i = 0; i < l->n_rules; i++) {
		autofree char *line = rule_format(&l->rules[i]);

		if (!line)
			return -ENOMEM;
		fprintf(f, "rule %s\n", line);
	}
	return 0;
}

static enum run_form form_of(const struct prefix *p)
{
	return p->len >= 96 && addr_is_v4(&p->addr) ? RUN_IPV4 : RUN_IPV6;
}

static void save_prefix(const struct prefix *p, enum run_form form, FILE *f)
{
	if (form == RUN_IPV4)
		fwrite(&p->addr.w[3], sizeof(p->addr.w[3]), 1, f);
	else
		fwrite(&p->addr, sizeof(p->addr), 1, f);
	putc_unlocked((int)p->len, f);
}

static void save_prefixes(const struct rule_set_def *s, FILE *f)
{
	for (size_t i = 0; i < s->n;) {
		struct state_run run = {.form = form_of(&s->prefixes[i]), .n = 1};

		while (i + run.n < s->n && form_of(&s->prefixes[i + run.n]) == run.form)
			run.n++;
		fwrite(&run, sizeof(run), 1, f);
		for (size_t end = i + run.n; i < end; i++)
			save_prefix(&s->prefixes[i], run.form, f);
	}
}

static void save_ports(const struct rule_set_def *s, FILE *f)
{
	const struct state_run run = {.form = RUN_PORTS, .n = (uint32_t)s->n};

	if (s->n)
		fwrite(&run, sizeof(run), 1, f);
	for (size_t i = 0; i < s->n; i++) {
		const uint16_t both[] = {(uint16_t)s->ports[i].lo, (uint16_t)s->ports[i].hi};

		fwrite(both, sizeof(both), 1, f);
	}
}

/* Sets that are not in order are saved from a copy that is. */
static int save_set(const struct rule_set_def *s, FILE *f)
{
	struct state_set head = {
		.name_len = (uint8_t)strlen(s->name), .kind = (uint8_t)s->kind, .timed = s->timed};
	struct rule_set_def copy = {0};
	int r = 0;

	if (!set_is_sorted(s)) {
		r = set_copy(s, &copy);
		if (r == 0)
			r = set_sort(&copy);
		if (r == 0)
			r = save_set(&copy, f);
		set_free(&copy);
		return r;
	}
	head.n = (uint32_t)s->n;
	fwrite(&head, sizeof(head), 1, f);
	fwrite(s->name, head.name_len, 1, f);
	if (s->kind == SET_PORTS)
		save_ports(s, f);
	else
		save_prefixes(s, f);
	return r;
}

/* The lines, whose length the header has. */
static int make_text(const struct rule_list *l, char **ret, size_t *len)
{
	autofree char *text = NULL;
	FILE *f = open_memstream(&text, len);
	int r;

	if (!f)
		return -ENOMEM;
	r = save_text(l, f);
	if (fclose(f) != 0)
		r = -ENOMEM;
	if (r == 0)
		*ret = take_ptr(&text);
	return r;
}

static int save_all(const struct rule_list *l, FILE *f)
{
	struct state_header head = {.magic = STATE_MAGIC, .n_sets = (uint32_t)l->n_sets};
	autofree char *text = NULL;
	size_t len;
	int r = make_text(l, &text, &len);

	if (r < 0)
		return r;
	if (len > UINT32_MAX)
		return -E2BIG;
	head.text_len = (uint32_t)len;
	fwrite(&head, sizeof(head), 1, f);
	fwrite(text, len, 1, f);
	for (size_t i = 0; i < l->n_sets && r == 0; i++)
		r = save_set(&l->sets[i], f);
	return r;
}

int rule_list_save(const struct rule_list *l, void **ret, size_t *len)
{
	autofree char *data = NULL;
	size_t size;
	FILE *f;
	int r = rule_list_check(l, NULL);

	if (r < 0)
		return r;
	f = open_memstream(&data, &size);
	if (!f)
		return -ENOMEM;
	r = save_all(l, f);
	if (ferror(f))
		r = -ENOMEM;
	if (fclose(f) != 0)
		r = -ENOMEM;
	if (r < 0)
		return r;
	*ret = take_ptr(&data);
	*len = size;
	return 0;
}

/* --- restoring: text --- */

static int restore_head(struct rule_list *l, char **words, size_t n)
{
	int mode, action, track = TRACK_AUTO;
	uint64_t priority;
	size_t i = 3;

	if (n < i)
		return -EINVAL;
	l->direction = n > i && streq(words[i], "egress") ? DIRECTION_EGRESS : DIRECTION_INGRESS;
	i += l->direction == DIRECTION_EGRESS;
	if (n == i + 2 && streq(words[i], "track")) {
		track = value_word(words[i + 1], list_track_names, ARRAY_SIZE(list_track_names));
		i += 2;
	}
	if (n != i || track < 0)
		return -EINVAL;
	l->track = (enum list_track)track;
	mode = value_word(words[0], xdp_mode_names, ARRAY_SIZE(xdp_mode_names));
	action = value_word(words[2], ax_verdict_names, ARRAY_SIZE(ax_verdict_names));
	if (mode < 0 || action < 0 || value_number(words[1], UINT32_MAX, &priority) < 0)
		return -EINVAL;
	l->mode = (enum xdp_mode)mode;
	l->priority = (uint32_t)priority;
	l->default_action = (enum ax_verdict)action;
	return 0;
}

static int restore_class(struct rule_list *l, char **words, size_t n)
{
	enum ax_reason class;
	int policy;

	if (n != 2)
		return -EINVAL;
	class = rule_class_find(words[0]);
	policy = value_word(words[1], policy_names, ARRAY_SIZE(policy_names));
	if (class == AX_REASON_NONE || policy < 0)
		return -EINVAL;
	l->policy[class] = (uint8_t)policy;
	return 0;
}

/* "-" or an address of the family. */
static int restore_source(const char *word, bool v4, struct ax_addr *ret)
{
	struct ax_addr a;

	if (streq(word, "-"))
		return 0;
	if (addr_parse(word, &a) < 0 || addr_is_v4(&a) != v4 || addr_is_zero(&a))
		return -EINVAL;
	*ret = a;
	return 0;
}

static int restore_balancer(struct rule_list *l, char **words, size_t n)
{
	struct balancer b = {0};
	uint64_t port;
	int mode, affinity = BALANCE_BY_FLOW;

	if ((n != 6 && n != 7) || !value_is_name(words[0]) ||
	    (!streq(words[5], "-") && want_name(words[5])))
		return -EINVAL;
	mode = value_word(words[1], balance_mode_names, ARRAY_SIZE(balance_mode_names));
	if (n == 7)
		affinity = value_word(words[6], balance_affinity_names,
				      ARRAY_SIZE(balance_affinity_names));
	if (mode < 0 || affinity < 0 || value_number(words[2], UINT16_MAX, &port) < 0 ||
	    restore_source(words[3], true, &b.source4) < 0 ||
	    restore_source(words[4], false, &b.source6) < 0)
		return -EINVAL;
	if (array_grow(&l->balancers, l->n_balancers, sizeof(b)) < 0)
		return -ENOMEM;
	b.mode = (enum balance_mode)mode;
	b.affinity = (enum balance_affinity)affinity;
	b.gue_port = (uint16_t)port;
	b.name = strdup(words[0]);
	b.service = streq(words[5], "-") ? NULL : strdup(words[5]);
	if (!b.name || (!b.service && !streq(words[5], "-"))) {
		balancer_free(&b);
		return -ENOMEM;
	}
	l->balancers[l->n_balancers++] = b;
	return 0;
}

static int restore_backend(struct rule_list *l, char **words, size_t n)
{
	struct balance_backend backend = {.has_quic_id = n == 6};
	struct balancer *b;
	uint64_t numbers[5] = {0};
	static const uint64_t max[] = {UINT16_MAX, BALANCER_WEIGHT_MAX, 1, 1, UINT16_MAX};

	if ((n != 5 && n != 6) || l->n_balancers == 0 || addr_parse(words[0], &backend.addr) < 0)
		return -EINVAL;
	for (size_t i = 0; i + 1 < n; i++)
		if (value_number(words[i + 1], max[i], &numbers[i]) < 0)
			return -EINVAL;
	if (numbers[1] == 0)
		return -EINVAL;
	backend.port = (uint16_t)numbers[0];
	backend.weight = (uint16_t)numbers[1];
	backend.drain = numbers[2];
	backend.down = numbers[3];
	backend.quic_id = (uint16_t)numbers[4];
	b = &l->balancers[l->n_balancers - 1];
	if (b->n == BALANCER_BACKENDS_MAX)
		return -EINVAL;
	if (array_grow(&b->backends, b->n, sizeof(backend)) < 0)
		return -ENOMEM;
	b->backends[b->n++] = backend;
	return 0;
}

static int restore_rule(struct rule_list *l, char **words, size_t n)
{
	struct rule rule;
	int r;

	if (l->n_rules == AX_XDP_RULES_MAX)
		return -EINVAL;
	r = rule_parse((const char *const *)words, n, &rule, NULL);
	if (r == -ENOMEM)
		return r;
	return r < 0 ? -EINVAL : rule_list_insert(l, SIZE_MAX, &rule);
}

static int restore_line(struct rule_list *l, char *line)
{
	static const struct {
		const char *word;
		int (*restore)(struct rule_list *l, char **words, size_t n);
	} lines[] = {
		{"list", restore_head},		{"class", restore_class},
		{"balancer", restore_balancer}, {"backend", restore_backend},
		{"rule", restore_rule},
	};
	/* (a rule's payloads may be of many words) */
	autofree char **words = malloc((strlen(line) + 1) * sizeof(*words));
	size_t n = 0;

	if (!words)
		return -ENOMEM;
	for (char *word; (word = strsep(&line, " "));)
		words[n++] = word;
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
		if (streq(words[0], lines[i].word))
			return lines[i].restore(l, words + 1, n - 1);
	return -EINVAL;
}

static int restore_text(struct rule_list *l, const char *text, size_t len)
{
	autofree char *copy = malloc(len + 1);
	char *rest = copy, *line;

	if (!copy)
		return -ENOMEM;
	if (len == 0 || text[len - 1] != '\n' || memchr(text, '\0', len))
		return -EINVAL;
	memcpy(copy, text, len);
	copy[len - 1] = '\0'; /* so that no empty line follows */
	copy[len] = '\0';
	while ((line = strsep(&rest, "\n"))) {
		int r = restore_line(l, line);

		if (r < 0)
			return r;
	}
	return 0;
}

/* --- restoring: sets --- */

struct cursor {
	struct lazy_view *v;
	size_t at, left;
};

/* Where the next bytes are, without a look at them; -1: there are not so many. */
static int64_t skip(struct cursor *c, size_t len)
{
	size_t at = c->at;

	if (c->left < len)
		return -1;
	c->at += len;
	c->left -= len;
	return (int64_t)at;
}

static const void *take(struct cursor *c, size_t len)
{
	int64_t at = skip(c, len);

	return at < 0 ? NULL : view_at(c->v, (size_t)at, len);
}

static int restore_prefix(const uint8_t *p, enum run_form form, struct prefix *ret)
{
	struct ax_addr masked;

	if (form == RUN_IPV4) {
		__be32 v4;

		memcpy(&v4, p, sizeof(v4));
		ret->addr = addr_from_v4(v4);
		ret->len = p[4];
	} else {
		memcpy(&ret->addr, p, sizeof(ret->addr));
		ret->len = p[16];
	}
	if (ret->len > 128 || form_of(ret) != form)
		return -EINVAL;
	/* no bits behind the length: clearing them changes nothing */
	masked = ret->addr;
	for (unsigned i = 0; i < sizeof(masked); i++) {
		unsigned bits = ret->len > 8 * i ? ret->len - 8 * i : 0;

		if (bits < 8)
			masked.b[i] &= (uint8_t) ~(0xff >> bits);
	}
	return addr_eq(&masked, &ret->addr) ? 0 : -EINVAL;
}

static int restore_element(struct rule_set_def *s, const uint8_t *p, enum run_form form)
{
	uint16_t both[2];

	if (form != RUN_PORTS)
		return restore_prefix(p, form, &s->prefixes[s->n++]);
	memcpy(both, p, sizeof(both));
	s->ports[s->n++] = (struct range){both[0], both[1]};
	return both[0] <= both[1] ? 0 : -EINVAL;
}

/* The next run of a set of which `left` elements are still to come, and where they are. */
static int next_run(enum set_kind kind, size_t left, struct cursor *c, struct state_run *run,
		    size_t *at)
{
	const void *head = take(c, sizeof(*run));
	int64_t elements;

	if (!head)
		return -EINVAL;
	memcpy(run, head, sizeof(*run));
	if (run->form > RUN_PORTS || (run->form == RUN_PORTS) != (kind == SET_PORTS) ||
	    run->n == 0 || run->n > left)
		return -EINVAL;
	elements = skip(c, run->n * run_size[run->form]);
	*at = (size_t)elements;
	return elements < 0 ? -EINVAL : 0;
}

static int restore_runs(struct rule_set_def *s, size_t n, struct cursor *c)
{
	while (s->n < n) {
		struct state_run run;
		const uint8_t *p;
		size_t at;

		if (next_run(s->kind, n - s->n, c, &run, &at) < 0)
			return -EINVAL;
		p = view_at(c->v, at, run.n * run_size[run.form]);
		if (!p)
			return -EINVAL;
		for (uint32_t i = 0; i < run.n; i++, p += run_size[run.form])
			if (restore_element(s, p, (enum run_form)run.form) < 0)
				return -EINVAL;
	}
	return set_is_sorted(s) ? 0 : -EINVAL;
}

/* A new set, without its elements. */
static int restore_set_head(struct rule_list *l, struct cursor *c, size_t *n)
{
	const void *p = take(c, sizeof(struct state_set));
	struct rule_set_def *s;
	struct state_set head;
	const char *name;

	if (!p)
		return -EINVAL;
	memcpy(&head, p, sizeof(head));
	name = take(c, head.name_len);
	/* an element takes four bytes at least, so nobody gets more memory than that they sent */
	if (!name || head.kind > SET_FLOWS || head.timed > 1 ||
	    (head.kind == SET_FLOWS && head.n) || head.n > SET_ELEMENTS_MAX ||
	    head.n > c->left / 4 || memchr(name, '\0', head.name_len))
		return -EINVAL;
	*n = head.n;
	if (array_grow(&l->sets, l->n_sets, sizeof(*s)) < 0)
		return -ENOMEM;
	s = &l->sets[l->n_sets];
	*s = (struct rule_set_def){.kind = (enum set_kind)head.kind, .timed = head.timed};
	s->name = strndup(name, head.name_len);
	if (!s->name)
		return -ENOMEM;
	l->n_sets++;
	return value_is_name(s->name) ? 0 : -EINVAL;
}

static int restore_set(struct rule_list *l, struct cursor *c)
{
	struct rule_set_def *s;
	size_t n;
	int r = restore_set_head(l, c, &n);

	if (r < 0)
		return r;
	s = &l->sets[l->n_sets - 1];
	if (s->kind == SET_PORTS)
		s->ports = array_new(n, sizeof(*s->ports));
	else
		s->prefixes = array_new(n, sizeof(*s->prefixes));
	if (n && !s->ports && !s->prefixes)
		return -ENOMEM;
	return restore_runs(s, n, c);
}

/* Everything in front of the sets. */
static int restore_front(struct rule_list *l, struct cursor *c, uint32_t *n_sets)
{
	const void *p = take(c, sizeof(struct state_header));
	struct state_header head;
	const char *text;

	if (!p)
		return -EINVAL;
	memcpy(&head, p, sizeof(head));
	if (head.magic != STATE_MAGIC || head.n_sets > SETS_MAX)
		return -EINVAL;
	text = take(c, head.text_len);
	if (!text)
		return -EINVAL;
	*n_sets = head.n_sets;
	return restore_text(l, text, head.text_len);
}

static int restore_all(struct rule_list *l, struct cursor *c)
{
	uint32_t n_sets = 0;
	int r = restore_front(l, c, &n_sets);

	for (uint32_t i = 0; i < n_sets && r == 0; i++)
		r = restore_set(l, c);
	if (r == 0 && c->left)
		r = -EINVAL;
	return r == 0 ? rule_list_check(l, NULL) : r;
}

int rule_list_restore(const void *data, size_t len, struct rule_list *l)
{
	struct lazy_view v = {.data = (uint8_t *)(uintptr_t)data, .size = len};
	struct cursor c = {.v = &v, .left = len};
	int r;

	rule_list_init(l);
	r = restore_all(l, &c);
	if (r < 0)
		rule_list_free(l);
	return r;
}

/* --- without the elements --- */

/* Those of IPv4 are neighbours in the order, all of them. */
static struct run_outline *outline_run(struct set_outline *s, enum run_form form)
{
	if (form == RUN_IPV6)
		return &s->v6[s->v6[0].n != 0];
	return form == RUN_IPV4 ? &s->v4 : &s->ports;
}

static int outline_set(struct set_outline *s, enum set_kind kind, struct cursor *c)
{
	for (size_t left = s->n; left;) {
		struct run_outline *to;
		struct state_run run;
		size_t at;
		int r = next_run(kind, left, c, &run, &at);

		if (r < 0)
			return -EINVAL;
		to = outline_run(s, (enum run_form)run.form);
		if (to->n)
			return -EINVAL;
		*to = (struct run_outline){.at = at, .n = run.n};
		left -= run.n;
	}
	return 0;
}

static int outline_all(struct rule_outline *o, struct cursor *c)
{
	uint32_t n_sets = 0;
	int r = restore_front(&o->list, c, &n_sets);

	if (r < 0)
		return r;
	o->sets = calloc(n_sets + 1, sizeof(*o->sets));
	if (!o->sets)
		return -ENOMEM;
	for (uint32_t i = 0; i < n_sets; i++) {
		struct set_outline *s = &o->sets[i];

		r = restore_set_head(&o->list, c, &s->n);
		r = r < 0 ? r : outline_set(s, o->list.sets[i].kind, c);
		if (r < 0)
			return r;
	}
	return c->left ? -EINVAL : 0;
}

int rule_list_outline(struct lazy_view *v, size_t at, size_t len, struct rule_outline *o)
{
	struct cursor c = {.v = v, .at = at, .left = len};
	int r;

	*o = (struct rule_outline){0};
	rule_list_init(&o->list);
	r = outline_all(o, &c);
	if (r < 0)
		rule_outline_free(o);
	return r < 0 && v->error ? v->error : r;
}

void rule_outline_free(struct rule_outline *o)
{
	rule_list_free(&o->list);
	free(o->sets);
	*o = (struct rule_outline){0};
}
