/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ax get: lists of what the agent knows. What the tables show: get_<noun>.c. */
#include "base/near.h"
#include "tools/cmd/commands.h"
#include "tools/cmd/get.h"
#include "tools/lib/output.h"
#include "tools/lib/text.h"

static const struct noun *const nouns[] = {
	&noun_apps,  &noun_services, &noun_servers,    &noun_conns,
	&noun_names, &noun_policy,   &noun_interfaces, &noun_nodes,
};

#define NOUN_LIST_MAX 128
/* "apps, services ... or interfaces" */
static const char *noun_list(char buf[NOUN_LIST_MAX])
{
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(nouns); i++)
		n += (size_t)snprintf(buf + n, NOUN_LIST_MAX - n, "%s%s",
				      i == 0			  ? ""
				      : i + 1 < ARRAY_SIZE(nouns) ? ", "
								  : " or ",
				      nouns[i]->name);
	return buf;
}

static bool noun_matches(const struct noun *n, const char *word)
{
	if (starts_with(n->name, word))
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(n->aliases) && n->aliases[i]; i++)
		if (starts_with(n->aliases[i], word))
			return true;
	return false;
}

static const struct noun *find_noun(const struct cmd *c, const char *word)
{
	const char *words[ARRAY_SIZE(nouns)], *near;
	char list[NOUN_LIST_MAX];
	const struct noun *found = NULL, *second = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(nouns); i++) {
		words[i] = nouns[i]->name;
		if (!*word || !noun_matches(nouns[i], word))
			continue;
		second = found;
		found = nouns[i];
	}
	if (found && !second)
		return found;
	near = nearest_word(word, words, ARRAY_SIZE(words));
	if (second)
		cmd_usage(c, "'%.60s' may mean %s or %s: write more of it", word, second->name,
			  found->name);
	else if (near)
		cmd_usage(c, "there are no '%.60s' to list: did you mean '%s'?", word, near);
	else
		cmd_usage(c, "there are no '%.60s' to list: give %s", word, noun_list(list));
	return NULL;
}

static bool item_matches(const struct noun *n, const json_t *item, const char *word)
{
	for (size_t i = 0; i < ARRAY_SIZE(n->keys) && n->keys[i]; i++) {
		const json_t *value = json_object_get(item, n->keys[i]);
		char number[24];

		if (json_is_string(value) && streq(json_string_value(value), word))
			return true;
		if (!json_is_integer(value))
			continue;
		snprintf(number, sizeof(number), "%lld", (long long)json_integer_value(value));
		if (streq(number, word))
			return true;
	}
	return false;
}

/* Leaves only what one of the words names. Each of them must name something. */
static int select_items(const struct noun *noun, json_t *list, int n, char **words, struct error *e)
{
	autofree bool *found = calloc((size_t)n + 1, sizeof(*found));

	if (!found)
		return error_set(e, -ENOMEM, "out of memory");
	for (size_t i = json_array_size(list); n && i-- > 0;) {
		bool wanted = false;

		for (int w = 0; w < n; w++)
			if (item_matches(noun, json_array_get(list, i), words[w]))
				found[w] = wanted = true;
		if (!wanted)
			json_array_remove(list, i);
	}
	for (int w = 0; w < n; w++)
		if (!found[w])
			return error_set(e, -ENOENT, "there is no '%.60s' among the %s", words[w],
					 noun->name);
	return 0;
}

struct get_options {
	const struct noun *noun;
	int output;
	bool no_headers, all;
	int n_words; /* only what they name is wanted; 0: everything */
	char **words;
};

static bool is_shown(const struct get_options *o, const struct column *c)
{
	return o->all || !o->noun->all_nodes || !c->key || !streq(c->key, o->noun->all_nodes);
}

static void add_row(struct table *t, const struct get_options *o, const json_t *item,
		    const json_t *reply)
{
	for (size_t i = 0; i < o->noun->n_columns; i++) {
		const struct column *column = &o->noun->columns[i];
		const struct cell c = {item, reply, column->key};

		if (is_shown(o, column))
			column->add(t, &c);
	}
}

