/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ax xdp rule add, del, move, list */
#include "rules/field.h"
#include "tools/xdp/common.h"
#include "tools/lib/table.h"
#include "tools/lib/text.h"

/* Where in a list; at most one is given. */
struct place {
	const char *at, *before, *after;
};

/* Rules of the interface that is named first. */
static const struct words rule_words = {
	.kind = WORDS_ASKED,
	.ask = "xdp rule list {}",
	.column = 2,
};

static const struct opt place_opts[] = {
	{"at", 0, OPT_STRING, "N", "as rule number N, from 1", offsetof(struct place, at), NULL},
	{"before", 0, OPT_STRING, "RULE", "before this rule (its name or number)",
	 offsetof(struct place, before), &rule_words},
	{"after", 0, OPT_STRING, "RULE", "behind this rule", offsetof(struct place, after),
	 &rule_words},
};

static bool place_is_one(const struct place *p)
{
	return !!p->at + !!p->before + !!p->after <= 1;
}

/* The index in the list; without a place its end. last: the highest number for --at. */
static int find_place(const struct place *p, const struct rule_list *l, size_t last, size_t *ret,
		      struct error *e)
{
	unsigned long n;
	char *end;
	int r;

	*ret = l->n_rules;
	if (p->before)
		return rule_list_find(l, p->before, ret, e);
	if (p->after) {
		r = rule_list_find(l, p->after, ret, e);
		*ret += !r;
		return r;
	}
	if (!p->at)
		return 0;
	n = strtoul(p->at, &end, 10);
	if (p->at[0] < '0' || p->at[0] > '9' || *end || !n || n > last)
		return error_set(e, -EINVAL,
				 "--at cannot be '%.60s': a rule can be number 1 to %zu there",
				 p->at, last);
	*ret = n - 1;
	return 0;
}

struct edit {
	struct place place;
	struct rule rule;
	char **which; /* of del: n; of move: one */
	size_t n;
};

static int change(struct cmd *c, const char *ifname, const struct cmd_xdp_change *o,
		  int (*f)(void *arg, struct rule_list *l, struct error *e), struct edit *edit)
{
	const struct xdp_load_options options = cmd_xdp_load_options(c, o);
	struct error e = {0};

	if (!cmd_root(c))
		return CMD_FAILED;
	cmd_output();
	if (xdp_edit(&c->inst, ifname, f, edit, &options, &e))
		return cmd_failed(c, &e);
	return cmd_xdp_put_result(c, ifname, o);
}

/* --- add --- */

static int edit_add(void *arg, struct rule_list *l, struct error *e)
{
	const struct edit *edit = arg;
	struct rule copy;
	size_t at;
	int r;

	r = find_place(&edit->place, l, l->n_rules + 1, &at, e);
	if (r)
		return r;
	r = rule_copy(&edit->rule, &copy);
	r = r ? r : rule_list_insert(l, at, &copy);
	return r ? error_set(e, r, "the rule could not be added: %s", strerror(-r)) : 0;
}

/* What the options of the commands that change rules say. */
struct args {
	struct place place;
	struct cmd_xdp_change change;
	struct cmd_xdp_direction direction;
};

static char about_add[1024]; /* the help, see say_about_add() */

/* The keys of the fields are not known before. */
static void say_about_add(void)
{
	char keys[320];
	size_t len = 0;

	for (size_t i = 0; i < FIELD_KEYS_MAX * RULE_FIELDS && len < sizeof(keys); i++) {
		const struct field_key *key =
			&rule_fields[i / FIELD_KEYS_MAX].keys[i % FIELD_KEYS_MAX];

		if (key->name)
			len += (size_t)snprintf(keys + len, sizeof(keys) - len, "%s%s",
						len ? ", " : "", key->name);
	}
	snprintf(about_add, sizeof(about_add),
		 "Adds a rule, behind the last one unless said otherwise. A rule is a list of keys "
		 "with a value each:\n"
		 "%s say which packets it matches;\n"
		 "action says what happens to them: pass, drop, reflect, redirect IFACE, cpu N, "
		 "balance NAME, route, challenge;\n"
		 "name, capture, rate, learn, sample, log, trigger, smac, dmac, to, to-port, "
		 "checksum are "
		 "what else there is. ax-xdp(8) explains each.\n\n"
		 "ax xdp rule add eth0 name ssh src 10.0.0.0/8 proto tcp dport 22 action pass",
		 keys);
}

static int run_add(struct cmd *c, int argc, char **argv)
{
	struct edit edit = {0};
	struct error e = {0};
	struct args a = {0};
	int status;

	say_about_add();
	if (!cmd_begin(c, &a, &argc, argv, &status))
		return status;
	if (!argc)
		return cmd_usage(c, "say which interface, and the rule");
	if (!place_is_one(&a.place))
		return cmd_usage(c, "give one of --at, --before and --after");
	if (rule_parse((const char *const *)argv + 1, (size_t)argc - 1, &edit.rule, &e))
		return cmd_usage(c, "%s", e.text);
	edit.place = a.place;
	status = change(c, cmd_xdp_place(&a.direction, argv[0]), &a.change, edit_add, &edit);
	rule_free(&edit.rule);
	return status;
}

