// SPDX-License-Identifier: GPL-2.0-or-later
/* Rules that learn addresses, and the sets that these come to for a time. */
#include "base/values.h"
#include "rules/defaults.h"
#include "rules/key.h"
#include "rules/priv.h"

#include <netinet/in.h>

#define LEARN_MS_MIN 1000

/* --- a rule's --- */

int value_prefix_lengths(const char *s, uint8_t *len4, uint8_t *len6)
{
	char copy[sizeof("32/128")], *rest = copy;
	uint64_t four, six = RATE_NETWORK6; /* what one network has, where those are meant */

	if (strlen(s) >= sizeof(copy))
		return -EINVAL;
	strcpy(copy, s);
	if (value_number(strsep(&rest, "/"), 32, &four) < 0 ||
	    (rest && value_number(rest, 128, &six) < 0))
		return -EINVAL;
	*len4 = (uint8_t)four;
	*len6 = (uint8_t)six;
	return 0;
}

static int set_set(struct rule *r, const char *item, struct rule_fault *f)
{
	if (item[0] != '@' || !value_is_name(item + 1))
		return fault_set(f, NULL, "@ and a set's name first, then a time: @bad,10m");
	r->learn = strdup(item + 1);
	return r->learn ? 0 : -ENOMEM;
}

static int set_time(struct rule *r, const char *item, struct rule_fault *f)
{
	const char *want = want_duration_ms(item, &r->learn_ms);

	if (want)
		return fault_set(f, NULL, "%s, behind the set", want);
	if (r->learn_ms < LEARN_MS_MIN)
		return fault_set(f, NULL, "a time of at least 1s");
	return 0;
}

/* "src", "dst/24", "src/24/64" */
static int set_end(struct rule *r, const char *item, struct rule_fault *f)
{
	r->learn_dst = item[0] == 'd';
	if (!item[3] ||
	    (item[3] == '/' && value_prefix_lengths(item + 4, &r->learn4, &r->learn6) == 0))
		return 0;
	return fault_set(f, NULL,
			 "src, src/24 or src/24/64 (or dst), with a length for IPv4 of 0 to 32, "
			 "then one for IPv6 of 0 to 128");
}

/* "flow", "flow=22/tcp" */
static int set_flow(struct rule *r, const char *item, struct rule_fault *f)
{
	r->learn_flow = true;
	if (!item[4] || (item[4] == '=' &&
			 set_flow_parse_port(item + 5, &r->learn_proto, &r->learn_port_be) == 0))
		return 0;
	return fault_set(f, NULL,
			 "flow, or flow=22/tcp for another port than the packet's own: one of 0 "
			 "to 65535, then /tcp or /udp");
}

struct learning {
	struct rule *r;
	bool end; /* it is said which */
};

static int add_learn(void *arg, char *item, struct rule_fault *f)
{
	struct learning *l = arg;

	if (f->item == 0)
		return set_set(l->r, item, f);
	if (f->item == 1)
		return set_time(l->r, item, f);
	if ((starts_with(item, "src") || starts_with(item, "dst")) && !l->end) {
		l->end = true;
		return set_end(l->r, item, f);
	}
	if (starts_with(item, "flow") && !l->end) {
		l->end = true;
		return set_flow(l->r, item, f);
	}
	if (!streq(item, "above-rate") || l->r->learn_above)
		return fault_set(f, NULL, "src, dst or flow, and above-rate, each once");
	l->r->learn_above = true;
	return 0;
}

int rule_parse_learn(struct rule *r, const char *value, struct rule_fault *f)
{
	struct learning l = {.r = r};
	int code;

	r->learn4 = RATE_PREFIX4;
	r->learn6 = RATE_PREFIX6;
	code = value_each(value, 4, f, add_learn, &l);
	if (code == 0 && !r->learn_ms)
		return fault_set(f, NULL, "a time behind the set, such as @%s,10m", r->learn);
	return code;
}

static void write_time(FILE *f, uint32_t ms)
{
	if (ms % 60000 == 0)
		fprintf(f, "%um", ms / 60000);
	else if (ms % 1000 == 0)
		fprintf(f, "%us", ms / 1000);
	else
		fprintf(f, "%ums", ms);
}

void rule_write_learn(FILE *f, const struct rule *r)
{
	bool whole = r->learn4 == RATE_PREFIX4 && r->learn6 == RATE_PREFIX6;

	if (!r->learn)
		return;
	fprintf(f, " learn @%s,", r->learn);
	write_time(f, r->learn_ms);
	if (r->learn_flow)
		fputs(",flow", f);
	if (r->learn_proto)
		fprintf(f, "=%u/%s", ntohs(r->learn_port_be),
			r->learn_proto == IPPROTO_TCP ? "tcp" : "udp");
	if (r->learn_dst || !whole)
		fputs(r->learn_dst ? ",dst" : ",src", f);
	if (!whole)
		fprintf(f, "/%u/%u", r->learn4, r->learn6);
	if (r->learn_above)
		fputs(",above-rate", f);
}