static int print_table(const struct get_options *o, const json_t *list, const json_t *reply,
		       struct table_style style)
{
	struct table_column columns[COLUMNS_MAX];
	CLEANUP(table_free) struct table t;
	size_t i, n = 0;
	json_t *item;

	for (i = 0; i < o->noun->n_columns; i++)
		if (is_shown(o, &o->noun->columns[i]))
			columns[n++] = o->noun->columns[i].shown;
	table_init(&t, columns, n);
	json_array_foreach (list, i, item)
		add_row(&t, o, item, reply);
	return table_print(&t, &style, stdout);
}

static int print(const struct get_options *o, const json_t *reply)
{
	const struct noun *noun = o->noun;
	const int output = o->output;
	const json_t *list = json_object_get(reply, noun->name);
	struct table_style style = table_style_for(stdout);
	char buf[256];
	json_t *item;
	size_t i;

	if (output == OUTPUT_JSON) {
		cmd_put_json(list, JSON_INDENT(2));
		return 0;
	}
	if (output == OUTPUT_NAME) {
		json_array_foreach (list, i, item) {
			noun->name_of(item, buf, sizeof(buf));
			text_put(buf, stdout);
			putchar('\n');
		}
		return 0;
	}
	style.wide = output == OUTPUT_WIDE;
	style.headers = !o->no_headers;
	return print_table(o, list, reply, style);
}

/* The agent may know the words, and leave out what they do not name: there may be much of it. */
static json_t *request_of(const struct get_options *o)
{
	json_t *j = json_pack("{s:s,s:s}", "op", "get", "what", o->noun->name);
	json_t *names = o->n_words ? json_array() : NULL;

	if (o->all)
		json_object_set_new(j, "all", json_true());
	for (int i = 0; names && i < o->n_words; i++)
		json_array_append_new(names, json_string(o->words[i]));
	if (names)
		json_object_set_new(j, "names", names);
	return j;
}

static int get(struct cmd *c, const struct get_options *o)
{
	const char *what = o->noun->name;
	autojson json_t *reply = NULL;
	struct error e = {0};
	json_t *list;

	if (o->all && !o->noun->all_nodes)
		return cmd_usage(
			c, "of %s the agent knows this node's alone: leave --all-nodes out", what);
	cmd_output();
	if (cmd_ask(c, request_of(o), &reply, &e))
		return cmd_failed(c, &e);
	list = json_object_get(reply, what);
	if (!json_is_array(list)) {
		error_set(&e, -EPROTO,
			  "the agent's answer has no list of %s: are ax and the agent of the same "
			  "version?",
			  what);
		return cmd_failed(c, &e);
	}
	if (select_items(o->noun, list, o->n_words, o->words, &e))
		return cmd_failed(c, &e);
	if (print(o, reply)) {
		error_set(&e, -ENOMEM, "out of memory");
		return cmd_failed(c, &e);
	}
	return cmd_finish(c, CMD_OK);
}

static int run(struct cmd *c, int argc, char **argv)
{
	struct get_options o = {.output = OUTPUT_TABLE};
	char list[NOUN_LIST_MAX];
	int status;

	if (!cmd_begin(c, &o, &argc, argv, &status))
		return status;
	if (!argc)
		return cmd_usage(c, "say what to list: %s", noun_list(list));
	o.noun = find_noun(c, argv[0]);
	o.n_words = argc - 1;
	o.words = argv + 1;
	return o.noun ? get(c, &o) : CMD_USAGE;
}

static int list_noun(struct cmd *c, int argc, char **argv, const struct noun *noun)
{
	struct get_options o = {.noun = noun, .output = OUTPUT_TABLE};
	int status;

	if (!cmd_begin(c, &o, &argc, argv, &status))
		return status;
	o.n_words = argc;
	o.words = argv;
	return get(c, &o);
}