static const char *action(size_t i)
{
	return i < ARRAY_SIZE(ax_verdict_names) ? ax_verdict_names[i] : NULL;
}

static const struct words action_words = {.nth = action};
static const struct words_after after_keys[] = {
	{"action", &action_words},
	{"redirect", &words_interface},
	{NULL, NULL},
};
static const struct words key_words = {.nth = rule_key_name, .after = after_keys};

static const struct command rule_add = {
	.name = "xdp rule add",
	.about = "add a rule",
	.run = run_add,
	.syntax =
		{
			.usage = "ax xdp rule add IFACE [--at N|--before RULE|--after RULE] KEY "
				 "VALUE ...",
			.about = about_add,
			.own = {{place_opts, ARRAY_SIZE(place_opts), offsetof(struct args, place)},
				{cmd_xdp_change_opts, ARRAY_SIZE(cmd_xdp_change_opts),
				 offsetof(struct args, change)},
				{cmd_xdp_direction_opts, 1, offsetof(struct args, direction)}},
			.args = {&words_interface},
			.rest = &key_words,
		},
};

/* --- del --- */

static int edit_del(void *arg, struct rule_list *l, struct error *e)
{
	const struct edit *edit = arg;
	autofree bool *gone = calloc(l->n_rules + 1, sizeof(*gone));
	size_t at;
	int r;

	if (!gone)
		return error_set(e, -ENOMEM, "out of memory");
	/* all are found first: numbers are those of the list as it is shown */
	for (size_t i = 0; i < edit->n; i++) {
		r = rule_list_find(l, edit->which[i], &at, e);
		if (r)
			return r;
		gone[at] = true;
	}
	for (size_t i = l->n_rules; i-- > 0;)
		if (gone[i])
			rule_list_remove(l, i);
	return 0;
}

static int run_del(struct cmd *c, int argc, char **argv)
{
	struct edit edit = {0};
	struct args a = {0};
	int status;

	if (!cmd_begin(c, &a, &argc, argv, &status))
		return status;
	if (argc < 2)
		return cmd_usage(c, "say which interface, and which rules");
	edit.which = argv + 1;
	edit.n = (size_t)argc - 1;
	return change(c, cmd_xdp_place(&a.direction, argv[0]), &a.change, edit_del, &edit);
}

static const struct command rule_del = {
	.name = "xdp rule del",
	.about = "remove rules",
	.run = run_del,
	.syntax =
		{
			.usage = "ax xdp rule del IFACE RULE...",
			.about = "Removes rules, by name or by number: all of them in one step, "
				 "or none.",
			.own = {{cmd_xdp_change_opts, ARRAY_SIZE(cmd_xdp_change_opts),
				 offsetof(struct args, change)},
				{cmd_xdp_direction_opts, 1, offsetof(struct args, direction)}},
			.args = {&words_interface},
			.rest = &rule_words,
		},
};

/* --- move --- */

static int edit_move(void *arg, struct rule_list *l, struct error *e)
{
	const struct edit *edit = arg;
	size_t from, to;
	int r;

	r = rule_list_find(l, edit->which[0], &from, e);
	r = r ? r : find_place(&edit->place, l, l->n_rules, &to, e);
	if (r)
		return r;
	/* --before and --after count the rule itself, which leaves its place first; as a number,
	 * the place is meant where it comes to be */
	if (!edit->place.at && to > from)
		to--;
	if (to >= l->n_rules)
		to = l->n_rules - 1;
	r = rule_list_move(l, from, to);
	return r ? error_set(e, r, "the rule could not be moved: %s", strerror(-r)) : 0;
}

static int run_move(struct cmd *c, int argc, char **argv)
{
	struct edit edit = {.n = 1};
	struct args a = {0};
	int status;

	if (!cmd_begin(c, &a, &argc, argv, &status))
		return status;
	if (argc != 2)
		return cmd_usage(c, "say which interface, and one rule");
	if (!place_is_one(&a.place) || (!a.place.at && !a.place.before && !a.place.after))
		return cmd_usage(c, "say where to: give one of --at, --before and --after");
	edit.place = a.place;
	edit.which = argv + 1;
	return change(c, cmd_xdp_place(&a.direction, argv[0]), &a.change, edit_move, &edit);
}

static const struct command rule_move = {
	.name = "xdp rule move",
	.about = "move a rule to another place",
	.run = run_move,
	.syntax =
		{
			.usage = "ax xdp rule move IFACE RULE --at N|--before RULE|--after RULE",
			.about = "Moves a rule to another place in the list.",
			.own = {{place_opts, ARRAY_SIZE(place_opts), offsetof(struct args, place)},
				{cmd_xdp_change_opts, ARRAY_SIZE(cmd_xdp_change_opts),
				 offsetof(struct args, change)},
				{cmd_xdp_direction_opts, 1, offsetof(struct args, direction)}},
			.args = {&words_interface, &rule_words},
		},
};

/* --- list --- */

