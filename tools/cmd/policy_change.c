/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ax policy add, set, del: rules that are added while the agent runs, in the config's words. */
#include "config/added_rules.h"
#include "tools/cmd/commands.h"

static const struct words words_rule = {.kind = WORDS_ASKED, .ask = "get policy -o name"};

static const char *const kinds[] = {"allow", "deny", "log", "audit"};

static const char *kind_nth(size_t i)
{
	return i < ARRAY_SIZE(kinds) ? kinds[i] : NULL;
}
static const struct words words_kind = {.nth = kind_nth};

struct args {
	struct strv from, to, ports, protocols;
	const char *before, *after;
	bool first, last;
	bool no_from, no_to, no_ports, no_protocols;
};

static void args_free(struct args *a)
{
	strv_free(&a->from);
	strv_free(&a->to);
	strv_free(&a->ports);
	strv_free(&a->protocols);
}

/* --- options to the config's words --- */

static void put_list(json_t *words, const char *key, const struct strv *v)
{
	json_t *list = v->n ? json_array() : NULL;

	for (size_t i = 0; i < v->n; i++)
		json_array_append_new(list, json_string(v->v[i]));
	if (list)
		json_object_set_new(words, key, list);
}

struct word {
	const char *key, *option;
	const struct strv *v;
	bool no;
};
#define WORDS 4

static void words_of_args(const struct args *a, struct word ret[WORDS])
{
	ret[0] = (struct word){"from", "from", &a->from, a->no_from};
	ret[1] = (struct word){"to", "to", &a->to, a->no_to};
	ret[2] = (struct word){"ports", "port", &a->ports, a->no_ports};
	ret[3] = (struct word){"protocol", "protocol", &a->protocols, a->no_protocols};
}

/* What is taken away is null. */
static json_t *put_words(const struct args *a)
{
	json_t *words = json_object();
	struct word all[WORDS];

	words_of_args(a, all);
	for (size_t i = 0; i < WORDS; i++) {
		put_list(words, all[i].key, all[i].v);
		if (all[i].no)
			json_object_set_new(words, all[i].key, json_null());
	}
	return words;
}

/* The option that is given, and taken away, too; NULL: none. */
static const char *both(const struct args *a)
{
	struct word all[WORDS];

	words_of_args(a, all);
	for (size_t i = 0; i < WORDS; i++)
		if (all[i].no && all[i].v->n)
			return all[i].option;
	return NULL;
}

/* False: more than one place is given. */
static bool put_place(json_t *rule, const struct args *a)
{
	const char *at = a->before ? a->before : a->after;
	enum rule_place p = a->before  ? RULE_BEFORE
			    : a->after ? RULE_AFTER
			    : a->first ? RULE_FIRST
				       : RULE_LAST;
	int n = a->first + a->last + !!a->before + !!a->after;

	if (n)
		json_object_set_new(rule, "place", json_string(rule_place_name(p)));
	if (n && at)
		json_object_set_new(rule, "at", json_string(at));
	return n <= 1;
}

static json_t *rule_of_args(const struct args *a, const char *kind)
{
	json_t *rule = json_pack("{so}", "words", put_words(a));

	if (rule && kind)
		json_object_set_new(rule, "kind", json_string(kind));
	return rule;
}

/* --- the commands --- */

static bool is_kind(const char *text)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (streq(text, kinds[i]))
			return true;
	return false;
}

/* Takes the reference. */
static int ask(struct cmd *c, json_t *request)
{
	autojson json_t *reply = NULL;
	struct error e = {0};

	return cmd_ask(c, request, &reply, &e) ? cmd_failed(c, &e) : CMD_OK;
}

static int put(struct cmd *c, int argc, char **argv, bool add)
{
	CLEANUP(args_free) struct args a = {0};
	json_t *rule;
	int status;
	bool says;

	if (!cmd_begin(c, &a, &argc, argv, &status))
		return status;
	if (argc < 1 || argc > 2 || (add && argc != 2))
		return cmd_usage(c,
				 add ? "give a name and what the rule does, as in 'ax policy add "
				       "no-guests deny --from role=guest'"
				     : "give the name of one rule");
	if (argc == 2 && !is_kind(argv[1]))
		return cmd_usage(c, "'%.60s' is not what a rule does: allow, deny, log or audit",
				 argv[1]);
	if (both(&a))
		return cmd_usage(c, "one of --%s and --no-%s", both(&a), both(&a));
	rule = rule_of_args(&a, argc == 2 ? argv[1] : NULL);
	if (!put_place(rule, &a)) {
		json_decref(rule);
		return cmd_usage(c, "one of --first, --last, --before and --after");
	}
	says = json_object_size(rule) > 1 || json_object_size(json_object_get(rule, "words"));
	if (!says) {
		json_decref(rule);
		return cmd_usage(c, "say what to change, as in 'ax policy set %.60s --first'",
				 argv[0]);
	}
	return ask(c, json_pack("{ss ss ss so}", "op", "policy", "action", add ? "add" : "set",
				"name", argv[0], "rule", rule));
}