/* ax ps */
static int run_ps(struct cmd *c, int argc, char **argv)
{
	return list_noun(c, argc, argv, &noun_apps);
}

/* ax policy ls */
static int run_policy_ls(struct cmd *c, int argc, char **argv)
{
	return list_noun(c, argc, argv, &noun_policy);
}

/* ax service ls */
static int run_service_ls(struct cmd *c, int argc, char **argv)
{
	return list_noun(c, argc, argv, &noun_services);
}

static const char *noun_name(size_t i)
{
	return i < ARRAY_SIZE(nouns) ? nouns[i]->name : NULL;
}

static const struct words noun_words = {.nth = noun_name};
static const struct words listed = {.kind = WORDS_ASKED, .ask = "get {} -o name"};

/* in the order of enum output_format */
static const char *const outputs[] = {"table", "wide", "json", "name", NULL};
static const struct words output_words = {.choices = outputs};

static const struct opt options[] = {
	{"output", 'o', OPT_CHOICE, "FORMAT",
	 "table (the default), wide (every column), json, or name (one a line)",
	 offsetof(struct get_options, output), &output_words},
	{"no-headers", 0, OPT_FLAG, NULL, "leave the line of column titles out",
	 offsetof(struct get_options, no_headers), NULL},
	{"all-nodes", 'A', OPT_FLAG, NULL, "apps, servers: also those of the cluster's other nodes",
	 offsetof(struct get_options, all), NULL},
};

const struct command cmd_get = {
	.name = "get",
	.about = "list apps, services, servers, connections, names or nodes",
	.run = run,
	.syntax =
		{
			.usage = "ax get apps|services|servers|conns|names|interfaces|nodes "
				 "[options] "
				 "[NAME]...",
			.about = "Lists what the agent knows: everything, or what belongs to the "
				 "NAMEs (ids will do). A table fits the terminal: what matters "
				 "least is cut or left out; into a pipe or a file it is printed "
				 "in full. Singular forms and abbreviations like 'app' and 'svc' "
				 "are understood.",
			.own = {{options, ARRAY_SIZE(options), 0}},
			.elsewhere = options_of_lists,
			.args = {&noun_words},
			.rest = &listed,
		},
};

const struct command cmd_ps = {
	.name = "ps",
	.about = "list apps (as 'get apps' does)",
	.run = run_ps,
	.syntax =
		{
			.usage = "ax ps [options] [NAME]...",
			.about = "Lists the apps that run or are declared, or those of the NAMEs "
				 "(ids will do): the same as 'ax get apps'.",
			.own = {{options, ARRAY_SIZE(options), 0}},
			.elsewhere = options_of_lists,
			.rest = &words_app,
		},
};

static const struct words listed_services = {.kind = WORDS_ASKED, .ask = "get services -o name"};

const struct command cmd_service_ls = {
	.name = "service ls",
	.about = "list services (as 'get services' does)",
	.run = run_service_ls,
	.syntax =
		{
			.usage = "ax service ls [options] [NAME]...",
			.about = "Lists all services, or those of the NAMEs (ids will do): the "
				 "same as 'ax get services'.",
			.own = {{options, ARRAY_SIZE(options), 0}},
			.elsewhere = options_of_lists,
			.rest = &listed_services,
		},
};

static const struct words listed_rules = {.kind = WORDS_ASKED, .ask = "get policy -o name"};

const struct command cmd_policy_ls = {
	.name = "policy ls",
	.about = "list the rules, and how often each decided (as 'get policy' does)",
	.run = run_policy_ls,
	.syntax =
		{
			.usage = "ax policy ls [options] [RULE]...",
			.about = "Lists all rules in their order, the config's, added ones and "
				 "those of egress lists, with how often each has decided, or those "
				 "of the RULEs (numbers or names): the same as 'ax get policy'.",
			.own = {{options, ARRAY_SIZE(options), 0}},
			.elsewhere = options_of_lists,
			.rest = &listed_rules,
		},
};