static const struct table_column rule_columns[] = {
	{.title = "#", .keep = 9, .right = true},
	{.title = "NAME", .keep = 8, .min = 12},
	{.title = "RULE", .keep = 7, .min = 40},
};

#define OFF "not this interface's group"

static int put_table(const struct rule_list *l, struct xdp *x)
{
	const struct table_style style = table_style_for(stdout);
	CLEANUP(table_free) struct table t;

	table_init(&t, rule_columns, ARRAY_SIZE(rule_columns));
	for (size_t i = 0; i < l->n_rules; i++) {
		autofree char *text = cmd_xdp_rule_text(&l->rules[i]);

		if (!text)
			return -ENOMEM;
		table_addf(&t, "%zu", i + 1);
		table_add(&t, l->rules[i].name);
		if (xdp_rule_is_off(x, i)) {
			table_addf(&t, "%s (" OFF ")", text);
			table_colour(&t, COLOUR_DIM);
		} else {
			table_add(&t, text);
		}
	}
	table_add(&t, NULL);
	table_add(&t, "default");
	table_addf(&t, "action %s", ax_verdict_names[l->default_action]);
	table_colour(&t, COLOUR_DIM);
	return table_print(&t, &style, stdout);
}

static json_t *rule_json(const struct rule *r, size_t number)
{
	json_t *j = json_pack("{s:I}", "number", (json_int_t)number);
	struct rule_word *w;
	size_t n;

	if (cmd_xdp_rule_words(r, &w, &n)) {
		json_decref(j);
		return NULL;
	}
	for (size_t i = 0; i < n; i++)
		json_object_set_new(j, w[i].key, json_string(w[i].value));
	cmd_xdp_rule_words_free(w, n);
	return j;
}

static int put_json(const struct rule_list *l, struct xdp *x)
{
	autojson json_t *j =
		json_pack("{s:s,s:[]}", "default", ax_verdict_names[l->default_action], "rules");
	json_t *rules = json_object_get(j, "rules");

	for (size_t i = 0; i < l->n_rules; i++) {
		json_t *one = rule_json(&l->rules[i], i + 1);

		if (one && xdp_rule_is_off(x, i))
			json_object_set_new(one, "off", json_string(OFF));
		if (json_array_append_new(rules, one))
			return -ENOMEM;
	}
	cmd_put_json(j, JSON_INDENT(2));
	return 0;
}

enum list_output { LIST_TABLE, LIST_JSON, LIST_YAML };

struct list_args {
	int output;
	struct cmd_xdp_direction direction;
};

static int run_list(struct cmd *c, int argc, char **argv)
{
	autoxdp struct xdp *x = NULL;
	struct list_args a = {0};
	autolist struct rule_list l;
	struct error e = {0};
	int status, r;

	rule_list_init(&l);
	if (!cmd_begin(c, &a, &argc, argv, &status))
		return status;
	if (argc != 1)
		return cmd_usage(c, "say which interface");
	cmd_output();
	r = xdp_open(&c->inst, cmd_xdp_place(&a.direction, argv[0]), &x, &e);
	r = r ? r : xdp_list(x, &l, &e);
	if (r)
		return cmd_failed(c, &e);
	r = a.output == LIST_YAML   ? cmd_xdp_put_yaml(&l, stdout)
	    : a.output == LIST_JSON ? put_json(&l, x)
				    : put_table(&l, x);
	if (r) {
		error_set(&e, r, "the rules could not be printed: %s", strerror(-r));
		return cmd_failed(c, &e);
	}
	return cmd_finish(c, CMD_OK);
}

/* in the order of enum list_output */
static const char *const list_outputs[] = {"table", "json", "yaml", NULL};
static const struct words list_words = {.choices = list_outputs};

static const struct opt list_opts[] = {
	{"output", 'o', OPT_CHOICE, "FORMAT",
	 "table (the default), json, or yaml: a rule file, with sets and balancers",
	 offsetof(struct list_args, output), &list_words},
};

static const struct command rule_show = {
	.name = "xdp rule list",
	.about = "print the rules",
	.run = run_list,
	.syntax =
		{
			.usage = "ax xdp rule list IFACE [-o FORMAT]",
			.about = "Prints the rules in their order. What '-o yaml' prints can be "
				 "put on an interface with 'ax xdp apply IFACE --rules FILE'.",
			.own = {{list_opts, ARRAY_SIZE(list_opts), 0},
				{cmd_xdp_direction_opts, 1, offsetof(struct list_args, direction)}},
			.args = {&words_interface},
		},
};

static const struct command *const commands[] = {
	&rule_add, &rule_del, &rule_move, &rule_show, NULL,
};

const struct command cmd_xdp_rule = {
	.name = "xdp rule",
	.about = "add, del, move or list rules",
	.sub = commands,
	.example = "'add', 'del', 'move' or 'list'",
	.syntax =
		{
			.usage = "ax xdp rule add|del|move|list IFACE ...",
			.about = "Shows and changes the rules of an interface one by one. Each "
				 "change is one step: every packet is judged by the list before "
				 "it or by the one after it.",
			.command_follows = true,
		},
};