static int run_add(struct cmd *c, int argc, char **argv)
{
	return put(c, argc, argv, true);
}

static int run_set(struct cmd *c, int argc, char **argv)
{
	return put(c, argc, argv, false);
}

static int run_del(struct cmd *c, int argc, char **argv)
{
	json_t *names;
	int status;

	if (!cmd_begin(c, NULL, &argc, argv, &status))
		return status;
	if (!argc)
		return cmd_usage(c, "give the name of a rule");
	names = json_array();
	for (int i = 0; i < argc; i++)
		json_array_append_new(names, json_string(argv[i]));
	return ask(c, json_pack("{ss ss so}", "op", "policy", "action", "del", "names", names));
}

static const struct opt options[] = {
	{"from", 0, OPT_STRINGS, "WHO",
	 "who asks: labels such as role=guest, an app, a service, an address or a prefix outside "
	 "(may be given several times: any of them; else every app)",
	 offsetof(struct args, from), &words_app},
	{"to", 0, OPT_STRINGS, "WHOM",
	 "who is asked: the same, or a DNS name such as *.example.com", offsetof(struct args, to),
	 &words_app},
	{"port", 'p', OPT_STRINGS, "PORT[-PORT]",
	 "the port that is asked for, or a range (may be given several times; else all)",
	 offsetof(struct args, ports), NULL},
	{"protocol", 0, OPT_STRINGS, "PROTOCOL",
	 "tcp, udp or icmp (may be given several times; else all)",
	 offsetof(struct args, protocols), NULL},
	{"first", 0, OPT_FLAG, NULL, "before all rules that there are",
	 offsetof(struct args, first), NULL},
	{"last", 0, OPT_FLAG, NULL,
	 "behind them, and before what egress lists say (this is where it comes if nothing is "
	 "said)",
	 offsetof(struct args, last), NULL},
	{"before", 0, OPT_STRING, "RULE", "before that one: its name, or its number in the config",
	 offsetof(struct args, before), &words_rule},
	{"after", 0, OPT_STRING, "RULE", "behind that one", offsetof(struct args, after),
	 &words_rule},
};

static const struct opt no_options[] = {
	{"no-from", 0, OPT_FLAG, NULL, "whoever asks: what --from said is taken away",
	 offsetof(struct args, no_from), NULL},
	{"no-to", 0, OPT_FLAG, NULL, "whoever is asked", offsetof(struct args, no_to), NULL},
	{"no-port", 0, OPT_FLAG, NULL, "all ports", offsetof(struct args, no_ports), NULL},
	{"no-protocol", 0, OPT_FLAG, NULL, "all protocols", offsetof(struct args, no_protocols),
	 NULL},
};

const struct command cmd_policy_add = {
	.name = "policy add",
	.about = "add a rule",
	.run = run_add,
	.syntax =
		{
			.usage = "ax policy add NAME allow|deny|log|audit [options]",
			.about =
				"Adds a rule among those of the config, whose words for it are the "
				"same. It holds at once for everybody, stays until 'ax policy "
				"del', "
				"also when the agent is started again, and 'ax config apply' "
				"leaves "
				"it where it is; a config that has a rule of that name takes it "
				"over.",
			.own = {{options, ARRAY_SIZE(options), 0}},
			.args = {NULL, &words_kind},
		},
};

const struct command cmd_policy_set = {
	.name = "policy set",
	.about = "change or move a rule that was added",
	.run = run_set,
	.syntax =
		{
			.usage = "ax policy set NAME [allow|deny|log|audit] [option...]",
			.about = "Changes what is given of a rule that 'ax policy add' has made, "
				 "and "
				 "leaves the rest; each option replaces the whole list, and its "
				 "--no- takes it away. The rule as it was holds until the changed "
				 "one does.",
			.own = {{options, ARRAY_SIZE(options), 0},
				{no_options, ARRAY_SIZE(no_options), 0}},
			.args = {&words_rule, &words_kind},
		},
};

const struct command cmd_policy_del = {
	.name = "policy del",
	.about = "remove rules that were added",
	.run = run_del,
	.syntax =
		{
			.usage = "ax policy del NAME...",
			.about = "Removes rules that 'ax policy add' has made, all of them in one "
				 "step.",
			.rest = &words_rule,
		},
};