int rule_check_learn(const struct rule *r, struct rule_fault *f)
{
	if (r->learn_above && !r->rate)
		return fault_set(f, "learn above-rate without rate",
				 "rate with it, which says what is above");
	return 0;
}

/* --- a list's --- */

/* The first rule that learns to each set. */
static void find_learners(const struct rule_list *l, const struct rule *first[SETS_MAX])
{
	memset(first, 0, SETS_MAX * sizeof(*first));
	for (size_t i = 0; i < l->n_rules; i++) {
		const struct rule *r = &l->rules[i];
		const struct rule_set_def *s = r->learn ? rule_list_set(l, r->learn) : NULL;
		size_t at = s ? (size_t)(s - l->sets) : SETS_MAX;

		if (at < SETS_MAX && !first[at])
			first[at] = r;
	}
}

size_t rule_list_timed_sets(const struct rule_list *l, struct timed_set ret[AX_TIMED_SETS])
{
	const struct rule *first[SETS_MAX];
	size_t n = 0;

	find_learners(l, first);
	for (size_t i = 0; i < l->n_sets && i < SETS_MAX; i++) {
		const struct rule *by = first[i];

		if (l->sets[i].kind == SET_PORTS || (!by && !l->sets[i].timed))
			continue;
		if (n < AX_TIMED_SETS)
			ret[n] = (struct timed_set){
				.set = i,
				.len4 = by ? by->learn4 : RATE_PREFIX4,
				.len6 = by ? by->learn6 : RATE_PREFIX6,
				.flows = l->sets[i].kind == SET_FLOWS,
			};
		n++;
	}
	return n;
}

static int check_learner(const struct rule_list *l, size_t rule, const struct rule **first,
			 struct rule_fault *f)
{
	const struct rule *r = &l->rules[rule];
	const struct rule_set_def *s = rule_list_set(l, r->learn);
	const struct rule *by = s && (size_t)(s - l->sets) < SETS_MAX ? first[s - l->sets] : NULL;
	char found[128];

	if (!by || (by->learn4 == r->learn4 && by->learn6 == r->learn6))
		return 0;
	snprintf(found, sizeof(found), "rule %zu with learn @%s,...%s/%u/%u", rule + 1, r->learn,
		 r->learn_dst ? "dst" : "src", r->learn4, r->learn6);
	f->rule = rule;
	return fault_set(f, found,
			 "the prefix lengths of the other rules that learn to the set: %u/%u",
			 by->learn4, by->learn6);
}

/* That what is in the set for a time, and what is for good, can be so. */
static int check_kind(const struct rule_set_def *s, struct rule_fault *f)
{
	char found[128];

	if (s->timed && s->kind == SET_PORTS) {
		snprintf(found, sizeof(found), "set %s of ports with timed", s->name);
		return fault_set(f, found, "timed with sets of prefixes only");
	}
	if (s->kind == SET_FLOWS && !s->timed) {
		snprintf(found, sizeof(found), "set %s of flows with timed: no", s->name);
		return fault_set(f, found, "timed: yes, as without it");
	}
	if (s->kind == SET_FLOWS && (s->n || s->file)) {
		snprintf(found, sizeof(found), "set %s of flows with elements", s->name);
		return fault_set(f, found,
				 "none: flows come for a time only, by rules or "
				 "'ax xdp set add --for'");
	}
	return 0;
}

int list_check_timed(const struct rule_list *l,
		     int (*tell)(void *arg, const struct rule_fault *fault), void *arg)
{
	struct rule_fault f = {.rule = SIZE_MAX};
	const struct rule *first[SETS_MAX];
	struct timed_set timed[AX_TIMED_SETS];
	int code = 0;

	find_learners(l, first);

	for (size_t i = 0; i < l->n_sets && code == 0; i++) {
		if (check_kind(&l->sets[i], &f) < 0)
			code = tell(arg, &f);
	}
	if (code == 0 && rule_list_timed_sets(l, timed) > AX_TIMED_SETS) {
		fault_set(&f, "too many sets that elements come to for a time",
			  "at most %d of them in a list", AX_TIMED_SETS);
		code = tell(arg, &f);
	}
	for (size_t i = 0; i < l->n_rules && code == 0; i++) {
		struct rule_fault one = {.rule = SIZE_MAX};

		if (l->rules[i].learn && check_learner(l, i, first, &one) < 0)
			code = tell(arg, &one);
	}
	return code;
}
